#!/bin/sh
# Training on reordered nodes: usage: order.sh HG-TRAIN H5CONVERT DIRECTORY.
#
# Without dropout the training is the same up to rounding, since only the order of sums differs.
# Dropout draws by the place of an element, so with dropout it is another run, as with another seed.
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

# losses FILE OPTIONS...: prints the loss of each epoch
losses() {
  file=$1
  shift
  "$train" --data "$file" --device cpu --precision fp32 --epochs 10 "$@" --json run.jsonl \
    >/dev/null ||
    echo "FAILED   hg-train --data $file $*"
  sed -n 's/.*"event":"epoch".*"loss":\([^,}]*\).*/\1/p' run.jsonl
}

# compare NAME ALIKE: if ALIKE is 1, the losses of both orders must agree to 1e-3 in every epoch; if
# it is 0, they must not
compare() {
  paste before after | awk -v name="$1" -v alike="$2" '
    NF == 2 { n++; d = ($1 - $2) / $1; far += d * d > 1e-6 }
    END {
      good = n == 10 && (far == 0) == alike
      print good ? "ok      " : "FAILED  ", name ": " far + 0 " of " n + 0 " losses differ"
      exit !good
    }' || failures=1
}

"$convert" --synthetic planted --nodes 600 --features 16 --classes 4 --seed 3 -o original.h5 >out ||
  exit 1
"$convert" original.h5 --reorder community -o ordered.h5 >out || exit 1
for model in $models; do
  none="--model $model --dropout 0"
  case $model in gat*) none="$none --attention-dropout 0" ;; esac
  losses original.h5 $none >before
  losses ordered.h5 $none >after
  compare "$model without dropout" 1
  some="--model $model --dropout 0.5"
  losses original.h5 $some >before
  losses ordered.h5 $some >after
  compare "$model with dropout" 0
done
exit $failures
