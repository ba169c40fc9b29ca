#!/usr/bin/env python3
"""Writes what ONNX Runtime computes as cases for `pyc conformance`: OUT/NAME/model.onnx (a link) and test_data_set_0, for
every FOLDER/*.onnx. Inputs are seeded; integers are drawn below LIMIT; open dims are 1. Graph optimizations are off.

Usage: ort_cases.py FOLDER OUT [LIMIT]. Needs numpy, onnx and onnxruntime.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import numpy_helper

KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


def draw(rng, info, limit):
    shape = [dim if isinstance(dim, int) else 1 for dim in info.shape]
    kind = KINDS[info.type]
    if np.issubdtype(kind, np.integer):
        return rng.integers(0, limit, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def write_case(model, folder, limit):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(7)
    inputs = {info.name: draw(rng, info, limit) for info in session.get_inputs()}
    outputs = session.run(None, inputs)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    link = folder / "model.onnx"
    link.unlink(missing_ok=True)
    link.symlink_to(model.resolve())
    for kind, values in (("input", inputs.values()), ("output", outputs)):
        for i, value in enumerate(values):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())


def main(folder, out, limit=30000):
    for model in sorted(Path(folder).glob("*.onnx")):
        write_case(model, Path(out) / model.stem, int(limit))
        print(model.stem, flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
