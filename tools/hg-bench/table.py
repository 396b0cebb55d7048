#!/usr/bin/env python3
"""README's figures from the JSON lines of hg-bench and tools/peers/pyg_epoch.py.

    python3 tools/hg-bench/table.py results/*.json                     print the tables
    python3 tools/hg-bench/table.py results/*.json --into README.md    put them between the two marker lines of that file
    python3 tools/hg-bench/table.py results/*.json --check README.md   exit code 1 if they are not what stands there

Later lines replace earlier ones of the same thing, so a file can be appended to. Standard library only.
"""
import json
import math
import sys

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def load(paths):
    """Rows by what they measure; the last one of a kind counts."""
    rows = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    sys.exit(f"{path}:{number}: not a line of JSON: {error}")
                keys = ("peer", "op", "variant", "graph", "precision", "features", "heads", "norm", "weights", "device")
                rows[tuple(str(row.get(key)) for key in keys)] = row
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


def is_weighted(row):
    """Aggregations: with the graph's weights, or with an operand's, one for each head."""
    return row["op"] == "spmm" and bool(row.get("weights") or row.get("heads"))


def kernels(rows, op, weighted=False):
    """One line for each graph and width: the floor, ours, the best peer."""
    groups = {}
    for row in rows:
        if row["op"] == op and not row.get("absent"):
            scaled = f', norm {row["norm"]}' if row["op"] == "spmm" and row.get("norm") in ("left", "both") else ""
            groups.setdefault((row["graph"], row.get("features"), row.get("heads"), scaled), []).append(row)
    body, over, faster = [], [], []
    for (graph, width, heads, scaled), group in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or 0, item[0][2] or 0, item[0][3])):
        ours = [r for r in group if r["variant"] == "auto" and is_weighted(r) == weighted]
        floor = {r["precision"]: r["ms"] for r in rows if r["variant"] == "gather ceiling" and (r["graph"], r.get("features")) == (graph, width)}
        peers = [r["ms"] for r in rows if r["op"] == op and r["variant"].startswith("cusparse") and r.get("ms") and is_weighted(r) == weighted
                 and (r["graph"], r.get("features")) == (graph, width)]
        half, full = (next((r for r in ours if r["precision"] == p), None) for p in ("fp16", "fp32"))
        if not half:
            continue
        gather = floor.get("f16")
        over += [half["ms"] / gather] if gather else []
        faster += [min(peers) / half["ms"]] if peers else []
        body.append([graph + scaled, str(width), str(heads or 1), figure(half["ms"], 3), figure(gather, 3), figure(half["ms"] / gather if gather else None),
                     figure(min(peers), 2) if peers else "-", figure(min(peers) / half["ms"] if peers else None), figure(full["ms"], 3) if full else "-",
                     figure(half.get("err_over_bound"))])
    head = ["graph", "F", "heads", "fp16, ms", "gather alone", "ratio", "best cuSPARSE", "faster by", "fp32, ms", "err/bound"]
    if len(over + faster) > 1:
        body.append(["geometric mean", "", "", "", "", figure(geomean(over)), "", figure(geomean(faster)), "", ""])
    return table(head, body) if body else ""


def epochs(rows):
    """One line for each graph and model: ours in both precisions, PyTorch Geometric's best forms."""
    groups = {}
    for row in rows:
        if row["op"] == "epoch":
            groups.setdefault((row["graph"], row["variant"].split()[0]), []).append(row)
    body = []
    for (graph, model), group in sorted(groups.items()):
        cells = [graph, model]
        for peer, precision in ((None, "fp16"), (None, "fp32"), ("pyg", "fp32"), ("pyg", "amp")):
            found = [r for r in group if r.get("peer") == peer and r.get("precision") == precision]
            run = [r for r in found if r.get("ms")]
            if run:
                best = min(run, key=lambda r: r["ms"])
                peak = best.get("peak_bytes")
                cells.append(f"{figure(best['ms'])} ms" + (f", {size(peak)}" if peak else "") + (f", {best['steps_skipped']:.0f} skipped" if best.get("steps_skipped") else "")
                             + (", loss not finite" if best.get("loss", 0.0) is None else ""))
            else:
                cells.append(found[0].get("absent", "fails").split(" when ")[0][:40] if found else "-")
        body.append(cells)
    return table(["graph", "model", "HalfGraph fp16", "HalfGraph fp32", "PyG fp32", "PyG AMP"], body) if body else ""


def page(rows):
    parts = []
    for title, text in (("Aggregation, unit weights:", kernels(rows, "spmm")), ("Aggregation with edge weights:", kernels(rows, "spmm", True)),
                        ("Dot products on edges (SDDMM):", kernels(rows, "sddmm dot")), ("Training epochs, 2 layers, hidden 64:", epochs(rows))):
        if text:
            parts.append(f"{title}\n\n{text}\n")
    machines = sorted({f"{r['device']}, driver {r['driver']}, CUDA {r['cuda']}, commit {r['commit']}" for r in rows if not r.get("peer") and r.get("driver")})
    return "\n".join(parts + [f"({'; '.join(machines)})\n"] if machines else parts)


def main():
    arguments = sys.argv[1:]
    mode = next((a for a in arguments if a in ("--into", "--check")), None)
    target = None
    if "--help" in arguments or not arguments:
        sys.exit(__doc__)
    if mode:
        at = arguments.index(mode)
        if at + 1 >= len(arguments):
            sys.exit(f"{mode} wants a file")
        target = arguments[at + 1]
        del arguments[at:at + 2]
    text = page(load(arguments))
    if not target:
        print(text, end="")
        return
    with open(target, encoding="utf-8") as file:
        old = file.read()
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        sys.exit(f"{target}: expected one line {BEGIN} and after it one line {END}")
    new = old[:old.index(BEGIN)] + BEGIN + "\n" + text + old[old.index(END):]
    if mode == "--check":
        sys.exit(0 if new == old else f"{target}: the figures are not those of the results: run table.py --into")
    with open(target, "w", encoding="utf-8") as file:
        file.write(new)


if __name__ == "__main__":
    main()
