"""Planned bytes of a run against those that the allocator handed out, for the models beside the checkout, as a table:
bench/handed_out.py [--pyc build/dev/pyc] [--models ../shared/models] [--sets real skeletons more] [--filter NAME].
Each model runs once in every mode with 1 and 2 threads, with inputs of its data set. Exits 1 where a byte differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/models"))
import model_sets  # noqa: E402

MODES = ("latency_first", "balanced", "memory_first")
THREADS = (1, 2)


def run(pyc, model, inputs, mode, threads):
    """(planned, handed out) of one run; ValueError with the refusal."""
    command = [pyc, "run", model, "--json", "--mode", mode, "--threads", str(threads)]
    for name, file in inputs.items():
        command += ["--input", f"{name}={file}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["failed"])[-1])
    memory = json.loads(done.stdout)["memory"]
    return memory["arena_bytes"] + memory["scratch_bytes"], memory["measured_arena_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyc", default=str(ROOT / "build/dev/pyc"))
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--sets", nargs="+", default=["real", "skeletons", "more"], choices=list(model_sets.SETS))
    parser.add_argument("--filter", default="")
    given = parser.parse_args()
    print("| model | " + " | ".join(f"{mode}, {threads}" for mode in MODES for threads in THREADS) + " | difference |")
    print("|---" * (2 + len(MODES) * len(THREADS)) + "|")
    worst = 0
    for source in [s for chosen in given.sets for s in model_sets.sources(given.models, chosen) if given.filter in s.name]:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                model, inputs = model_sets.prepare(source, given.models.parent / "tools/fill_skeletons.py", Path(scratch))
                files = {}
                for i, (name, array) in enumerate(np.load(inputs).items()):
                    files[name] = Path(scratch) / f"input{i}.npy"
                    np.save(files[name], array)
                rows = [run(given.pyc, model, files, mode, threads) for mode in MODES for threads in THREADS]
            except ValueError as error:
                worst = max(worst, 1)
                print(f"| {source.name} | {error} |", flush=True)
                continue
        differ = max(abs(planned - handed) for planned, handed in rows)
        worst = max(worst, differ)
        print(f"| {source.name} | {' | '.join(f'{planned:,}' for planned, _ in rows)} | {differ} |", flush=True)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
