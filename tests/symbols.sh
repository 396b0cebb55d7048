#!/bin/sh
# What the libraries show to a program that links them. Usage: symbols.sh SOURCE CORE.so DATA.so
# CORE.a. The shared libraries export exactly the functions that the public headers declare; the
# static one defines no global name without the prefix; memory is taken from the system only by
# the files named here; nothing exits, aborts or prints. Exits with 77 without nm.
set -eu
[ $# -eq 4 ] || {
  echo "usage: symbols.sh SOURCE CORE.so DATA.so CORE.a" >&2
  exit 2
}
command -v nm >/dev/null || {
  echo "Skipped: there is no nm"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
differ() {
  if ! diff "$1" "$2" >"$work/diff"; then
    echo "$3 (<: $4, >: $5):"
    cat "$work/diff"
    bad=1
  fi
}
# The name that stands before the first parenthesis of a declaration.
cat "$1"/include/halfgraph/*.h | awk '/^HG_API /{ on = 1; text = "" }
  on { text = text " " $0; if (/\(/) { sub(/\(.*/, "", text); sub(/.*[ *]/, "", text)
       print text; on = 0 } }' | sort -u >"$work/declared"
[ "$(wc -l <"$work/declared")" -gt 100 ] || {
  echo "symbols.sh: only $(wc -l <"$work/declared") declarations found in the headers" >&2
  exit 1
}
for library in "$2" "$3"; do
  [ -n "$library" ] && nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' |
    sed 's/@.*//'
done | sort -u >"$work/exported"
if [ -n "$3" ]; then
  differ "$work/declared" "$work/exported" "exports" declared exported
else
  comm -13 "$work/declared" "$work/exported" >"$work/more"
  differ /dev/null "$work/more" "exports" "" "exported, not declared"
fi
nm -g --defined-only "$4" | awk 'NF == 3 { print $3 }' |
  grep -v '^hg_\|^\.gomp_critical_user_hg_\|^DW\.ref' | sort -u >"$work/other" || true
differ /dev/null "$work/other" "the static library" "" "global names without the prefix"
# open: the backend's own memory and the default of the allocator; the others are functions without
# a context (metrics, class weights, states, orders of host arrays): docs/embedding.md names them.
printf '%s\n' backend.c class_weights.c memory.c metric_classes.c metric_ranking.c state.c work.c \
  >"$work/may"
nm -A "$4" | sed -n 's/^.*[:[]\([a-z0-9_]*\.c\)\.o\]*: *U \(.*\)$/\1 \2/p' >"$work/used"
awk '$2 ~ /^(malloc|calloc|realloc|aligned_alloc|posix_memalign|strn?dup|asprintf)$/ { print $1 }' \
  "$work/used" | sort -u >"$work/takes"
differ "$work/may" "$work/takes" "memory from the system" expected found
awk '$2 ~ /^(exit|_exit|abort|printf|puts|putchar|perror|std(out|err)|setenv|signal|sigaction)$/' \
  "$work/used" | sort -u >"$work/speaks"
differ /dev/null "$work/speaks" "exits or prints" "" found
[ "$bad" -eq 0 ] || exit 1
echo "$(wc -l <"$work/exported") functions are exported, all of them declared"
