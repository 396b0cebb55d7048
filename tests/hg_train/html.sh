#!/bin/sh
# The pages and the trace of hg-train. usage: html.sh HG-TRAIN H5CONVERT DIRECTORY DATASETS PAGE
# CHECKER SCHEMA (the programs of datasets.c, ../hg_doctor/page.c and ../hg_doctor/schema.c, and
# docs/json-lines.schema.json). Everything is written below DIRECTORY.
set -u
[ $# -eq 7 ] || { echo "7 arguments, not $#"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3 datasets=$4 page=$5 checker=$6 schema=$7
tool=$train refusal=2
. "$(dirname "$0")/../tool.sh"
. "$(dirname "$0")/../browser.sh"
fitting=$(cd "$(dirname "$0")/.." && pwd)/fits.html
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 100 --scale 1 --seed 3 -o data.h5 >/dev/null || exit 1
"$datasets" . || exit 1

# The page is well-formed and needs no other file. Pictures shrink with the window, and a browser,
# if there is one, shows that the page fits.
shows() { # NAME FILE TEXT
  [ -e "$2" ] || { fail "$1: there is no page"; return; }
  "$page" "$2" 2>fault || fail "$1: $(cat fault)"
  contains "$1" "$2" "$3"
  grep -o '<svg [^>]*>' "$2" >svgs
  if grep -v -e viewBox -e 'width="14"' -e 'width="22"' svgs; then
    fail "$1: a picture that cannot shrink"
  fi
  if grep -e 'width="[5-9][0-9][0-9]"' -e 'width="1[0-9][0-9][0-9]"' svgs | grep -v only-wide; then
    fail "$1: a picture too wide for a telephone"
  fi
  [ -z "$browser" ] || fits "$1" "$2"
}

# The text of a page without its tags and entities, one cell or paragraph a line.
words_of() {
  sed -e 's/<\/\(td\|th\|h1\|h2\|h3\|div\|p\|dd\|dt\|span\|b\)>/\n/g' "$1" |
    sed -e 's/<[^>]*>//g' -e 's/&#8239;//g' -e 's/&#177;/+-/g'
}

# ---- one run ----

run 0 'a page' --data data.h5 --model gcn --epochs 30 --loss-scale 8388608 --html run.html \
  --json run.jsonl --trace run.json --save run.state
[ ! -s err ] || fail 'a page: something on standard error:' "$(cat err)"
shows 'a page' run.html 'prefers-color-scheme:dark'
"$checker" "$schema" run.jsonl 2>fault || fail "a page: JSON not as documented: $(cat fault)"
tail -n 1 run.jsonl >last
# The page does not change the run.
run 0 'no page' --data data.h5 --model gcn --epochs 30 --loss-scale 8388608 --json plain.jsonl \
  --save plain.state
for file in run plain; do
  sed 's/"epoch_ms[a-z_]*":[^,]*,//; s/"peak_bytes":[^,]*,//; s/"config":{[^}]*},*//' $file.jsonl
done >both
[ "$(sort both | uniq -c | awk '$1 == 2' | wc -l)" -ge 31 ] || fail 'a page: it changes the results'
cmp -s run.state plain.state || fail 'a page: it changes the state that is saved'

# Every epoch of the table is one of the JSON lines, and the other way round.
value=':\([^,]*\),.*'
sed -n "s/.*\"epoch\"$value\"loss\"$value\"val_metric\"$value\"test_metric\"$value\
\"loss_scale\"$value\"applied\"$value/\\1 \\2 \\3 \\4 \\5 \\6/p" run.jsonl |
  awk '{ printf "%d %.6g %.6g %.6g %.6g %s\n", $1, $2, $3, $4, $5, $6 }' >told
grep '^<tr><td>[0-9]*</td><td>.*class="text"' run.html |
  sed -e 's/<td class="text"><\/td>/ true/' -e 's/<td class="text">.*/ false/' -e 's/<[^>]*>/ /g' |
  awk '{ print $1, $2, $4, $5, $6, $8 }' >shown
[ "$(wc -l <told)" -eq 30 ] || fail "epochs: $(wc -l <told) in the JSON"
cmp -s told shown || fail 'epochs: the page has others:' "$(diff told shown | head -n 4)"

# The outcome is that of the summary.
field() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" last; }
words_of run.html >words
percent() { field "$1" | awk '{ printf "%.2f %%", 100 * $1 }'; }
contains outcome words "^Test accuracy $(percent test_accuracy_mean)"
contains outcome words "^$(percent val_accuracy)"
contains outcome words "^epochs, $(field steps_skipped) skipped"
[ "$(field steps_skipped)" -gt 0 ] || fail 'outcome: no step was skipped'
contains 'skipped steps' run.html 'class="skip"'
contains settings words '^learning rate'
contains settings words '^both' # norm, among all settings

# Rows and right ones of the classes: all test rows, and the test accuracy.
sed -n '/<table class="num classes/,/<\/table>/p' run.html >classes
counts=$(sed -n 's/.*<td>all<.*<td>\([0-9]*\)<\/td><td>\([0-9]*\)<\/td><\/tr>.*/\1 \2/p' classes)
echo "$counts" | awk -v told="$(field test_accuracy_mean)" \
  '{ exit !($1 > 0 && ($2 / $1 - told) ^ 2 < 1e-12) }' ||
  fail "classes: $counts right, test accuracy $(field test_accuracy_mean)"
grep '<tr><td>[0-3]</td>' classes | sed 's/<[^>]*>/ /g' |
  awk '{ rows += $5; right += $6; if (($3 - $6 / $5) ^ 2 > 3e-7) bad = 1
         f = 2 * $2 * $3 / ($2 + $3); if (($4 - f) ^ 2 > 3e-6) bad = 1 }
       END { print rows, right; exit bad }' >sums || fail 'classes: recall or F1'
[ "$(cat sums)" = "$counts" ] || fail "classes: they add up to $(cat sums), not $counts"
sed -n '/<table class="matrix/,/<\/table>/p' run.html | grep -o '>[0-9]*</td>' | tr -dc '0-9\n' |
  awk '{ sum += $1 } END { print sum }' >sums
[ "$(cat sums)" = "${counts% *}" ] || fail "matrix: $(cat sums) rows, not $counts"

# Every op of the plan has a row with its time, and the shares add up.
sed -n '/<table class="num times/,/<\/table>/p' run.html | sed 's/<wbr\/>//g' >times
for op in conv0/linear conv1/linear softmax_xent; do contains times times "<td>$op</td>"; done
grep -o '<td>[0-9.]* %</td><td><span' times | tr -dc '0-9.\n' |
  awk '{ sum += $1 } END { exit !(sum > 98 && sum < 102) }' || fail 'times: shares do not add up'
contains headroom run.html '<h2>Headroom of every tensor</h2>'
contains headroom run.html 'gradient of conv0'
contains trace run.json '^{"displayTimeUnit":"ns","traceEvents":\['
[ "$(grep -c '"cat":"backward","ph":"X","pid":1,"tid":1' run.json)" -ge 4 ] ||
  fail 'trace: fewer than 4 ops backward'
if command -v python3 >/dev/null; then
  python3 -c 'import json; json.load(open("run.json"))' 2>fault ||
    fail "trace: $(tail -n 1 fault)"
fi

# ---- other tasks, several seeds ----

run 0 labels --data pairs_of_labels.h5 --model gin --epochs 6 --seeds 3 --html labels.html \
  --json labels.jsonl
shows labels labels.html '<h2>3 seeds</h2>'
[ "$(grep -c '^<tr><td>[01]</td>' labels.html)" -ge 2 ] || fail 'labels: not a row for each'
tail -n 1 labels.jsonl >last
words_of labels.html >words
mean=$(awk -v m="$(field test_metric_mean)" -v d="$(field test_metric_std)" \
  'BEGIN { printf "%.4g +- %.4g", m, d }')
contains 'mean of the seeds' words "^$mean\$"
contains 'mean of the seeds' words "^Test ROC-AUC $mean\$"
run 0 numbers --data numbers.h5 --model gcn --epochs 6 --html numbers.html --json numbers.jsonl
shows numbers numbers.html 'Histogram of the errors'
contains numbers numbers.html 'Predicted values beside the true ones'
tail -n 1 numbers.jsonl >last
sed -n '/<table class="num targets/,/<\/table>/p' numbers.html | grep '^<tr><td>[01]<' |
  sed 's/<[^>]*>/ /g' | awk -v told="$(field test_metric_mean)" \
  '{ sum += $2 } END { exit !(NR == 2 && (sum / 2 - told) ^ 2 < 1e-6 * told ^ 2) }' ||
  fail 'numbers: their mean |error| is not the MAE'
for dataset in one_node one_class star no_test pairs; do
  run 0 "page of $dataset" --data $dataset.h5 --model gin --epochs 3 --hidden 8 --html odd.html
  shows "page of $dataset" odd.html '</html>'
done
run 3 'a bad run' --data data.h5 --model gcn --epochs 30 --lr 1000000 --precision fp32 \
  --html bad.html
shows 'a bad run' bad.html 'class="badge bad">'

# ---- folds ----

"$convert" data.h5 --split folds:3 --quiet -o folds.h5 || exit 1
run 0 folds --data folds.h5 --model gcn --epochs 8 --folds --device cpu --html folds.html \
  --json folds.jsonl
shows folds folds.html '<h2>3 folds</h2>'
tail -n 1 folds.jsonl >last
memory=$(field peak_bytes)
run 0 'folds, no page' --data folds.h5 --model gcn --epochs 8 --folds --device cpu \
  --json plain.jsonl
tail -n 1 plain.jsonl >last
[ "$(field peak_bytes)" = "$memory" ] || fail "folds: the page takes memory of the run: $memory"
contains 'folds, times' folds.html '<h2>Where the time goes</h2>'
tail -n 1 folds.jsonl >last
choice() { # FIGURE KEY: in percent
  sed "s/.*\"$1\":{\([^}]*\)}.*/\1/; s/.*\"$2\":\([^,}]*\).*/\1/" last |
    awk '{ printf "%.2f %%", 100 * $1 }'
}
# cells FILE CLASS: the rows of a table, with blanks between the cells
cells() {
  sed -n "/<table class=\"num $2\"/,/<\/table>/p" "$1" | grep '^<tr><td>' |
    sed -e 's/&#177;/+-/g; s/<small>[^<]*<\/small>//g; s/<[^>]*>/ /g' -e 's/  */ /g; s/^ //; s/ $//'
}
cells folds.html choices >choices
for figure in own_epochs one_epoch; do
  contains $figure choices \
    "^$(echo $figure | tr _ ' ') $(choice $figure mean) $(choice $figure std_over_folds) "
done
words_of folds.html >words
deviation=$(choice own_epochs std_over_folds)
contains 'folds, title' words \
  "^Test accuracy $(choice own_epochs mean) +- ${deviation% *} over folds\$"
grep '"event":"run"' folds.jsonl |
  sed "s/.*\"epochs\"$value\"best_epoch\"$value\"val_metric\"$value\"test_metric\"$value\
\"fold\"$value/\5 \1 \2 \3 \4/" |
  awk '{ printf "%d %d %d %.2f %% %.2f %%\n", $1, $2, $3, 100 * $4, 100 * $5 }' >expected
cells folds.html folds | sed 's/\(%.*%\).*/\1/' >found
cmp -s expected found || fail 'folds: the table differs from the lines:' "$(diff expected found)"
[ "$(wc -l <found)" -eq 3 ] || fail "folds: $(wc -l <found) rows"
[ "$(grep -c 'Every epoch of fold [0-2] of seed 0 as a table' folds.html)" -eq 3 ] ||
  fail 'folds: not a table of epochs for each'

run 0 'folds and seeds' --data folds.h5 --model gcn --epochs 4 --folds --seeds 2 --device cpu \
  --validate held-out --html both.html --json both.jsonl
shows 'folds and seeds' both.html '<h3>each seed</h3>'
tail -n 1 both.jsonl >last
cells both.html choices >choices
over_seeds=$(choice one_epoch std_over_seeds)
contains 'folds and seeds' choices \
  "^one epoch $(choice one_epoch mean) $(choice one_epoch std_over_folds) $over_seeds\$"
epochs=$(sed 's/.*"epochs":\[\([0-9,]*\)\].*/\1/' last | tr ',' ' ')
[ "$(cells both.html seeds | sed 's/.* //' | tr '\n' ' ')" = "$epochs " ] ||
  fail "folds and seeds: not the epochs $epochs:" "$(cells both.html seeds)"
[ "$(cells both.html folds | wc -l)" -eq 3 ] || fail 'folds and seeds: not a row for each fold'
contains 'folds and seeds' both.html 'it validates, and nothing tests'

# Each fold has curves of its own beside another run.
run 0 'compare folds' --html pair.html --compare folds.jsonl run.jsonl
shows 'compare folds' pair.html '<h2>Settings that differ</h2>'
cells pair.html outcomes | grep 'folds.jsonl' | grep -q ' 3 24 ' ||
  fail 'compare folds: not 3 runs with 24 epochs:' "$(cells pair.html outcomes)"

# ---- hostile names ----

hostile='<script>"x"&'\''.h5'
cp star.h5 "$hostile" # it has no name of its own
run 0 'hostile name' --data "$hostile" --model gat --epochs 3 --hidden 8 --html hostile.html \
  --json "$hostile.jsonl"
shows 'hostile name' hostile.html '<p class="lead">gat.* on &lt;script&gt;&quot;x&quot;&amp;&#39;'
"$checker" "$schema" "$hostile.jsonl" 2>fault || fail "hostile name: JSON: $(cat fault)"

# ---- several runs ----

run 0 'another run' --data data.h5 --model gin --epochs 12 --seeds 2 --json gin.jsonl
run 0 compare --html compare.html --compare run.jsonl gin.jsonl "$hostile.jsonl"
[ ! -s out ] || fail 'compare: printed something'
shows compare compare.html '<h2>Settings that differ</h2>'
contains 'compare, hostile name' compare.html '&lt;script&gt;&quot;x&quot;&amp;&#39;.h5.jsonl'
words_of compare.html >words
contains compare words '^model.name'
for file in run gin "$hostile"; do
  tail -n 1 "$file.jsonl" >last
  contains "compare $file" words \
    "^$(percent test_metric_mean)"
done
awk '/^train.epochs$/ { on = 1; next } on && NF { print; n++ } n == 3 { exit }' words |
  tr '\n' ' ' >epochs
[ "$(cat epochs)" = '30 12 3 ' ] || fail "compare: epochs are $(cat epochs)"
sed '/summary/d' run.jsonl >open.jsonl
run 0 'a run that is not over' --html open.html --compare open.jsonl gin.jsonl
shows 'a run that is not over' open.html 'not over'
grep -v '"settings"' run.jsonl >old.jsonl
tail -n 1 run.jsonl | sed -e 's/"settings":{[^}]*},//' -e 's/"data":"[^"]*",//' >>old.jsonl
run 0 'lines without settings' --html old.html --compare old.jsonl gin.jsonl
shows 'lines without settings' old.html '<tr><td>layers'

# ---- mistakes ----

refused 'one run to compare' 'takes 2 to 8 files, found 1' --html x.html --compare run.jsonl
refused 'too many runs' 'takes 2 to 8 files, found more' --html x.html --compare a b c d e f g h i
refused 'no page to write' '--compare needs --html' --compare run.jsonl gin.jsonl
refused 'training while comparing' '--epochs is of no use to --compare' --html x.html --epochs 3 \
  --compare run.jsonl gin.jsonl
refused 'runs without --compare' 'unexpected argument "run.jsonl"' --html x.html run.jsonl gin.jsonl
refused 'no such run' 'absent.jsonl: cannot be read: No such file' --html x.html --compare \
  run.jsonl absent.jsonl
echo '{"event":"epoch"' >cut.jsonl
refused 'not JSON' 'cut.jsonl: line 1 is not a JSON object' --html x.html --compare run.jsonl \
  cut.jsonl
echo '[1]' >list.jsonl
refused 'not an object' 'list.jsonl: line 1 is not a JSON object' --html x.html --compare \
  run.jsonl list.jsonl
: >nothing.jsonl
refused 'no epochs' 'nothing.jsonl: holds no epoch of a run' --html x.html --compare run.jsonl \
  nothing.jsonl
refused 'a directory' '\.: cannot be read' --html x.html --compare run.jsonl .
refused 'a run as the page' '--html gin.jsonl is one of the runs to compare' --html gin.jsonl \
  --compare run.jsonl gin.jsonl
[ ! -e x.html ] || fail 'mistakes: a page was written'
refused 'the dataset as the page' '--html data.h5 is the dataset itself' --data data.h5 \
  --model gcn --html data.h5
refused 'a page on standard output' '--html is "-", expected the name of a file' --data data.h5 \
  --model gcn --html -
refused 'a page into a missing folder' 'missing/x.html: cannot be written' --data data.h5 \
  --model gcn --html missing/x.html
refused 'a trace into a missing folder' 'missing/x.json: cannot be written' --data data.h5 \
  --model gcn --trace missing/x.json
refused 'one file for both' '--trace ./both.x is also the file of --html' --data data.h5 \
  --model gcn --html both.x --trace ./both.x
refused 'a page without training' '--html is an option of the training' --evaluate data.h5 \
  --checkpoint run.state --html x.html

# A full disk is an error, and the old page stays.
echo kept >full.html
(
  ulimit -f 8
  "$train" --data data.h5 --model gcn --epochs 2 --html full.html >out 2>err </dev/null
)
[ $? -eq 1 ] || fail 'no room for the page: not exit code 1'
contains 'no room for the page' err 'full.html: cannot be written'
[ "$(cat full.html)" = kept ] || fail 'no room for the page: the old page was overwritten'

# An interrupt ends the training, and the page is about what was done.
: >busy.jsonl
interrupt 'interrupted' INT '[ "$(grep -c epoch busy.jsonl)" -ge 3 ]' --data data.h5 --model gcn \
  --epochs 1000000 --html stopped.html --json busy.jsonl
shows interrupted stopped.html 'Interrupted after epoch'
contains interrupted stopped.html '>interrupted</span>'

[ "$failures" -eq 0 ] || exit 1
echo 'the pages of hg-train are what its JSON lines say'
