#!/usr/bin/env python3
"""Compares PyC with ONNX Runtime on random graphs: valid ones over all ops, made, exported and run by pyc_random_graphs.

    scripts/differential.py [--count N] [--nodes K]

Graph N is the same everywhere; a run goes on where the last logged one ended. The program runs every graph on reference and
cpu, which must agree in every bit, and ONNX Runtime must come within --tolerance of the largest magnitude (100 times that in
graphs with f16), integers and bools exactly. Graphs that ONNX cannot express are counted as not_exported. What ONNX Runtime does otherwise stands in tests/onnx/differences.tsv with its reason. One
line per 500 graphs is added to bench/results/differential.log. Exits 1 on a mismatch without a reason; the graphs stay in
build/differential. Prints NOT RUN when onnx or onnxruntime is missing.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"NOT RUN: {error}")
    sys.exit(0)

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "differential"
LOG = ROOT / "bench" / "results" / "differential.log"
CHUNK = 500
F16_FACTOR = 100  # steps of f16 are that much coarser
LEAST_SCALE = 1e-3  # of what is nothing but rounding


class Reasons:
    """tests/onnx/differences.tsv: op, dtypes, pattern, reason. Without a pattern the pairs are not drawn; with one, a graph
    that has a node of the op on which the pattern matches is explained."""

    def __init__(self, path):
        self.rows = [line.rstrip("\n").split("\t") for line in path.open(encoding="utf-8")
                     if line.strip() and not line.startswith("#")]
        for row in self.rows:
            if len(row) != 4:
                sys.exit(f"{path}: four columns are needed: {row}")

    def drawn(self, op, dtype):
        return not any(row[0] in ("*", op) and not row[2] and (row[1] == "*" or dtype in row[1].split()) for row in self.rows)

    def explain(self, text, what):
        """The reason for a graph, given as text, or None. `what` is what came of it."""
        for op, _, pattern, reason in self.rows:
            if pattern and any(re.search(pattern, line + " # " + what) for line in text.splitlines()
                               if op == "*" or f" = {op}(" in line):
                return reason
        return None


def arrays(values, data):
    """The elements of a file one after the other, as arrays by name."""
    found, at = {}, 0
    for value in values:
        kind = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = [d.dim_value for d in kind.shape.dim]
        count = int(np.prod(shape, dtype=np.int64))
        found[value.name] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
    return found


def difference(found, expected, tolerance):
    """"" or how one output differs."""
    if found is None:
        return "no output"
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if not np.issubdtype(expected.dtype, np.floating):
        wrong = found != expected
        return f"{wrong.sum()} of {wrong.size} integers differ" if wrong.any() else ""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        scale = np.abs(b[np.isfinite(b)]).max(initial=LEAST_SCALE)
        near = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * scale)
    if near.all():
        return ""
    first = np.unravel_index(np.argmin(near), near.shape)
    return f"{(~near).sum()} of {near.size} elements differ, scale {scale:.3g}, first {a[first]!r} for {b[first]!r}"


def run_one(stem, tolerance):
    """What ONNX Runtime makes of one graph: same, different or refused, and how."""
    model = onnx.load(f"{stem}.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    inputs = arrays(model.graph.input, Path(f"{stem}.in").read_bytes())
    expected = arrays(model.graph.output, Path(f"{stem}.out").read_bytes())
    try:
        session = onnxruntime.InferenceSession(f"{stem}.onnx", options, providers=["CPUExecutionProvider"])
        found = session.run(list(expected), inputs)
    except Exception as error:  # every kind of refusal of ONNX Runtime
        return "refused", str(error).replace("\n", " ")
    if ": f16[" in Path(f"{stem}.ir").read_text(encoding="utf-8"):
        tolerance *= F16_FACTOR
    for (name, e), f in zip(expected.items(), found):
        d = difference(f, e, tolerance)
        if d:
            return "different", f"%{name}: {d}"
    return "same", ""


def run_folder(folder, tolerance):
    """The child: one line of JSON per graph, before and after it."""
    onnxruntime.set_default_logger_severity(4)
    for path in sorted(folder.glob("*.onnx"), key=lambda p: int(p.stem)):
        if Path(f"{path.with_suffix('')}.done").exists():
            continue
        print(json.dumps([path.stem, "began", ""]), flush=True)
        Path(f"{path.with_suffix('')}.done").touch()
        print(json.dumps([path.stem, *run_one(path.with_suffix(""), tolerance)]), flush=True)


def results_of(folder, tolerance):
    """Of all graphs of a folder, in child processes: one that dies does not take the others along."""
    results = {}
    while True:
        child = subprocess.run([sys.executable, __file__, "--child", folder, "--tolerance", str(tolerance)],
                               stdout=subprocess.PIPE, text=True, check=False)
        last = None
        for line in child.stdout.splitlines():
            last = json.loads(line)
            results[last[0]] = last[1:]
        if last is None or last[1] != "began":
            return results
        results[last[0]] = ["refused", f"ONNX Runtime died ({child.returncode})"]


def program():
    for preset in ("release", "dev"):
        path = ROOT / "build" / preset / "pyc_random_graphs"
        if path.exists():
            return path
    sys.exit("there is no pyc_random_graphs: ./dev build release pyc_random_graphs")


def first_seed():
    """The one after the last logged graph."""
    ends = [1]
    if LOG.exists():
        for line in LOG.read_text(encoding="utf-8").splitlines():
            fields = dict(f.split("=", 1) for f in line.split() if "=" in f)
            ends.append(int(fields["first"]) + int(fields["drawn"]))
    return max(ends)


def git(*args):
    return subprocess.run(["git", "-C", ROOT, *args], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def run_chunk(args, reasons, pairs, first, count):
    """The counts of one chunk. Graphs that ONNX cannot express are counted, too: nobody looked at them."""
    folder = WORK / str(first)
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir(parents=True)
    made = subprocess.run([program(), "export", str(first), str(count), folder, pairs, str(args.nodes)],
                          stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        print(made.stdout)
        sys.exit("pyc_random_graphs failed")
    left_out = re.findall(r"^seed \d+: (.*)$", made.stdout, re.MULTILINE)
    for reason, times in Counter(re.sub(r"'[^']*' ", "", reason) for reason in left_out).most_common():
        print(f"not exported, {times} times: {reason}", flush=True)
    counts = tally(folder, results_of(folder, args.tolerance), reasons)
    counts.update(drawn=count, not_exported=len(left_out))
    compared = counts["same"] + counts["explained"] + counts["different"] + counts["refused"]
    if compared + counts["not_exported"] != count:
        sys.exit(f"of {count} graphs {compared} were compared and {counts['not_exported']} not exported: some are missing")
    if counts["different"] + counts["refused"] == 0:
        subprocess.run(["rm", "-rf", folder], check=True)
    return counts


def tally(folder, results, reasons):
    """What came of the graphs that ONNX Runtime was given; prints what is not explained."""
    counts = Counter()
    for seed, (what, detail) in results.items():
        text = (folder / f"{seed}.ir").read_text(encoding="utf-8")
        if what != "same" and reasons.explain(text, f"{what}: {detail}"):
            counts["explained"] += 1
        else:
            counts[what] += 1
            if what != "same":
                names = " ".join((folder / f"{seed}.pairs").read_text(encoding="utf-8").splitlines())
                print(f"{seed} [{names}] {what}: {detail[:400]}", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=CHUNK)
    parser.add_argument("--nodes", type=int, default=3, help="at most so many ops per graph")
    parser.add_argument("--first", type=int, help="first seed (default: go on after the log)")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--no-log", action="store_true")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return run_folder(args.child, args.tolerance)
    reasons = Reasons(ROOT / "tests" / "onnx" / "differences.tsv")
    WORK.mkdir(parents=True, exist_ok=True)
    pairs = WORK / "pairs"
    listed = subprocess.run([program(), "pairs"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    pairs.write_text("".join(line + "\n" for line in listed if reasons.drawn(*line.split())), encoding="utf-8")
    commit = git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    total = Counter()
    first = args.first or first_seed()
    while total["drawn"] < args.count:
        count = min(CHUNK, args.count - total["drawn"])
        counts = run_chunk(args, reasons, pairs, first, count)
        total += counts
        line = (f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} first={first} drawn={count} nodes={args.nodes} "
                f"same={counts['same']} explained={counts['explained']} different={counts['different']} "
                f"refused={counts['refused']} not_exported={counts['not_exported']} onnxruntime={onnxruntime.__version__} commit={commit}")
        print(line, flush=True)
        if not args.no_log:
            with LOG.open("a", encoding="utf-8") as log:
                log.write(line + "\n")
        first += count
    return 1 if total["different"] + total["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
