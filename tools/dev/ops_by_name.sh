#!/bin/sh
# Find code outside src/autograd/ops that compares an op with one named op. Usage: ops_by_name.sh
# DIRECTORY. Other code reads an op's record instead, so that a new op needs no line elsewhere.
# Prints each comparison and exits with 1 if there is one.
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
found=$(grep -rnE '[=!]= *&hg__op_|&hg__op_[a-z0-9_]+ *[=!]=' src |
  grep -v '^src/autograd/ops/') || :
[ -z "$found" ] || {
  echo "$found"
  exit 1
}
