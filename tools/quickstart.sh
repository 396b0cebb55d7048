#!/bin/sh
# From a fresh clone to a trained GNN: installs what is missing, builds, and trains one GCN three ways on a graph built to break half precision.
# Run it twice if you like; the second time only the training is left to do.
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

# No feature passes 100 in magnitude, nor does any neighbourhood mean; but a hub adds up thousands of them, and 65504 is all fp16 can hold.
if [ ! -f "$out/planted.h5" ]; then
  hg_run "make the graph" "$bin/h5convert" --synthetic planted --nodes 12000 --classes 8 --features 64 --degree 12 --hubs 16 --hub-degree 5000 --scale 24 \
    --seed 1 -o "$out/planted.h5"
fi
"$bin/h5convert" --inspect "$out/planted.h5"

say ""
say "Training a 2-layer GCN (mean aggregation, hidden 64, 60 epochs) in three precisions ..."
for precision in fp32 fp16-naive fp16; do
  "$bin/hg-train" --data "$out/planted.h5" --model gcn --norm right --layers 2 --hidden 64 --epochs 60 --seed 1 --precision "$precision" \
    --json "$out/$precision.jsonl" >"$out/$precision.txt" ||
    [ $? -eq 3 ] # nothing was learnt, which is what fp16-naive shows
done

cat "$out/fp32.jsonl" "$out/fp16-naive.jsonl" "$out/fp16.jsonl" | awk -f tools/compare.awk

say ""
say "The programs are in $bin; hg-bench, which measures, comes with:  cmake --build --preset $preset --target hg-bench"
say "To type h5convert, hg-train and hg-doctor as they are:  export PATH=\"\$PATH:$PWD/$bin\""
