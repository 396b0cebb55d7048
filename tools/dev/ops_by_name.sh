#!/bin/sh
# Tests by the name of an op outside src/autograd/ops: usage: ops_by_name.sh DIRECTORY. An op's record
# says what others need to know of it, so nobody else compares with one op. Prints each comparison
# and exits 1 if there is one.
set -eu
[ $# -eq 1 ] || {
  echo "usage: ops_by_name.sh DIRECTORY" >&2
  exit 2
}
cd "$1"
[ -f src/autograd/ops/spmm.c ] || {
  echo "ops_by_name.sh: $1 has no src/autograd/ops" >&2
  exit 2
}
found=$(grep -rnE '[=!]= *&hg__op_|&hg__op_[a-z0-9_]+ *[=!]=' src | grep -v '^src/autograd/ops/') || :
[ -z "$found" ] || {
  echo "$found"
  exit 1
}
