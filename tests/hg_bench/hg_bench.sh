#!/bin/sh
# hg_bench.sh HG-BENCH SOURCE SCRATCH H5CONVERT
set -u
[ $# -eq 4 ] || { echo "4 arguments, not $#"; exit 1; } # SCRATCH is removed below
bench=$1 source=$2 scratch=$3 convert=$4
rm -rf "$scratch" && mkdir -p "$scratch" || exit 1
failed=0

fail() {
	echo "FAILED: $*"
	failed=1
}

# expect CODE WORDS ARGUMENTS...: hg-bench must end with this exit code, and print these words
expect() {
	code=$1 words=$2
	shift 2
	"$bench" "$@" >"$scratch/out" 2>&1
	found=$?
	[ $found -eq "$code" ] ||
		fail "hg-bench $*: exit code $found, expected $code: $(tail -n 1 "$scratch/out")"
	grep -q -e "$words" "$scratch/out" ||
		fail "hg-bench $*: no \"$words\" in: $(tail -n 1 "$scratch/out")"
}

fast="--device cpu --threads 2 --repeat 1 --graph tiny"

# Every command runs in every precision.
expect 0 "acc-f16-naive" spmm $fast --variant all --features 8,41 --precision fp16,fp32 --json \
  "$scratch/all.json"
expect 0 "spmm" spmm $fast --weights --norm both --features 16 --precision fp16-discretized --json \
  "$scratch/all.json"
expect 0 "heads do not divide" spmm $fast --heads 1,4 --features 8,18 --variant all --norm both \
  --precision fp16,fp32 --json "$scratch/all.json"
expect 0 "sddmm add" sddmm $fast --features 16 --json "$scratch/all.json"
expect 0 "heads do not divide" sddmm $fast --features 6 --heads 4 --json "$scratch/all.json"
expect 0 "gemm dW" gemm $fast --hidden 16 --precision fp16,fp32 --algorithms --json \
  "$scratch/all.json"
expect 0 "convert .*an edge and orientation" convert $fast --json "$scratch/all.json"
expect 0 "edge-softmax back" edge-softmax $fast --precision fp16,fp32 --json "$scratch/all.json"
# Every score, of operands together and apart, with each edge once and weighted, in both precisions.
expect 0 "attention gathers *6 gathers" attention $fast --features 24 --heads 1,3,5,24 \
  --precision fp16,fp32 --json "$scratch/all.json"
for words in "dot *n/a: the heads do not divide" "cosine *n/a: it has at most 16 heads"; do
	grep -q "attention *$words" "$scratch/out" || fail "attention: no $words"
done
expect 0 "attention  *add-v2 separate dropout 0.4" attention $fast --features 16 --heads 2 \
  --score cosine,add-v2 --separate --weights --dropout 0.4 --json "$scratch/all.json"
expect 0 "optimiser" epoch $fast --model all --hidden 16 --json "$scratch/all.json"
# sums that outgrow fp16 some ten steps on: they are stored rescaled or in f32, as a user gets it,
# and measured then
expect 0 "steps LOST; .* results stored x 2^-k" epoch $fast --model gin --layers 3 --hidden 64 \
  --lambda 200 --json "$scratch/outgrown.json"
expect 0 "sparse features" step --device cpu --threads 2 --repeat 2 --hidden 8 --json \
  "$scratch/all.json"
for pass in forward backward optimiser; do
	grep -q "^pass  *gcn $pass .*% of the step" "$scratch/out" || fail "step: no pass gcn $pass"
done
expect 0 "steps alone .* ms a step; the epoch takes" batches --device cpu --repeat 1 --hidden 8 \
  --graph molecules-4k --batch-size 1000 --precision fp16,fp32 --json "$scratch/all.json"
grep -q "gcn epoch .* 5 steps of up to 1000 graphs" "$scratch/out" || fail "batches: no epoch"
expect 2 "batch-size is for batches, not for step" step --batch-size 8
expect 0 "gcn, 3 together .* times as fast; 2 at once" group --device cpu --threads 2 --repeat 1 \
  --hidden 8 --models 1,3 --json "$scratch/all.json"
expect 0 "gin, 2 together .* times as fast; 1 at once" group $fast --model gin --hidden 8 \
  --models 2 --branches 1 --json "$scratch/all.json"
expect 2 "models is for group, not for step" step --models 8
expect 2 "models.*\"0\"" group --models 0
expect 2 "is one graph: there are no batches" batches $fast
expect 2 "readout" batches --device cpu --graph molecules-4k --readout none
expect 0 "readout" ops $fast --features 8 --precision fp16,fp32 --json "$scratch/all.json"
expect 0 "spmm" spmm --device cpu --repeat 1 --graph molecules-4k --features 8 --json \
  "$scratch/all.json"
expect 0 "order: community.*found in" spmm $fast --features 8 --weights --reorder community --json \
  "$scratch/order.json"
expect 0 "before: *near miss .* tile reuse" sddmm $fast --features 8 --reorder degree --json \
  "$scratch/order.json"
expect 0 "as is: *near miss" spmm $fast --features 8 --reorder original --json "$scratch/order.json"
expect 0 "after: *near miss" epoch $fast --hidden 8 --reorder leading --json "$scratch/order.json"
expect 0 "order: " spmm --device cpu --repeat 1 --graph molecules-4k --features 8 --reorder auto \
  --json "$scratch/order.json"
expect 1 "WRONG RESULT" spmm $fast --features 8 --reorder rcm --spoil
expect 0 "^ \{27\}cora-like; batches: qm9-like)" --help
long=$(awk 'length > 100' "$scratch/out")
[ -z "$long" ] || fail "--help: a line of more than 100 columns: $long"
expect 0 "acc-f32" spmm --variant list
expect 0 "vertex-32" spmm --variant list
expect 0 "auto" spmm $fast --variant vertex-32 --features 8
expect 0 "half8-atomic .*n/a: it needs a GPU" spmm $fast --variant half8-atomic --features 8
expect 0 "half8-f16 " sddmm --variant list
expect 0 "sddmm dot *half2 .*n/a: it needs a GPU" sddmm $fast --variant half2 --features 8
grep -q "sddmm dot *auto" "$scratch/out" || fail "--variant half2: auto is not measured beside it"
grep -q "half4\|sddmm add" "$scratch/out" && fail "--variant half2: more than half2 and auto"
expect 0 "sddmm add" sddmm $fast --variant all --features 8 --precision fp16,fp32 --json \
  "$scratch/all.json"
for name in half half2 half4 half8 half8-f16 tiles; do
	grep -q "sddmm dot *$name *n/a: it needs a GPU" "$scratch/out" ||
		fail "sddmm --variant all: no $name"
done

# a dataset's graph
"$convert" --synthetic planted --nodes 300 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 50 --scale 1 --seed 3 -o "$scratch/data.h5" >/dev/null || fail "h5convert"
expect 0 "data.h5: 300 nodes" spmm --device cpu --repeat 1 --graph "$scratch/data.h5" --features 8 \
  --weights
expect 0 "optimiser" epoch --device cpu --repeat 1 --graph "$scratch/data.h5" --hidden 8

# results are lines of JSON
"$bench" spmm $fast --features 8 --json - >"$scratch/stdout.json" 2>/dev/null || fail "--json -"
if command -v python3 >/dev/null; then
	python3 -c '
import json, sys
for path in sys.argv[1:]:
	rows = [json.loads(line) for line in open(path)]
	assert rows
	for row in rows:
		assert row["op"] and row["commit"] and row["nodes"] > 0, row
		assert row.get("absent") or row["op"] == "memory" or row["ms"] > 0, row
		assert row.get("err_over_bound") is None or row["err_over_bound"] <= 1, row
		measures = ("near_miss", "far_miss", "tile_reuse")
		measured = all(name + when in row for name in measures for when in ("", "_before"))
		assert measured == ("order.json" in path), row
		if row.get("order") == "original":
			assert row["near_miss"] == row["near_miss_before"], row
' "$scratch/all.json" "$scratch/order.json" "$scratch/stdout.json" ||
		fail "the JSON is not what it should be"
	python3 -c '
import json, sys
row = [json.loads(line) for line in open(sys.argv[1])][0]
assert row["op"] == "epoch" and row["loss"] is not None, row
assert 1 <= row["steps_lost"] <= 10 and row["rescaled"] + row["in_f32"] >= 1, row
' "$scratch/outgrown.json" || fail "what overflows is not measured as a user gets it"
	python3 "$source/tools/hg-bench/table.py" "$scratch/all.json" >"$scratch/table.md" ||
		fail "table.py"
	grep -q "^| " "$scratch/table.md" || fail "table.py makes no table"
	gpu='"device": "GPU", "driver": "1", "cuda": "13", "commit": "c"'
	spmm="\"op\": \"spmm\", \"graph\": \"g\", \"features\": 64, \"weights\": 0, $gpu"
	epoch='"op": "epoch", "graph": "g", "features": 64'
	pyg="\"peer\": \"pyg\", $epoch, \"device\": \"GPU\", \"cuda\": \"13\""
	cat >"$scratch/gpu.json" <<-ROWS
		{$spmm, "variant": "gather ceiling", "precision": "f16", "ms": 2.0}
		{$spmm, "variant": "cusparse fp16 ALG2", "precision": "f16", "ms": 9.0}
		{"op": "spmm", "variant": "cusparse fp16 ALG3", "graph": "g", $gpu, "absent": "refused"}
		{$spmm, "variant": "auto", "precision": "fp16", "ms": 7.0, "err_over_bound": 0.5}
		{$spmm, "variant": "auto", "precision": "fp16", "ms": 3.0, "err_over_bound": 0.5}
		{$epoch, $gpu, "variant": "gcn", "precision": "fp16", "ms": 10.0, \
		  "peak_bytes": 1073741824, "steps_lost": 3}
		{$pyg, "variant": "gcn csr", "precision": "fp32", "ms": 80.0, "peak_bytes": 8589934592}
		{$pyg, "variant": "gcn coo", "precision": "amp", "absent": "out of memory"}
		{$epoch, $gpu, "variant": "gcn", "precision": "fp16", "ms": 4.0, "layers": 8}
		{$pyg, "variant": "gcn coo compiled", "precision": "fp32", "ms": 50.0, "layers": 8}
		{$pyg, "variant": "gcn coo compiled", "precision": "amp", "ms": 40.0, "layers": 8}
	ROWS
	# Forward and backward take 2 and 4 ms here, and 60 and 12 ms at the best in PyTorch.
	dot='"graph": "g", "features": 64, "heads": 8, "device": "GPU", "cuda": "13"'
	own="$dot, \"driver\": \"1\", \"commit\": \"c\", \"err_over_bound\": 0.5"
	own="$own, \"precision\": \"fp16\", \"peak_beyond_inputs_bytes\": 268435456"
	both="\"op\": \"attention both\", $dot"
	cat >>"$scratch/gpu.json" <<-ROWS
		{$own, "op": "attention", "variant": "dot", "ms": 2.0, "over_gather": 1.25}
		{$own, "op": "attention back", "variant": "dot", "ms": 4.0, "over_gather": 1.5}
		{$own, "op": "attention", "variant": "dot dropout 0.5", "dropout": 0.5, "ms": 1.0, \
		  "over_gather": 1.0}
		{$both, "peer": "pyg", "variant": "dot TransformerConv coo", "precision": "fp32", \
		  "ms": 90.0, "peak_beyond_inputs_bytes": 1073741824}
		{$both, "peer": "pyg", "variant": "dot TransformerConv csr compiled", "precision": "amp", \
		  "ms": 60.0, "peak_beyond_inputs_bytes": 2147483648}
		{$both, "peer": "pyg", "variant": "dot TransformerConv csr dropout 0.5", "dropout": 0.5, \
		  "precision": "amp", "ms": 1.0}
		{$both, "peer": "torch", "variant": "dot SDPA", "precision": "fp16", "ms": 12.0}
		{$both, "peer": "torch", "variant": "dot FlexAttention", "precision": "fp16", \
		  "absent": "out of memory"}
	ROWS
	# All nine pairs of a graph and a width take twice the time of the ceiling. That is half of the
	# time of the peer for unit weights, and a third of it for other weights.
	for graph in reddit-like products-like kron-21; do
		for width in 32 64 128; do
			for weights in 0 1; do
				ceiling=$((width + weights))
				common="\"op\": \"spmm\", \"graph\": \"$graph\", \"features\": $width"
				common="$common, \"weights\": $weights, $gpu"
				cat <<-ROWS
					{"variant": "gather ceiling", "precision": "f16", "ms": $ceiling, $common}
					{"variant": "auto", "precision": "fp16", "ms": $((2 * ceiling)), $common}
					{"variant": "cusparse fp32 ALG2", "precision": "f32", \
					  "ms": $((ceiling * (4 + 2 * weights))), $common}
					{"variant": "cusparse fp16 ALG2", "precision": "f16", "ms": 10000, $common}
				ROWS
			done
		done
	done >>"$scratch/gpu.json"
	# A graph with another order of its nodes is another graph, and has one more ceiling.
	common="$spmm, \"order\": \"community\""
	cat >>"$scratch/gpu.json" <<-ROWS
		{"variant": "gather ceiling", "precision": "f16", "ms": 1.0, $common}
		{"variant": "unordered ceiling", "precision": "f16", "ms": 2.0, $common}
		{"variant": "auto", "precision": "fp16", "ms": 1.5, "order_seconds": 4.0, \
		  "near_miss": 0.25, "near_miss_before": 0.5, "far_miss": 0, "far_miss_before": 0.125, \
		  "tile_reuse": 3, "tile_reuse_before": 1, $common}
	ROWS
	printf 'before\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nafter\n' \
		>"$scratch/README.md"
	table="python3 $source/tools/hg-bench/table.py $scratch/gpu.json"
	$table --check "$scratch/README.md" 2>/dev/null && fail "table.py --check takes old figures"
	$table --into "$scratch/README.md" || fail "table.py --into"
	$table --check "$scratch/README.md" || fail "table.py --check refuses its own figures"
	reordered='| g | community | 4.0 | 0.50 to 0.25 | 0.12 to 0.00 | 1.00 to 3.00 | 64'
	reordered="$reordered | 1.500 | 1.000 | 1.50 | 2.000 | 0.75 | - |"
	attention='| g | dot | 64 | 8 | 2.000 | 1.25 | 4.000 | 1.50 | 0.25 GiB | - | 60.00 ms'
	attention="$attention TransformerConv csr compiled amp, 2.00 GiB | 10.00 | 12.00 ms SDPA fp16"
	attention="$attention | 2.00 | 0.50 |"
	for words in '^before' '^after' "$attention" \
		'| g | 64 | 1 | 3.000 | 2.000 | 1.50 | 9.00 | 3.00 | - | 0.50 |' \
		'| geometric mean of 9 |  |  |  |  | 2.00 |  | 2.00 |' \
		'| geometric mean of 9 |  |  |  |  | 2.00 |  | 3.00 |' \
		"| kron-21 | 64 | the graph's | 130.* | 65.000 | 2.00 | 390 | 3.00 |" \
		"$reordered" \
		'gcn | 10.00 ms, 1.00 GiB, 3 steps lost | - | 80.00 ms, 8.00 GiB | out of memory | 8.00' \
		'| g | gcn | 4.00 ms | - | 50.00 ms, compiled | 40.00 ms, compiled | 10.00 |'; do
		grep -q -e "$words" "$scratch/README.md" ||
			fail "table.py: no \"$words\" in $(cat "$scratch/README.md")"
	done
fi

# The README has attention on one large graph beside the best of all peers: 12 ms there, 6 ms here.
if [ -s "$scratch/gpu.json" ]; then
	sed 's/"graph": "g"/"graph": "reddit-like"/' "$scratch/gpu.json" >"$scratch/large.json"
	python3 "$source/tools/hg-bench/table.py" "$scratch/large.json" --short |
		grep -q "^| attention on .*, mean of 1 .* | 2.0 times |" ||
		fail "table.py --short has no line of attention"
fi

# An interrupted run leaves whole lines.
timeout --preserve-status -s INT 2 "$bench" spmm $fast --repeat 30 --features \
  8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23 --json "$scratch/cut.json" >/dev/null 2>&1
[ $? -eq 130 ] || fail "an interrupted run does not end with 130"
[ "$(tail -c 1 "$scratch/cut.json" 2>/dev/null | wc -l)" -eq \
  "$(test -s "$scratch/cut.json" && echo 1 || echo 0)" ] ||
  fail "an interrupted run leaves an incomplete line"

# A wrong number is found.
for what in spmm sddmm gemm edge-softmax; do
	expect 1 "WRONG RESULT" $what $fast --spoil
done
expect 1 "WRONG RESULT" spmm --device cpu --repeat 1 --graph molecules-4k --features 8 --spoil

# In each pass of attention that this CPU has a kernel for, too.
for score in add dot cosine add-v2; do
	"$bench" attention $fast --features 16 --heads 2 --score $score --spoil >"$scratch/out" 2>&1
	for pass in "attention" "attention back"; do
		grep -q "^$pass  *$score  *fp16" "$scratch/out" || continue
		grep -q "WRONG RESULT: $pass, $score" "$scratch/out" ||
			fail "attention --score $score --spoil: $pass is not wrong"
	done
done

# Mistakes are refused by name.
expect 2 "the command is missing" --graph tiny
expect 2 'cannot measure "spam"' spam
expect 2 'unknown option "--grpah"' spmm --grpah tiny
expect 2 "features needs a value: LIST" spmm --features
expect 2 'unexpected argument "sddmm" after spmm' spmm sddmm
expect 2 'features is "8,"' spmm --features 8,
expect 2 'features is "8x"' spmm --features 8x
expect 2 'precision is "fp8"' spmm --precision fp8
expect 2 'variant is "fastest", expected for spmm all, or one of:' spmm --variant fastest
grep -q "^  vertex-32 " "$scratch/out" || fail "--variant fastest: the variants are not listed"
expect 2 'variant is "vertex-32", expected for sddmm all, or one of:' sddmm --variant vertex-32
for name in auto half half2 half4 half8 half8-f16 tiles; do
	grep -q "^  $name  .*[a-z]" "$scratch/out" ||
		fail "sddmm --variant vertex-32: no $name is listed"
done
expect 2 'variant is for spmm sddmm, not for gemm' gemm --variant half
expect 2 'peer is "cublas"' spmm --peer cublas
expect 2 "peer cusparse needs a GPU" spmm --device cpu --peer cusparse
expect 2 'reorder is "fast", expected one of auto|community|leading|rcm|degree|original' spmm \
  --reorder fast
expect 2 "reorder is for spmm sddmm attention epoch step" gemm --reorder auto
expect 2 'score is "add,sum", expected some of add, dot, cosine, add-v2' attention --score add,sum
expect 2 "score is for attention, not for spmm" spmm --score dot
expect 2 'dropout is "1"' attention --dropout 1
expect 2 "hidden is for gemm" spmm --hidden 8
expect 2 'threads is "1025", expected a whole number from 1 to 1024' spmm --threads 1025
expect 2 'device is "tpu"' spmm --device tpu
expect 2 'graph is "no-such"' spmm --device cpu --graph no-such
expect 2 'model is "mlp"' epoch --device cpu --model mlp
expect 2 "missing.h5" spmm --device cpu --graph "$scratch/missing.h5"
head -c 20000 "$scratch/data.h5" >"$scratch/half.h5"
expect 2 "half.h5" spmm --device cpu --graph "$scratch/half.h5"
expect 2 "folder.json: cannot be written: No such file" spmm $fast --json \
  "$scratch/no/such/folder.json"

# Nothing is appended to a file that does not contain results.
ln "$scratch/data.h5" "$scratch/linked.h5"
echo "figures of last year" >"$scratch/notes.txt"
mkfifo "$scratch/pipe"
cp "$scratch/data.h5" "$scratch/data.before"
expect 2 "data.h5 is the graph itself" spmm --device cpu --graph "$scratch/data.h5" --json \
  "$scratch/data.h5"
expect 2 "linked.h5 is the graph itself" spmm --device cpu --graph "$scratch/data.h5" --json \
  "$scratch/linked.h5"
expect 2 "data.h5: cannot be written: its content is not benchmark results" spmm $fast \
  --json "$scratch/data.h5"
expect 2 "notes.txt: cannot be written: its content is not benchmark results" spmm $fast \
  --json "$scratch/notes.txt"
printf '{"graph": "ti' >"$scratch/cut.json"
expect 2 "cut.json: cannot be written: its last line is incomplete" spmm $fast \
  --json "$scratch/cut.json"
expect 2 "pipe: cannot be written: it is not a regular file" spmm $fast --json "$scratch/pipe"
expect 2 "null: cannot be written: it is not a regular file" spmm $fast --json /dev/null
cmp "$scratch/data.h5" "$scratch/data.before" || fail "--json wrote into a dataset"
[ "$(cat "$scratch/notes.txt")" = "figures of last year" ] || fail "--json wrote into a text"
: >"$scratch/empty.json"
expect 0 "spmm" spmm $fast --features 8 --json "$scratch/empty.json"

# A missing device is refused. This is the last test, because it hides a device that is there.
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
expect 2 "no CUDA device answers" spmm --device cuda

[ $failed -eq 0 ] && echo "hg-bench: all as expected"
exit $failed
