#!/bin/sh
# Healthy runs must have no finding: Cora, Citeseer, Amazon Computers and MUTAG with every model.
# Usage: healthy.sh HG-DOCTOR H5CONVERT CMAKE DIRECTORY. HG_DATA is the directory of the
# datasets; without it the test is skipped. HG_STEPS is the number of steps of each run (200; ctest
# sets 25, because a CPU is slower). HG_DEVICE is auto, cpu or cuda.
set -u
[ $# -eq 4 ] || { echo "4 arguments, not $#"; exit 1; } # DIRECTORY is removed below
doctor=$1 convert=$2 cmake=$3 dir=$4
steps=${HG_STEPS:-200}
[ -d "${HG_DATA:-}/raw" ] || { echo "skipped: HG_DATA does not name the real datasets"; exit 77; }
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
"$convert" --from npz "$HG_DATA/raw/planetoid_npz/cora.npz" -o cora.h5 >/dev/null || exit 1
"$convert" --from npz "$HG_DATA/raw/planetoid_npz/citeseer.npz" -o citeseer.h5 >/dev/null || exit 1
"$convert" --from npz "$HG_DATA/raw/gnnbench_npz/amazon_computers.npz" --symmetrize \
  --largest-component -o computers.h5 >/dev/null || exit 1
"$cmake" -E tar xf "$HG_DATA/raw/tu_official/MUTAG.zip" || exit 1
"$convert" --from tu MUTAG/MUTAG_A.txt --fold 0/10 -o mutag.h5 >out || exit 1
grep -q 'mutag.h5: 3371 nodes, 7442 edges, 7 features, 2 classes' out ||
  { echo "MUTAG differs from the published dataset:"; cat out; exit 1; }
models=$("$doctor" --help | sed -n 's/^  --model NAME *the model: //p' | tr -d ,)
failures=0
runs=0
for data in cora citeseer computers mutag; do
  for model in $models; do
    # only MUTAG's edges have labels
    [ $model != gine ] || [ $data = mutag ] || continue
    runs=$((runs + 1))
    "$doctor" --data $data.h5 --model $model --steps "$steps" --device "${HG_DEVICE:-auto}" >out \
      2>&1 </dev/null
    code=$?
    echo "$data $model, $steps steps: exit code $code; $(grep -i -m 1 healthy out)"
    [ $code -eq 0 ] || { failures=$((failures + 1)); sed 's/^/    /' out; }
  done
done
[ $runs -ge 12 ] || { echo "$runs runs: hg-doctor --help lists too few models"; exit 1; }
[ $failures -eq 0 ] || { echo "$failures of $runs runs were not healthy"; exit 1; }
echo "$runs of $runs runs are healthy"
