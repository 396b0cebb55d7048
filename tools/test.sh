#!/bin/sh
# Run all tests: Debug with the address and undefined-behaviour sanitizers, then Release with gcc,
# with a GPU on both backends. If clang is installed with OpenMP, it compiles and links everything.
# Real datasets are used if HG_DATA names their directory (see data/FORMAT.md); otherwise those
# tests say "Skipped".
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

hg_install
preset=$(hg_preset)

# As many tests run at a time as there are cores, each with two threads, so that teams of threads
# are tested, too; waiting threads sleep. A GPU runs one test at a time.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
at_once=$jobs
[ "$preset" = cpu ] || at_once=1

# The two builds below link some 200 programs each, which lld does in half the time of ld.
linker=
! command -v ld.lld >/dev/null 2>&1 || linker=-fuse-ld=lld

hg_run "configure (asan)" cmake --preset asan -DCMAKE_EXE_LINKER_FLAGS="$linker"
hg_watch "build (asan)" cmake --build --preset asan -j "$jobs"
say "testing (asan) ..."
ctest --preset asan -j "$jobs" -LE slow --quiet -O build/asan/ctest.log || {
  cat build/asan/ctest.log
  die "the tests under the sanitizers failed"
}
tail -n 4 build/asan/ctest.log

if ! command -v clang >/dev/null 2>&1; then
  say "clang is not installed: its build is skipped"
elif ! hg_has_openmp clang; then
  say "clang has no OpenMP here (on Debian: libomp-dev): its build is skipped"
else
  # This build is only for warnings; its programs are not run, so it is not optimised.
  hg_run "configure (clang)" cmake --preset clang -B build/clang-O0 -DCMAKE_C_FLAGS_RELEASE=-O0 \
    -DHG_CPU_FLAGS=-O0 -DCMAKE_EXE_LINKER_FLAGS="$linker"
  hg_watch "build (clang)" cmake --build build/clang-O0 -j "$jobs"
  if grep -q '^HG_HAVE_FUZZER:INTERNAL=1' build/clang-O0/CMakeCache.txt; then
    hg_run "build (fuzzers)" cmake --build build/clang-O0 -j "$jobs" --target fuzzers
  else
    say "clang has no libFuzzer here (on Debian: libclang-rt-dev): fuzzers are skipped"
  fi
fi

# the same configuration as in the quickstart, which may have built most of it
hg_run "configure ($preset)" cmake --preset "$preset" -DHG_WERROR=OFF
hg_watch "build ($preset)" cmake --build --preset "$preset" -j "$jobs"
ctest --preset "$preset" -j "$at_once"
