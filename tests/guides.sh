#!/bin/sh
# Runs the commands that the guide pages show: usage: guides.sh DOCS BIN-DIRECTORY SCRATCH.
# Those are the blocks after a line "<!-- run -->", or after "<!-- run: N -->", where each command
# must end with exit code N. The blocks of one page run in one folder, one after the other. A block
# after "<!-- run: bench -->" runs only if hg-bench is built.
set -eu
[ $# -eq 3 ] || {
  echo "3 arguments, not $#"
  exit 1
} # files are removed below
docs=$1 bin=$2 scratch=$3
PATH=$bin:$PATH
ran=0
for page in "$docs"/*.md; do
  name=$(basename "$page" .md)
  rm -rf "${scratch:?}/$name"
  mkdir -p "$scratch/$name"
  cd "$scratch/$name"
  # Prints lines "CODE COMMAND". A command that the page breaks into several lines, after a
  # backslash or within a pipeline, is on one.
  awk '/^<!-- run -->/ { want = 1; code = 0; next }
       /^<!-- run: / { want = 1; code = $3; next }
       want && /^```sh/ { inside = 1; start = 1; next }
       /^```/ { inside = want = 0 }
       inside { if (start) printf "%s ", code
                start = !(sub(/ *\\$/, " ") || sub(/[|] *$/, "| "))
                if (start) print; else printf "%s", $0 }' "$page" >commands
  while read -r expected command; do
    if [ "$expected" = bench ]; then
      [ -x "$bin/hg-bench" ] || continue
      expected=0
    fi
    status=0
    sh -c "$command" >out 2>&1 </dev/null || status=$?
    [ "$status" -eq "$expected" ] || {
      cat out
      printf 'FAILED   %s.md: %s: exit code %s, expected %s\n' "$name" "$command" "$status" \
        "$expected"
      exit 1
    }
    printf 'ok       %s.md: %s\n' "$name" "$command"
    ran=$((ran + 1))
  done <commands
done
[ "$ran" -ge 15 ] || {
  echo "FAILED   $ran commands after <!-- run -->, expected at least 15"
  exit 1
}
