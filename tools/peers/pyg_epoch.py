#!/usr/bin/env python3
"""Training epochs of PyTorch Geometric, for comparison with hg-train and hg-bench epoch.

    pip install torch torch_geometric h5py
    python3 tools/peers/pyg_epoch.py DATA.h5 --model gcn --threads 2    a HalfGraph dataset, CPU
    python3 tools/peers/pyg_epoch.py --graph reddit-like --model all --precision fp32,amp \
        --device cuda --json results.json

Same model, same shapes, same graph, full batch: forward, loss on the training nodes (with --graph
all nodes), backward, Adam step. CSR (torch sparse) and COO (edge_index) are both timed after
warm-up epochs; compare with the faster one. --compile measures COO also with torch.compile, which
does not trace CSR. A dataset gets the self loops that an attention layer wants once, before the
epochs, and a named graph none, as in hg-train and hg-bench.

Each run prints one line of JSON with the names that hg-bench uses. Where PyG cannot do a run, or
has no memory for it, the line says so ("absent"). casts: the number of tensors that the forward
pass converts from one float type to another, weights included (HalfGraph: hg-train, "casts"; not
counted in compiled layers).
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

import graphs
from command import emit, machine_of, run_options
from pyg_models import ATTENTION, MODELS, Net


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


def make(name, seed, device, features):
    """A named graph with random features and labels. Sparse features become dense ones, because the
    layers of PyTorch Geometric accept no others; so are `features` of them, if that is given.
    """
    width, classes, stored = graphs.GRAPHS[name][7:]
    width, stored = (features, 0) if features else (width, stored)
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


def epochs_ms(args, model, amp, compiled, edges, data):
    """The milliseconds of each epoch after the warm-up, the last loss, and the casts of a forward
    pass.
    """
    _, _, x, y, mask, classes = data
    device = args.device
    torch.manual_seed(0)
    net = Net(model, x.shape[1], args.hidden, args.heads, classes, args.layers, args.dropout).to(
        device
    )
    if compiled:
        net.compile_layers()
    optim = torch.optim.Adam(net.parameters(), lr=0.01, fused=device == "cuda")
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
    casts = None if compiled else forward_casts(net, x, edges, y, mask, device, amp)
    return times, float(loss.detach()), casts


def looped(rowptr, col):
    """The graph with a self loop at every node."""
    n = rowptr.numel() - 1
    node = torch.arange(n, device=col.device)
    row = torch.repeat_interleave(node, rowptr[1:] - rowptr[:-1])
    other = row != col
    keys = torch.cat([row[other] * n + col[other], node * n + node]).sort().values
    rowptr = torch.zeros(n + 1, dtype=torch.int64, device=col.device)
    rowptr[1:] = torch.cumsum(torch.bincount(keys // n, minlength=n), 0)
    return rowptr, keys % n


def form_of(name, rowptr, col):
    n = rowptr.numel() - 1
    if name == "csr":
        return torch.sparse_csr_tensor(
            rowptr, col, torch.ones(col.numel(), device=col.device), (n, n)
        )
    return torch.stack(
        [col, torch.repeat_interleave(torch.arange(n, device=col.device), rowptr[1:] - rowptr[:-1])]
    )


def run(args, model, precision, form, compiled, data):
    """What is measured of one run."""
    cuda = args.device == "cuda"
    if cuda:
        torch.cuda.empty_cache()
    rowptr, col = data[:2]
    if args.data and model in ATTENTION:
        rowptr, col = looped(rowptr, col)
    edges = form_of(form, rowptr, col)
    held = torch.cuda.memory_allocated() if cuda else 0
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    times, loss, casts = epochs_ms(args, model, precision == "amp", compiled, edges, data)
    row = {
        "ms": statistics.median(times),
        "ms_min": min(times),
        "ms_max": max(times),
        "samples": len(times),
        "loss": loss if loss == loss else None,
    }
    if casts is not None:
        row["casts"] = casts
    if cuda:
        row["peak_bytes"] = torch.cuda.max_memory_allocated()
        row["peak_beyond_inputs_bytes"] = row["peak_bytes"] - held
    return row


def measure(args, model, precision, form, compiled, data):
    """One run as a row with the names of hg-bench."""
    try:
        return run(args, model, precision, form, compiled, data)
    except Exception as error:  # a form that this release cannot run is a result, too
        short = isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)
        return {"absent": "out of memory" if short else str(error).split("\n")[0][:160]}


def chosen(text, known):
    names = list(known) if text == "all" else text.split(",")
    for name in names:
        if name not in known:
            sys.exit(f'"{name}" is not one of {", ".join(known)}')
    return names


def graph_run(args, name, machine):
    """Every run on one graph, or on the dataset if there is no name."""
    data = make(name, args.seed, args.device, args.features) if name else load(args.data)
    data = tuple(part.to(args.device) if torch.is_tensor(part) else part for part in data)
    kinds = [(form, False) for form in args.form] + [("coo", True)] * args.compile
    for model in args.model:
        for precision in args.precision:
            for form, compiled in kinds:
                about = {
                    "peer": "pyg",
                    "version": torch_geometric.__version__,
                    "torch": torch.__version__,
                    "device": machine,
                    "cuda": torch.version.cuda or "",
                    "graph": name or args.data.rsplit("/", 1)[-1],
                    "nodes": data[2].shape[0],
                    "edges": data[1].numel(),
                    "op": "epoch",
                    "variant": f'{model} {form}{" compiled" if compiled else ""}',
                    "precision": precision,
                    "inputs": data[2].shape[1],
                    "features": args.hidden,
                    "heads": args.heads,
                    "layers": args.layers,
                }
                emit(args, about | measure(args, model, precision, form, compiled, data))


def arguments():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("data", nargs="?", help="a HalfGraph dataset file")
    p.add_argument("--graph", help="or some of the synthetic graphs of hg-bench")
    p.add_argument("--features", type=int, help="with --graph: width of dense features")
    p.add_argument("--model", default="gcn", help=f'some of {",".join(MODELS)}, or all')
    p.add_argument("--precision", default="fp32", help="some of fp32,amp, or all")
    p.add_argument("--amp", action="store_true", help="the same as --precision amp")
    p.add_argument("--form", default="all", help="some of csr,coo, all (default), or none")
    p.add_argument("--compile", action="store_true", help="also COO with torch.compile")
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument(
        "--heads",
        type=int,
        help="heads of a hidden layer (8; 1 with --graph, as in hg-train and hg-bench)",
    )
    p.add_argument("--dropout", type=float, help="(0.5; 0 with --graph)")
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--warmup", type=int, default=3)
    run_options(p, device="cpu")
    args = p.parse_args()
    if (args.data is None) == (args.graph is None):
        p.error("give a dataset file or --graph NAME, one of the two")
    args.heads = args.heads or (1 if args.graph else 8)
    args.dropout = args.dropout if args.dropout is not None else 0.0 if args.graph else 0.5
    args.graph = chosen(args.graph, graphs.GRAPHS) if args.graph else [None]
    args.model = chosen(args.model, MODELS)
    args.precision = chosen("amp" if args.amp else args.precision, ("fp32", "amp"))
    args.form = [] if args.form == "none" else chosen(args.form, ("csr", "coo"))
    return args


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch._dynamo.config.recompile_limit = 64  # the last layer of each graph has other classes
    machine = machine_of(args)
    for name in args.graph:
        graph_run(args, name, machine)


if __name__ == "__main__":
    main()
