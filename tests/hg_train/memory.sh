#!/bin/sh
# The device memory of runs, as the summary reports it: usage: memory.sh HG-TRAIN H5CONVERT
# DIRECTORY.
set -u
[ $# -eq 3 ] || { echo "3 arguments, not $#"; exit 1; } # files are removed below
train=$1 convert=$2 dir=$3
mkdir -p "$dir"
cd "$dir" || exit 1
failures=0
rm -f ./*.h5 ./*.jsonl
# every model, as --help lists them
models=$("$train" --help | sed -n 's/^  --model NAME *the model: //p' | tr -d , |
  sed 's/ gine / /') # whose data needs edges with attributes
[ -n "$models" ] || { echo 'FAILED   hg-train --help lists no models'; exit 1; }

# The runs of check_peak: long enough to overflow, to be recorded again and to be evaluated. With
# sanitizers they are shorter, because a step takes ten times as long.
epochs=24
[ -z "${HG_SANITIZED:-}" ] || epochs=9

# peak_bytes OPTIONS...: of a run of two epochs
peak_bytes() {
  "$train" --data planted.h5 --device cpu --epochs 2 "$@" --json run.jsonl >/dev/null 2>err ||
    cat err >&2
  sed -n 's/.*"event":"summary".*"peak_bytes":\([0-9]*\).*/\1/p' run.jsonl
}

"$convert" --synthetic planted --nodes 20000 --features 64 --seed 1 -o planted.h5 >out || exit 1

# Half precision halves the state tensors, and the observer must not use up what that saves: with
# default options, GIN takes at most 0.6 times the memory that it takes in fp32.
half=$(peak_bytes --model gin)
single=$(peak_bytes --model gin --precision fp32)
echo "gin, fp16 $half, fp32 $single: $(awk "BEGIN { print $half / $single }")"
[ $((10 * ${half:-9})) -le $((6 * ${single:-0})) ] || {
  echo "FAILED   gin in fp16 takes more than 0.6 of fp32's memory"
  failures=1
}

# No run takes more memory than --print-plan says before the first step, whether several epochs are
# in a launch or not, whether the run stops early or not, and also if a step overflows and the tapes
# are recorded again.
"$convert" --synthetic planted --nodes 2000 --features 16 --hubs 4 --hub-degree 1500 --scale 24 \
  --seed 2 -o hubs.h5 >out || exit 1
check_peak() { # OPTIONS...: compares the peak of a run with its plan
  sum=$("$train" --data hubs.h5 --device cpu "$@" --epochs 1 --print-plan 2>err |
    sed -n 's/^device memory: .*; together \([0-9]*\) .*/\1/p')
  "$train" --data hubs.h5 --device cpu "$@" --epochs $epochs --json run.jsonl >out 2>err
  most=$(sed -n 's/.*"event":"summary".*"peak_bytes":\([0-9]*\).*/\1/p' run.jsonl)
  [ "${most:-1}" -le "${sum:-0}" ] || {
    echo "FAILED   hg-train $*: peak ${most:-unknown}, planned ${sum:-unknown}"
    failures=1
  }
}
for model in $models; do
  for precision in fp32 fp16 fp16-naive; do
    check_peak --model $model --precision $precision
    check_peak --model $model --precision $precision --together 4 --eval-every 8
  done
  check_peak --model $model --together 16 --patience 3
  check_peak --model $model --observe 0 --clip 1
done
exit $failures
