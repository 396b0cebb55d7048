"""The named synthetic graphs of hg-bench (tools/hg-bench/edges.h, graphs.c) in PyTorch, on any
device: the same edges from the same seed.

pow may differ in its last bit between devices, which moves an endpoint about once in 10^10 edges.

    python3 tools/peers/graphs.py tiny 3    print the first edges of a graph, for comparison
"""

import sys

import torch

REDDIT, PRODUCTS = (232965, 114848857), (2449029, 123718280)
# The nodes of the molecules of a group of qm9-like.
MOLECULES = [12, 14, 16, 17, 18, 18, 19, 20, 22, 24]

# name: kind, nodes, edges, block, exponent, local, symmetric, features, classes, non-zero features
# of a node (0: dense)
GRAPHS = {
    "tiny": ("power", 2000, 20000, 0, 1.6, 0, 0, 32, 5, 0),
    "cora-like": ("power", 2708, 10556, 0, 1.4, 0, 1, 1433, 7, 18),
    "citeseer-like": ("power", 3327, 9104, 0, 1.4, 0, 1, 3703, 6, 32),
    "pubmed-like": ("power", 19717, 88648, 0, 1.4, 0, 1, 500, 3, 50),
    "computers-like": ("power", 13752, 491722, 0, 1.6, 0, 1, 767, 10, 0),
    "powerlaw-2m": ("power", 100000, 2000000, 0, 1.6, 0, 0, 64, 16, 0),
    "reddit-like": ("power", *REDDIT, 0, 1.6, 0, 0, 602, 41, 0),
    "reddit-local": ("power", *REDDIT, 0, 1.6, 1, 0, 602, 41, 0),
    "products-like": ("power", *PRODUCTS, 0, 1.4, 0, 0, 100, 47, 0),
    "products-local": ("power", *PRODUCTS, 0, 1.4, 1, 0, 100, 47, 0),
    "ppa-like": ("power", 576289, 42463862, 0, 1.4, 0, 1, 58, 16, 0),
    "proteins-like": ("power", 132534, 79122504, 0, 1.3, 0, 1, 64, 112, 0),
    "kron-21": ("rmat", 2097152, 67108864, 0, 0.0, 0, 0, 128, 16, 0),
    "planted": ("planted", 230000, 100000000, 230, 0.0, 0, 0, 128, 16, 0),
    "planted-ordered": ("planted", 230000, 100000000, 230, 0.0, 1, 0, 128, 16, 0),
    "molecules-4k": ("molecule", 73728, 154828, 18, 0.0, 0, 1, 11, 2, 0),
    "molecules-16k": ("molecule", 294912, 619316, 18, 0.0, 0, 1, 11, 2, 0),
    "qm9-like": ("molecules", 2409840, 5007112, 180, 0.0, 0, 1, 11, 2, 0),
    "pattern-like": ("cliques", 121856, 6226842, 119, 0.0, 0, 1, 128, 2, 0),
    "cluster-like": ("cliques", 119808, 4399672, 117, 0.0, 0, 1, 7, 6, 0),
    "coco-like": ("near", 488448, 2759012, 477, 0.0, 0, 1, 14, 81, 0),
    "voc-like": ("near", 490496, 2773216, 479, 0.0, 0, 1, 14, 21, 0),
    "mnist-like": ("near", 72704, 581632, 71, 0.0, 0, 0, 3, 10, 0),
    "cifar-like": ("near", 120832, 966656, 118, 0.0, 0, 0, 5, 10, 0),
    "collab-like": ("cliques", 375000, 24375000, 75, 0.0, 0, 1, 64, 3, 0),
    "collab-sizes": ("unequal", 375000, 24375000, 600, 0.0, 0, 1, 64, 3, 0),
}


def signed(x):
    """A 64-bit constant as the int64 with the same bits."""
    return x - (1 << 64) if x >= 1 << 63 else x


def shift(z, bits):
    """Logical right shift: PyTorch's is arithmetic."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def uniform(seed, k):
    """SplitMix64 as a function of its counter, 53 bits in [0, 1). int64 products wrap."""
    z = signed(seed) + (k + 1) * signed(0x9E3779B97F4A7C15)
    z = (z ^ shift(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shift(z, 27)) * signed(0x94D049BB133111EB)
    z = z ^ shift(z, 31)
    return shift(z, 11).to(torch.float64) * 2.0**-53


def below(limit, u):
    return torch.clamp((u * limit).to(torch.int64), max=limit - 1)


def scatter(n, ids):
    return ids * 2654435761 % n


def power(n, m, block, exponent, local, seed, e):
    k = e * 4
    dst = scatter(n, below(n, uniform(seed, k) ** exponent))
    src = scatter(n, below(n, uniform(seed, k + 1) ** exponent))
    if local:
        near = (dst + (2000 * uniform(seed, k + 3)).to(torch.int64)) % n
        src = torch.where(uniform(seed, k + 2) < 0.7, near, src)
    return dst, src


def rmat(n, m, block, exponent, local, seed, e):
    row, col = torch.zeros_like(e), torch.zeros_like(e)
    bit = 0
    while 1 << bit < n:
        u = uniform(seed, e * 32 + bit)
        row |= (u >= 0.76).to(torch.int64) << bit
        col |= (((u >= 0.57) & (u < 0.76)) | (u >= 0.95)).to(torch.int64) << bit
        bit += 1
    return scatter(n, row), scatter(n, col)


def planted(n, m, block, exponent, local, seed, e):
    k = e * 4
    i, u = below(n, uniform(seed, k)), uniform(seed, k + 1)
    j = torch.where(uniform(seed, k + 2) < 0.8, i // block * block + below(block, u), below(n, u))
    return (i, j) if local else (scatter(n, i), scatter(n, j))


def molecule(n, m, block, exponent, local, seed, e):
    graphs = n // block
    t, first = e // graphs, e % graphs * block
    u, v = uniform(seed, e * 4), uniform(seed, e * 4 + 1)
    reach = torch.where(t < 2, t + 1, torch.full_like(t, 3))
    parent = t - torch.minimum((u * reach).to(torch.int64), reach - 1)
    chain = t + 1 < block
    return first + torch.where(chain, t + 1, below(block, u)), first + torch.where(
        chain, parent, below(block, v)
    )


def cliques(n, m, block, exponent, local, seed, e):
    first = e % (n // block) * block
    return first + below(block, uniform(seed, e * 4)), first + below(
        block, uniform(seed, e * 4 + 1)
    )


def unequal(n, m, block, exponent, local, seed, e):
    begin = torch.tensor([0, 36, 76, 121, 171, 228, 296, 396, 600], device=e.device)
    sizes = begin[1:] - begin[:-1]
    ends = torch.cumsum(sizes * sizes, 0)
    pair = below(int(ends[-1]), uniform(seed, e * 4 + 2))
    k = torch.searchsorted(ends, pair, right=True)
    first, nodes = e % (n // block) * block + begin[k], sizes[k]

    def end(u):
        return first + torch.minimum((u * nodes).to(torch.int64), nodes - 1)

    return end(uniform(seed, e * 4)), end(uniform(seed, e * 4 + 1))


def molecules(n, m, block, exponent, local, seed, e):
    sizes, count = torch.tensor(MOLECULES, device=e.device), len(MOLECULES)
    begin, chains = torch.cumsum(torch.cat([sizes.new_zeros(1), sizes]), 0), block - count
    ends = begin[1:] - torch.arange(1, count + 1, device=e.device)  # of the bonds of chains
    groups = n // block
    bond, first = e // groups, e % groups * block
    chain = bond < chains
    k = torch.where(chain, torch.searchsorted(ends, bond, right=True), (bond - chains) % count)
    t = bond - (begin[k] - k)
    u, v = uniform(seed, e * 4), uniform(seed, e * 4 + 1)
    reach = torch.where(t < 2, t + 1, torch.full_like(t, 3))
    parent = t - torch.minimum((u * reach).to(torch.int64), reach - 1)

    def end(u):
        return torch.minimum((u * sizes[k]).to(torch.int64), sizes[k] - 1)

    first = first + begin[k]
    return first + torch.where(chain, t + 1, end(u)), first + torch.where(chain, parent, end(v))


def near(n, m, block, exponent, local, seed, e):
    i = e % n
    first, count = i // block * block, min(4 * m // n, block - 1)
    pick = below(count, uniform(seed, e * 4))
    step = torch.where(pick < count // 2, block - count // 2 + pick, pick - count // 2 + 1)
    return i, first + (i - first + step) % block


DRAW = {
    "power": power,
    "rmat": rmat,
    "planted": planted,
    "molecule": molecule,
    "cliques": cliques,
    "unequal": unequal,
    "molecules": molecules,
    "near": near,
}


def edges(name, seed=1, device="cpu", first=0, count=None):
    """dst, src of edges first .. first + count - 1 in the order in which they are drawn."""
    kind, n, m, block, exponent, local, symmetric = GRAPHS[name][:7]
    e = torch.arange(first, m if count is None else first + count, dtype=torch.int64, device=device)
    dst, src = DRAW[kind](n, m, block, exponent, local, seed, e // 2 if symmetric else e)
    back = (e & 1).bool() & bool(symmetric)
    return torch.where(back, src, dst), torch.where(back, dst, src)


def graph(name, seed=1, device="cpu", piece=1 << 24):
    """rowptr, col (int64) of the CSR, rows and columns ascending, duplicates kept."""
    _, n, m = GRAPHS[name][:3]
    keys = torch.empty(m, dtype=torch.int64, device=device)
    for first in range(0, m, piece):
        count = min(piece, m - first)
        dst, src = edges(name, seed, device, first, count)
        keys[first : first + count] = dst * n + src
    keys = keys.sort().values
    rowptr = torch.zeros(n + 1, dtype=torch.int64, device=device)
    rowptr[1:] = torch.cumsum(torch.bincount(keys // n, minlength=n), 0)
    return rowptr, keys % n


if __name__ == "__main__":
    for pair in zip(*edges(sys.argv[1], 1, "cpu", 0, int(sys.argv[2]))):
        print(*(int(x) for x in pair))
