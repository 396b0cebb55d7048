#!/bin/sh
# Find lines of more than 100 columns (a tab counts 4) in sources, scripts and pages. Usage:
# columns.sh DIRECTORY. Prints each line and exits with 1 if there is one. clang-format breaks C at
# 100 columns but leaves comments alone, and other files have no formatter at all. Three kinds of
# lines of a page may be longer: rows of a table, lines of a code block, and lines with a link.
set -eu
[ $# -eq 1 ] || {
  echo "usage: columns.sh DIRECTORY" >&2
  exit 2
}
cd "$1"
found=$(find ./*.md CMakeLists.txt .ci cmake include src data docs tools tests -type f \
  \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.def' \
  -o -name '*.sh' -o -name '*.awk' -o -name '*.py' -o -name '*.cmake' -o -name '*.cmake.in' \
  -o -name CMakeLists.txt -o -name run -o -name '*.md' \) -exec awk '
    FNR == 1 { page = FILENAME ~ /\.md$/; block = 0 }
    page && /^ *```/ { block = !block }
    { gsub(/\t/, "    ") }
    page && (block || /^(    |\|)/ || /https?:/) { next }
    length > 100 { print FILENAME ":" FNR ": " length " columns" }' {} +)
[ -z "$found" ] || {
  echo "$found"
  exit 1
}
