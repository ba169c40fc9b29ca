#!/usr/bin/env python3
"""prepare.py fill SKELETON TOOL OUT.onnx | quantize MODEL.onnx static|dynamic | inputs MODEL.onnx OUT.npz [DATA_SET [DIMS]]

What a measurement needs of one model. Needs onnx and numpy, quantize ONNX Runtime too. fill gives a skeleton the seeded weights of
../shared/tools/fill_skeletons.py. quantize replaces a model by what ONNX Runtime's tool makes of it: static with u8 activations from 8 seeded
inputs and i8 weights per channel as QDQ. inputs draws seeded inputs, or takes those of a folder with input_N.pb; DIMS: open dims as JSON.
"""

import json
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


def draw(rng, value, dims=OPEN_DIMS):
    tensor = value.type.tensor_type
    shape = [dims.get(dim.dim_param, 1) if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, TOKENS, shape).astype(dtype)
    return (rng.random(shape, dtype=np.float32) * 2 - 1).astype(dtype)


def read(file):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return numpy_helper.to_array(tensor)


class Drawn:
    """Eight seeded inputs, as ONNX Runtime's calibration wants them."""

    def __init__(self, inputs):
        rng = np.random.default_rng(SEED + 1)
        self.left = [{value.name: draw(rng, value) for value in inputs} for _ in range(8)]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantize(model, how):
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        prepared, made = Path(folder, "prepared.onnx"), Path(folder, "made.onnx")
        quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
        if how == "static":
            quantization.quantize_static(str(prepared), str(made), Drawn(graph_inputs(prepared)), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                         activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
        else:
            quantization.quantize_dynamic(str(prepared), str(made), weight_type=quantization.QuantType.QInt8)
        made.replace(model)


def write_inputs(model, out, data_set, dims):
    rng = np.random.default_rng(SEED)
    inputs = graph_inputs(model)
    if data_set:
        arrays = [read(Path(data_set, f"input_{i}.pb")) for i in range(len(inputs))]
    else:
        arrays = [draw(rng, value, {**OPEN_DIMS, **dims}) for value in inputs]
    np.savez(out, **{value.name: array for value, array in zip(inputs, arrays)})


def main():
    if sys.argv[1] == "fill":
        fill(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    elif sys.argv[1] == "quantize":
        quantize(Path(sys.argv[2]), sys.argv[3])
    else:
        given = dict(enumerate(sys.argv))
        write_inputs(sys.argv[2], sys.argv[3], given.get(4), json.loads(given.get(5, "{}")))


if __name__ == "__main__":
    main()
