#!/bin/sh
# Runs the commands that README.md shows: usage: readme_commands.sh README.md BIN-DIRECTORY SCRATCH.
# Those are the blocks after a line "<!-- run -->". hg-doctor must end with 3, which README says of
# findings; every other command must end with 0. The two commands at the beginning of README are run
# by continuous integration itself.
set -eu
[ $# -eq 3 ] || {
  echo "3 arguments, not $#"
  exit 1
} # files are removed below
readme=$1 bin=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
# A command that README breaks into several lines is on one line here.
awk '/^<!-- run -->/ { want = 1; next }
     want && /^```sh/ { inside = 1; next }
     /^```/ { inside = want = 0 }
     inside { if (sub(/ *\\$/, " ")) printf "%s", $0; else print }' "$readme" >"$scratch/commands"
[ "$(wc -l <"$scratch/commands")" -ge 4 ] || {
  echo "README.md: fewer than 4 commands after <!-- run -->"
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
# The first line of the last command is the one that README shows.
grep -q '^fp16 overflow while summing .* neighbours of node .* Fix: --precision fp16$' last || {
  head -3 last
  echo "FAILED   hg-doctor's first line is another than README's"
  exit 1
}
