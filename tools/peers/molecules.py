#!/usr/bin/env python3
"""Training steps of PyTorch Geometric on batches of small graphs, beside hg-bench step.

    pip install torch torch_geometric
    python3 tools/peers/molecules.py --device cuda --json results.json
    python3 tools/peers/molecules.py --device cpu --quick

The graphs are molecules-4k and molecules-16k of hg-bench: 4,096 and 16,384 graphs of 18 nodes with
2.1 edges a node, as one block-diagonal graph that is the same in each step. Models:

    gcn    layers of GCNConv with relu between them, the mean of a graph's nodes, a linear layer;
           the normalised adjacency is computed once, with self loops; 12 and 28 layers of width 32,
           64 and 128
    gin    layers of GINConv (two linear layers with a batch norm between them), batch norm and relu
           behind each, the sum of a graph's nodes, a linear layer; 5 layers of width 64

The loss is the mean squared error of one target of each graph. A step is forward pass with loss,
backward pass and Adam (fused). Eager, and compiled as a whole by torch.compile in the mode
reduce-overhead, which captures both passes as CUDA graphs; the optimiser is queued beside them.

Times are medians over steps, by CUDA events before, between and behind the passes of each step (on
a CPU by the host's clock). One line of JSON for each pass ("pass": forward, backward, optimiser)
and for the whole step ("step"), with the names that hg-bench uses. What a form cannot do, or has no
memory for, is a line, too ("absent").
"""

import argparse
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import GCNConv, GINConv, global_add_pool, global_mean_pool
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import graphs
from command import chosen, counts, emit, machine_of, run_options

MODELS = ("gcn", "gin")
PASSES = ("forward", "backward", "optimiser")
GRAPHS = ("molecules-4k", "molecules-16k")
QUICK = "molecules-64"  # as many edges a node as the others
graphs.GRAPHS[QUICK] = ("molecule", 64 * 18, 2418, 18, 0.0, 0, 1, 11, 2, 0)


class Batch:
    """The block-diagonal graph, features in [-1, 1) and a target for each graph."""

    def __init__(self, name, seed, device):
        rowptr, col = graphs.graph(name, seed, device)
        n, block, width = rowptr.numel() - 1, graphs.GRAPHS[name][3], graphs.GRAPHS[name][7]
        node = torch.arange(n, device=device)
        row = torch.repeat_interleave(node, rowptr[1:] - rowptr[:-1])
        generator = torch.Generator(device=device).manual_seed(seed)

        def uniform(*shape):
            return 2 * torch.rand(*shape, generator=generator, device=device) - 1

        self.name, self.nodes, self.edges, self.graphs = name, n, col.numel(), n // block
        self.edge_index, self.graph_of = torch.stack([col, row]), node // block
        self.x, self.target = uniform(n, width), uniform(self.graphs, 1)


class Net(torch.nn.Module):
    def __init__(self, model, inputs, hidden, layers, graph_count):
        super().__init__()
        widths = [(inputs if i == 0 else hidden) for i in range(layers)]
        gin = model == "gin"
        make = self.gin_layer if gin else self.gcn_layer
        self.layers = torch.nn.ModuleList([make(width, hidden) for width in widths])
        self.norms = torch.nn.ModuleList(
            [torch.nn.BatchNorm1d(hidden) if gin else torch.nn.Identity() for _ in widths]
        )
        self.readout = global_add_pool if gin else global_mean_pool
        self.head = torch.nn.Linear(hidden, 1)
        self.graph_count = graph_count

    @staticmethod
    def gcn_layer(inputs, hidden):
        return GCNConv(inputs, hidden, normalize=False)

    @staticmethod
    def gin_layer(inputs, hidden):
        mlp = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden),
            torch.nn.BatchNorm1d(hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, hidden),
        )
        return GINConv(mlp, train_eps=True)

    def forward(self, x, edges, graph_of):
        for layer, norm in zip(self.layers, self.norms):
            x = F.relu(norm(layer(x, *edges)))
        # the number of graphs is given, so that nothing waits for the device to count them
        return self.head(self.readout(x, graph_of, self.graph_count))


class Marks:
    """Moments in the order of the device's work, or of the host's where it is the device."""

    def __init__(self, cuda):
        self.cuda, self.at = cuda, []

    def mark(self):
        if self.cuda:
            self.at.append(torch.cuda.Event(enable_timing=True))
            self.at[-1].record()
        else:
            self.at.append(time.perf_counter())

    def ms(self):
        """Between each and the next."""
        if self.cuda:
            torch.cuda.synchronize()
            return [a.elapsed_time(b) for a, b in zip(self.at, self.at[1:])]
        return [1e3 * (b - a) for a, b in zip(self.at, self.at[1:])]


class Training:
    """The steps of one model in one form."""

    def __init__(self, case, batch, precision, compiled, seed):
        model, layers, hidden = case
        device = batch.x.device
        torch.manual_seed(seed)
        self.batch, self.amp, self.device = batch, precision == "amp", device.type
        self.net = Net(model, batch.x.shape[1], hidden, layers, batch.graphs).to(device).train()
        self.edges = (batch.edge_index,)
        if model == "gcn":
            self.edges = gcn_norm(batch.edge_index, None, batch.nodes, dtype=torch.float32)
        self.optim = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.amp)
        self.run = self.compiled() if compiled else self.loss

    def compiled(self):
        """The inputs are the same tensors in each step, so a captured pass need not copy them."""
        b = self.batch
        for tensor in (b.x, *self.edges, b.graph_of, b.target):
            torch._dynamo.mark_static_address(tensor)
        return torch.compile(self.loss, mode="reduce-overhead", dynamic=False)

    def loss(self, x, edges, graph_of, target):
        with torch.autocast(self.device, torch.float16, enabled=self.amp):
            out = self.net(x, edges, graph_of)
        return F.mse_loss(out.float(), target)

    def step(self, marks):
        """Three marks, between which the passes lie, and a fourth."""
        b = self.batch
        torch.compiler.cudagraph_mark_step_begin()  # the step before needs its memory no more
        self.optim.zero_grad(set_to_none=True)
        marks.mark()
        loss = self.run(b.x, self.edges, b.graph_of, b.target)
        marks.mark()
        self.scaler.scale(loss).backward()
        marks.mark()
        self.scaler.step(self.optim)
        self.scaler.update()
        marks.mark()
        return loss

    def measure(self, steps, warm_ups):
        """The times of each pass and of the whole step, [passes + 1][steps], and the last loss."""
        cuda = self.device == "cuda"
        for _ in range(warm_ups):  # compiled, captured, and not counted
            loss = self.step(Marks(cuda))
        marks = Marks(cuda)
        for _ in range(steps):
            loss = self.step(marks)
        # What lies between the last mark of a step and the first of the next is the clearing of
        # gradients. It belongs to the step, and the last one has none behind it.
        ms = marks.ms()
        passes = [ms[k::4] for k in range(len(PASSES))]
        between = ms[3::4] + [0.0]
        return passes + [[sum(all_of) for all_of in zip(*passes, between)]], float(loss.detach())


def timing(times):
    return {
        "ms": statistics.median(times),
        "ms_min": min(times),
        "ms_max": max(times),
        "samples": len(times),
    }


def rows_of(args, case, batch, precision, compiled):
    """The lines of one model in one form: passes, and the whole step."""
    ops = [("pass", name) for name in PASSES] + [("step", None)]
    words = "coo compiled" if compiled else "coo"
    abouts = [
        {"op": op, "variant": " ".join(filter(None, (case[0], name, words)))} for op, name in ops
    ]
    cuda = args.device == "cuda"
    try:
        if cuda:
            torch.cuda.empty_cache()
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        training = Training(case, batch, precision, compiled, args.seed)
        times, loss = training.measure(args.repeat, args.warmup)
    except Exception as error:  # a form that this release cannot run is a result, too
        short = isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)
        why = "out of memory" if short else str(error).strip().split("\n")[0][:160]
        return [about | {"absent": why} for about in abouts]
    rows = [about | timing(of) for about, of in zip(abouts, times)]
    rows[-1]["loss"] = loss if loss == loss else None
    if cuda:
        rows[-1]["peak_bytes"] = torch.cuda.max_memory_allocated()
        rows[-1]["peak_beyond_inputs_bytes"] = rows[-1]["peak_bytes"] - held
    return rows


def case_run(args, machine, case, batch):
    for precision in args.precision:
        for form in args.form:
            torch._dynamo.reset()  # a new compilation, without the limit of recompilations
            about = {
                "peer": "pyg",
                "version": torch_geometric.__version__,
                "torch": torch.__version__,
                "device": machine,
                "cuda": torch.version.cuda or "",
                "graph": batch.name,
                "nodes": batch.nodes,
                "edges": batch.edges,
                "seed": args.seed,
                "precision": precision,
                "inputs": batch.x.shape[1],
                "features": case[2],
                "hidden": case[2],
                "layers": case[1],
            }
            for row in rows_of(args, case, batch, precision, form == "compiled"):
                emit(args, about | row)


def cases(args):
    """(model, layers, width): gcn in all that are asked for, gin as it is."""
    found = []
    if "gcn" in args.model:
        found += [("gcn", layers, hidden) for layers in args.layers for hidden in args.hidden]
    if "gin" in args.model:
        found.append(("gin", 2 if args.quick else 5, 64))
    return found


def arguments():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--graph", default="all", help=f'some of {",".join(GRAPHS)}, or all (default)')
    p.add_argument("--model", default="all", help=f'some of {",".join(MODELS)}, or all (default)')
    p.add_argument("--layers", type=counts, default=[12, 28], help="of gcn (12,28)")
    p.add_argument("--hidden", type=counts, default=[32, 64, 128], help="of gcn (32,64,128)")
    p.add_argument("--precision", default="all", help="some of fp32,amp, or all (default)")
    p.add_argument("--form", default="all", help="some of eager,compiled, or all (default)")
    p.add_argument("--repeat", type=int, default=50, help="steps that are measured")
    p.add_argument("--warmup", type=int, default=5, help="steps before them")
    p.add_argument("--quick", action="store_true", help="64 graphs, two layers and three steps")
    run_options(p)
    args = p.parse_args()
    args.graph = [QUICK] if args.quick else chosen(p, "--graph", args.graph, GRAPHS)
    args.model = chosen(p, "--model", args.model, MODELS)
    args.precision = chosen(p, "--precision", args.precision, ("fp32", "amp"))
    args.form = chosen(p, "--form", args.form, ("eager", "compiled"))
    if args.quick:
        args.layers, args.hidden, args.repeat, args.warmup = [2], [32], 3, 1
    return args


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    machine = machine_of(args)
    for name in args.graph:
        batch = Batch(name, args.seed, args.device)
        for case in cases(args):
            case_run(args, machine, case, batch)


if __name__ == "__main__":
    sys.exit(main())
