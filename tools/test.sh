#!/bin/sh
# All tests: Release with gcc, Debug with address and undefined-behaviour sanitizers, and (where clang is installed) clang. With a GPU, both backends.
# Real datasets are used if HG_DATA names their directory (see data/FORMAT.md); otherwise those tests say "Skipped".
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

hg_install
preset=$(hg_preset)

hg_run "configure (asan)" cmake --preset asan
hg_run "build (asan)" cmake --build --preset asan -j "$jobs"
say "testing (asan) ..."
ctest --preset asan -LE slow --quiet -O build/asan/ctest.log || { cat build/asan/ctest.log; die "the tests under the sanitizers failed"; }
tail -n 4 build/asan/ctest.log

if command -v clang >/dev/null 2>&1; then
  hg_run "configure (clang)" cmake --preset clang
  hg_run "build (clang)" cmake --build --preset clang -j "$jobs"
else
  say "clang is not installed: its build is skipped"
fi

hg_run "configure ($preset)" cmake --preset "$preset"
hg_run "build ($preset)" cmake --build --preset "$preset" -j "$jobs"
ctest --preset "$preset"
