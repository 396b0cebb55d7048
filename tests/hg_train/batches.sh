#!/bin/sh
# Training in batches of graphs: usage: batches.sh HG-TRAIN H5CONVERT DIRECTORY DATASETS [SCHEMA
# FILE], the program of datasets.c, and the checker of JSON lines with their schema. Everything is
# written below DIRECTORY. A part trains on ZINC and is left out without HG_DATA.
set -u
[ $# -ge 4 ] || { echo "$# arguments, not 4 or more"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3 datasets=$4
checker=${5:-} schema=${6:-}
tool=$train refusal=2
. "$(dirname "$0")/../tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$convert" --synthetic planted --nodes 60 --classes 4 --features 16 -o one.h5 >/dev/null || exit 1
"$datasets" . || exit 1

refused 'one graph' 'one.h5: is one graph, and --batch-size needs many' --data one.h5 --model gcn \
  --batch-size 4
refused 'no graphs' '--batch-size is "0", expected a whole number from 1' --data pairs.h5 \
  --model gin --batch-size 0
refused 'groups' '--together needs steps that are the same' --data pairs.h5 --model gin \
  --batch-size 4 --together 2
refused 'doctor' '--doctor needs steps that are the same' --data pairs.h5 --model gin \
  --batch-size 4 --doctor
refused 'features on the host' '--features-on-host needs --batch-size' --data pairs.h5 --model gin \
  --features-on-host
refused 'sparse on the host' '--features-on-host and --sparse-features on' --data pairs.h5 \
  --model gin --batch-size 4 --features-on-host --sparse-features on

# epochs FILE: the lines of the epochs without the times
epochs() {
  grep '"event":"epoch"' "$1" |
    sed 's/"epoch":[0-9]*,//; s/"epoch_ms":[^,]*,//; s/"prepare_ms":[^,}]*//'
}

# check NAME DATA OPTIONS...: 6 epochs are the same as 3, a checkpoint, and 3 more, and every seed
# has an order of its own.
check() {
  name=$1 data=$2
  shift 2
  set -- --data "$data" --device cpu --seed 5 "$@"
  run 0 "$name: whole" "$@" --epochs 6 --json - --save whole.h5
  epochs out >all
  if [ -n "$checker" ]; then
    "$checker" "$schema" out >checked || { fail "$name: JSON lines:"; cat checked; }
  fi
  tail -n 3 all >whole
  run 0 "$name: first half" "$@" --epochs 3 --save half.h5
  run 0 "$name: second half" "$@" --epochs 3 --resume half.h5 --save half.h5 --json -
  epochs out >resumed
  cmp whole resumed || fail "$name: other epochs"
  cmp whole.h5 half.h5 || fail "$name: another checkpoint"
  run 0 "$name: seeds" "$@" --epochs 6 --json - --seeds 2
  epochs out >seeds
  head -n 6 seeds | cmp - all || fail "$name: another run of the same seed"
  [ "$(tail -n 6 seeds | sed 's/"seed":[0-9]*,//')" != "$(sed 's/"seed":[0-9]*,//' all)" ] ||
    fail "$name: another seed gives the same run"
}

for precision in fp16 fp32; do
  check "classes $precision" pairs.h5 --model gin --batch-size 4 --precision $precision \
    --loss-scale 256
  check "labels $precision" pairs_of_labels.h5 --model gcn --batch-size 7 \
    --precision $precision --loss-scale 256
done
run 0 'steps' --data pairs.h5 --model gin --loss-scale 256 --batch-size 4 --epochs 2
contains 'steps' out '^  batches  *of 4 graphs, [1-9][0-9]* in an epoch; making them took'
for where in '' --features-on-host; do
  run 0 "features $where" --data pairs.h5 --model gin --device cpu --batch-size 4 --epochs 3 \
    --seed 5 --loss-scale 256 --json - $where
  epochs out >"epochs$where"
done
cmp epochs epochs--features-on-host || fail 'features on the host: other epochs'
run 0 'a batch of all' --data pairs.h5 --model gin --loss-scale 256 --batch-size 1000 --epochs 2
contains 'a batch of all' out ', 1 in an epoch;'
run 0 'other size' --data pairs.h5 --model gin --loss-scale 256 \
  --batch-size 4 --epochs 1 --save four.h5
run 0 'other size' --data pairs.h5 --model gin --loss-scale 256 \
  --batch-size 5 --epochs 1 --resume four.h5
contains 'other size' err 'train.batch_graphs'

# Every evaluation goes over all 12,000 graphs, and sanitizers make it ten times as long. There
# fewer epochs are evaluated, and of the two models the one trains that reads edges, too.
every=1
[ -z "${HG_SANITIZED:-}" ] || every=3
zinc=${HG_DATA:-}/raw/zinc/ZINC12K_tu.zip
if [ -f "$zinc" ]; then
  "$convert" "$zinc" --split random:0.05/0.02/0.02 -o zinc.h5 >out 2>err ||
    fail 'zinc:' "$(cat err)"
  set -- --task regression --metric mae --batch-size 128 --eval-every $every
  [ -n "${HG_SANITIZED:-}" ] || check zinc zinc.h5 --model gin "$@"
  check 'zinc with edges' zinc.h5 --model gine "$@"
else
  echo 'skipped  zinc: there is no HG_DATA'
fi
[ "$failures" -eq 0 ] && echo 'ok       batches'
exit "$failures"
