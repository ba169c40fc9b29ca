"""pyc.from_torch: exported programs in PyC's builder."""

import gc
import pickle

import numpy as np
import pyc
import pytest

torch = pytest.importorskip("torch", reason="NOT RUN (torch is not installed)")

import torch_models  # noqa: E402
from pyc.torch import UnsupportedTorchError  # noqa: E402
from torch import nn  # noqa: E402
from torch.export import Dim, export  # noqa: E402


def assert_parity(expected, found):
    expected = [x.detach().numpy() for x in torch.utils._pytree.tree_leaves(expected)]
    assert len(expected) == len(found)
    for right, one in zip(expected, found):
        np.testing.assert_allclose(one, right, rtol=0, atol=1e-4 * np.abs(right).max())


class Plain(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


@pytest.mark.parametrize("name", list(torch_models.MODELS))
def test_modules(name):
    module, inputs = torch_models.make(name)
    builder = pyc.from_torch(export(module, tuple(inputs)))
    assert_parity(module(*inputs), builder.compile(threads=1).run(inputs))
    assert builder.copied_bytes == 0


def test_weights_are_shared_and_kept():
    """Without a copy: the graph reads what torch's memory holds when it is compiled, and keeps it alive."""
    layer = nn.Linear(4, 3).eval()
    program = export(layer, (torch.ones(2, 4),))
    builder = pyc.from_torch(program)
    with torch.no_grad():
        layer.weight.mul_(2)
    x = torch.randn(2, 4)
    expected = layer(x)
    del layer, program
    gc.collect()
    assert_parity(expected, builder.compile(threads=1).run([x]))


def test_a_decoder_with_its_cache():
    torch.manual_seed(0)
    module = torch_models.Decoder().eval()
    tokens = torch.randint(0, 100, (1, 5))
    logits, cache = module(tokens)
    model = pyc.from_torch(export(module, (tokens[:, :1], cache))).compile(threads=1)
    flat = [tokens[:, :1], *torch.utils._pytree.tree_leaves(cache)]
    assert_parity(module(tokens[:, :1], cache), model.run([t.detach() for t in flat]))


def test_names_and_what_compile_takes(tmp_path):
    module, inputs = torch_models.make("mlp")
    program = export(module, tuple(inputs))
    model = pyc.from_torch(program).compile()
    assert [port.name for port in model.inputs] == ["input"]
    assert len(model.outputs) == 1
    np.testing.assert_array_equal(pyc.compile(program)(inputs[0]), model(inputs[0]))
    pyc.compile_to_file(program, tmp_path / "mlp.pycm")
    np.testing.assert_array_equal(pyc.compile(tmp_path / "mlp.pycm")(inputs[0]), model(inputs[0]))


def test_open_dims_are_given():
    module, (x,) = torch_models.make("mlp")
    program = export(module, (x,), dynamic_shapes=({0: Dim("batch", min=2, max=16)},))
    with pytest.raises(pyc.InvalidArgumentError, match="open dims"):
        pyc.from_torch(program)
    x = torch.randn(7, 32)
    assert_parity(module(x), pyc.from_torch(program, shape={"input": (7, 32)}).compile().run([x]))
    for shape, error in (((99, 32), "outside"), ((7, 33), "where the program has 32"), ((7,), "dims")):
        with pytest.raises(pyc.InvalidArgumentError, match=error):
            pyc.from_torch(program, shape={"input": shape})
    with pytest.raises(pyc.UnknownOptionError, match="no input"):
        pyc.from_torch(program, shape={"x": (7, 32), "input": (7, 32)})


def test_open_dims_that_belong_together():
    batch = Dim("batch")
    program = export(
        Plain(torch.add), (torch.ones(4, 2), torch.ones(4, 1)), dynamic_shapes={"args": ({0: batch}, {0: batch})}
    )
    names = [spec.arg.name for spec in program.graph_signature.input_specs]
    with pytest.raises(pyc.ShapeMismatchError, match="where the program has 3"):
        pyc.from_torch(program, shape={names[0]: (3, 2), names[1]: (5, 1)})
    assert pyc.from_torch(program, shape={names[0]: (3, 2), names[1]: (3, 1)}).compile()(
        torch.ones(3, 2), torch.ones(3, 1)
    ).shape == (3, 2)


def test_what_is_not_supported_is_named():
    class Bessel(nn.Module):
        def forward(self, x):
            y = x + 1
            return torch.special.i0(y)

    with pytest.raises(UnsupportedTorchError) as caught:
        pyc.from_torch(export(Bessel(), (torch.ones(3),)))
    error = caught.value
    assert isinstance(error, pyc.UnsupportedError)
    assert "i0" in error.op
    assert error.node
    assert error.source.startswith(f"{__file__}:") and "torch.special.i0(y)" in error.source
    assert error.op in str(error) and error.source in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.op, again.node, again.source, str(again)) == (error.op, error.node, error.source, str(error))


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda x: x.to(torch.complex64), "complex64"),
        (lambda x: torch.nn.functional.avg_pool2d(x[None, None], 2, divisor_override=3), "divisor_override"),
        (lambda x: torch.rand_like(x), "no such op"),
        (lambda x: torch.scatter_reduce(x, 0, torch.zeros(4, 4, dtype=torch.long), x, "mean"), "mean"),
        (
            lambda x: torch.scatter_reduce(x, 0, torch.zeros(4, 4, dtype=torch.long), x, "sum", include_self=False),
            "include_self",
        ),
        (lambda x: x.view(torch.int32), "bits of floats"),
    ],
)
def test_attributes_that_are_not_handled_are_refused(function, reason):
    with pytest.raises(UnsupportedTorchError, match=reason):
        pyc.from_torch(export(Plain(function), (torch.ones(4, 4),)))


def test_mutation_is_refused():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen += x
            return self.seen * 2

    with pytest.raises(UnsupportedTorchError, match="seen"):
        pyc.from_torch(export(Counter(), (torch.ones(3),)))
    with pytest.raises(UnsupportedTorchError, match="changes"):
        pyc.from_torch(export(Plain(lambda x: x.add_(1)), (torch.ones(3),)))


def test_outputs_that_are_inputs_weights_and_twice_the_same():
    class Several(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.arange(3.0))

        def forward(self, x):
            y = x + self.w
            return x, y, y, self.w, self.w.T * 1

    program = export(Several(), (torch.ones(3),))
    assert_parity(Several()(torch.ones(3)), pyc.from_torch(program).compile().run([torch.ones(3)]))


def test_modules_that_were_not_exported_are_told_how():
    module = nn.Linear(4, 3)
    with pytest.raises(pyc.InvalidArgumentError, match=r"not Linear: pass torch.export.export\(module, inputs\), or"):
        pyc.compile(module)
    with pytest.raises(pyc.InvalidArgumentError, match=r"torch.export.export\(module, inputs\) returns, not Linear"):
        pyc.from_torch(module)
