"""Two hundred faults, each with what its message alone must say: the node or name, and the cause.

A fault is (what provokes it, words that stand in the error's text). A tuple among the words: one of them is enough.
"""

import numpy as np
import pyc
from conftest import tensor_info
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
DEPTH = 20
ROW = np.ones((2, 8), np.float32)


def weight(name, *shape, dtype=np.float32):
    return numpy_helper.from_array(np.ones(shape, dtype), name)


def model_with(nodes, inputs, outputs, initializers=()):
    """Not checked: what is wrong with it is for PyC to find."""
    graph = helper.make_graph(nodes, "planted", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def chain(nodes_of, at, *initializers):
    """Twenty nodes, of which those at `at` are the given ones: [] names of inputs, outputs."""
    nodes, last = [], "x"
    for i in range(DEPTH):
        here = nodes_of(last, f"v{i}") if i == at else helper.make_node("Relu", [last], [f"v{i}"], name=f"relu_{i}")
        nodes.append(here)
        last = f"v{i}"
    return model_with(nodes, [tensor_info("x", [2, 8])], [tensor_info(last, None)], initializers)


def one(op, inputs, initializers=(), outputs=("y",), **attributes):
    """A model of one node, `bad`; inputs are name: (shape, dtype)."""
    infos = [tensor_info(name, shape, dtype) for name, (shape, dtype) in inputs.items()]
    names = [*inputs, *(tensor.name for tensor in initializers)]
    node = helper.make_node(op, names, list(outputs), name="bad", **attributes)
    return model_with([node], infos, [tensor_info(name, None) for name in outputs], initializers)


def compiled(model):
    return lambda: pyc.compile(model)


def faults():
    found = {}
    for family in FAMILIES:
        for i, (provoke, words) in enumerate(family()):
            found[f"{family.__name__} {i}"] = (provoke, words)
    return found


def shapes_at_a_node():
    for at in range(0, DEPTH):
        model = chain(lambda a, b, at=at: helper.make_node("MatMul", [a, "w"], [b], name=f"product_{at}"), at, weight("w", 7, 3))
        yield compiled(model), [f"product_{at}", ("[7,3]", "7")]


def unknown_ops():
    misspelt = "Rellu Sofmax Convv Gemmm Sigmod Tahn MatMull LayerNorm Addd Divv Concatt Reshap Transpos Gathr Slic Padd".split()
    for i, op in enumerate(misspelt):
        model = chain(lambda a, b, op=op, i=i: helper.make_node(op, [a], [b], name=f"node_{i}"), i)
        yield compiled(model), [f"node_{i}", op]


IMAGE = {"x": ([1, 4, 8, 8], FLOAT)}
ROWS = {"x": ([2, 8], FLOAT)}


def bad_attributes():
    kernel = weight("w", 6, 4, 3, 3)
    for attributes, word in [
        ({"strides": [1]}, "strides"),
        ({"strides": [0, 1]}, "strides"),
        ({"pads": [1, 1]}, "pads"),
        ({"dilations": [1, 1, 1]}, "dilations"),
        ({"group": 3}, "group"),
        ({"group": 0}, "group"),
        ({"auto_pad": "SOME"}, "auto_pad"),
        ({"kernel_shape": [5, 5]}, "kernel"),
    ]:
        yield compiled(one("Conv", IMAGE, [kernel], **attributes)), ["bad", word]
    for op, inputs, attributes, word in [
        ("Transpose", ROWS, {"perm": [0, 0]}, "perm"),
        ("Transpose", ROWS, {"perm": [0, 1, 2]}, "perm"),
        ("Softmax", ROWS, {"axis": 2}, "axis"),
        ("LogSoftmax", ROWS, {"axis": -3}, "axis"),
        ("Flatten", ROWS, {"axis": 5}, "axis"),
        ("ArgMax", ROWS, {"axis": 4}, "axis"),
        ("Cast", ROWS, {"to": 99}, ("to", "99")),
        ("Concat", ROWS, {"axis": 7}, "axis"),
        ("MaxPool", IMAGE, {"kernel_shape": [2]}, "window"),
        ("MaxPool", IMAGE, {"kernel_shape": [9, 9]}, ("kernel", "9")),
        ("AveragePool", IMAGE, {"kernel_shape": [0, 2]}, "kernel"),
        ("DepthToSpace", IMAGE, {"blocksize": 3}, ("block", "3")),
        ("SpaceToDepth", IMAGE, {"blocksize": 3}, ("block", "3")),
        ("Softmax", ROWS, {"axis": "last"}, "axis"),
        ("LeakyRelu", ROWS, {"alpha": "much"}, "alpha"),
        ("Concat", ROWS, {}, "axis"),
        ("Elu", ROWS, {"alpha": [1.0, 2.0]}, "alpha"),
        ("Hardmax", ROWS, {"axis": 9}, "axis"),
        ("ArgMin", ROWS, {"axis": -5}, "axis"),
        ("Split", ROWS, {"axis": 3, "num_outputs": 1}, "axis"),
        ("GlobalAveragePool", ROWS, {}, ("rank", "f32[2,8]")),
        ("Gelu", ROWS, {"approximate": "some"}, ("approximate", "Gelu")),
        ("LRN", IMAGE, {}, "size"),
    ]:
        yield compiled(one(op, inputs, **attributes)), ["bad", word]


def bad_dtypes():
    for op, first, second in [
        ("Add", FLOAT, INT64),
        ("Mul", INT64, FLOAT),
        ("MatMul", FLOAT, TensorProto.DOUBLE),
        ("And", FLOAT, FLOAT),
        ("Or", INT64, INT64),
        ("BitwiseAnd", FLOAT, FLOAT),
        ("Max", FLOAT, TensorProto.DOUBLE),
    ]:
        yield compiled(one(op, {"a": ([4, 4], first), "b": ([4, 4], second)})), ["bad", ("f32", "i64", "bool")]
    for op in ("Not", "BitwiseNot"):
        yield compiled(one(op, ROWS)), ["bad", "f32"]
    for op in ("Sqrt", "Sin", "Exp", "Erf", "Softmax"):
        yield compiled(one(op, {"x": ([2, 8], INT64)})), ["bad", "i64"]


def bad_shapes():
    for op, shapes in [
        ("Add", ([2, 3], [4, 3])),
        ("Where", ([2], [3], [2])),
        ("Gemm", ([2, 3], [4, 5])),
        ("MatMul", ([2, 3], [4, 5])),
        ("Conv", ([1, 3, 8, 8], [6, 4, 3, 3])),
        ("Mul", ([5], [6])),
        ("PRelu", ([2, 3], [4])),
        ("Concat", ([2, 3], [3, 4])),
        ("Reshape", ([2, 3], None)),
        ("Expand", ([2, 3], None)),
    ]:
        inputs = {}
        for name, shape in zip("abc", shapes):
            if shape is not None:
                inputs[name] = (shape, TensorProto.BOOL if op == "Where" and name == "a" else FLOAT)
        sizes = [numpy_helper.from_array(np.array([5, 7]), "sizes")] if None in shapes else []
        attributes = {"axis": 0} if op == "Concat" else {}
        yield compiled(one(op, inputs, sizes, **attributes)), ["bad", str(shapes[0][0])]


def broken_graphs():
    for at in range(0, DEPTH, 2):
        model = chain(lambda a, b, at=at: helper.make_node("Add", [a, "nowhere"], [b], name=f"sum_{at}"), at)
        yield compiled(model), [f"sum_{at}", "nowhere"]
    relu = helper.make_node("Relu", ["x"], ["y"], name="twice")
    yield compiled(model_with([relu, relu], [tensor_info("x", [2])], [tensor_info("y", [2])])), ["y", ("twice", "already")]
    yield compiled(model_with([relu], [tensor_info("x", [2])], [tensor_info("z", [2])])), ["z"]
    loop = [helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="second")]
    yield compiled(model_with(loop, [tensor_info("x", [2])], [tensor_info("b", [2])])), ["first", "b"]
    few = helper.make_node("Add", ["x"], ["y"], name="lonely")
    yield compiled(model_with([few], [tensor_info("x", [2])], [tensor_info("y", [2])])), ["lonely", ("1", "2", "input")]


def files():
    yield lambda: pyc.compile("no/such/model.onnx"), ["no/such/model.onnx"]
    yield lambda: pyc.compile("model.onx"), ["model.onx"]
    yield lambda: pyc.compile("/"), ["/", ("directory", "folder", "file")]
    yield lambda: pyc.compile(b""), ["it is empty"]
    yield lambda: pyc.compile(b"\x00" * 64), [("parse_error", "model")]
    yield lambda: pyc.compile(b"graph @g("), ["1:", ("expected", "ended")]
    yield lambda: pyc.compile(b"graph @g(%x: f32[2]) -> (%y) {\n  %y = rellu(%x)\n}\n"), ["relu", ("2:", "line 2")]
    yield lambda: pyc.compile(b"graph @g(%x: f33[2]) -> (%x) {\n}\n"), ["f33", "1:"]
    whole = one("Relu", ROWS).SerializeToString()
    yield lambda: pyc.compile(whole[: len(whole) // 2]), [("parse_error", "verify_failed", "cut")]
    yield lambda: pyc.compile_to_file(pyc.ModelBuilder(), "no/such/folder/m.pycm"), [("output", "no/such/folder")]


RELU = one("Relu", ROWS)


def options():
    for name in [option[0] for option in pyc._native.options() if len(option[0]) > 4]:
        yield lambda name=name: pyc.compile(RELU, **{name[:-2] + name[-1]: 1}), [name[:-2] + name[-1], name]
    for name, value, words in [
        ("device", "cpuu", ["cpuu", "cpu"]),
        ("determinism", "strickt", ["strickt", "strict"]),
        ("threads", -1, ["threads", "-1"]),
        ("threads", 5000, ["threads", "1024"]),
        ("threads", "many", ["threads", "many"]),
        ("lanes", 5, ["lanes", "8"]),
        ("fuse", "perhaps", ["fuse", "off"]),
        ("precision", "f31", ["f31", "f32"]),
        ("target", "arm64", ["arm64", "aarch64"]),
        ("memory_budget", 10, ["10", ("budget", "bytes")]),
        ("dim", {"batch": 4}, ["batch"]),
        ("shape", {"z": (2, 8)}, ["z"]),
        ("memory_budget", -5, ["memory_budget", "-5"]),
        ("loop_limit", 0, ["loop_limit", "1"]),
        ("shape", {"x": (2, 9)}, ["x", "9"]),
        ("reuse", 3, ["reuse", "off"]),
        ("device", "gpu", ["gpu", "cpu"]),
    ]:
        yield lambda name=name, value=value: pyc.compile(RELU, **{name: value}), words


NAMED = model_with(
    [helper.make_node("Add", ["input_ids", "attention_mask"], ["sum"]), helper.make_node("Relu", ["sum"], ["last_hidden"])],
    [tensor_info("input_ids", ["batch", 8]), tensor_info("attention_mask", ["batch", 8])],
    [tensor_info("last_hidden", None)],
)


def feeds():
    session = pyc.InferenceSession(NAMED.SerializeToString())
    for wrong in ("input_id", "inputs_ids", "inputids", "Input_ids", "input_idz"):
        yield lambda wrong=wrong: session.run(None, {wrong: ROW, "attention_mask": ROW}), [wrong, "input_ids"]
    for wrong in ("attention", "attention_msk", "atention_mask", "mask"):
        yield lambda wrong=wrong: session.run(None, {"input_ids": ROW, wrong: ROW}), [wrong, "attention_mask"]
    yield lambda: session.run(None, {"input_ids": ROW}), ["attention_mask", "missing"]
    yield lambda: session.run(None, {}), ["input_ids", "missing"]
    for wrong in ("last_hiden", "lasthidden", "output"):
        yield lambda wrong=wrong: session.run([wrong], {"input_ids": ROW, "attention_mask": ROW}), [wrong, "last_hidden"]
    yield lambda: session.run(None, {"input_ids": ROW, "attention_mask": ROW[:1]}), ["batch", "attention_mask"]
    model = pyc.compile(NAMED)
    yield lambda: model(ROW), ["2", "1"]
    yield lambda: model(ROW, ROW, ROW), ["2", "3"]
    yield lambda: model(ROW, input_ids=ROW), ["input_ids", "position"]


def arrays():
    model = pyc.compile(RELU)
    for shape in [(2, 7), (3, 8), (8, 2), (0, 8), (2, 80), (1, 8)]:
        yield lambda shape=shape: model(np.ones(shape, np.float32)), ["'x'", "f32[2,8]", f"f32[{shape[0]},{shape[1]}]"]
    for rank in (0, 1, 3, 4, 5):
        yield lambda rank=rank: model(np.ones((2,) * rank, np.float32)), ["'x'", "f32[2,8]"]
    for dtype, name in [("f8", "f64"), ("i4", "i32"), ("i8", "i64"), ("u1", "u8"), ("?", "bool"), ("f2", "f16"), ("c8", "c64")]:
        yield lambda dtype=dtype: model(ROW.astype(dtype)), ["'x'", "f32", name]


def run_time():
    for op, limit in [("Gather", 5), ("GatherElements", 5)]:
        for index in (5, -6, 1000):
            node = helper.make_node(op, ["x", "i"], ["y"], name=f"pick_{op}")
            infos = [tensor_info("x", [limit, 2]), tensor_info("i", [1, 1], INT64)]
            model = pyc.compile(model_with([node], infos, [tensor_info("y", None)]))
            yield lambda model=model, i=index: model(np.ones((5, 2), np.float32), np.array([[i]])), [f"pick_{op}", "range"]


def builder():
    def build(call):
        def run():
            b = pyc.ModelBuilder()
            call(b, b.input("x", "f32", (2, 8)))

        return run

    yield build(lambda b, x: b.op("softmex", [x])), ["softmex", "softmax"]
    yield build(lambda b, x: b.op("matmull", [x, x])), ["matmull", "matmul"]
    yield build(lambda b, x: b.op("gelo", [x])), ["gelo", "gelu"]
    yield build(lambda b, x: b.softmax(x, axes=1)), ["softmax", "axes", "axis"]
    yield build(lambda b, x: b.transpose(x, prem=(1, 0))), ["transpose", "prem", "perm"]
    yield build(lambda b, x: b.reshape(x, (3, 5))), ["reshape", "[2,8]", "[3,5]"]
    yield build(lambda b, x: b.matmul(x, x)), ["matmul", "[2,8]"]
    yield build(lambda b, x: b.add(x, b.input("z", "i64", (2, 8)))), ["add", "i64"]
    yield build(lambda b, x: b.input("x", "f32", (1,))), ["x"]
    yield build(lambda b, x: b.input("z", "bf61", (1,))), ["bf61", "bf16"]
    yield build(lambda b, x: b.input("z", "f32", (-2,))), ["z", "-2"]
    yield build(lambda b, x: b.relu(x, x)), ["relu", "2"]
    yield build(lambda b, x: b.compile()), ["output"]


def stepping():
    """A builder: total.next = total + x."""
    b = pyc.ModelBuilder("counter")
    total = b.input("total", "f32", (2, 8))
    b.output(b.add(total, b.input("x", "f32", (2, 8)), name="total.next"))
    b.output(b.matmul(total, b.constant("w", np.ones((8, 3), np.float32)), name="y"))
    return b


def states():
    b = stepping()
    for pair, words in [
        ({"totl": "total.next"}, ["totl"]),
        ({"total": "total.nxt"}, ["total.nxt"]),
        ({"total": "y"}, ["total", "[2,3]"]),
        ({"w": "total.next"}, ["'w'"]),
    ]:
        yield lambda pair=pair: b.compile(state=pair), ["state", *words]
    model = b.compile(state={"total": "total.next"})
    yield lambda: model(ROW, ROW), ["2", "1"]
    yield lambda: model(total=ROW), ["total", "x"]
    yield lambda: model.set_state("total", ROW[:, :7]), ["total", "[2,8]", "[2,7]"]
    yield lambda: model.set_state("total", ROW.astype("f8")), ["total", "f32", "f64"]
    yield lambda: model.get_state("totl"), ["totl", "did you mean 'total'"]


def contracts():
    b = stepping()
    for contract, words in [
        ({"memory_budget": 8}, ["memory_budget", "8"]),
        ({"memory_buget": 8}, ["memory_buget", "memory_budget"]),
        ({"threads": "two"}, ["threads", "two"]),
        ({"determinism": "strickt"}, ["determinism", "strickt", "strict"]),
        ({"device": "gpu"}, ["device", "gpu"]),
        ({"latency_target_us": -3}, ["latency_target_us", "-3"]),
    ]:
        yield lambda contract=contract: b.compile(contract=contract), words


def training():
    b = pyc.ModelBuilder("line")
    b.output(b.input("x", "f32", (2, 8)) @ b.constant("w", np.ones((8, 3), np.float32)), "y")
    for options, words in [
        ({"los": "mse"}, ["los", "loss"]),
        ({"loss": "msee"}, ["loss", "msee", "mse"]),
        ({"optimizer": "adm"}, ["optimizer", "adm", "adamw"]),
        ({"lr": -1}, ["lr", "-1"]),
    ]:
        yield lambda options=options: pyc.Trainer(b, **options), words
    target = np.ones((2, 3), np.float32)
    trainer = pyc.Trainer(b, loss="mse")
    yield lambda: trainer.step(ROW[:, :7], target), ["x", "[2,8]", "[2,7]"]
    yield lambda: trainer.step(ROW, target[:1]), ["target", "[2,3]", "[1,3]"]
    yield lambda: trainer.step(ROW), ["2", "1"]
    yield lambda: trainer.set_state({"v": target}), ["'v'", "w"]
    yield lambda: trainer.data("no/rows.npz"), ["no/rows.npz"]


FAMILIES = [
    shapes_at_a_node,
    unknown_ops,
    bad_attributes,
    bad_dtypes,
    bad_shapes,
    broken_graphs,
    files,
    options,
    feeds,
    arrays,
    run_time,
    builder,
    states,
    contracts,
    training,
]
