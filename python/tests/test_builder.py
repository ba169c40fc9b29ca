"""ModelBuilder: the names of the C++ one, and every op as a method."""

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pyc
import pytest

ROOT = Path(__file__).parents[2]
X = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)


def test_a_layer():
    w = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
    b = pyc.ModelBuilder("layer")
    x = b.input("x", "f32", (2, 4))
    b.output(b.relu(x @ b.constant("w", w) + 0.25), "y")
    model = b.compile(threads=1)
    assert [port.name for port in model.outputs] == ["y"]
    np.testing.assert_allclose(model(X), np.maximum(X @ w + 0.25, 0), rtol=1e-6)


def test_operators_and_numbers():
    b = pyc.ModelBuilder()
    x = b.input("x", "f32", (2, 4))
    for value in (x + 1, 1 + x, x - x * 2, 3 - x, x / 2, 1 / (x * x + 1), -x):
        b.output(value)
    expected = [X + 1, 1 + X, X - X * 2, 3 - X, X / 2, 1 / (X * X + 1), -X]
    for found, right in zip(b.compile()(X), expected):
        np.testing.assert_allclose(found, right, rtol=1e-6)
    with pytest.raises(pyc.InvalidArgumentError, match="constant"):
        x + X
    with pytest.raises(pyc.InvalidArgumentError, match="another builder"):
        pyc.ModelBuilder().relu(x)


def test_attributes_by_position_and_by_name():
    b = pyc.ModelBuilder()
    x = b.input("x", "f32", (2, 4))
    b.output(b.transpose(x, (1, 0)))
    b.output(b.reshape(x, shape=[8], name="flat"))
    b.output(b.softmax(x, axis=0))
    turned, flat, soft = b.compile()(X)
    np.testing.assert_array_equal(turned, X.T)
    np.testing.assert_array_equal(flat, X.ravel())
    np.testing.assert_allclose(soft.sum(axis=0), np.ones(4), rtol=1e-6)


def test_misspelt_names_are_refused_with_the_nearest():
    b = pyc.ModelBuilder()
    x = b.input("x", "f32", (2, 4))
    with pytest.raises(AttributeError, match="softmax"):
        b.softmex(x)
    with pytest.raises(pyc.InvalidArgumentError, match="axis"):
        b.softmax(x, axes=1)
    with pytest.raises(pyc.UnknownOptionError, match="f32"):
        b.input("z", "f33", (1,))
    with pytest.raises(TypeError, match="axis"):
        b.softmax(x, axis="first")


def test_values_say_what_they_are():
    b = pyc.ModelBuilder()
    value = b.matmul(b.input("x", "f32", (2, 4)), b.random("w", "f32", (4, 3), 1, -1, 1), name="product")
    assert (value.name, value.dtype, value.shape) == ("product", "f32", (2, 3))


def test_dtypes_by_the_names_of_numpy():
    b = pyc.ModelBuilder()
    for i, dtype in enumerate(("f32", "float32", np.float32, np.dtype("float32"), "bfloat16", np.bool_, np.int64)):
        b.input(f"x{i}", dtype, (1,))
    text = b.graph.text()
    assert text.count("f32[1]") == 4
    for name in ("bf16[1]", "bool[1]", "i64[1]"):
        assert name in text


def test_ops_with_several_outputs():
    b = pyc.ModelBuilder()
    parts = b.ops("split", [b.input("x", "f32", (2, 4))], axis=1, sizes=[1, 3])
    for part in parts:
        b.output(part)
    left, right = b.compile()(X)
    np.testing.assert_array_equal(left, X[:, :1])
    np.testing.assert_array_equal(right, X[:, 1:])


def test_the_names_of_the_header():
    """What the C++ ModelBuilder has as a method is one here."""
    header = (ROOT / "include" / "pyc" / "pyc.hpp").read_text(encoding="utf-8")
    body = header[header.index("class ModelBuilder {") : header.index("  Graph graph_;\n};")]
    public = body[: body.index(" private:")]
    names = set(re.findall(r"^  (?:\w[\w:<>&]* )+?&?(\w+)\(", public, re.M)) - {"ModelBuilder", "operator"}
    assert {"input", "constant", "matmul", "output", "compile", "ops"} <= names
    builder = pyc.ModelBuilder()
    assert [name for name in names if not hasattr(builder, name)] == []


def test_ahead_of_time_and_onnx(tmp_path):
    b = pyc.ModelBuilder()
    b.output(b.tanh(b.input("x", "f32", (2, 4))), "y")
    expected = b.compile()(X)
    pyc.compile_to_file(b, tmp_path / "tanh.pycm")
    np.testing.assert_array_equal(pyc.compile(tmp_path / "tanh.pycm")(X), expected)
    b.graph.export_onnx(str(tmp_path / "tanh.onnx"))
    onnx.checker.check_model(tmp_path / "tanh.onnx")
    again = pyc.compile(tmp_path / "tanh.onnx")
    np.testing.assert_array_equal(again(X), expected)
    pyc.compile_to_file(tmp_path / "tanh.onnx", tmp_path / "again.pycm")
    np.testing.assert_array_equal(pyc.compile((tmp_path / "again.pycm").read_bytes())(X), expected)
    theirs = onnxruntime.InferenceSession(tmp_path / "tanh.onnx").run(None, {"x": X})[0]
    np.testing.assert_allclose(expected, theirs, rtol=1e-5)


def test_what_a_model_says_of_itself():
    b = pyc.ModelBuilder()
    x = b.input("x", "f32", (2, 4))
    b.output(b.softmax(x), "y")
    model = b.compile(threads=1, memory_budget=1 << 20)
    assert model.inputs == [pyc.Port("x", "f32[2,4]", "f32", (2, 4))]
    assert not model.is_open
    model(X)
    assert model.stats()["runs"] == 1
    assert model.memory()["peak_bytes"] <= 1 << 20
    assert model.decisions()["decisions"]
    assert "x: f32[2,4]" in repr(model)
    assert "graph @" in b.graph.dump("passes", [])


def test_options_of_every_kind(tmp_path):
    model = ROOT / "tests" / "models" / "linear_relu.ir"
    contract = {"threads": 1, "determinism": "strict", "fuse": False, "exclude": ["f32_matmul"], "cache_dir": tmp_path}
    log = pyc.compile(model, **contract).decisions()
    assert log["options"]["determinism"] == "strict"
    with pytest.raises(pyc.UnknownOptionError, match="strict"):
        pyc.compile(model, determinism="strct")
