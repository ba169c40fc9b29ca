"""Whether what `pyc what-if` says is what is measured, as a table:
bench/what_if_agreement.py [--pyc build/release/pyc] [--models ../shared/models] [--scenarios 50] [--rounds 3] [--seconds 170].
A scenario is a model and other options beside the usual ones (two threads, all else as it comes): one thread, no tiles for products, half of the
peak and the smallest memory budget, memory_first. Those whose plan and kernels are those of the usual options are left out, since they are the same program.

The rule. What-if calls a scenario faster, slower or even beside the usual options: even within 5 % as predicted. Measured times within 3 % are even. Both must say
the same; a wrong "even" is as wrong as a wrong winner. Measured is the least median of several rounds in which the options take turns.
Costs were fitted to single kernels and tests/models; the models here are none of these: trained ones and skeletons.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EVEN = 0.03


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["failed"])[-1])
    return done.stdout


def title(row):
    if row["without"]:
        return "no tiles"
    if row["budget"] != "none":
        return f"budget {row['budget']}"
    return f"{row['threads']} threads" if row["threads"] != 2 else row["mode"]


def flags(row):
    options = ["--threads", row["threads"], "--mode", row["mode"], "--memory-budget", row["budget_bytes"]]
    return options + (["--exclude", row["without"]] if row["without"] else [])


def chosen(rows):
    """The usual options and those to hold against them; times that are equal to the last digit are of one program."""
    usual, others = rows[0], []
    for row in rows[1:]:
        balanced = row["mode"] == "balanced" and row["budget"] in ("none", "50 %", "smallest")
        if "refused" in row or not (balanced or (row["mode"] == "memory_first" and row["budget"] == "none")):
            continue
        if (row["predicted"]["run_us"], row["predicted"]["arena_bytes"]) != (usual["predicted"]["run_us"], usual["predicted"]["arena_bytes"]):
            others.append(row)
    return usual, others


def median_us(pyc, model, row, seconds):
    text = call(pyc, "bench", model, *flags(row), "--seconds", seconds, "--warmup", 1)
    return float(re.search(r"latency p50 ([\d.]+) us", text).group(1))


def against(time_us, usual_us):
    if abs(time_us - usual_us) <= EVEN * max(time_us, usual_us):
        return "even"
    return "faster" if time_us < usual_us else "slower"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyc", default=str(ROOT / "build/release/pyc"))
    parser.add_argument("--models", type=Path, nargs="+", default=[ROOT.parent / "shared/models/real"], help="folders of .onnx files")
    parser.add_argument("--scenarios", type=int, default=50)
    parser.add_argument("--skip", type=int, default=0, help="models to leave out, the first by name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run-seconds", type=float, default=0.15)
    parser.add_argument("--seconds", type=float, default=170, help="no model is begun after so many")
    given = parser.parse_args()
    begin = time.monotonic()
    files = [file for folder in given.models for file in sorted(folder.rglob("*.onnx"))][given.skip:]
    print("| model | options | predicted, usual | these | says | measured, usual | these | says | agree |\n|---|---|---|---|---|---|---|---|---|")
    count = agreed = seen_files = 0
    for model in files:
        if time.monotonic() - begin > given.seconds or count >= given.scenarios:
            break
        seen_files += 1
        name = model.parent.name if model.stem == "model" else model.stem
        try:
            usual, others = chosen(json.loads(call(given.pyc, "what-if", model, "--threads", 2, "--json"))["scenarios"])
            times = [[] for _ in range(1 + len(others))]
            for _ in range(given.rounds if others else 0):
                for row, taken in zip([usual, *others], times):
                    taken.append(median_us(given.pyc, model, row, given.run_seconds))
        except (ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as error:
            print(f"| {name} | left out: {str(error)[:80]} |", flush=True)
            continue
        for row, taken in list(zip(others, times[1:]))[: given.scenarios - count]:
            says, is_so = row["predicted"]["against_first"], against(min(taken), min(times[0]))
            count, agreed = count + 1, agreed + (says == is_so)
            print(f"| {name} | {title(row)} | {usual['predicted']['run_us']:.1f} | {row['predicted']['run_us']:.1f} | {says} "
                  f"| {min(times[0]):.1f} | {min(taken):.1f} | {is_so} | {'yes' if says == is_so else 'no'} |", flush=True)
    print(f"\n{agreed} of {count} agree; {seen_files} models after {given.skip}.")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
