#!/bin/sh
# The example that trains on a file: usage: example_file.sh EXAMPLE H5CONVERT DIRECTORY. It must
# learn on a graph, and name a file that is no dataset.
set -eu
[ $# -eq 3 ] || {
  echo "3 arguments, not $#"
  exit 1
} # files are removed below
example=$1 convert=$2 dir=$3
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
"$convert" --synthetic planted --nodes 2000 --hubs 2 --hub-degree 300 -o planted.h5 >/dev/null
"$example" planted.h5 >out
cat out
awk '/^test accuracy/ { right = $3 > 50 } END { exit !right }' out || {
  echo "FAILED   it learns nothing"
  exit 1
}
for path in absent.h5 "$0"; do
  if "$example" "$path" >out 2>err; then
    echo "FAILED   $path is no dataset"
    exit 1
  fi
  grep -q "$(basename "$path")" err || {
    cat err
    echo "FAILED   $path is not named"
    exit 1
  }
done
