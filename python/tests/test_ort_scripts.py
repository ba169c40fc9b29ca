"""Scripts written for ONNX Runtime run with only the import changed, and get the same results."""

import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import model_of, tensor_info, unary
from onnx import TensorProto, helper, numpy_helper

SCRIPTS = sorted((Path(__file__).parent / "ort_scripts").glob("*.py"))


def weights(name, *shape):
    values = np.random.default_rng(len(name)).standard_normal(shape) / np.sqrt(shape[-1])
    return numpy_helper.from_array(values.astype(np.float32), name)


def mlp():
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["product"]),
        helper.make_node("Relu", ["product"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "w2"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=-1),
    ]
    outputs = [tensor_info("hidden", ["batch", 8]), tensor_info("probabilities", ["batch", 4])]
    initializers = [weights("w1", 16, 8), weights("b1", 8), weights("w2", 8, 4)]
    fields = {"producer_name": "tests", "doc_string": "two layers", "model_version": 3, "domain": "test.example"}
    model = model_of(nodes, [tensor_info("x", ["batch", 16])], outputs, initializers, **fields)
    helper.set_model_props(model, {"labels": "a,b,c,d"})
    return model


def conv():
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["maps"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["maps"], ["positive"]),
        helper.make_node("GlobalAveragePool", ["positive"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "v"], ["logits"]),
    ]
    initializers = [weights("w", 6, 3, 3, 3), weights("v", 6, 5)]
    return model_of(nodes, [tensor_info("image", [1, 3, 8, 8])], [tensor_info("logits", [1, 5])], initializers)


def step():
    nodes = [
        helper.make_node("MatMul", ["state", "w"], ["kept"]),
        helper.make_node("Add", ["x", "kept"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
        helper.make_node("Mul", ["next", "x"], ["y"]),
    ]
    shapes = [tensor_info(name, [1, 4]) for name in ("x", "state", "y", "next")]
    return model_of(nodes, shapes[:2], shapes[2:], [weights("w", 4, 4)])


def cache():
    nodes = [
        helper.make_node("Concat", ["cache_in", "key"], ["cache_out"], axis=1),
        helper.make_node("Transpose", ["cache_out"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["key", "turned"], ["scores"]),
    ]
    inputs = [tensor_info("key", [1, 1, 4]), tensor_info("cache_in", [1, "past", 4])]
    return model_of(nodes, inputs, [tensor_info("scores", [1, 1, "all"]), tensor_info("cache_out", [1, "all", 4])])


def ints():
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Less", ["a", "b"], ["less"])]
    inputs = [tensor_info(name, [1, 3], TensorProto.INT64) for name in "ab"]
    outputs = [tensor_info("sum", [1, 3], TensorProto.INT64), tensor_info("less", [1, 3], TensorProto.BOOL)]
    return model_of(nodes, inputs, outputs)


def strings():
    node = helper.make_node("Identity", ["s"], ["t"])
    shapes = [tensor_info(name, ["n"], TensorProto.STRING) for name in "st"]
    return model_of([node], shapes[:1], shapes[1:])


def sequence():
    node = helper.make_node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0)
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [3], [1, 2, 3])
    parts = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 2])
    output = helper.make_value_info("parts", helper.make_sequence_type_proto(parts))
    return model_of([node], [tensor_info("x", [6, 2])], [output], [sizes])


def scalar():
    node = helper.make_node("Mul", ["x", "scale"], ["y"])
    return model_of([node], [tensor_info("x", ["n"]), tensor_info("scale", [])], [tensor_info("y", ["n"])])


MODELS = {
    "mlp": mlp,
    "conv": conv,
    "step": step,
    "cache": cache,
    "ints": ints,
    "strings": strings,
    "sequence": sequence,
    "scalar": scalar,
    "half": lambda: unary("Relu", [1, 4], TensorProto.FLOAT16),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    for name, make in MODELS.items():
        onnx.save(make(), made / f"{name}.onnx")
    return made


def run_script(text, engine):
    if engine == "pyc":
        text = re.sub(r"^import onnxruntime as", "import pyc as", text, flags=re.M)
        text = re.sub(r"^from onnxruntime\.", "from pyc.", text, flags=re.M)
        assert not re.search(r"import onnxruntime|from onnxruntime", text)
    scope = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, f"<{engine}>", "exec"), scope)
    return scope["result"]


def assert_same(found, expected):
    if isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray) and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other)
    else:
        assert found == expected


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_same_results(script, folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = script.read_text(encoding="utf-8")
    assert_same(run_script(text, "pyc"), run_script(text, "onnxruntime"))


def test_there_are_many():
    assert len(SCRIPTS) >= 50
