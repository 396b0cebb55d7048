"""Small set-ups to plant faults in: graphs, and GCN, GIN and GAT from the ops of anomaly_ops.py.

Parameters have the names that HalfGraph gives them. Master weights are f32, working copies half.
"""

import torch

import anomaly_ops as ops
from anomaly_ops import trace

IN, HIDDEN, CLASSES, NODES = 16, 8, 2, 12
LONER = NODES - 1


class Graph:
    def __init__(self, rows, cols, edges, batch=None):
        edges = sorted(edges)
        self.rows, self.cols = rows, cols
        self.dst, self.src = torch.tensor([e[0] for e in edges]), torch.tensor(
            [e[1] for e in edges]
        )
        self.batch = batch

    def to(self, device):
        self.dst, self.src = self.dst.to(device), self.src.to(device)
        self.batch = None if self.batch is None else self.batch.to(device)
        return self

    def factors(self, norm, device):
        d = (
            torch.bincount(self.dst, minlength=self.rows)
            .clamp(min=1)
            .float()
            .to(device)
            .unsqueeze(1)
        )
        c = (
            torch.bincount(self.src, minlength=self.cols)
            .clamp(min=1)
            .float()
            .to(device)
            .unsqueeze(1)
        )
        return {"none": (None, None), "right": (1 / d, None), "both": (d.rsqrt(), c.rsqrt())}[norm]


def ring(n=NODES):
    """n - 1 nodes in a ring with self loops, and the loner, which has only a self loop."""
    m = n - 1
    return Graph(n, n, [(i, j % m) for i in range(m) for j in (i - 1, i, i + 1)] + [(m, m)])


def star(leaves):
    return Graph(
        leaves + 1,
        leaves + 1,
        [(0, i) for i in range(1, leaves + 1)] + [(i, 0) for i in range(1, leaves + 1)],
    )


def fan(leaves):
    return Graph(leaves + 1, leaves + 1, [(i, 0) for i in range(1, leaves + 1)])


def full(rows, cols):
    return Graph(rows, cols, [(i, j) for i in range(rows) for j in range(cols)])


def paths(sizes):
    edges, at, batch = [], 0, []
    for g, size in enumerate(sizes):
        edges += [
            (i, j) for i in range(at, at + size) for j in (i - 1, i, i + 1) if at <= j < at + size
        ]
        batch += [g] * size
        at += size
    return Graph(at, at, edges, torch.tensor(batch))


# A stack frame for each layer, as in a model that is written layer by layer, so that the traceback
# distinguishes the layers.
def conv0(f, *args):
    return f(*args)


def conv1(f, *args):
    return f(*args)


def conv2(f, *args):
    return f(*args)


def head(f, *args):
    return f(*args)


class World:
    """One set-up: parameters by name, and a loss. `naive`: sums in half."""

    def __init__(self, sick, device):
        self.sick, self.device = sick, device
        self.scale, self.naive, self.dtype = 1024.0, False, torch.half
        self.params, self.optim, self.late = {}, lambda p: torch.optim.Adam(p, lr=0.01), None
        self.norm, self.dropout, self.alpha, self.out_heads, self.readout, self.sparse = (
            "right",
            0.0,
            1.0,
            1,
            None,
            None,
        )
        self.expect = None  # (row, col, exact): to check whether a silent fault exists
        torch.manual_seed(1)

    # ---- parts ----

    def param(self, name, rows, cols, value=None):
        a = (6.0 / (rows + cols)) ** 0.5
        data = (
            (2 * torch.rand(rows, cols) - 1) * a
            if value is None
            else torch.full((rows, cols), float(value))
        )
        self.params[name] = torch.nn.Parameter(data.to(self.device))

    def set(self, name, row, col, value):
        with torch.no_grad():
            self.params[name][
                slice(None) if row < 0 else row, slice(None) if col < 0 else col
            ] = value

    def get(self, name):
        """The working copy."""
        return self.params[name].to(self.dtype)

    def tensor(self, rows, cols, value=0.0, dtype=None):
        return torch.full((rows, cols), float(value), dtype=dtype or self.dtype, device=self.device)

    def identity(self, d):
        self.param("w", d, d, 0)
        for c in range(d):
            self.set("w", c, c, 1)

    # ---- a model ----

    def model(self, name, layers, graph, out_heads=1, out=CLASSES, hidden=HIDDEN):
        self.name, self.layers, self.graph, self.out_heads = (
            name,
            layers,
            graph.to(self.device),
            out_heads,
        )
        self.x = torch.zeros(graph.rows, IN)
        self.label = (
            torch.arange(graph.rows if graph.batch is None else int(graph.batch.max()) + 1)
            % CLASSES
        )
        self.hidden, self.out = hidden, out

    def constant(self):
        self.x[:, 0] = 1

    def varied(self):
        self.x = 0.1 + torch.rand(self.x.shape)

    def label_only(self, row, label):
        self.label[:] = -1
        self.label[row] = label

    def build(self, features=IN):
        self.x, self.label = self.x.to(self.device, self.dtype), self.label.to(self.device)
        width, final = features, self.layers - 1
        for l in range(self.layers):
            last = l == final and self.readout is None and self.name != "gin"
            out = self.out if last else self.hidden
            inner = out * self.out_heads if last and self.name == "gat" else out
            getattr(self, "_build_" + self.name)("conv%d." % l, width, inner, out)
            if self.readout:
                self._head("conv%d.head." % l, out)
            width = out
        if self.name == "gin" and not self.readout:
            self._head("head.", width)
        self.loss = self._loss

    def _head(self, at, width):
        self.param(at + "weight", width, self.out)
        self.param(at + "bias", 1, self.out, 0)

    def _build_gcn(self, at, width, inner, out):
        self.param(at + "weight", width, inner)
        self.param(at + "bias", 1, out, 0)

    def _build_gin(self, at, width, inner, out):
        self.param(at + "eps", 1, 1, 0)
        for k, n in (("1", width), ("2", out)):
            self.param(at + "mlp" + k + ".weight", n, out)
            self.param(at + "bn" + k + ".gamma", 1, out, 1)
            self.param(at + "bn" + k + ".beta", 1, out, 0)

    def _build_gat(self, at, width, inner, out):
        self.param(at + "weight", width, inner)
        self.param(at + "att_dst", 1, inner)
        self.param(at + "att_src", 1, inner)
        self.param(at + "bias", 1, out, 0)

    def _multiply(self, x, w):
        """X W; sparse features are a graph between nodes and features."""
        if x is None:
            graph, values = self.sparse
            return ops.spmm(graph, w, weight=values, naive=self.naive)
        return ops.linear(x, w)

    def _gcn(self, at, x, last):
        u = self._multiply(x, self.get(at + "weight"))
        y = ops.bias_add(
            ops.spmm(self.graph, u, self.norm, naive=self.naive), self.get(at + "bias")
        )
        return y if last else torch.relu(y)

    def _gin(self, at, x, last):
        u = self._multiply(x, self.get(at + "mlp1.weight"))
        z = ops.combine(
            u,
            ops.spmm(self.graph, u, self.norm, self.alpha, naive=self.naive),
            self.params[at + "eps"],
        )
        z = torch.relu(
            ops.batch_norm(z, self.params[at + "bn1.gamma"], self.params[at + "bn1.beta"])
        )
        z = ops.linear(z, self.get(at + "mlp2.weight"))
        return torch.relu(
            ops.batch_norm(z, self.params[at + "bn2.gamma"], self.params[at + "bn2.beta"])
        )

    def _gat(self, at, x, last):
        heads = self.out_heads if last else 2
        u = self._multiply(x, self.get(at + "weight"))
        a, b = ops.head_dot(u, self.get(at + "att_dst"), heads), ops.head_dot(
            u, self.get(at + "att_src"), heads
        )
        p = ops.edge_softmax(self.graph, ops.sddmm_add(self.graph, a, b))
        y = ops.spmm(self.graph, u, weight=p, naive=self.naive)
        if last and heads > 1:
            y = y.view(y.shape[0], heads, -1).mean(1)
        y = ops.bias_add(y, self.get(at + "bias"))
        return y if last else ops.elu(y)

    def _scores(self, at, x):
        return ops.linear(x, self.get(at + "weight")) + self.get(at + "bias")

    def _loss(self):
        x, scores = None if self.sparse else self.x, None
        for l in range(self.layers):
            at = "conv%d" % l
            trace.layer = at
            last = l == self.layers - 1 and not self.readout
            if self.dropout:
                x = ops.dropout(x, self.dropout)
            frame = (conv0, conv1, conv2)[l]
            x = frame(getattr(self, "_" + self.name), at + ".", x, last)
            if self.readout:
                s = frame(
                    self._scores,
                    at + ".head.",
                    frame(ops.readout, self.graph, x, self.readout == "mean"),
                )
                scores = s if scores is None else scores + s
        if self.readout:
            x = scores
        elif self.name == "gin":
            trace.layer = "head"
            x = head(self._scores, "head.", x)
        trace.layer = ""
        return ops.softmax_xent(x, self.label)
