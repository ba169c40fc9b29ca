#!/usr/bin/env python3
"""Latency of ONNX models beside ONNX Runtime: for every FOLDER/*.onnx a row with the medians of both and their ratio (above 1:
PyC is faster), at 1 thread and at all of --threads.

Both take turns, --rounds times --seconds each, in a process of their own: threads of one that wait for work would take cores from the
other. The figure is the median of the rounds' medians. Open dims are 1. ONNX Runtime runs with all its graph optimizations. Needs
numpy and onnxruntime (scripts/oracles.txt).
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
WARM_UP = 3


def draw(rng, info):
    shape = [dim if isinstance(dim, int) else 1 for dim in info.shape]
    kind = KINDS[info.type]
    return rng.integers(0, 2, shape).astype(kind) if kind != np.float32 else rng.standard_normal(shape).astype(kind)


def rival_median_ms(model, threads, seconds):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(7)
    inputs = {info.name: draw(rng, info) for info in session.get_inputs()}
    for _ in range(WARM_UP):
        session.run(None, inputs)
    times = []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        start = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def pyc_median_ms(pyc, model, threads, seconds):
    command = [pyc, "bench", str(model), "--json", "--threads", str(threads), "--seconds", str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["latency_us"]["p50"] / 1e3


def compare(args, model, threads):
    """Medians of PyC and of ONNX Runtime in milliseconds."""
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(pyc_median_ms(args.pyc, model, threads, args.seconds))
        with multiprocessing.get_context("spawn").Pool(1) as process:
            theirs.append(process.apply(rival_median_ms, (model, threads, args.seconds)))
    return statistics.median(ours), statistics.median(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyc", default=str(ROOT / "build/release/pyc"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--filter", default="", help="only models whose name contains this")
    args = parser.parse_args()
    counts = sorted({1, args.threads})
    load = os.getloadavg()[0] / os.cpu_count()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} per core, ONNX Runtime {ort.__version__}\n")
    print("| model | " + " | ".join(f"PyC, {n} | ONNX Runtime, {n} | ratio" for n in counts) + " |")
    print("|---" * (1 + 3 * len(counts)) + "|")
    ratios = {n: [] for n in counts}
    for model in sorted(args.folder.glob("*.onnx")):
        if args.filter not in model.stem:
            continue
        cells = []
        for n in counts:
            ours, theirs = compare(args, model, n)
            ratios[n].append(theirs / ours)
            cells.append(f"{ours:.2f} ms | {theirs:.2f} ms | {theirs / ours:.2f}")
        print(f"| {model.stem} | " + " | ".join(cells) + " |", flush=True)
    means = (math.exp(statistics.fmean(map(math.log, ratios[n]))) for n in counts if ratios[n])
    print("| geometric mean | " + " | ".join(f" | | {mean:.2f}" for mean in means) + " |")


if __name__ == "__main__":
    main()
