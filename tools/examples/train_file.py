"""Train a GCN in fp16 on a dataset: train_file.py FILE.h5"""

import sys

import halfgraph as hg

data = hg.Dataset.read(sys.argv[1])  # or Dataset.load: npz, edge lists, Matrix Market, ...
run = hg.Train(data, "gcn", precision="fp16", epochs=200, seed=1)
report = run.fit()
classes, logits = run.predict()
print(f"test accuracy {100 * report['test_accuracy']:.1f} %, best epoch {report['best_epoch']}")
print(f"{(classes == data.label).mean():.3f} of all nodes are right")
