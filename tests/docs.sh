#!/bin/sh
# The reference manual is built without a warning, and doxygen refuses a header whose comments lack
# something: usage: docs.sh SOURCE DOXYFILE DOXYGEN SCRATCH.
set -eu
[ $# -eq 4 ] || {
  echo "4 arguments, not $#"
  exit 1
} # files are removed below
source=$1 doxyfile=$2 doxygen=$3 scratch=$4
rm -rf "$scratch"
mkdir -p "$scratch/include"

# make_manual HEADERS NAME: makes the manual of this copy of include/ in SCRATCH/NAME.
make_manual() {
  { cat "$doxyfile" && echo "OUTPUT_DIRECTORY = \"$scratch/$2\"" &&
    echo "INPUT = \"$1/halfgraph\" \"$source/docs\""; } >"$scratch/Doxyfile"
  "$doxygen" "$scratch/Doxyfile" >"$scratch/$2.log" 2>&1
}
make_manual "$source/include" whole || {
  cat "$scratch/whole.log"
  exit 1
}
for page in index step_8h structhg__policy; do
  [ -s "$scratch/whole/html/$page.html" ] || {
    echo "FAILED   the manual has no page $page.html"
    exit 1
  }
done
echo "ok       the manual"

# must_refuse WHAT HEADER AWK-PROGRAM: doxygen must refuse the headers when the AWK program has
# changed one of them.
must_refuse() {
  rm -rf "$scratch/include/halfgraph"
  cp -r "$source/include/halfgraph" "$scratch/include"
  awk "$3" "$source/include/halfgraph/$2" >"$scratch/include/halfgraph/$2"
  if make_manual "$scratch/include" broken; then
    echo "FAILED   $1: doxygen did not refuse it"
    exit 1
  fi
  said=$(grep -m 1 -E 'warning|error' "$scratch/broken.log" | sed 's/^[^ ]* [a-z]*: //')
  [ -n "$said" ] || {
    cat "$scratch/broken.log"
    echo "FAILED   $1: doxygen ends with an error and does not say which"
    exit 1
  }
  echo "refused  $1: $said"
}
must_refuse "a parameter" tape.h '/@param shift/ { next } { print }'
must_refuse "a member" policy.h '{ sub(/ *\/\*\*< above 1; default 2 \*\//, "") } { print }'
must_refuse "a macro" tape.h '/Room for a tensor.s name/ { next } { print }'
