#!/bin/sh
# The checks of a machine by the scripts of tools/: usage: setup.sh SETUP CC DIRECTORY.
# Everything is written below DIRECTORY.
set -u
[ $# -eq 3 ] || { echo "3 arguments, not $#"; exit 1; } # DIRECTORY is removed below
setup=$1 cc=$2 dir=$3
failures=0
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
. "$setup"

fail() {
  echo "FAILED   $*"
  failures=$((failures + 1))
}

# OpenBLAS is found wherever CMake finds it. machine makes a directory that looks like the root of a
# machine with these files.
machine() { # NAME FILE...
  hg_root=$dir/$1
  shift
  for file in "$@"; do
    mkdir -p "$(dirname "$hg_root/$file")"
    : >"$hg_root/$file"
  done
}
found() {
  hg_has cblas.h || fail "OpenBLAS in $hg_root: not found"
}
absent() {
  ! hg_has cblas.h || fail "OpenBLAS in $hg_root: found"
}
for build in openmp pthread serial; do
  machine "debian-$build" "usr/include/x86_64-linux-gnu/openblas-$build/cblas.h" \
    "usr/lib/x86_64-linux-gnu/openblas-$build/libopenblas.so"
  found
done
machine alternatives usr/include/aarch64-linux-gnu/cblas.h usr/lib/aarch64-linux-gnu/libopenblas.so
found
machine fedora usr/include/openblas/cblas.h usr/lib64/libopenblas.so
found
machine own usr/local/include/cblas.h usr/local/lib/libopenblas.so
found
machine empty usr/include/stdio.h
absent
machine headers usr/include/x86_64-linux-gnu/cblas.h usr/lib/x86_64-linux-gnu/libblas.so
absent
machine library usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0
absent
hg_root=

# A compiler without OpenMP, and one with it.
cat >bare <<BARE
#!/bin/sh
case " \$* " in *" -fopenmp "*) echo "omp.h: no such file" >&2; exit 1 ;; esac
exec "$cc" "\$@"
BARE
chmod +x bare
./bare --version >/dev/null || fail 'the bare compiler does not work'
hg_has_openmp "$cc" || fail "OpenMP of $cc: not found"
! hg_has_openmp "$dir/bare" || fail 'OpenMP of a compiler without it: found'
! hg_has_openmp no-such-compiler || fail 'OpenMP of no compiler: found'

# A long build prints its progress. One that fails prints the reason and ends the script.
(hg_watch build sh -c 'for i in 1 2 3 4 5; do echo "[$i/5] Building \\t"; done; echo "not [7/5]"') \
  >out 2>err || fail 'progress: ended'
grep -q '^build: 2 of 5$' out && grep -q '^build: 5 of 5$' out && grep -q '^build: [0-9]* s$' out ||
  fail "progress: $(cat out)"
if grep -q '7 of' out; then fail 'progress: a line that is not about progress'; fi
if (hg_watch build sh -c 'echo "[1/5] Building"; echo "the fault"; exit 3') >out 2>err; then fail \
  'a build that fails: the script did not end'; fi
grep -q '^the fault$' err && grep -q 'error: build failed' err ||
  fail "a build that fails: $(cat err)"

[ $failures -eq 0 ] && echo 'ok       setup'
exit $((failures > 0))
