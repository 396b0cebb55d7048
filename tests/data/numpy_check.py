"""Compare an exported small dataset with what numpy loads, and save it as numpy saves.

    numpy_check.py IN.npz STORED.npz DEFLATED.npz
"""
import sys

import numpy as np

with np.load(sys.argv[1], allow_pickle=False) as z:
    a = {key: z[key] for key in z.files}
assert bytes(a["name"]).decode() == "small" and a["halfgraph"] == 1 and a["num_classes"] == 3
assert a["adj_indices"].tolist() == [1, 2, 0, 2, 3, 0, 1, 1, 4, 3, 4]
assert a["adj_indptr"].dtype == np.int64 and a["adj_data"].dtype == np.float32
assert a["attr_matrix"].dtype == np.float16 and a["attr_matrix"].shape == (6, 3)
assert a["attr_matrix"].flags.c_contiguous and a["attr_matrix"][4, 1] == -65504
names = bytes(a["node_names"]).split(b"\0")[:-1]
assert len(names) == 6 and names[2] == b'b, "c"' and names[5] == b"last"
assert a["orig_id"][5] == 2**40 and a["labels"].tolist() == [0, 1, 2, -1, 1, 0]
assert a["target"].shape == (6, 2) and np.isnan(a["target"][2, 0])
assert a["train_idx"].tolist() == [0, 1] and a["test_idx"].tolist() == [4, 5]
np.savez(sys.argv[2], **a)
a["attr_matrix"] = np.asfortranarray(a["attr_matrix"]).astype(">f2")
a["labels"] = a["labels"].astype(np.int64)
np.savez_compressed(sys.argv[3], **a)
