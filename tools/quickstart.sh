#!/bin/sh
# From a fresh clone to a trained GNN: install missing packages, build, and train a GCN in three
# precisions on a graph on which naive half precision fails. A second run only repeats the training.
set -eu
cd "$(dirname "$0")/.."
. tools/setup.sh

hg_install
preset=$(hg_preset)
hg_run "configure ($preset)" cmake --preset "$preset" -DHG_WERROR=OFF
hg_watch "build" cmake --build --preset "$preset" -j "$jobs" --target h5convert hg-train hg-doctor
bin=build/$preset/bin
out=out/quickstart
mkdir -p "$out"

# Features and their means over neighbours stay below 100 in magnitude, but the sum over thousands
# of neighbours of a hub exceeds 65504, the largest number in fp16.
if [ ! -f "$out/planted.h5" ]; then
  hg_run "make the graph" "$bin/h5convert" --synthetic planted --nodes 12000 \
    --classes 8 --features 64 --degree 12 --hubs 16 --hub-degree 5000 --scale 24 --seed 1 \
    -o "$out/planted.h5"
fi
"$bin/h5convert" --inspect "$out/planted.h5"

say ""
say "Training a 2-layer GCN (mean aggregation, hidden 64, 60 epochs) in three precisions ..."
for precision in fp32 fp16-naive fp16; do
  "$bin/hg-train" --data "$out/planted.h5" --model gcn --norm right --layers 2 --hidden 64 \
    --epochs 60 --seed 1 --precision "$precision" \
    --json "$out/$precision.jsonl" >"$out/$precision.txt" ||
    [ $? -eq 3 ] # nothing was learnt, which is what fp16-naive shows
done

cat "$out/fp32.jsonl" "$out/fp16-naive.jsonl" "$out/fp16.jsonl" | awk -f tools/compare.awk

say ""
say "The programs are in $bin. To build the benchmark hg-bench, too:"
say "  cmake --build --preset $preset --target hg-bench"
say "To call h5convert, hg-train and hg-doctor without a path:"
say "  export PATH=\"\$PATH:$PWD/$bin\""
