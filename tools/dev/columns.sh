#!/bin/sh
# Lines of more than 100 columns in C and CUDA sources (a tab counts 4): usage: columns.sh DIRECTORY.
# Prints each and exits 1 if there is one. clang-format breaks code there; comments it leaves alone.
set -eu
[ $# -eq 1 ] || {
  echo "usage: columns.sh DIRECTORY" >&2
  exit 2
}
cd "$1"
found=$(find include src data tools tests -type f \
  \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' \) -exec \
  awk '{ gsub(/\t/, "    ") } length > 100 { print FILENAME ":" FNR ": " length " columns" }' {} +)
[ -z "$found" ] || {
  echo "$found"
  exit 1
}
