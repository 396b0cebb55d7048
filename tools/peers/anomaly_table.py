#!/usr/bin/env python3
"""A table of planted faults by cause, from the lines of anomaly.py and the output of the test
`test_faults`.

    test_faults > faults.txt
    python3 tools/peers/anomaly.py --device cuda --json anomaly.jsonl
    python3 tools/peers/anomaly_table.py anomaly.jsonl faults.txt [--all | --into README.md]

PyTorch is counted where the fault exists there as well and happens. "op": the anomaly mode shows
the forward call of the faulty op and layer, or an exception names the value. "another op": it shows
another one. "loss": only the loss is not finite. "skipped": only the scaler lowered its scale.
--all: a row for each fault. --into: put the table between the two marker lines of a file.
"""

import argparse
import json
import re

from anomaly import faults

SAYS = (
    ("op", "op"),
    ("other", "another op"),
    ("loss", "loss only"),
    ("skipped", "step skipped"),
    ("nothing", "nothing"),
)
CAUSE = {
    "INPUT": "input already bad",
    "ACCUMULATION": "overflow of a partial sum",
    "STORE": "overflow at the store",
    "LOSS_SCALE": "loss scale too high",
    "EXPLOSION": "gradient explosion",
    "UNDERFLOW": "underflow to zero",
    "SWAMPING": "swamping",
    "ZERO": "division, log or root of zero",
    "OPTIMISER": "optimiser",
}


def doctor(path):
    """id -> (whether hg-doctor was right, what it reported)"""
    line = re.compile(r"^(named|MISSED) +(\w+) +[\w-]+ +(.*)$")
    with open(path) as f:
        found = [m.groups() for m in map(line.match, f) if m]
    return {name: (word == "named", text) for word, name, text in found}


BEGIN, END = "<!-- faults: begin -->\n", "<!-- faults: end -->"


def row(cells):
    return "| " + " | ".join(str(c) for c in cells) + " |\n"


def counts(rows, named):
    """Counts: planted, named by the doctor, existing in PyTorch, and what it reports of those."""
    there = [t for _, t in rows if "says" in t and t.get("happened") is not False]
    return [len(rows), sum(named.get(f["id"], (False, ""))[0] for f, _ in rows), len(there)] + [
        sum(t["says"] == key for t in there) for key, _ in SAYS
    ]


def by_cause(lines, named):
    says = ["detect_anomaly: " + text if i < 2 else text for i, (_, text) in enumerate(SAYS)]
    out = row(
        ["cause", "planted", "hg-doctor: op, layer, element and cause", "happen in PyTorch"] + says
    ) + row(["---"] * (4 + len(SAYS)))
    total = None
    for key, text in CAUSE.items():
        rows = [(f, lines.get(f["id"], {})) for f in faults() if f["cause"] == key]
        cells = counts(rows, named)
        total = cells if total is None else [a + b for a, b in zip(total, cells)]
        out += row([text] + cells)
    return out + row(["all"] + total)


def every(lines, named):
    out = row(["fault", "what", "hg-doctor", "detect_anomaly", "loss", "scaler"]) + row(["---"] * 6)
    for f in faults():
        t = lines.get(f["id"], {})
        anomaly, loss = t.get("anomaly"), t.get("loss") or []
        says = (
            t.get("error")
            or (
                anomaly
                and "%s in %s"
                % (anomaly["function"], "/".join(filter(None, (anomaly["layer"], anomaly["op"]))))
            )
            or "nothing"
        )
        if "absent" in t or t.get("happened") is False:
            says = "does not exist there" if "absent" in t else "does not happen there"
        right, text = named.get(f["id"], (False, "not run"))
        out += row(
            [
                f["id"],
                f["what"],
                text if right else "MISSED: " + text,
                says,
                next((x for x in loss if not isinstance(x, float)), "finite"),
                "skipped" if t.get("skipped") else "-",
            ]
        )
    return out


def put(path, text):
    with open(path) as f:
        before, _, rest = f.read().partition(BEGIN)
    _, _, after = rest.partition(END)
    with open(path, "w") as f:
        f.write(before + BEGIN + text + END + after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("anomaly")
    parser.add_argument("doctor")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--into")
    args = parser.parse_args()
    with open(args.anomaly) as f:
        lines = {x["id"]: x for x in map(json.loads, f)}
    text = (every if args.all else by_cause)(
        lines, doctor(args.doctor)
    ) + "\n(PyTorch %s)\n" % next((x["torch"] for x in lines.values()), "")
    if args.into:
        put(args.into, text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
