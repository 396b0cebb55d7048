#!/bin/sh
# hg-train --evaluate, --predict, --save-best, --import-weights, --export-weights. Usage: predict.sh
# HG-TRAIN H5CONVERT DIRECTORY DATASETS (the program of datasets.c) [CHECKER SCHEMA]. Everything is
# written below DIRECTORY.
set -u
[ $# -ge 4 ] || { echo "4 or 6 arguments, not $#"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3 datasets=$4 checker=${5-} schema=${6-}
tool=$train refusal=2
. "$(dirname "$0")/../tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
planted() { # FILE NODES FEATURES ARGS...
  file=$1 nodes=$2 features=$3
  shift 3
  "$convert" --synthetic planted --nodes "$nodes" --classes 4 --features "$features" --degree 8 \
    --hubs 2 --hub-degree 100 --scale 1 --seed 3 "$@" -o "$file" >/dev/null || exit 1
}
planted data.h5 600 16
planted other.h5 250 16
planted narrow.h5 250 12
planted one_more.h5 250 16 --classes 5
"$datasets" . || exit 1

reported() { # FILE: test and validation accuracy of the last line
  tail -n 1 "$1" | grep -o '"\(val\|test\)_accuracy":[^,]*' | sort
}

# A new process gives what the training reported, to the last digit that it prints.
epochs=30
[ -z "${HG_SANITIZED:-}" ] || epochs=10 # sanitizers make a step ten times as long
same() { # NAME DATA ARGS...
  title=$1 data=$2
  shift 2
  run 0 "$title: training" --data "$data" --epochs $epochs --lr 0.05 --json train.jsonl \
    --save run.h5 --save-best best.h5 "$@"
  contains "$title" out "saved  *run.h5: the state after epoch $epochs"
  contains "$title" out 'saved  *best.h5: the model of the best epoch'
  for saved in run.h5 best.h5; do
    run 0 "$title: $saved" --evaluate "$data" --checkpoint $saved --json evaluate.jsonl
    [ ! -s err ] || fail "$title: $saved:" "$(cat err)"
    reported train.jsonl >expected
    reported evaluate.jsonl >found
    [ -s found ] && cmp expected found || fail "$title: $saved:" "$(cat expected found)"
    [ -z "$checker" ] || "$checker" "$schema" evaluate.jsonl 2>fault ||
      fail "$title: not as documented:" "$(cat fault)"
  done
}
for model in gcn gin gat; do
  for precision in fp16 fp32; do
    same "$model $precision" data.h5 --model $model --precision $precision
  done
done
for model in gatv2 agnn gt; do
  same $model data.h5 --model $model
done
# What the data went through is done again.
same 'rows, sparse, no loops' data.h5 --model gcn --row-normalize on --sparse-features on \
  --no-self-loops
same 'many graphs' pairs.h5 --model gin --readout mean
same 'original ids' numbered.h5 --model gcn
same 'rescaled results' data.h5 --model gin --lambda 4096
contains 'rescaled results' out '^gin of best.h5, 2 layers, fp16, on CPU'
contains 'rescaled results' out '^weights: the best epoch, after step [0-9]*$'
contains 'rescaled results' out 'test accuracy  *[0-9.]* %  ([0-9]* of 480; in the training'
same 'numbers' numbers.h5 --model gcn
contains 'numbers' out 'test mae  *[0-9.]*  ([0-9]*; in the training [0-9.]*)'
same 'numbers as they are' numbers.h5 --model gcn --loss mse --raw-targets --precision fp32
same 'labels' pairs_of_labels.h5 --model gin --metric macro-f1

# A resumed run keeps the best epoch of the run before, until it finds a better one.
options='--data data.h5 --model gcn --device cpu'
run 0 'first run' $options --epochs 30 --save run.h5 --json first.jsonl
run 0 'a worse second run' $options --epochs 1 --eval-every 1 --resume run.h5 --json second.jsonl \
  --save again.h5
contains 'a worse second run' out 'best epoch  *\(before these 1, in the checkpoint\|1 of 1\)'
run 0 'the best of both' --evaluate data.h5 --checkpoint again.h5 --json evaluate.jsonl
reported second.jsonl >expected
reported evaluate.jsonl >found
cmp expected found || fail 'the best of both:' "$(cat expected found)"

run 2 'a metric of predictions' --predict data.h5 --checkpoint again.h5 -o p.csv --metric macro-f1
contains 'a metric of predictions' err '--metric needs --evaluate'
run 2 'predictions as lines' --predict data.h5 --checkpoint again.h5 -o p.csv --json p.jsonl
contains 'predictions as lines' err '--json needs --evaluate'

# Predictions, also for another graph, in three formats.
run 0 'training' --data data.h5 --model gat --epochs 20 --save-best gat.h5
for ending in csv npz h5; do
  run 0 "predict $ending" --predict other.h5 --checkpoint gat.h5 -o p.$ending
  contains "predict $ending" out \
    "written  *p.$ending: id, class and 4 probabilities of 250 nodes"
  run 0 "predict $ending again" --predict other.h5 --checkpoint gat.h5 -o q.$ending
  cmp p.$ending q.$ending || fail "predict $ending: two runs differ"
done
[ "$(wc -l <p.csv)" -eq 251 ] || fail "predict: $(wc -l <p.csv) lines for 250 nodes"
[ "$(head -n 1 p.csv)" = id,class,p0,p1,p2,p3 ] || fail 'predict:' "$(head -n 1 p.csv)"
# The class is that of the largest probability, and they add up to 1.
awk -F, 'NR > 1 { top = 0; sum = 0
  for (c = 0; c < 4; c++) { sum += $(c + 3); if ($(c + 3) > $(top + 3)) top = c }
  if (top != $2 || sum < 0.99999 || sum > 1.00001) { print; bad = 1 } }
  END { exit bad }' p.csv >bad ||
  fail 'predict: class and probabilities:' "$(head -n 3 bad)"
run 0 'training on ids' --data numbered.h5 --model gcn --epochs 5 --save-best ids.h5
run 0 'predict ids' --predict numbered.h5 --checkpoint ids.h5 -o ids.csv
sed -n 3p ids.csv | grep -q '^1007,' || fail 'predict ids:' "$(sed -n 3p ids.csv)"
mkdir toy
printf 'node_data: [{file_name: n.csv}]\nedge_data: [{file_name: e.csv}]\n' >toy/meta.yaml
awk 'BEGIN { print "node_id,feat,label,train_mask,val_mask"
  for (i = 0; i < 40; i++) printf "\"n, %d\",\"%d, %d\",%d,%d,%d\n", 39 - i, i % 2, 1 - i % 2,
    i % 2, (i < 20), (i >= 20) }' >toy/n.csv
awk 'BEGIN { print "src_id,dst_id"
  for (i = 0; i < 38; i++) printf "\"n, %d\",\"n, %d\"\n", i, i + 2 }' >toy/e.csv
"$convert" toy -o toy.h5 >/dev/null 2>&1 || fail 'names: h5convert'
run 0 'training on names' --data toy.h5 --model gcn --epochs 2 --save-best toy_gcn.h5
run 0 'predict names' --predict toy.h5 --checkpoint toy_gcn.h5 -o names.csv
sed -n 2p names.csv | grep -q '^"n, 39",' || fail 'predict names:' "$(sed -n 2p names.csv)"
sed -n 41p names.csv | grep -q '^"n, 0",' || fail 'predict names:' "$(sed -n 41p names.csv)"
run 0 'predict without labels' --predict no_labels.h5 --checkpoint ids.h5 -o free.csv
run 0 'training on graphs' --data pairs.h5 --model gin --epochs 5 --save-best pairs_gin.h5
run 0 'predict graphs' --predict pairs.h5 --checkpoint pairs_gin.h5 -o graphs.csv
contains 'predict graphs' out 'probabilities of 30 graphs'
[ "$(wc -l <graphs.csv)" -eq 31 ] || fail "predict graphs: $(wc -l <graphs.csv) lines"
# Embeddings: as many columns as the layer has, in all formats with the same numbers.
run 0 'embed' --predict other.h5 --checkpoint gat.h5 -o e.csv --embed last
contains 'embed' out 'embedding  *64 columns of 250 nodes'
[ "$(head -n 1 e.csv | cut -d, -f 1-7)" = id,class,p0,p1,p2,p3,e0 ] || fail 'embed: columns'
cut -d, -f 1-6 e.csv | cmp - p.csv || fail 'embed: other predictions'
awk -F, 'NF != 70 { exit 1 }' e.csv || fail 'embed: not 64 columns in every line'
run 0 'embed by number' --predict other.h5 --checkpoint gat.h5 -o f.csv --embed 1
cmp e.csv f.csv || fail 'embed: layer 1 of 2 is not the last before the logits'
for ending in npz h5; do
  run 0 "embed $ending" --predict other.h5 --checkpoint gat.h5 -o e.$ending --embed last
  [ "$(wc -c <e.$ending)" -ge $(($(wc -c <p.$ending) + 64000)) ] || fail "embed $ending: no room"
done
run 0 'embed graphs' --predict pairs.h5 --checkpoint pairs_gin.h5 -o e.csv --embed 2
contains 'embed graphs' out 'embedding  *64 columns of 30 graphs'
run 0 'embed nodes' --predict pairs.h5 --checkpoint pairs_gin.h5 -o e.npz --embed last:nodes
contains 'embed nodes' out 'embedding  *64 columns of [0-9]* nodes'
refused 'embed nodes in lines of graphs' 'none.csv: a line per graph has no room for the embedd' \
  --predict pairs.h5 --checkpoint pairs_gin.h5 -o none.csv --embed last:nodes
refused 'embed the features' 'embed 0: the model is a gat of 2 layers, of which the first reads' \
  --predict other.h5 --checkpoint gat.h5 -o none.csv --embed 0
for bad in three last:edges -1 lastly 2x; do
  refused "embed $bad" "embed is \"$bad\", expected a layer from 0 to 1000 or last" \
    --predict other.h5 --checkpoint gat.h5 -o none.csv --embed=$bad
done
refused 'embed and evaluate' 'embed needs --predict' --evaluate data.h5 --checkpoint gat.h5 \
  --embed last
refused 'embed and train' 'embed needs --predict' --data data.h5 --model gat --embed last
# What --standardize did is in the dataset, in the run and in its model, and is done again.
"$convert" data.h5 --standardize -o standard.h5 >/dev/null || exit 1
"$convert" other.h5 --standardize -o alone.h5 >/dev/null || exit 1
same 'standardised' standard.h5 --model gcn
contains 'standardised' evaluate.jsonl '"test_accuracy":0[.][0-9]'
run 0 'as it was' --evaluate data.h5 --checkpoint best.h5 --json evaluate.jsonl
reported evaluate.jsonl >found
cmp expected found || fail 'as it was: another accuracy:' "$(cat expected found)"
run 0 'another graph as it was' --predict other.h5 --checkpoint best.h5 -o s.csv
refused 'standardised alone' 'alone.h5: planted was standardised with other numbers than the data' \
  --predict alone.h5 --checkpoint best.h5 -o none.csv
refused 'standardised for a model that was not' 'alone.h5: planted was standardised, the data of' \
  --predict alone.h5 --checkpoint gat.h5 -o none.csv
# Classes with names, here the labels of a TU dataset, are named in tables and pages.
awk 'BEGIN { for (g = 1; g <= 20; g++) {
  for (i = 1; i <= 4; i++) { n++
    print g >"tu_graph_indicator.txt"; print g % 2 >"tu_node_labels.txt"
    if (i < 4) { print n ", " n + 1 >"tu_A.txt"; print n + 1 ", " n >"tu_A.txt" } }
  print g % 2 ? 7 : -1 >"tu_graph_labels.txt" } }'
"$convert" tu_A.txt --from tu --split random:0.6/0.2/0.2 -o tu.h5 >/dev/null || exit 1
run 0 'training on names' --data tu.h5 --model gin --epochs 30 --save-best tu.model --html tu.html
contains 'training on names' tu.html '<th title="-1">0</th><th title="7">1</th>'
contains 'training on names' tu.html '<tr><th>1 <span class="soft">7</span></th>'
run 0 'predict names' --predict tu.h5 --checkpoint tu.model -o tu.csv
awk -F, 'NR > 1 && $2 != (NR % 2 ? -1 : 7) { print; bad = 1 } END { exit bad }' tu.csv >bad ||
  fail 'predict names:' "$(head -n 3 bad)"
# Several labels have probabilities and no class; real targets have values in their own units.
run 0 'training on labels' --data pairs_of_labels.h5 --model gin --epochs 5 --save-best labels.h5
run 0 'predict labels' --predict pairs_of_labels.h5 --checkpoint labels.h5 -o labels.csv
contains 'predict labels' out 'id, 2 probabilities of 30 graphs'
[ "$(head -n 1 labels.csv)" = id,p0,p1 ] || fail 'predict labels:' "$(head -n 1 labels.csv)"
awk -F, 'NR > 1 && (NF != 3 || $2 <= 0 || $2 >= 1 || $3 <= 0 || $3 >= 1) { exit 1 }' labels.csv ||
  fail 'predict labels: not probabilities'
run 0 'another metric' --evaluate pairs_of_labels.h5 --checkpoint labels.h5 --metric accuracy
contains 'another metric' out 'test accuracy  *[0-9.]* %  (10)'
run 0 'training on numbers' --data numbers.h5 --model gcn --epochs 40 --lr 0.05 --save-best \
  numbers.model
for ending in csv npz h5; do
  run 0 "predict numbers $ending" --predict numbers.h5 --checkpoint numbers.model -o n.$ending
  contains "predict numbers $ending" out 'id, 2 predicted targets of 20 nodes'
done
[ "$(head -n 1 n.csv)" = id,t0,t1 ] || fail 'predict numbers:' "$(head -n 1 n.csv)"
refused 'numbers of classes' 'has no targets to evaluate with' --evaluate data.h5 --checkpoint \
  numbers.model
refused 'accuracy of numbers' 'metric accuracy is not one of real targets' --evaluate numbers.h5 \
  --checkpoint numbers.model --metric accuracy
refused 'classes that the model does not know' \
  'one_more.h5: label of row [0-9]* is 4, the model knows classes 0 to 3' --evaluate one_more.h5 \
  --checkpoint gat.h5
run 0 'without a test set' --evaluate no_test.h5 --checkpoint ids.h5 --json -
contains 'without a test set' err 'test accuracy  *none: there is no test set'
contains 'without a test set' out '"test_accuracy":null'

# Weights of another program go in, and out again. A learning rate of 0 keeps them.
still='--data data.h5 --model gcn --device cpu --epochs 1 --lr 0 --weight-decay 0'
run 0 'export' --data data.h5 --model gcn --epochs 10 --export-weights gcn.safetensors --save-best \
  gcn.h5
contains 'export' out 'exported  *gcn.safetensors: the weights of the best epoch'
run 0 'export from a checkpoint' --checkpoint gcn.h5 --export-weights again.safetensors
cmp gcn.safetensors again.safetensors || fail 'export: a run and its checkpoint differ'
contains 'names' gcn.safetensors '"convs.0.lin.weight":{"dtype":"F32","shape":\[64,16\]'
run 0 'import' $still --import-weights gcn.safetensors --export-weights again.safetensors
cmp gcn.safetensors again.safetensors || fail 'import: other weights'
run 0 'import, evaluated' $still --import-weights gcn.safetensors --json imported.jsonl
run 0 'evaluate' --evaluate data.h5 --checkpoint gcn.h5 --json evaluate.jsonl
reported imported.jsonl >expected
reported evaluate.jsonl >found
[ -s found ] && cmp expected found || fail 'import: another accuracy:' "$(cat expected found)"
refused 'weights of another model' 'gcn.safetensors: has 0 layers of a gat' --data data.h5 --model \
  gat --import-weights gcn.safetensors
refused 'weights of another width' 'needs \[32, 16\]' --data data.h5 --model gcn --hidden 32 \
  --import-weights gcn.safetensors
refused 'no weights' 'not a safetensors file' --data data.h5 --model gcn --import-weights other.h5
refused 'two beginnings' '--resume and --import-weights: expected one of them' --data data.h5 \
  --model gcn --import-weights gcn.safetensors --resume gcn.h5
refused 'many seeds of one file' '--import-weights is for one run, but --seeds is 2' \
  --data data.h5 --model gcn --import-weights gcn.safetensors --seeds 2
refused 'weights and no model' '--json needs --evaluate' --checkpoint gcn.h5 \
  --export-weights again.safetensors --json -
refused 'onto the weights' 'is the weights to begin with: it is not overwritten' $still \
  --import-weights gcn.safetensors --export-weights gcn.safetensors

# What does not fit is refused before anything is written.
refused 'another width' 'narrow.h5: planted has 12 features, the model reads 16' \
  --predict narrow.h5 --checkpoint gat.h5 -o none.csv
refused 'nodes for graphs' \
  'pairs.h5: the dataset is a batch of graphs, the model predicts nodes' \
  --predict pairs.h5 --checkpoint ids.h5 -o none.csv
refused 'graphs for nodes' 'numbered.h5: the dataset is one graph, the model predicts graphs' \
  --predict numbered.h5 --checkpoint pairs_gin.h5 -o none.csv
refused 'no features' 'no_columns.h5: the dataset has no features, the model reads 4' \
  --predict no_columns.h5 --checkpoint ids.h5 -o none.csv
refused 'no labels to evaluate' 'no_labels.h5: has no labels to evaluate with' --evaluate \
  no_labels.h5 --checkpoint ids.h5
refused 'beyond fp16' 'large_features.h5: .*beyond f16' --predict large_features.h5 --checkpoint \
  ids.h5 -o none.csv
refused 'a dataset as a model' 'expected halfgraph-checkpoint' --evaluate data.h5 --checkpoint \
  data.h5
refused 'a model as a dataset' 'expected halfgraph: not a HalfGraph dataset' --evaluate gat.h5 \
  --checkpoint gat.h5
refused 'no such model' 'absent.h5: No such file' --evaluate data.h5 --checkpoint absent.h5
refused 'no model' '--evaluate needs --checkpoint' --evaluate data.h5
refused 'no file to write' '--predict needs -o' --predict data.h5 --checkpoint gat.h5
refused 'two things at once' '--evaluate and --predict: expected one of them' --evaluate data.h5 \
  --predict data.h5 --checkpoint gat.h5
refused 'a file for nothing' '-o is the file of --predict' --evaluate data.h5 --checkpoint gat.h5 \
  -o none.csv
refused 'a model for a training' '--checkpoint needs --evaluate or --predict' --data data.h5 \
  --model gat --checkpoint gat.h5
refused 'a file for a training' '-o needs --evaluate or --predict' --data data.h5 --model gat \
  -o none.csv
refused 'the model is in the checkpoint' '--model is an option of the training' --evaluate data.h5 \
  --checkpoint gat.h5 --model gat
refused 'so is the precision' '--precision is an option of the training, but --predict' --predict \
  data.h5 --checkpoint gat.h5 -o none.csv --precision fp32
refused 'another format' '-o none.txt: expected a name that ends with .csv, .npz or .h5' \
  --predict data.h5 --checkpoint gat.h5 -o none.txt
refused 'onto the dataset' '-o data.h5 is the dataset itself' --predict data.h5 --checkpoint \
  gat.h5 -o data.h5
refused 'onto the model' '-o gat.h5 is the model itself' --predict data.h5 --checkpoint gat.h5 -o \
  gat.h5
refused 'into a missing folder' 'missing/p.csv' --predict data.h5 --checkpoint gat.h5 -o \
  missing/p.csv
refused 'a model to go on from' 'it is a model to predict with, no run goes on from it' --data \
  data.h5 --model gat --resume gat.h5

# Of several seeds the model with the best validation metric, as a run by itself writes it; of a
# metric that falls, too.
for metric in accuracy numbers; do
  set -- --data data.h5 --model gcn --epochs 4 --seed 3 --device cpu
  [ $metric = accuracy ] || set -- --data numbers.h5 --model gcn --epochs 4 --seed 3 --device cpu
  run 0 "several $metric" "$@" --seeds 5 --save-best several.h5 --json several.jsonl
  [ -z "$checker" ] || "$checker" "$schema" several.jsonl >fault 2>&1 ||
    fail "several $metric: not as documented: $(cat fault)"
  order=-gr
  [ $metric = accuracy ] || order=-g
  best=$(grep '"event":"run"' several.jsonl |
    sed 's/.*"seed":\([0-9]*\),.*"val_metric":\([^,]*\),"test_metric".*/\2 \1/' |
    sort -s -k 1,1 $order | sed -n '1s/.* //p')
  contains "several $metric" out \
    "^  saved  *several.h5: the model of the best epoch of seed $best, validation "
  contains "several $metric" several.jsonl "\"saved_best\":{\"seed\":$best,\"fold\":null,"
  run 0 "alone $metric" "$@" --seed "$best" --save-best alone.h5
  cmp -s several.h5 alone.h5 || fail "several $metric: not the model of seed $best"
  echo "$best" >>bests
done
[ "$(sort -u bests)" != 3 ] || fail 'several: it is always the first'
refused 'no validation set for many seeds' \
  'has no validation set, by which --save-best of several seeds chooses one' --data \
  no_validation.h5 --model gcn --seeds 3 --save-best many.h5
[ ! -e many.h5 ] || fail 'no validation set for many seeds: a model was written'
refused 'two checkpoints in one file' '--save-best two.h5 is also the file of --save' --data \
  data.h5 --model gcn --save two.h5 --save-best two.h5
[ ! -e none.csv ] || fail 'refused: a file was written'
[ -z "$(find . -name '*.tmp')" ] || fail 'a temporary file was left behind'

[ $failures -eq 0 ] && echo 'ok       hg_train_predict'
exit $((failures > 0))
