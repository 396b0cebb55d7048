#!/bin/sh
# All metrics of a task at the best epoch: usage: metrics.sh HG-TRAIN H5CONVERT DIRECTORY DATASETS
# [CHECKER SCHEMA] (the program of datasets.c; hg_doctor_schema and docs/json-lines.schema.json).
# Each is what --evaluate computes by itself, from the model that was saved. Everything is written
# below DIRECTORY.
set -u
[ $# -ge 4 ] || { echo "at least 4 arguments, not $#"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3 datasets=$4 checker=${5-} schema=${6-}
tool=$train refusal=2
. "$(dirname "$0")/../tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$datasets" . || exit 1
"$convert" --synthetic planted --nodes 300 --classes 4 --features 8 --degree 6 --hubs 1 \
  --hub-degree 40 --scale 1 --quiet -o planted.h5 || exit 1

# value FILE METRIC SET: of the last metrics in the last line, which are those of all runs
value() {
  tail -n 1 "$1" | sed 's/.*"metrics":{//; s/.*"'"$2"'":{\([^}]*\)}.*/\1/' |
    sed 's/.*"'"$3"'":\([^,}]*\).*/\1/'
}

# check NAME METRICS SHOWN DATA OPTIONS...: the metrics are these and no others; of a saved model
# --evaluate has the same. SHOWN are those in the text, beside the one that decides.
check() {
  name=$1 metrics=$2 shown=$3
  shift 3
  run 0 "$name" --data "$@" --device cpu --save-best best.h5 --json run.jsonl --html run.html
  mv out text
  [ -z "$checker" ] || "$checker" "$schema" run.jsonl >fault 2>&1 ||
    fail "$name: not as documented: $(cat fault)"
  found=$(tail -n 1 run.jsonl | sed 's/.*"metrics":{//; s/}},.*/}/' |
    grep -o '"[a-z1-]*":{' | tr -d '":{' | tr '\n' ' ')
  [ "$found" = "$metrics " ] || fail "$name: metrics $found"
  for metric in $metrics; do
    run 0 "$name $metric" --evaluate "$1" --checkpoint best.h5 --metric "$metric" --json one.jsonl
    for set in train val test; do
      told=$(value run.jsonl "$metric" $set)
      alone=$(sed 's/.*"'$set'_metric":\([^,}]*\).*/\1/' one.jsonl)
      [ "$told" = "$alone" ] || fail "$name: $set $metric is $told, --evaluate says $alone"
    done
  done
  found=$(sed -n 's/^  test \([a-z1-]*\) .*/\1/p' text | sed 1d | tr '\n' ' ')
  [ "$found" = "$shown" ] || fail "$name: the text shows $found"
  rows=$(sed -n '/table class="num metrics"/,/<\/table>/p' run.html | grep -c '<tr><td>')
  [ "$rows" -eq $(($(echo "$shown" | wc -w) + 1)) ] || fail "$name: $rows rows on the page"
}

areas='roc-auc average-precision'
check classes 'accuracy micro-f1 macro-f1' 'macro-f1 ' planted.h5 --model gcn --epochs 20
check 'another criterion' 'accuracy micro-f1 macro-f1' 'accuracy ' planted.h5 --model gcn \
  --epochs 20 --metric macro-f1
check 'two classes' "accuracy micro-f1 macro-f1 $areas" "macro-f1 $areas " pairs.h5 --model gin \
  --epochs 8 --batch-size 4 --loss-scale 256
check labels "accuracy micro-f1 macro-f1 $areas" 'accuracy micro-f1 macro-f1 average-precision ' \
  pairs_of_labels.h5 --model gcn --epochs 8 --loss-scale 256
check numbers 'mae rmse' 'rmse ' numbers.h5 --model gcn --epochs 8
run 0 'no test set' --data no_test.h5 --model gcn --epochs 3 --json no_test.jsonl
contains 'no test set' out '^  validation macro-f1 [0-9.]*$'
[ "$(value no_test.jsonl macro-f1 test)" = null ] || fail 'no test set: a value of it'

# Of several runs the last line has means, each run its own values.
run 0 seeds --data planted.h5 --model gcn --epochs 5 --seeds 3 --device cpu --json seeds.jsonl
[ -z "$checker" ] || "$checker" "$schema" seeds.jsonl >fault 2>&1 ||
  fail "seeds: not as documented: $(cat fault)"
grep '"event":"run"' seeds.jsonl | sed 's/.*"macro-f1":{[^}]*"test":\([^,}]*\)}.*/\1/' |
  awk '{ x[NR] = $1; s += $1 } END { m = s / NR; for (k in x) d += (x[k] - m) ^ 2
         printf "%.6f %.6f\n", m, sqrt(d / (NR - 1)) }' >expected
echo "$(value seeds.jsonl macro-f1 test) $(value seeds.jsonl macro-f1 test_std)" |
  awk '{ printf "%.6f %.6f\n", $1, $2 }' >found
cmp -s expected found || fail "seeds: $(cat found), the runs have $(cat expected)"
[ "$(cut -d ' ' -f 2 expected)" != 0.000000 ] || fail 'seeds: all runs are alike'
contains seeds out '^  test macro-f1 *[0-9.]* +- [0-9.]* over 3 seeds$'
[ "$failures" -eq 0 ] && echo 'ok       metrics'
exit $((failures > 0))
