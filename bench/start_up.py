#!/usr/bin/env python3
"""Time from the start of a process to its output: `pyc run` of a model and of the same compiled ahead of time.

Prints a table for bench/results/artifact.md. Files are in the page cache. `inspect` verifies all checksums and runs
nothing, so the last rows show what verifying 256 MiB of weights takes. With --networks FILE...: instead, what a cold compile of each takes, and
a process that finds it in the cache on disk, to its output.
"""

import argparse
import json
import os
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


def timed(*command):
    """Milliseconds of one process: by the clock, and of its CPU time."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise subprocess.CalledProcessError(child.returncode, command)
    return wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def measure(runs, *command):
    """Sorted times of so many processes, by the clock and of the CPU, after one that fills the page cache."""
    timed(*command)
    walls, cpus = zip(*(timed(*command) for _ in range(runs)))
    return sorted(walls), sorted(cpus)


def row(what, times):
    walls, cpus = times
    high = walls[min(len(walls) - 1, int(len(walls) * 0.95))]
    print(f"| {what} | {walls[0]:.1f} | {statistics.median(walls):.1f} | {high:.1f} | {statistics.median(cpus):.1f} |")


def networks(pyc, files, runs):
    print("| network | MB | cold compile ms, least | median | process from the cache ms, least | median | of it a run |\n|---|---|---|---|---|---|---|")
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            cold = sorted(json.loads(run(pyc, "run", file, "--threads", "2", "--json"))["compile_ms"] for _ in range(runs))
            kept = (pyc, "run", file, "--threads", "2", "--cache-dir", folder)
            run(*kept)
            once = json.loads(run(*kept, "--json"))["run_us"] / 1e3
            warm, _ = measure(runs, *kept)
        print(f"| {Path(file).stem} | {Path(file).stat().st_size / 1e6:.0f} | {cold[0]:.0f} | {statistics.median(cold):.0f} | {warm[0]:.0f} "
              f"| {statistics.median(warm):.0f} | {once:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyc", default=str(ROOT / "build/release/pyc"))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--limit-ms", type=float, default=30.0, help="the median of `run mlp.pycm` must be below")
    parser.add_argument("--networks", nargs="+", default=[], metavar="FILE")
    args = parser.parse_args()
    if args.networks:
        networks(args.pyc, args.networks, args.runs)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        model = str(ROOT / "tests/models/mlp.ir")
        artifact = f"{folder}/mlp.pycm"
        run(args.pyc, "compile", model, "-o", artifact)
        ahead = measure(args.runs, args.pyc, "run", artifact)
        load = os.getloadavg()[0] / os.cpu_count()
        print(f"{platform.machine()}, {os.cpu_count()} cores, {args.runs} processes each, load {load:.1f} per core\n")
        print("| process | least ms | median ms | p95 ms | median CPU ms |\n|---|---|---|---|---|")
        row("`pyc --version`", measure(args.runs, args.pyc, "--version"))
        row("`pyc run mlp.pycm`", ahead)
        row("`pyc run mlp.ir`", measure(args.runs, args.pyc, "run", model))
        large = Path(folder) / "large.ir"
        large.write_text(LARGE)
        run(args.pyc, "compile", str(large), "-o", f"{folder}/large.pycm")
        few = max(5, args.runs // 5)
        row("`pyc inspect mlp.pycm`", measure(args.runs, args.pyc, "inspect", artifact))
        row("`pyc inspect`, 256 MiB of weights", measure(few, args.pyc, "inspect", f"{folder}/large.pycm"))
        row("`pyc run`, 256 MiB of weights", measure(few, args.pyc, "run", f"{folder}/large.pycm"))
    return 0 if statistics.median(ahead[0]) < args.limit_ms else 1


if __name__ == "__main__":
    raise SystemExit(main())
