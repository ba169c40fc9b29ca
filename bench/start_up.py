#!/usr/bin/env python3
"""Time from the start of a process to its output: `pyc run` of a model and of the same compiled ahead of time.

Prints a table for bench/results/artifact.md. The last rows load an artefact with 256 MiB of weights, whose checksums
are verified, from the page cache.
"""

import argparse
import json
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGE = """graph @large(%x: f32[1,8192]) -> (%y) {
  %w = const f32[8192,8192] random(seed=1, lo=-0.01, hi=0.01)
  %y = matmul(%x, %w)
}
"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure(runs, *command):
    """Sorted milliseconds of so many processes, after one that fills the page cache."""
    run(*command)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run(*command)
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)


def row(what, times):
    high = times[min(len(times) - 1, int(len(times) * 0.95))]
    print(f"| {what} | {times[0]:.1f} | {statistics.median(times):.1f} | {high:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyc", default=str(ROOT / "build/release/pyc"))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--limit-ms", type=float, default=30.0, help="the median of `run mlp.pycm` must be below")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = str(ROOT / "tests/models/mlp.ir")
        artifact = f"{folder}/mlp.pycm"
        run(args.pyc, "compile", model, "-o", artifact)
        ahead = measure(args.runs, args.pyc, "run", artifact)
        print(f"{platform.machine()}, {args.runs} processes each\n")
        print("| process | least ms | median ms | p95 ms |\n|---|---|---|---|")
        row("`pyc --version`", measure(args.runs, args.pyc, "--version"))
        row("`pyc run mlp.pycm`", ahead)
        row("`pyc run mlp.ir`", measure(args.runs, args.pyc, "run", model))
        large = Path(folder) / "large.ir"
        large.write_text(LARGE)
        run(args.pyc, "compile", str(large), "-o", f"{folder}/large.pycm")
        loads = []
        firsts = []
        for _ in range(10):
            report = json.loads(run(args.pyc, "run", f"{folder}/large.pycm", "--json"))
            loads.append(report["compile_ms"])
            firsts.append(report["run_us"] / 1e3)
        row("load of 256 MiB, all checksums", sorted(loads))
        row("its first run", sorted(firsts))
    return 0 if statistics.median(ahead) < args.limit_ms else 1


if __name__ == "__main__":
    raise SystemExit(main())
