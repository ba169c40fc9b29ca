#!/usr/bin/env python3
"""join.py OUT RESULT.json...: results of several short runs on one machine as one, in OUT.json, OUT.md and OUT.svg.

Rows of the same model, threads and engines become one: the pairs of each run are groups of their own, as other processes took
them. What a pair was dropped for was decided in its own run. The stamps are those of the first run; the page names all runs, also
those of a RESULT that was joined before (give it first, since the others are described by how they differ from the first).
"""

import json
import sys
from pathlib import Path

import chart
import machine
import report


def joined_row(rows, mode, limit):
    """One row of several of the same model, threads and engines; those without a kept pair only add tries."""
    measured = [row for row in rows if "tries" in row]
    if len(measured) < 2:
        return (measured or rows)[0]
    kept = [row for row in measured if row["kept"]]
    dropped = {}
    for row in measured:
        for reason, count in row["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + count
    out = {**(kept or measured)[0], "tries": sum(row["tries"] for row in measured), "kept": sum(row["kept"] for row in kept),
           "dropped": dropped, "difference": max(row["difference"] for row in measured)}
    if not kept:
        return out
    for time in ("a_ms", "b_ms"):
        out[time] = sum(row[time] * row["kept"] for row in kept) / out["kept"]
    return report.judged(out, [group for row in kept for group in row["ratios"]], mode, limit)


def said_of(document, first):
    """A run in one line: what it measured, and which settings the first one does not have."""
    what = ", ".join(f"{model} ({'/'.join(sorted(threads))})" for model, threads in models_of(document).items())
    others = [f"{name} {value}" for name, value in document["settings"].items() if value != first["settings"].get(name)]
    return (f"{document['date']}, commit {document['commit']}, load {document['load_average']:.1f}: {what}"
            + (f"; {', '.join(others)}" if others else ""))


def models_of(document):
    """The numbers of threads by model."""
    found = {}
    for row in document["rows"]:
        found.setdefault(row["model"], set()).add(str(row["threads"]))
    return found


def join(documents):
    first = documents[0]
    for document in documents[1:]:
        if document["mode"] != first["mode"] or machine.signature(document["machine"]) != machine.signature(first["machine"]):
            raise ValueError("results of different modes or machines")
    groups = {}
    for document in documents:
        for row in document["rows"]:
            groups.setdefault((row["model"], row["threads"], row["a"], row["b"]), []).append(row)
    mode, limit = first["mode"], first["settings"]["limit"]
    rows = [joined_row(groups[key], mode, limit) for key in sorted(groups, key=lambda key: (key[1], key[0], key[3]))]
    versions = {}
    for document in documents:
        for label, facts in document["engines"].items():
            versions.setdefault(label, {})[facts["version"]] = None  # in their order, each once
    runs = [line for document in documents for line in document.get("runs") or [said_of(document, first)]]
    return {**first, "commit": ", ".join(dict.fromkeys(document["commit"] for document in documents)),
            "engines": {label: {"version": ", ".join(names)} for label, names in versions.items()},
            "runs": runs, "rows": rows, "means": report.means_of(rows, mode, limit)}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    document = join([json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[2:]])
    for suffix, text in ((".json", json.dumps(document, indent=1, ensure_ascii=False) + "\n"), (".md", report.markdown(document)),
                         (".svg", chart.svg(document))):
        Path(f"{sys.argv[1]}{suffix}").write_text(text, encoding="utf-8")
    wrong = report.problems(document)
    sys.exit("\n".join(f"error: {text}" for text in wrong) or 0)


if __name__ == "__main__":
    main()
