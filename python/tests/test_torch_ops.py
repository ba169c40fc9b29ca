"""Every op of the table of ATen ops against eager torch."""

import operator

import pyc
import pytest

torch = pytest.importorskip("torch", reason="NOT RUN (torch is not installed)")

import torch_cases  # noqa: E402
from pyc import torch as pyc_torch  # noqa: E402
from pyc.torch.reader import Reader  # noqa: E402
from pyc.torch.table import DTYPES  # noqa: E402

CASES = torch_cases.by_op()
TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}


def overload(name):
    packet, _, which = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), which or "default")


class OneNode:
    """An op with its arguments as a graph of torch.fx; what eager makes of them are the types of its outputs."""

    def __init__(self, name, args, options):
        options = dict(options)
        used = options.pop("used", None)
        self.expected = overload(name)(*args, **options)
        self.graph = torch.fx.Graph()
        self.inputs = []
        args, options = torch.utils._pytree.tree_map_only(torch.Tensor, self._placeholder, (args, options))
        self.node = self.graph.call_function(overload(name), tuple(args), options)
        self.node.meta["val"] = self.expected
        self.outputs = [self.node]
        if isinstance(self.expected, (list, tuple)):
            kept = sorted(range(len(self.expected)) if used is None else used)
            self.outputs = [self.graph.call_function(operator.getitem, (self.node, i)) for i in kept]
            self.expected = [self.expected[i] for i in kept]
        else:
            self.expected = [self.expected]

    def _placeholder(self, tensor):
        for node, known in self.inputs:
            if known is tensor:
                return node
        node = self.graph.placeholder(f"x{len(self.inputs)}")
        self.inputs.append((node, tensor))
        return node

    def run(self, device):
        builder = pyc.ModelBuilder()
        reader = Reader(builder)
        for node, tensor in self.inputs:
            reader.env[node] = builder.input(node.name, DTYPES[tensor.dtype], tensor.shape)
        for node in self.graph.nodes:
            if node.op == "call_function":
                reader.read(node)
        for node in self.outputs:
            builder.output(builder.identity(reader.env[node]))
        model = builder.compile(device=device, threads=1)
        return model.run([tensor for _, tensor in self.inputs], tensors=True)


def assert_equal(expected, found, what):
    found = torch.from_dlpack(found)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    if not expected.dtype.is_floating_point:
        assert torch.equal(expected, found), f"{what}: expected {expected}, found {found}"
        return
    tolerance = TOLERANCE[expected.dtype]
    expected, found = expected.double(), found.double()
    finite = expected[expected.isfinite()].abs()
    scale = min(1.0, finite.max().item()) if len(finite) else 1.0
    close = torch.isclose(found, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    assert close.all(), f"{what}: expected {expected[~close][:8]}, found {found[~close][:8]}"


def described(name, args):
    kinds = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: f"{DTYPES[t.dtype]}{list(t.shape)}", args)
    return f"{name}{kinds}"


@pytest.mark.parametrize("name", sorted(CASES))
def test_against_eager(name):
    """All cases on the interpreter, the first on the CPU too: both give the same bits."""
    ran, refused = 0, []
    for args, options in CASES[name]:
        try:
            case = OneNode(name, args, options)
        except (RuntimeError, NotImplementedError, IndexError, TypeError):
            continue  # eager refuses it
        if any(e.dtype not in DTYPES for e in case.expected):
            continue
        try:
            found = case.run("reference")
        except pyc_torch.UnsupportedTorchError as error:
            assert error.op == f"aten.{name}"
            refused.append(described(name, args))
            continue
        for expected, one in zip(case.expected, found):
            assert_equal(expected, one, described(name, args))
        if not ran:
            for expected, one in zip(case.expected, case.run("cpu")):
                assert_equal(expected, one, described(name, args))
        ran += 1
    assert ran, f"refused: {refused}"


def test_every_op_of_the_table_has_cases():
    table = set(pyc_torch.supported_ops())
    assert len(table) >= 150
    assert table - set(CASES) == torch_cases.WITHOUT_CASES
    assert set(CASES) - table == set()


def test_core_aten():
    """At least 150 ops that torch tags as core, and which are not there is known."""
    core = set()
    for packet in (getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)):
        for which in getattr(packet, "overloads", list)():
            if torch.Tag.core in getattr(packet, which).tags:
                core.add(f"{packet._qualified_op_name.split('::')[1]}.{which}".removesuffix(".default"))
    assert len(core & set(pyc_torch.supported_ops())) >= 150
