"""Every status code is an exception of its own, and says node and cure."""

import pickle
import re
from pathlib import Path

import numpy as np
import pyc
import pytest
from conftest import model_of, tensor_info, unary
from onnx import TensorProto, helper
from pyc import _native

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def page_rows():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| .*? \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    return [(name, int(code), cure) for name, code, cure in rows if name != "ok"]


@pytest.mark.parametrize("name, code, cure", page_rows())
def test_every_code_of_the_page_has_a_type(name, code, cure):
    kind = pyc.errors.by_code[code]
    words = "".join(word.capitalize() for word in name.split("_"))
    assert kind.__name__ == words.removesuffix("Error") + "Error"
    assert kind is getattr(pyc, kind.__name__)
    error = pyc.errors.error_of_code(code, "the message", "the_node")
    assert (error.code, error.name, error.node, error.cure) == (code, name, "the_node", cure)
    for part in (name, "the message", "the_node", cure):
        assert part in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)


def test_no_code_is_left_out():
    assert [code for code, *_ in _native.statuses()] == [code for _, code, _ in page_rows()]
    assert len(set(pyc.errors.by_code.values())) == len(page_rows())


X = np.ones((2, 3), np.float32)


def planted_budget():
    b = pyc.ModelBuilder()
    x = b.input("x", "f32", (64, 64))
    b.output(b.softmax(x @ x), "y")
    b.compile(memory_budget=1000)


def planted_gather():
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="pick")
    model = model_of(
        [node], [tensor_info("x", [2, 3]), tensor_info("i", [1], TensorProto.INT64)], [tensor_info("y", [1, 3])]
    )
    pyc.compile(model)(X, np.array([7]))


def planted_op():
    helper_node = helper.make_node("Relux", ["x"], ["y"], name="odd", domain="")
    graph = helper.make_graph([helper_node], "g", [tensor_info("x", [2])], [tensor_info("y", [2])])
    pyc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))


def planted_shapes():
    b = pyc.ModelBuilder()
    b.matmul(b.input("x", "f32", (2, 3)), b.input("w", "f32", (4, 5)), name="product")


RELU = unary("Relu", [2, 3])
# code: what provokes it, what the message must name.
PLANTED = {
    "invalid_argument": (lambda: pyc.compile(RELU, threads=-1), "threads"),
    "invalid_argument by count": (lambda: pyc.compile(RELU)(X, X), "1"),
    "invalid_argument, missing": (lambda: pyc.compile(RELU).run({}), "'x'"),
    "parse_error": (lambda: pyc.compile(b"graph @g(%x: f32[2]) -> (%y) { nonsense }"), "nonsense"),
    "shape_mismatch": (lambda: pyc.compile(RELU)(np.ones((2, 4), np.float32)), "f32[2,4]"),
    "shape_mismatch at a node": (planted_shapes, "matmul"),
    "dtype_mismatch": (lambda: pyc.compile(RELU)(np.ones((2, 3))), "f64"),
    "rank_mismatch": (lambda: pyc.compile(RELU)(np.ones(3, np.float32)), "f32[3]"),
    "misaligned": (
        lambda: pyc.compile(RELU, strict_views=True)(np.frombuffer(bytes(25), np.uint8)[1:].view("f4").reshape(2, 3)),
        "'x'",
    ),
    "unknown_option": (lambda: pyc.compile(RELU, thread=2), "threads"),
    "unknown_option, input": (lambda: pyc.compile(RELU).run({"X": X}), "'x'"),
    "unknown_op": (planted_op, "Relu"),
    "budget_exceeded": (planted_budget, "1000"),
    "runtime_failed": (planted_gather, "'pick'"),
    "not_found": (lambda: pyc.compile("there/is/none.onnx"), "there/is/none.onnx"),
    "io_error": (lambda: pyc.compile("."), "."),
    "unsupported": (lambda: pyc.compile(RELU, target="x86_avx2" if is_arm() else "aarch64_neon"), "target"),
}


def is_arm():
    import platform

    return platform.machine() == "aarch64"


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults(fault):
    provoke, named = PLANTED[fault]
    code = re.split(r"[ ,]", fault)[0]
    with pytest.raises(pyc.Error) as caught:
        provoke()
    error = caught.value
    assert error.name == code, str(error)
    assert named in error.message
    assert error.cure and error.cure in str(error)
    if error.node:
        assert error.node in str(error)


def test_nodes_are_named():
    with pytest.raises(pyc.ShapeMismatchError) as caught:
        pyc.compile(RELU)(np.ones((2, 4), np.float32))
    assert caught.value.node == "x"


def test_builtin_exceptions_catch_them():
    with pytest.raises(FileNotFoundError):
        pyc.compile("none.onnx")
    with pytest.raises(ValueError):
        pyc.compile(RELU)(np.ones((2, 4), np.float32))
    with pytest.raises(TypeError):
        pyc.compile(RELU)(np.ones((2, 3)))


def test_a_model_stays_usable_after_an_error():
    model = pyc.compile(RELU)
    with pytest.raises(pyc.Error):
        model(np.ones((9, 9), np.float32))
    np.testing.assert_array_equal(model(X), X)


def test_what_is_no_model():
    with pytest.raises(pyc.InvalidArgumentError, match="ModelProto"):
        pyc.compile(42)


def test_what_is_no_tensor_says_what_it_is():
    with pytest.raises(TypeError, match="expected a tensor, found str .numpy's dtype <U3"):
        pyc.compile(RELU)("abc")


def test_unknown_dtypes_come_with_the_known_ones():
    with pytest.raises(pyc.UnknownOptionError, match="'float' is not known; known are .*f32"):
        pyc.ModelBuilder().input("x", "float", (2,))


def test_arrays_among_values_of_a_builder():
    b = pyc.ModelBuilder()
    x = b.input("x", "f32", (2, 3))
    with pytest.raises(pyc.InvalidArgumentError, match="not ndarray: make it a value with constant"):
        b.add(x, X)
    assert "compile()" in repr(b)
