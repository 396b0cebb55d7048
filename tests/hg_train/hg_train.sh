#!/bin/sh
# The command line of hg-train: usage: hg_train.sh HG-TRAIN H5CONVERT DIRECTORY DATASETS (the
# program of datasets.c). Everything is written below DIRECTORY.
set -u
[ $# -eq 4 ] || { echo "4 arguments, not $#"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3 datasets=$4
tool=$train refusal=2
. "$(dirname "$0")/../tool.sh"
compare=$(cd "$(dirname "$0")/../../tools" && pwd)/compare.awk
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 100 --scale 1 --seed 3 -o data.h5 >/dev/null || exit 1
"$datasets" . || exit 1
# Sanitizers make a step ten times as long. There each model and each precision is trained, but not
# each pair of them with every dataset and option, and a large graph for one epoch only.
precisions='fp32 fp16 fp16-naive' saved='fp32 fp16' large_epochs=3
[ -z "${HG_SANITIZED:-}" ] || precisions=fp16 saved=fp16 large_epochs=1
# every model, as --help lists them
models=$("$train" --help | sed -n 's/^  --model NAME *the model: //p' | tr -d , |
  sed 's/ gine / /') # whose data needs edges with attributes
[ -n "$models" ] || fail 'hg-train --help lists no models'

# A small graph gets smaller hubs, without an option for that.
"$convert" --synthetic planted --nodes 100 -o small.h5 >out 2>err ||
  fail 'a small graph:' "$(cat err)"
"$convert" --inspect small.h5 >out || fail 'a small graph: not inspected'
contains 'a small graph' out 'degree *mean [0-9.]*, max [5-8][0-9] '

run 0 help --help
contains help out 'usage: hg-train'
contains help out 'h5convert'
contains help out '--weight-decay X'
help_is_wrapped
run 0 version --version
contains version out '[0-9]\.[0-9]'

refused 'no arguments' '--data is missing'
refused 'no model' '--model is missing' --data data.h5
refused 'unknown option' 'unknown option "--modle"' --modle gcn
refused 'unexpected word' 'unexpected argument "data.h5"' data.h5
refused 'missing value' '--model needs a value' --data data.h5 --model
refused 'unknown model' 'gcn|gin|' --data data.h5 --model mlp
refused 'edges without attributes' \
  'data.h5: the edges of planted have neither attributes nor labels, which a gine reads' --data \
  data.h5 --model gine
refused 'unknown precision' 'fp16-naive' --data data.h5 --model gcn --precision fp8
refused 'not a number' '--lr' --data data.h5 --model gcn --lr fast
refused 'a number with a rest' '--epochs' --data data.h5 --model gcn --epochs 10x
refused 'too many threads' '1 to 1024' --data data.h5 --model gcn --threads 1025
refused 'out of range' '--dropout' --data data.h5 --model gcn --dropout 1
refused 'empty choice' '--device' --data data.h5 --model gcn --device ''
refused 'empty file name' '--data needs a value, found an empty one: FILE.h5' --data= --model gcn
refused 'empty JSON file name' '--json needs a value, found an empty one: FILE' --data data.h5 \
  --model gcn --json ''
refused 'clipped to 0' '--clip is "0", expected a number from 1e-30' --data data.h5 --model \
  gcn --clip 0
refused 'no file of weights' '--class-weights absent.csv: No such file' --data data.h5 --model gcn \
  --class-weights absent.csv
printf '1, 2\n3\n' >three.csv
refused 'too few weights' '--class-weights three.csv: 3 numbers, expected 4' --data data.h5 \
  --model gcn --class-weights three.csv
printf '1\n2\n-3\n4\n' >negative.csv
refused 'a negative weight' 'negative.csv: number 3 is "-3", expected one from 0' --data data.h5 \
  --model gcn --class-weights negative.csv
refused 'smoothing of labels' '--label-smoothing is an option of --loss cross-entropy, but' \
  --data both.h5 --model gcn --loss bce --label-smoothing 0.1
refused 'another optimiser' '--optimizer is "lion", expected one of adam|adamw|sgd' \
  --data data.h5 --model gcn --optimizer lion
refused 'momentum of adam' '--momentum is an option of --optimizer sgd, but the optimiser is adam' \
  --data data.h5 --model gcn --momentum 0.9
refused 'nesterov of adamw' '--nesterov is an option of --optimizer sgd, but .* is adamw' \
  --data data.h5 --model gcn --optimizer adamw --nesterov
for option in beta1 beta2 eps; do
  refused "$option of sgd" "--$option is an option of --optimizer adam and adamw, but .* is sgd" \
    --data data.h5 --model gcn --optimizer sgd --$option 0.5
done
refused 'nesterov alone' '--nesterov needs a --momentum above 0' --data data.h5 --model gcn \
  --optimizer sgd --nesterov
refused 'all momentum' '--momentum is "1", expected a number from 0 to 0.999999' --data data.h5 \
  --model gcn --optimizer sgd --momentum 1
refused 'schedule without its option' \
  '--lr-step is an option of --schedule step, but the schedule is cosine' --data data.h5 \
  --model gcn --schedule cosine --lr-step 3
refused 'patience of a schedule that has none' 'schedule is constant' --data data.h5 --model gcn \
  --lr-patience 3
refused 'a warm-up as long as the run' '--warmup is 10, expected less than the 10 epochs' \
  --data data.h5 --model gcn --schedule cosine --epochs 10 --warmup 10
refused 'plateau without a validation set' '--schedule plateau needs one' \
  --data empty_validation.h5 --model gcn --schedule plateau
refused 'unproved results are refused' 'refuses what is not proved (layer conv' --data data.h5 \
  --model gin --precision fp16-naive --unproved refuse
refused 'limits are printed in full' 'a number from 1 to 16777216' --data data.h5 --model gcn \
  --loss-scale 0
refused 'no epochs' '--epochs is "0", expected a whole number from 1 to 100000000' --data data.h5 \
  --model gcn --epochs 0
refused 'more epochs in a launch than are remembered' 'from 1 to 64' --data data.h5 --model gcn \
  --together 65
refused 'limits are whole numbers' 'from 1 to 1048576' --data data.h5 --model gcn --hidden 0
refused 'too many seeds' 'from 1 to 100000' --data data.h5 --model gcn --seeds \
  1000000000
refused 'heads of gcn' '--heads is an option of gat gatv2 gt, but' --data data.h5 --heads 4 \
  --model gcn
refused 'attention of gin' '--attention-dropout is an option of gat' --data data.h5 --model gin \
  --attention-dropout 0
refused 'norm of gat' '--norm is an option of gcn' --data data.h5 --model gat --norm both
refused 'lambda of gcn' '--lambda is an option of gin' --data data.h5 --model gcn --lambda -1
refused 'readout of one graph' 'data.h5: is one graph, but --readout' --data data.h5 --model gin \
  --readout sum
refused 'readout layers of one graph' 'data.h5: is one graph, but --readout-layers' --data data.h5 \
  --model gin --readout-layers all
refused 'last layer of many graphs' 'pairs.h5: holds many graphs, but --out-heads' --data pairs.h5 \
  --model gat --out-heads 2
refused 'patience without a validation set' '--patience needs one' --data empty_validation.h5 \
  --model gcn --patience 3
refused 'no columns' 'no_columns.h5: has no features to train on: make it from a source' --data \
  no_columns.h5 --model gin
refused 'no labels' 'no_labels.h5: has no labels to train on: write nodes/label' \
  --data no_labels.h5 --model gcn
refused 'no classes' 'no_classes.h5: num_classes is 0, expected at least 1' --data no_classes.h5 \
  --model gcn
refused 'no node is labelled' 'unlabelled.h5: none of 20 nodes is labelled' --data unlabelled.h5 \
  --model gcn
refused 'no node to train on' \
  'nothing_to_learn.h5: none of 20 nodes is labelled and in nodes/train_mask' \
  --data nothing_to_learn.h5 --model gcn
refused 'no split of many graphs' 'or write graphs/train_mask' --data unsplit_pairs.h5 --model gin
refused 'features beyond fp16' \
  'large_features.h5: features: row 3 (node 3), column 2 is 1e+30, beyond f16.s 65504' \
  --data large_features.h5 --model gcn --row-normalize off
# More classes than labelled nodes are usually a mistake, so there is a warning.
run 0 'many classes' --data many_classes.h5 --model gcn --epochs 2
contains 'many classes' err \
  'many_classes.h5: num_classes is 1000, more than the 20 labelled nodes: the model has an output'
[ "$(wc -l <err)" -eq 1 ] || fail 'many classes: not one line:' "$(cat err)"
refused 'value for a flag' '--help takes no value, found "yes"' --help=yes
refused 'no such file' 'absent.h5' --data absent.h5 --model gcn --json none.jsonl
[ ! -e none.jsonl ] || fail 'no such file: a JSON file was left behind'
echo 'not a dataset' >text.h5
refused 'not HDF5' 'text.h5' --data text.h5 --model gcn
refused 'JSON into a missing directory' 'missing/x.jsonl' --data data.h5 --model gcn --json \
  missing/x.jsonl

# The table of the quickstart: its verdicts. A difference that rounds to zero has no sign.
verdict() { # ACCURACY of fp16 beside 0.5 of fp32
  printf '{"event":"summary","precision":"%s","test_accuracy_mean":%s,"loss_finite":true}\n' fp32 \
    0.5 fp16 "$1" | awk -f "$compare" >out
}
verdict 0.4996
contains 'less by a rounding' out 'fp16 .* as good as fp32 (0.0 points)'
verdict 0.502
contains 'more' out 'fp16 .* as good as fp32 (+0.2 points)'
verdict 0.496
contains 'less' out 'fp16 .* as good as fp32 (-0.4 points)'
verdict 0.48
contains 'much less' out 'fp16 .* 2.0 points below fp32'
verdict 0.2
contains 'lost' out 'fp16 .* BROKEN: 30.0 points lost'

for model in $models; do
  for precision in fp32 fp16 fp16-naive; do
    run 0 "$model $precision" --data data.h5 --model $model --precision $precision --device cpu \
      --epochs 12 --seed 4 --json -
    mv out json
    [ "$(wc -l <json)" -eq 13 ] || fail "$model $precision: $(wc -l <json) JSON lines for 12 epochs"
    [ "$(grep -c '^{.*}$' json)" -eq 13 ] || fail "$model $precision: a line is not an object"
    tail -n 1 json >last
    contains "$model $precision" last '^{"event":"summary"'
    for field in model:\"$model\" precision:\"$precision\" device:\"cpu\" test_accuracy_mean: \
      test_accuracy_std: epoch_ms_median: peak_bytes: state_bytes: \
      steps_skipped: loss_scale_final: loss_finite: 'seeds:\[{"seed":4,'; do
      contains "$model $precision" last "\"${field%%:*}\":${field#*:}"
    done
    # The JSON is on standard output, so the summary is on standard error.
    contains "$model $precision" err 'test accuracy'
  done
done

# Every number of the JSON lines is a number or null, and the summary says what is missing.
complete() { # NAME MISSING ARGS...: for $epochs epochs
  name=$1 missing=$2
  shift 2
  run 0 "$name" --device cpu --epochs "$epochs" --json odd.jsonl "$@"
  if grep -i -q -e 'nan\|:-\{0,1\}inf' odd.jsonl; then fail "$name: not JSON:" "$(cat odd.jsonl)"; \
    fi
  if grep -i -q -e 'nan ' out; then fail "$name: nan in the summary:" "$(cat out)"; fi
  contains "$name" out "$missing"
}
epochs=3
for dataset in empty_validation no_validation; do
  for model in $models; do
    complete "$dataset $model" 'best epoch *the last, 3: there is no validation set' --data \
      $dataset.h5 --model $model
    contains "$dataset $model" odd.jsonl '"val_accuracy":null'
  done
done
complete 'no test set' 'there is no test set' --data no_test.h5 --model gcn --seeds 2
contains 'no test set' odd.jsonl '"test_accuracy_mean":null,"test_accuracy_std":null'

# The smallest graphs, those with one class or one hub, and many graphs.
for dataset in one_node one_class star pairs; do
  [ $dataset != star ] || epochs=$large_epochs
  for model in $models; do
    for precision in $precisions; do
      complete "$dataset $model $precision" 'final loss' --data $dataset.h5 --model $model \
        --precision $precision --hidden 8
    done
  done
  epochs=3
done

# Real targets and several labels: what is learnt follows from the file and the options.
learns() { # NAME LOSS METRIC OUTPUTS ARGS...
  name=$1 loss=$2 metric=$3 outputs=$4
  shift 4
  complete "$name" "$outputs" --hidden 8 "$@"
  contains "$name" out "test $metric  *[0-9]"
  contains "$name" out "best epoch  *[1-3] of 3, validation $metric [0-9]"
  contains "$name" odd.jsonl "\"loss\":\"$loss\",\"metric\":\"$metric\""
  contains "$name" odd.jsonl '"test_metric_mean":[0-9]'
}
for model in $models; do
  learns "numbers $model" mae mae ' 2 targets' --data numbers.h5 --model $model
done
contains 'no accuracy of numbers' odd.jsonl '"test_accuracy_mean":null'
learns 'squares' mse rmse ' 2 targets' --data numbers.h5 --model gcn --loss mse
learns 'raw numbers' mse mae ' 2 targets' --data numbers.h5 --model gcn --loss mse --metric mae \
  --raw-targets --precision fp32
contains 'raw numbers' out 'final loss  *[0-9]\{7,8\}\.'
learns 'labels' bce roc-auc ' 2 labels each, 30 graphs' --data pairs_of_labels.h5 --model gin
learns 'F1 of labels' bce macro-f1 ' 2 labels each' --data pairs_of_labels.h5 --model gin \
  --task labels --metric macro-f1
learns 'labels as numbers' mae mae ' 2 targets' --data pairs_of_labels.h5 --model gin \
  --task regression --seeds 1
learns 'F1 of classes' cross-entropy micro-f1 ' 2 classes' --data pairs.h5 --model gin \
  --metric micro-f1
complete 'classes before targets' ' 2 classes' --data both.h5 --model gcn
complete 'targets if asked' ' 2 labels each' --data both.h5 --model gcn --loss bce --patience 2
contains 'no test set of labels' out 'test roc-auc  *none: there is no test set'
# What a run learns decides whether a split has something, not what else the file holds.
complete 'targets without labels' ' 2 targets' --data targets_to_learn.h5 --model gcn \
  --task regression
refused 'no labels to learn' 'targets_to_learn.h5: has no label in its training set' \
  --data targets_to_learn.h5 --model gcn
refused 'no label validates' '--patience needs one' --data targets_to_validate.h5 --model gcn \
  --patience 2
complete 'targets validate' ' 2 targets' --data targets_to_validate.h5 --model gcn \
  --task regression --patience 2
run 0 'state of numbers' --data numbers.h5 --model gcn --epochs 2 --save numbers.state
run 0 'numbers go on' --data numbers.h5 --model gcn --epochs 2 --resume numbers.state
[ ! -s err ] || fail 'numbers go on: differs:' "$(cat err)"
run 0 'numbers go on as squares' --data numbers.h5 --model gcn --epochs 2 --resume numbers.state \
  --loss mse
contains 'numbers go on as squares' err 'train.loss'
refused 'classes of numbers' \
  'numbers.h5: has targets but no labels, which cross-entropy learns' --data numbers.h5 \
  --model gcn --task classes
refused 'numbers of classes' 'data.h5: has no targets, which bce, mse and mae learn' \
  --data data.h5 --model gcn --loss mae
refused 'labels of numbers' 'numbers.h5: has targets that are neither 0 nor 1, which bce needs' \
  --data numbers.h5 --model gcn --task labels
refused 'loss of another task' '--loss mse is one of --task regression, but --task is labels' \
  --data numbers.h5 --model gcn --task labels --loss mse
refused 'error of classes' 'metric mae is not one of classes' --data data.h5 --model gcn \
  --metric mae
refused 'area of four classes' 'metric roc-auc is not one of classes (4 columns)' --data data.h5 \
  --model gcn --metric roc-auc

# Where the output is no terminal: no progress, the summary on standard output, JSON in a file.
run 0 'two seeds' --data=data.h5 --model=gcn --epochs=20 --seeds=2 --json=two.jsonl \
  --no-self-loops --norm right --sparse-features on
[ ! -s err ] || fail 'piped: something on standard error'
contains 'two seeds' out 'over 2 seeds'
[ "$(grep -c '"event":"epoch"' two.jsonl)" -eq 40 ] || fail 'two seeds: not 40 epochs in the file'
contains 'two seeds' two.jsonl '"seed":1,"epoch":20,'
run 0 'loss scale' --data data.h5 --model gcn --epochs 2 --loss-scale 8388608
contains 'loss scale' out 'loss scale  *\(8388608\|4194304\|2097152\) at the end'
for clip in 1e-3 1e30; do
  run 0 clip --data data.h5 --model gin --epochs 3 --clip $clip --json -
  grep epoch out | sed 's/"epoch_ms[a-z_]*":[^,]*,//' >clip$clip
done
if cmp -s clip1e-3 clip1e30; then fail 'clip: changes nothing'; fi
run 0 promote --data data.h5 --model gin --epochs 1 --unproved promote --print-plan
contains promote out promoted
# A run that is refused is explained nevertheless: first the table, then the error.
run 2 'refusal explained' --data data.h5 --model gin --precision fp16-naive --unproved refuse \
  --explain=full
contains 'refusal explained' out \
  'refused are the guarded tensors, except those guarded by the weights'
contains 'refusal explained' out 'spmm.* measured .*guard: the step.s finite check'
contains 'refusal explained' out '^forward: '
contains 'refusal explained' err 'refuses what is not proved (layer conv'
[ "$(wc -l <err)" -eq 1 ] || fail 'refusal explained: not one line:' "$(cat err)"
run 0 explain --data data.h5 --model gat --epochs 1 --explain
sed -n 1p out >line
contains explain line '^[0-9]* of [0-9]* fp16 tensors can never overflow (proved); '
contains explain line '; [0-9]* are watched in every step (guarded)\.$'
sed -n 2p out >line
contains explain line '^Closest to overflow: conv1/head_dot may reach [0-9.e+]* at worst; '
sed -n 3p out >line
contains explain line '^If one overflows, the step is skipped, and it is stored scaled down or in '
sed -n '1,/^headroom: /p' out >table
[ "$(wc -L <table)" -le 100 ] || fail "explain: a line of $(wc -L <table) columns"
# Headroom ascends within the forward pass, and within the gradients.
for part in tensor gradient; do
  awk -v part=$part '$1 == "headroom" && NF > 5 { on = $6 == part; next }
    !NF { on = 0 } on { print $1 }' out >room
  [ "$(wc -l <room)" -gt 5 ] || fail "explain: $(wc -l <room) rows of $part"
  sort -g room | cmp -s - room || fail "explain: rows of $part are not sorted by headroom"
done
if grep -n -w -e spmm -e narrow out | grep -v /spmm; then fail 'explain: not plain words'; fi
run 0 'explain in full' --data data.h5 --model gat --epochs 1 --explain=full
contains 'explain in full' out 'guard: compared when it is stored'
contains 'explain in full' out '16 columns x |X|'
run 0 'explain fp32' --data data.h5 --model gcn --epochs 1 --precision fp32 --explain
contains 'explain fp32' out '^No tensor is stored in fp16'
refused 'explain what' '--explain is "all", expected one of full' \
  --data data.h5 --model gcn --explain=all
run 0 explain --data data.h5 --model gat --epochs 1 --explain
contains explain out 'casts  *0 between'
# Weights that have become larger than their assumed bounds: the table of a resumed run has the
# bounds of the weights that it resumes with.
run 0 'bounds of new weights' --data data.h5 --model gcn --epochs 40 --lr 0.5 --explain=full \
  --save grown.h5
grep '  conv0.weight  ' out >fresh
run 0 'bounds of resumed weights' --data data.h5 --model gcn --epochs 1 --lr 0.5 --explain=full \
  --resume grown.h5
contains 'bounds of resumed weights' out '^resumed from grown.h5: '
grep '  conv0.weight  ' out >resumed
[ -s fresh ] && [ -s resumed ] ||
  fail 'bounds of resumed weights: the table has no row of conv0.weight'
if cmp -s fresh resumed; then fail 'bounds of resumed weights: those of new weights'; fi
# The summary says how the features are stored, and how they are used.
# A quarter of the features is stored, which is too much for sparse products.
run 0 'features' --data sparse.h5 --model gcn --epochs 1
contains 'features' out '4 features (stored sparse, used dense)'
run 0 'features' --data sparse.h5 --model gcn --epochs 1 --sparse-features on
contains 'features' out '4 features (sparse)'
run 0 'features' --data data.h5 --model gcn --epochs 1 --sparse-features on
contains 'features' out '16 features (stored dense, used sparse)'
run 0 'features' --data data.h5 --model gcn --epochs 1
contains 'features' out '16 features (dense)'
refused 'a doctor and several epochs in a launch' '--doctor checks every step' --data data.h5 \
  --model gcn --doctor --together 4
run 0 observe --data data.h5 --model gat --epochs 3 --observe 1 --json observed.jsonl
contains observe out \
  'headroom *[0-9.]* bits at least: conv.*; measured in the forward pass of every step'
run 0 'observe by default' --data data.h5 --model gat --epochs 3
contains 'observe by default' out 'of one step in 16 (--observe 1: every step)'
contains observe observed.jsonl '"headroom":[0-9.]*,"headroom_at":"conv'
run 0 unobserved --data data.h5 --model gat --epochs 3 --observe 0 --json unobserved.jsonl
contains unobserved unobserved.jsonl '"headroom":null,"headroom_at":null'
for name in observed unobserved; do
  grep '"epoch",' $name.jsonl | sed 's/"epoch_ms":[^,]*,//' >$name
done
cmp observed unobserved || fail 'observe: changes the run'
run 0 plan --data data.h5 --model gat --epochs 1 --print-plan
contains plan out attention
run 0 patience --data data.h5 --model gcn --epochs 3000 --patience 4 --lr 0.5 --json patience.jsonl
[ "$(wc -l <patience.jsonl)" -lt 3001 ] || fail 'patience: ran to the end'

# Weights of classes, and a resumed run that knows its own.
printf '1\n2\n3\n4\n' >weights.csv
run 0 weighted --data data.h5 --model gcn --epochs 3 --class-weights weights.csv \
  --label-smoothing 0.1 --save weighted.ck
run 0 balanced --data data.h5 --model gcn --epochs 3 --class-weights balanced --resume weighted.ck
contains balanced err 'the class weights differ from those of'
run 0 'balanced labels' --data both.h5 --model gcn --loss bce --epochs 3 --class-weights balanced

# Schedules: the rates of the epochs, and a run that goes on as it would have.
run 0 step --data data.h5 --model gcn --epochs 7 --lr 0.02 --schedule step --lr-step 3 \
  --json step.jsonl
rates=$(grep '"epoch",' step.jsonl | sed 's/.*"lr":\([^,]*\),.*/\1/' | tr '\n' ' ')
[ "$rates" = '0.02 0.02 0.02 0.01 0.01 0.01 0.005 ' ] || fail "schedule: rates $rates"
for epochs in 5 7; do
  part=$([ $epochs = 5 ] || echo --resume part.ck)
  run 0 part --data data.h5 --model gcn --epochs $epochs --schedule plateau --lr-patience 0 $part \
    --save part.ck
done
run 0 whole --data data.h5 --model gcn --epochs 12 --schedule plateau --lr-patience 0 \
  --save whole.ck
cmp whole.ck part.ck || fail 'plateau: a resumed run differs'
run 0 other --data data.h5 --model gcn --epochs 3 --schedule step --resume part.ck
contains other err 'schedule.kind is plateau in .*, the run has step'

# Optimisers: each takes its own options, is in the settings, and goes on as it would have.
optimizers='adam --beta1 0.8 --eps 1e-6|adamw --beta2 0.99 --weight-decay 0.01|sgd --lr 0.3
sgd --momentum 0.9 --lr 0.05|sgd --momentum 0.5 --nesterov --lr 0.05'
echo "$optimizers" | tr '|' '\n' >optimizers
while read -r optimizer; do
  for epochs in 5 7; do
    part=$([ $epochs = 5 ] || echo --resume part.ck)
    run 0 part --data data.h5 --model gcn --epochs $epochs --optimizer $optimizer $part \
      --save part.ck
    [ ! -s err ] || fail "$optimizer: a part says $(cat err)"
  done
  run 0 whole --data data.h5 --model gcn --epochs 12 --optimizer $optimizer --save whole.ck \
    --json whole.jsonl
  cmp whole.ck part.ck || fail "$optimizer: a resumed run differs"
  contains "$optimizer" whole.jsonl "\"optim.kind\":\"${optimizer%% *}\""
  grep '"event":"epoch"' whole.jsonl | sed 's/.*"loss":\([^,]*\),.*/\1/' | tr '\n' ' ' >>losses
  echo >>losses
done <optimizers
[ "$(sort -u losses | wc -l)" -eq "$(wc -l <optimizers)" ] || fail 'optimisers: the same losses'
contains 'nesterov' whole.jsonl '"optim.nesterov":"1"'
contains 'momentum' whole.jsonl '"optim.momentum":"0.5"'
contains 'config' whole.jsonl '"config":{.*"optimizer":"sgd","momentum":0.5,"nesterov":true'
run 0 'the same again' --config whole.jsonl --save again.ck --json again.jsonl
cmp whole.ck again.ck || fail 'optimiser: another run from its own settings'
run 0 adam --data data.h5 --model gcn --epochs 2 --save adam.ck
run 0 'another beta' --data data.h5 --model gcn --epochs 2 --beta1 0.8 --resume adam.ck
contains 'another beta' err 'optim.beta1'
run 0 'adamw after adam' --data data.h5 --model gcn --epochs 2 --optimizer adamw --resume adam.ck
contains 'adamw after adam' err 'optim.kind is adam in .*, the run has adamw'
refused 'sgd after adam' 'has 2 moments' --data data.h5 --model gcn --epochs 2 --optimizer sgd \
  --resume adam.ck

# Threads without work soon sleep, unless the user says otherwise. libgomp prints what it has read
# from the environment each time it is loaded; the last time is that of the process that trains.
# Another OpenMP prints no such line.
waits() { # VARIABLE=VALUE...
  (unset OMP_WAIT_POLICY GOMP_SPINCOUNT KMP_BLOCKTIME; env OMP_DISPLAY_ENV=verbose "$@" "$train" \
    --version >out 2>shown)
  grep GOMP_SPINCOUNT shown | tail -n 1
}
waits X=1 >waited
if [ -s waited ]; then
  contains 'waiting by default' waited "'300'"
  waits OMP_WAIT_POLICY=active >waited
  contains 'waiting as the user says' waited "'30000000000'"
fi

# The threads of the team ask Linux for short slices of a core, if the kernel has them.
if grep -q se.slice /proc/self/sched 2>/dev/null && uname -r |
  awk -F. '{ exit !($1 > 6 || ($1 == 6 && $2 >= 12)) }'; then
  rm -f slices.jsonl
  "$train" --data data.h5 --model gcn --device cpu --threads 2 --hidden 512 --epochs 10000000 \
    --json slices.jsonl >out 2>err &
  child=$!
  for _ in $(seq 100); do
    [ -s slices.jsonl ] && break
    sleep 0.1
  done
  cat /proc/$child/task/*/sched | grep se.slice >slices
  kill $child
  wait $child
  # These are the two of the team. Threads of a GPU driver keep their own slices.
  short=$(grep -c ' 1000000$' slices)
  [ "$short" -ge 2 ] || fail "slices: $short threads have short ones, expected 2:" "$(cat slices)"
fi

# Two runs with one seed give the same numbers.
for k in 1 2; do
  run 0 repeat --data data.h5 --model gat --epochs 15 --seed 9 --json -
  grep epoch out | sed 's/"epoch_ms[a-z_]*":[^,]*,//' >repeat$k
done
cmp repeat1 repeat2 || fail 'repeat: two runs differ'

# The number of epochs in a launch changes no result.
for together in 1 4 16; do
  run 0 together --data data.h5 --model gat --epochs 31 --eval-every 10 --device cpu --together \
    $together --json -
  grep '"event":"epoch"' out | sed 's/"epoch_ms":[^,]*,//' >together$together
  contains together err 'queued call by call'
done
contains together err 'up to 16 without a wait'
contains together out '"captured":false,"epochs_together":16'
cmp together1 together4 && cmp together1 together16 || fail 'together: runs differ'

# 24 epochs give the same as 12, a checkpoint, and 12 more. Settings that differ are reported, and a
# checkpoint that does not fit is refused: those that follow are of the last model, gat.
for model in $models gat; do
  for precision in $saved; do
    options="--data data.h5 --model $model --precision $precision --device cpu --seed 5"
    options="$options --eval-every 4"
    run 0 'whole' $options --epochs 24 --json - --save whole.h5
    grep '"event":"epoch"' out | tail -n 12 |
      sed 's/"epoch":[0-9]*,//; s/"epoch_ms":[^,]*,//' >whole
    run 0 'first half' $options --epochs 12 --save half.h5
    run 0 'second half' $options --epochs 12 --resume half.h5 --save half.h5 --json -
    grep '"event":"epoch"' out | sed 's/"epoch":[0-9]*,//; s/"epoch_ms":[^,]*,//' >resumed
    cmp whole resumed || fail "resume $model $precision: other epochs"
    cmp whole.h5 half.h5 || fail "resume $model $precision: another checkpoint"
  done
done
[ -z "$(find . -name '*.tmp')" ] || fail 'save: a temporary file was left behind'
# Resuming with features that were prepared in another way is reported.
rows='--data data.h5 --model gcn --device cpu --epochs 2'
run 0 'rows' $rows --row-normalize off --sparse-features off --save rows.h5
contains 'rows' out '^features: rows as stored: --row-normalize off$'
run 0 'rows again' $rows --row-normalize off --sparse-features off --resume rows.h5
[ ! -s err ] || fail 'rows again: something differs:' "$(cat err)"
run 0 'other rows' $rows --row-normalize on --sparse-features off --resume rows.h5
contains 'other rows' err \
  'data.features_note is rows as stored in rows.h5, the run has rows divided'
contains 'other rows' out '^features: rows divided by their sums: --row-normalize on$'
run 0 'other storage' $rows --row-normalize off --sparse-features on --resume rows.h5
contains 'other storage' err 'data.features_sparse is 0 in rows.h5, the run has 1'
# A result that is rescaled because it overflowed once is rescaled in the resumed run, too, and the
# summary says so.
"$convert" --synthetic planted --nodes 4000 --classes 4 --features 8 --degree 6 --hubs 1 \
  --hub-degree 3500 --scale 32 --seed 1 --features-dtype f16 -o hub.h5 >/dev/null
hub='--data hub.h5 --model gin --dropout 0 --device cpu'
run 0 'guards' $hub --epochs 9 --explain --save whole.h5
contains 'guards' err \
  'reached [0-9]*, more than f16 holds; the step was skipped'
contains 'guards' err 'it is stored x 2^-[0-9]* from now on'
contains 'guards' out 'overflows *in the forward pass of 2 steps, which were skipped$'
contains 'guards' out 'guards *2 overflowed; at the end 2 results stored x 2^-k, 0 in fp32'
run 3 'one guard' $hub --epochs 1 --save first.h5
contains 'one guard' out 'NOTHING LEARNT  every step was skipped$'
contains 'one guard' out 'overflows *in the forward pass of 1 step, which was skipped$'
contains 'one guard' out 'guards *1 overflowed; at the end 1 result stored x 2^-k, 0 in fp32'
run 0 'guards, resumed between the overflows' $hub --epochs 8 --resume first.h5 --save second.h5
contains 'guards, resumed between the overflows' out \
  'guards *1 overflowed; at the end 2 results stored x 2^-k, 0 in fp32'
cmp whole.h5 second.h5 || fail 'guards, resumed between the overflows: another checkpoint'
run 0 'guards, resumed after the overflows' $hub --epochs 1 --resume second.h5
contains 'guards, resumed after the overflows' out \
  'guards *0 overflowed; at the end 2 results stored x 2^-k, 0 in fp32'
[ ! -s err ] || fail 'guards, resumed after the overflows:' "$(cat err)"
# Runs that end without having learnt anything.
run 3 'loss is not a number' --data hub.h5 --model gcn --norm right --no-self-loops \
  --precision fp16-naive \
  --epochs 6 --json -
contains 'loss is not a number' err 'LOSS  *not a number: hg-doctor'
contains 'loss is not a number' out '"learnt":false'
still='--data data.h5 --model gcn --dropout 0 --lr 0 --weight-decay 0'
run 3 'nothing changes' $still --epochs 40 --json -
contains 'nothing changes' err 'LEARNT  no loss of 40 steps is below the first, [0-9.]*: hg-doctor'
contains 'nothing changes' out '"learnt":false'
run 3 'nothing changes in two runs' $still --epochs 40 --seeds 2
contains 'nothing changes in two runs' out \
  'NOTHING LEARNT  in 2 of 2 runs; the last of them: no loss'
run 0 'too short for a verdict' $still --epochs 15 --json - --save still.h5
contains 'too short for a verdict' out '"learnt":true'
run 0 'resumed: the first loss is not that of new weights' $still --epochs 40 --resume still.h5
# --steps and --epochs are the same.
for name in epochs steps; do
  run 0 $name --data data.h5 --model gcn --$name 7 --json -
  grep '"event":"epoch"' out | sed 's/"epoch_ms":[^,]*,//' >by_$name
done
[ "$(wc -l <by_steps)" -eq 7 ] && cmp by_epochs by_steps || fail 'steps: not the same as epochs'
refused 'two names of one number' '--steps and --epochs mean the same' \
  --data data.h5 --model gcn --epochs 3 --steps 3
# Where both streams go to one file, a message never begins in the middle of a line.
"$train" $hub --epochs 2 --explain >both 2>&1
[ $? -eq 3 ] || fail 'both streams in one file: not exit code 3, and both steps were skipped'
contains 'both streams in one file' both '^hg-train: train: conv0'
run 0 'another seed' --data data.h5 --model gat --epochs 1 --resume half.h5 --seed 6 --device cpu
contains 'another seed' err 'seed is 5 in half.h5, the run has 6'
run 0 'another precision' --data data.h5 --model gat --precision fp32 --epochs 1 --resume half.h5 \
  --seed 5 --device cpu
contains 'another precision' err 'policy.name is fp16 in half.h5, the run has fp32'
for setting in 'gcn --norm right|model.norm is both in norm.h5, the run has right' \
  'gcn --unproved promote|policy.unproved is guard in norm.h5, the run has promote' \
  'gcn --precision fp16-naive|policy.name is fp16 in norm.h5, the run has fp16-naive'; do
  run 0 'to differ from' --data data.h5 --model gcn --epochs 1 --device cpu --save norm.h5
  "$train" --data data.h5 --model ${setting%%|*} --epochs 1 --device cpu --resume norm.h5 \
    >out 2>err
  contains 'a setting by its name' err "${setting#*|}"
done
refused 'another width' 'conv0.weight is \[16, 64\] in half.h5, the model has \[16, 16\]' --data \
  data.h5 --model gat --hidden 2 --resume half.h5
refused 'another model' 'it is of a gat, the run trains a gcn' --data data.h5 --model gcn --resume \
  half.h5
refused 'no checkpoint' 'absent.h5: No such file' --data data.h5 --model gcn --resume absent.h5
refused 'a dataset as a checkpoint' \
  'data.h5: /: attribute format is halfgraph, expected halfgraph-checkpoint' --data data.h5 \
  --model gcn --resume data.h5
refused 'a checkpoint as a dataset' \
  'half.h5: /: attribute format is halfgraph-checkpoint, expected halfgraph' --data half.h5 \
  --model gcn
refused 'many seeds in one file' '--save is for one run, but --seeds is 3' --data data.h5 \
  --model gcn --seeds 3 --save many.h5
refused 'many seeds from one file' '--resume is for one run, but --seeds is 3' --data \
  data.h5 --model gcn --seeds 3 --resume half.h5
refused 'a checkpoint on standard output' '--save is "-", expected the name of a file' \
  --data data.h5 --model gcn --save -
refused 'save over the dataset' '--save ./data.h5 is the dataset itself' --data data.h5 --model \
  gcn --save ./data.h5
refused 'save into a missing directory' 'missing/cp.h5: cannot be written: No such file' --data \
  data.h5 --model gcn --save missing/cp.h5
echo 'an older report' >older.jsonl
refused 'an older report' 'half.h5 has conv' --data data.h5 --model gcn --resume half.h5 --json \
  older.jsonl
refused 'no report' 'half.h5 has conv' --data data.h5 --model gcn --resume half.h5 --json none.jsonl
[ "$(cat older.jsonl)" = 'an older report' ] ||
  fail 'an older report: emptied by a run that did not begin'
[ ! -e none.jsonl ] || fail 'no report: an empty one was left behind'
run 0 'an older report, replaced' --data data.h5 --model gcn --epochs 1 --json older.jsonl
[ "$(wc -l <older.jsonl)" -eq 2 ] || fail 'an older report: not replaced'
refused 'JSON over the checkpoint' '--json half.h5 is the checkpoint to begin from' --data data.h5 \
  --model gat --resume half.h5 --json half.h5
refused 'JSON where the checkpoint goes' '--json new.h5 is also the file of --save' --data data.h5 \
  --model gat --save new.h5 --json new.h5
mkdir folder.h5
ln -s . here
refused 'JSON where the checkpoint goes, another name' \
  '--json here/new.h5 is also the file of --save' --data data.h5 --model gat --save ./new.h5 \
  --json here/new.h5
[ ! -e new.h5 ] || fail 'JSON where the checkpoint goes: it was made'
refused 'save over a folder' 'folder.h5: cannot be written: it exists and is not a regular file' \
  --data data.h5 --model gcn --save folder.h5
refused 'save over a link' 'here: cannot be written: it exists and is not a regular file' --data \
  data.h5 --model gcn --save here
if [ "$(id -u)" -ne 0 ]; then # root may write everywhere
  mkdir -m 500 closed
  refused 'save into a closed folder' 'closed/cp.h5: cannot be written: Permission denied' --data \
    data.h5 --model gcn --save closed/cp.h5
  chmod 700 closed
fi
# The disk is full when the training is over: the summary is printed, and the old checkpoint stays.
cp half.h5 kept.h5
(
  ulimit -f 4
  "$train" --data data.h5 --model gcn --epochs 2 --save kept.h5
) >out 2>err </dev/null
[ $? -eq 1 ] || fail 'no room for the checkpoint: not exit code 1'
contains 'no room for the checkpoint' err 'kept.h5: cannot be written: File too large'
contains 'no room for the checkpoint' out 'test accuracy'
cmp half.h5 kept.h5 || fail 'no room for the checkpoint: the old one is gone'
[ -z "$(find . -name '*.tmp')" ] || fail 'save: a temporary file was left behind'

# On a terminal the line of progress is overwritten, so it must not be longer than the terminal.
if script -qec true /dev/null >/dev/null 2>&1; then
  for columns in 25 60 200; do
    script -qec "stty cols $columns; '$train' --data data.h5 --model gcn --epochs 40 --seeds 2" \
      /dev/null </dev/null | tr '\r' '\n' | sed 's/.\[K$//' >shown
    contains "terminal of $columns" shown 'epoch 40/40'
    widest=$(grep 'epoch [0-9]*/40' shown |
      awk '{ if (length($0) > most) most = length($0) } END { print most }')
    [ "$widest" -lt $columns ] || fail "terminal of $columns: too long a line"
  done
  contains 'wide terminal' shown 'run 2/2  epoch 40/40  ETA 0 s  loss .*skipped 0  scale'
fi

# Ctrl-C ends the run with the summary so far and exit code 130.
interrupt interrupt INT '[ -s long.jsonl ]' --data data.h5 --model gcn --epochs 10000000 --json \
  long.jsonl --save long.h5
tail -n 1 long.jsonl >last
contains interrupt last '"event":"summary"'
contains interrupt last '"interrupted":true'
done=$(sed -n 's/^  interrupted  *after epoch \([0-9]*\) of 10000000.*/\1/p' out)
[ "$done" = "$(grep -c '"event":"epoch"' long.jsonl)" ] || fail "interrupt: after epoch $done?"
contains interrupt out "saved  *long.h5: the state after epoch $done\$"
contains interrupt out "to continue .*--resume long.h5 --epochs $((10000000 - done))\$"
contains interrupt last '"saved":true'
interrupt 'interrupted seeds' TERM "grep -q '\"seed\":1,\"epoch\":1,' seeds.jsonl 2>/dev/null" \
  --data data.h5 --model gcn --epochs 200 --seeds 1000 --json seeds.jsonl
# A fast device may be between two seeds.
contains 'interrupted seeds' out \
  'interrupted  *[ia].* epoch [0-9]* of .*seed [0-9]*.*: the figures are of [0-9]* of 1000 seeds'
run 0 'resume after an interrupt' --data data.h5 --model gcn --epochs 1 --resume long.h5
[ ! -s err ] || fail 'resume after an interrupt: something differs:' "$(cat err)"

# Output that is lost is a failure, which is reported once.
lost_output() { # NAME ARGS...
  name=$1
  shift
  "$train" "$@" >&- 2>err </dev/null
  [ $? -eq 1 ] || fail "$name: closed standard output: not exit code 1"
  contains "$name" err 'cannot write to standard output'
  [ "$(wc -l <err)" -eq 1 ] || { fail "$name: not one line:"; cat err; }
  [ -c /dev/full ] || return
  "$train" "$@" >/dev/full 2>err </dev/null
  [ $? -eq 1 ] || fail "$name: full standard output: not exit code 1"
  contains "$name" err 'cannot write to standard output'
}
# The help is longer than a buffer, so at its end the reason of the failure is not known any more.
lost_output help --help
lost_output version --version
[ ! -c /dev/full ] || contains version err 'cannot write to standard output: '
lost_output summary --data data.h5 --model gcn --epochs 2

# A full disk is an error. It must not just give a short file.
if [ -c /dev/full ]; then
  "$train" --data data.h5 --model gcn --epochs 100000000 --json - >/dev/full 2>err </dev/null
  [ $? -eq 1 ] || fail 'JSON to a full standard output: not exit code 1'
  contains 'JSON to a full standard output' err 'cannot write to standard output'
  run 1 'full disk' --data data.h5 --model gcn --epochs 3 --json /dev/full
  contains 'full disk' err '/dev/full: cannot be written: '
fi
# Until the disk is full only whole lines are written, to a file and to a standard output that is a
# file with older lines.
(ulimit -f 4 && exec "$train" --data data.h5 --model gcn --epochs 100 --json cut.jsonl >out 2>err)
[ $? -eq 1 ] || fail 'limit of a file: not exit code 1'
contains 'limit of a file' err 'cut.jsonl: cannot be written: File too large'
echo '{"older":1}' >older.jsonl
(ulimit -f 4 && exec "$train" --data data.h5 --model gcn --epochs 100 --json - >>older.jsonl 2>err)
[ $? -eq 1 ] || fail 'limit of standard output: not exit code 1'
contains 'limit of standard output' err 'cannot write to standard output'
contains 'limit of standard output' older.jsonl '"older"'
for name in cut older; do
  [ "$(wc -l <$name.jsonl)" -gt 2 ] || fail "limit of a file: no lines in $name.jsonl"
  [ "$(grep -c '^{.*}$' $name.jsonl)" -eq "$(wc -l <$name.jsonl)" ] &&
    [ "$(tail -c 1 $name.jsonl | wc -l)" -eq 1 ] ||
    fail "limit of a file: an incomplete line in $name.jsonl:" "$(tail -c 100 $name.jsonl)"
done

# A hang-up that nohup ignores stays ignored.
(trap '' HUP && exec "$train" --data data.h5 --model gcn --epochs 10000000 --json hup.jsonl \
  >out 2>err) &
child=$!
for _ in $(seq 100); do
  [ -s hup.jsonl ] && break
  sleep 0.1
done
kill -HUP $child
sleep 0.3
kill -0 $child 2>/dev/null || fail 'hang-up: it ended a run that ignores it'
kill -TERM $child
wait $child
[ $? -eq 130 ] || fail 'hang-up: not exit code 130'
contains 'hang-up' out 'interrupted  *after epoch'

[ $failures -eq 0 ] && echo 'ok       hg_train'
exit $((failures > 0))
