#!/bin/sh
# Device memory of runs as the summary tells it: usage: memory.sh HG-TRAIN H5CONVERT DIRECTORY.
set -u
train=$1 convert=$2 dir=$3
mkdir -p "$dir"
cd "$dir" || exit 1
failures=0
rm -f ./*.h5 ./*.jsonl

# peak OPTIONS...: bytes, of a run of two epochs
peak() {
  "$train" --data planted.h5 --device cpu --epochs 2 "$@" --json run.jsonl >/dev/null 2>err ||
    cat err >&2
  sed -n 's/.*"event":"summary".*"peak_bytes":\([0-9]*\).*/\1/p' run.jsonl
}

"$convert" --synthetic planted --nodes 20000 --features 64 --seed 1 -o planted.h5 >out || exit 1

# Half precision halves the state tensors, and what stays for the observer does not take it back:
# with all options as they are, GIN takes at most 0.6 of fp32's memory.
half=$(peak --model gin)
single=$(peak --model gin --precision fp32)
echo "gin, fp16 $half, fp32 $single: $(awk "BEGIN { print $half / $single }")"
[ $((10 * ${half:-9})) -le $((6 * ${single:-0})) ] || {
  echo "FAILED   gin in fp16 takes more than 0.6 of fp32's memory"
  failures=1
}
exit $failures
