#!/bin/sh
# Find lines of more than 100 columns (a tab counts 4) in C and CUDA sources. Usage: columns.sh
# DIRECTORY. Prints each line and exits with 1 if there is one. clang-format breaks code at 100
# columns but leaves comments alone.
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
