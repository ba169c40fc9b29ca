#!/usr/bin/env python3
"""PyC and ONNX Runtime with one model in one process, run in turn on the same cores: what other programs on the machine take
from one they take from the other too.

  bench/models/in_turn.py LIBPYC.so MODEL.onnx [--threads N] [--seconds S] [--least-pairs N] [--most-pairs N] [--warm S] [--cores 0,2] [--inputs NPZ]

Prints one line of JSON: the median of the ratios of adjacent timings (above 1 where PyC is faster) with its interval, medians and
least times in ms, the pairs, the cores, and how far the outputs lie apart as a part of the largest magnitude. A timing is the
median of --warm seconds of runs after as long a time of runs that do not count; 0: the second run after a rest. Threads get a core
each where there are that many: the second hyperthread of a core is taken only after the last core. --cores names them where the
system does not know which are hyperthreads of one core, as in some virtual machines. Inputs are drawn unless --inputs names what
`prepare.py inputs` wrote.
"""

import argparse
import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import intervals
import worker

LOOK_S = 0.001
QUIET_LOOKS = 3  # in a row
MOST_LOOKS = 200
LONG_S = 0.02  # a run beside which the first microseconds do not count


def siblings(cpu):
    """The first CPU of the core that a CPU is a hyperthread of."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
        return int(text.replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return cpu


def cores_for(threads):
    """CPUs for so many threads, one of each core first."""
    cpus = sorted(os.sched_getaffinity(0))
    seen = {}
    for cpu in cpus:
        seen.setdefault(siblings(cpu), []).append(cpu)
    rank = {cpu: place for core in seen.values() for place, cpu in enumerate(core)}
    return sorted(cpus, key=lambda cpu: (rank[cpu], cpu))[:threads]


def inputs_of(model):
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(7)
    drawn = {}
    for value in session.get_inputs():
        whole = "int" in value.type
        shape = [size if isinstance(size, int) else 1 for size in value.shape]  # an open one is 1
        numbers = rng.integers(0, 8000, shape) if whole else rng.random(shape) * 2 - 1
        drawn[value.name] = numbers.astype(np.int64 if whole else np.float32)
    return drawn


def once(run):
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def others_run():
    """Whether another thread of this process runs or wants to. CPU time says so only once a tick, some milliseconds late."""
    mine = str(threading.get_native_id())
    for thread in os.listdir("/proc/self/task"):
        if thread == mine:
            continue
        try:
            stat = Path(f"/proc/self/task/{thread}/stat").read_text()
        except OSError:
            continue  # it has ended
        if stat.rpartition(")")[2].split()[0] == "R":
            return True
    return False


def settle():
    """Waits until no thread of this process looks for work any more: those of ONNX Runtime do so for tens of milliseconds after a run."""
    quiet = 0
    for _ in range(MOST_LOOKS):
        time.sleep(LOOK_S)
        quiet = 0 if others_run() else quiet + 1
        if quiet == QUIET_LOOKS:
            return


def block(run, usual, threads, warm):
    """The median of a few runs, after the other engine's threads have gone to sleep and this one's are awake."""
    if threads > 1:
        settle()
    runs = max(1, int(warm / usual))
    if usual < LONG_S or threads > 1:
        for _ in range(runs):
            run()
    return statistics.median(once(run) for _ in range(runs))


def apart(a, b):
    """The largest difference as a part of the largest magnitude."""
    worst = 0.0
    for x, y in zip(a, b):
        if np.asarray(x).dtype.kind == "f":
            worst = max(worst, float(np.max(np.abs(x - y)) / max(1e-30, float(np.max(np.abs(y))))))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--least-pairs", type=int, default=6)
    parser.add_argument("--most-pairs", type=int, default=60)
    parser.add_argument("--warm", type=float, default=0.02)
    parser.add_argument("--cores")
    parser.add_argument("--inputs")
    options = parser.parse_args()
    cores = [int(core) for core in options.cores.split(",")] if options.cores else cores_for(options.threads)
    inputs = dict(np.load(options.inputs)) if options.inputs else inputs_of(options.model)
    os.sched_setaffinity(0, cores)
    command = {"library": options.library, "model": options.model, "threads": options.threads}
    engines = [worker.Pyc(command, inputs), worker.OnnxRuntime(command, inputs)]
    difference = apart(engines[0].outputs(), engines[1].outputs())
    usual = [min(once(engine.run) for _ in range(2)) for engine in engines]
    pairs, end = [], time.perf_counter() + options.seconds
    while len(pairs) < options.least_pairs or (time.perf_counter() < end and len(pairs) < options.most_pairs):
        order = (0, 1) if len(pairs) % 2 == 0 else (1, 0)
        times = [0.0, 0.0]
        for i in order:
            times[i] = block(engines[i].run, usual[i], options.threads, options.warm)
        pairs.append(times)
    ratio = intervals.median_of([[b / a for a, b in pairs]])
    ours, theirs = zip(*pairs)
    print(json.dumps({
        "model": Path(options.model).stem, "threads": options.threads, "cores": cores, "pairs": len(pairs),
        "ratio": ratio.median, "low": ratio.low, "high": ratio.high,
        "ms": statistics.median(ours) * 1e3, "other_ms": statistics.median(theirs) * 1e3,
        "least_ms": min(ours) * 1e3, "other_least_ms": min(theirs) * 1e3,
        "difference": difference, "version": engines[0].version, "onnxruntime": engines[1].version,
    }))


if __name__ == "__main__":
    main()
