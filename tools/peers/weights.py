#!/usr/bin/env python3
"""Prints tests/data/weights_peers.h: small models of PyTorch Geometric, the names and shapes of
their weights, and their logits.

    pip install torch torch_geometric
    python3 tools/peers/weights.py > tests/data/weights_peers.h

tests/data/weights.c writes files with the same weights, imports them, and compares the logits in
fp32. Element k of tensor t of a state dict is ((37 k + 17 t + 5) mod 101 - 50) / 64, of a variance
its absolute value + 1/2; feature f of node i is ((7 i + 3 f) mod 13 - 6) / 8. PyTorch computes in
float64. Attribute f of the edge from node j to node i is ((5 i + 3 j + f) mod 7 - 3) / 4.
"""

import torch
import torch.nn.functional as F
import torch_geometric
from torch import nn
from torch_geometric.nn import APPNP, AGNNConv, GATConv, GATv2Conv, GCNConv, GINConv, GINEConv
from torch_geometric.nn import SAGEConv, SGConv, TransformerConv
from torch_geometric.nn.models import GCN, GIN, GraphSAGE

N, FEATURES, CLASSES = 6, 4, 3
PAIRS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]
EDGES = torch.tensor(PAIRS + [(b, a) for a, b in PAIRS]).T
ATTRIBUTES = 2


class Stack(nn.Module):
    """Layers, each but the last with an activation, between an embedding and a head."""

    def __init__(self, convs, act, names=None, first=None, last=None, act_last=False):
        super().__init__()
        self.act, self.act_last = act, act_last
        if first:
            self.add_module(first[0], first[1])
        self.first = first and first[0]
        self.names = names or [f"conv{k + 1}" for k in range(len(convs))]
        for name, conv in zip(self.names, convs):
            self.add_module(name, conv)
        if last:
            self.add_module(last[0], last[1])
        self.last = last and last[0]

    def forward(self, x, edges):
        if self.first:
            x = F.relu(self._modules[self.first](x))
        for k, name in enumerate(self.names):
            x = self._modules[name](x, edges)
            x = self.act(x) if self.act_last or k + 1 < len(self.names) else x
        return self._modules[self.last](x) if self.last else x


class Transformer(nn.Module):
    """The graph transformer of Dwivedi and Bresson (2021), as src/nn/models/gt.c has it."""

    def __init__(self, hidden, heads, layers):
        super().__init__()
        width = hidden * heads
        many = lambda make: nn.ModuleList(make() for _ in range(layers))
        self.embed = nn.Linear(FEATURES, width)
        self.convs = many(lambda: TransformerConv(width, hidden, heads, root_weight=False))
        for conv in self.convs:
            conv.lin_skip = None  # there, but without a root weight never used
        self.proj = many(lambda: nn.Linear(width, width))
        self.norm1 = many(lambda: nn.BatchNorm1d(width))
        self.ff1 = many(lambda: nn.Linear(width, 2 * width))
        self.ff2 = many(lambda: nn.Linear(2 * width, width))
        self.norm2 = many(lambda: nn.BatchNorm1d(width))
        self.lin = nn.Linear(width, CLASSES)

    def forward(self, x, edges):
        x = self.embed(x)
        for k, conv in enumerate(self.convs):
            x = self.norm1[k](x + self.proj[k](conv(x, edges)))
            x = self.norm2[k](x + self.ff2[k](F.relu(self.ff1[k](x))))
        return self.lin(x)


class Appnp(nn.Module):
    """Two dense layers, and then the propagation."""

    def __init__(self, named):
        super().__init__()
        lins = [nn.Linear(FEATURES, 5), nn.Linear(5, CLASSES)]
        if named:
            self.lin1, self.lin2 = lins
        else:
            self.lins = nn.ModuleList(lins)
        self.steps, self.prop1 = lambda: lins, APPNP(10, 0.1)

    def forward(self, x, edges):
        first, last = self.steps()
        return self.prop1(last(F.relu(first(x))), edges)


def mlp(width):
    parts = [nn.Linear(width, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 5), nn.BatchNorm1d(5)]
    return nn.Sequential(*parts, nn.ReLU())


class Gine(nn.Module):
    """GINEConv between an embedding and a head."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATURES, 5)
        self.convs = nn.ModuleList(
            GINEConv(mlp(5), train_eps=True, edge_dim=ATTRIBUTES) for _ in range(2)
        )
        self.lin = nn.Linear(5, CLASSES)

    def forward(self, x, edges):
        f = torch.arange(ATTRIBUTES)
        z = ((5 * edges[1] + 3 * edges[0]).reshape(-1, 1) + f) % 7 - 3
        x = self.embed(x)
        for conv in self.convs:
            x = conv(x, edges, z.double() / 4)
        return self.lin(x)


def models():
    """(name of the model here, what is special, the model there)"""
    gat = [GATConv(FEATURES, 2, 2), GATConv(4, CLASSES, 2, concat=False)]
    gatv2 = [GATv2Conv(FEATURES, 2, 2), GATv2Conv(4, CLASSES, 2, concat=False)]
    yield "gcn", "conv1 and conv2", Stack([GCNConv(FEATURES, 5), GCNConv(5, CLASSES)], F.relu)
    yield "gcn", "PyG's GCN", GCN(FEATURES, 5, 2, CLASSES)
    yield "gat", "layers in one list", Stack(gat, F.elu, names=["gnn_9", "gnn_10"])
    yield "gatv2", "conv1 and conv2", Stack(gatv2, F.elu)
    yield "gin", "PyG's GIN", GIN(FEATURES, 5, 2, CLASSES, norm="batch_norm", jk="last")
    gin = [GINConv(mlp(FEATURES), train_eps=True), GINConv(mlp(5), train_eps=True)]
    head = ("classify", nn.Linear(5, CLASSES))
    yield "gin", "Sequential", Stack(gin, lambda x: x, last=head)
    yield "gine", "GINEConv", Gine()
    agnn = [AGNNConv(), AGNNConv()]
    yield "agnn", "lin1, prop1, prop2, lin2", Stack(
        agnn,
        lambda x: x,
        names=["prop1", "prop2"],
        first=("lin1", nn.Linear(FEATURES, 5)),
        last=("lin2", nn.Linear(5, CLASSES)),
    )
    yield "gt", "TransformerConv", Transformer(2, 2, 2)
    yield "sage", "conv1 and conv2", Stack([SAGEConv(FEATURES, 5), SAGEConv(5, CLASSES)], F.relu)
    yield "sage", "PyG's GraphSAGE", GraphSAGE(FEATURES, 5, 2, CLASSES)
    yield "sgc", "SGConv", Stack([SGConv(FEATURES, CLASSES, K=2)], F.relu)
    yield "appnp", "lins in one list", Appnp(named=False)
    yield "appnp", "lin1, lin2, prop1", Appnp(named=True)


def fill(model):
    """The (name, shape) of every tensor but counters, which get the values of the formula."""
    listed = []
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        k = torch.arange(tensor.numel(), dtype=torch.float64)
        value = ((37 * k + 17 * len(listed) + 5) % 101 - 50) / 64
        value = value.abs() + 0.5 if name.endswith("running_var") else value
        tensor.copy_(value.reshape(tensor.shape))
        listed.append((name, list(tensor.shape)))
    return listed


def main():
    i, f = torch.arange(N).reshape(-1, 1), torch.arange(FEATURES)
    x = ((7 * i + 3 * f) % 13 - 6).double() / 8
    print("/* Made by tools/peers/weights.py, which describes it, with PyTorch")
    torch_version = torch.__version__.split("+")[0]
    print(f" * {torch_version} and PyTorch Geometric {torch_geometric.__version__}. */")
    print("static const struct peer peers[] = {")
    for name, what, model in models():
        model = model.double().eval()
        with torch.no_grad():
            listed = fill(model)
            logits = model(x, EDGES)
        print(f'    {{"{name}",\n     "{what}",\n     {{')
        for tensor, shape in listed:
            print(f'         {{"{tensor}", {len(shape)}, {{{", ".join(map(str, shape))}}}}},')
        print("     },\n     {")
        for row in logits.tolist():
            print("         " + " ".join(f"{v:.9g}," for v in row))
        print("     }},")
    print("};")


if __name__ == "__main__":
    main()
