#!/bin/sh
# The example that predicts: usage: example_predict.sh EXAMPLE H5CONVERT HG-TRAIN DIRECTORY. It must
# give the accuracy of the training and a line for each node, and name a file that is no model.
set -eu
[ $# -eq 4 ] || {
  echo "4 arguments, not $#"
  exit 1
} # files are removed below
example=$1 convert=$2 train=$3 dir=$4
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
"$convert" --synthetic planted --nodes 500 --hubs 2 --hub-degree 100 -o planted.h5 >/dev/null
"$train" --data planted.h5 --model gcn --epochs 20 --save-best gcn.h5 >trained
"$example" gcn.h5 planted.h5 classes.csv >out
found=$(awk '/^test accuracy/ { print $3 }' out)
awk -v found="$found" '/test accuracy/ { same = sprintf("%.1f", $3) == found }
  END { exit !same }' trained || {
  cat trained out
  echo 'FAILED   another accuracy than that of the training'
  exit 1
}
[ "$(wc -l <classes.csv)" -eq 501 ] || {
  echo "FAILED   $(wc -l <classes.csv) lines for 500 nodes"
  exit 1
}
if "$example" planted.h5 planted.h5 out.csv 2>err; then
  echo 'FAILED   a dataset is no model'
  exit 1
fi
grep -q planted.h5 err
