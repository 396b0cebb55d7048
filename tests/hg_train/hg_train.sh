#!/bin/sh
# The command line of hg-train: usage: hg_train.sh HG-TRAIN H5CONVERT DIRECTORY. Everything is written below DIRECTORY.
set -u
train=$1 convert=$2 dir=$3
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
failures=0

fail() {
  echo "FAILED   $*"
  failures=$((failures + 1))
}

# run CODE NAME ARGS...: exit code as promised; out and err keep what was printed.
run() {
  code=$1 name=$2
  shift 2
  "$train" "$@" >out 2>err </dev/null
  found=$?
  [ "$found" -eq "$code" ] || { fail "$name: exit code $found, expected $code"; cat err; }
}

contains() { # NAME FILE TEXT
  grep -q -e "$3" "$2" || { fail "$1: '$3' is not in $2:"; head -n 5 "$2"; }
}

# A refusal: code 2, one line on standard error that names the matter, nothing on standard output.
refused() { # NAME TEXT ARGS...
  name=$1 text=$2
  shift 2
  run 2 "$name" "$@"
  contains "$name" err "$text"
  [ "$(wc -l <err)" -eq 1 ] || { fail "$name: not one line:"; cat err; }
  [ ! -s out ] || fail "$name: printed to standard output"
}

"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 --hub-degree 100 --scale 1 --seed 3 -o data.h5 >/dev/null || exit 1

run 0 help --help
contains help out 'usage: hg-train'
contains help out 'h5convert'
contains help out '--weight-decay X'
run 0 version --version
contains version out '[0-9]\.[0-9]'

refused 'no arguments' '--data is missing'
refused 'no model' '--model is missing' --data data.h5
refused 'unknown option' "'--modle'" --modle gcn
refused 'stray word' "'data.h5'" data.h5
refused 'missing value' '--model needs a value' --data data.h5 --model
refused 'unknown model' 'gcn|gin|gat' --data data.h5 --model mlp
refused 'unknown precision' 'fp16-naive' --data data.h5 --model gcn --precision fp8
refused 'not a number' '--lr' --data data.h5 --model gcn --lr fast
refused 'half a number' '--epochs' --data data.h5 --model gcn --epochs 10x
refused 'out of range' '--dropout' --data data.h5 --model gcn --dropout 1
refused 'empty choice' '--device' --data data.h5 --model gcn --device ''
refused 'value for a flag' '--help=yes' --help=yes
refused 'no such file' 'absent.h5' --data absent.h5 --model gcn --json none.jsonl
[ ! -e none.jsonl ] || fail 'no such file: a JSON file was left behind'
echo 'not a dataset' >text.h5
refused 'not HDF5' 'text.h5' --data text.h5 --model gcn
refused 'JSON into a missing directory' 'missing/x.jsonl' --data data.h5 --model gcn --json missing/x.jsonl

for model in gcn gin gat; do
  for precision in fp32 fp16 fp16-naive; do
    run 0 "$model $precision" --data data.h5 --model $model --precision $precision --device cpu --epochs 12 --seed 4 --json -
    mv out json
    [ "$(wc -l <json)" -eq 13 ] || fail "$model $precision: $(wc -l <json) JSON lines for 12 epochs"
    [ "$(grep -c '^{.*}$' json)" -eq 13 ] || fail "$model $precision: a line is not an object"
    tail -n 1 json >last
    contains "$model $precision" last '^{"event":"summary"'
    for field in model:\"$model\" precision:\"$precision\" device:\"cpu\" test_accuracy_mean: test_accuracy_std: epoch_ms_median: peak_bytes: state_bytes: \
      steps_skipped: loss_scale_final: loss_finite: 'seeds:\[{"seed":4,'; do
      contains "$model $precision" last "\"${field%%:*}\":${field#*:}"
    done
    contains "$model $precision" err 'test accuracy' # the summary for people makes room for the JSON
  done
done

# Quiet when piped; the summary on standard output; JSON in a file.
run 0 'two seeds' --data=data.h5 --model=gcn --epochs=20 --seeds=2 --json=two.jsonl --no-self-loops --norm right --sparse-features on
[ ! -s err ] || fail 'piped: something on standard error'
contains 'two seeds' out 'over 2 seeds'
[ "$(grep -c '"event":"epoch"' two.jsonl)" -eq 40 ] || fail 'two seeds: not 40 epochs in the file'
contains 'two seeds' two.jsonl '"seed":1,"epoch":20,'
run 0 plan --data data.h5 --model gat --epochs 1 --print-plan
contains plan out 'edge_softmax'
run 0 patience --data data.h5 --model gcn --epochs 3000 --patience 4 --lr 0.5 --json patience.jsonl
[ "$(wc -l <patience.jsonl)" -lt 3001 ] || fail 'patience: ran to the end'

# The same seed, the same numbers.
for k in 1 2; do
  run 0 repeat --data data.h5 --model gat --epochs 15 --seed 9 --json -
  grep epoch out | sed 's/"epoch_ms[a-z_]*":[^,]*,//' >repeat$k
done
cmp repeat1 repeat2 || fail 'repeat: two runs differ'

# Ctrl-C: the summary so far and code 130.
"$train" --data data.h5 --model gcn --epochs 10000000 --json long.jsonl >out 2>err &
child=$!
tries=0
until [ -s long.jsonl ] || [ $tries -ge 300 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
kill -INT $child
wait $child
found=$?
[ $found -eq 130 ] || fail "interrupt: exit code $found, expected 130"
tail -n 1 long.jsonl >last
contains interrupt last '"event":"summary"'
contains interrupt last '"interrupted":true'
contains interrupt out 'interrupted'

# A full disk is an error, not a short file.
if [ -c /dev/full ]; then
  run 1 'full disk' --data data.h5 --model gcn --epochs 3 --json /dev/full
  contains 'full disk' err '/dev/full'
fi

[ $failures -eq 0 ] && echo 'ok       hg_train'
exit $((failures > 0))
