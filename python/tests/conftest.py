"""Models that the tests share, written with the PyPI package onnx."""

import onnx
import pytest
from onnx import TensorProto, helper


def model_of(nodes, inputs, outputs, initializers=(), **fields):
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], **fields)
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model


def tensor_info(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def unary(op, shape, dtype=TensorProto.FLOAT, **attributes):
    """y = op(x)."""
    node = helper.make_node(op, ["x"], ["y"], name=f"the_{op}", **attributes)
    return model_of([node], [tensor_info("x", shape, dtype)], [tensor_info("y", shape, dtype)])


@pytest.fixture
def relu():
    """y = relu(x), f32[2,3]."""
    return unary("Relu", [2, 3])


@pytest.fixture
def open_relu():
    """y = relu(x), f32[batch,3]."""
    return unary("Relu", ["batch", 3])
