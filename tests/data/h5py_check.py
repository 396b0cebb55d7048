"""Compare the test's small dataset with what h5py reads, and write it as h5py writes.

    h5py_check.py IN.h5 OUT.h5
"""
import json
import sys

import h5py
import numpy as np

with h5py.File(sys.argv[1]) as f:
    descriptor = json.loads(f["graph"].attrs["binsparse"])["binsparse"]
    assert descriptor["format"] == "CSR" and descriptor["shape"] == [6, 6]
    assert descriptor["number_of_stored_values"] == 11
    assert f["nodes/feat"].dtype == np.dtype("<f2") and f["nodes/feat"].shape == (6, 3)
    assert f["nodes/feat"][4, 1] == -65504 and f["nodes/feat"].attrs["amax"] == 65504
    assert f["graph/indices_1"][:].tolist() == [1, 2, 0, 2, 3, 0, 1, 1, 4, 3, 4]
    assert f["nodes/orig_id"][5] == 2**40
    names = bytes(f["nodes/names"]).split(b"\0")[:-1]
    assert len(names) == 6 and names[2] == b'b, "c"' and names[5] == b"last"
    assert f["nodes/target"].dtype == np.dtype("<f4") and f["nodes/target"].shape == (6, 2)
    assert f["edges/feat"].dtype == np.dtype("<f4") and f["edges/feat"].shape == (11, 2)
    assert f["edges/feat"][9, 0] == 65504 and f["edges/feat"][10, 1] == -100
    assert f["edges/label"].dtype == np.dtype("<i4")
    assert f["edges/label"][:].tolist() == [0, 1, 2, 3, -1, 1, 1, 0, 2, 2, 3]
    assert f.attrs["format_version"] == "1.1" and f.attrs["num_edge_classes"] == 5
    assert f.attrs["name"] == "small" and f.attrs["num_classes"] == 3
    with h5py.File(sys.argv[2], "w") as g:
        for key in ("format", "format_version", "name", "num_classes", "num_edge_classes"):
            g.attrs[key] = f.attrs[key]
        g.create_group("graph").attrs["binsparse"] = f["graph"].attrs["binsparse"]
        g["class_names"] = f["class_names"][:]
        for key in ("pointers_to_1", "indices_1", "values"):
            g["graph"][key] = f["graph"][key][:]
        edges = g.create_group("edges")
        edges["feat"] = f["edges/feat"][:].astype("f8")
        edges.create_dataset("label", data=f["edges/label"][:].astype("i1"), chunks=(3,))
        nodes = g.create_group("nodes")
        nodes["feat"] = f["nodes/feat"][:]
        nodes.create_dataset(
            "label", data=f["nodes/label"][:], chunks=(2,), compression="gzip", fletcher32=True
        )
        nodes["target"] = f["nodes/target"][:]
        nodes["target"].attrs["names"] = f["nodes/target"].attrs["names"]
        for key in ("orig_id", "feat_mean", "feat_deviation"):
            nodes[key] = f["nodes"][key][:]
        nodes.create_dataset("names", data=f["nodes/names"][:].astype("i8"), chunks=(7,))
        for key in ("train_mask", "val_mask", "test_mask"):
            nodes[key] = f["nodes"][key][:].astype(bool)
