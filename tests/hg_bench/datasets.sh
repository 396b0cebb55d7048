#!/bin/sh
# datasets.sh HG-BENCH H5CONVERT SCRATCH [OPTIONS]: aggregations and dot products on real graphs,
# checked against f64: Cora, Amazon Computers, and COLLAB as one block-diagonal graph; unit weights,
# edge weights, and the best order. Needs HG_DATA (see data/FORMAT.md), else exits with 77. OPTIONS
# are hg-bench's, such as --device cuda --peer cusparse --json gpu.jsonl; without any: the CPU, one
# sample.
set -u
bench=$1 convert=$2 scratch=$3
shift 3
[ $# -gt 0 ] || set -- --device cpu --repeat 1 --features 8,33
if [ -z "${HG_DATA:-}" ]; then
	echo 'Skipped: HG_DATA does not name the directory of the datasets'
	exit 77
fi
mkdir -p "$scratch" || exit 1
raw=$HG_DATA/raw
here=$(dirname "$0")
failed=0

make_graph() { # NAME H5CONVERT'S-ARGUMENTS
	name=$1
	shift
	[ -f "$scratch/$name.h5" ] || "$convert" "$@" --quiet -o "$scratch/$name.h5" || exit 1
}
make_graph cora --from npz "$raw/planetoid_npz/cora.npz"
make_graph computers --from npz "$raw/gnnbench_npz/amazon_computers.npz" --symmetrize
if [ ! -f "$scratch/collab.h5" ] && command -v unzip >/dev/null; then
	unzip -p "$raw/tu_gin/COLLAB.zip" COLLAB/COLLAB.txt |
		awk -f "$here/collab.awk" >"$scratch/collab.txt"
	make_graph collab --from edges "$scratch/collab.txt"
	rm "$scratch/collab.txt"
fi

measure() { # NODES EDGES NAME HG-BENCH'S-ARGUMENTS
	nodes=$1 edges=$2 name=$3
	shift 3
	"$bench" "$@" --graph "$scratch/$name.h5" >"$scratch/out" 2>&1 || { cat "$scratch/out" &&
		failed=1; }
	grep -v "^#" "$scratch/out"
	grep -q "$name.h5: $nodes nodes, $edges edges" "$scratch/out" ||
		{ echo "FAILED: $name has not $nodes nodes, $edges edges" && failed=1; }
}
for facts in "2708 10556 cora" "13752 491722 computers" "372474 24574995 collab"; do
	[ -f "$scratch/${facts##* }.h5" ] || continue
	# shellcheck disable=SC2086
	for way in "spmm" "spmm --weights" "spmm --weights --reorder auto" "sddmm"; do
		measure $facts $way "$@" --precision fp16,fp32
	done
done
exit $failed
