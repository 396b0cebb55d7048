#!/bin/sh
# Runs the commands that README.md shows: usage: readme_commands.sh README.md BIN-DIRECTORY SCRATCH.
# Those are the blocks behind a line "<!-- run -->". hg-doctor ends with 3 where it finds something,
# and README says so; each other command must end with 0. The two commands of README's beginning are
# what continuous integration itself runs.
set -eu
[ $# -eq 3 ] || {
  echo "3 arguments, not $#"
  exit 1
} # files are removed below
readme=$1 bin=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
# Each command on one line, whatever it was broken into.
awk '/^<!-- run -->/ { want = 1; next }
     want && /^```sh/ { inside = 1; next }
     /^```/ { inside = want = 0 }
     inside { if (sub(/ *\\$/, " ")) printf "%s", $0; else print }' "$readme" >"$scratch/commands"
[ "$(wc -l <"$scratch/commands")" -ge 4 ] || {
  echo "README.md: fewer than 4 commands behind <!-- run -->"
  exit 1
}
cd "$scratch"
PATH=$bin:$PATH
while IFS= read -r command; do
  status=0
  sh -c "$command" >out 2>&1 </dev/null || status=$?
  case $command in
  hg-doctor*) expected=3 ;;
  *) expected=0 ;;
  esac
  [ "$status" -eq "$expected" ] || {
    cat out
    echo "FAILED   $command: exit code $status, expected $expected"
    exit 1
  }
  echo "ok       $command"
  cp out last
done <commands
# What README shows of the last one.
grep -q '^fp16 overflow while summing .* neighbours of node .* Fix: --precision fp16$' last || {
  head -3 last
  echo "FAILED   hg-doctor's first line is another than README's"
  exit 1
}
