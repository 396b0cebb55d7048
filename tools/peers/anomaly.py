#!/usr/bin/env python3
"""What PyTorch reports for the faults of tests/faults/faults.def: its anomaly mode, its gradient
scaler, and the loss.

    python3 tools/peers/anomaly.py --device cuda --json anomaly.jsonl    all faults; --only ID...
    python3 tools/peers/anomaly_table.py anomaly.jsonl faults.txt        a table of the results;
        faults.txt is the output of `test_faults`

Each fault is planted by the same mathematics (anomaly_faults.py) and trained for two steps, once
normally and once under torch.autograd.set_detect_anomaly(True). Each fault gives a line of JSON:

    happened   the fault exists: the faulty op had a bad result (torch may compute it in another
               way); null if the fault is in an input or in the optimiser
    anomaly    what the anomaly mode named: the backward function, and the op and layer whose
               forward call it showed; null if nothing
    error      an exception of another kind
    loss       of both steps, as a user sees it
    skipped    the scaler skipped a step
    says       the best of these: "op" (the faulty op, or an exception that names the cause),
               "other" (another op), "loss" (not finite), "skipped", "nothing"
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import warnings

import torch

from anomaly_faults import ABSENT, PLANT
from anomaly_ops import trace
from anomaly_world import World

HERE = os.path.dirname(os.path.abspath(__file__))
ROW = re.compile(
    r'^FAULT\((\w+),\s+(\w+),\s+"(\w+)",\s+"(\w*)",\s+"(\w*)",\s+(\w+),\s+\w+,\s+' r'"([^"]*)"\)',
    re.M,
)
ATTENTION_ROW = re.compile(
    r'^ATTENTION_FAULT\((\w+),\s+(\w+),\s+"(\w*)",\s+\S+,\s+"(\w+)",\s+(\w+),\s+\w+,\s+'
    r'"([^"]*)"\)',
    re.M,
)
APART = ("input_label_gcn", "input_label_gin_graph")  # on a GPU these end the process


def faults(path=os.path.join(HERE, "../../tests/faults/faults.def")):
    keys = ("id", "cause", "model", "layer", "op", "direction", "what")
    with open(path) as f:
        text = f.read()
    rows = [
        *ROW.finditer(text),
        *ATTENTION_ROW.finditer(text),  # PyTorch has the separate ops
    ]
    rows.sort(key=lambda row: row.start())
    return [
        dict(
            zip(
                keys,
                row.groups()
                if row.re is ROW
                else (row[1], row[2], "gat", *row.groups()[2:]),
            )
        )
        for row in rows
    ]


def number(x):
    return x if math.isfinite(x) else str(x)


def silent(fault, world, call):
    """Did a sum stop growing, or did a result become zero?"""
    layer, op, operands, result = call
    tensors = (
        [result]
        if fault["direction"] == "FORWARD"
        else [x.grad for x in operands if x.grad is not None]
    )
    if fault["cause"] == "UNDERFLOW":
        return any(t.count_nonzero().item() == 0 for t in tensors)
    row, col, exact = world.expect
    return any(
        t.dim() == 2
        and t.shape[0] > row
        and t.shape[1] > col
        and abs(abs(t[row, col].item()) - abs(exact)) > 0.3 * abs(exact)
        for t in tensors[:1]
    )


def happened(fault, world):
    if not fault["op"]:
        return None
    for call in trace.calls:
        layer, op, operands, result = call
        if (layer, op) != (fault["layer"], fault["op"]):
            continue
        if fault["cause"] in ("UNDERFLOW", "SWAMPING"):
            return silent(fault, world, call)
        tensors = (
            [result]
            if fault["direction"] == "FORWARD"
            else [x.grad for x in operands if x.grad is not None]
        )
        if any(not torch.isfinite(t).all() for t in tensors):
            return True
    return False


class Run:
    """Two steps of a fault."""

    def __init__(self, fault, device, anomaly):
        self.losses, self.skipped, self.named, self.error, self.happened = (
            [],
            False,
            None,
            None,
            None,
        )
        plant, name = PLANT[fault["id"]]
        world = World(1, device)
        plant(world, name)
        optim = world.optim(list(world.params.values()))
        scaler = torch.amp.GradScaler(
            device, init_scale=world.scale, enabled=world.dtype == torch.half
        )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                with torch.autograd.set_detect_anomaly(anomaly):
                    for step in range(2):
                        self.step(fault, world, optim, scaler, step)
            except (RuntimeError, IndexError) as e:
                self.explain(e, said)

    def step(self, fault, world, optim, scaler, step):
        trace.calls.clear()
        trace.layer = ""
        optim.zero_grad(set_to_none=True)
        loss = world.loss()
        self.losses.append(number(float(loss.detach())))
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        if step == 0:
            self.happened = happened(fault, world)
        scaler.step(optim)
        scaler.update()
        self.skipped |= scaler.get_scale() < before

    def explain(self, e, said):
        """Handle the error "Function 'MulBackward0' returned nan values in its 0th output."; the
        warning before it has the traceback of the forward call.
        """
        text = str(e).split("\n")[0]
        named = re.search(r"Function '(\w+)' returned nan", text)
        if not named:
            self.error = "%s: %s" % (type(e).__name__, text)
            return
        shown = [str(w.message) for w in said if "Traceback of forward call" in str(w.message)]
        op = re.findall(r'anomaly_ops\.py", line \d+, in (\w+)', shown[-1]) if shown else []
        layer = (
            re.findall(r'anomaly_world\.py", line \d+, in (conv\d|head)\n', shown[-1])
            if shown
            else []
        )
        self.named = {
            "function": named.group(1),
            "op": op[-1] if op else None,
            "layer": layer[-1] if layer else None,
        }


def says(fault, plain, watched):
    if watched.error or plain.error:
        return "op"  # an exception that names the cause
    if watched.named:
        same = (
            fault["op"]
            and watched.named["op"] == fault["op"]
            and watched.named["layer"] in (fault["layer"], None)
        )
        return "op" if same else "other"
    if any(not isinstance(x, float) for x in plain.losses):
        return "loss"
    return "skipped" if plain.skipped else "nothing"


def measure(fault, device):
    plain, watched = Run(fault, device, False), Run(fault, device, True)
    return {
        "happened": plain.happened,
        "loss": plain.losses,
        "skipped": plain.skipped,
        "anomaly": watched.named,
        "error": plain.error or watched.error,
        "says": says(fault, plain, watched),
    }


def apart(fault, args):
    done = subprocess.run(
        [sys.executable, __file__, "--device", args.device, "--only", fault["id"], "--inside"],
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return json.loads(done.stdout)
    lines = [x for x in done.stderr.split("\n") if "Error" in x or "Assert" in x or "assert" in x]
    return {
        "id": fault["id"],
        "says": "other",
        "error": (lines or ["the process ended"])[-1][:200],
        "happened": None,
        "loss": [],
        "skipped": False,
        "anomaly": None,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json")
    parser.add_argument(
        "--inside", action="store_true", help="run in this process even if the fault ends it"
    )
    args = parser.parse_args()
    out = open(args.json, "w") if args.json else sys.stdout
    version = "%s, %s" % (
        torch.__version__,
        torch.cuda.get_device_name() if args.device == "cuda" else "CPU",
    )
    for fault in faults():
        if args.only and fault["id"] not in args.only:
            continue
        line = {"id": fault["id"], "cause": fault["cause"], "torch": version}
        if fault["id"] in ABSENT:
            line["absent"] = ABSENT[fault["id"]]
        elif fault["id"] in APART and args.device == "cuda" and not args.inside:
            line.update(apart(fault, args))
        else:
            line.update(measure(fault, args.device))
        print(json.dumps(line), file=out, flush=True)


if __name__ == "__main__":
    main()
