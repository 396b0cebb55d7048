#!/bin/sh
# Whether programs of the last release still run with this library. Usage:
#
#     abi.sh check SOURCE CC     compares the public headers with tests/abi/release.txt
#     abi.sh bless SOURCE CC     makes this version the last release: part of releasing it
#     abi.sh self-test SOURCE CC  shows that the comparison finds what it is for
#
# Before version 1 a minor version may break programs and a patch may not; from 1 on only a major
# version may. While the version is still that of the release, breaks are listed, since the next
# version is not chosen yet; a version that must not have them is refused.
#
# The headers are compared, not the libraries. abidiff needs the debug information of both builds,
# so the last release would have to be built once more, and it calls a member at the end of a struct
# a break, which is none where structs carry their size; compare.awk knows that. tests/symbols.sh
# compares what the libraries export with the headers.
set -eu
[ $# -eq 3 ] || {
  sed -n '2,6p' "$0" >&2
  exit 2
}
here=$2/tests/abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# $1: a folder with halfgraph/*.h. All of them are read.
declarations() {
  for header in "$1"/halfgraph/*.h; do
    echo "#include <halfgraph/$(basename "$header")>"
  done >"$work/all.c"
  $CC -std=c17 -E -I"$1" "$work/all.c" >"$work/all.i"
  awk -f "$here/declarations.awk" "$work/all.i" | LC_ALL=C sort -u
}
version_of() {
  awk '/define HG_VERSION_(MAJOR|MINOR|PATCH) / { v = v "." $3 }
       END { print "version " substr(v, 2) }' "$1/halfgraph/version.h"
}
series() { # of a version: what may not break within
  echo "$1" | awk '{ split($2, v, "."); print v[1] == 0 ? "0." v[2] : v[1] }'
}
CC=$3
case $1 in
bless)
  { version_of "$2/include" && declarations "$2/include"; } >"$work/new"
  mv "$work/new" "$here/release.txt"
  echo "recorded $(wc -l <"$here/release.txt") declarations of $(head -1 "$here/release.txt")"
  ;;
check)
  declarations "$2/include" >"$work/now"
  [ "$(wc -l <"$work/now")" -gt 300 ] || {
    echo "abi.sh: only $(wc -l <"$work/now") declarations found" >&2
    exit 1
  }
  released=$(head -1 "$here/release.txt")
  current=$(version_of "$2/include")
  awk -f "$here/compare.awk" "$here/release.txt" "$work/now" >"$work/broken"
  count=$(wc -l <"$work/broken")
  if [ "$count" -eq 0 ]; then
    echo "programs of $released run with this library"
  elif [ "$(series "$released")" != "$(series "$current")" ]; then
    echo "$count declarations differ from $released, as $current may"
  elif [ "$released" = "$current" ]; then
    cut -c 1-100 "$work/broken"
    echo "$count declarations differ from $released: the next release begins a new series"
  else
    cat "$work/broken"
    echo "$count declarations differ from $released, which $current must not: begin a new series"
    exit 1
  fi
  ;;
self-test)
  mkdir -p "$work/h/halfgraph"
  cat >"$work/h/halfgraph/a.h" <<'C'
typedef enum kind { KIND_A = 0, KIND_B = 1 } kind;
typedef struct plain { int x; } plain;
typedef struct sized { size_t size; int x; } sized;
typedef struct inner { size_t size; int x; } inner;
typedef struct outer { size_t size; inner part; int y; } outer;
__attribute__((visibility("default"))) int call(int x, void (*f)(int));
C
  declarations "$work/h" >"$work/record"
  while IFS='|' read -r what edit expected; do
    mkdir -p "$work/t/halfgraph"
    sed "$edit" "$work/h/halfgraph/a.h" >"$work/t/halfgraph/a.h"
    declarations "$work/t" >"$work/now"
    found=$(awk -f "$here/compare.awk" "$work/record" "$work/now" | wc -l)
    [ "$found" -eq "$expected" ] || {
      echo "self-test: $what: $found breaks, expected $expected" >&2
      exit 1
    }
    echo "ok       $what: $found"
  done <<'T'
nothing|s/nothing//|0
a function more|$ a int more(void);|0
an enumerator more|s/KIND_B = 1/KIND_B = 1, KIND_C = 2/|0
a member at the end|/sized/s/int x;/int x; int y;/|0
another attribute|s/default/hidden/|0
a function less|/call/d|1
another argument|s/int call(int x/int call(long x/|1
an enumerator has another value|s/KIND_B = 1/KIND_B = 2/|1
a member of another type|/sized/s/int x/long x/|1
a member in the middle|/sized/s/int x/int y; int x/|1
a member of a struct without a size|/plain/s/int x;/int x; int y;/|1
a member of a struct within another|/ inner {/s/int x;/int x; int y;/|1
a type less|/plain/d|1
T
  ;;
*)
  echo "abi.sh: $1, expected check, bless or self-test" >&2
  exit 2
  ;;
esac
