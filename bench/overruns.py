"""Runs under memory budgets, held against what the allocator handed out: bench/overruns.py [--pyc build/dev/pyc] [--threads 2].
Each of tests/models runs for a second (`pyc bench`) at its whole peak, at its smallest budget and half way between. A line a budget: model,
budget, runs, planned peak, planned for a run, handed out. Exits 1 where a peak is over its budget or a byte differs."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def text_of(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    return done.stdout + done.stderr


def number(pattern, text):
    return int(re.search(pattern, text, re.M).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pyc", default=str(ROOT / "build/dev/pyc"))
    parser.add_argument("--threads", default="2")
    given = parser.parse_args()
    total = overruns = 0
    for model in sorted((ROOT / "tests/models").glob("*.ir")):
        most = number(r"^  peak (\d+)", text_of(given.pyc, "dump", model, "--stage", "plan", "--threads", given.threads))
        least = number(r"smallest budget for this plan is (\d+)", text_of(given.pyc, "run", model, "--threads", given.threads, "--memory-budget", 1))
        for budget in sorted({most, (most + least) // 2, least}, reverse=True):
            said = text_of(given.pyc, "bench", model, "--threads", given.threads, "--memory-budget", budget)
            runs = number(r"\((\d+) runs\)", said)
            found = re.search(r"planned (\d+) B, of it for a run (\d+) B; the allocator handed out (\d+) B", said)
            peak, planned, handed = map(int, found.groups())
            total, overruns = total + runs, overruns + (peak > budget or planned != handed)
            print(model.name, budget, runs, peak, planned, handed, flush=True)
    print(f"runs {total} overruns {overruns}")
    return 1 if overruns or not total else 0


if __name__ == "__main__":
    sys.exit(main())
