# Shared by quickstart.sh and test.sh, which source it: find missing packages, install them or print
# how to, choose the backend, run commands with progress.

say() {
  printf '%s\n' "$*"
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# What to look for, a program or a header, and the Debian/Ubuntu package that contains it.
hg_needs='
cc:gcc
make:make
cmake:cmake
ninja:ninja-build
pkg-config:pkg-config
hdf5.h:libhdf5-dev
cblas.h:libopenblas-openmp-dev
jansson.h:libjansson-dev
yaml.h:libyaml-dev
zip.h:libzip-dev
zlib.h:zlib1g-dev
'

hg_any() { # does one of these files exist?
  for file in "$@"; do
    [ -e "$file" ] && return 0
  done
  return 1
}

# Any OpenBLAS that cmake/HgOpenBLAS.cmake finds is accepted, with header and library. Tests set
# hg_root.
hg_root=${hg_root:-}
hg_has() {
  include=$hg_root/usr/include own=$hg_root/usr/local lib=$hg_root/usr/lib
  case $1 in
    cblas.h)
      hg_any "$include"/*/openblas-*/cblas.h "$include"/*/cblas.h "$include"/openblas*/cblas.h \
        "$include"/cblas.h "$own"/include/cblas.h "$own"/include/openblas*/cblas.h &&
        hg_any "$lib"/*/openblas-*/libopenblas.so "$lib"/*/libopenblas.so \
          "$lib"*/libopenblas.so "$own"/lib*/libopenblas.so
      ;;
    hdf5.h)
      hg_any "$include/hdf5.h" "$include/hdf5/serial/hdf5.h" "$include"/*/hdf5.h \
        "$own/include/hdf5.h"
      ;;
    *.h) hg_any "$include/$1" "$include"/*/"$1" "$own/include/$1" ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

# Does this compiler have OpenMP, header and library? (Debian's clang alone does not.)
hg_has_openmp() {
  folder=$(mktemp -d)
  printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' >"$folder/try.c"
  "$1" -fopenmp "$folder/try.c" -o "$folder/try" >/dev/null 2>&1
  found=$?
  rm -rf "$folder"
  return $found
}

# hg_install [EXTRA...]: install missing packages; EXTRA entries look like those of hg_needs.
hg_install() {
  missing=
  for need in $hg_needs "$@"; do
    hg_has "${need%%:*}" || missing="$missing ${need#*:}"
  done
  [ -z "$missing" ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    die "these are missing; install what your system calls them:$missing
       (a C17 compiler, CMake >= 3.22, Ninja, HDF5 >= 1.10, OpenBLAS, OpenMP, Jansson, libyaml,
       libzip, zlib, each with its headers)"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    die "packages are missing. Type this, then run this script again:

    sudo apt-get update && sudo apt-get install -y$missing
"
  fi
  say "installing:$missing"
  log=$(mktemp)
  # shellcheck disable=SC2086
  if ! { apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } \
    >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install:$missing"
  fi
  rm -f "$log"
}

# Preset cuda if there is a GPU and a CUDA compiler, else cpu.
hg_preset() {
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
  if [ -n "$nvcc" ] && command -v nvidia-smi >/dev/null 2>&1 &&
    nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo cuda
  else
    echo cpu
  fi
}

# hg_run WHAT COMMAND...: run quietly and print the time; print the output if the command fails.
hg_run() {
  what=$1
  shift
  log=$(mktemp)
  begin=$(date +%s)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "$what failed: $*"
  fi
  rm -f "$log"
  say "$what: $(($(date +%s) - begin)) s"
}

# hg_watch WHAT COMMAND...: hg_run that also shows how much ninja has done, in place on a terminal,
# else after every tenth.
hg_watch() {
  what=$1
  shift
  log=$(mktemp)
  begin=$(date +%s)
  { "$@" 2>&1 || : >"$log.failed"; } | hg_count "$what" "$log"
  if [ -e "$log.failed" ]; then
    cat "$log" >&2
    rm -f "$log" "$log.failed"
    die "$what failed: $*"
  fi
  rm -f "$log"
  say "$what: $(($(date +%s) - begin)) s"
}

# hg_count WHAT LOG: copy standard input to LOG, and show the progress in "[done/all] ...".
hg_count() {
  tenth=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$2"
    case $line in
      "["[0-9]*/*[0-9]"] "*) ;;
      *) continue ;;
    esac
    done=${line%%/*} all=${line#*/}
    done=${done#"["} all=${all%%"]"*}
    if [ -t 1 ]; then
      printf '\r%s: %d of %d \033[K' "$1" "$done" "$all"
    elif [ $((10 * done / all)) -gt $tenth ]; then
      tenth=$((10 * done / all))
      say "$1: $done of $all"
    fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
}

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
