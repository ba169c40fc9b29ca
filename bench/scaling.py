#!/usr/bin/env python3
"""Where a model stops getting faster with more threads.

  bench/scaling.py PYC MODEL.onnx [--threads 1,2,4,8,16] [--rounds N] [--seconds S] [--onnxruntime] [--shown N]

Runs `pyc bench` with each number of threads in turns and keeps the least time of each step. A step's loss is what it takes with the
most threads beyond its share of the time with one thread; the largest are listed. --onnxruntime takes its least times too.
"""

import argparse
import json
import os
import platform
import subprocess
import sys

WITH_ONNXRUNTIME = """
import sys, time, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
rng = numpy.random.default_rng(7)
feed = {}
for value in session.get_inputs():
    whole = "int" in value.type
    drawn = rng.integers(0, 8000, value.shape) if whole else rng.random(value.shape) * 2 - 1
    feed[value.name] = drawn.astype(numpy.int64 if whole else numpy.float32)
times, end = [], time.perf_counter() + float(sys.argv[3])
while len(times) < 5 or time.perf_counter() < end:
    began = time.perf_counter()
    session.run(None, feed)
    times.append(time.perf_counter() - began)
times.sort()
print(1e3 * times[0], 1e3 * times[len(times) // 2], onnxruntime.__version__)
"""


def bench(pyc, model, threads, seconds):
    call = [pyc, "bench", model, "--threads", str(threads), "--seconds", str(seconds), "--json"]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(call)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def rival(model, threads, seconds):
    done = subprocess.run([sys.executable, "-c", WITH_ONNXRUNTIME, model, str(threads), str(seconds)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    least, median, version = done.stdout.split()
    return float(least), float(median), version


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pyc")
    parser.add_argument("model")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--onnxruntime", action="store_true")
    parser.add_argument("--shown", type=int, default=25)
    options = parser.parse_args()
    counts = [int(n) for n in options.threads.split(",")]
    least, median, steps, other = {}, {}, {}, {}
    version = ""
    for _ in range(options.rounds):
        for n in counts:
            report = bench(options.pyc, options.model, n, options.seconds)
            least[n] = min(least.get(n, 1e30), report["latency_us"]["min"] / 1e3)
            median[n] = min(median.get(n, 1e30), report["latency_us"]["p50"] / 1e3)
            for i, step in enumerate(report["steps"]):
                known = steps.setdefault((i, step["name"]), {"flops": step["flops"], "bytes": step["bytes"]})
                known[n] = min(known.get(n, 1 << 60), step["ns"])
            if options.onnxruntime:
                a, b, version = rival(options.model, n, options.seconds)
                seen = other.get(n, (1e30, 1e30))
                other[n] = (min(a, seen[0]), min(b, seen[1]))
    print(f"{os.path.basename(options.model)}, {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
          + (f", beside ONNX Runtime {version}" if version else ""))
    print("| threads | least ms | median ms | sum of steps ms |" + (" ONNX Runtime least | median | ratio of medians |" if other else ""))
    for n in counts:
        total = sum(step[n] for step in steps.values() if n in step) / 1e6
        line = f"| {n} | {least[n]:.2f} | {median[n]:.2f} | {total:.2f} |"
        if other:
            line += f" {other[n][0]:.2f} | {other[n][1]:.2f} | {other[n][1] / median[n]:.2f} |"
        print(line)
    first, last = counts[0], counts[-1]

    def loss(step):
        return step.get(last, 0) - step.get(first, 0) * first / last

    ordered = sorted(steps.items(), key=lambda item: -loss(item[1]))
    print("steps that lose most: us by threads; GFLOP/s with the most; loss us")
    for (i, name), step in ordered[:options.shown]:
        times = " ".join(f"{step[n] / 1e3:.1f}" if n in step else "-" for n in counts)
        rate = step["flops"] / step[last] if step.get(last) else 0.0
        print(f"  {i} {name}: {times}; {rate:.0f}; {loss(step) / 1e3:.1f}")


if __name__ == "__main__":
    main()
