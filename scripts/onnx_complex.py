#!/usr/bin/env python3
"""Writes tests/onnx/complex: ONNX models over complex numbers with what the onnx package's own evaluator gives.

usage: onnx_complex.py [FOLDER]   needs the packages onnx and numpy

Each case is a folder as the ONNX backend tests have them. All ops whose type constraints allow complex numbers are in one of the cases,
but for those that only look at a type (RandomNormalLike, RandomUniformLike), BitCast, Unique, the ones that interpolate, and those over
optionals, which the evaluator takes for lists.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 22
KINDS = {"complex64": TensorProto.COMPLEX64, "complex128": TensorProto.COMPLEX128}


class Case:
    """One model: every call of `op` adds a node and, unless told otherwise, its outputs to the model's."""

    def __init__(self, name, kind):
        self.name = f"{name}_{kind}"
        self.dtype = np.dtype(kind)
        self.type = KINDS[kind]
        self.inputs, self.values, self.nodes, self.outputs, self.initializers = [], [], [], [], []

    def numbers(self, *shape):
        """Distinct, with both parts and both signs."""
        n = int(np.prod(shape))
        count = len(self.values) + len(self.initializers)
        real = np.arange(n) - n / 2 + 0.25 + 100 * count
        return (real - 1j * (2 * real + 0.5)).astype(self.dtype).reshape(shape)

    def input(self, name, value):
        value = np.asarray(value)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        self.values.append(value)
        return name

    def constant(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, name, values):
        return self.constant(name, np.array(values, np.int64))

    def op(self, op, inputs, outputs=1, elem=None, hidden=False, **attrs):
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", **attrs))
        if not hidden:
            for name in names:
                elem_type = elem or helper.make_tensor_type_proto(self.type, None)
                self.outputs.append(helper.make_value_info(name, elem_type))
        return names[0]

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="", ir_version=10)
        return model


INT64 = helper.make_tensor_type_proto(TensorProto.INT64, None)


def moves(c):
    x = c.input("x", c.numbers(2, 3, 4))
    image = c.input("image", c.numbers(1, 4, 2, 2))
    c.op("Identity", [x])
    c.op("Reshape", [x, c.ints("reshaped", [4, -1])])
    c.op("Transpose", [x], perm=[2, 0, 1])
    c.op("Concat", [x, c.constant("more", c.numbers(2, 1, 4))], axis=1)
    c.op("Split", [x, c.ints("split", [1, 2])], outputs=2, axis=1)
    c.op("Slice", [x, c.ints("starts", [1, -1]), c.ints("ends", [2, -9]), c.ints("axes", [0, 2]), c.ints("steps", [1, -2])])
    c.op("Gather", [x, c.ints("indices", [[0, 2], [-1, 1]])], axis=1)
    c.op("GatherElements", [x, c.ints("elements", [[[1, 0], [3, -1], [2, 2]], [[0, 0], [1, 1], [0, 3]]])], axis=2)
    c.op("GatherND", [x, c.ints("places", [[0, 1], [1, 2]])])
    c.op("Squeeze", [c.op("Unsqueeze", [x, c.ints("axis", [1])]), "axis"])
    c.op("Expand", [c.constant("row", c.numbers(3, 1)), c.ints("stretched", [2, 3, 4])])
    c.op("Tile", [x, c.ints("repeats", [1, 2, 1])])
    c.op("Flatten", [x], axis=2)
    c.op("Pad", [x, c.ints("pads", [0, 1, 0, 0, 0, 2]), c.constant("filler", c.numbers())])
    c.op("Pad", [x, c.ints("mirrored", [0, 1, 1, 0, 1, 2])], mode="reflect")
    c.op("CenterCropPad", [x, c.ints("cropped", [2, 5, 2])])
    c.op("DepthToSpace", [image], blocksize=2)
    c.op("SpaceToDepth", [image], blocksize=2)
    c.op("ReverseSequence", [x, c.ints("lengths", [3, 2])], batch_axis=0, time_axis=1)
    c.op("Trilu", [x], upper=0)
    c.op("Shape", [x], elem=INT64)
    c.op("Size", [x], elem=INT64)


def selections(c):
    x = c.input("x", c.numbers(2, 3))
    y = c.input("y", c.numbers(2, 3))
    mask = c.input("mask", np.array([[True, False, True], [False, False, True]]))
    c.op("Where", [mask, x, y])
    c.op("Compress", [x, c.constant("kept", np.array([True, False, True]))], axis=1)
    c.op("ScatterElements", [x, c.ints("columns", [[2, 0]]), c.constant("two", c.numbers(1, 2))], axis=1)
    c.op("ScatterND", [x, c.ints("rows", [[1]]), c.constant("new_row", c.numbers(1, 3))])
    c.op("OneHot", [c.ints("hot", [1, 0, 2]), c.ints("depth", 3), c.constant("off_on", c.numbers(2))])
    zeros = c.numbers(2, 3)
    zeros[0, 1] = 0
    zeros[1, 2] = 1j
    c.op("NonZero", [c.constant("zeros", zeros)], elem=INT64)


def sequences(c):
    x = c.input("x", c.numbers(4, 2))
    tensor = helper.make_tensor_type_proto(c.type, None)
    sequence = helper.make_sequence_type_proto(tensor)
    c.ints("zero", 0)
    made = c.op("SequenceConstruct", [x, x], elem=sequence)
    longer = c.op("SequenceInsert", [made, c.constant("item", c.numbers(4, 2)), "zero"], elem=sequence)
    c.op("SequenceAt", [longer, "zero"])
    c.op("SequenceErase", [longer, "zero"], elem=sequence)
    c.op("SequenceLength", [longer], elem=INT64)
    c.op("ConcatFromSequence", [longer], axis=1)
    c.op("SplitToSequence", [x, c.ints("lengths", [1, 3])], elem=sequence, axis=0)


def control(c):
    x = c.input("x", c.numbers(3, 2))
    flag = c.input("flag", np.array(True))
    start = c.constant("start", c.numbers(2))
    value = lambda name, shape, t=None: helper.make_tensor_value_info(name, t or c.type, shape)
    branch = lambda name, node: helper.make_graph([node], name, [], [value(name + "_y", None)])
    c.op("If", [flag],
         then_branch=branch("then", helper.make_node("Transpose", [x], ["then_y"])),
         else_branch=branch("else", helper.make_node("Identity", [x], ["else_y"])))
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Concat", ["a", "a"], ["b"], axis=0),
         helper.make_node("Identity", [start], ["scanned"])],
        "body", [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("a", None)],
        [value("on", [], TensorProto.BOOL), value("b", None), value("scanned", [2])])
    c.op("Loop", [c.ints("trips", 2), c.constant("always", np.array(True)), x], outputs=2, body=body)
    rows = helper.make_graph(
        [helper.make_node("Identity", ["row"], ["state"]), helper.make_node("Identity", ["before"], ["out"])],
        "rows", [value("before", [2]), value("row", [2])], [value("state", [2]), value("out", [2])])
    c.op("Scan", [start, x], outputs=2, body=rows, num_scan_inputs=1)


def write(folder, case):
    model = case.model()
    feeds = {v.name: value for v, value in zip(case.inputs, case.values)}
    results = ReferenceEvaluator(model).run(None, feeds)
    for info, value in zip(model.graph.output, results):
        if info.type.HasField("tensor_type"):
            known = helper.make_tensor_type_proto(case.type, np.shape(value))
            info.type.tensor_type.shape.CopyFrom(known.tensor_type.shape)
    checker.check_model(model, full_check=True)
    data = folder / case.name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / case.name / "model.onnx").write_bytes(model.SerializeToString())
    for i, value in enumerate(case.values):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    for i, value in enumerate(results):
        if isinstance(value, list):
            proto = numpy_helper.from_list([np.asarray(v) for v in value])
        else:
            proto = numpy_helper.from_array(np.asarray(value))
        (data / f"output_{i}.pb").write_bytes(proto.SerializeToString())
    print(f"{case.name}: {len(case.nodes)} nodes, {len(results)} outputs")


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "tests/onnx/complex")
    for kind in KINDS:
        for fill in (moves, selections, sequences, control):
            case = Case(fill.__name__, kind)
            fill(case)
            write(folder, case)


if __name__ == "__main__":
    main()
