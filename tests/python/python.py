"""halfgraph.py beside the library: the layout of its structs, datasets, training on a dataset, on
NumPy arrays and, where PyTorch is installed, on its tensors. Usage: python.py CC INCLUDE H5CONVERT
FOLDER. Exits with 77 without NumPy.
"""

import copy
import gc
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("Skipped: there is no NumPy")
    sys.exit(77)

import halfgraph as hg

CC, INCLUDE, H5CONVERT, FOLDER = sys.argv[1:5]
SEED = 20261123


def check(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


def structs_are_those_of_the_headers():
    lines = [
        "#include <halfgraph/data.h>",
        "#include <halfgraph/halfgraph.h>",
        "#include <stdio.h>",
        "int main(void) {",
    ]
    expected = []
    for struct in hg.STRUCTS:
        name = struct.__name__
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        expected.append((name, hg.ct.sizeof(struct)))
        for field, _ in struct._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field.rstrip("_")}));')
            expected.append((f"{name}.{field}", getattr(struct, field).offset))
    source, program = Path(FOLDER) / "layout.c", Path(FOLDER) / "layout"
    source.write_text("\n".join(lines + ["return 0; }"]))
    subprocess.run([CC, "-std=c17", f"-I{INCLUDE}", source, "-o", program], check=True)
    found = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    check(len(found) == len(expected), "layout: another number of fields")
    for (name, ours), theirs in zip(expected, found):
        check(ours == int(theirs), name, "is at", theirs, "in C and at", ours, "here")
    print(f"layout: {len(found)} sizes and places")


def planted():
    """A graph of four communities: three of four edges stay in theirs."""
    random = np.random.default_rng(SEED)
    n, m = 400, 4000
    dst = random.integers(0, n, m)
    src = np.where(
        np.arange(m) % 4, (dst + 4 * random.integers(0, n // 4, m)) % n, random.integers(0, n, m)
    )
    label = np.arange(n) % 4
    x = np.eye(4)[label] + 2 * random.random((n, 4))
    return np.stack([src, dst]), x.astype(np.float16), label, np.arange(n) < 40


def datasets_are_read_and_trained_on():
    path = Path(FOLDER) / "planted.h5"
    subprocess.run(
        [
            H5CONVERT,
            "--synthetic",
            "planted",
            "--nodes",
            "600",
            "--hubs",
            "2",
            "--hub-degree",
            "100",
            "--classes",
            "3",
            "-o",
            path,
        ],
        check=True,
        capture_output=True,
    )
    data = hg.Dataset.read(path)
    check(data.nodes == 600 and data.rowptr[-1] == data.edges == data.edge_index.shape[1])
    check(data.features.shape[0] == 600 and data.label.max() < data.classes == 3)
    copy = Path(FOLDER) / "copy.h5"
    data.write(copy)
    again = hg.Dataset.read(copy)
    for name in ("rowptr", "col", "label", "train_mask", "features"):
        check(np.array_equal(getattr(again, name), getattr(data, name)), name, "differs")
    run = hg.Train(data, "gcn", device="cpu", hidden=8, epochs=40, seed=3)
    report = run.fit()
    classes, logits = run.predict()
    check(logits.shape == (600, 3) and np.array_equal(logits.argmax(1), classes))
    test = data.test_mask > 0
    found = (classes == data.label)[test].mean()
    check(abs(found - report["test_accuracy"]) < 1e-12, found, report["test_accuracy"])
    named = Path(FOLDER) / "named.npz"
    arrays = {"adj_shape": [3, 3], "adj_indptr": [0, 1, 2, 2], "adj_indices": [1, 0]}
    words = ["rot", "gr\u00fcn"]
    np.savez(named, labels=[0, 1, 1], class_names=np.array(words), **arrays)
    check(hg.Dataset.load(named).class_names == words and data.class_names is None)
    hg.Dataset.load(named).write_npz(named)
    check(list(np.load(named)["class_names"]) == words)
    check(hg.Dataset.load(named).class_names == words)
    toy = Path(FOLDER) / "toy"
    toy.mkdir(exist_ok=True)
    (toy / "meta.yaml").write_text("node_data: [{file_name: n}]\nedge_data: [{file_name: e}]\n")
    (toy / "n").write_text("node_id\nzoë\nada\n", encoding="utf-8")
    (toy / "e").write_text("src_id,dst_id\nada,zoë\n", encoding="utf-8")
    called = hg.Dataset.load(toy)
    check(called.node_names == ["zoë", "ada"] and data.node_names is None)
    check(called.edge_index.tolist() == [[1], [0]])
    edges = Path(FOLDER) / "edges.txt"
    edges.write_text("0 1\n1 2\n2 0\n")
    check(hg.Dataset.load(edges, format="edges").edges == 3)


def the_example_runs():
    example = Path(__file__).parents[2] / "tools/examples/train_file.py"
    command = [sys.executable, example, Path(FOLDER) / "planted.h5"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    check("test accuracy" in text and "best epoch" in text, text)


PREDICTS = """
import sys
import numpy as np
import halfgraph as hg

model, data, out = sys.argv[1:4]
predictor = hg.Predictor(model, device="cpu")
dataset = hg.Dataset.read(data)
found = predictor.predict(dataset, embed="last")
again = predictor.predict(dataset)
assert np.array_equal(found.logits, again.logits) and again.embeddings is None
np.savez(out, ids=found.ids, classes=found.classes, probabilities=found.probabilities,
         logits=found.logits, embeddings=found.embeddings, hidden=predictor.config["hidden"])
"""


def models_predict_in_another_process():
    data = hg.Dataset.read(Path(FOLDER) / "planted.h5")
    run = hg.Train(data, "gcn", device="cpu", hidden=8, epochs=40, seed=3)
    report = run.fit()
    classes, logits = run.predict()
    model, out = Path(FOLDER) / "model.h5", Path(FOLDER) / "found.npz"
    run.save_model(model)
    command = [sys.executable, "-c", PREDICTS, model, Path(FOLDER) / "planted.h5", out]
    subprocess.run(command, check=True)
    found = np.load(out)
    check(np.array_equal(found["ids"], np.arange(600)), "ids")
    check(np.array_equal(found["classes"], classes), "classes of another process differ")
    check(np.array_equal(found["logits"], logits), "logits of another process differ")
    test = data.test_mask > 0
    accuracy = (found["classes"] == data.label)[test].mean()
    check(accuracy == report["test_accuracy"], accuracy, report["test_accuracy"])
    expected = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-6)
    # the last layer in f64, from its input: A~ H W + b
    h = found["embeddings"]
    check(h.shape == (600, 8) == (600, found["hidden"]) and h.min() == 0, h.shape)
    loops = np.eye(600)
    loops[data.edge_index[1], data.edge_index[0]] = 1
    degree = loops.sum(1)
    weight, bias = (run.parameters()[f"conv1.{k}"].numpy() for k in ("weight", "bias"))
    product = (loops / np.sqrt(np.outer(degree, degree))) @ h.astype(np.float64) @ weight + bias
    np.testing.assert_allclose(product, logits, rtol=0.02, atol=0.02 * abs(logits).max())
    predictor = hg.Predictor(model, device="cpu")
    one, two = predictor.predict(data, embed=1), predictor.predict(data, embed=2)
    check(np.array_equal(one.embeddings, h) and np.array_equal(two.embeddings, logits))
    check(one.embedding_ids is None and not one.of_graphs)
    raw = hg.Dataset.read(Path(FOLDER) / "planted.h5")
    data.standardize()
    check(data.feat_mean.shape == data.feat_deviation.shape == (data.features.shape[1],))
    run = hg.Train(data, "gcn", device="cpu", hidden=8, epochs=5, seed=3)
    run.fit()
    run.save_model(model)
    standard = hg.Predictor(model, device="cpu").predict(raw)  # as it was before
    check(np.array_equal(standard.logits, run.predict()[1]) and raw.feat_mean is None)
    failures = [
        (hg.Error, "embedding of layer 0, expected 1 to 2", lambda: predictor.predict(raw, 0)),
        (TypeError, "embed='first', expected a layer", lambda: predictor.predict(raw, "first")),
        (TypeError, "embed=-1, expected a layer", lambda: predictor.predict(raw, -1)),
        (TypeError, "embed=True, expected a layer", lambda: predictor.predict(raw, True)),
        (TypeError, "expected a Dataset", lambda: predictor.predict("planted.h5")),
        (hg.Error, "No such file", lambda: hg.Predictor(Path(FOLDER) / "absent.h5", device="cpu")),
    ]
    for kind, text, call in failures:
        try:
            call()
        except kind as error:
            check(text in str(error), text, error)
        else:
            check(False, "no failure:", text)


def stopped_and_resumed_runs_have_the_same_bits():
    edges, x, label, train = planted()
    context = hg.Context("cpu", seed=5)
    graph = hg.Graph(context, edges, len(label), self_loops=True)

    def run(epochs):
        return hg.Train(
            model="gcn",
            graph=graph,
            features=x,
            labels=label,
            train_mask=train,
            epochs=epochs,
            dropout=0.5,
        )

    whole = run(30)
    whole.fit()
    losses = []
    first = run(30)
    report = first.fit(lambda event: losses.append(event["loss"]) or event["epoch"] == 10)
    check(report["epochs_run"] == 10 == len(losses), report["epochs_run"], len(losses))
    path = Path(FOLDER) / "part.h5"
    first.save(path)
    second = run(20)
    second.load(path)
    second.fit()
    for name, tensor in whole.parameters().items():
        check(np.array_equal(tensor.numpy(), second.parameters()[name].numpy()), name, "differs")


def targets_are_learnt():
    edges, x, label, train = planted()
    graph = hg.Graph(hg.Context("cpu", seed=5), edges, len(label), self_loops=True)
    goal = np.stack([100.0 * (label == 1), label - 1.5], 1).astype(np.float32)
    goal[7, 0] = np.nan
    run = hg.Train(
        model="gcn",
        graph=graph,
        features=x,
        targets=goal,
        train_mask=train,
        val_mask=~train,
        test_mask=~train,
        loss="mse",
        metric="mae",
        epochs=100,
        lr=0.05,
    )
    report = run.fit()
    classes, found = run.predict()
    error = np.nanmean(np.abs(found - goal)[~train])
    check(classes is None and abs(error - report["test_metric"]) < 1e-4 * error, error)
    mean = np.nanmean(np.abs(goal - np.nanmean(goal[train], 0))[~train])
    check(error < 0.7 * mean, error, "with the mean as prediction", mean)


def failures_are_exceptions():
    edges, x, label, train = planted()
    context = hg.Context("cpu")
    graph = hg.Graph(context, edges, len(label))
    arrays = {"graph": graph, "features": x, "labels": label, "train_mask": train}
    cases = [
        ("HG_ERR_IO", "none.h5", lambda: hg.Dataset.read("none.h5")),
        ("HG_ERR_ARG", "gcx", lambda: hg.Train(model="gcx", **arrays)),
        ("HG_ERR_ARG", "dropout is 2", lambda: hg.Train(model="gcn", dropout=2.0, **arrays)),
        ("HG_ERR_SHAPE", "labels is (3,)", lambda: hg.Train(**{**arrays, "labels": label[:3]})),
        ("HG_ERR_ARG", "ids 0 to 400", lambda: hg.Graph(context, [[0], [400]], 400)),
        ("HG_ERR_SHAPE", "[2, m]", lambda: hg.Graph(context, np.zeros((3, 4), int), 400)),
        ("HG_ERR_DTYPE", "float64", lambda: hg.Tensor.of(context, np.zeros((2, 2)))),
    ]
    for status, text, call in cases:
        try:
            call()
        except hg.Error as error:
            check(error.status == status and text in str(error), status, text, error)
        else:
            check(False, "no failure:", status, text)
    bad_labels = {**arrays, "labels": label + 0.5}
    mistakes = [
        ("'hiden'", lambda: hg.Train(hiden=1, **arrays)),
        ("norm='up'", lambda: hg.Train(norm="up", **arrays)),
        ("precision='fp8'", lambda: hg.Train(precision="fp8", **arrays)),
        ("hidden='16', expected a number", lambda: hg.Train(hidden="16", **arrays)),
        ("hidden=4294967312 does not fit", lambda: hg.Train(hidden=2**32 + 16, **arrays)),
        ("seed: the context has it", lambda: hg.Train(seed=1, **arrays)),
        ("labels: fractions", lambda: hg.Train(**bad_labels)),
        ("expected a Dataset", lambda: hg.Train("planted.h5")),
        ("cannot be copied", lambda: copy.copy(hg.Train(**arrays))),
        ("needs a file", lambda: hg.Dataset.load()),
    ]
    for text, call in mistakes:
        try:
            call()
        except TypeError as error:
            check(text in str(error), text, error)
        else:
            check(False, "no failure:", text)

    def bad(event):
        raise KeyError("raised in progress")

    try:
        hg.Train(**arrays).fit(bad)
    except KeyError as error:
        check("raised in progress" in str(error))
    else:
        check(False, "an exception of progress is lost")


def tensors_pass_without_a_copy():
    edges, x, label, train = planted()
    context = hg.Context("cpu")
    graph = hg.Graph(context, edges, len(label), self_loops=True)
    run = hg.Train(model="gcn", graph=graph, features=x, labels=label, train_mask=train, epochs=5)
    run.fit()
    weight = run.parameters()["conv0.weight"]
    lent = np.from_dlpack(weight)
    expected = weight.numpy()
    check(lent.shape == weight.shape and np.array_equal(lent, expected))
    del run, graph, context, weight
    gc.collect()
    check(np.array_equal(lent, expected), "a loan does not outlive its run")
    own = hg.Tensor.of(hg.Context("cpu"), expected)
    twice = hg.Tensor.of(own.context, np.from_dlpack(own))
    check(np.array_equal(twice.numpy(), expected))
    own.__dlpack__(max_version=(1, 0))  # a loan that nobody takes is given back


def tensors_of_pytorch_train():
    try:
        import torch
    except ImportError:
        print("Skipped: PyTorch is not installed")
        return
    edges, x, label, train = map(torch.as_tensor, planted())
    context = hg.Context("cpu")
    graph = hg.Graph(context, edges, len(label), self_loops=True)
    run = hg.Train(
        model="gcn", graph=graph, features=x, labels=label, train_mask=train, test_mask=~train
    )
    report = run.fit()
    check(report["test_accuracy"] > 0.9, report["test_accuracy"])
    weight = torch.from_dlpack(run.parameters()["conv0.weight"])
    check(weight.shape == (4, 64) and weight.dtype == torch.float32)
    check(weight.data_ptr() == torch.from_dlpack(run.parameters()["conv0.weight"]).data_ptr())
    print("PyTorch: tensors in and out")


def memory_is_shared_where_layouts_allow():
    context = hg.Context("cpu")
    for columns, shared in ((8, True), (5, False)):
        theirs = np.arange(24 * columns, dtype=np.float32).reshape(24, columns)

        class Foreign:  # any library: what has __dlpack__ and is no NumPy array
            __dlpack__ = staticmethod(theirs.__dlpack__)
            __dlpack_device__ = staticmethod(theirs.__dlpack_device__)

        tensor = hg.Tensor.of(context, Foreign())
        theirs[3, 2] = -1.0
        check((tensor.numpy()[3, 2] == -1.0) == shared, columns, "columns")
        copied = hg.Tensor.of(context, Foreign(), copy=True)
        theirs[3, 2] = -2.0
        check(copied.numpy()[3, 2] == -1.0, "a copy is shared")
        if not shared:
            try:
                hg.Tensor.of(context, Foreign(), copy=False)
            except hg.Error as error:
                check(error.status == "HG_ERR_UNSUPPORTED" and "5 columns" in str(error), error)
            else:
                check(False, "five columns are shared")
        half = np.from_dlpack(hg.Copy(context, tensor.pointer, np.float16))
        check(half.flags.c_contiguous and np.array_equal(half, tensor.numpy().astype(np.float16)))


def edges_of_tensors_are_checked():
    edges, x, label, train = planted()

    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    def logits(edge_index):
        graph = hg.Graph(hg.Context("cpu", seed=5), edge_index, len(label), self_loops=True)
        run = hg.Train(graph=graph, features=x, labels=label, train_mask=train, epochs=3)
        run.fit()
        return run.predict()[1]

    for kind in (np.int64, np.int32):
        check(np.array_equal(logits(Foreign(edges.astype(kind))), logits(edges)), kind)
    edges[1, 7] = 2**32
    try:
        hg.Graph(hg.Context("cpu"), Foreign(edges), len(label))
    except hg.Error as error:
        check("destination 4294967296 of edge 7, expected 0 .. 399" in str(error), error)
    else:
        check(False, "an id of 33 bits is taken")


def model_is_a_part_of_another_computation():
    """The gradients of a loss outside, by central differences: L = sum of C Y^2 / 2, dY = C Y."""
    edges, x, label, train = planted()
    graph = hg.Graph(hg.Context("cpu", seed=5), edges, len(label), self_loops=True)
    model = hg.Model(graph, 4, 3, "gcn", precision="fp32", hidden=8)
    random = np.random.default_rng(SEED)
    c, x = random.random((400, 3)).astype(np.float32), x.astype(np.float32)

    def loss(at):
        return (c.astype(np.float64) * np.from_dlpack(model.forward(at)) ** 2).sum() / 2

    y = np.from_dlpack(model.forward(x))
    dx, gradients, scale = model.backward(c * y)
    dx = np.from_dlpack(dx) / scale
    direction = np.sign(dx).astype(np.float32)
    step = 2.0**-10
    slope = (loss(x + step * direction) - loss(x - step * direction)) / (2 * step)
    check(abs(slope - abs(dx).sum()) < 0.02 * abs(slope), slope, abs(dx).sum())
    weight = np.from_dlpack(model.parameters()["conv1.bias"]).copy()
    found = np.from_dlpack(gradients["conv1.bias"]) / scale
    np.testing.assert_allclose(found[0], (c * y).sum(0), rtol=1e-4)
    model.set({"conv1.bias": weight + 1})
    moved = np.from_dlpack(model.forward(x))
    np.testing.assert_allclose(moved, y + 1, rtol=1e-5, atol=1e-5)
    try:
        model.set({"conv1.bias": weight[:, :1]})
    except hg.Error as error:
        check("expected (1, 3)" in str(error), error)
    else:
        check(False, "a weight of another shape is taken")


def model_agrees_with_autograd_of_pytorch():
    try:
        import torch
    except ImportError:
        print("Skipped: PyTorch is not installed")
        return
    edges, x, label, train = planted()
    n = len(label)
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    for source, target in edges.T:
        adjacency[target, source] += 1
    loops = torch.diagonal(adjacency) == 0
    adjacency += torch.diag(loops.double())
    into, out = adjacency.sum(1), adjacency.sum(0).clamp(min=1)
    adjacency = adjacency / torch.sqrt(into)[:, None] / torch.sqrt(out)[None, :]
    graph = hg.Graph(hg.Context("cpu", seed=5), torch.as_tensor(edges), n, self_loops=True)
    labels = torch.as_tensor(label)
    for precision, bound in (("fp32", 1e-5), ("fp16", 0.02)):
        inner = hg.Model(graph, 8, 16, "gcn", precision=precision, hidden=8).module()
        torch.manual_seed(SEED)
        before, after = torch.nn.Linear(4, 8), torch.nn.Linear(16, 4)
        ours = [*inner.parameters(), *before.parameters(), *after.parameters()]
        start = torch.as_tensor(x).float().requires_grad_()
        y = after(torch.tanh(inner(before(start))))
        torch.nn.functional.cross_entropy(y, labels).backward()
        wide = [p.detach().double().requires_grad_() for p in ours]
        w0, b0, w1, b1, wb, bb, wa, ba = wide
        again = torch.as_tensor(x).double().requires_grad_()
        h = torch.relu(adjacency @ (again @ wb.T + bb) @ w0 + b0)
        h = adjacency @ h @ w1 + b1
        torch.nn.functional.cross_entropy(torch.tanh(h) @ wa.T + ba, labels).backward()
        for mine, theirs in [(start, again), *zip(ours, wide)]:
            error = (mine.grad.double() - theirs.grad).norm() / theirs.grad.norm()
            check(error < bound, precision, tuple(mine.shape), "relative error", float(error))
        optimiser = torch.optim.Adam([*ours], lr=0.02)
        losses = []
        for _ in range(30):
            optimiser.zero_grad()
            y = after(torch.tanh(inner(before(torch.as_tensor(x).float()))))
            loss = torch.nn.functional.cross_entropy(y, labels)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        check(losses[-1] < 0.5 * losses[0], precision, losses[0], losses[-1])
        stale = inner(before(start)).sum()
        inner(before(start))
        try:
            stale.backward()
        except RuntimeError as error:
            check("forward again" in str(error), error)
        else:
            check(False, "a stale backward pass is allowed")
    print("PyTorch: a model inside autograd, in fp32 and fp16")


if __name__ == "__main__":
    Path(FOLDER).mkdir(parents=True, exist_ok=True)
    for case in (
        structs_are_those_of_the_headers,
        datasets_are_read_and_trained_on,
        the_example_runs,
        models_predict_in_another_process,
        stopped_and_resumed_runs_have_the_same_bits,
        targets_are_learnt,
        failures_are_exceptions,
        tensors_pass_without_a_copy,
        tensors_of_pytorch_train,
        memory_is_shared_where_layouts_allow,
        edges_of_tensors_are_checked,
        model_is_a_part_of_another_computation,
        model_agrees_with_autograd_of_pytorch,
    ):
        case()
        print("ok      ", case.__name__)
