#!/bin/sh
# Reproduces published accuracies, on the published splits: usage: figures.sh HG-TRAIN H5CONVERT
# DIRECTORY [SEEDS]. Needs HG_DATA (see data/FORMAT.md), else exits with 77.
#
#     GCN   Cora >= 81.0, Citeseer >= 70.0   (Kipf, Welling 2017: 81.5, 70.3)
#     GAT   Cora >= 82.0, Citeseer >= 71.0   (Velickovic et al. 2018: 83.0 +- 0.7, 72.5 +- 0.7)
#     AGNN  Cora >= 81.0, Citeseer >= 70.0   (Thekumparampil et al. 2018: 83.1, 71.7)
#     GATv2 Cora >= 81.0                     (not in Brody, Alon, Yahav 2022; our GAT reaches 82.9)
#     SGC   Cora >= 80.3, Citeseer >= 70.0   (Wu et al. 2019: 81.0 +- 0.0, 71.9 +- 0.1, with a
#                                            weight decay tuned for each)
#     APPNP Cora >= 82.0, Citeseer >= 71.5   (published on other splits: Klicpera et al. 2019)
#     SAGE  Cora >= 80.0                     (published on other data)
#     GCN, GAT      fp16 within 0.3 points of fp32 on the same seeds
#     others        the same, plus two standard errors of that difference: with batch norm on 140
#                   labels every rounding leads to another minimum, and two runs of one seed
#                   differ by 2 points (40 seeds on Cora: fp16 - fp32 = 0.4 +- 0.3)
set -u
train=$1 convert=$2 dir=$3 seeds=${4:-10}
if [ -z "${HG_DATA:-}" ]; then
  echo 'Skipped: HG_DATA does not name the directory of the datasets'
  exit 77
fi
mkdir -p "$dir"
cd "$dir" || exit 1
failures=0

# accuracies DATASET MODEL PRECISION: prints the test accuracy of each seed on a line
accuracies() {
  "$train" --data "$1.h5" --model "$2" --precision "$3" --seeds "$seeds" --json - 2>/dev/null |
    grep '"event":"summary"' |
    sed 's/.*"seeds":\[//; s/\].*//' | tr '{' '\n' | sed -n 's/.*"test_accuracy":\([^,}]*\).*/\1/p'
}

check() { # DATASET MODEL LEAST STANDARD-ERRORS
  accuracies "$1" "$2" fp16 >half
  accuracies "$1" "$2" fp32 >single
  paste half single | awk -v name="$1 $2" -v least="$3" -v errors="$4" -v seeds="$seeds" '
    NF == 2 { n++; h += 100 * $1; s += 100 * $2; d = 100 * ($1 - $2); sum += d; squares += d * d }
    END {
      if (n != seeds || n == 0) { print "FAILED   " name ": " n + 0 " of " seeds " seeds"; exit 1 }
      mean = sum / n
      spread = squares - n * mean * mean
      error = n > 1 && spread > 0 ? sqrt(spread / (n - 1) / n) : 0
      good = h / n >= least && mean * mean <= (0.3 + errors * error) ^ 2
      printf "%-8s %-12s ", good ? "ok" : "FAILED", name
      printf "fp16 %.2f (at least %.1f)  fp32 %.2f  ", h / n, least, s / n
      printf "difference %+.2f, standard error %.2f\n", mean, error
      exit !good
    }' || failures=$((failures + 1))
}

for dataset in cora citeseer; do
  "$convert" --from npz "$HG_DATA/raw/planetoid_npz/$dataset.npz" -o $dataset.h5 >/dev/null ||
    exit 1
done
check cora gcn 81.0 0
check citeseer gcn 70.0 0
check cora gat 82.0 0
check citeseer gat 71.0 0
check cora gin 70.0 2
check cora gatv2 81.0 2
check cora agnn 81.0 2
check citeseer agnn 70.0 2
check cora sage 80.0 2
check cora sgc 80.3 0
check citeseer sgc 70.0 0
check cora appnp 82.0 2
check citeseer appnp 71.5 2
exit $((failures > 0))
