#!/usr/bin/env python3
"""Shuffled epochs of PyTorch Geometric on batches of small graphs, beside hg-bench batches.

    pip install torch torch_geometric
    python3 tools/peers/molecule_batches.py --device cuda --json results.json
    python3 tools/peers/molecule_batches.py --device cpu --quick

The graphs are those of hg-bench, each a Data object with random features and one target. A
DataLoader shuffles them, puts batches together in --workers processes and brings them to the device
from pinned memory; batches of fewer graphs than the others are dropped. The models are those of
molecules.py: layers of GCNConv, whose normalised adjacency is computed once for each graph, or of
GINConv. An epoch is all batches with forward pass, mean squared error, backward pass and Adam
(fused). Eager, and compiled by torch.compile for all shapes (dynamic=True), because batches differ
in their numbers of nodes and edges.

One line of JSON for each form: the median of the epochs behind the first ones, which compile. "op"
is "batches", and "steps" the number of batches of an epoch.
"""

import argparse
import sys
import time

import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import graphs
from command import chosen, emit, machine_of, run_options
from molecules import MODELS, QUICK, Net, timing

GRAPHS = ("qm9-like", "molecules-16k", "molecules-4k")


def sizes_of(name):
    """The nodes of the graphs of a block."""
    kind, _, _, block = graphs.GRAPHS[name][:4]
    return graphs.MOLECULES if kind == "molecules" else [block]


def dataset(name, model, seed):
    """A list of graphs, with normalised weights and self loops for gcn."""
    rowptr, col = graphs.graph(name, seed, "cpu")
    n, width, sizes = rowptr.numel() - 1, graphs.GRAPHS[name][7], sizes_of(name)
    sizes = sizes * (n // sum(sizes))
    row = torch.repeat_interleave(torch.arange(n), rowptr[1:] - rowptr[:-1])
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(n, width, generator=generator) - 1
    target = 2 * torch.rand(len(sizes), 1, generator=generator) - 1
    found, first = [], 0
    for k, size in enumerate(sizes):
        edge = slice(int(rowptr[first]), int(rowptr[first + size]))
        edges = torch.stack([col[edge], row[edge]]) - first
        data = Data(x=x[first : first + size], y=target[k : k + 1])
        if model == "gcn":
            data.edge_index, data.edge_weight = gcn_norm(edges, None, size, dtype=torch.float32)
        else:
            data.edge_index = edges
        found.append(data)
        first += size
    return found


class Epochs:
    """A model in one form, and its epochs."""

    def __init__(self, args, model, found, compiled):
        torch.manual_seed(args.seed)
        cuda = args.device == "cuda"
        self.device, self.model = args.device, model
        self.loader = DataLoader(
            found,
            batch_size=args.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=args.workers,
            persistent_workers=args.workers > 0,
            pin_memory=cuda,
        )
        width = found[0].x.shape[1]
        self.net = Net(model, width, args.hidden, args.layers, args.batch_size).to(args.device)
        self.optim = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)
        self.run = torch.compile(self.loss, dynamic=True) if compiled else self.loss

    def loss(self, x, edges, graph_of, target):
        return F.mse_loss(self.net(x, edges, graph_of), target)

    def epoch(self):
        """The time in ms, and the mean loss of a batch."""
        total = torch.zeros((), device=self.device)
        start = time.perf_counter()
        for batch in self.loader:
            batch = batch.to(self.device, non_blocking=True)
            gcn = self.model == "gcn"
            edges = (batch.edge_index, batch.edge_weight) if gcn else (batch.edge_index,)
            self.optim.zero_grad(set_to_none=True)
            loss = self.run(batch.x, edges, batch.batch, batch.y)
            loss.backward()
            self.optim.step()
            total += loss.detach()
        loss = float(total)  # waits for the device
        return 1e3 * (time.perf_counter() - start), loss / len(self.loader)


def form_run(args, about, model, found, compiled):
    torch._dynamo.reset()
    variant = f"{model} coo compiled" if compiled else f"{model} coo"
    about = about | {"op": "batches", "variant": variant}
    try:
        epochs = Epochs(args, model, found, compiled)
        measured = [epochs.epoch() for _ in range(args.warmup + args.repeat)][args.warmup :]
    except Exception as error:  # a form that this release cannot run is a result, too
        emit(args, about | {"absent": str(error).strip().split("\n")[0][:160]})
        return
    steps = {"steps": len(epochs.loader), "loss": measured[-1][1]}
    emit(args, about | timing([ms for ms, _ in measured]) | steps)


def arguments():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--graph", default="qm9-like", help=f'some of {",".join(GRAPHS)} (qm9-like)')
    p.add_argument("--model", default="gcn", help=f'some of {",".join(MODELS)} (gcn)')
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--workers", type=int, default=8, help="processes that make batches (8)")
    p.add_argument("--form", default="all", help="some of eager,compiled, or all (default)")
    p.add_argument("--repeat", type=int, default=3, help="epochs that are measured")
    p.add_argument("--warmup", type=int, default=2, help="epochs before them")
    p.add_argument("--quick", action="store_true", help="64 graphs, two layers, batches of 16")
    run_options(p)
    args = p.parse_args()
    args.graph = [QUICK] if args.quick else chosen(p, "--graph", args.graph, GRAPHS)
    args.model = chosen(p, "--model", args.model, MODELS)
    args.form = chosen(p, "--form", args.form, ("eager", "compiled"))
    if args.quick:
        args.layers, args.batch_size, args.workers = 2, 16, 0
    return args


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    for name in args.graph:
        for model in args.model:
            found = dataset(name, model, args.seed)
            if args.batch_size > len(found):
                sys.exit(f"--batch-size is larger than the {len(found)} graphs of {name}")
            about = {
                "peer": "pyg",
                "version": torch_geometric.__version__,
                "torch": torch.__version__,
                "device": machine_of(args),
                "cuda": torch.version.cuda or "",
                "graph": name,
                "graphs": len(found),
                "batch_graphs": args.batch_size,
                "workers": args.workers,
                "seed": args.seed,
                "precision": "fp32",
                "features": args.hidden,
                "hidden": args.hidden,
                "layers": args.layers,
            }
            for form in args.form:
                form_run(args, about, model, found, form == "compiled")


if __name__ == "__main__":
    sys.exit(main())
