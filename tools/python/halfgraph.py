"""HalfGraph from Python: datasets, training and predictions.

    import halfgraph as hg

    data = hg.Dataset.read("cora.h5")              # or hg.Dataset.load("cora.npz")
    run = hg.Train(data, "gcn", precision="fp16", hidden=16, epochs=200, seed=1)
    report = run.fit()
    print(report["test_accuracy"])
    labels, logits = run.predict()                 # NumPy arrays
    run.save_model("gcn.h5")

    model = hg.Predictor("gcn.h5")                 # in another process
    found = model.predict(hg.Dataset.read("other.h5"), embed="last")
    print(found.ids, found.classes, found.probabilities, found.embeddings)

Without a file: hg.Train(model="gcn", graph=hg.Graph(context, edge_index, nodes), features=x,
labels=y, train_mask=m), where x is a NumPy array, a torch.Tensor or anything else with __dlpack__.
Tensors go out the same way: torch.from_dlpack(run.parameters()["conv0.weight"]).

One file, which needs NumPy and the shared libraries of the same version. They are looked for in the
folder that HALFGRAPH_LIB names, then in ../../lib beside this file (as installed), then where the
system's loader looks.

A failed call raises halfgraph.Error, whose text is the library's own and whose `status` is a name
such as "HG_ERR_SHAPE". Objects are used from one thread at a time. They keep what they need alive.
"""

import ctypes as ct
import os
import warnings
import weakref
from pathlib import Path

import numpy as np

__version__ = "0.1.0"

# ---- structs of the C API: same names, same order ----


def _struct(name, *fields):
    """A ctypes.Structure with these fields, of which a string names several."""
    flat = [(n, kind) for names, kind in fields for n in names.split()]
    return type(name, (ct.Structure,), {"_fields_": flat})


_i32, _i64, _f32, _f64, _size = ct.c_int, ct.c_int64, ct.c_float, ct.c_double, ct.c_size_t
_ptr, _text = ct.c_void_p, ct.c_char_p

hg_allocator = _struct("hg_allocator", ("alloc free user", _ptr))
hg_context_config = _struct(
    "hg_context_config",
    ("size", _size),
    ("device device_index", _i32),
    ("stream", _ptr),
    ("threads", _i32),
    ("seed", ct.c_uint64),
    ("log log_user", _ptr),
    ("log_level", _i32),
    ("allocator", hg_allocator),
    ("memory_limit", _size),
    ("separate_ops", _i32),
)
hg_loss_scale_config = _struct(
    "hg_loss_scale_config",
    ("size", _size),
    ("enabled", _i32),
    ("init_scale growth_factor backoff_factor", _f32),
    ("growth_interval", ct.c_int32),
    ("min_scale max_scale", _f32),
    ("hysteresis", ct.c_int32),
)
hg_policy = _struct(
    "hg_policy",
    ("size", _size),
    ("name", _text),
    ("state accumulate unproved replan", _i32),
    ("loss_scale", hg_loss_scale_config),
)
hg_optim_config = _struct(
    "hg_optim_config",
    ("size", _size),
    ("kind", _i32),
    ("lr weight_decay momentum", _f32),
    ("nesterov", _i32),
    ("beta1 beta2 eps clip_norm", _f32),
)
hg_model_config = _struct(
    "hg_model_config",
    ("size", _size),
    ("name", _text),
    ("in_features out_features", _i64),
    ("layers hidden heads", _i32),
    ("dropout", _f32),
    ("norm eps_learnable aggregate", _i32),
    ("lambda negative_slope attention_dropout", _f32),
    ("out_heads readout feature_norm hops", _i32),
    ("teleport", _f32),
    ("readout_layers", _i32),
    ("edge_features", _i64),
)
hg_step_config = _struct(
    "hg_step_config", ("size", _size), ("eager per_launch observe_every", _i32)
)
hg_schedule_config = _struct(
    "hg_schedule_config",
    ("size", _size),
    ("kind patience", _i32),
    ("warmup every total", _i64),
    ("factor least start rise threshold", _f64),
)
hg_train_config = _struct(
    "hg_train_config",
    ("size", _size),
    ("model", hg_model_config),
    ("optim", hg_optim_config),
    ("policy", hg_policy),
    ("first_layer_decay_only epochs patience eval_every", _i32),
    ("progress user", _ptr),
    ("step", hg_step_config),
    ("loss metric raw_targets", _i32),
    ("batch_graphs", _i64),
    ("schedule", hg_schedule_config),
    ("class_weights", _ptr),
    ("class_weight_count", _i64),
    ("label_smoothing", _f32),
    ("eval_graphs", _i64),
)
hg_model_input = _struct(
    "hg_model_input",
    ("size", _size),
    ("graph x x_sparse", _ptr),
    ("x_amax", _f64),
    ("edge_x", _ptr),
    ("edge_amax", _f64),
)
hg_train_data = _struct(
    "hg_train_data",
    ("size", _size),
    ("input", hg_model_input),
    ("labels train_mask val_mask test_mask", _ptr),
    ("features_note", _text),
    ("targets", _ptr),
    ("target_cols", _i64),
    ("rows_normalized self_loops unweighted", _i32),
    ("column_mean column_deviation class_name", _ptr),
    ("class_name_bytes", _i64),
)
hg_step_info = _struct(
    "hg_step_info",
    ("size", _size),
    ("applied reason", _i32),
    ("loss_scale", _f32),
    ("grad_norm", _f64),
    ("nonfinite steps skipped", _i64),
    ("first_nonfinite outgrown", _text),
    ("overflow_node", ct.c_int32),
    ("overflow_amax", _f32),
    ("lr_factor", _f64),
)
hg_train_event = _struct(
    "hg_train_event",
    ("size", _size),
    ("epoch epochs", _i32),
    ("loss train_accuracy val_accuracy test_accuracy epoch_ms", _f64),
    ("step", hg_step_info),
    ("nonfinite_logits", _i64),
    ("train_metric val_metric test_metric", _f64),
    ("steps skipped overflowed", _i64),
    ("prepare_ms", _f64),
)
hg_train_report = _struct(
    "hg_train_report",
    ("size", _size),
    ("epochs_run best_epoch", _i32),
    ("best_val_accuracy test_accuracy final_loss epoch_ms_median", _f64),
    ("peak_bytes state_bytes arena_bytes", _size),
    ("steps_skipped", _i64),
    ("loss_scale_final", _f32),
    ("loss_finite", _i32),
    ("nonfinite_logits", _i64),
    ("captured epochs_together replans casts", _i32),
    ("headroom", _f64),
    ("headroom_name", _text),
    ("rescaled promoted metric loss", _i32),
    ("best_val_metric test_metric", _f64),
    ("steps_run", _i64),
    ("prepare_share", _f64),
)
hg_dataset = _struct(
    "hg_dataset",
    ("name", _text),
    ("nodes edges graphs", _i64),
    ("rowptr col weight graph_ptr", _ptr),
    ("features", _i64),
    ("feat_dtype", _i32),
    ("feat feat_rowptr feat_col feat_value", _ptr),
    ("feat_amax", _f64),
    ("classes", ct.c_int32),
    ("label train_mask val_mask test_mask orig_id order", _ptr),
    ("targets", _i64),
    ("target", _ptr),
    ("edge_features", _i64),
    ("edge_feat", _ptr),
    ("edge_classes", ct.c_int32),
    ("edge_label", _ptr),
    ("folds", ct.c_int32),
    ("fold", _ptr),
    ("target_names", _text),
    ("feat_mean feat_deviation class_name", _ptr),
    ("class_name_bytes", _i64),
    ("node_name", _ptr),
    ("node_name_bytes", _i64),
)
hg_import_config = _struct(
    "hg_import_config",
    ("size", _size),
    ("header", _i32),
    ("progress note user", _ptr),
    ("fold folds", _i64),
)
hg_importer = _struct(
    "hg_importer",
    ("name help endings", _text),
    ("inputs", _i32),
    ("import_", _ptr),
)
hg_upload_config = _struct(
    "hg_upload_config",
    ("size", _size),
    ("state self_loops features unweighted edge_features edge_labels on_host", _i32),
)
hg_device_data = _struct(
    "hg_device_data", ("graph x x_sparse edge_x", _ptr), ("self_loops unweighted", _i32)
)
hg_prediction = _struct(
    "hg_prediction",
    ("loss", _i32),
    ("rows cols", _i64),
    ("of_graphs", _i32),
    ("id label logits probability embedding", _ptr),
    ("embedding_rows embedding_cols", _i64),
    ("embedding_id class_name", _ptr),
    ("class_name_bytes", _i64),
    ("node_name", _ptr),
    ("node_name_bytes", _i64),
)
hg_predict_config = _struct(
    "hg_predict_config", ("size", _size), ("embed layer of_nodes prepare", _i32)
)

STRUCTS = [kind for name, kind in list(globals().items()) if name.startswith("hg_")]

_DEVICES = {"auto": 0, "cpu": 1, "cuda": 2}
_WORDS = {
    "norm": {
        "none": 0,
        "left": 1,
        "right": 2,
        "both": 3,
        "in": 4,
        "weighted": 5,
        "weighted-mean": 6,
    },
    "aggregate": {"sum": 0, "mean": 2},
    "readout": {"none": -1, "sum": 0, "mean": 1, "max": 2},
    "readout_layers": {"layers": 0, "last": 1, "all": 2},
    "feature_norm": {"batch": 0, "layer": 1},
    "kind": {"sgd": 0, "adam": 1, "adamw": 2},
    "loss": {"cross-entropy": 0, "bce": 1, "mse": 2, "mae": 3},
    "metric": {
        "accuracy": 1,
        "micro-f1": 2,
        "macro-f1": 3,
        "roc-auc": 4,
        "average-precision": 5,
        "mae": 6,
        "rmse": 7,
    },
}
_SCHEDULES = {"constant": 0, "step": 1, "cosine": 2, "one-cycle": 3, "plateau": 4}
_TYPES = [np.float16, np.float32, np.int32, np.int64, np.uint8]
_MESSAGE = 512
_PROGRESS = ct.CFUNCTYPE(_i32, _ptr, ct.POINTER(hg_train_event))
_NOTE = ct.CFUNCTYPE(None, _ptr, _text)
_IMPORT = ct.CFUNCTYPE(_i32, ct.POINTER(_text), _i32, ct.POINTER(hg_import_config), _ptr, _ptr)

# ---- the library ----


class Error(Exception):
    """A call failed. `status` is the name of the library's status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def _candidates():
    """(data library, core library) by path, where both are looked for by path; else by name."""
    end = f".so.{'.'.join(__version__.split('.')[:2])}"
    names = [f"lib{name}{end}" for name in ("halfgraph_data", "halfgraph")]
    root = Path(__file__).resolve().parent.parent.parent
    folders = [Path(os.environ["HALFGRAPH_LIB"])] if "HALFGRAPH_LIB" in os.environ else []
    for folder in folders + [root / "lib", *root.glob("lib/*-linux-gnu")]:
        if (folder / names[0]).exists():
            yield [str(folder / name) for name in names]
    yield names


def _open():
    reasons = []
    for data, core in _candidates():
        try:
            if "/" not in core or os.path.exists(core):
                ct.CDLL(core)  # so that the data library finds it in any folder
            return ct.CDLL(data)
        except OSError as why:
            reasons.append(str(why))
    raise ImportError(f"the libraries of HalfGraph {__version__} do not load: {'; '.join(reasons)}")


_lib = _open()


def _function(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype, function.argtypes = result, arguments
    return function


_version = _function("hg_version_string", _text)().decode()
if _version != __version__:
    raise ImportError(f"halfgraph.py is of version {__version__}, the library of {_version}")


def _check_layout():
    """Refuses a library whose structs are others than those above. The result has room for more."""
    fields = [("size", _size), ("rest", ct.c_char * 8184)]
    room = type("room", (ct.Structure,), {"_fields_": fields})
    found = _function("hg_train_config_default", room, _text)(b"gcn").size
    if found != ct.sizeof(hg_train_config):
        raise ImportError(
            f"hg_train_config has {found} bytes in the library, "
            f"{ct.sizeof(hg_train_config)} in halfgraph.py: another version"
        )


_check_layout()
_status_name = _function("hg_status_name", _text, _i32)
_context_error = _function("hg_context_error", _text, _ptr)


def _check(status, text):
    """Raises Error for a failure. Returns the status: above 0 it is information."""
    if status < 0:
        raise Error(_status_name(status).decode(), text())
    return status


def _call(name, context, *arguments):
    """A function of the library that returns a status and leaves its message in the context."""
    function = getattr(_lib, name)
    function.restype = _i32
    return _check(function(*arguments), lambda: _context_error(context).decode())


def _call_data(name, *arguments):
    """The same for a function that writes its message to its last argument."""
    message = ct.create_string_buffer(_MESSAGE)
    function = getattr(_lib, name)
    function.restype = _i32
    return _check(function(*arguments, message), lambda: message.value.decode())


class _Owned:
    """Holds a pointer that a function of the library frees, and what must live as long."""

    def __init__(self, pointer, free, *keeps):
        self.pointer, self._free, self._keeps = _ptr(pointer), free, keeps

    def __del__(self):
        if self.pointer:
            function = getattr(_lib, self._free)
            function.restype = None
            function(self.pointer)


def _host(array, dtype, what):
    """A contiguous NumPy array of this type, from an array or a tensor on the CPU."""
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
        array = np.from_dlpack(array)
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what}: elements of type {array.dtype}, expected numbers")
    if np.dtype(dtype).kind != "f":
        limits = np.iinfo(dtype)
        if array.dtype.kind == "f" and not np.array_equal(array, np.trunc(array)):
            raise TypeError(f"{what}: fractions or NaN, expected whole numbers")
        if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
            raise Error(
                "HG_ERR_RANGE",
                f"{what} holds {array.min()} to {array.max()}, expected "
                f"{limits.min} to {limits.max}",
            )
    return np.ascontiguousarray(array, dtype)


def _copy(pointer, shape, dtype):
    """A NumPy array with a copy of C memory; None for NULL."""
    if not pointer:
        return None
    out = np.empty(shape, dtype)
    ct.memmove(out.ctypes.data, pointer, out.nbytes)
    return out


def _texts(pointer, count):
    """A list of texts that are one after the other in `count` bytes; None for NULL."""
    if not pointer:
        return None
    return ct.string_at(pointer, count)[:-1].decode(errors="replace").split("\0")


# ---- devices and their data ----


class Context:
    """A device: "cpu", "cuda", or "auto" for a GPU if one answers."""

    def __init__(self, device="auto", seed=0, threads=0):
        if device not in _DEVICES:
            raise TypeError(f"device={device!r}, expected one of {', '.join(_DEVICES)}")
        config = hg_context_config(
            size=ct.sizeof(hg_context_config),
            device=_DEVICES[device],
            seed=seed,
            threads=threads,
            log_level=1,
        )
        pointer = _ptr()
        _call("hg_context_create", None, ct.byref(config), ct.byref(pointer))
        self._owned = _Owned(pointer.value, "hg_context_free")
        self.pointer = self._owned.pointer

    @property
    def name(self):
        return _function("hg_context_device_name", _text, _ptr)(self.pointer).decode()

    @property
    def is_cuda(self):
        return _function("hg_context_device", _i32, _ptr)(self.pointer) == 2


class _DLTensor(ct.Structure):
    _fields_ = [
        ("data", _ptr),
        ("device_type", ct.c_int32),
        ("device_id", ct.c_int32),
        ("ndim", ct.c_int32),
        ("code", ct.c_uint8),
        ("bits", ct.c_uint8),
        ("lanes", ct.c_uint16),
        ("shape", _ptr),
        ("strides", _ptr),
        ("byte_offset", ct.c_uint64),
    ]


class _DLManagedTensorVersioned(ct.Structure):
    _fields_ = [
        ("major", ct.c_uint32),
        ("minor", ct.c_uint32),
        ("manager", _ptr),
        ("deleter", _ptr),
        ("flags", ct.c_uint64),
        ("tensor", _DLTensor),
    ]


_DELETER = ct.CFUNCTYPE(None, _ptr)
_capsule_new = ct.pythonapi.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ct.py_object, (_ptr, _text, _ptr)
_capsule_get = ct.pythonapi.PyCapsule_GetPointer
_capsule_get.restype, _capsule_get.argtypes = _ptr, (_ptr, _text)
_capsule_is = ct.pythonapi.PyCapsule_IsValid
_capsule_is.restype, _capsule_is.argtypes = _i32, (_ptr, _text)
_capsule_rename = ct.pythonapi.PyCapsule_SetName
_capsule_rename.restype, _capsule_rename.argtypes = _i32, (_ptr, _text)
_VERSIONED, _USED = b"dltensor_versioned", b"used_dltensor_versioned"


@ct.PYFUNCTYPE(None, _ptr)
def _capsule_end(capsule):
    """Frees a loan that nobody took."""
    if _capsule_is(capsule, _VERSIONED):
        loan = _DLManagedTensorVersioned.from_address(_capsule_get(capsule, _VERSIONED))
        _DELETER(loan.deleter)(ct.addressof(loan))


class Tensor:
    """A matrix on a device. NumPy, PyTorch and others read it without a copy through DLPack."""

    def __init__(self, context, pointer, owner=None):
        self.context, self.pointer = context, _ptr(pointer)
        self._owner = owner  # None: the tensor is borrowed, and `context` holds its owner

    @classmethod
    def of(cls, context, array, dtype=None, copy=None):
        """A tensor of another library on the same device, whose memory is shared where its layout
        allows (copy=False: or HG_ERR_UNSUPPORTED; copy=True: never); or a copy of an array.
        """
        if isinstance(array, Tensor):
            return array
        if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
            return cls._of_dlpack(context, array, copy)
        array = np.asarray(array)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2:
            raise Error("HG_ERR_SHAPE", f"an array of {array.ndim} dimensions, expected 1 or 2")
        array = _host(array, dtype or array.dtype, "array")
        kind = next((k for k, t in enumerate(_TYPES) if array.dtype == t), None)
        if kind is None:
            raise Error(
                "HG_ERR_DTYPE",
                f"an array of {array.dtype}, expected one of float16, "
                "float32, int32, int64, uint8",
            )
        out = _ptr()
        _call(
            "hg_tensor_create",
            context.pointer,
            context.pointer,
            _i32(kind),
            _i64(array.shape[0]),
            _i64(array.shape[1]),
            ct.byref(out),
        )
        tensor = cls(context, out.value, _Owned(out.value, "hg_tensor_free", context._owned))
        _call(
            "hg_tensor_upload", context.pointer, tensor.pointer, _ptr(array.ctypes.data), _i32(kind)
        )
        return tensor

    @classmethod
    def _of_dlpack(cls, context, array, copy):
        stream = {"stream": -1} if context.is_cuda else {}  # the producer's work is waited for
        if context.is_cuda and hasattr(array, "is_cuda"):
            import torch

            torch.cuda.synchronize(array.device)
        try:
            capsule = array.__dlpack__(max_version=(1, 0), **stream)
        except TypeError:
            capsule = array.__dlpack__(**stream)
        at, out = id(capsule), _ptr()
        versioned = bool(_capsule_is(at, _VERSIONED))
        name = _VERSIONED if versioned else b"dltensor"
        arguments = (context.pointer, _ptr(_capsule_get(at, name)), None, ct.byref(out))
        ways = ["hg_tensor_from_dlpack"] if copy else ["hg_tensor_share_dlpack"]
        ways += ["hg_tensor_from_dlpack"] if copy is None else []
        for way in ways:
            try:
                _call(way + ("" if versioned else "_legacy"), context.pointer, *arguments)
                break
            except Error as why:
                if why.status != "HG_ERR_UNSUPPORTED" or way == ways[-1]:
                    raise
        _capsule_rename(at, _USED if versioned else b"used_dltensor")
        return cls(context, out.value, _Owned(out.value, "hg_tensor_free", context._owned))

    @property
    def shape(self):
        rows = _function("hg_tensor_rows", _i64, _ptr)(self.pointer)
        return rows, _function("hg_tensor_cols", _i64, _ptr)(self.pointer)

    @property
    def dtype(self):
        return np.dtype(_TYPES[_function("hg_tensor_dtype", _i32, _ptr)(self.pointer)])

    def numpy(self):
        """A copy as a NumPy array of the same type."""
        out = np.empty(self.shape, self.dtype)
        kind = _i32(_TYPES.index(self.dtype.type))
        _call("hg_tensor_download", self.context.pointer, self.pointer, _ptr(out.ctypes.data), kind)
        return out

    def __dlpack_device__(self):
        return (2 if self.context.is_cuda else 1), 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if not max_version or max_version < (1, 0):
            raise BufferError("a tensor of HalfGraph is lent through DLPack 1.0")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the tensor is on device {self.__dlpack_device__()}")
        out = _ptr()
        if copy:
            return Copy(self.context, self.pointer, self.dtype).__dlpack__()
        consumer = _ptr(stream if stream and stream > 2 else None)
        _call("hg_tensor_to_dlpack", self.context.pointer, self.pointer, consumer, ct.byref(out))
        return _capsule_new(out, _VERSIONED, ct.cast(_capsule_end, _ptr))


class Copy:
    """A compact copy of a tensor, which torch.from_dlpack or numpy.from_dlpack takes once."""

    def __init__(self, context, pointer, dtype):
        self.context, out = context, _ptr()
        kind = _i32(_TYPES.index(np.dtype(dtype).type))
        _call(
            "hg_tensor_export_copy",
            context.pointer,
            pointer,
            kind,
            None,
            ct.byref(out),
        )
        _call("hg_context_synchronize", context.pointer, context.pointer)
        self._capsule = _capsule_new(out, _VERSIONED, ct.cast(_capsule_end, _ptr))

    def __dlpack_device__(self):
        return (2 if self.context.is_cuda else 1), 0

    def __dlpack__(self, **_):
        capsule, self._capsule = self._capsule, None
        if capsule is None:
            raise BufferError("the copy was taken already")
        return capsule


class Graph:
    """A graph on a device. edge_index [2, m] is as PyTorch Geometric has it: sources, then
    destinations, of any integer type. A tensor of int64 or int32 may be on the context's device.
    """

    def __init__(self, context, edge_index, nodes, weight=None, self_loops=False):
        self.context, self.nodes, self.pointer = context, nodes, None
        if hasattr(edge_index, "__dlpack__") and not isinstance(edge_index, np.ndarray):
            out = self._of_tensor(edge_index, weight)
        else:
            out = self._of_arrays(edge_index, weight)
        self._own(out)
        if self_loops:
            out = _ptr()
            _call("hg_graph_add_self_loops", context.pointer, self.pointer, ct.byref(out))
            self._own(out)

    def _of_tensor(self, edge_index, weight):
        context, nodes, out = self.context, _i64(self.nodes), _ptr()
        edges = Tensor.of(context, edge_index)
        weight = None if weight is None else Tensor.of(context, weight)
        _call(
            "hg_graph_from_edge_index",
            context.pointer,
            context.pointer,
            nodes,
            nodes,
            edges.pointer,
            weight and weight.pointer,
            None,
            ct.byref(out),
        )
        return out

    def _of_arrays(self, edge_index, weight):
        context, nodes = self.context, self.nodes
        edge_index = _host(edge_index, np.int64, "edge_index")
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise Error("HG_ERR_SHAPE", f"edge_index is {edge_index.shape}, expected [2, m]")
        if edge_index.size and not 0 <= edge_index.min() <= edge_index.max() < nodes:
            raise Error(
                "HG_ERR_ARG",
                f"edge_index has ids {edge_index.min()} to "
                f"{edge_index.max()}, expected 0 to {nodes - 1}",
            )
        source, target = np.ascontiguousarray(edge_index, np.int32)
        weight = None if weight is None else _host(weight, np.float32, "weight")
        m = source.size
        if weight is not None and weight.shape != (m,):
            raise Error("HG_ERR_SHAPE", f"weight is {weight.shape}, expected ({m},)")
        out = _ptr()
        at = None if weight is None else _ptr(weight.ctypes.data)
        _call(
            "hg_graph_from_coo",
            context.pointer,
            context.pointer,
            _i64(nodes),
            _i64(nodes),
            _i64(m),
            _ptr(target.ctypes.data),
            _ptr(source.ctypes.data),
            at,
            None,
            ct.byref(out),
        )
        return out

    def _own(self, out):
        self._owned = _Owned(out.value, "hg_graph_free", self.context._owned)
        self.pointer = self._owned.pointer


# ---- datasets ----


class Dataset:
    """A dataset in host memory: what one HDF5 file holds (data/FORMAT.md). Its arrays are read as
    NumPy arrays, which are copies.
    """

    _ARRAYS = {  # name: (shape, type); a name stands for the field
        "rowptr": ("nodes + 1", np.int64),
        "col": ("edges", np.int32),
        "weight": ("edges", np.float32),
        "graph_ptr": ("graphs + 1", np.int64),
        "label": ("rows", np.int32),
        "train_mask": ("rows", np.uint8),
        "val_mask": ("rows", np.uint8),
        "test_mask": ("rows", np.uint8),
        "orig_id": ("nodes", np.int64),
        "order": ("nodes", np.int32),
        "target": ("rows, targets", np.float32),
        "edge_feat": ("edges, edge_features", np.float32),
        "edge_label": ("edges", np.int32),
        "fold": ("rows", np.int32),
        "feat_mean": ("features", np.float64),
        "feat_deviation": ("features", np.float64),
    }

    def __init__(self, pointer):
        self._owned = _Owned(pointer, "hg_dataset_free")
        self.pointer = self._owned.pointer
        self.struct = hg_dataset.from_address(pointer)
        self.notes = []

    @classmethod
    def read(cls, path):
        """Reads an HDF5 file of HalfGraph."""
        out = _ptr()
        _call_data("hg_dataset_read", os.fsencode(path), ct.byref(out))
        return cls(out.value)

    @classmethod
    def load(cls, *paths, format=None):
        """Imports files of another format, which is recognised if it is not named. `notes` holds
        what was decided, as sentences.
        """
        if not paths:
            raise TypeError("Dataset.load needs a file")
        names = [os.fsencode(p) for p in paths]
        importer = ct.POINTER(hg_importer)()
        if format:
            count = _size()
            table = _function("hg_importers", ct.POINTER(hg_importer), ct.POINTER(_size))
            rows = table(ct.byref(count))
            found = [rows[k] for k in range(count.value) if rows[k].name == format.encode()]
            if not found:
                known = ", ".join(rows[k].name.decode() for k in range(count.value))
                raise Error("HG_ERR_ARG", f"format {format!r}, expected one of {known}")
            chosen = found[0]
        else:
            _call_data("hg_import_recognise", names[0], ct.byref(importer))
            chosen = importer.contents
        if chosen.inputs and chosen.inputs != len(names):
            raise Error(
                "HG_ERR_ARG",
                f"{chosen.name.decode()} takes {chosen.inputs} file, found {len(names)}",
            )
        notes = []
        note = _NOTE(lambda _, sentence: notes.append(sentence.decode()))
        config = hg_import_config(size=ct.sizeof(hg_import_config), note=ct.cast(note, _ptr))
        out, message = _ptr(), ct.create_string_buffer(_MESSAGE)
        array = (_text * len(names))(*names)
        status = _IMPORT(chosen.import_)(
            array, len(names), ct.byref(config), ct.addressof(out), ct.addressof(message)
        )
        _check(status, lambda: message.value.decode())
        dataset = cls(out.value)
        dataset.notes = notes
        return dataset

    def write(self, path):
        """Writes an HDF5 file, atomically."""
        _call_data("hg_dataset_write", self.pointer, os.fsencode(path))

    def write_npz(self, path):
        """Writes a numpy archive, which numpy.load opens and `load` reads back bit for bit."""
        _call_data("hg_dataset_write_npz", self.pointer, os.fsencode(path), None)

    def row_normalize(self):
        """Divides every node's features by the sum of their absolute values."""
        _call_data("hg_dataset_row_normalize", self.pointer)

    def symmetrize(self):
        """Adds the reverse of every edge."""
        _call_data("hg_dataset_symmetrize", self.pointer)

    def standardize(self):
        """Gives every column of the features mean 0 and standard deviation 1. Both numbers are
        kept, in feat_mean and feat_deviation, and go into models that are trained on the result.
        """
        _call_data("hg_dataset_standardize", self.pointer)

    def keep_target(self, target):
        """Keeps one column of the targets, by its name or its number."""
        _call_data("hg_dataset_keep_target", self.pointer, str(target).encode())

    def __getattr__(self, name):
        if name in self._ARRAYS:
            shape, dtype = self._ARRAYS[name]
            return _copy(getattr(self.struct, name), self._extents(shape), dtype)
        if name in (
            "nodes",
            "edges",
            "graphs",
            "classes",
            "targets",
            "edge_features",
            "edge_classes",
        ):
            return getattr(self.struct, name)
        raise AttributeError(name)

    def _extents(self, shape):
        s = self.struct
        names = {"rows": s.graphs if s.graph_ptr else s.nodes}
        for name in ("nodes", "edges", "graphs", "features", "targets", "edge_features"):
            names[name] = getattr(s, name)
        parts = [part.split(" + ") for part in shape.split(", ")]
        return tuple(names[part[0]] + len(part) - 1 for part in parts)

    @property
    def name(self):
        return self.struct.name.decode() if self.struct.name else ""

    @property
    def target_names(self):
        """The names of the columns of `target`; empty where they have none."""
        names = self.struct.target_names
        return names.decode().split("\n") if names else []

    @property
    def class_names(self):
        """The names of the classes, as a list; None where they have numbers only."""
        return _texts(self.struct.class_name, self.struct.class_name_bytes)

    @property
    def node_names(self):
        """The texts by which the source knows the nodes, as a list; None where it has numbers."""
        return _texts(self.struct.node_name, self.struct.node_name_bytes)

    @property
    def edge_index(self):
        """[2, m] int64: sources, then destinations."""
        row = np.repeat(np.arange(self.nodes), np.diff(self.rowptr))
        return np.stack([self.col.astype(np.int64), row])

    @property
    def features(self):
        """[nodes, columns], also where they are stored as a sparse matrix; or None."""
        s, shape = self.struct, (self.struct.nodes, self.struct.features)
        if s.feat:
            return _copy(s.feat, shape, _TYPES[s.feat_dtype])
        if not s.feat_rowptr:
            return None
        rowptr = _copy(s.feat_rowptr, shape[0] + 1, np.int64)
        col = _copy(s.feat_col, rowptr[-1], np.int32)
        value = _copy(s.feat_value, rowptr[-1], np.float32)
        out = np.zeros(shape, np.float32)
        out[np.repeat(np.arange(shape[0]), np.diff(rowptr)), col] = 1 if value is None else value
        return out


# ---- training ----


def _handler_of(run):
    """The progress function of a run, which does not keep the run alive."""
    weak = weakref.ref(run)

    def handler(user, event):
        return weak()._on_epoch(user, event)

    return _PROGRESS(handler)


def _options(struct):
    """The fields that are numbers or words."""
    kinds = (_i32, _i64, _f32, _f64)
    return {name: kind for name, kind in _fields(struct).items() if kind in kinds}


def _fields(struct):
    return {name: kind for name, kind in struct._fields_ if name not in ("size", "user")}


def _set(parts, options, words_of):
    """Sets fields of these structs by name; a field of words takes one of its words."""
    for name, value in options.items():
        holder = next((p for p in parts if name in _options(type(p))), None)
        if holder is None:
            known = sorted({n for p in parts for n in _options(type(p))})
            raise TypeError(f"no option {name!r}, expected one of {', '.join(known)}")
        if isinstance(value, str):
            words = words_of.get(name, {})
            if value not in words:
                wanted = f"one of {', '.join(words)}" if words else "a number"
                raise TypeError(f"{name}={value!r}, expected {wanted}")
            value = words[value]
        setattr(holder, name, value)
        if getattr(holder, name) != value and _options(type(holder))[name] != _f32:
            raise TypeError(f"{name}={value!r} does not fit")


class Train:
    """A training run. Options are the fields of hg_train_config, hg_model_config, hg_optim_config
    and hg_step_config by name (hidden, layers, dropout, lr, weight_decay, epochs, patience, ...);
    choices are words (norm="in", readout="mean", aggregate="mean", kind="adamw",
    loss="mse" with targets, metric="macro-f1"). schedule is a word, or a dict of the fields of
    hg_schedule_config: {"kind": "step", "every": 50}. class_weights is an array.
    """

    def __init__(
        self,
        data=None,
        model="gcn",
        *,
        precision="fp16",
        context=None,
        device=None,
        seed=None,
        threads=None,
        graph=None,
        features=None,
        labels=None,
        targets=None,
        train_mask=None,
        val_mask=None,
        test_mask=None,
        **options,
    ):
        given = {"device": device, "seed": seed, "threads": threads}
        own = {name: value for name, value in given.items() if value is not None}
        if own and (context or graph):
            raise TypeError(f"{', '.join(own)}: the context has it already; make that with it")
        arrays = (graph, features, labels, targets, train_mask, val_mask, test_mask)
        if data is not None and any(array is not None for array in arrays):
            raise TypeError("Train takes a dataset or arrays, not both")
        if data is not None and not isinstance(data, Dataset):
            raise TypeError(f"data is a {type(data).__name__}, expected a Dataset")
        if data is not None and data.label is None and data.targets:
            options.setdefault("loss", "mae")  # as hg-train does
        self.context = context or (graph.context if graph else Context(**own))
        self.config = self._configure(model, precision, options)
        self._progress = self._failure = None
        self._handler = _handler_of(self)
        self.config.progress = ct.cast(self._handler, _ptr)
        self.pointer = None
        struct = hg_train_data(size=ct.sizeof(hg_train_data))
        struct.input.size, struct.input.x_amax = ct.sizeof(hg_model_input), -1.0
        if data is not None:
            keeps = self._on_dataset(data, struct)
        else:
            keeps = self._on_arrays(
                struct,
                graph,
                features,
                labels,
                targets,
                {"train_mask": train_mask, "val_mask": val_mask, "test_mask": test_mask},
            )
        out = _ptr()
        _call(
            "hg_train_create",
            self.context.pointer,
            self.context.pointer,
            ct.byref(self.config),
            ct.byref(struct),
            ct.byref(out),
        )
        self._owned = _Owned(out.value, "hg_train_free", self.context._owned, *keeps)
        self.pointer = self._owned.pointer

    def _configure(self, model, precision, options):
        default = _function("hg_train_config_default", hg_train_config, _text)
        self._model = str(model).encode()
        config = default(self._model)
        if _function("hg_policy_parse", _i32, _text, _ptr)(
            str(precision).encode(), ct.addressof(config.policy)
        ):
            raise TypeError(
                f"precision={precision!r}, expected fp16, fp32, fp16-discretized or fp16-naive"
            )
        weights = options.pop("class_weights", None)
        if weights is not None:
            self._weights = np.ascontiguousarray(weights, np.float32)
            config.class_weights = self._weights.ctypes.data
            config.class_weight_count = self._weights.size
        schedule = options.pop("schedule", {})
        schedule = {"kind": schedule} if isinstance(schedule, str) else schedule
        _set((config, config.model, config.optim, config.step), options, _WORDS)
        _set((config.schedule,), schedule, {"kind": _SCHEDULES})
        return config

    def _on_dataset(self, data, struct):
        _call_data("hg_dataset_configure", data.pointer, ct.byref(self.config.model))
        wanted = _function("hg_upload_config_for", hg_upload_config, _ptr)
        upload = wanted(ct.addressof(self.config))
        device = _ptr()
        _call_data(
            "hg_dataset_upload",
            data.pointer,
            self.context.pointer,
            ct.byref(upload),
            ct.byref(device),
        )
        owned = _Owned(device.value, "hg_device_data_free", self.context._owned)
        _call_data("hg_dataset_train_data", data.pointer, device, ct.byref(struct))
        s = data.struct
        self._rows = s.graphs if s.graph_ptr else s.nodes
        return owned, data

    def _on_arrays(self, struct, graph, features, labels, targets, masks):
        if graph is None or features is None or (labels is None and targets is None):
            raise TypeError("Train needs a dataset, or graph, features and labels or targets")
        x = Tensor.of(self.context, features)
        struct.input.graph, struct.input.x = graph.pointer, x.pointer
        arrays = {} if labels is None else {"labels": _host(labels, np.int32, "labels")}
        if targets is not None:
            targets = _host(targets, np.float32, "targets")
            struct.targets = targets.ctypes.data
            struct.target_cols = targets.shape[1] if targets.ndim == 2 else 1
            if targets.shape[:1] != (graph.nodes,) or targets.ndim > 2:
                raise Error(
                    "HG_ERR_SHAPE", f"targets is {targets.shape}, expected [{graph.nodes}, t]"
                )
        for name, mask in masks.items():
            if mask is not None:
                arrays[name] = _host(_host(mask, np.int64, name) != 0, np.uint8, name)
        self._rows = graph.nodes
        for name, array in arrays.items():
            if array.shape != (self._rows,):
                raise Error("HG_ERR_SHAPE", f"{name} is {array.shape}, expected ({self._rows},)")
            setattr(struct, name, array.ctypes.data)
        return graph._owned, x._owner, x, arrays, targets

    def _on_epoch(self, _, event):
        """Called by the library. An exception cannot pass through C: fit raises it again."""
        try:
            return int(bool(self._progress and self._progress(_dict(event.contents))))
        except BaseException as why:
            self._failure = why
            return 1

    def fit(self, progress=None):
        """Trains for `epochs` epochs. progress(event) is called for every epoch with a dict; a true
        result stops the run. Returns the report as a dict.
        """
        report = hg_train_report(size=ct.sizeof(hg_train_report))
        self._progress, self._failure = progress, None
        try:
            _call("hg_train_run", self.context.pointer, self.pointer, ct.byref(report))
        finally:
            self._progress = None
        if self._failure:
            raise self._failure
        return _dict(report)

    def predict(self):
        """(classes [rows] int32, logits [rows, classes] float32), with the weights of the best
        epoch. Of a run on targets: (None, predictions [rows, targets] float32).
        """
        columns = self._columns()
        classes = np.empty(self._rows, np.int32) if self.config.loss == 0 else None
        logits = np.empty((self._rows, columns), np.float32)
        _call(
            "hg_train_predict",
            self.context.pointer,
            self.pointer,
            None if classes is None else _ptr(classes.ctypes.data),
            _ptr(logits.ctypes.data),
        )
        return classes, logits

    def _columns(self):
        model = _function("hg_train_model", _ptr, _ptr)(self.pointer)
        get = _function("hg_model_get_config", ct.POINTER(hg_model_config), _ptr)
        return get(model).contents.out_features

    def parameters(self, gradients=False):
        """{name: Tensor} of the float32 master weights, or of their last gradients, which are
        multiplied by the loss scale.
        """
        params = _function("hg_train_params", _ptr, _ptr)(self.pointer)
        count = _function("hg_params_count", _i64, _ptr)(params)
        at = _function("hg_params_at", _ptr, _ptr, _i64)
        name = _function("hg_param_name", _text, _ptr)
        value = _function("hg_param_grad" if gradients else "hg_param_master", _ptr, _ptr)
        rows = [at(params, k) for k in range(count)]
        found = {name(row).decode(): value(row) for row in rows}
        return {k: Tensor(self.context, v, self._owned) for k, v in found.items() if v}

    def save(self, path):
        """Writes a checkpoint, atomically."""
        _call_data("hg_checkpoint_save", self.pointer, os.fsencode(path))

    def save_model(self, path):
        """Writes the model of the best epoch, for Predictor and hg-train --predict, atomically."""
        _call_data("hg_model_save", self.pointer, os.fsencode(path))

    def load(self, path):
        """Continues from a checkpoint: the same options give the same bits, and others a warning.
        Until fit, predict uses the weights of the last epoch.
        """
        message = ct.create_string_buffer(_MESSAGE)
        load = _function("hg_checkpoint_load", _i32, _text, _ptr, _text)
        status = load(os.fsencode(path), self.pointer, message)
        if _check(status, lambda: message.value.decode()):
            warnings.warn(message.value.decode(), stacklevel=2)

    def __copy__(self):
        raise TypeError("a run cannot be copied: save it and load it into another")

    def __deepcopy__(self, memo):
        return self.__copy__()


# ---- trained models ----


class Prediction:
    """What a model predicts for a dataset, as NumPy arrays with a row per node, or per graph where
    the model predicts for graphs. What there is not is None.

        ids            [rows] int64: the numbers of the nodes in the source; of graphs 0, 1, ...
        classes        [rows] int32: the likeliest class; of several labels and targets None
        probabilities  [rows, classes] float32: softmax, or the sigmoid of each of several labels
        logits         [rows, classes] float32; of targets the predicted values
        embeddings     [rows, columns] float32, if they were asked for
        embedding_ids  [rows of embeddings] int64, where these are nodes and the rows are graphs
        class_names    a list: the names of the classes
        node_names     a list: the names of the nodes, where the source has texts for numbers
    """

    def __init__(self, p):
        shape, inner = (p.rows, p.cols), (p.embedding_rows, p.embedding_cols)
        self.of_graphs = bool(p.of_graphs)
        self.ids = _copy(p.id, p.rows, np.int64)
        self.classes = _copy(p.label, p.rows, np.int32)
        self.logits = _copy(p.logits, shape, np.float32)
        self.probabilities = _copy(p.probability, shape, np.float32)
        self.embeddings = _copy(p.embedding, inner, np.float32)
        self.embedding_ids = _copy(p.embedding_id, p.embedding_rows, np.int64)
        self.class_names = _texts(p.class_name, p.class_name_bytes)
        self.node_names = _texts(p.node_name, p.node_name_bytes)


class Predictor:
    """A trained model from a file of Train.save_model, Train.save or hg-train. It has the weights
    of the best epoch, so on the dataset of the training it gives what was reported.
    """

    def __init__(self, path, *, context=None, device="auto", threads=0):
        self.context = context or Context(device, threads=threads)
        out, message = _ptr(), ct.create_string_buffer(_MESSAGE)
        load = _function("hg_model_load", _i32, _ptr, _text, _ptr, _text)
        status = load(self.context.pointer, os.fsencode(path), ct.addressof(out), message)
        if _check(status, lambda: message.value.decode()):
            warnings.warn(message.value.decode(), stacklevel=2)
        self._owned = _Owned(out.value, "hg_predictor_free", self.context._owned)
        self.pointer = self._owned.pointer

    @property
    def config(self):
        """The configuration of the model, as a dict."""
        model = _function("hg_predictor_model", _ptr, _ptr)(self.pointer)
        get = _function("hg_model_get_config", ct.POINTER(hg_model_config), _ptr)
        return _dict(get(model).contents)

    def predict(self, data, embed=None, of_nodes=False):
        """A Prediction for a Dataset as it was read: it needs as many features as that of the
        training, and neither labels nor splits. What the training did to the features is done to a
        copy of them.

        embed is "last", what the last linear layer reads, or the number of a layer, from 1; of a
        model of graphs it is the readout of that layer, or, of_nodes, the layer itself.
        """
        if not isinstance(data, Dataset):
            raise TypeError(f"data is a {type(data).__name__}, expected a Dataset")
        number = isinstance(embed, (int, np.integer)) and not isinstance(embed, bool)
        if embed not in (None, "last") and not (number and 0 <= embed <= 1000):
            raise TypeError(f"embed={embed!r}, expected a layer from 0 to 1000, 'last' or None")
        config = hg_predict_config(
            size=ct.sizeof(hg_predict_config),
            embed=embed is not None,
            layer=-1 if embed in (None, "last") else int(embed),
            of_nodes=bool(of_nodes),
            prepare=1,
        )
        out = _ptr()
        _call_data(
            "hg_dataset_predict_with",
            data.pointer,
            self.pointer,
            ct.byref(config),
            ct.byref(out),
        )
        owned = _Owned(out.value, "hg_prediction_free")
        return Prediction(hg_prediction.from_address(owned.pointer.value))


# ---- a model inside another program's computation ----


class _Var(ct.Structure):
    _fields_ = [("id", ct.c_int32)]


def _write(tensor, array):
    """Overwrites a tensor with numbers of any float type, from NumPy or PyTorch."""
    if not hasattr(array, "data_ptr"):
        array = _host(array, np.float32, "array")
        if array.shape != tensor.shape:
            raise Error("HG_ERR_SHAPE", f"an array of {array.shape}, expected {tensor.shape}")
        at = _ptr(array.ctypes.data)
        _call("hg_tensor_upload", tensor.context.pointer, tensor.pointer, at, _i32(1))
        return
    import torch

    if tuple(array.shape) != tensor.shape:
        raise Error("HG_ERR_SHAPE", f"a tensor of {tuple(array.shape)}, expected {tensor.shape}")
    torch.from_dlpack(tensor).copy_(array.detach())
    if tensor.context.is_cuda:
        torch.cuda.current_stream().synchronize()


class Model:
    """A model as one part of another program's computation. Options are the fields of
    hg_model_config; there is no dropout, which the program around it has.

        y = model.forward(x)                   # logits
        dx, gradients, scale = model.backward(dy)

    The gradients are those of the program's loss times `scale`, a power of two that keeps them in
    the range of fp16. All results are copies (class Copy). Each forward pass serves one backward
    pass. `module()` is the same as a torch.nn.Module.
    """

    def __init__(
        self, graph, in_features, out_features, model="gcn", *, precision="fp16", **options
    ):
        self.context, self._half, self._turn = graph.context, precision != "fp32", 0
        policy = hg_policy()
        if _function("hg_policy_parse", _i32, _text, _ptr)(
            str(precision).encode(), ct.addressof(policy)
        ):
            raise TypeError(f"precision={precision!r}, expected fp16 or fp32")
        policy.loss_scale.enabled = policy.replan = 0
        self._name = model.encode()
        config = _function("hg_model_config_default", hg_model_config, _text)(self._name)
        config.in_features, config.out_features = in_features, out_features
        config.dropout = config.attention_dropout = 0.0
        for name, value in options.items():
            if name not in _options(hg_model_config) or "dropout" in name:
                raise TypeError(f"no option {name!r}")
            setattr(config, name, _WORDS[name][value] if isinstance(value, str) else value)
        self._keeps = [graph._owned]
        self._params = self._make("hg_params_create", self.context.pointer, ct.byref(policy))
        self._model = self._make("hg_model_create", self._params, ct.byref(config))
        self._tape = self._make("hg_tape_create", self._params, _i32(0))
        self._record(graph, in_features, out_features)

    def _make(self, name, *arguments):
        out = _ptr()
        _call(name, self.context.pointer, *arguments, ct.byref(out))
        self._keeps.append(_Owned(out.value, name.replace("_create", "_free"), *self._keeps[-1:]))
        return self._keeps[-1].pointer

    def _record(self, graph, columns, logits):
        zeros = np.zeros((graph.nodes, columns), np.float16 if self._half else np.float32)
        self._x = Tensor.of(self.context, zeros)
        self._given = Tensor.of(self.context, np.zeros((graph.nodes, logits), np.float32))
        self._keeps[-1]._keeps += (self._x, self._given, graph)
        variable = _function("hg_tape_variable", _Var, _ptr, _ptr, _text)
        record = _function("hg_model_record_on", _Var, _ptr, _ptr, _ptr, _Var)
        given = _function("hg_tape_input", _Var, _ptr, _ptr, _text, _f64)
        self._x_var = variable(self._tape, self._x.pointer, b"x")
        self._y = record(self._model, self._tape, graph.pointer, self._x_var)
        _function("hg_tape_keep", None, _ptr, _Var)(self._tape, self._y)
        gradient = given(self._tape, self._given.pointer, b"gradient from outside", 2.0)
        inner = _function("hg_inner", _Var, _ptr, _Var, _Var)
        loss = inner(self._tape, self._y, gradient)
        _call("hg_tape_compile", self.context.pointer, self._tape, loss)

    def _parameters(self):
        count = _function("hg_params_count", _i64, _ptr)(self._params)
        at = _function("hg_params_at", _ptr, _ptr, _i64)
        gradient = _function("hg_param_grad", _ptr, _ptr)
        name = _function("hg_param_name", _text, _ptr)
        rows = [_ptr(at(self._params, k)) for k in range(count)]
        return {name(row).decode(): row for row in rows if gradient(row)}

    def parameters(self):
        """{name: Copy} of the float32 weights."""
        master = _function("hg_param_master", _ptr, _ptr)
        found = self._parameters()
        return {k: Copy(self.context, _ptr(master(row)), np.float32) for k, row in found.items()}

    def set(self, values):
        """Overwrites weights: {name: array or tensor}."""
        shape_of = _function("hg_param_master", _ptr, _ptr)
        for name, row in self._parameters().items():
            if name not in values:
                continue
            value = values[name]
            value = value.detach().float().cpu().numpy() if hasattr(value, "detach") else value
            value = _host(value, np.float32, name)
            shape = Tensor(self.context, shape_of(row)).shape
            if value.shape != shape:
                raise Error("HG_ERR_SHAPE", f"{name} is {value.shape}, expected {shape}")
            _call("hg_param_set", self.context.pointer, row, _ptr(value.ctypes.data))

    def forward(self, x):
        """The logits, float32, of features in any float type."""
        _write(self._x, x)
        self._turn += 1
        _call("hg_tape_forward", self.context.pointer, self._tape)
        value = _function("hg_tape_value", _ptr, _ptr, _Var)(self._tape, self._y)
        return Copy(self.context, _ptr(value), np.float32)

    def backward(self, gradient):
        """(gradient of x, {name: gradient of a weight}, scale), float32, of the last forward."""
        largest = float(abs(gradient).max()) if self._half else 0.0
        usable = 0.0 < largest < np.inf
        scale = float(2.0 ** -np.floor(np.log2(largest))) if usable else 1.0
        _write(self._given, gradient * scale if scale != 1.0 else gradient)
        _call("hg_tape_backward", self.context.pointer, self._tape)
        x = _function("hg_tape_grad", _ptr, _ptr, _Var)(self._tape, self._x_var)
        of = _function("hg_param_grad", _ptr, _ptr)
        found = {k: _ptr(of(row)) for k, row in self._parameters().items()}
        gradients = {k: Copy(self.context, at, np.float32) for k, at in found.items()}
        return Copy(self.context, _ptr(x), np.float32), gradients, scale

    def module(self):
        """A torch.nn.Module of this model. Its parameters are PyTorch's, and named as here with
        "_" in place of "."."""
        import torch

        outer, names = self, list(self._parameters())

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(state, x, *weights):
                outer.set(dict(zip(names, weights)))
                y = torch.from_dlpack(outer.forward(x))
                state.turn, state.dtype = outer._turn, x.dtype
                return y.to(x.dtype)

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(state, gradient):
                if state.turn != outer._turn:
                    raise RuntimeError("the model has run forward again since: one backward each")
                outer._turn += 1
                dx, found, scale = outer.backward(gradient.float())
                dx = torch.from_dlpack(dx) / scale
                return dx.to(state.dtype), *(torch.from_dlpack(found[k]) / scale for k in names)

        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                for name, value in outer.parameters().items():
                    value = torch.nn.Parameter(torch.from_dlpack(value))
                    self.register_parameter(name.replace(".", "_"), value)

            def forward(self, x):
                return Function.apply(x, *(getattr(self, k.replace(".", "_")) for k in names))

        return Module()


def _dict(struct):
    """The fields of a struct as Python values."""
    out = {}
    for name in _fields(type(struct)):
        value = getattr(struct, name)
        if isinstance(value, ct.Structure):
            value = _dict(value)
        out[name] = value.decode() if isinstance(value, bytes) else value
    return out
