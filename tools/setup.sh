# Shared by quickstart.sh and test.sh: find out what is missing, install it or say how, choose the backends. Sourced, not run.

say() {
  printf '%s\n' "$*"
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Packages by what they give: a program or a header to look for, and the Debian/Ubuntu package that brings it.
hg_needs='
cc:gcc
make:make
cmake:cmake
ninja:ninja-build
pkg-config:pkg-config
hdf5.h:libhdf5-dev
cblas.h:libopenblas-openmp-dev
jansson.h:libjansson-dev
zip.h:libzip-dev
zlib.h:zlib1g-dev
'

hg_any() { # is one of these a file?
  for file in "$@"; do
    [ -e "$file" ] && return 0
  done
  return 1
}

hg_has() {
  case $1 in
    cblas.h) hg_any /usr/include/*/openblas-openmp/cblas.h /usr/include/openblas/cblas.h /usr/local/include/cblas.h ;;
    hdf5.h) hg_any /usr/include/hdf5.h /usr/include/hdf5/serial/hdf5.h /usr/include/*/hdf5.h /usr/local/include/hdf5.h ;;
    *.h) hg_any "/usr/include/$1" /usr/include/*/"$1" "/usr/local/include/$1" ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

# hg_install [EXTRA...]: EXTRA entries look like the ones above.
hg_install() {
  missing=
  for need in $hg_needs "$@"; do
    hg_has "${need%%:*}" || missing="$missing ${need#*:}"
  done
  [ -z "$missing" ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    die "these are missing; install what your system calls them:$missing
       (a C17 compiler, CMake >= 3.22, Ninja, HDF5 >= 1.10, OpenBLAS, OpenMP, Jansson, libzip, zlib, each with its headers)"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    die "packages are missing. Type this, then run this script again:

    sudo apt-get update && sudo apt-get install -y$missing
"
  fi
  say "installing:$missing"
  log=$(mktemp)
  # shellcheck disable=SC2086
  if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install:$missing"
  fi
  rm -f "$log"
}

# A GPU answers and a CUDA compiler is there: preset cuda, else cpu.
hg_preset() {
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
  if [ -n "$nvcc" ] && command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo cuda
  else
    echo cpu
  fi
}

# hg_run WHAT COMMAND...: quiet unless it fails, with the time it took.
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

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
