#!/bin/sh
# Every public function states its contract (docs/contracts.awk), and the check finds one that does
# not: usage: contracts.sh SOURCE SCRATCH.
set -eu
[ $# -eq 2 ] || {
  echo "2 arguments, not $#"
  exit 1
} # files are removed below
source=$1 scratch=$2
awk -f "$source/docs/contracts.awk" "$source"/include/halfgraph/*.h

# caught WHAT HEADER AWK-PROGRAM: the headers, with one of them changed, are refused.
caught() {
  rm -rf "$scratch"
  mkdir -p "$scratch"
  cp "$source"/include/halfgraph/*.h "$scratch"
  awk "$3" "$source/include/halfgraph/$2" >"$scratch/$2"
  cmp -s "$scratch/$2" "$source/include/halfgraph/$2" && {
    echo "FAILED   $1: the header is as it was"
    exit 1
  }
  awk -f "$source/docs/contracts.awk" "$scratch"/*.h >"$scratch/out" && {
    echo "FAILED   $1: not found"
    exit 1
  }
  [ "$(wc -l <"$scratch/out")" -eq 1 ] || {
    cat "$scratch/out"
    echo "FAILED   $1: expected one line"
    exit 1
  }
  echo "caught   $(sed 's/^.*: \(.*: .*\)$/\1/' "$scratch/out")"
}
# The first line of a kind goes; a rule without an action prints the line.
caught "a parameter" tape.h '/@param amax/ { getline } { print }'
caught "a result" graph.h '/@return rows of A/ { print " */"; next } { print }'
caught "errors" step.h '/@return HG_OK; HG_ERR_ARG .a pointer is NULL, or launch/ {
  print " * @return a status. */"; next } { print }'
caught "a comment" optim.h '/^\/\*\* Moves a parameter into a group/ { sub(/\*\*/, "*") } { print }'
caught "a cost" ops.h '/Cost      n k/ { next } { print }'
caught "an equation" ops_norm.h '/^ \*     L = 1\/q .* all c of \(X/ { getline; next } { print }'
