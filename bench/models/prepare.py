#!/usr/bin/env python3
"""prepare.py fill SKELETON TOOL OUT.onnx | inputs MODEL.onnx OUT.npz [DATA_SET]: what a measurement needs of one model. Needs onnx and numpy.

fill gives a skeleton the seeded weights of ../shared/tools/fill_skeletons.py. inputs draws seeded inputs, or takes those of a
folder with input_N.pb.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SEED = 7
TOKENS = 8000  # every vocabulary here is larger
OPEN_DIMS = {"batch": 1, "seq": 128, "past": 127}


def fill(skeleton, tool, out):
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        source = Path(folder, "skeleton")
        source.mkdir()
        Path(source, skeleton.name).symlink_to(skeleton.resolve())
        subprocess.run([sys.executable, tool, source, folder], check=True, stdout=subprocess.DEVNULL)
        Path(folder, skeleton.name).rename(out)


def graph_inputs(model):
    graph = onnx.load(model, load_external_data=False).graph
    given = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in given]


def draw(rng, value):
    tensor = value.type.tensor_type
    shape = [OPEN_DIMS.get(dim.dim_param, 1) if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, TOKENS, shape).astype(dtype)
    return (rng.random(shape, dtype=np.float32) * 2 - 1).astype(dtype)


def read(file):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return numpy_helper.to_array(tensor)


def write_inputs(model, out, data_set):
    rng = np.random.default_rng(SEED)
    inputs = graph_inputs(model)
    if data_set:
        arrays = [read(Path(data_set, f"input_{i}.pb")) for i in range(len(inputs))]
    else:
        arrays = [draw(rng, value) for value in inputs]
    np.savez(out, **{value.name: array for value, array in zip(inputs, arrays)})


def main():
    if sys.argv[1] == "fill":
        fill(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        write_inputs(sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)


if __name__ == "__main__":
    main()
