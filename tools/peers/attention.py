#!/usr/bin/env python3
"""Attention of PyTorch Geometric and PyTorch, for comparison with hg-bench attention.

    pip install torch torch_geometric
    python3 tools/peers/attention.py --graph pattern-like --score all --features 128 --heads 1,8 \
        --precision all --peer all --device cuda --json results.json

Measured is what hg-bench attention measures: scores, softmax over the edges of each row and the
weighted sum, from operands that are there. The projections of a layer are left out. The graph, the
operands' shapes and the function are the same; the operands' numbers are other random ones.

    pyg            the attention of a layer of PyTorch Geometric: GATConv (add), TransformerConv
                   (dot), AGNNConv (cosine, one head), GATv2Conv (add-v2), on the graph as COO and
                   as CSR; fp32, or amp: torch.autocast with halves where a layer has them there
    pyg-compiled   the same on COO by torch.compile, which does not trace CSR; with dynamic shapes,
                   so that the code that it keeps on disk serves every graph of a width
    sdpa           dot, halves: scaled_dot_product_attention with a dense mask for each graph of a
                   batch, or for the one graph: the log of how often an edge is there
    flex           dot, halves: FlexAttention, compiled, with the same mask

One line of JSON for the forward pass ("attention", which keeps what the backward pass needs) and
one for forward and backward ("attention both"). peak_beyond_inputs_bytes counts neither operands
nor graph; graph_bytes is the graph in the peer's form. relative_error is the largest difference
from the same function in f64, over the largest result; where the graph is large or weights are
dropped it is left out. What a peer cannot do, or has no memory for, is a line, too ("absent").
"""

import argparse
import math
import statistics
import time
import warnings

import torch
import torch.nn.functional as F

import graphs
from command import chosen, counts, emit, machine_of, run_options

SCORES = ("add", "dot", "cosine", "add-v2")
PEERS = ("pyg", "pyg-compiled", "sdpa", "flex")
OPS = ("attention", "attention both")
SLOPE, BETA = 0.2, 1.0
SAMPLE_MS, WARM_UPS = 20.0, 3  # as hg-bench measures; passes longer than a sample need only one
REFERENCE_MOST = 1 << 27  # edges times columns that are computed again in f64


class Case:
    """A graph, and the operands of one score: q and k [n, heads, columns], v [n, heads, columns];
    add has q and k of [n, heads]. Operands that a model shares are one tensor.
    """

    def __init__(self, name, rowptr, col, score, features, heads, seed):
        device = col.device
        generator = torch.Generator(device=device).manual_seed(seed)
        self.name, self.rowptr, self.col, self.score = name, rowptr, col, score
        self.n, self.heads, self.width = rowptr.numel() - 1, heads, features // heads
        shape = (self.n, heads, self.width)

        def uniform(*shape):
            return 2 * torch.rand(*shape, generator=generator, device=device) - 1

        self.v = uniform(*shape)
        self.q = self.k = self.v
        if score == "add":
            self.q, self.k = 2 * uniform(self.n, heads), 2 * uniform(self.n, heads)
        elif score == "dot":
            self.q, self.k = 2 * uniform(*shape), 2 * uniform(*shape)
        elif score == "add-v2":
            self.q = 2 * uniform(*shape)
        self.c = 2 * uniform(1, heads, self.width) / math.sqrt(self.width)
        self.dy = uniform(self.n, features)

    def rows(self):
        """The row of each edge."""
        counts = self.rowptr[1:] - self.rowptr[:-1]
        return torch.repeat_interleave(torch.arange(self.n, device=self.col.device), counts)

    def operands(self, precision):
        """Leaves for q, k and v, the shared ones once. Where a layer runs with autocast, its
        projections leave halves; the scores of GATConv's ends are sums, which are f32 there.
        """
        half = precision != "fp32"
        leaf = {}
        for tensor in (self.q, self.k, self.v):
            low = half and tensor.dim() == 3
            leaf[id(tensor)] = (tensor.half() if low else tensor.clone()).detach().requires_grad_()
        return [leaf[id(tensor)] for tensor in (self.q, self.k, self.v)], list(leaf.values())

    def expected(self):
        """The result in f64; None where that is too much."""
        if self.col.numel() * self.heads * self.width > REFERENCE_MOST:
            return None
        i, j = self.rows(), self.col
        q, k, v, c = (x.double() for x in (self.q, self.k, self.v, self.c))
        if self.score == "add":
            s = F.leaky_relu(q[i] + k[j], SLOPE)
        elif self.score == "dot":
            s = (q[i] * k[j]).sum(-1) / math.sqrt(self.width)
        elif self.score == "cosine":
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            s = BETA * (q[i] * k[j]).sum(-1)
        else:
            s = (c * F.leaky_relu(q[i] + k[j], SLOPE)).sum(-1)
        p = torch.exp(s)  # scores are a few units in size
        total = torch.zeros(self.n, self.heads, dtype=p.dtype, device=p.device).index_add(0, i, p)
        p = (p / total[i]).unsqueeze(-1)
        return torch.zeros_like(v).index_add(0, i, p * v[j]).flatten(1)


class Layer(torch.nn.Module):
    """The attention of a layer of PyTorch Geometric, after its projections."""

    NAMES = {
        "add": "GATConv",
        "dot": "TransformerConv",
        "cosine": "AGNNConv",
        "add-v2": "GATv2Conv",
    }

    def __init__(self, case, dropout):
        super().__init__()
        import torch_geometric.nn

        width, heads = case.width, case.heads
        kind = getattr(torch_geometric.nn, self.NAMES[case.score])
        self.score, self.n = case.score, case.n
        if case.score == "cosine":
            if heads != 1 or dropout:
                raise ValueError("AGNNConv has one head and no dropout")
            self.conv = kind(requires_grad=False, add_self_loops=False)
        elif case.score == "dot":
            self.conv = kind(width, width, heads=heads, dropout=dropout, root_weight=False)
        else:
            self.conv = kind(
                width, width, heads, negative_slope=SLOPE, dropout=dropout, add_self_loops=False
            )
        if case.score == "add-v2":
            self.conv.att.data = case.c.clone()
        self.conv.to(case.col.device)

    def forward(self, q, k, v, edges):
        conv = self.conv
        if self.score == "add":
            weight = conv.edge_updater(edges, alpha=(k, q), edge_attr=None, size=None)
            out = conv.propagate(edges, x=(v, v), alpha=weight, size=None)
        elif self.score == "dot":
            out = conv.propagate(edges, query=q, key=k, value=v, edge_attr=None)
        elif self.score == "cosine":
            x = v.view(self.n, -1)
            out = conv.propagate(edges, x=x, x_norm=F.normalize(x, p=2.0, dim=-1))
        else:
            weight = conv.edge_updater(edges, x=(v, q), edge_attr=None)
            out = conv.propagate(edges, x=(v, q), alpha=weight)
        return out.flatten(1)


def pyg(case, form, compiled, precision, dropout):
    """The function of q, k and v, and the bytes of the graph."""
    if form == "coo":
        edges = torch.stack([case.col, case.rows()])
        size = edges.numel() * edges.element_size()
    else:
        values = torch.ones(case.col.numel(), device=case.col.device)
        edges = torch.sparse_csr_tensor(case.rowptr, case.col, values, (case.n, case.n))
        size = 8 * (case.rowptr.numel() + case.col.numel()) + 4 * values.numel()
    layer = Layer(case, dropout).train()
    run = torch.compile(layer, dynamic=True) if compiled else layer

    def forward(q, k, v):
        amp = torch.autocast(case.col.device.type, torch.float16, enabled=precision == "amp")
        with amp:
            return run(q, k, v, edges)

    return forward, size


def dense(case):
    """The graphs of a batch as dense matrices: the log of how often each edge is there,
    [graphs, 1, nodes of a graph, nodes of a graph], -inf for none.
    """
    kind, n, _, block = graphs.GRAPHS[case.name][:4]
    block = block if block and kind != "planted" else n
    count = torch.zeros(n // block, 1, block, block, dtype=torch.float16, device=case.col.device)
    i, j = case.rows(), case.col
    at = i // block * block * block + i % block * block + j % block
    count.view(-1).index_add_(0, at, torch.ones_like(at, dtype=torch.float16))
    return count.log_()


def batched(x, block):
    """[n, heads, width] as [graphs, heads, nodes of a graph, width], and back."""
    return x.view(-1, block, *x.shape[1:]).transpose(1, 2)


def flattened(y, n):
    return y.transpose(1, 2).reshape(n, -1)


def sdpa(case, dropout):
    mask = dense(case)
    block = mask.shape[-1]

    def forward(q, k, v):
        q, k, v = (batched(x, block) for x in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return flattened(out, case.n)

    return forward, mask.numel() * mask.element_size()


def flex(case, dropout):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    if dropout:
        raise ValueError("FlexAttention has no dropout")
    bias = dense(case).squeeze(1)
    batch, block = bias.shape[0], bias.shape[-1]

    def is_edge(b, h, i, j):
        return bias[b, i, j] > -math.inf

    def add_log(score, b, h, i, j):
        return score + bias[b, i, j]

    blocks = create_block_mask(is_edge, batch, None, block, block, device=str(case.col.device))
    run = torch.compile(flex_attention, dynamic=False)

    def forward(q, k, v):
        q, k, v = (batched(x, block).contiguous() for x in (q, k, v))
        return flattened(run(q, k, v, score_mod=add_log, block_mask=blocks), case.n)

    return forward, bias.numel() * bias.element_size()


def synchronize(cuda):
    if cuda:
        torch.cuda.synchronize()


def timed(run, samples, cuda):
    """Milliseconds of a run: median, least and most of the samples, each a batch of runs."""

    def batch(count):
        synchronize(cuda)
        begin = time.perf_counter()
        for _ in range(count):
            run()
        synchronize(cuda)
        return 1e3 * (time.perf_counter() - begin) / count

    one = batch(1)
    if one < SAMPLE_MS:
        one = [batch(1) for _ in range(WARM_UPS - 1)][-1]
    count = int(SAMPLE_MS / max(one, 0.002)) + 1 if one < SAMPLE_MS else 1
    times = [batch(count) for _ in range(samples)]
    return {
        "ms": statistics.median(times),
        "ms_min": min(times),
        "ms_max": max(times),
        "samples": samples,
    }


def relative_error(case, out, expected):
    """NaN counts as an error, except in rows without edges: a softmax of nothing."""
    filled = case.rowptr[1:] > case.rowptr[:-1]
    difference = (out.detach().double() - expected)[filled].abs().max()
    value = float(difference / expected.abs().max())
    return value if math.isfinite(value) else None


def measured(case, make, precision, samples, expected):
    """Yields the lines of the forward pass, and of forward and backward."""
    cuda = case.col.device.type == "cuda"
    (q, k, v), leaves = case.operands(precision)
    forward, graph_bytes = make()
    dy = case.dy if precision == "fp32" else case.dy.half()

    def both():
        out = forward(q, k, v)
        return torch.autograd.grad(out, leaves, dy.to(out.dtype))

    for op, run in zip(OPS, (lambda: forward(q, k, v), both)):
        row = {"op": op, "graph_bytes": graph_bytes}
        run()  # compiled here, and not counted
        synchronize(cuda)
        if cuda:
            torch.cuda.empty_cache()
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            run()
            synchronize(cuda)
            row["peak_beyond_inputs_bytes"] = torch.cuda.max_memory_allocated() - held
        row.update(timed(run, samples, cuda))
        if expected is not None:
            row["relative_error"] = relative_error(case, forward(q, k, v), expected)
        yield row


def attempt(case, make, precision, samples, expected):
    """The same; a pass that fails is a line, too."""
    done = 0
    try:
        for row in measured(case, make, precision, samples, expected):
            yield row
            done += 1
        return
    except Exception as error:
        text = str(error).strip()
        short = "out of memory" in text or "allocate memory" in text or "not enough memory" in text
        why = "out of memory" if short else f"{type(error).__name__}: {text}".split("\n")[0][:160]
    for op in OPS[done:]:
        yield {"op": op, "absent": why}


def runs(case, peers, precisions, forms, dropout):
    """(peer, its name, precision, make) of every run of a case. Without --precision fp32 and amp
    PyTorch's own attention runs still: it is for halves.
    """
    for peer in peers:
        if peer.startswith("pyg"):
            compiled = peer == "pyg-compiled"
            for precision in precisions:
                for form in ("coo",) if compiled else forms:
                    words = f'{Layer.NAMES[case.score]} {form}{" compiled" if compiled else ""}'

                    def make(form=form, compiled=compiled, precision=precision):
                        return pyg(case, form, compiled, precision, dropout)

                    yield "pyg", words, precision, make
        elif case.score == "dot":
            make = {"sdpa": sdpa, "flex": flex}[peer]
            words = {"sdpa": "SDPA", "flex": "FlexAttention"}[peer]
            yield "torch", words, "fp16", lambda make=make: make(case, dropout)


def arguments():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--graph", required=True, help="named graphs of hg-bench, or all of a batch")
    p.add_argument("--score", default="all", help=f'some of {",".join(SCORES)}, or all')
    p.add_argument("--peer", default="all", help=f'some of {",".join(PEERS)}, or all')
    p.add_argument("--precision", default="all", help="of PyTorch Geometric: fp32,amp, or all")
    p.add_argument("--form", default="all", help="of the graph, not compiled: coo,csr, or all")
    p.add_argument("--features", type=counts, default=[64, 128], help="widths over all heads")
    p.add_argument("--heads", type=counts, default=[1, 8])
    p.add_argument("--dropout", type=float, default=0.0)
    p.add_argument("--repeat", type=int, default=7, help="samples after three warm-up runs")
    run_options(p)
    args = p.parse_args()
    args.graph = chosen(p, "--graph", args.graph, graphs.GRAPHS)
    args.score = chosen(p, "--score", args.score, SCORES)
    args.peer = chosen(p, "--peer", args.peer, PEERS)
    args.precision = chosen(p, "--precision", args.precision, ("fp32", "amp"))
    args.form = chosen(p, "--form", args.form, ("coo", "csr"))
    return args


def case_run(args, machine, case):
    import torch_geometric

    expected = None if args.dropout else case.expected()
    for peer, words, precision, make in runs(
        case, args.peer, args.precision, args.form, args.dropout
    ):
        torch._dynamo.reset()  # a new compilation for each run, without the limit of recompilations
        if args.device == "cuda":
            torch.cuda.empty_cache()
        about = {
            "peer": peer,
            "version": torch_geometric.__version__ if peer == "pyg" else torch.__version__,
            "torch": torch.__version__,
            "device": machine,
            "cuda": torch.version.cuda or "",
            "graph": case.name,
            "nodes": case.n,
            "edges": case.col.numel(),
            "seed": args.seed,
            "variant": f"{case.score} {words}"
            + (f" dropout {args.dropout:g}" if args.dropout else ""),
            "score": case.score,
            "precision": precision,
            "features": case.heads * case.width,
            "heads": case.heads,
            "dropout": args.dropout,
        }
        for row in attempt(case, make, precision, args.repeat, expected):
            emit(args, about | row)


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore", message="Sparse")  # CSR is called a beta feature
    machine = machine_of(args)
    for name in args.graph:
        rowptr, col = graphs.graph(name, args.seed, args.device)
        for score in args.score:
            for features in args.features:
                for heads in args.heads:
                    if features % heads == 0:
                        case = Case(name, rowptr, col, score, features, heads, args.seed)
                        case_run(args, machine, case)


if __name__ == "__main__":
    main()
