"""Whether the faster of two ways to compile a model is the one that was predicted, as a table:
bench/what_if_agreement.py [--pyc build/dev/pyc] [--models ../shared/models] [--scenarios 50] [--rounds 2].
A scenario is a model and another choice beside the usual one: no fusion, no tiles for products, no layouts. Predicted are the costs of the
chosen kernels, as `pyc what-if` has them; measured is the least median of `pyc bench`, one thread, the choices in turn. None of these
models was used to fit the costs, which come from single kernels.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHOICES = {"usual": [], "no fusion": ["--no-fuse"], "no tiles": ["--exclude", "f32_matmul"], "no layouts": ["--no-layouts"]}
TIE = 0.03  # less is within what the machine does by itself


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["failed"])[-1])
    return done.stdout


def predicted_us(pyc, model, flags):
    total = 0.0
    for decision in json.loads(call(pyc, "run", model, "--json", "--threads", 1, *flags))["log"]["decisions"]:
        if decision["what"].startswith("kernel:"):
            total += next(a["cost_ns"] for a in decision["alternatives"] if a["name"] == decision["chosen"])
    return total / 1e3


def measured_us(pyc, model, flags):
    return float(re.search(r"latency p50 ([\d.]+) us", call(pyc, "bench", model, "--threads", 1, *flags)).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyc", default=str(ROOT / "build/dev/pyc"))
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--scenarios", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    files = sorted((ROOT / "tests/models").glob("*.ir")) + sorted(given.models.glob("real/*/*.onnx"))
    print("| model | choice | predicted, usual | other | measured, usual | other | agree |\n|---|---|---|---|---|---|---|")
    count = agreed = near = 0
    for model in files:
        title = model.stem if model.suffix == ".ir" else model.parent.name
        try:
            guesses = {name: predicted_us(given.pyc, model, flags) for name, flags in CHOICES.items()}
        except (ValueError, KeyError, StopIteration, subprocess.TimeoutExpired):
            continue  # not one program
        differing = [name for name in CHOICES if guesses[name] != guesses["usual"]]
        if not differing or count >= given.scenarios:
            continue
        times = {name: [] for name in ["usual", *differing]}
        for _ in range(given.rounds):
            for name, taken in times.items():
                taken.append(measured_us(given.pyc, model, CHOICES[name]))
        for name in differing[: given.scenarios - count]:
            seen, other = min(times["usual"]), min(times[name])
            tie = abs(seen - other) <= TIE * seen
            same = (guesses["usual"] < guesses[name]) == (seen < other)
            count, agreed, near = count + 1, agreed + same, near + (tie and not same)
            verdict = "yes" if same else "tie" if tie else "no"
            print(f"| {title} | {name} | {guesses['usual']:.1f} | {guesses[name]:.1f} | {seen:.1f} | {other:.1f} | {verdict} |", flush=True)
    print(f"\n{agreed} of {count} agree, {near} more are within {TIE:.0%} of each other.")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
