#!/usr/bin/env python3
"""check_baseline.py RESULT.json BASELINE.json: whether PyC became faster, slower, stayed the same or nobody can tell, per model, thread count and rival.

Compared are the ratios to the rival, which both runs took side by side with it: their quotient with its 95 % interval. Another
machine, another version of the rival, too few pairs or an interval too wide are inconclusive, never passed. Exits 1 when
something is slower, 2 when something is inconclusive, 0 when all is the same or faster.
"""

import json
import sys
from pathlib import Path

import machine
import report
from intervals import MINIMUM_PAIRS, classify, quotient_of

TOLERANCE = 0.05


def _key(row):
    return row["model"], row["threads"], row["b"]


def compare_row(now, before):
    """A verdict and its reason, of a row and the baseline's."""
    for row, whose in ((now, "result"), (before, "baseline")):
        if row is None:
            return "inconclusive", f"not in the {whose}"
        if "error" in row:
            return "inconclusive", f"{row['verdict']} in the {whose}"
        if row["kept"] < MINIMUM_PAIRS:
            return "inconclusive", f"{row['kept']} pairs in the {whose}, {MINIMUM_PAIRS} needed"
    theirs, ours = before["facts"][before["b"]]["version"], now["facts"][now["b"]]["version"]
    if theirs != ours:
        return "inconclusive", f"{now['b']} was {theirs}, is {ours}"
    estimate = quotient_of(now["ratios"], before["ratios"])
    return classify(estimate, TOLERANCE), f"{estimate.median:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def compare(result, baseline):
    """(model, threads, rival), verdict and reason for every row of both documents."""
    here, there = (machine.signature(document["machine"]) for document in (result, baseline))
    now, before = ({_key(row): row for row in document["rows"]} for document in (result, baseline))
    for key in dict.fromkeys([*before, *now]):
        if here != there:
            yield key, "inconclusive", f"measured on {here}, the baseline on {there}"
        else:
            yield key, *compare_row(now.get(key), before.get(key))


def check(result, baseline):
    """Prints the verdicts and returns the exit code."""
    for document, name in ((result, "result"), (baseline, "baseline")):
        wrong = report.problems(document)
        if document.get("mode") != "rivals":
            wrong.append("only results beside rivals are compared with a baseline")
        if wrong:
            print(f"error: {name}: {wrong[0]}", file=sys.stderr)
            return 1
    counts = {}
    for (model, threads, rival), verdict, reason in compare(result, baseline):
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{verdict:12}  {model}, {threads} threads, beside {rival}: {reason}")
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if "slower" in counts:
        return 1
    return 2 if "inconclusive" in counts or not counts else 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    return check(*(json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
