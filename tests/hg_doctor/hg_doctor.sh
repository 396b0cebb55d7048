#!/bin/sh
# The command line of hg-doctor, its reports and its page. Usage: hg_doctor.sh HG-DOCTOR HG-TRAIN
# H5CONVERT DIRECTORY DATASETS PAGE SCHEMA FINDING JSON-SCHEMA (the programs of
# ../hg_train/datasets.c, page.c, schema.c and finding.c, and docs/json-lines.schema.json).
# Everything is written below DIRECTORY.
set -u
[ $# -eq 9 ] || { echo "9 arguments, not $#"; exit 1; } # DIRECTORY is removed below
doctor=$1 train=$2 convert=$3 dir=$4 datasets=$5 page=$6 checker=$7 finding=$8 schema=$9
tool=$doctor refusal=2
. "$(dirname "$0")/../tool.sh"
. "$(dirname "$0")/../browser.sh"
fitting=$(cd "$(dirname "$0")/.." && pwd)/fits.html
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 100 --scale 1 --seed 3 -o data.h5 >/dev/null || exit 1
"$convert" --synthetic planted --nodes 4000 --classes 4 --features 8 --degree 6 --hubs 1 \
  --hub-degree 3500 --scale 32 --seed 1 -o hub.h5 >/dev/null || exit 1
"$convert" hub.h5 --reorder degree -o ordered.h5 >/dev/null || exit 1
"$datasets" . || exit 1
# every model, as --help lists them
models=$("$train" --help | sed -n 's/^  --model NAME *the model: //p' | tr -d , |
  sed 's/ gine / /') # whose data needs edges with attributes
[ -n "$models" ] || fail 'hg-train --help lists no models'

run 0 help --help
contains help out 'usage: hg-doctor'
contains help out '--weight-decay X'
help_is_wrapped
contains help out '0  *healthy'
run 0 version --version
contains version out '[0-9]\.[0-9]'

refused 'no arguments' '--data is missing'
refused 'no model' '--model is missing' --data data.h5
refused 'unknown option' 'unknown option "--epoch"' --data data.h5 --model gcn --epoch 3
refused 'two names of one number' '--steps and --epochs mean the same' \
  --data data.h5 --model gcn --epochs 3 --steps 3
refused 'no steps' '--steps is "0", expected a whole number from 1' --data data.h5 --model gcn \
  --steps 0
refused 'heads of gcn' '--heads is an option of gat gatv2 gt, but' --data data.h5 --heads 4 \
  --model gcn
refused 'neither on nor off' '--try is "maybe", expected one of on|off' --data data.h5 --model \
  gcn --try maybe
refused 'a page on standard output' '--html is "-", expected the name of a file' --data data.h5 \
  --model gcn --html -
refused 'no labels' 'no_labels.h5: has no labels' --data no_labels.h5 --model gcn --html none.html
refused 'no such file' 'absent.h5' --data absent.h5 --model gcn --json none.jsonl --html none.html
for left in none.*; do
  [ ! -e "$left" ] || fail "refused: $left was created"
done
cp data.h5 twin.h5
ln twin.h5 link.h5
refused 'the dataset as JSON' '--json link.h5 is the dataset itself' --data twin.h5 --model gcn \
  --json link.h5
refused 'the dataset as a page' '--html twin.h5 is the dataset itself' --data twin.h5 --model gcn \
  --html twin.h5
refused 'one file for both' '--html both is also the file of --json' --data twin.h5 --model gcn \
  --json both --html both
refused 'one new file for both, by two names' '--html both is also the file of --json' --data \
  twin.h5 --model gcn --json ../$(basename "$dir")/both --html both
refused 'one new file for both' '--html ./none.html is also the file of --json' --data twin.h5 \
  --model gcn --json none.html --html ./none.html
[ ! -e none.html ] || fail 'one new file for both: it was created'
cmp -s data.h5 twin.h5 || fail 'the dataset was overwritten'
refused 'JSON into a missing directory' 'missing/x.jsonl' --data data.h5 --model gcn --json \
  missing/x.jsonl
refused 'a page into a missing directory' 'missing/x.html: cannot be written' --data data.h5 \
  --model gcn --html missing/x.html
refused 'a page into a device' 'cannot be written: it exists and is not a regular file' --data \
  data.h5 --model gcn --html /dev/null

# ---- pages ----

# Pictures shrink with the window. Those that would then be too small to read are drawn a second
# time, for a telephone.
check_pictures() { # NAME FILE
  grep -o '<svg [^>]*>' "$2" >svgs
  if grep -v -e viewBox -e 'width="14"' -e 'width="22"' svgs; then
    fail "$1: a picture that cannot shrink"
  fi
  if grep -e 'width="[5-9][0-9][0-9]"' -e 'width="1[0-9][0-9][0-9]"' svgs | grep -v only-wide; then
    fail "$1: a picture too wide for a telephone"
  fi
  wide=$(grep -c only-wide svgs) narrow=$(grep -c 'class="[a-z ]*only-narrow' "$2")
  [ "$wide" -eq "$narrow" ] || fail "$1: $wide wide pictures, $narrow narrow ones"
}

# The page is well-formed, needs no other file, and a browser shows it without errors.
shows() { # NAME FILE TEXT
  [ -e "$2" ] || { fail "$1: there is no page"; return; }
  "$page" "$2" 2>fault || fail "$1: $(cat fault)"
  contains "$1" "$2" "$3"
  check_pictures "$1" "$2"
  [ -n "$browser" ] || return
  fits "$1" "$2"
  rm -f shot.png
  browse --enable-logging=stderr --window-size=1200,2400 --screenshot="$PWD/shot.png" \
    "file://$PWD/$2" >console 2>&1
  if grep -q CONSOLE console; then fail "$1: the browser reports $(grep CONSOLE console)"; fi
  [ -s shot.png ] || fail "$1: the browser shows nothing: $(tail -n 3 console)"
}

# Every line fits docs/json-lines.schema.json.
documented() { # NAME FILE
  "$checker" "$schema" "$2" 2>fault || fail "$1: not as documented: $(cat fault)"
}

# Every line is an object, and the last one is the summary.
lines() { # NAME FILE STEPS
  [ "$(grep -c '"event":"step"' "$2")" -eq "$3" ] ||
    fail "$1: $(grep -c '"event":"step"' "$2") lines for $3 steps"
  [ "$(grep -c '^{"event":.*}$' "$2")" -eq "$(wc -l <"$2")" ] || fail "$1: a line is not an object"
  if grep -i -q -e ':-\{0,1\}\(nan\|inf\)' "$2"; then fail "$1: not JSON"; fi
  documented "$1" "$2"
  tail -n 1 "$2" >last
  contains "$1" last '^{"event":"summary"'
}

# ---- healthy runs ----

steps=30
[ -z "${HG_SANITIZED:-}" ] || steps=10 # sanitizers make a step ten times as long
for model in $models; do
  for precision in fp32 fp16; do
    run 0 "$model $precision" --data data.h5 --model $model --precision $precision --layers 2 \
      --steps $steps --json good.jsonl --html good.html
    contains "$model $precision" out "Healthy. Nothing was wrong in $steps steps"
    lines "$model $precision" good.jsonl $steps
    contains "$model $precision" last '"verdict":"healthy"'
    contains "$model $precision" good.jsonl '"event":"tensor".*"name":"gradient of conv1'
    [ $precision = fp32 ] ||
      contains "$model $precision" out 'headroom *[0-9.]* bits at least: '
  done
  shows "$model" good.html '<h1>Healthy</h1>'
done
run 0 'many graphs' --data pairs.h5 --model gin --epochs 9 --html pairs.html
shows 'many graphs' pairs.html Healthy
run 0 'one step' --data one_node.h5 --model gcn --steps 1 --html one.html --json -
mv out one.jsonl
lines 'one step' one.jsonl 1
contains 'one step' err Healthy # the JSON is on standard output, so the report is not
shows 'one step' one.html Healthy

# The doctor does not change the run: the losses are those of hg-train.
"$train" --data data.h5 --model gat --epochs 20 --seed 7 --json - 2>/dev/null |
  sed -n 's/.*"epoch".*"loss":\([^,]*\),.*/\1/p' >train_losses
run 0 'same losses' --data data.h5 --model gat --steps 20 --seed 7 --json -
sed -n 's/.*"event":"step".*"loss":\([^,]*\),.*/\1/p' out >doctor_losses
[ "$(wc -l <train_losses)" -eq 20 ] || fail 'same losses: hg-train printed not 20 losses'
cmp train_losses doctor_losses || fail 'same losses: the doctor changed the run'

# ---- faults ----

# One fact is printed above another.
before() { # NAME FACT FACT
  above=$(grep -n -m 1 -e "$2" out | cut -d: -f1) below=$(grep -n -m 1 -e "$3" out | cut -d: -f1)
  [ "${above:-9999}" -lt "${below:-0}" ] || fail "$1: '$2' is not above '$3'"
}

# The report has no words that a user of PyTorch does not know, and no line too long for a terminal.
plain() { # NAME
  if grep -n -i -w -e 'addends\{0,1\}' -e narrowed -e tape -e f16 -e f32 -e halves out; then
    fail "$1: a word of the library's own"
  fi
  if grep -v 'spmm: sum over neighbours' out | grep -v '/spmm' | grep -w spmm; then
    fail "$1: spmm without an explanation"
  fi
  [ "$(wc -L <out)" -le 100 ] || fail "$1: a line of $(wc -L <out) columns"
}

# The value of a field of the first finding.
field() { # NAME FILE
  grep '"event":"finding"' "$2" | head -n 1 | grep -o "\"$1\":\(\"[^\"]*\"\|[^,}]*\)" | head -n 1 |
    cut -d: -f2-
}
is() { # NAME FIELD FILE EXPECTED
  [ "$(field "$2" "$3")" = "$4" ] || fail "$1: $2 is $(field "$2" "$3"), expected $4"
}

# A hub sums thousands of numbers below 300 in f16 and divides by their number only afterwards.
naive='--model gcn --norm right --no-self-loops --precision fp16-naive'
run 3 hub --data hub.h5 $naive --steps 40 --json hub.jsonl --html hub.html
is hub cause hub.jsonl '"accumulation"'
is hub op hub.jsonl '"spmm"'
is hub layer hub.jsonl '"conv0"'
is hub row_is hub.jsonl '"node"'
contains hub out 'overflow in accumulation'
head -n 1 out >first
contains hub first '^fp16 overflow while summing 35[0-9]* neighbours of node [0-9]*\. '
contains hub first '\. Fix: --precision fp16$'
contains hub out '--precision fp16  *trains: loss'
before hub 'what to do' '  spread  '
contains hub out '-> [0-9]* more'
plain hub
contains hub out 'and [0-9]* more'
contains hub hub.jsonl '"verdict":"findings"'
shows hub hub.html 'What went wrong first'
contains hub hub.html '<h1>fp16 overflow while summing [0-9]* neighbours of node [0-9]*</h1>'
contains hub hub.html '<p class="fix">Fix: <code class="option">--precision fp16</code></p>'
contains hub hub.html 'overflows with'
contains hub hub.html 'fp16 ends: '
contains hub hub.html '>1k</text>' # the counts beside a histogram
contains hub hub.html '>65504</text>'
# The remedy is an option that works when a user types it.
remedy=$(sed -n 's/.*"remedies":\[{"option":"\([^"]*\)".*"worked":true.*/\1/p' hub.jsonl |
  head -n 1)
[ -n "$remedy" ] || fail 'hub: no remedy'
run 0 "hub with $remedy" --data hub.h5 $naive $remedy --steps 40
tried() { # NAME FILE: every option of every finding
  if grep -q '"option":"-[^}]*"tried":false' "$2"; then fail "$1: an option was not tried"; fi
}
tried hub hub.jsonl
run 3 features --data hub.h5 --model gcn --norm none --precision fp16-naive --dropout 0 --steps 4 \
  --json features.jsonl
is features cause features.jsonl '"store"'
contains features features.jsonl '"option":"--row-normalize on"[^}]*"tried":true'
contains features out 'does not help: [a-z]'
plain features
tried features features.jsonl
run 3 'hub, nothing tried' --data hub.h5 $naive --try off --json -
contains 'hub, nothing tried' out '"tried":false'
if grep -q '"tried":true' out; then fail 'hub, nothing tried: a remedy was tried'; fi
# A reordered dataset has the same name for the same node.
run 3 'hub, reordered' --data ordered.h5 $naive --try off --json ordered.jsonl
[ "$(field node_id ordered.jsonl)" = "$(field node_id hub.jsonl)" ] ||
  fail "hub, reordered: node $(field node_id ordered.jsonl), expected $(field node_id hub.jsonl)"
contains 'hub, reordered' out 'node [0-9]* (row [0-9]*)'

# A sum of 50,000 ones in f16 stops at 2048. No value is infinite.
run 3 star --data star.h5 --model gin --precision fp16-naive --hidden 8 --dropout 0 --steps 10 \
  --json star.jsonl --html star.html --try off
is star cause star.jsonl '"swamping"'
is star op star.jsonl '"spmm"'
is star node_id star.jsonl 0
is star partial star.jsonl 2048.0
is star ignored star.jsonl 47952
head -n 1 out >first
contains star first '^fp16 sum of 100000 neighbours of node 0 is 2048, not 50000: '
contains star first ': 47952 terms lost\. '
contains star first '\. Try: --precision fp16$'
contains star out 'conv0/linear (mlp1.weight)'
contains star out 'what to do *the same as above'
plain star
shows star star.html 'changed nothing'
contains star star.html 'class="half"' # both curves
contains star star.html 'class="true"'
contains star star.html 'terms get lost from'
# Two chains and one row of the table mark the origin.
[ "$(grep -c 'class="origin"' star.html)" -eq 3 ] || fail 'star: not 3 origins'

# Nodes keep the numbers of the source, also if the rows were reordered. The hub has the number
# 1000, and leaf i has 1000 + 7 i.
"$convert" numbered.h5 --reorder rcm -o renumbered.h5 >/dev/null || fail 'renumbered.h5'
for data in numbered renumbered; do
  run 3 $data --data $data.h5 --model gin --precision fp16-naive --hidden 8 --dropout 0 --steps 2 \
    --json $data.jsonl --try off
  is $data op $data.jsonl '"spmm"'
  is $data node_id $data.jsonl 1000
  contains $data out 'element *node 1000 (row [0-9]*), feature '
done
[ "$(field row numbered.jsonl)" -eq 0 ] || fail "numbered: row $(field row numbered.jsonl)"
[ "$(field row renumbered.jsonl)" -gt 0 ] || fail 'renumbered: the hub is still in row 0'
grep '"event":"finding"' renumbered.jsonl | head -n 1 | grep -o '"top":\[.*\],"chain"' |
  grep -o '"name":"node [0-9]*' | sed 's/.* //' >terms
[ -s terms ] || fail 'renumbered: no term is named'
while read -r leaf; do
  [ "$leaf" -gt 1000 ] && [ $(((leaf - 1000) % 7)) -eq 0 ] ||
    fail "renumbered: a term is called node $leaf, which is not in the source"
done <terms

# In a batch, nodes are named by their graph and their position in it. Graph 17 of 30, which is
# number 16 when counted from 0, is a star of 3000 leaves, whose features add up to 90000.
awk 'BEGIN {
  for (g = 1; g <= 30; g++) {
    size = g == 17 ? 3001 : 5 + g % 3
    for (i = 1; i <= size; i++) {
      print g >"hubs_graph_indicator.txt"
      print (g == 17 ? 30 : 0.5) ", " g % 2 >"hubs_node_attributes.txt"
      if (i > 1)
        print nodes + 1 ", " nodes + i "\n" nodes + i ", " nodes + 1 >"hubs_A.txt"
    }
    nodes += size
    print g % 2 >"hubs_graph_labels.txt"
  }
}'
"$convert" hubs_A.txt --fold 2/5 -o hubs.h5 >/dev/null || fail 'hubs.h5'
run 3 batch --data hubs.h5 --model gin --precision fp16-naive --steps 3 --json batch.jsonl --html \
  batch.html --try off
is batch cause batch.jsonl '"store"'
is batch op batch.jsonl '"spmm"'
is batch layer batch.jsonl '"conv0"'
is batch element batch.jsonl '"node 0 of graph 16 (row 96), feature 0"'
is batch terms batch.jsonl 3000
contains batch out '60 = 1 x 60 *node [0-9]* of graph 16 (row [0-9]*)'
shows batch batch.html 'node 0 of graph 16 (row 96), feature 0'

# The JSON of all kinds of findings fits the schema, and a changed line does not.
for data in hub features star batch; do
  documented $data $data.jsonl
done
"$finding" finding.jsonl >out 2>fault || fail "a full finding: $(cat fault)"
plain 'a full finding'
documented 'a full finding' finding.jsonl
undocumented() { # NAME SED: the schema refuses the line after this change
  sed "$2" hub.jsonl >changed.jsonl
  if cmp -s hub.jsonl changed.jsonl; then fail "undocumented, $1: the line was not changed"; fi
  if "$checker" "$schema" changed.jsonl 2>fault; then fail "undocumented, $1: accepted"; fi
}
undocumented 'another word' 's/"cause":"accumulation"/"cause":"something"/'
undocumented 'another type' 's/"terms":[0-9]*/"terms":"many"/'
undocumented 'another format' 's/"format":1/"format":2/'
undocumented 'a missing field' 's/"headline":"[^"]*",//'
undocumented 'an additional field' 's/"event":"finding"/&,"mood":"bad"/'
undocumented 'an additional field of a remedy' 's/"worked":true/&,"mood":"good"/'
undocumented 'another event' 's/"event":"summary"/"event":"end"/'

# A loss scale that begins too high falls until the gradients fit. This is a finding only if it
# takes a quarter of the steps, or if the run ends first.
run 0 'scale' --data data.h5 --model gat --loss-scale 16777216 --steps 60 --json -
contains 'scale' err '\([6-9]\|1[0-9]\) were skipped on the way'
contains 'scale' err 'headroom *[0-9.]* bits'
run 3 'scale, too long' --data data.h5 --model gat --loss-scale 16777216 --steps 16 \
  --json high.jsonl
is 'scale, too long' cause high.jsonl '"loss-scale"'
contains 'scale, too long' out 'Fix: --loss-scale'
run 3 'scale, too few steps' --data data.h5 --model gat --loss-scale 2097152 --steps 2 --try off \
  --json scale.jsonl --html scale.html
is 'scale, too few steps' cause scale.jsonl '"loss-scale"'
is 'scale, too few steps' step scale.jsonl 1
contains 'scale, too few steps' out 'it is the last one, and it was skipped'
plain 'scale, too few steps'
contains 'scale, too few steps' scale.html 'Skipped steps'
documented 'scale, too few steps' scale.jsonl

# A loss scale that grows too far costs a step from time to time. That is no finding, even if it is
# the last step.
run 0 'scale, deep' --data data.h5 --model gin --loss-scale 16777216 --layers 4 --steps 120 --try \
  off
contains 'scale, deep' out 'were skipped on the way'

# Features below 2^-25 become 0 in f16, before the first op.
"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 100 --scale 1e-9 --features-dtype f32 --seed 3 -o tiny.h5 >/dev/null ||
  fail 'tiny.h5'
run 3 vanished --data tiny.h5 --model gcn --steps 3 --json tiny.jsonl
is vanished cause tiny.jsonl '"underflow"'
is vanished tensor tiny.jsonl '"features"'
plain vanished
contains vanished tiny.jsonl '"option":"--row-normalize on"[^}]*"worked":true'
run 0 'vanished, normalised' --data tiny.h5 --model gcn --steps 3 --row-normalize on

# Features that fp16 cannot hold stop a run before it begins. This is a finding as well.
"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 100 --scale 1e5 --features-dtype f32 --seed 3 -o beyond.h5 >/dev/null || exit 1
run 3 beyond --data beyond.h5 --model gcn --steps 5 --json beyond.jsonl --html beyond.html
is beyond cause beyond.jsonl '"input"'
is beyond tensor beyond.jsonl '"features"'
contains beyond out 'Input beyond fp16: [0-9.]* in node [0-9]* of features'
contains beyond beyond.jsonl '"option":"--row-normalize on"[^}]*"worked":true'
contains beyond beyond.jsonl '"option":"--precision fp32"[^}]*"worked":true'
plain beyond
shows beyond beyond.html 'beyond fp16'
run 0 'beyond, normalised' --data beyond.h5 --model gcn --steps 5 --row-normalize on

# A learning rate that is too high makes weights so large that the ops which read them overflow. No
# loss scale helps.
for model in $models; do
  [ "$model" != sgc ] || continue # without a relu it is convex, and recovers
  run 3 "rate, $model" --data data.h5 --model $model --lr 100 --steps 30 --json rate.jsonl
  is "rate, $model" cause rate.jsonl '"optimiser"'
  contains "rate, $model" out 'Learning rate too high: .* has grown to'
  contains "rate, $model" rate.jsonl '"option":"--lr 0.[01]*"[^}]*"worked":true'
done

# Trials of remedies begin from the checkpoint as well, so that none of them can work here: it has
# bad weights already.
"$train" --data data.h5 --model gcn --lr 1000 --epochs 3 --save blown.h5 >/dev/null 2>&1
run 3 blown --data data.h5 --model gcn --precision fp16-naive --checkpoint blown.h5 --steps 5 \
  --json blown.jsonl
contains blown out 'control *nothing changed, from the checkpoint: it does not train'
if grep -q '"worked":true' blown.jsonl; then fail 'blown: a remedy works with bad weights'; fi

# A step that makes the weights bad shows only when the next step reads them, and yet the finding
# names it. Adam's steps of 15000 pass 65520 in the sixth step, which is not replayed at first.
run 3 optimiser --data data.h5 --model gcn --lr 15000 --weight-decay 0 --layers 1 \
  --row-normalize on --norm right --dropout 0 --steps 60 --try off --json optimiser.jsonl \
  --html optimiser.html
is optimiser step optimiser.jsonl 5
is optimiser cause optimiser.jsonl '"optimiser"'
is optimiser op optimiser.jsonl '"adam"'
contains optimiser out '--lr 0.01 '
shows optimiser optimiser.html 'What it was made of'
contains optimiser optimiser.html 'stored as fp16'
plain optimiser

# hg-train --doctor prints the report, and the run continues.
"$train" --data hub.h5 $naive --epochs 6 --doctor --json train.jsonl >out 2>err </dev/null
[ $? -eq 3 ] || fail 'hg-train --doctor: not exit code 3'
documented 'hg-train --doctor' train.jsonl
contains 'hg-train --doctor' out 'epoch 1 (step 0) is bad: its loss is not finite'
contains 'hg-train --doctor' out 'doctor *epoch 1 (step 0) was bad, with [0-9]* finding'
contains 'hg-train --doctor' out 'overflows *in the forward pass of 6 steps, which were skipped'
contains 'hg-train --doctor' out 'no headroom *in conv0/spmm: it was not finite'
contains 'hg-train --doctor' train.jsonl '"event":"epoch","seed":0,"epoch":1,"step":0,'
contains 'hg-train --doctor' train.jsonl '"event":"summary".*"verdict":"findings"'
contains 'hg-train --doctor' out 'overflow in accumulation'
contains 'hg-train --doctor' out 'test accuracy'
[ "$(grep -c '"event":"epoch"' train.jsonl)" -eq 6 ] || fail 'hg-train --doctor: not 6 epochs'
[ "$(grep -c '"event":"finding"' train.jsonl)" -ge 1 ] ||
  fail 'hg-train --doctor: no finding in the JSON'
"$train" --data hub.h5 --model gcn --epochs 6 --doctor >out 2>err </dev/null ||
  fail 'hg-train --doctor, healthy: not exit code 0'
if grep -q 'is bad' out; then fail 'hg-train --doctor: a finding in a healthy run'; fi
contains 'hg-train --doctor, healthy' out 'headroom *[0-9.]* bits at least: .* of every step'
contains 'hg-train --doctor, healthy' out \
  'none of 6 steps went bad, and 5 of them, replayed op by op,'
# It finds faults that leave the loss finite, too: a sum of 50,000 ones that is 2048.
name='hg-train --doctor, finite loss'
"$train" --data star.h5 --model gin --precision fp16-naive --hidden 8 --dropout 0 --epochs 5 \
  --doctor --json finite.jsonl >out 2>err </dev/null || fail "$name: not exit code 0"
contains "$name" out 'epoch 1 (step 0), replayed op by op, is wrong although its loss is finite'
contains "$name" out 'swamping'
contains "$name" finite.jsonl '"event":"finding".*"cause":"swamping"'
contains "$name" finite.jsonl '"event":"summary".*"verdict":"findings"'

# From a checkpoint, hg-doctor makes the steps that hg-train would make, with the same numbers.
"$train" --data data.h5 --model gin --epochs 12 --seed 5 --json - 2>/dev/null |
  sed -n 's/.*"epoch".*"loss":\([^,]*\),.*/\1/p' | tail -n 4 >all_losses
"$train" --data data.h5 --model gin --epochs 8 --seed 5 --save eight.h5 >out 2>err ||
  fail 'checkpoint: hg-train failed'
run 0 checkpoint --data data.h5 --model gin --seed 5 --steps 4 --checkpoint eight.h5 --json \
  checkpoint.jsonl --html checkpoint.html
sed -n 's/.*"event":"step".*"loss":\([^,]*\),.*/\1/p' checkpoint.jsonl >losses
cmp all_losses losses || fail 'checkpoint: the losses differ from those of hg-train'
contains checkpoint checkpoint.jsonl '"event":"step","step":8,'
shows checkpoint checkpoint.html 'step 8'
refused 'a checkpoint of another model' 'eight.h5' --data data.h5 --model gin --hidden 32 \
  --checkpoint eight.h5
refused 'no checkpoint' 'data.h5' --data data.h5 --model gin --checkpoint data.h5
echo kept >kept.jsonl
refused 'a checkpoint of another model, a report that was there' 'eight.h5' --data data.h5 --model \
  gin --hidden 32 --checkpoint eight.h5 --json kept.jsonl --html kept.html
[ "$(cat kept.jsonl)" = kept ] || fail 'a run that did not begin: the old JSON was overwritten'
refused 'a checkpoint of another model, a new report' 'eight.h5' --data data.h5 --model gin \
  --hidden 32 --checkpoint eight.h5 --json none.jsonl --html none.html
for left in none.* kept.html; do
  [ ! -e "$left" ] || fail "a run that did not begin: $left was created"
done
run 0 'a report over an older one' --data data.h5 --model gcn --steps 1 --json kept.jsonl
lines 'a report over an older one' kept.jsonl 1
refused 'the checkpoint as a page' '--html eight.h5 is the checkpoint to begin from' --data \
  data.h5 --model gin --checkpoint eight.h5 --html eight.h5

# ---- interrupts and errors of files ----

# After Ctrl-C, the reports contain the steps so far, and the exit code is 130.
interrupt interrupt INT '[ -s long.jsonl ]' --data data.h5 --model gcn --steps 10000000 --json \
  long.jsonl --html long.html
tail -n 1 long.jsonl >last
contains interrupt last '"verdict":"interrupted"'
contains interrupt out 'Interrupted. Nothing was wrong'
shows interrupt long.html Interrupted

# Ctrl-C works before the end of the first step, too. Its replay takes long because the graph is
# large.
"$convert" --synthetic planted --nodes 30000 --features 64 --seed 2 -o large.h5 >/dev/null ||
  fail 'large: no graph'
interrupt 'interrupt before a step' INT '[ -e early.jsonl ]' --data large.h5 --model gin --steps \
  10000000 --json early.jsonl
contains 'interrupt before a step' early.jsonl '"verdict":"interrupted"'
contains 'interrupt before a step' out 'Interrupted\. '
[ ! -s err ] || fail 'interrupt before a step:' "$(cat err)"

# If standard output cannot be written, one line reports it and the exit code is 1.
lost() { # NAME ARGS...
  name=$1
  shift
  "$doctor" "$@" >&- 2>err </dev/null
  [ $? -eq 1 ] || fail "$name: closed standard output: not exit code 1"
  contains "$name" err 'cannot write to standard output'
  [ "$(wc -l <err)" -eq 1 ] || { fail "$name: not one line:"; cat err; }
}
lost help --help
lost report --data data.h5 --model gcn --steps 2

# A full disk is an error, and the old page stays: there is no truncated page.
if [ -c /dev/full ]; then
  run 1 'full disk' --data data.h5 --model gcn --steps 3 --json /dev/full
  contains 'full disk' err '/dev/full: '
  "$doctor" --data data.h5 --model gcn --steps 100000000 --json - >/dev/full 2>err </dev/null
  [ $? -eq 1 ] || fail 'JSON to a full standard output: not exit code 1'
fi
echo kept >full.html
(
  ulimit -f 4
  "$doctor" --data data.h5 --model gcn --steps 3 --html full.html
) >out 2>err </dev/null
[ $? -eq 1 ] || fail 'no room for the page: not exit code 1'
contains 'no room for the page' err 'full.html: cannot be written: File too large'
[ "$(cat full.html)" = kept ] || fail 'no room for the page: the old page was overwritten'
for left in *.tmp; do
  [ ! -e "$left" ] || fail "temporary file $left was left behind"
done

[ $failures -eq 0 ] && echo 'ok       hg_doctor'
exit $((failures > 0))
