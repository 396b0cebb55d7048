#!/usr/bin/env python3
"""A named synthetic graph, or a star, as an .npz for h5convert.

Features are uniform in (0, 1), the label of a node is the index of its largest feature, and 60 % of
the nodes are for training.

    python3 tools/peers/dataset.py star-13000 star.npz
    h5convert --from npz star.npz -o star.h5
    python3 tools/peers/dataset.py kron-21 kron.npz --width 32 --device cuda
"""

import argparse

import numpy as np
import torch

import graphs


def star(leaves):
    """Edges in both directions between node 0 and every leaf."""
    rowptr = torch.cat([torch.tensor([0]), leaves + torch.arange(leaves + 1)])
    return rowptr, torch.cat([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.int64)])


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("graph", help="star-LEAVES, or one of " + ", ".join(graphs.GRAPHS))
    p.add_argument("out", help="the .npz")
    p.add_argument("--width", type=int, default=16)
    p.add_argument("--classes", type=int, default=4)
    p.add_argument("--device", default="cpu")
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    rowptr, col = (
        star(int(args.graph[5:]))
        if args.graph.startswith("star-")
        else graphs.graph(args.graph, args.seed, args.device)
    )
    n = rowptr.numel() - 1
    x = torch.rand(n, args.width, generator=torch.Generator().manual_seed(args.seed))
    y = x[:, : args.classes].argmax(1)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(args.seed)).numpy()
    cut = [n // 10 * 6, n // 10 * 8]
    np.savez(
        args.out,
        train_idx=order[: cut[0]],
        val_idx=order[cut[0] : cut[1]],
        test_idx=order[cut[1] :],
        adj_data=np.ones(col.numel(), np.float32),
        adj_indices=col.cpu().numpy().astype(np.int32),
        adj_indptr=rowptr.cpu().numpy(),
        adj_shape=np.array([n, n]),
        attr_matrix=x.numpy(),
        labels=y.numpy().astype(np.int32),
    )


if __name__ == "__main__":
    main()
