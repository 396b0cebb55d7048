#!/usr/bin/env python3
"""Training epochs of PyTorch Geometric on a HalfGraph dataset file, for a side-by-side figure with hg-train.

    pip install torch torch_geometric h5py
    python3 tools/peers/pyg_epoch.py DATA.h5 --model gcn --hidden 64 --threads 2 [--device cuda] [--amp]

Same model, same shapes, full batch: forward, loss on the training nodes, backward, Adam step. CSR (torch sparse) and COO (edge_index) are both timed
after a warm-up and the better median is what counts. Prints one JSON line.
"""
import argparse
import json
import statistics
import time

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv, GINConv


def load(path):
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
            x[torch.from_numpy(rows), torch.from_numpy(idx)] = torch.from_numpy(np.broadcast_to(val, idx.shape).copy())
        y = torch.from_numpy(f["nodes/label"][:].astype(np.int64)).reshape(-1)
        mask = torch.from_numpy(f["nodes/train_mask"][:].astype(bool)).reshape(-1) if "nodes/train_mask" in f else torch.ones(n, dtype=torch.bool)
    row = torch.repeat_interleave(torch.arange(n), rowptr[1:] - rowptr[:-1])
    return rowptr, col, row, x, y, mask & (y >= 0)


class Net(torch.nn.Module):
    def __init__(self, model, d, hidden, heads, classes, dropout):
        super().__init__()
        self.model, self.dropout = model, dropout
        if model == "gcn":
            self.layers = torch.nn.ModuleList([GCNConv(d, hidden), GCNConv(hidden, classes)])
        elif model == "gin":
            def mlp(i, o):
                return torch.nn.Sequential(torch.nn.Linear(i, hidden), torch.nn.BatchNorm1d(hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, o))
            self.layers = torch.nn.ModuleList([GINConv(mlp(d, hidden), train_eps=True), GINConv(mlp(hidden, classes), train_eps=True)])
        else:
            self.layers = torch.nn.ModuleList([GATConv(d, hidden // heads, heads=heads, dropout=dropout), GATConv(hidden, classes, heads=1, concat=False, dropout=dropout)])

    def forward(self, x, edges):
        act = F.elu if self.model == "gat" else F.relu
        h = F.dropout(x, self.dropout, self.training)
        h = act(self.layers[0](h, edges))
        h = F.dropout(h, self.dropout, self.training)
        return self.layers[1](h, edges)


def epoch_ms(args, edges, x, y, mask, classes, device):
    torch.manual_seed(0)
    net = Net(args.model, x.shape[1], args.hidden, args.heads, classes, args.dropout).to(device)
    optim = torch.optim.Adam(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(enabled=args.amp)
    times = []
    for epoch in range(args.warmup + args.epochs):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        optim.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.float16, enabled=args.amp):
            loss = F.cross_entropy(net(x, edges)[mask].float(), y[mask])
        scaler.scale(loss).backward()
        scaler.step(optim)
        scaler.update()
        if device == "cuda":
            torch.cuda.synchronize()
        if epoch >= args.warmup:
            times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times), float(loss)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("--model", choices=["gcn", "gin", "gat"], default="gcn")
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--amp", action="store_true")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    rowptr, col, row, x, y, mask = load(args.data)
    classes, n = int(y.max()) + 1, x.shape[0]
    forms = {"coo": torch.stack([col, row]), "csr": torch.sparse_csr_tensor(rowptr, col, torch.ones(col.numel()), (n, n))}
    result = {"peer": "pyg", "torch": torch.__version__, "model": args.model, "device": args.device, "amp": args.amp, "nodes": n, "edges": col.numel(),
              "features": x.shape[1], "hidden": args.hidden}
    for name, edges in forms.items():
        try:
            if args.device == "cuda":
                torch.cuda.reset_peak_memory_stats()
            ms, loss = epoch_ms(args, edges.to(args.device), x.to(args.device), y.to(args.device), mask.to(args.device), classes, args.device)
            result[name + "_ms"], result[name + "_loss"] = round(ms, 3), loss
            if args.device == "cuda":
                result[name + "_peak_mib"] = torch.cuda.max_memory_allocated() // 2**20
        except Exception as error:  # a form that this release cannot run is a result too
            result[name + "_error"] = str(error).split("\n")[0][:160]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
