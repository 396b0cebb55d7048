"""What the peers' scripts share: options of a run, lists of names and of numbers, the machine, and
results as JSON lines.
"""

import json

import torch


def run_options(parser, device="cuda"):
    """The options of where a script runs and where its results go."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", choices=["cpu", "cuda"], default=device)
    parser.add_argument(
        "--json", default="-", help="append the lines to this file; - (default): stdout"
    )


def machine_of(args):
    """The name of the device, and its CPU threads where it is one."""
    return (
        torch.cuda.get_device_name() if args.device == "cuda" else f"CPU ({args.threads} threads)"
    )


def chosen(parser, option, text, known):
    """The names in a list with commas, or all that are known."""
    names = list(known) if text == "all" else text.split(",")
    for name in names:
        if name not in known:
            parser.error(f'{option}: "{name}" is not one of {", ".join(known)}, or all')
    return names


def counts(text):
    return [int(part) for part in text.split(",")]


def emit(args, row):
    """Appends a result to the file of --json, or prints it."""
    line = json.dumps(row) + "\n"
    if args.json == "-":
        print(line, end="", flush=True)
    else:
        with open(args.json, "a", encoding="utf-8") as file:
            file.write(line)
