#!/bin/sh
# Options of hg-train in a file: usage: config.sh HG-TRAIN H5CONVERT DIRECTORY [CHECKER SCHEMA]
# (hg_doctor_schema and docs/json-lines.schema.json). Everything is written below DIRECTORY.
set -u
[ $# -ge 3 ] || { echo "at least 3 arguments, not $#"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3 checker=${4-} schema=${5-}
tool=$train refusal=2
. "$(dirname "$0")/../tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$convert" --synthetic planted --nodes 300 --classes 3 --features 8 --seed 3 --quiet -o data.h5 ||
  exit 1

# numbers FILE: its lines without what differs from run to run
numbers() {
  sed 's/"epoch_ms[a-z_]*":[^,]*,//; s/"config":{[^}]*},*//' "$1"
}

# The file and the command line say the same.
cat >run.json <<'FILE'
{
  "data": "data.h5",
  "model": "gcn", "epochs": 6,
  "lr": 0.02,
  "weight-decay": 1,
  "seeds": 2,
  "device": "cpu",
  "eager": true,
  "print-plan": false,
  "explain": "full"
}
FILE
run 0 'from a file' --config run.json --json file.jsonl --save-config saved.json
mv out file.out
run 0 'from the line' --data data.h5 --model gcn --epochs 6 --lr 0.02 --weight-decay 1 --seeds 2 \
  --device cpu --eager --explain=full --json line.jsonl
grep -v 'epoch  ' file.out >file.text
grep -v 'epoch  ' out | cmp -s - file.text || fail 'from a file: prints something else'
for file in file line; do
  numbers $file.jsonl >$file.numbers
  [ -z "$checker" ] || "$checker" "$schema" $file.jsonl 2>fault ||
    fail "$file: not as documented: $(cat fault)"
done
cmp -s file.numbers line.numbers || fail 'from a file: another run'

# What was written, and the results themselves, repeat the run.
contains 'saved' saved.json '^  "weight-decay": 1.0,$'
contains 'saved' saved.json '^  "explain": "full",*$'
contains 'saved' saved.json '^  "eager": true,$'
if grep -q 'print-plan\|save-config\|"config"' saved.json; then
  fail 'saved: more than was given'
fi
for file in saved.json line.jsonl; do
  run 0 "$file" --config $file --json again.jsonl
  numbers again.jsonl >again.numbers
  cmp -s line.numbers again.numbers || fail "$file: another run"
done
run 0 'saved again' --config saved.json --save-config twice.json
cmp saved.json twice.json || fail 'saved again: another file'

# The command line wins, also under another name of the same option and over flags.
run 0 'the line wins' --config run.json --steps 3 --eager=off --explain=off --seeds 1 --json - \
  --save-config won.json
[ "$(grep -c '"event":"epoch"' out)" -eq 3 ] || fail 'the line wins: not 3 epochs'
contains 'the line wins' won.json '"steps": 3'
if grep -q 'eager\|explain\|"epochs"' won.json; then fail 'the line wins:' "$(cat won.json)"; fi
run 0 'two files of one name' --data data.h5 --model gcn --config run.json --model gat --epochs 2
contains 'two files of one name' out '^gat, '
refused 'off is for flags' '--hidden is "off", expected a whole number' --hidden=off

# Every option of --help can be in a file, but for those of the command line alone.
run 0 help --help
known=$(sed -n 's/^  --*\([a-z][a-z0-9-]*\).*/\1/p' out)
[ "$(echo "$known" | wc -l)" -gt 40 ] || fail 'help: lists too few options'
for name in $known; do
  case $name in h | config | save-config | help | version) continue ;; esac
  printf '{"%s": []}' "$name" >one.json
  refused "$name" "one.json:1:$((${#name} + 6)): \"$name\" is an array, expected" --config one.json
done

# wrong TEXT WHY: this file is refused; in TEXT, \n is a new line
wrong() {
  printf "$1" >wrong.json
  refused "$1" "^hg-train: wrong.json:$2" --config wrong.json
}
wrong '{"data": "data.h5",\n  "hiden": 64}' '2:3: "hiden" is no option: did you mean "hidden"?$'
wrong '{"model": "gcn", "mödel": 1}' '1:18: "m.*del" is no option: did you mean "model"?$'
wrong '{"help": true}' '1:2: "help" is no option'
wrong '{"config": "other.json"}' '1:2: "config" is no option'
wrong '{\n\t"hidden":\n\t\t"64"}' '3:3: "hidden" is a text, expected a whole number$'
wrong '{"hidden": 6.5}' '1:12: "hidden" is a number, expected a whole number$'
wrong '{"lr": null}' '1:8: "lr" is null, expected a number$'
wrong '{"eager": 1}' '1:11: "eager" is a number, expected true or false$'
wrong '{"model": true}' '1:11: "model" is true, expected a text$'
wrong '{"x": {"a": [1, "}"]}, "y": 1}' '1:2: "x" is no option'
wrong '{"data": "a\\"}b", "hidden": {}}' '1:29: "hidden" is an object'
wrong '{"data": ""}' '1:10: "data" is empty: FILE.h5$'
wrong '{"hidden": 0}' '1:12: --hidden is "0", expected a whole number from 1'
wrong '{"precision": "fp8"}' '1:15: --precision is "fp8", expected one of fp16|'
wrong '{"explain": "some"}' '1:13: --explain is "some", expected one of full$'
wrong '{"hidden": 1, "hidden": 2}' '1:.*duplicate object key'
wrong '{"hidden": 1' '1:.*expected near end of file$'
wrong '[]' '1:1: expected an object'
wrong '' '1:1: '
wrong '{"event": "epoch"}\n{"event": "epoch"}\n' '2:1: the last line has no "config"'
wrong '{"event": "epoch"}\n{"config": {"hiden": 1}}\n' '2:1: "hiden" is no option'
refused 'no file' 'absent.json: cannot be read: No such file' --config absent.json
refused 'a folder' '\.: cannot be read' --config .
printf '{"data"\0}' >zero.json
refused 'a byte 0' 'zero.json: holds a byte 0' --config zero.json
printf '{"data": "data.h5"}' >half.json
refused 'missing in the file' '--model is missing' --config half.json
printf '{"data": "data.h5", "model": "gcn", "heads": 2}' >misfit.json
refused 'misfit' '--heads is an option of gat' --config misfit.json
refused 'its own results' '--json line.jsonl is the file of options: it is not overwritten' \
  --config line.jsonl
refused 'its own file' '--save-config run.json is the file of options' --config run.json \
  --save-config run.json
refused 'trains nothing' '--save-config is an option of the training' --evaluate data.h5 \
  --checkpoint x.h5 --save-config never.json
refused 'nowhere' 'cannot be written' --config run.json --save-config missing/x.json
[ ! -e never.json ] || fail 'trains nothing: a file was written'
exit $((failures > 0))
