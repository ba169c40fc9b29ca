"""What --trace costs a run, by the clock: trace_cost.py PYC MODEL... runs each model traced and not, in turn.

A turn is a process that compiles the model and runs it often; its time is the median of its runs.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TURNS = 11


def median_us(pyc, model, repeat, *more):
    command = [pyc, "run", model, "--threads", "1", "--repeat", str(repeat), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["run_us"]


def main():
    pyc, *models = sys.argv[1:]
    print(f"| model | not traced us | traced us | median ratio of {TURNS} turns | least–most |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        trace = ("--trace", f"{folder}/t.json")
        for model in models:
            repeat = max(10, min(3000, int(3e5 / median_us(pyc, model, 3))))
            plain, traced = [], []
            for turn in range(TURNS):
                for with_trace in (turn % 2 == 0, turn % 2 != 0):
                    (traced if with_trace else plain).append(median_us(pyc, model, repeat, *(trace if with_trace else ())))
            ratios = sorted(a / b for a, b in zip(traced, plain))
            name = Path(model).name if Path(model).stem != "model" else Path(model).parent.name
            print(f"| `{name}` | {statistics.median(plain):.2f} | {statistics.median(traced):.2f} | {statistics.median(ratios):.4f} | {ratios[0]:.4f}–{ratios[-1]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
