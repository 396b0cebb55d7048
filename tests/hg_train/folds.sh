#!/bin/sh
# Cross-validation with hg-train: usage: folds.sh HG-TRAIN H5CONVERT DIRECTORY DATASETS
# [CHECKER SCHEMA] (the program of datasets.c; hg_doctor_schema and docs/json-lines.schema.json).
# Everything is written below DIRECTORY.
set -u
[ $# -ge 4 ] || { echo "at least 4 arguments, not $#"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3 datasets=$4 checker=${5-} schema=${6-}
tool=$train refusal=2
. "$(dirname "$0")/../tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$datasets" . || exit 1
"$convert" pairs.h5 --split folds:3 --quiet -o folds.h5 || exit 1
"$convert" unsplit_pairs.h5 --split folds:3 --quiet -o only.h5 || exit 1
"$convert" pairs.h5 --split folds:2 --quiet -o two.h5 || exit 1
"$convert" numbers.h5 --split folds:4 --quiet -o numbers4.h5 || exit 1
quick='--model gin --hidden 8 --device cpu --epochs 6'

checked() { # NAME FILE: every line is as documented
  [ -z "$checker" ] || "$checker" "$schema" "$2" 2>fault ||
    fail "$1: not as documented: $(cat fault)"
}
field() { # FILE NAME: a number in its last line
  tail -n 1 "$1" | sed 's/.*"'"$2"'":\([^,}]*\).*/\1/'
}

# Every fold of every seed is a run, seed by seed.
run 0 folds --data folds.h5 $quick --folds --seeds 2 --json two.jsonl
[ ! -s err ] || fail 'folds: something on standard error:' "$(cat err)"
checked folds two.jsonl
[ "$(grep -c '"event":"epoch"' two.jsonl)" -eq 36 ] || fail 'folds: not 36 epochs'
grep '"event":"run"' two.jsonl |
  sed 's/.*"seed":\([0-9]*\),.*"fold":\([0-9]*\)[,}].*/\1\2/' | tr '\n' ' ' >order
[ "$(cat order)" = '00 01 02 10 11 12 ' ] || fail "folds: runs $(cat order)"
contains folds out 'folds  *3: accuracy of the one held out, while the next one validates'
contains folds out 'own epochs  *[0-9.]* % +- [0-9.]* over folds, +- [0-9.]* over 2 seeds'
contains folds out 'one epoch  *[0-9.]* % +- [0-9.]* over folds, +- [0-9.]* over 2 seeds'
contains folds two.jsonl '"folds":{"count":3,"validate":"next","seeds":2,"partial":0'

# The figures follow from the lines: own epochs is the mean of the runs, and the one epoch has the
# best mean.
run 0 'one seed' --data folds.h5 $quick --folds --json one.jsonl
grep '"event":"run"' one.jsonl | sed 's/.*"test_metric":\([^,]*\),.*/\1/' >own
mean=$(awk '{ s += $1 } END { printf "%.6f", s / NR }' own)
found=$(tail -n 1 one.jsonl | sed 's/.*"own_epochs":{"mean":\([^,]*\),.*/\1/')
awk -v a="$mean" -v b="$found" 'BEGIN { exit !(a - b < 2e-6 && b - a < 2e-6) }' ||
  fail "one seed: own epochs $found, but the mean of the runs is $mean"
grep '"event":"epoch"' one.jsonl |
  sed 's/.*"epoch":\([0-9]*\),.*"val_metric":\([^,]*\),"test_metric":\([^,]*\),.*/\1 \2 \3/' |
  awk '{ v[$1] += $2; t[$1] += $3 }
    END { for (e = 1; e <= 6; e++) if (v[e] > v[best] + 1e-9) best = e
          printf "%d %.6f\n", best, t[best] / 3 }' >chosen
read -r epoch value <chosen
contains 'one seed' one.jsonl "\"epochs\":\[$epoch\]"
found=$(tail -n 1 one.jsonl | sed 's/.*"one_epoch":{"mean":\([^,]*\),.*/\1/')
awk -v a="$value" -v b="$found" 'BEGIN { exit !(a - b < 2e-6 && b - a < 2e-6) }' ||
  fail "one seed: one epoch $found, but the curves say $value"
contains 'one seed' out "one epoch .*: all folds at $epoch, the best on average\$"

# A fold by itself is the same run as among all of them.
run 0 'one fold' --data folds.h5 $quick --fold 1 --json single.jsonl
checked 'one fold' single.jsonl
for file in one single; do
  grep '"event":"epoch"' $file.jsonl | grep '"fold":\(1\|null\)' |
    sed 's/"epoch_ms":[^,]*,//; s/"fold":[^,]*,//' >$file.epochs
done
cmp -s one.epochs single.epochs || fail 'one fold: another run than with --folds'
run 0 'fold as splits' --data only.h5 $quick --fold 1
contains 'fold as splits' out 'test accuracy  *[0-9]'

# As in the paper on GIN: the held-out fold validates, and nothing tests. Two folds are enough.
run 0 'held out' --data two.h5 $quick --folds --validate held-out --json held.jsonl
checked 'held out' held.jsonl
contains 'held out' out 'folds  *2: accuracy of the one held out, which also validates'
contains 'held out' out 'one epoch .*the best on average, as in the paper on GIN'
contains 'held out' held.jsonl '"test_metric":null'
contains 'held out' held.jsonl '"validate":"held-out"'
refused 'two folds' 'two.h5: 2 folds, expected at least 3' --data two.h5 $quick --folds

# Numbers, and an error that falls.
run 0 numbers --data numbers4.h5 --model gcn --device cpu --epochs 3 --folds --json numbers.jsonl
checked numbers numbers.jsonl
contains numbers out 'folds  *4: mae of the one held out'

# The model with the best validation metric of all, as a run by itself writes it.
run 0 'the best of all' --data folds.h5 $quick --folds --seeds 2 --save-best best.h5 --json b.jsonl
checked 'the best of all' b.jsonl
value=':\([^,]*\),.*'
best=$(grep '"event":"run"' b.jsonl |
  sed "s/.*\"seed\"$value\"val_metric\"$value\"test_metric\".*\"fold\"$value/\2 \1 \3/" |
  sort -s -k 1,1 -gr | sed -n '1s/^[^ ]* //p')
seed=${best% *} fold=${best#* }
contains 'the best of all' b.jsonl "\"saved_best\":{\"seed\":$seed,\"fold\":$fold,"
contains 'the best of all' out \
  "^  saved  *best.h5: the model of the best epoch of fold $fold of seed $seed, validation acc"
run 0 'the best alone' --data folds.h5 $quick --fold "$fold" --seed "$seed" --save-best alone.h5
cmp -s best.h5 alone.h5 || fail "the best of all: not the model of fold $fold of seed $seed"

refused 'no folds' 'pairs.h5: the dataset has no folds: h5convert FILE --split folds:10' \
  --data pairs.h5 $quick --folds
refused 'folds but no split' 'only.h5: has 3 folds but no training split: train all of them' \
  --data only.h5 $quick
refused 'no such fold' '--fold is 3, expected 0 to 2, the folds of folds.h5' --data folds.h5 \
  $quick --fold 3
refused 'both' '--folds and --fold: expected one of them' --data folds.h5 $quick --fold 1 --folds
refused 'validation without folds' '--validate is for folds' --data folds.h5 $quick --validate next
refused 'one file for many runs' '--save is for one run, but --folds' --data folds.h5 $quick \
  --folds --save never.h5
# The run of fold 0 trains on fold 2; that of fold 1 has nothing to train on.
refused 'a later fold has no labels' 'none of 30 graphs is labelled and in graphs/train_mask' \
  --data last_fold_labelled.h5 $quick --folds
refused 'patience' '--folds compares all folds epoch by epoch' --data folds.h5 $quick --folds \
  --patience 3
[ ! -e never.h5 ] || fail 'one file for many runs: it was written'

# Interrupted: the folds that are done count.
interrupt 'interrupted folds' INT "grep -q '\"fold\":1,' long.jsonl 2>/dev/null" --data folds.h5 \
  --model gin --hidden 8 --epochs 20000 --eval-every 20000 --folds --json long.jsonl
checked 'interrupted folds' long.jsonl
contains 'interrupted folds' out 'folds  *[12] of 3: '
contains 'interrupted folds' out 'interrupted  *in epoch [0-9]* of fold [12], which is left out: '
exit $((failures > 0))
