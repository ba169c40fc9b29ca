#!/usr/bin/env python3
"""Exports tests/models/*.ir through `pyc export`, as given and after the passes, checks the files with onnx.checker and
compares what ONNX Runtime computes with what `pyc run` does, on the same inputs.

Prints one line per file; exits 1 if one is invalid or differs by more than --tolerance of the largest magnitude. Prints
NOT RUN and exits 0 when the packages onnx and onnxruntime are missing.

--cases N does the same for the first N cases on f32 of every tests/ops/*.cases, each a graph of one node on constants; not
those on NaN or infinity, of which ONNX says little. Valid models that ONNX Runtime refuses are named, not failed.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"NOT RUN: {error}")
    sys.exit(0)

ROOT = Path(__file__).resolve().parent.parent


def seeded_inputs(model, seed):
    """One array for each input: floats in [-1, 1), integers in [0, 10)."""
    random = np.random.default_rng(seed)
    arrays = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = [d.dim_value for d in kind.shape.dim]
        if np.issubdtype(dtype, np.floating):
            arrays[value.name] = random.uniform(-1, 1, shape).astype(dtype)
        else:
            arrays[value.name] = random.integers(0, 2 if dtype == np.bool_ else 10, shape).astype(dtype)
    return arrays


def run_pyc(pyc, source, inputs, folder):
    """The outputs of `pyc run` by name."""
    command = [pyc, "run", source, "--output-dir", folder / "out"]
    (folder / "out").mkdir()
    for number, (name, array) in enumerate(inputs.items()):
        path = folder / f"in{number}.npy"
        np.save(path, array)
        command += ["--input", f"{name}={path}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def difference(found, expected):
    """The largest difference as a part of the largest magnitude."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if expected.size == 0:
        return 0.0
    a, b = found.astype(np.float64), expected.astype(np.float64)
    differs = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if not np.isfinite(a[differs]).all() or not np.isfinite(b[differs]).all():
        return float("inf")
    scale = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
    return float(np.abs(a[differs] - b[differs]).max(initial=0.0) / scale)


def check(pyc, source, optimized, seed):
    """The worst difference of any output of the exported model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "model.onnx"
        flags = ["--optimized"] if optimized else []
        subprocess.run([pyc, "export", source, "-o", path, *flags], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        inputs = seeded_inputs(model, seed)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        results = dict(zip(names, session.run(names, inputs)))
        expected = run_pyc(pyc, source, inputs, folder)
        return len(model.graph.node), max(difference(results[n], expected[n]) for n in expected)


def case_graphs(path, limit):
    """Names and text IR of the first cases of an op whose first input (or, without one, first output) is f32."""
    text = re.sub(r"\n +", " ", path.read_text())
    found = []
    for block in re.split(r"^case ", text, flags=re.M)[1:]:
        lines = block.splitlines()
        fields = {key: [x[len(key) + 1:] for x in lines if x.startswith(key + " ")] for key in ("op", "in", "out")}
        kinds = [x.split("[")[0] for x in fields["in"] + fields["out"]]
        if re.search(r"\b(nan|inf)\b", " ".join(fields["in"])):
            continue
        if not fields["out"] or kinds[0] != "f32" or not set(kinds) <= {"f32", "f64", "i64", "i32", "u8", "i8", "bool"}:
            continue
        constants = "".join(f"  %x{i} = const {x}\n" for i, x in enumerate(fields["in"]))
        results = ", ".join(f"%y{i}" for i in range(len(fields["out"])))
        op, _, attrs = fields["op"][0].partition(" ")
        operands = ", ".join(f"%x{i}" for i in range(len(fields["in"])))
        body = f"{constants}  {results} = {op}({operands}) {attrs}\n"
        found.append((lines[0], f"graph @g() -> ({results}) {{\n{body}}}\n"))
        if len(found) == limit:
            break
    return found


def check_case(pyc, text, tolerance):
    """What became of one case, and why."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "case.ir"
        source.write_text(text)
        try:
            _, worst = check(pyc, source, False, 0)
        except subprocess.CalledProcessError as error:
            return ("refused by PyC", "") if error.returncode == 5 else ("failed", str(error))
        except Exception as error:
            return ("refused by ONNX Runtime" if "ONNXRuntimeError" in str(error) else "failed"), str(error)
        return ("ok", "") if worst <= tolerance else ("failed", f"difference {worst:.2e} of scale")


def check_cases(pyc, limit, tolerance):
    """The number of cases that failed."""
    counts = {}
    for path in sorted((ROOT / "tests" / "ops").glob("*.cases")):
        for name, text in case_graphs(path, limit):
            outcome, why = check_case(pyc, text, tolerance)
            counts[outcome] = counts.get(outcome, 0) + 1
            if why:
                print(f"{outcome}: {path.stem} case {name}: {why.splitlines()[0][:200]}")
    print("cases:", ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    return counts.get("failed", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pyc", default=ROOT / "build" / "dev" / "pyc", type=Path)
    parser.add_argument("--tolerance", default=1e-5, type=float)
    parser.add_argument("--cases", default=0, type=int, help="cases per op")
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()
    failures = 0
    for source in sorted((ROOT / "tests" / "models").glob("*.ir")):
        for optimized in (False, True):
            label = f"{source.stem}{' --optimized' if optimized else ''}"
            try:
                nodes, worst = check(args.pyc, source, optimized, args.seed)
            except Exception as error:  # whatever a checker or runtime throws is a finding
                print(f"FAILED {label}: {error}")
                failures += 1
                continue
            good = worst <= args.tolerance
            failures += not good
            print(f"{'ok    ' if good else 'FAILED'} {label}: {nodes} ONNX nodes, difference {worst:.2e} of scale")
    if args.cases:
        failures += check_cases(args.pyc, args.cases, args.tolerance)
    print(f"{failures} failures; onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
