"""Whether what `pyc what-if` says is what is measured, in three parts that go on where the last call ended:
bench/what_if_agreement.py prepare FOLDER [--pyc build/release/pyc] [--models ../shared/models/real] [--skip 0] [--scenarios 50] predicts and compiles;
bench/what_if_agreement.py measure FOLDER [--rounds 3] [--seconds 55] runs what is there, with nothing compiled beside it; again until all is measured;
bench/what_if_agreement.py table FOLDER prints the table.
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
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
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
    return [usual, *others]


def load(folder):
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def scenarios(models):
    return sum(max(0, len(model["rows"]) - 1) for model in models)


def prepare(given):
    """A file a model: its rows as predicted, each compiled beside it."""
    given.folder.mkdir(parents=True, exist_ok=True)
    files = [file for folder in given.models for file in sorted(folder.rglob("*.onnx"))][given.skip:]
    for number, model in enumerate(files, given.skip):
        if scenarios(load(given.folder)) >= given.scenarios:
            return
        name = model.parent.name if model.stem == "model" else model.stem
        at = given.folder / f"{number:03}_{name}.json"
        if at.exists():
            continue
        out = {"model": name, "rows": [], "left_out": ""}
        try:
            rows = chosen(json.loads(call(given.pyc, "what-if", model, "--threads", 2, "--json"))["scenarios"])
            for i, row in enumerate(rows):
                row["program"] = f"{at.stem}_{i}.pycm"
                call(given.pyc, "compile", model, *flags(row), "-o", given.folder / row["program"])
            out["rows"] = rows
        except (ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as error:
            out["left_out"] = str(error)[:80]
        at.write_text(json.dumps(out))
        print(name, len(out["rows"]), out["left_out"], flush=True)


def measure(given):
    begin = time.monotonic()
    for file in sorted(given.folder.glob("*.json")):
        model = json.loads(file.read_text())
        rows = model["rows"] if len(model["rows"]) > 1 else []
        times = [row.setdefault("measured", []) for row in rows]
        # A round has every row of a model; one that was cut off is not written.
        while rows and min(map(len, times)) < given.rounds:
            taken = []
            for row in rows:
                if time.monotonic() - begin > given.seconds:
                    return
                text = call(given.pyc, "bench", given.folder / row["program"], "--threads", row["threads"], "--seconds", given.run_seconds, "--warmup", 2, "--quiet")
                taken.append(float(re.search(r"latency p50 ([\d.]+) us", text).group(1)))
            for row, us in zip(rows, taken):
                row["measured"].append(us)
            file.write_text(json.dumps(model))
    print("all is measured")


def against(time_us, usual_us):
    if abs(time_us - usual_us) <= EVEN * max(time_us, usual_us):
        return "even"
    return "faster" if time_us < usual_us else "slower"


def table(given):
    print("| model | options | predicted, usual | these | says | measured, usual | these | says | agree |\n|---|---|---|---|---|---|---|---|---|")
    count = agreed = 0
    for model in load(given.folder):
        if model["left_out"]:
            print(f"| {model['model']} | left out: {model['left_out']} |")
        measured = [row for row in model["rows"] if row.get("measured")]
        for row in measured[1:]:
            usual = measured[0]
            says, is_so = row["predicted"]["against_first"], against(min(row["measured"]), min(usual["measured"]))
            count, agreed = count + 1, agreed + (says == is_so)
            print(f"| {model['model']} | {title(row)} | {usual['predicted']['run_us']:.1f} | {row['predicted']['run_us']:.1f} | {says} "
                  f"| {min(usual['measured']):.1f} | {min(row['measured']):.1f} | {is_so} | {'yes' if says == is_so else 'no'} |")
    print(f"\n{agreed} of {count} agree.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["prepare", "measure", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyc", default=str(ROOT / "build/release/pyc"))
    parser.add_argument("--models", type=Path, nargs="+", default=[ROOT.parent / "shared/models/real"], help="folders of .onnx files")
    parser.add_argument("--scenarios", type=int, default=50)
    parser.add_argument("--skip", type=int, default=0, help="models to leave out, the first by name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run-seconds", type=float, default=0.15)
    parser.add_argument("--seconds", type=float, default=55, help="nothing is begun after so many")
    given = parser.parse_args()
    {"prepare": prepare, "measure": measure, "table": table}[given.part](given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
