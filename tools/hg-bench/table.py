#!/usr/bin/env python3
"""The tables of figures from the JSON lines of hg-bench and of tools/peers/pyg_epoch.py,
attention.py and molecules.py.

    python3 tools/hg-bench/table.py results/*.json    print the tables
    ... --into docs/benchmarks.md     put them between the two marker lines of that file
    ... --check docs/benchmarks.md    exit with 1 if the file does not contain them
    ... --short --into README.md      the few rows of the README

A later line replaces an earlier line of the same measurement, so results can be appended to a file.
Needs the standard library only.
"""

import json
import math
import sys

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
SHORT_BEGIN, SHORT_END = "<!-- figures in short: begin -->", "<!-- figures in short: end -->"


def order(row):
    """The order of the nodes: a method of --reorder, or the original one."""
    return row.get("order", "original")


def load(paths):
    """Load the rows; of rows for the same measurement the last one counts."""
    rows = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    sys.exit(f"{path}:{number}: not a line of JSON: {error}")
                keys = (
                    "peer",
                    "op",
                    "variant",
                    "graph",
                    "precision",
                    "features",
                    "heads",
                    "norm",
                    "weights",
                    "layers",
                    "device",
                )
                rows[tuple(str(row.get(key)) for key in keys) + (order(row),)] = row
    return list(rows.values())


def figure(value, digits=2):
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:.0f}"


def table(head, body):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def size(peak):
    return f"{peak / 2**30:.2f} GiB" if peak >= 2**27 else f"{peak / 2**20:.0f} MiB"


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def place(row):
    """What is gathered: the graph, the order of its nodes, the width."""
    return row["graph"], order(row), row.get("features")


def is_weighted(row):
    """Is this an aggregation with edge weights, of the graph or per head as an operand?"""
    return row["op"] == "spmm" and bool(row.get("weights") or row.get("heads"))


# The geometric means are taken over these pairs of graph and width.
NINE = {
    (graph, width)
    for graph in ("reddit-like", "products-like", "kron-21")
    for width in (32, 64, 128)
}


def peers_best(rows, like):
    """The time of the fastest cuSPARSE variant on the same operands and weights, in ms."""
    times = [
        r["ms"]
        for r in rows
        if r["op"] == like["op"]
        and r["variant"].startswith("cusparse")
        and r.get("ms")
        and is_weighted(r) == is_weighted(like)
        and place(r) == place(like)
    ]
    return min(times) if times else None


def ceiling(rows, like, variant="gather ceiling"):
    """The gather ceiling, preferably from the same op and run, in ms."""
    found = [
        r
        for r in rows
        if r["variant"] == variant and r.get("precision") == "f16" and place(r) == place(like)
    ]
    found.sort(
        key=lambda r: (
            r["op"] == like["op"].split()[0],
            (r.get("weights") or 0) == (like.get("weights") or 0),
        )
    )
    return found[-1]["ms"] if found else None


def ratio(a, b):
    return a / b if a and b else None


def ours(rows, op, weighted):
    """Sorted pairs (fp16 row, fp32 row or None), one per graph, order, width, heads and norm."""
    groups = {}
    for row in rows:
        if (
            row["op"] == op
            and row["variant"] == "auto"
            and not row.get("absent")
            and is_weighted(row) == weighted
        ):
            scaled = row.get("norm") if op == "spmm" and row.get("norm") in ("left", "both") else ""
            key = (
                row["graph"],
                order(row),
                row.get("features") or 0,
                row.get("heads") or 0,
                scaled,
            )
            groups.setdefault(key, {})[row["precision"]] = row
    return [
        (group["fp16"], group.get("fp32")) for _, group in sorted(groups.items()) if "fp16" in group
    ]


def heads(row):
    return str(row.get("heads") or ("the graph's" if is_weighted(row) else 1))


def name(row):
    scaled = (
        f', norm {row["norm"]}'
        if row["op"] == "spmm" and row.get("norm") in ("left", "both")
        else ""
    )
    return row["graph"] + scaled


def kernels(rows, op, weighted=False):
    """One line for each graph and width: the gather ceiling, HalfGraph, the best peer."""
    body, over, faster = [], {}, {}
    for half, full in ours(rows, op, weighted):
        if order(half) != "original":
            continue
        gather, peer, pair = (
            ceiling(rows, half),
            peers_best(rows, half),
            (half["graph"], half.get("features")),
        )
        if (
            pair in NINE
            and (half.get("heads") or 1) == 1
            and half.get("norm") in (None, "none", "right")
        ):
            over.setdefault(pair, ratio(half["ms"], gather))
            faster.setdefault(pair, ratio(peer, half["ms"]))
        body.append(
            [
                name(half),
                str(half.get("features")),
                heads(half),
                figure(half["ms"], 3),
                figure(gather, 3),
                figure(ratio(half["ms"], gather)),
                figure(peer),
                figure(ratio(peer, half["ms"])),
                figure(full["ms"], 3) if full else "-",
                figure(half.get("err_over_bound")),
            ]
        )
    head = [
        "graph",
        "F",
        "heads",
        "fp16, ms",
        "gather alone",
        "ratio",
        "best cuSPARSE",
        "faster by",
        "fp32, ms",
        "err/bound",
    ]
    means = [[value for value in kind.values() if value] for kind in (over, faster)]
    if max(map(len, means)) > 1:
        counts = " and ".join(str(count) for count in sorted({len(kind) for kind in means if kind}))
        body.append(
            [
                f"geometric mean of {counts}",
                "",
                "",
                "",
                "",
                figure(geomean(means[0])),
                "",
                figure(geomean(means[1])),
                "",
                "",
            ]
        )
    return table(head, body) if body else ""


def reordered(rows, op, weighted=False):
    """One line for each graph, order and width of --reorder: both gather ceilings, and how the
    order changes misses and tiles.
    """
    body = []
    for half, _ in ours(rows, op, weighted):
        if order(half) == "original":
            continue
        gather, unordered, peer = (
            ceiling(rows, half),
            ceiling(rows, half, "unordered ceiling"),
            peers_best(rows, half),
        )
        change = [
            f'{figure(half.get(f"{what}_before"))} to {figure(half.get(what))}'
            for what in ("near_miss", "far_miss", "tile_reuse")
        ]
        body.append(
            [
                name(half),
                order(half),
                figure(half.get("order_seconds"), 1),
                *change,
                str(half.get("features")),
                figure(half["ms"], 3),
                figure(gather, 3),
                figure(ratio(half["ms"], gather)),
                figure(unordered, 3),
                figure(ratio(half["ms"], unordered)),
                figure(ratio(peer, half["ms"])),
            ]
        )
    head = [
        "graph",
        "order",
        "found in, s",
        "near miss",
        "far miss",
        "edges a source in 16 rows",
        "F",
        "fp16, ms",
        "gather alone",
        "ratio",
        "gather, old order",
        "ratio",
        "faster than cuSPARSE by",
    ]
    return table(head, body) if body else ""


# What DF-GNN's training scripts set: layers of width 64 with one head, on 64 dense features.
DEEP = 8


def epoch_cell(found):
    """The fastest of these runs in words."""
    run = [r for r in found if r.get("ms")]
    if not run:
        return found[0].get("absent", "fails").split(" when ")[0][:40] if found else "-"
    best = min(run, key=lambda r: r["ms"])
    words = [f"{figure(best['ms'])} ms"]
    words += [size(best["peak_bytes"])] if best.get("peak_bytes") else []
    words += ["compiled"] if "compiled" in best["variant"].split() else []
    lost = best.get("steps_lost") or 0
    words += [f"{lost:.0f} step{'' if lost == 1 else 's'} lost"] if lost else []
    words += [f"{best['steps_skipped']:.0f} skipped"] if best.get("steps_skipped") else []
    words += ["loss not finite"] if best.get("loss", 0.0) is None else []
    return ", ".join(words)


def least(found):
    """The least time of these runs, in ms."""
    return min((r["ms"] for r in found if r.get("ms")), default=None)


def epochs(rows, deep=False):
    """One line for each graph and model: HalfGraph in both precisions, PyTorch Geometric's best
    forms, and how much faster HalfGraph's fp16 is than the better of these.
    """
    groups = {}
    for row in rows:
        if row["op"] == "epoch" and row.get("layers", 2) == (DEEP if deep else 2):
            graph = row["graph"] + ("" if order(row) == "original" else f", {order(row)} order")
            groups.setdefault((graph, row["variant"].split()[0]), []).append(row)
    body = []
    for (graph, model), group in sorted(groups.items()):
        kinds = [
            [r for r in group if r.get("peer") == peer and r.get("precision") == precision]
            for peer, precision in ((None, "fp16"), (None, "fp32"), ("pyg", "fp32"), ("pyg", "amp"))
        ]
        faster = ratio(least(kinds[2] + kinds[3]), least(kinds[0]))
        body.append([graph, model, *map(epoch_cell, kinds), figure(faster)])
    head = ["graph", "model", "HalfGraph fp16", "HalfGraph fp32", "PyG fp32", "PyG AMP"]
    return table([*head, "faster by"], body) if body else ""


def passes(rows):
    """One line for each model whose passes were measured apart: forward, backward and whole step
    here in fp16, and of the form of PyTorch Geometric with the least step.
    """
    groups = {}
    for row in rows:
        if row["op"] in ("pass", "step", "epoch") and row.get("ms") and order(row) == "original":
            words = row["variant"].split()
            case = row["graph"], words[0], row.get("layers") or 2, row.get("features") or 0
            form = row.get("peer"), row["precision"], "compiled" in words
            times = groups.setdefault(case, {}).setdefault(form, {})
            times[words[1] if row["op"] == "pass" else "step"] = row["ms"]
    body = []
    for (graph, model, layers, width), forms in sorted(groups.items()):
        apart = {k: of for k, of in forms.items() if "forward" in of and "step" in of}
        peers = [(of["step"], k) for k, of in apart.items() if k[0] == "pyg"]
        own, best = apart.get((None, "fp16", False), {}), min(peers)[1] if peers else None
        if not own and not best:
            continue
        peer = apart.get(best, {})
        cells = [
            [figure(of.get(which), 3) for which in ("forward", "backward", "step")]
            for of in (own, peer)
        ]
        words = f'{best[1]}{" compiled" if best[2] else ""}' if best else "-"
        body.append(
            [graph, model, str(layers), str(width), *cells[0], words, *cells[1]]
            + [figure(ratio(peer.get("step"), own.get("step")))]
        )
    times = ["forward, ms", "backward, ms", "step, ms"]
    head = ["graph", "model", "layers", "F", *times, "best PyG", *times, "faster by"]
    return table(head, body) if body else ""


CHANGES = ("separate", "by rows", "without tiles")


def attention_case(row):
    """Graph, order of its nodes, score (for peers without their names), width, heads. Separate
    operands and slower kernels are cases of their own.
    """
    variant = row["variant"]
    changed = [words for words in CHANGES if words in variant]
    dropout = [f'dropout {row["dropout"]:g}'] if row.get("dropout") else []
    score = " ".join(variant.split()[:1] + changed + dropout)
    return row["graph"], order(row), score, row.get("features") or 0, row.get("heads") or 0


def attention_peers(rows, case):
    """The runs of a peer in this case: with one form of the operands, and the original order."""
    graph, _, score, *shape = case
    for words in CHANGES:
        score = score.replace(" " + words, "")
    case = (graph, "original", score, *shape)
    return [r for r in rows if attention_case(r) == case]


def attention_peer(rows, case, own):
    """Forward and backward of a peer at its best, and how much faster that took here."""
    found = attention_peers(rows, case)
    run = [r for r in found if r.get("ms")]
    if not run:
        why = " ".join(r.get("absent", "") for r in found)
        if not found or "no dropout" in why:  # no layer of this peer does that
            return ["-", "-"]
        return ["out of memory" if "memory" in why else "fails", "-"]
    best = min(run, key=lambda r: r["ms"])
    words = [f"{figure(best['ms'])} ms", *best["variant"].split(" dropout ")[0].split()[1:]]
    peak = best.get("peak_beyond_inputs_bytes")
    what = " ".join(words + [best["precision"]]) + (f", {size(peak)}" if peak else "")
    return [what, figure(ratio(best["ms"], own))]


PASSES = ("attention", "attention back")


def attention_passes(rows):
    """Sorted pairs of a case and its rows by pass and precision: those that have both passes in
    fp16, and no weights of the graph.
    """
    passes = {}
    for row in rows:
        if row["op"] in PASSES and not row.get("peer") and row.get("ms") and not row.get("weights"):
            passes.setdefault(attention_case(row), {})[row["op"], row["precision"]] = row
    return [
        (case, group)
        for case, group in sorted(passes.items())
        if all((op, "fp16") in group for op in PASSES)
    ]


def both_ms(group, precision):
    """Milliseconds of forward and backward; None if one is missing."""
    found = [group.get((op, precision)) for op in PASSES]
    return sum(row["ms"] for row in found) if all(found) else None


def attention(rows):
    """One line for each graph, score, width and number of heads: forward and backward beside as
    many gathers, and both together beside PyTorch.
    """
    both = [row for row in rows if row["op"] == "attention both"]
    peers = [[r for r in both if r.get("peer") == peer] for peer in ("pyg", "torch")]
    body = []
    for case, group in attention_passes(rows):
        halves = [group[op, "fp16"] for op in PASSES]
        cells = []
        for row in halves:
            cells += [figure(row["ms"], 3), figure(row.get("over_gather"))]
        own = both_ms(group, "fp16")
        graph, nodes, score, features, heads_of = case
        body.append(
            [graph if nodes == "original" else f"{graph}, {nodes} order", score, str(features)]
            + [str(heads_of), *cells, size(halves[1]["peak_beyond_inputs_bytes"])]
            + [figure(both_ms(group, "fp32"), 3)]
            + attention_peer(peers[0], case, own)
            + attention_peer(peers[1], case, own)
            + [figure(max(row["err_over_bound"] for row in halves))]
        )
    head = [
        "graph",
        "score",
        "F",
        "heads",
        "forward, ms",
        "over gathers",
        "backward, ms",
        "over gathers",
        "memory",
        "both, fp32",
        "best PyG, both",
        "faster by",
        "best dense, both",
        "faster by",
        "err/bound",
    ]
    return table(head, body) if body else ""


def attention_faster(rows):
    """How much faster both passes are than the best peer, for every case that a peer can run."""
    peers = [row for row in rows if row["op"] == "attention both"]
    found = (
        ratio(least(attention_peers(peers, case)), both_ms(group, "fp16"))
        for case, group in attention_passes(rows)
    )
    return [value for value in found if value]


def mean_over(rows, op):
    """How much faster this op is than the best cuSPARSE: the geometric mean over the nine
    pairs.
    """
    faster = {}
    for half, _ in ours(rows, op, False):
        pair = half["graph"], half.get("features")
        if order(half) == "original" and pair in NINE and (half.get("heads") or 1) == 1:
            faster.setdefault(pair, ratio(peers_best(rows, half), half["ms"]))
    return geomean([value for value in faster.values() if value])


def short(rows):
    """The rows of the README: epochs on one large graph, the two sparse kernels, and attention."""
    body = []
    for model in ("gcn", "gin", "gat"):
        runs = [
            r
            for r in rows
            if r["op"] == "epoch"
            and r["graph"] == "reddit-like"
            and r.get("layers") != DEEP
            and r.get("ms")
            and r["variant"].split()[0] == model
        ]
        half = [r for r in runs if not r.get("peer") and r["precision"] == "fp16"]
        peers = [r["ms"] for r in runs if r.get("peer") == "pyg"]
        if half and peers:
            took, best = half[0]["ms"], min(peers)
            body.append(
                [
                    f"{model.upper()}, an epoch on 115 M edges",
                    f"{figure(took)} ms",
                    f"PyTorch Geometric {figure(best)} ms",
                    f"{best / took:.0f} times",
                ]
            )
    for words, op in (
        ("aggregation (SpMM), mean of 9", "spmm"),
        ("dot products on edges (SDDMM), mean of 9", "sddmm dot"),
    ):
        mean = mean_over(rows, op)
        if mean:
            body.append([words, "", "the best cuSPARSE", f"{figure(mean, 1)} times"])
    values = attention_faster([row for row in rows if row["graph"] == "reddit-like"])
    if values:
        words = f"attention on 115 M edges, mean of {len(values)}"
        mean = f"{figure(geomean(values), 1)} times"
        body.append([words, "", "the best of PyTorch Geometric and PyTorch", mean])
    head = ["on one GPU, fp16", "HalfGraph", "beside", "faster by"]
    return table(head, body) + "\n\n" + machine(rows) if body else ""


def machine(rows):
    """The devices that the rows were measured on, each with its commits."""
    commits = {}
    for r in rows:
        if not r.get("peer") and r.get("driver"):
            device = f"{r['device']}, driver {r['driver']}, CUDA {r['cuda']}"
            commits.setdefault(device, set()).add(r["commit"])
    machines = [
        f"{device};\n{'commit' if len(of) == 1 else 'commits'} {', '.join(sorted(of))}"
        for device, of in sorted(commits.items())
    ]
    return "(" + ";\n".join(machines) + ")\n" if machines else ""


def page(rows):
    parts = []
    for title, text in (
        ("Aggregation, unit weights:", kernels(rows, "spmm")),
        ("Aggregation with edge weights:", kernels(rows, "spmm", True)),
        ("Dot products on edges (SDDMM):", kernels(rows, "sddmm dot")),
        ("Aggregation, nodes reordered, unit weights:", reordered(rows, "spmm")),
        ("Aggregation, nodes reordered, with edge weights:", reordered(rows, "spmm", True)),
        ("Dot products, nodes reordered:", reordered(rows, "sddmm dot")),
        ("Attention:", attention(rows)),
        ("Training epochs, 2 layers, hidden 64:", epochs(rows)),
        (
            f"Training epochs of models with attention, {DEEP} layers, hidden 64, one head, 64 "
            "dense features:",
            epochs(rows, deep=True),
        ),
        ("Passes of a training step:", passes(rows)),
    ):
        if text:
            parts.append(f"{title}\n\n{text}\n")
    told = machine(rows)
    return "\n".join(parts + [told] if told else parts)


def main():
    arguments = sys.argv[1:]
    mode = next((a for a in arguments if a in ("--into", "--check")), None)
    target = None
    if "--help" in arguments or not arguments:
        sys.exit(__doc__)
    if mode:
        at = arguments.index(mode)
        if at + 1 >= len(arguments):
            sys.exit(f"{mode} needs a file")
        target = arguments[at + 1]
        del arguments[at : at + 2]
    brief = "--short" in arguments
    begin, end = (SHORT_BEGIN, SHORT_END) if brief else (BEGIN, END)
    rows = load([argument for argument in arguments if argument != "--short"])
    text = short(rows) if brief else page(rows)
    if not target:
        print(text, end="")
        return
    with open(target, encoding="utf-8") as file:
        old = file.read()
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        sys.exit(f"{target}: expected one line {begin} and after it one line {end}")
    new = old[: old.index(begin)] + begin + "\n" + text + old[old.index(end) :]
    if mode == "--check":
        sys.exit(
            0
            if new == old
            else f"{target}: the figures differ from the results: run table.py --into"
        )
    with open(target, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
