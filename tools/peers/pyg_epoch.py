#!/usr/bin/env python3
"""Training epochs of PyTorch Geometric, for comparison with hg-train and hg-bench epoch.

    pip install torch torch_geometric h5py
    python3 tools/peers/pyg_epoch.py DATA.h5 --model gcn --threads 2    a HalfGraph dataset, CPU
    python3 tools/peers/pyg_epoch.py --graph reddit-like --model all --precision fp32,amp \
        --device cuda --json results.json

Same model, same shapes, same graph, full batch: forward, loss on the training nodes, backward, Adam
step. CSR (torch sparse) and COO (edge_index) are both timed after warm-up epochs; compare with the
faster one. Each run prints one line of JSON with the names that hg-bench uses. Where PyG cannot do
a run, or has no memory for it, the line says so ("absent"). casts: the number of tensors that the
forward pass converts from one float type to another, weights included (HalfGraph: hg-train,
"casts").
"""

import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import torch_geometric
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.nn import GATConv, GCNConv, GINConv

import graphs


def load(path):
    import h5py
    import numpy as np

    with h5py.File(path, "r") as f:
        rowptr = torch.from_numpy(f["graph/pointers_to_1"][:].astype(np.int64))
        col = torch.from_numpy(f["graph/indices_1"][:].astype(np.int64))
        n = rowptr.numel() - 1
        if "nodes/feat" in f:
            x = torch.from_numpy(f["nodes/feat"][:].astype(np.float32))
        else:
            g = f["nodes/feat_csr"]
            ptr, idx = g["pointers_to_1"][:].astype(np.int64), g["indices_1"][:].astype(np.int64)
            shape = json.loads(g.attrs["binsparse"])["binsparse"]["shape"]
            val = g["values"][:].astype(np.float32)
            x = torch.zeros(shape[0], shape[1])
            rows = np.repeat(np.arange(shape[0]), np.diff(ptr))
            x[torch.from_numpy(rows), torch.from_numpy(idx)] = torch.from_numpy(
                np.broadcast_to(val, idx.shape).copy()
            )
        y = torch.from_numpy(f["nodes/label"][:].astype(np.int64)).reshape(-1)
        mask = (
            torch.from_numpy(f["nodes/train_mask"][:].astype(bool)).reshape(-1)
            if "nodes/train_mask" in f
            else torch.ones(n, dtype=torch.bool)
        )
    return rowptr, col, x, y, mask & (y >= 0), int(y.max()) + 1


def make(name, seed, device):
    """A named graph with random features and labels. Sparse features become dense ones, because the
    layers of PyTorch Geometric accept no others.
    """
    width, classes, stored = graphs.GRAPHS[name][7:]
    rowptr, col = graphs.graph(name, seed, device)
    n = rowptr.numel() - 1
    generator = torch.Generator(device=device).manual_seed(seed)
    x = 2 * torch.rand(n, width, generator=generator, device=device) - 1
    if stored:
        x = (
            torch.rand(n, width, generator=generator, device=device) < stored / width
        ).float() / stored
    y = torch.randint(classes, (n,), generator=generator, device=device)
    return rowptr, col, x, y, torch.ones(n, dtype=torch.bool, device=device), classes


class Net(torch.nn.Module):
    def __init__(self, model, d, hidden, heads, classes, layers, dropout):
        super().__init__()
        self.model, self.dropout = model, dropout
        widths = [d] + [hidden] * (layers - 1) + [classes]
        if model == "gcn":  # the normalised adjacency is computed once, as in HalfGraph
            convs = [GCNConv(i, o, cached=True) for i, o in zip(widths, widths[1:])]
        elif model == "gin":

            def mlp(i, o):
                return torch.nn.Sequential(
                    torch.nn.Linear(i, hidden),
                    torch.nn.BatchNorm1d(hidden),
                    torch.nn.ReLU(),
                    torch.nn.Linear(hidden, o),
                )

            convs = [GINConv(mlp(i, o), train_eps=True) for i, o in zip(widths, widths[1:])]
        else:
            convs = [
                GATConv(i, o // heads, heads=heads, dropout=dropout)
                for i, o in zip(widths, widths[1:-1])
            ]
            convs.append(GATConv(widths[-2], classes, heads=1, concat=False, dropout=dropout))
        self.layers = torch.nn.ModuleList(convs)

    def forward(self, x, edges):
        act = F.elu if self.model == "gat" else F.relu
        h = x
        for i, layer in enumerate(self.layers):
            h = layer(F.dropout(h, self.dropout, self.training), edges)
            if i + 1 < len(self.layers):
                h = act(h)
        return h


class Casts(TorchDispatchMode):
    """Counts conversions between float types."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if (
            function is torch.ops.aten._to_copy.default
            and args[0].is_floating_point()
            and out.is_floating_point()
        ):
            self.count += out.dtype != args[0].dtype
        return out


def forward_casts(net, x, edges, y, mask, device, amp):
    with torch.no_grad(), torch.autocast(
        device, dtype=torch.float16, enabled=amp
    ), Casts() as casts:
        F.cross_entropy(net(x, edges)[mask].float(), y[mask])
    return casts.count


def epochs_ms(args, model, amp, edges, data, device):
    """The milliseconds of each epoch after the warm-up, the last loss, and the casts of a forward
    pass.
    """
    _, _, x, y, mask, classes = data
    torch.manual_seed(0)
    net = Net(model, x.shape[1], args.hidden, args.heads, classes, args.layers, args.dropout).to(
        device
    )
    optim = torch.optim.Adam(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device, enabled=amp)
    times = []
    for epoch in range(args.warmup + args.epochs):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        optim.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.float16, enabled=amp):
            loss = F.cross_entropy(net(x, edges)[mask].float(), y[mask])
        scaler.scale(loss).backward()
        scaler.step(optim)
        scaler.update()
        if device == "cuda":
            torch.cuda.synchronize()
        if epoch >= args.warmup:
            times.append(1e3 * (time.perf_counter() - begin))
    return times, float(loss.detach()), forward_casts(net, x, edges, y, mask, device, amp)


def form_of(name, data):
    rowptr, col = data[0], data[1]
    n = rowptr.numel() - 1
    if name == "csr":
        return torch.sparse_csr_tensor(
            rowptr, col, torch.ones(col.numel(), device=col.device), (n, n)
        )
    return torch.stack(
        [col, torch.repeat_interleave(torch.arange(n, device=col.device), rowptr[1:] - rowptr[:-1])]
    )


def measure(args, model, precision, form, data):
    """One run as a row with the names of hg-bench."""
    cuda = args.device == "cuda"
    row = {}
    try:
        if cuda:
            torch.cuda.empty_cache()
        edges = form_of(form, data)
        held = torch.cuda.memory_allocated() if cuda else 0
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        times, loss, casts = epochs_ms(args, model, precision == "amp", edges, data, args.device)
        row = {
            "ms": statistics.median(times),
            "ms_min": min(times),
            "ms_max": max(times),
            "samples": len(times),
            "casts": casts,
            "loss": loss if loss == loss else None,
        }
        if cuda:
            row["peak_bytes"] = torch.cuda.max_memory_allocated()
            row["peak_beyond_inputs_bytes"] = row["peak_bytes"] - held
    except torch.OutOfMemoryError:
        row = {"absent": "out of memory"}
    except Exception as error:  # a form that this release cannot run is a result, too
        row = {
            "absent": (
                "out of memory"
                if "out of memory" in str(error)
                else str(error).split("\n")[0][:160]
            )
        }
    return row


def numbers(text, known):
    names = list(known) if text == "all" else text.split(",")
    for name in names:
        if name not in known:
            sys.exit(f'"{name}" is not one of {", ".join(known)}')
    return names


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("data", nargs="?", help="a HalfGraph dataset file")
    p.add_argument(
        "--graph",
        choices=list(graphs.GRAPHS),
        help="or a named synthetic graph, as hg-bench makes it",
    )
    p.add_argument("--model", default="gcn", help="some of gcn,gin,gat, or all")
    p.add_argument("--precision", default="fp32", help="some of fp32,amp, or all")
    p.add_argument("--amp", action="store_true", help="the same as --precision amp")
    p.add_argument("--form", default="all", help="some of csr,coo, or all (default)")
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument(
        "--heads",
        type=int,
        help="heads of a hidden GAT layer (8; 1 with --graph, as in hg-train and hg-bench)",
    )
    p.add_argument("--dropout", type=float, help="(0.5; 0 with --graph)")
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--json", default="-", help="append the lines to this file; - (default): stdout")
    args = p.parse_args()
    if (args.data is None) == (args.graph is None):
        p.error("give a dataset file or --graph NAME, one of the two")
    args.heads = args.heads or (1 if args.graph else 8)
    args.dropout = args.dropout if args.dropout is not None else 0.0 if args.graph else 0.5
    if args.amp:
        args.precision = "amp"
    torch.set_num_threads(args.threads)
    data = make(args.graph, args.seed, args.device) if args.graph else load(args.data)
    data = tuple(part.to(args.device) if torch.is_tensor(part) else part for part in data)
    machine = (
        torch.cuda.get_device_name() if args.device == "cuda" else f"CPU ({args.threads} threads)"
    )
    for model in numbers(args.model, ("gcn", "gin", "gat")):
        for precision in numbers(args.precision, ("fp32", "amp")):
            for form in numbers(args.form, ("csr", "coo")):
                row = {
                    "peer": "pyg",
                    "version": torch_geometric.__version__,
                    "torch": torch.__version__,
                    "device": machine,
                    "cuda": torch.version.cuda or "",
                    "graph": args.graph or args.data.rsplit("/", 1)[-1],
                    "nodes": data[2].shape[0],
                    "edges": data[1].numel(),
                    "op": "epoch",
                    "variant": f"{model} {form}",
                    "precision": precision,
                    "features": args.hidden,
                    "heads": args.heads,
                    "layers": args.layers,
                }
                row.update(measure(args, model, precision, form, data))
                line = json.dumps(row) + "\n"
                if args.json == "-":
                    print(line, end="", flush=True)
                else:
                    with open(args.json, "a", encoding="utf-8") as file:
                        file.write(line)


if __name__ == "__main__":
    main()
