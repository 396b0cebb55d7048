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

# must_find WHAT HEADER AWK-PROGRAM: the check must refuse the headers when the AWK program has
# changed one of them.
must_find() {
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
# Each of these removes something from one comment.
must_find "a parameter" tape.h '/@param amax/ { getline } { print }'
must_find "a result" graph.h '/@return rows of A/ { print " */"; next } { print }'
must_find "errors" step.h '/@return HG_OK; HG_ERR_ARG .a pointer is NULL, or launch/ {
  print " * @return a status. */"; next } { print }'
must_find "a comment" optim.h \
  '/^\/\*\* Moves a parameter into a group/ { sub(/\*\*/, "*") } { print }'
must_find "a cost" ops.h '/Cost      n k/ { next } { print }'
must_find "an equation" ops_norm.h '/^ \*     L = 1\/q .* count of \(X/ { next } { print }'
