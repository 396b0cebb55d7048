#!/bin/sh
# Measures attention, and training epochs of models with attention, on one GPU beside PyTorch
# Geometric and PyTorch:
#
#     sh tools/peers/figures.sh BUILD/bin/hg-bench FIGURES.jsonl [PART...]
#
# Parts, in the order of their importance, with the seconds that they took or are estimated to take
# on an H200 with 16 cores (most of the time of the last ones is torch.compile's):
#
#     attention   40   hg-bench attention: scores, widths and heads on six graphs
#     epochs      20   hg-bench epoch: GAT on large graphs, and a step on Cora's shape
#     training    60   hg-bench epoch in the setting of DF-GNN's training script
#     peers      150   PyTorch Geometric and PyTorch: attention of a batch and of a large graph
#     compiled   130   PyTorch Geometric compiled: the setting of DF-GNN's training script
#     models      50   PyTorch Geometric: GAT on large graphs, and on Cora's shape
#     dropout     30   hg-bench attention with weights dropped
#     more       120   attention of the peers on the other graphs
#     full        40   hg-bench attention in fp32
#
# Every command has a limit on its time and appends lines as it goes, so a run that is cut off still
# leaves results: tools/hg-bench/table.py makes tables of what is there. Without a part all run.
# PYTHON names the interpreter with torch and torch_geometric (python3).
[ $# -ge 2 ] || {
	sed -n '2,24s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
bench=$1 to=$2
shift 2
here=$(dirname "$0")
begin=$(date +%s)
export PYTHONWARNINGS=ignore
# What runs at most $1 seconds; a command that fails is told, and the next one runs.
within() {
	limit=$1
	shift
	timeout -k 5 "$limit" "$@" >/dev/null
	code=$?
	echo "$(($(date +%s) - begin)) s: exit code $code: $*" >&2
}
own() {
	limit=$1
	shift
	within "$limit" "$bench" "$@" --device cuda --repeat 5 --json "$to"
}
attention() {
	limit=$1
	shift
	within "$limit" "${PYTHON:-python3}" "$here/attention.py" "$@" --repeat 3 --device cuda \
		--json "$to"
}
epochs() {
	limit=$1
	shift
	within "$limit" "${PYTHON:-python3}" "$here/pyg_epoch.py" "$@" --epochs 5 --warmup 2 \
		--device cuda --json "$to"
}

batches='pattern-like cluster-like voc-like coco-like'
citations='cora-like citeseer-like pubmed-like'
# The setting of DF-GNN's training scripts: eight layers, 64 columns, one head, 64 dense features.
setting='--features 64 --hidden 64 --layers 8 --heads 1'

part_attention() {
	own 60 attention --graph reddit-like --features 64
	own 60 attention --graph pattern-like --features 128
	own 60 attention --graph products-like --features 64
	own 30 attention --graph molecules-4k --features 128
	own 60 attention --graph proteins-like --features 64 --score add,dot
	own 60 attention --graph ppa-like --features 64 --score add,dot
}
part_epochs() {
	own 60 epoch --graph reddit-like --model gat --precision fp16,fp32
	own 60 epoch --graph products-like --model gat --precision fp16,fp32
	own 30 step --graph cora-like --model gat --precision fp16,fp32
}
part_training() {
	for model in gt gat agnn; do
		for graph in $batches $citations; do
			# shellcheck disable=SC2086
			own 20 epoch --graph "$graph" --model $model --precision fp16,fp32 $setting
		done
	done
}
part_peers() {
	attention 90 --graph pattern-like --features 128 --peer pyg,sdpa
	attention 60 --graph pattern-like --features 128 --peer pyg-compiled --precision amp
	attention 60 --graph reddit-like --features 64 --peer pyg --precision amp --form coo
	attention 60 --graph reddit-like --features 64 --peer pyg-compiled --precision amp
	attention 40 --graph pattern-like --features 128 --score dot --peer flex
}
part_compiled() {
	# shellcheck disable=SC2086
	epochs 180 --graph "$(echo $batches $citations | tr ' ' ,)" --model gt,gat,agnn \
		--precision all --form none --compile $setting
}
part_models() {
	epochs 60 --graph reddit-like --model gat --precision all --compile
	epochs 40 --graph products-like --model gat --precision all --compile
	epochs 30 --graph cora-like --model gat --precision all --compile
}
part_dropout() {
	own 60 attention --graph reddit-like --features 64 --dropout 0.6
	own 60 attention --graph products-like --features 64 --dropout 0.6
	own 30 attention --graph pattern-like --features 128 --dropout 0.6
}
part_more() {
	attention 60 --graph products-like --features 64 --peer pyg-compiled,pyg --precision amp \
		--form coo
	attention 60 --graph molecules-4k --features 128 --peer pyg,sdpa,pyg-compiled --precision amp
	attention 50 --graph proteins-like --features 64 --score add,dot --peer pyg,pyg-compiled \
		--precision amp --form coo
	attention 50 --graph ppa-like --features 64 --score add,dot --peer pyg,pyg-compiled \
		--precision amp --form coo
	attention 60 --graph reddit-like --features 64 --heads 8 --score add,dot,add-v2 --peer pyg \
		--precision amp --form coo --dropout 0.6
	attention 40 --graph molecules-4k --features 128 --score dot --peer flex
}
part_full() {
	own 60 attention --graph reddit-like --features 64 --precision fp32
	own 60 attention --graph pattern-like --features 128 --precision fp32
	own 60 attention --graph products-like --features 64 --precision fp32
}

[ $# -gt 0 ] ||
	set -- attention epochs training peers compiled models dropout more full
for part; do
	case $part in
	attention | epochs | training | peers | compiled | models | dropout | more | full)
		"part_$part"
		;;
	*)
		echo "figures.sh: there is no part \"$part\"" >&2
		exit 2
		;;
	esac
done
