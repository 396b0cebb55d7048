"""HalfGraph's models (src/nn/models) from the layers of PyTorch Geometric.

Depth and widths are the same. The graph has the self loops that the model shall see, so no layer
adds any; GCNConv alone does, once, because it keeps the normalised adjacency. Q, K and V of the
graph transformer are three products in TransformerConv, and one in HalfGraph.
"""

import torch
import torch.nn.functional as F
from torch_geometric.nn import (
    AGNNConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    TransformerConv,
)

MODELS = ("gcn", "gin", "gat", "gatv2", "agnn", "gt")
ATTENTION = ("gat", "gatv2", "agnn")  # of these every node should have a self loop


class GIN(torch.nn.Module):
    def __init__(self, i, o, hidden):
        super().__init__()
        mlp = torch.nn.Sequential(
            torch.nn.Linear(i, hidden),
            torch.nn.BatchNorm1d(hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, o),
        )
        self.conv = GINConv(mlp, train_eps=True)

    def forward(self, x, edges):
        return self.conv(x, edges)


class Transformer(torch.nn.Module):
    """A layer of the graph transformer: attention and two dense layers, each with a residual and a
    batch normalisation.
    """

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.dropout = dropout
        self.conv = TransformerConv(
            width, width // heads, heads, dropout=dropout, root_weight=False
        )
        self.conv.lin_skip = None  # there, but without a root weight never used
        self.proj = torch.nn.Linear(width, width)
        self.ff1, self.ff2 = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.norm1, self.norm2 = torch.nn.BatchNorm1d(width), torch.nn.BatchNorm1d(width)

    def forward(self, x, edges):
        a = F.dropout(self.conv(x, edges), self.dropout, self.training)
        r = self.norm1(x + self.proj(a))
        inner = F.dropout(F.relu(self.ff1(r)), self.dropout, self.training)
        return self.norm2(r + self.ff2(inner))


def attention_layers(kind, widths, heads, dropout):
    """Hidden layers with their heads side by side, and a last one of a single head."""
    common = {"dropout": dropout, "add_self_loops": False}
    layers = [
        kind(i, o // heads, heads=heads, **common) for i, o in zip(widths, widths[1:-1])
    ]
    return layers + [kind(widths[-2], widths[-1], heads=1, concat=False, **common)]


def layers_of(model, widths, hidden, heads, dropout):
    count, pairs = len(widths) - 1, list(zip(widths, widths[1:]))
    if model == "gcn":  # the normalised adjacency is computed once, as in HalfGraph
        return [GCNConv(i, o, cached=True) for i, o in pairs]
    if model == "gin":
        return [GIN(i, o, hidden) for i, o in pairs]
    if model == "agnn":
        return [AGNNConv(requires_grad=True, add_self_loops=False) for _ in range(count)]
    if model == "gt":
        return [Transformer(hidden, heads, dropout) for _ in range(count)]
    kind = GATConv if model == "gat" else GATv2Conv
    return attention_layers(kind, widths, heads, dropout)


class Net(torch.nn.Module):
    def __init__(self, model, d, hidden, heads, classes, layers, dropout):
        super().__init__()
        self.model, self.dropout = model, dropout
        widths = [d] + [hidden] * (layers - 1) + [classes]
        self.layers = torch.nn.ModuleList(layers_of(model, widths, hidden, heads, dropout))
        self.embed = self.head = None
        if model in ("agnn", "gt"):
            self.embed, self.head = torch.nn.Linear(d, hidden), torch.nn.Linear(hidden, classes)

    def compile_layers(self):
        """Compiles the code of a layer once for all layers of the same shape, and with dynamic
        shapes for every graph. Compiling the unrolled model takes as many times longer as there are
        layers, and fuses nothing more over the edges.
        """
        for layer in self.layers:
            layer.compile(dynamic=True)

    def dropped(self, x):
        return F.dropout(x, self.dropout, self.training)

    def embedded(self, x, edges):
        """Models whose layers are all of the same width."""
        h = self.embed(self.dropped(x))
        h = F.relu(h) if self.model == "agnn" else h
        for layer in self.layers:
            h = layer(h, edges)
        return self.head(h)

    def forward(self, x, edges):
        if self.embed is not None:
            return self.embedded(x, edges)
        act = F.elu if self.model in ("gat", "gatv2") else F.relu
        h = x
        for i, layer in enumerate(self.layers):
            h = layer(self.dropped(h), edges)
            if i + 1 < len(self.layers):
                h = act(h)
        return h
