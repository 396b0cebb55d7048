#!/bin/sh
# The published figures, on the published splits: usage: figures.sh HG-TRAIN H5CONVERT DIRECTORY [SEEDS]. Needs HG_DATA (see data/FORMAT.md), else exits with 77.
#
#     GCN   Cora >= 81.0, Citeseer >= 70.0   (Kipf, Welling 2017: 81.5, 70.3)
#     GAT   Cora >= 82.0, Citeseer >= 71.0   (Velickovic et al. 2018: 83.0 +- 0.7, 72.5 +- 0.7)
#     GCN, GAT, GIN: fp16 within 0.3 points of fp32 on the same seeds
set -u
train=$1 convert=$2 dir=$3 seeds=${4:-10}
if [ -z "${HG_DATA:-}" ]; then
  echo 'Skipped: HG_DATA does not name the directory of the datasets'
  exit 77
fi
mkdir -p "$dir"
cd "$dir" || exit 1
failures=0

accuracy() { # DATASET MODEL PRECISION: test accuracy in percent, mean of the seeds
  "$train" --data "$1.h5" --model "$2" --precision "$3" --seeds "$seeds" --json - 2>/dev/null | sed -n 's/.*"event":"summary".*"test_accuracy_mean":\([^,]*\),.*/\1/p' |
    awk '{ printf "%.2f", 100 * $1 }'
}

check() { # DATASET MODEL LEAST
  half=$(accuracy "$1" "$2" fp16) single=$(accuracy "$1" "$2" fp32)
  verdict=$(awk -v h="$half" -v s="$single" -v least="$3" 'BEGIN { d = h - s; good = h != "" && s != "" && h >= least && d <= 0.3 && d >= -0.3; print good ? "ok" : "FAILED" }')
  printf '%-8s %-9s %s  fp16 %6s  fp32 %6s  (at least %s, difference at most 0.3)\n' "$verdict" "$1" "$2" "$half" "$single" "$3"
  [ "$verdict" = ok ] || failures=$((failures + 1))
}

for dataset in cora citeseer; do
  "$convert" --from npz "$HG_DATA/raw/planetoid_npz/$dataset.npz" -o $dataset.h5 >/dev/null || exit 1
done
check cora gcn 81.0
check citeseer gcn 70.0
check cora gat 82.0
check citeseer gat 71.0
check cora gin 70.0
exit $((failures > 0))
