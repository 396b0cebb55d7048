#!/usr/bin/env python3
"""A picture of where the numbers of each fp16 tensor lie in fp16's range, as SVG.

    hg-doctor --data FILE --model gcn --json step.jsonl
    python3 tools/dev/range_chart.py step.jsonl > docs/ranges.svg

Each row is a tensor of the last step: its histogram by powers of two, and its proved or guarded
bound. Standard library only.
"""
import html
import json
import math
import sys

LEFT, WIDTH, ROW, TOP = 360, 560, 21, 56
LOWEST, HIGHEST = -15, 16  # 2^-15 and below are the subnormals; 65504 is just below 2^16
STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #333 }
.title { font: 600 15px system-ui, sans-serif }
.note { font: 12px system-ui, sans-serif; fill: #666 }
.paper { fill: #fff } .grid { stroke: #ddd } .end { stroke: #c0392b; stroke-width: 1.5 }
.bin { fill: #2c6fbb } .bound { stroke: #333; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .note { fill: #aaa } .paper { fill: #161616 } .grid { stroke: #333 }
  .bin { fill: #6ea8e8 } .bound { stroke: #eee } .end { stroke: #ff7d6e }
}"""


def read(path):
    """The fp16 tensors of the last step that has any."""
    step, rows = -1, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if event["event"] != "tensor":
                continue
            if event["step"] != step:
                step, rows = event["step"], []
            if event["dtype"] == "f16":
                rows.append(event)
    if not rows:
        sys.exit(
            f'{path}: expected output of hg-doctor --json, found no "tensor" line of an fp16 tensor'
        )
    return step, rows


def column(power):
    return LEFT + WIDTH * (power - LOWEST) / (HIGHEST - LOWEST + 1)


def text(x, y, words, kind="", anchor="start"):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{html.escape(words)}</text>'


def bars(row, y):
    """One rectangle for each power of two, the darker the more of the tensor's numbers it holds."""
    numbers = sum(row["bins"]) or 1
    out = []
    for k, count in enumerate(row["bins"][:31]):
        if count:
            shade = 0.15 + 0.85 * math.sqrt(count / numbers)
            x, w = column(k - 15), WIDTH / (HIGHEST - LOWEST + 1)
            out.append(f'<rect class="bin" x="{x:.1f}" y="{y + 3:.1f}" width="{w:.1f}" '
                       f'height="{ROW - 6}" opacity="{shade:.2f}"/>')
    return out


def bound(row, y):
    """A tick where the bound on the tensor's numbers is; an arrow where that is beyond fp16."""
    if not isinstance(row["bound"], (int, float)) or row["bound"] <= 0:
        return []
    power = math.log2(row["bound"])
    if power > HIGHEST:
        return [text(column(HIGHEST) + 4, y + 15, "→ watched", "note")]
    x = column(max(power, LOWEST))
    return [f'<path class="bound" d="M{x:.1f} {y + 2}V{y + ROW - 2}"/>']


def chart(step, rows):
    height = TOP + ROW * len(rows) + 46
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1010 {height}" role="img" '
           f'aria-label="Histograms of all fp16 tensors of a training step">',
           f"<style>{STYLE}</style>", f'<rect class="paper" width="1010" height="{height}"/>',
           text(12, 22, f"Every fp16 tensor of step {step}: where its numbers lie, and its bound",
                "title")]
    for power in range(-14, 13, 5):
        x = column(power)
        out.append(f'<path class="grid" d="M{x:.1f} {TOP - 6}V{height - 40}"/>')
        out.append(text(x, TOP - 12, f"2^{power}", "note", "middle"))
    x = column(HIGHEST)
    out.append(f'<path class="end" d="M{x:.1f} {TOP - 6}V{height - 40}"/>')
    out.append(text(x + 4, TOP - 12, "65504", "note"))
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        out.append(text(LEFT - 10, y + 15, row["name"], "", "end"))
        out += bars(row, y) + bound(row, y)
    out.append(text(12, height - 14, "Blue: share of the tensor's numbers in each power of two. "
                    "Tick: no number can be larger, or a guard watches that none is. Gradients "
                    "carry the loss scale.", "note"))
    return "\n".join(out + ["</svg>"])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: range_chart.py STEP.jsonl > CHART.svg")
    print(chart(*read(sys.argv[1])))


if __name__ == "__main__":
    main()
