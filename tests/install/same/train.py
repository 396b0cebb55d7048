"""The same as train.c, from Python: train.py FILE.h5."""

import sys

import halfgraph as hg

data = hg.Dataset.read(sys.argv[1])
report = hg.Train(data, "gcn", device="cpu", seed=7, epochs=30).fit()
print(f"{report['test_accuracy']:.17g} {report['final_loss']:.17g} {report['best_epoch']}")
