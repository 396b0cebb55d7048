"""The ops of HalfGraph in PyTorch, written as by a user who keeps the state in half and chooses the
type of each sum.

Each op is a function with a name of its own, because the traceback of torch's anomaly mode shows
function names and nothing else. Each call is recorded with its operands, under the current layer,
so that happened() can check whether a fault exists.
"""

import torch
import torch.nn.functional as F


class Trace:
    """The calls of this step: (layer, op, operands, result)."""

    def __init__(self):
        self.layer, self.calls = "", []

    def add(self, op, operands, result):
        for x in operands:
            if x.requires_grad:
                x.retain_grad()
        self.calls.append((self.layer, op, operands, result))
        return result


trace = Trace()


def linear(x, w):
    return trace.add("linear", [x, w], x @ w)


def bias_add(x, b):
    return trace.add("bias_add", [x], x + b)


def spmm(g, x, norm="none", alpha=1.0, weight=None, naive=False):
    """Y_i = alpha r_i sum of w_e s_j X_j: summed in f32 and rounded once, or (naive) summed in half
    and scaled after the sum.
    """
    r, s = g.factors(norm, x.device)
    rows = x if naive else x.float()
    if s is not None:
        rows = rows * s.to(rows.dtype)
    rows = rows[g.src]
    if weight is not None:
        heads = weight.shape[1]
        rows = (rows.view(rows.shape[0], heads, -1) * weight.to(rows.dtype).unsqueeze(2)).view(
            rows.shape[0], -1
        )
    y = torch.zeros(g.rows, rows.shape[1], dtype=rows.dtype, device=x.device).index_add(
        0, g.dst, rows
    )
    if r is not None or alpha != 1.0:
        y = y * (alpha * (torch.ones(1, device=x.device) if r is None else r)).to(y.dtype)
    return trace.add("spmm", [x] + ([weight] if weight is not None else []), y.to(x.dtype))


def spmm_max(g, x):
    rows = x[g.src]
    nothing = torch.full(
        (g.rows, x.shape[1]), -1.0, dtype=x.dtype, device=x.device
    )  # below every value, so that the initial value never ties
    y = nothing.scatter_reduce(
        0, g.dst.unsqueeze(1).expand_as(rows), rows, "amax", include_self=False
    )
    return trace.add("spmm_max", [x], y)


def combine(x, z, eps):
    return trace.add("combine", [x, z], ((1 + eps) * x.float() + z.float()).to(x.dtype))


def batch_norm(x, gamma, beta, eps=1e-5):
    mean, var = x.float().mean(0), x.float().var(0, unbiased=False)
    return trace.add(
        "batch_norm", [x], ((x.float() - mean) / torch.sqrt(var + eps) * gamma + beta).to(x.dtype)
    )


def layer_norm(x, gamma, beta, eps=1e-5):
    mean, var = x.float().mean(1, keepdim=True), x.float().var(1, unbiased=False, keepdim=True)
    return trace.add(
        "layer_norm", [x], ((x.float() - mean) / torch.sqrt(var + eps) * gamma + beta).to(x.dtype)
    )


def head_dot(x, a, heads):
    return trace.add(
        "head_dot", [x], (x.float() * a.float()).view(x.shape[0], heads, -1).sum(2).to(x.dtype)
    )


def sddmm_add(g, a, b, slope=0.2):
    return trace.add(
        "sddmm_add", [a, b], F.leaky_relu(a[g.dst].float() + b[g.src].float(), slope).to(a.dtype)
    )


def sddmm_dot(g, a, b):
    return trace.add(
        "sddmm_dot", [a, b], (a[g.dst].float() * b[g.src].float()).sum(1, keepdim=True).to(a.dtype)
    )


def edge_softmax(g, e):
    index = g.dst.unsqueeze(1).expand_as(e)
    most = torch.zeros(g.rows, e.shape[1], device=e.device).scatter_reduce(
        0, index, e.detach().float(), "amax", include_self=False
    )
    power = torch.exp(e.float() - most[g.dst])
    total = torch.zeros(g.rows, e.shape[1], device=e.device).index_add(0, g.dst, power)
    return trace.add("edge_softmax", [e], (power / total[g.dst]).to(e.dtype))


def readout(g, x, mean):
    total = torch.zeros(int(g.batch.max()) + 1, x.shape[1], device=x.device).index_add(
        0, g.batch, x.float()
    )
    if mean:
        total = total / torch.bincount(g.batch).unsqueeze(1)
    return trace.add("readout", [x], total.to(x.dtype))


def elu(x, alpha=1.0):
    return trace.add("elu", [x], F.elu(x.float(), alpha).to(x.dtype))


def dropout(x, p):
    return trace.add("dropout", [x], F.dropout(x, p))


def scale(x, factor):
    return trace.add("scale", [x], x * factor)


def add(x, y):
    return trace.add("add", [x, y], x + y)


def cast(x):
    return trace.add("cast", [x], x.half())


def exp(x):
    return trace.add("exp", [x], torch.exp(x))


def log(x):
    return trace.add("log", [x], torch.log(x))


def sqrt(x):
    return trace.add("sqrt", [x], torch.sqrt(x))


def div(x, y):
    return trace.add("div", [x, y], x / y)


def row_sum(x):
    return trace.add("row_sum", [x], x.float().sum(1, keepdim=True).to(x.dtype))


def softmax(x):
    return trace.add("softmax", [x], torch.softmax(x, 1))


def log_softmax(x):
    return trace.add("log_softmax", [x], torch.log_softmax(x, 1))


def softmax_xent(x, label):
    return trace.add("softmax_xent", [x], F.cross_entropy(x.float(), label, ignore_index=-1))


def mse(x, target):
    return trace.add("mse", [x], F.mse_loss(x.float(), target.float()))


def bce_logits(x, target):
    return trace.add(
        "bce_logits", [x], F.binary_cross_entropy_with_logits(x.float(), target.float())
    )
