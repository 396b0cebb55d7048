"""The faults of tests/faults/faults.def in PyTorch, by the same mathematics: PLANT[id](world).

Faults that cannot exist in PyTorch are in ABSENT, with the reason.
"""

import math

import torch

import anomaly_ops as ops
from anomaly_ops import trace
from anomaly_world import CLASSES, HIDDEN, IN, LONER, NODES, Graph, fan, full, paths, ring, star

PLANT = {}
ABSENT = {"acc_batch_gcn": "only HalfGraph has sums in separately scaled batches"}


def plants(*ids):
    def keep(f):
        for i in ids:
            PLANT[i] = (f, i)
        return f

    return keep


def layer_of(i):
    return int(i[-1]) if i[-1].isdigit() else 1 if "conv1" in i else 0


def town(w, model, layers=2, graph=None, **kw):
    w.model(model, layers, graph or ring(), **kw)
    w.varied()


# ---- inputs that are bad before the step begins ----


def feature(model, row, col, value):
    def f(w, i):
        town(w, model)
        w.x[row, col] = value
        w.build()

    return f


plants("input_feature_nan_gcn")(feature("gcn", 7, 3, math.nan))
plants("input_feature_inf_gin")(feature("gin", 2, 5, -math.inf))
plants("input_feature_late_gat")(feature("gat", 9, 0, math.nan))


def parameter(model, layers, name, row, col, value, dtype=torch.half):
    def f(w, i):
        w.dtype = dtype
        town(w, model, layers)
        w.build()
        w.set(name, row, col, value)

    return f


plants("input_master_inf_gcn")(parameter("gcn", 2, "conv1.weight", 4, 1, math.inf))
plants("input_master_nan_gcn")(parameter("gcn", 3, "conv2.weight", 6, 0, math.nan))
plants("input_bias_nan_gat")(parameter("gat", 2, "conv0.bias", 0, 5, math.nan))
plants("input_eps_inf_gin")(parameter("gin", 2, "conv1.eps", 0, 0, math.inf))
plants("input_gamma_nan_gin")(parameter("gin", 2, "conv0.bn1.gamma", 0, 2, math.nan))
plants("input_fp32_nan_gcn")(parameter("gcn", 2, "conv0.weight", 11, 3, math.nan, torch.float32))


@plants("input_label_gcn", "input_label_gin_graph")
def label(w, i):
    if i == "input_label_gcn":
        town(w, "gcn")
        w.label[5] = 9
    else:
        town(w, "gin", graph=paths([8, 12, 6]))
        w.readout = "mean"
        w.label[2] = CLASSES
    w.build()


@plants("input_edge_weight_nan", "input_target_nan", "input_variable_inf")
def custom_input(w, i):
    g = ring().to(w.device)
    w.param("w", 4, 3, 0.25)
    x, a, t = (
        w.tensor(NODES, 4, 1),
        w.tensor(len(g.dst), 1, 0.5),
        w.tensor(NODES, 3, 0, torch.float32),
    )
    if i == "input_edge_weight_nan":
        a[6] = math.nan
    elif i == "input_target_nan":
        t[3, 2] = math.nan
    else:
        x[8, 1] = math.inf
    w.loss = lambda: ops.mse(ops.spmm(g, ops.linear(x, w.get("w")), weight=a), t)


# ---- partial sums ----


@plants(
    "acc_hub_gcn_conv0",
    "acc_hub_gcn_conv1",
    "acc_hub_gcn_conv2",
    "store_hub_gcn_conv0",
    "store_hub_naive_gcn_conv1",
)
def hub_mean(w, i):
    layer, store = layer_of(i), i.startswith("store")
    w.naive = "acc" in i or "naive" in i
    w.model("gcn", max(2, layer + 1), star(4000))
    w.norm = "none" if store else "both" if layer == 1 else "right"
    w.constant()
    w.build()
    ones_below(w, layer)
    w.set("conv%d.weight" % layer, -1, -1, 0)
    w.set("conv%d.weight" % layer, -1 if layer else 0, 1, 32 / HIDDEN if layer else 32)


def ones_below(w, layer):
    for l in range(layer):
        w.set("conv%d.weight" % l, -1, -1, 0)
        w.set("conv%d.bias" % l, -1, -1, 1)


@plants("acc_hub_gin_conv0", "acc_lambda_gin", "store_hub_gin_conv0")
def hub_gin(w, i):
    w.naive, w.scale = i.startswith("acc"), 64.0
    w.model("gin", 2, star(4000))
    w.norm = "right" if i == "acc_hub_gin_conv0" else "none"
    w.alpha = 1 / 4000 if i == "acc_lambda_gin" else 1.0
    w.x[:, 0] = torch.where(torch.arange(4001) % 2 == 1, 1.0, 0.5)
    w.build()
    w.set("conv0.mlp1.weight", -1, -1, 0)
    w.set("conv0.mlp1.weight", 0, 1, 32)


@plants("acc_hub_gin_conv1")
def hub_gin_deep(w, i):
    w.naive, w.scale = True, 64.0
    w.model("gin", 2, star(4000))
    w.build()
    w.set("conv0.bn2.gamma", -1, -1, 0)
    w.set("conv0.bn2.beta", 0, 2, 32)
    w.set("conv1.mlp1.weight", -1, -1, 0)
    w.set("conv1.mlp1.weight", 2, 3, 1)


CANCEL = [40000.0, 40000.0, -40000.0, -40000.0]


@plants("acc_cancel")
def cancel(w, i):
    w.scale = 1.0
    g = Graph(3, 4, [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (2, 3)]).to(w.device)
    x, t = w.tensor(4, 3), w.tensor(3, 3)
    x[:, 1] = torch.tensor(CANCEL)
    x.requires_grad_()
    w.param("w", 3, 3, 0.001)

    def loss():
        trace.layer = "sum"
        y = ops.spmm(g, x, naive=True)
        trace.layer = "after"
        return ops.mse(ops.linear(y, w.get("w")), t)

    w.loss = loss


@plants("acc_backward")
def cancel_back(w, i):
    w.scale = 1.0
    copies(
        w,
        fan(4),
        w.tensor(5, 1),
        torch.tensor([[0.0]] + [[-2.5 * c] for c in CANCEL], device=w.device),
        True,
    )


def copies(w, g, x, t, naive=False):
    g = g.to(w.device)
    w.param("w", 1, 1, 1)

    def loss():
        trace.layer = ""
        h = ops.linear(x, w.get("w"))
        trace.layer = "copies"
        return ops.mse(ops.spmm(g, h, naive=naive), t)

    w.loss = loss


@plants("acc_edge_weights")
def edge_weights(w, i):
    w.scale = 64.0
    g = full(2, 300).to(w.device)
    x, t, a = w.tensor(300, 3), w.tensor(2, 3), w.tensor(600, 1, 1)
    x[:, 2] = 16
    x.requires_grad_()
    a[300:] = 16
    w.param("w", 3, 3, 0.1)

    def loss():
        trace.layer = "sum"
        y = ops.spmm(g, x, alpha=1 / 300, weight=a, naive=True)
        trace.layer = "after"
        return ops.mse(ops.linear(y, w.get("w")), t)

    w.loss = loss


def sparse(w, features, entries):
    g = Graph(NODES, features, [e[:2] for e in entries]).to(w.device)
    values = torch.tensor([[e[2]] for e in sorted(entries)], dtype=torch.float32, device=w.device)
    w.sparse = (g, values)


@plants("acc_sparse_gcn")
def sparse_cancel(w, i):
    w.naive, w.scale = True, 64.0
    w.model("gcn", 2, ring())
    sparse(
        w, IN, [(4, k, 1.0) for k in range(4)] + [(r, r + 4, 1.0) for r in range(NODES) if r != 4]
    )
    w.build()
    for k in range(4):
        w.set("conv0.weight", k, 5, CANCEL[k])


# ---- results ----


@plants("store_feature_gcn")
def big_feature(w, i):
    town(w, "gcn")
    w.x[3, 2] = 60000
    w.build()
    w.set("conv0.weight", 2, -1, 0.01)
    w.set("conv0.weight", 2, 5, 2)


@plants("store_neighbour_gcn")
def big_neighbour(w, i):
    w.model("gcn", 2, ring())
    w.norm = "none"
    w.x[5, 0] = w.x[6, 0] = 1
    w.x[7, 0] = 2.25
    w.build()
    w.set("conv0.weight", -1, -1, 0)
    w.set("conv0.weight", 0, 1, 20000)


def one_and_two(w, layers, layer):
    w.constant()
    w.x[LONER, 0] = 2
    w.build()
    for l in range(layers):
        w.set("conv%d.weight" % l, -1, -1, 0)
        w.set("conv%d.weight" % l, 0, 0, 1 if l < layer else 0.1)


def no_attention(w, layer):
    w.set("conv%d.att_dst" % layer, -1, -1, 0)
    w.set("conv%d.att_src" % layer, -1, -1, 0)


@plants(
    "store_weight_gcn_conv1",
    "store_weight_gcn_conv2",
    "store_weight_gat_conv1",
    "store_weight_gat_conv2",
    "store_fp32_gcn",
    "store_odd_gcn",
)
def big_weight(w, i):
    layer = 2 if i.endswith("conv2") else 1
    model, odd, fp32 = "gat" if "gat" in i else "gcn", "odd" in i, "fp32" in i
    if fp32:
        w.dtype, w.scale = torch.float32, 1.0
    w.model(model, layer + 1, ring(), **({"out": 5, "hidden": 7} if odd else {}))
    one_and_two(w, layer + 1, layer)
    if model == "gat":
        no_attention(w, layer)
    w.set("conv%d.weight" % layer, 0, 4 if odd else 1, 2e38 if fp32 else 40000)


@plants("store_heads_gat")
def big_heads(w, i):
    w.model("gat", 2, ring(), out_heads=3)
    one_and_two(w, 2, 1)
    no_attention(w, 1)
    w.set("conv1.weight", 0, 0, 0)
    w.set("conv1.weight", 0, 5, 1)
    w.set("conv1.att_dst", 0, 5, 40000)


@plants("store_bias_gcn")
def big_bias(w, i):
    w.model("gcn", 2, ring())
    one_and_two(w, 2, 1)
    w.set("conv1.weight", 0, 1, 5000)
    w.set("conv1.bias", 0, 1, 60000)


def first_into_one(w):
    w.build()
    w.set("conv0.mlp1.weight", -1, -1, 0)
    w.set("conv0.mlp1.weight", 0, 1, 1)


@plants("store_eps_gin", "store_lambda_gin", "store_gamma_gin")
def gin_loner(w, i):
    w.scale = 64.0
    w.model("gin", 2, ring())
    w.alpha = 10000.0 if i == "store_lambda_gin" else 1.0
    if i != "store_gamma_gin":
        w.constant()
    w.x[LONER, 0] = {"store_eps_gin": 1000, "store_lambda_gin": 10, "store_gamma_gin": 1}[i]
    first_into_one(w)
    if i == "store_eps_gin":
        w.set("conv0.eps", 0, 0, 100)
    elif i == "store_gamma_gin":
        w.set("conv0.mlp2.weight", -1, -1, 0)
        w.set("conv0.mlp2.weight", 1, 1, 1)
        w.set("conv0.bn2.gamma", 0, 1, 60000)


@plants("store_mlp_gin", "store_head_gin")
def big_mlp(w, i):
    w.scale = 64.0
    town(w, "gin")
    w.build()
    norm, weight, col = (
        ("conv1.bn1", "conv1.mlp2.weight", 3)
        if i == "store_mlp_gin"
        else ("conv1.bn2", "head.weight", 1)
    )
    w.set(norm + ".gamma", -1, -1, 0)
    w.set(norm + ".beta", -1, -1, 1)
    w.set(weight, -1, col, 10000)


@plants("store_readout_gin")
def big_readout(w, i):
    w.scale, w.readout = 64.0, "sum"
    town(w, "gin", graph=paths([8, 40, 8]))
    w.build()
    w.set("conv0.bn2.gamma", -1, -1, 0)
    w.set("conv0.bn2.beta", 0, 3, 2000)


@plants("store_attention_gat", "store_score_gat")
def big_attention(w, i):
    col = 0 if i == "store_attention_gat" else HIDDEN // 2
    w.model("gat", 2, ring())
    one_and_two(w, 2, 1)
    w.set("conv0.weight", 0, 0, 0)
    w.set("conv0.weight", 0, col, 1)
    no_attention(w, 0)
    w.set("conv0.att_dst", 0, col, 40000 if col == 0 else 20000)
    if col:
        w.set("conv0.att_src", 0, col, 20000)


@plants("store_sparse_gcn")
def big_sparse(w, i):
    w.model("gcn", 2, ring())
    column = {4: 7, 7: 4}
    sparse(w, IN, [(r, column.get(r, r), 60000.0 if r == 4 else 1.0) for r in range(NODES)])
    w.build()
    w.set("conv0.weight", 7, -1, 0.1)
    w.set("conv0.weight", 7, 3, 2)


@plants("store_dropout_gcn")
def big_dropout(w, i):
    w.model("gcn", 2, ring())
    w.dropout = 0.5
    w.constant()
    w.build()
    w.set("conv0.weight", -1, -1, 0)
    w.set("conv0.bias", 0, 3, 40000)


def one_op(w, layer, op, x=1.0, large=1.0, dtype=None):
    """loss = mse(op(X) W, 0), X [6, 4] with a large element (2, 1)"""
    w.scale = 16.0
    a, t = w.tensor(6, 4, x, dtype), w.tensor(6, 4)
    a[2, 1] = large
    w.param("w", 4, 4, 0.001)

    def loss():
        trace.layer = layer
        y = op(a)
        trace.layer = "after"
        return ops.mse(ops.linear(y, w.get("w")), t)

    a.requires_grad_()
    w.loss = loss
    return a


plants("store_scale")(lambda w, i: one_op(w, "scaled", lambda x: ops.scale(x, 10000.0), 1, 10))
plants("store_add")(lambda w, i: one_op(w, "added", lambda x: ops.add(x, x), 1, 40000))
plants("store_cast")(lambda w, i: one_op(w, "narrowed", ops.cast, 1, 1e5, torch.float32))
plants("store_elu")(lambda w, i: one_op(w, "bent", lambda x: ops.elu(x, 1e5), 0.5, -20))
plants("store_exp")(lambda w, i: one_op(w, "powers", ops.exp, 0.5, 12))


@plants("store_log_softmax")
def big_log_softmax(w, i):
    with torch.no_grad():
        one_op(w, "scores", ops.log_softmax, 0, -60000)[2, 0] = 60000


@plants("store_div")
def big_ratio(w, i):
    y = w.tensor(6, 4, 1)
    y[2, 1] = 2.0**-10
    one_op(w, "ratio", lambda x: ops.div(x, y), 1, 100)


@plants("store_layer_norm")
def big_layer_norm(w, i):
    gamma, beta = w.tensor(1, 4, 1, torch.float32), w.tensor(1, 4, 0, torch.float32)
    gamma[0, 1] = 60000
    a = one_op(w, "norm", lambda x: ops.layer_norm(x, gamma, beta), 0, 1)
    with torch.no_grad():
        a[:, 2] = 1
        a[2, 2] = 0


@plants("store_row_sum")
def big_row_sum(w, i):
    w.scale = 1.0
    x, t = w.tensor(6, 4, 1), w.tensor(6, 1)
    x[2] = 30000
    w.param("w", 4, 4, 0.25)

    def loss():
        trace.layer = "total"
        return ops.mse(ops.row_sum(ops.linear(x, w.get("w"))) / 8, t)

    w.loss = loss


@plants("store_sddmm")
def big_sddmm(w, i):
    g, x = ring(6).to(w.device), w.tensor(6, 4, 1)
    x[5] = 150
    w.scale = 16.0
    w.identity(4)

    def loss():
        a = ops.linear(x, w.get("w"))
        trace.layer = "edges"
        return ops.mse(ops.sddmm_dot(g, a, a), w.tensor(len(g.dst), 1))

    w.loss = loss


@plants("store_wide")
def big_wide(w, i):
    x, t = w.tensor(300, 300, 0.01), w.tensor(300, 200)
    x[1, 257] = 60000
    w.scale = 64.0
    w.param("w", 300, 200, 0.01)
    w.set("w", 257, 133, 2)

    def loss():
        trace.layer = "wide"
        return ops.mse(ops.linear(x, w.get("w")), t)

    w.loss = loss


@plants("store_loss_fp32")
def big_loss(w, i):
    x, t = w.tensor(6, 4, 1), w.tensor(6, 4, 0, torch.float32)
    t[2, 1] = 1e30
    w.scale = 16.0
    w.param("w", 4, 4, 0.001)
    w.loss = lambda: ops.mse(ops.linear(x, w.get("w")), t)


# ---- gradients: one labelled node, the loner, and a small unit with weights (-v, v) ----


def loner(w, model, layers=2):
    town(w, model, layers)
    w.label_only(LONER, 0)
    w.build()


@plants("scale_xent_gcn", "scale_train_gcn")
def scale_xent(w, i):
    loner(w, "gcn")
    w.scale = 2.0 ** (20 if i == "scale_xent_gcn" else 24)


def faint_unit(w, layer, v):
    w.set("conv%d.weight" % (layer - 1), -1, 3, 0)
    w.set("conv%d.bias" % (layer - 1), 0, 3, 2.0**-10)
    w.set("conv%d.weight" % layer, 3, 0, -v)
    w.set("conv%d.weight" % layer, 3, 1, v)


def wrong(w, bias):
    w.set(bias, 0, 0, -10)
    w.set(bias, 0, 1, 10)


@plants(
    "scale_linear_gcn_conv1",
    "scale_linear_gcn_conv2",
    "scale_linear_gat",
    "explode_linear_gcn_conv1",
    "explode_linear_gcn_conv2",
    "explode_linear_gat",
)
def linear_back(w, i):
    layer, explode = 2 if i.endswith("conv2") else 1, i.startswith("explode")
    loner(w, "gat" if "gat" in i else "gcn", layer + 1)
    w.scale = (4.0 if layer == 2 else 1.0) if explode else 2.0**14
    faint_unit(w, layer, 60000 if explode else 40)
    if explode:
        wrong(w, "conv%d.bias" % layer)


@plants("scale_head_gin", "explode_head_gin")
def head_back(w, i):
    explode = i.startswith("explode")
    loner(w, "gin")
    w.scale = 2.0 if explode else 2.0**14
    w.set("conv1.bn2.gamma", 0, 3, 0)
    w.set("conv1.bn2.beta", 0, 3, 2.0**-10)
    w.set("head.weight", 3, 0, -60000 if explode else -40)
    w.set("head.weight", 3, 1, 60000 if explode else 40)
    if explode:
        wrong(w, "head.bias")


@plants("scale_mlp_gin")
def scale_mlp(w, i):
    loner(w, "gin")
    w.scale = 2.0**14
    w.set("conv0.bn2.gamma", 0, 3, 0)
    w.set("conv0.bn2.beta", 0, 3, 2.0**-10)
    w.set("conv1.mlp1.weight", 3, -1, 0)
    w.set("conv1.mlp1.weight", 3, 2, 20000)


@plants("scale_readout_gcn")
def scale_readout(w, i):
    w.scale, w.readout = 2.0**14, "mean"
    town(w, "gcn", graph=paths([8, 12, 6]))
    w.label_only(1, 0)
    w.build()
    w.set("conv1.weight", -1, 3, 0)
    w.set("conv1.bias", 0, 3, 2.0**-10)
    w.set("conv1.head.weight", 3, 0, -40)
    w.set("conv1.head.weight", 3, 1, 40)


@plants("scale_dropout_gcn")
def scale_dropout(w, i):
    w.dropout = 0.5
    loner(w, "gcn")
    w.set("conv0.weight", -1, -1, 0)
    w.set("conv0.bias", -1, -1, 2.0**-10)
    w.set("conv1.weight", -1, 0, -20)
    w.set("conv1.weight", -1, 1, 20)
    wrong(w, "conv1.bias")


@plants(
    "scale_hub_gcn",
    "scale_hub_naive_gcn",
    "scale_hub_gat",
    "swamp_backward_gcn",
    "swamp_backward_gat",
)
def hub_back(w, i):
    swamp = i.startswith("swamp")
    leaves = 4096 if swamp else 1000
    w.naive, w.scale = swamp or "naive" in i, 2.0 * (leaves + 1) if swamp else 2.0**18
    town(w, "gat" if "gat" in i else "gcn", graph=fan(leaves))
    w.norm = "none"
    w.label[:] = 0
    w.build()
    w.set("conv1.weight", -1, -1, 0)
    if swamp:
        w.expect = (0, 0, -4096.0)


@plants("scale_edge_gat")
def scale_edge(w, i):
    loner(w, "gat")
    w.set("conv0.weight", -1, -1, 0)
    w.set("conv0.bias", 0, 0, 1)
    w.set("conv1.weight", -1, -1, 0)
    w.set("conv1.weight", 0, 1, 1000)
    no_attention(w, 1)


def targets(w, scale, layer, op, loss=ops.mse, t=None, x=None, cols=4):
    """loss = loss(op(X W), T), W = 1, X [8, 4] zeros"""
    w.scale = scale
    x = w.tensor(8, 4) if x is None else x
    t = w.tensor(8, cols) if t is None else t
    w.identity(4)

    def step():
        trace.layer = ""
        y = ops.linear(x, w.get("w"))
        trace.layer = layer
        y = op(y)
        trace.layer = ""
        return loss(y, t)

    w.loss = step
    return t


def off(w, scale, layer, op, value, at=(2, 1), loss=ops.mse, others=0.0, cols=4):
    t = targets(w, scale, layer, op, loss, cols=cols)
    t[:] = others
    t[at] = value


plants("scale_mse")(lambda w, i: off(w, 2.0**16, "", lambda y: y, -100))
plants("scale_bce")(
    lambda w, i: off(w, 2.0**23, "", lambda y: y, 1, loss=ops.bce_logits, others=0.5)
)
plants("scale_scale")(lambda w, i: off(w, 2.0**14, "scaled", lambda y: ops.scale(y, 100.0), -1))


@plants("scale_two_ways")
def two_ways(w, i):
    def op(y):
        trace.layer = "left"
        left = ops.scale(y, 100.0)
        trace.layer = "right"
        return left + ops.scale(y, 100.0)

    off(w, 6400.0, "", op, -1)


@plants("scale_combine")
def scale_combine(w, i):
    g, eps = ring(8).to(w.device), torch.tensor(1000.0, device=w.device)

    def op(y):
        trace.layer = "sum"
        z = ops.spmm(g, y)
        trace.layer = "self"
        return ops.combine(y, z, eps)

    off(w, 2.0**11, "", op, -1)


@plants("scale_head_dot")
def scale_head_dot(w, i):
    a = w.tensor(1, 4, 1)
    a[0, 3] = 1000
    off(w, 2.0**10, "dots", lambda y: ops.head_dot(y, a, 2), -1, cols=2)


@plants("scale_spmm_max")
def scale_spmm_max(w, i):
    g = fan(1000).to(w.device)
    t = w.tensor(1001, 4)
    t[:, 2] = -1
    targets(w, 2.0**18, "most", lambda y: ops.spmm_max(g, y), t=t, x=w.tensor(1001, 4))


@plants("scale_batch_norm")
def scale_batch_norm(w, i):
    spread = 2.0**-10
    sign = torch.tensor([1.0, -1.0] * 4, device=w.device).unsqueeze(1)
    x = (sign * torch.ones(1, 4, device=w.device)).to(w.dtype)
    t = x.clone()
    x[:, 2] = (1 + spread * sign[:, 0]).to(w.dtype)
    t[:, 2] = (sign[:, 0] * spread / math.sqrt(spread**2 + 1e-5)).to(w.dtype)
    t[2, 2] -= 16
    one, zero = w.tensor(1, 4, 1, torch.float32), w.tensor(1, 4, 0, torch.float32)
    targets(w, 512.0, "norm", lambda y: ops.batch_norm(y, one, zero), t=t, x=x)


@plants("explode_hub")
def explode_hub(w, i):
    w.scale = 1.0
    x = w.tensor(1001, 1)
    x[0] = 60000
    copies(w, fan(1000), x, w.tensor(1001, 1))


@plants("explode_mlp", "explode_fp32")
def explode_mlp(w, i):
    if i == "explode_fp32":
        w.dtype = torch.float32
    w.scale = 1.0
    x, t = w.tensor(4, 1), w.tensor(4, 1)
    x[2] = 1
    w.param("first", 1, 4, 0.125)
    w.param("second", 4, 1, 1)
    w.set("second", 1, 0, 1e20 if i == "explode_fp32" else 30000)

    def loss():
        trace.layer = "first"
        y = ops.linear(x, w.get("first"))
        trace.layer = "second"
        y = ops.linear(y, w.get("second"))
        trace.layer = ""
        return ops.mse(y, t)

    w.loss = loss


@plants("explode_weight_fp32")
def explode_weight(w, i):
    w.dtype, w.scale = torch.float32, 1.0
    x, t = w.tensor(8, 4), w.tensor(8, 4)
    x[2, 1], t[2, 3] = 1e22, -1e18
    w.param("w", 4, 4, 0)
    w.loss = lambda: ops.mse(ops.linear(x, w.get("w")), t)


# ---- rounded to zero ----


def small_weights(w, name, v):
    w.set(name, -1, 0, -v)
    w.set(name, -1, 1, v)


@plants("under_linear_gcn", "under_edges_gat", "under_head_gin")
def under_large(w, i):
    model = i[-3:]
    w.scale = 1.0
    town(w, model, graph=ring(4001))
    w.build()
    small_weights(
        w, "head.weight" if model == "gin" else "conv1.weight", 3e-6 if model == "gat" else 1e-4
    )


@plants("under_xent_gcn")
def under_xent(w, i):
    w.scale = 1.0
    town(w, "gcn")
    w.label[:] = 0
    w.build()
    w.set("conv1.weight", -1, -1, 0)
    w.set("conv1.bias", 0, 0, 8)
    w.set("conv1.bias", 0, 1, -8)


@plants("under_features_gcn")
def under_features(w, i):
    town(w, "gcn")
    w.x *= 1e-4
    w.build()
    w.set("conv0.weight", -1, -1, 1e-6)


def simple(w, layer, x, t, value, op):
    w.param("w", x.shape[1], x.shape[1], value)

    def loss():
        trace.layer = ""
        h = ops.linear(x, w.get("w"))
        trace.layer = layer
        y = op(h)
        trace.layer = ""
        return ops.mse(y, t)

    w.loss = loss


@plants("under_mse")
def under_mse(w, i):
    w.scale = 1.0
    simple(w, "", w.tensor(64, 64), w.tensor(64, 64, 2e-5, torch.float32), 0.1, lambda y: y)


plants("under_scale")(
    lambda w, i: simple(
        w, "scaled", w.tensor(8, 8, 0.01), w.tensor(8, 8, 1), 0.1, lambda y: ops.scale(y, 1e-6)
    )
)
plants("under_exp")(
    lambda w, i: simple(w, "powers", w.tensor(8, 8, -10), w.tensor(8, 8), 0.25, ops.exp)
)


@plants("under_factor")
def under_factor(w, i):
    w.scale = 64.0
    g = full(4, 2000).to(w.device)
    simple(
        w,
        "sum",
        w.tensor(2000, 2, 8),
        w.tensor(4, 2),
        1,
        lambda y: ops.spmm(g, y, "right", 5e-5, naive=True),
    )


# ---- sums that stop growing (swamping) ----


@plants("swamp_hub_gcn_conv0", "swamp_hub_gcn_conv1", "swamp_hub_gin", "swamp_hub_gat")
def swamp_hub(w, i):
    w.naive, w.scale = True, 64.0
    w.model(i.split("_")[2], 2, star(4096))
    w.norm = "right" if i.endswith("conv1") else "none"
    w.constant()
    w.build()
    if i.endswith("conv1"):
        ones_below(w, 1)
        w.set("conv1.weight", -1, -1, 0)
        w.set("conv1.weight", -1, 1, 1 / HIDDEN)
        w.expect = (0, 1, 1.0)
        return
    weight = "conv0.mlp1.weight" if i.endswith("gin") else "conv0.weight"
    gat = i.endswith("gat")
    w.set(weight, -1, -1, 0)
    w.set(weight, 0, 0 if gat else 1, 1)
    if gat:
        no_attention(w, 0)
    w.expect = (0, 0, 1.0) if gat else (0, 1, 4096.0)


@plants("swamp_sparse_gcn")
def swamp_sparse(w, i):
    w.naive, w.scale = True, 64.0
    w.model("gcn", 2, ring())
    sparse(
        w, 4096, [(4, k, 1.0) for k in range(4096)] + [(r, r, 1.0) for r in range(NODES) if r != 4]
    )
    w.build(4096)
    w.set("conv0.weight", -1, -1, 0)
    w.set("conv0.weight", -1, 1, 1)
    w.expect = (4, 1, 4096.0)


def slices(sizes):
    edges, at = [], 0
    for r, n in enumerate(sizes):
        edges += [(r, at + k) for k in range(n)]
        at += n
    return Graph(len(sizes), at, edges)


@plants("swamp_large_first", "swamp_second_hub")
def swamp_one(w, i):
    w.scale = 1.0
    g = (full(1, 4001) if i == "swamp_large_first" else slices([5000, 4096])).to(w.device)
    x, t = w.tensor(g.cols, 1, 1), w.tensor(g.rows, 1)
    if i == "swamp_large_first":
        x[0], t[0] = 4096, 4000
        w.expect = (0, 0, 8096.0)
    else:
        x[1:5000:2] = -1
        w.expect = (1, 0, 4096.0)
    simple(w, "sum", x, t, 1, lambda y: ops.spmm(g, y, naive=True))


@plants("swamp_among_large")
def swamp_among(w, i):
    w.scale = 1.0
    g = slices([4096 if r == 9 else 500 for r in range(64)]).to(w.device)
    x = (200 * torch.rand(g.cols, 16, device=w.device) - 100).to(w.dtype)
    x[:, 5] = 2.0**-8
    w.expect = (9, 5, 16.0)
    simple(w, "sum", x, w.tensor(64, 16), 0, lambda y: ops.spmm(g, y, naive=True))
    for c in range(16):
        w.set("w", c, c, 1)


# ---- division, log or root of zero ----


def zero(layer, op, others, value, t=0.0):
    def f(w, i):
        x = w.tensor(8, 4, others)
        x[2, 1] = value
        targets(w, 16.0, layer, op, x=x, t=w.tensor(8, 4, t))

    return f


plants("zero_log")(zero("logs", ops.log, 2, 0))
plants("zero_log_negative")(zero("logs", ops.log, 2, -1))
plants("zero_root_negative")(zero("roots", ops.sqrt, 2, -4))
plants("zero_root_backward")(zero("roots", ops.sqrt, 2, 0, 1.0))


@plants("zero_log_of_softmax")
def log_of_softmax(w, i):
    x = w.tensor(8, 4)
    x[2, 0] = 20
    targets(w, 16.0, "scores", lambda y: ops.log(ops.softmax(y)), x=x)


@plants("zero_degree")
def zero_degree(w, i):
    g, d = Graph(8, 8, [(k, k + 1) for k in range(7)]).to(w.device), w.tensor(8, 1, 1)
    d[7] = 0
    targets(w, 16.0, "mean", lambda y: ops.div(ops.spmm(g, y), d), x=w.tensor(8, 4, 2))


@plants("zero_sum")
def zero_sum(w, i):
    x = w.tensor(8, 4, 2)
    x[5] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    targets(w, 16.0, "share", lambda y: ops.div(y, ops.row_sum(y)), x=x)


@plants("zero_variance", "zero_variance_row")
def zero_variance(w, i):
    x = (1.0 - 2.0 * ((torch.arange(8).unsqueeze(1) + torch.arange(4)) % 2)).to(w.device, w.dtype)
    t, one, none = (
        w.tensor(8, 4),
        w.tensor(1, 4, 1, torch.float32),
        w.tensor(1, 4, 0, torch.float32),
    )
    if i == "zero_variance":
        x[:, 2], t[3, 2] = 1, -1
        targets(w, 16.0, "norm", lambda y: ops.batch_norm(y, one, none, 1e-30), x=x, t=t)
    else:
        x[5], t[5, 2] = 1, -1
        targets(w, 16.0, "norm", lambda y: ops.layer_norm(y, one, none, 1e-30), x=x, t=t)


# ---- the optimiser ----


@plants("optim_lr_sgd", "optim_lr_fp32", "optim_decay", "optim_moment_fp32")
def one_weight(w, i):
    if i.endswith("fp32"):
        w.dtype, w.scale = torch.float32, 1.0
    x, t = w.tensor(8, 4), w.tensor(8, 4)
    w.param("w", 4, 4, 0)
    if i == "optim_decay":
        w.set("w", 2, 0, 1)
        w.optim = lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=1e8)
    elif i == "optim_moment_fp32":
        x[2, 1], t[2, 3] = 1e11, -1.6e11
        w.optim = lambda p: torch.optim.Adam(p, lr=0.01)
    else:
        x[2, 1], t[2, 3] = 1, -1000 if i == "optim_lr_fp32" else -1
        w.optim = lambda p: torch.optim.SGD(p, lr=1e38 if i == "optim_lr_fp32" else 1e7)
    w.loss = lambda: ops.mse(ops.linear(x, w.get("w")), t)


@plants("optim_lr_gcn", "optim_lr_gin", "optim_eps_gcn", "optim_decay_gat")
def optim_model(w, i):
    town(w, i[-3:])
    if i == "optim_eps_gcn":
        w.x[:, 5] = 0
    w.build()
    if i == "optim_eps_gcn":
        w.set("conv0.weight", -1, -1, 0.05)
    w.optim = {
        "optim_lr_gcn": lambda p: torch.optim.Adam(p, lr=1e6),
        "optim_lr_gin": lambda p: torch.optim.SGD(p, lr=1e30),
        "optim_eps_gcn": lambda p: torch.optim.Adam(p, lr=0.01, eps=0.0),
        "optim_decay_gat": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=1e10),
    }[i]
