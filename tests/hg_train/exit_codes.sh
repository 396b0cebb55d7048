#!/bin/sh
# The exit codes of hg-train, one row for each way to end: usage: exit_codes.sh HG-TRAIN H5CONVERT
# DIRECTORY. Everything is written below DIRECTORY.
set -u
[ $# -eq 3 ] || { echo "3 arguments, not $#"; exit 1; } # DIRECTORY is removed below
tool=$1 convert=$2 dir=$3
. "$(dirname "$0")/../tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 100 --scale 1 --seed 3 --quiet -o data.h5 || exit 1
"$convert" --synthetic planted --nodes 4000 --classes 4 --features 8 --degree 6 --hubs 1 \
  --hub-degree 3500 --scale 32 --seed 1 --features-dtype f16 --quiet -o hub.h5 || exit 1
head -c 3000 data.h5 >cut.h5

still='--data data.h5 --model gcn --epochs 40 --lr 0 --weight-decay 0 --dropout 0'
naive='--data hub.h5 --model gcn --norm right --no-self-loops --precision fp16-naive --epochs 6'

# CODE | what a stream says | OPTIONS
while IFS='|' read -r code said options; do
  case $code in '' | '#'*) continue ;; esac
  # shellcheck disable=SC2086 # the options are words
  run "${code% }" "$options" --device cpu $options
  cat out err >both
  contains "$options" both "$said"
done <<TABLE
# trained: also where some steps were skipped, and where a run is too short for a verdict
0 |test accuracy|--data data.h5 --model gcn --epochs 30
0 |2 of 9 steps skipped|--data hub.h5 --model gin --dropout 0 --epochs 9
0 |test accuracy|--data data.h5 --model gcn --epochs 15 --lr 0 --weight-decay 0 --dropout 0
# bad input: options, files, and what does not fit together
2 |--model is missing|--data data.h5
2 |unknown option|--data data.h5 --modle gcn
2 |absent.h5|--data absent.h5 --model gcn
2 |cut.h5|--data cut.h5 --model gcn
2 |--heads is an option of|--data data.h5 --model gcn --heads 2
2 |refuses what is not proved|--data data.h5 --model gin --precision fp16-naive --unproved refuse
2 |cannot be written|--data data.h5 --model gcn --epochs 2 --save missing/x.h5
2 |data.h5|--data data.h5 --model gcn --epochs 2 --resume data.h5
# the loss is not a number: sums in fp16 overflow at the hub
3 |LOSS  *not a number|$naive
3 |LOSS  *not a number|$naive --seeds 2
# nothing was learnt: no weight moves, or no step was applied
3 |no loss of 40 steps is below the first|$still
3 |NOTHING LEARNT  in 2 of 2 runs|$still --seeds 2
3 |every step was skipped|--data hub.h5 --model gin --dropout 0 --epochs 1
TABLE

# bad input: a file to which another run is writing
if command -v flock >/dev/null; then
  echo kept >busy.json
  printf '#!/bin/sh\nexec flock busy.json "%s" "$@"\n' "$tool" >busy
  chmod +x busy
  tool=./busy
  run 2 "busy file" --data data.h5 --model gcn --epochs 2 --device cpu --json busy.json
  contains "busy file" err "busy.json: cannot be written: another run is writing to it"
  contains "busy file" busy.json kept
fi
exit $((failures > 0))
