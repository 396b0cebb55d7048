#!/usr/bin/env python3
"""Compares models with PyTorch Geometric: logits, loss and the gradient of every parameter.

    pip install torch torch_geometric
    python3 tools/peers/parity.py BUILD/bin/hg-parity                   every model, on the CPU
    python3 tools/peers/parity.py BUILD/bin/hg-parity --device cuda --model gt

hg-parity computes in the policy's precision, PyTorch the same from the same halves in float64, with
PyG's own layers (GCNConv, GINConv, GINEConv, GATConv, GATv2Conv, AGNNConv, TransformerConv,
SAGEConv, SGConv, APPNP). Printed is the largest difference of a tensor, as a share of its largest
element (at least 1e-3 of the largest of all gradients, for those that are 0 up to rounding; for a
bias also at least the largest gradient of its weights, because in front of a batch normalisation
the gradient of a bias is 0: a sum of numbers of the size of those gradients that cancel). It must
be below 1e-5 in fp32. In fp16 it must be below 2^-5: 64 roundings, of which one node goes through
some 20; or below twice the largest difference that it makes in PyTorch to store every result as
halves, which is more where a relu is on the other side of 0 then. This tells a wrong equation from
rounding; the bounds with a proof are in tests/suite/test_model_values.c. Exits with 1 if a tensor
is beyond.
"""

import argparse
import json
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from torch_geometric.nn import (
    APPNP,
    AGNNConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    SAGEConv,
    SGConv,
    TransformerConv,
)

LIMIT = {"fp32": 1e-5, "fp16": 2.0**-5}
MODELS = ("gcn", "gin", "gine", "gat", "gatv2", "agnn", "gt", "sage", "sgc", "appnp")


class Halves(torch.autograd.Function):
    """A result stored as halves, and its gradient as halves times a loss scale."""

    on = False

    @staticmethod
    def forward(ctx, x):
        return x.half().to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return (1024 * g).half().to(g.dtype) / 1024


def stored(x):
    return Halves.apply(x) if Halves.on else x


def tensor(row, key):
    return torch.tensor(row[key], dtype=torch.float64).reshape(row["shape"])


def linear(p, name, x):
    return stored(x @ p[f"{name}.weight"] + p[f"{name}.bias"])


def call(layer, weights, x, edges, *more):
    """The layer with these tensors as its parameters, so that their gradients are those of p."""
    layer = layer.double()
    missing = set(dict(layer.named_parameters())) ^ set(weights)
    assert not missing, f"{type(layer).__name__}: parameters differ: {missing}"
    return stored(functional_call(layer, weights, (x, edges, *more)))


def gcn(p, c, x, edges):
    for n in range(c["layers"]):
        w = p[f"conv{n}.weight"]
        layer = GCNConv(x.shape[1], w.shape[1], add_self_loops=False)
        x = call(layer, {"lin.weight": w.T, "bias": p[f"conv{n}.bias"][0]}, x, edges)
        x = x if n + 1 == c["layers"] else F.relu(x)
    return x


class Dense(nn.Linear):
    """A product inside a layer, whose operand and result are stored, too."""

    def forward(self, x):
        return stored(super().forward(stored(x)))


def perceptron(p, name):
    """Two dense layers, each with a batch normalisation and a relu, and their parameters."""
    parts, weights = [], {}
    for k in (1, 2):
        w, at = p[f"{name}.mlp{k}.weight"], len(parts)
        parts += [Dense(*w.shape, bias=False), nn.BatchNorm1d(w.shape[1]), nn.ReLU()]
        weights[f"nn.{at}.weight"] = w.T
        weights[f"nn.{at + 1}.weight"] = p[f"{name}.bn{k}.gamma"][0]
        weights[f"nn.{at + 1}.bias"] = p[f"{name}.bn{k}.beta"][0]
    return nn.Sequential(*parts), weights


def gin(p, c, x, edges):
    for n in range(c["layers"]):
        mlp, weights = perceptron(p, f"conv{n}")
        weights["eps"] = p[f"conv{n}.eps"][0]
        x = call(GINConv(mlp, train_eps=True), weights, x, edges)
    return linear(p, "head", x)


def gine(p, c, x, edges):
    x = linear(p, "embed", x)
    for n in range(c["layers"]):
        mlp, weights = perceptron(p, f"conv{n}")
        weights["eps"] = p[f"conv{n}.eps"][0]
        weights["lin.weight"] = p[f"conv{n}.edge.weight"].T
        weights["lin.bias"] = p[f"conv{n}.edge.bias"][0]
        width = c["edge_x"].shape[1]
        layer = GINEConv(mlp, train_eps=True, edge_dim=width)
        layer.lin = Dense(width, x.shape[1])
        x = call(layer, weights, x, edges, c["edge_x"])
    return linear(p, "head", x)


def gat(p, c, x, edges):
    for n in range(c["layers"]):
        last = n + 1 == c["layers"]
        heads = c["out_heads"] if last else c["heads"]
        w = p[f"conv{n}.weight"]
        width = w.shape[1] // heads
        layer = GATConv(x.shape[1], width, heads, concat=not last, add_self_loops=False)
        parts = {
            "lin.weight": w.T,
            "att_src": p[f"conv{n}.att_src"].reshape(1, heads, width),
            "att_dst": p[f"conv{n}.att_dst"].reshape(1, heads, width),
            "bias": p[f"conv{n}.bias"][0],
        }
        x = call(layer, parts, x, edges)
        x = x if last else F.elu(x)
    return x


def gatv2(p, c, x, edges):
    for n in range(c["layers"]):
        last = n + 1 == c["layers"]
        heads = c["out_heads"] if last else c["heads"]
        right, left = p[f"conv{n}.ends.weight"].chunk(2, 1)
        right_bias, left_bias = p[f"conv{n}.ends.bias"][0].chunk(2)
        width = left.shape[1] // heads
        layer = GATv2Conv(x.shape[1], width, heads, concat=not last, add_self_loops=False)
        parts = {
            "lin_l.weight": left.T,
            "lin_l.bias": left_bias,
            "lin_r.weight": right.T,
            "lin_r.bias": right_bias,
            "att": p[f"conv{n}.att"].reshape(1, heads, width),
            "bias": p[f"conv{n}.bias"][0],
        }
        x = call(layer, parts, x, edges)
        x = x if last else F.elu(x)
    return x


def agnn(p, c, x, edges):
    x = F.relu(linear(p, "embed", x))
    for n in range(c["layers"]):
        layer = AGNNConv(requires_grad=True, add_self_loops=False)
        x = call(layer, {"beta": p[f"conv{n}.beta"][0]}, x, edges)
    return linear(p, "head", x)


def normalise(p, name, x, kind):
    gamma, beta = p[f"{name}.gamma"][0], p[f"{name}.beta"][0]
    if kind == "layer":
        return stored(F.layer_norm(x, x.shape[1:], gamma, beta, 1e-5))
    return stored(F.batch_norm(x, None, None, gamma, beta, training=True, eps=1e-5))


def gt(p, c, x, edges):
    x = linear(p, "embed", x)
    for n in range(c["layers"]):
        name = f"conv{n}"
        layer = TransformerConv(x.shape[1], c["hidden"], c["heads"], root_weight=False)
        layer.lin_skip = None  # there, but without a root weight never used
        weights = p[f"{name}.qkv.weight"].chunk(3, 1)
        biases = p[f"{name}.qkv.bias"][0].chunk(3)
        parts = {}
        for part, weight, bias in zip(("query", "key", "value"), weights, biases):
            parts[f"lin_{part}.weight"], parts[f"lin_{part}.bias"] = weight.T, bias
        a = call(layer, parts, x, edges)
        r = normalise(p, f"{name}.norm1", x + linear(p, f"{name}.proj", a), c["norm"])
        y = linear(p, f"{name}.ff2", F.relu(linear(p, f"{name}.ff1", r)))
        x = normalise(p, f"{name}.norm2", r + y, c["norm"])
    return linear(p, "head", x)


def sage(p, c, x, edges):
    for n in range(c["layers"]):
        root, neighbors = p[f"conv{n}.root.weight"], p[f"conv{n}.neighbors.weight"]
        parts = {
            "lin_l.weight": neighbors.T,
            "lin_l.bias": p[f"conv{n}.root.bias"][0],
            "lin_r.weight": root.T,
        }
        x = call(SAGEConv(x.shape[1], root.shape[1]), parts, x, edges)
        x = x if n + 1 == c["layers"] else F.relu(x)
    return x


def sgc(p, c, x, edges):
    for n in range(c["layers"]):
        w = p[f"conv{n}.weight"]
        layer = SGConv(x.shape[1], w.shape[1], K=c["hops"], add_self_loops=False)
        x = call(layer, {"lin.weight": w.T, "lin.bias": p[f"conv{n}.bias"][0]}, x, edges)
        x = x if n + 1 == c["layers"] else F.relu(x)
    return x


def appnp(p, c, x, edges):
    for n in range(c["layers"]):
        x = linear(p, f"conv{n}", x)
        x = x if n + 1 == c["layers"] else F.relu(x)
    return call(APPNP(c["hops"], c["teleport"], add_self_loops=False), {}, x, edges)


def output(program, model, precision, device, norm):
    """The lines of hg-parity."""
    command = [program, model, precision, device, norm]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def limit_of(args, model, precision, norm):
    """The largest difference that passes. That of halves in PyTorch is found beside fp32 here."""
    if precision != "fp16":
        return LIMIT[precision]
    rows = output(args.program, model, "fp32", args.device, norm)
    Halves.on = True
    own = max(share for _, share in differences(rows, model, norm))
    Halves.on = False
    return max(LIMIT[precision], 2 * own)


def differences(rows, model, norm):
    """(name, largest difference as a share of the largest element) of every tensor."""
    config = dict(rows[0], norm=norm)
    edges = torch.tensor(rows[1]["edges"]).reshape(-1, 2).T.flip(0)  # (source, destination)
    named = {row["name"]: row for row in rows[2:]}
    x = tensor(named.pop("features"), "value")
    if "edge_features" in named:
        config["edge_x"] = tensor(named.pop("edge_features"), "value")
    logits, loss = named.pop("logits"), named.pop("loss")
    p = {name: tensor(row, "value").requires_grad_() for name, row in named.items()}
    out = globals()[model](p, config, x, edges)
    classes = out.shape[1]
    ours = F.cross_entropy(out, torch.arange(out.shape[0]) % classes)
    ours.backward()
    largest = {name: q.grad.abs().max().item() for name, q in p.items()}
    least = 1e-3 * max(largest.values())
    pairs = [("logits", tensor(logits, "value"), out, 0.0)]
    pairs += [("loss", tensor(loss, "value"), ours, 0.0)]
    for name, q in p.items():
        weights = largest.get(name.removesuffix(".bias") + ".weight", 0.0)
        floor = max(least, weights if name.endswith(".bias") else 0.0)
        pairs.append((name, tensor(named[name], "gradient"), q.grad, floor))
    for name, found, expected, floor in pairs:
        size = max(expected.abs().max().item(), floor)
        yield name, (found.reshape(expected.shape) - expected).abs().max().item() / size


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("program", help="hg-parity")
    p.add_argument("--model", default="all", help="one of " + ", ".join(MODELS) + ", or all")
    p.add_argument("--precision", default="fp32,fp16")
    p.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    args = p.parse_args()
    failures = 0
    for model in MODELS if args.model == "all" else args.model.split(","):
        for norm in ("batch", "layer") if model == "gt" else ("batch",):
            for precision in args.precision.split(","):
                limit = limit_of(args, model, precision, norm)
                rows = output(args.program, model, precision, args.device, norm)
                shares = list(differences(rows, model, norm))
                name, worst = max(shares, key=lambda s: s[1])
                good = all(share <= limit for _, share in shares)
                failures += not good
                kind = f"{model} {norm}" if model == "gt" else model
                verdict = "ok" if good else "FAILED"
                print(
                    f"{verdict:7} {kind:9} {precision}: {len(shares)} tensors, worst {name}: "
                    f"{worst:.2g} (limit {limit:.2g})"
                )
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
