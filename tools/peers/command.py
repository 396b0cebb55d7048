"""What the peers' scripts share of their command lines: lists of names and of numbers, and results
as JSON lines.
"""

import json


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
