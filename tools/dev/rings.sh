#!/bin/sh
# Find dependency cycles between object files. Usage: rings.sh BUILD-DIRECTORY. Prints each cycle in
# src/ in which every file needs a symbol of the next, and exits with 1 if there is one. The CPU
# kernels are compiled once per instruction set; only the generic copy is checked.
set -eu
[ $# -eq 1 ] || {
  echo "usage: rings.sh BUILD-DIRECTORY" >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find "$1/src" -name '*.c.o' ! -path '*hg_cpu_avx*' -exec nm -A -P {} + |
  sed 's|^.*/CMakeFiles/hg_[a-z0-9_]*\.dir/||; s|\.c\.o:||' >"$work/symbols"
[ -s "$work/symbols" ] || {
  echo "rings.sh: no objects below $1/src: build first" >&2
  exit 2
}
# One line "user definer" for every symbol that one file uses and another one defines.
awk '$3 ~ /^[TDRB]$/ { maker[$2] = $1 } $3 == "U" { user[++n] = $1; name[n] = $2 }
     END { for (i = 1; i <= n; i++)
             if (name[i] in maker && maker[name[i]] != user[i]) print user[i], maker[name[i]] }' \
  "$work/symbols" | sort -u >"$work/pairs"
if tsort "$work/pairs" >/dev/null 2>"$work/loops"; then
  echo "no rings among $(cut -d' ' -f1 "$work/symbols" | sort -u | wc -l) files"
  exit 0
fi
awk '/loop/ { printf "%sring:", n++ ? "\n" : ""; next } { printf " %s", $NF } END { print "" }' \
  "$work/loops"
exit 1
