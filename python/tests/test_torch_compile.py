"""torch.compile(f, backend="pyc"): parity with eager, visible breaks, shapes, weights that change."""

import logging

import pyc
import pytest

torch = pytest.importorskip("torch", reason="NOT RUN (torch is not installed)")

import torch_models  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    pyc.torch_report(clear=True)
    with torch.no_grad():
        yield


def compiled(function, **options):
    return torch.compile(function, backend="pyc", options={"threads": 1, **options})


def assert_parity(expected, found):
    """1e-4 of the scale, integers exactly."""
    expected, found = torch.utils._pytree.tree_leaves(expected), torch.utils._pytree.tree_leaves(found)
    assert len(expected) == len(found)
    for right, one in zip(expected, found):
        assert (right.dtype, right.shape, right.stride()) == (one.dtype, one.shape, one.stride())
        if right.dtype.is_floating_point:
            scale = right.abs().max().item() if right.numel() else 0.0
            torch.testing.assert_close(one, right, rtol=0, atol=1e-4 * scale, equal_nan=True)
        else:
            assert torch.equal(one, right)


def whole(reports):
    return reports and all(r.compiled == r.nodes and not r.breaks and not r.eager for r in reports)


@pytest.mark.parametrize("name", [name for name in torch_models.MODELS if name != "lstm"])
def test_modules(name):
    module, inputs = torch_models.make(name)
    run = compiled(module)
    for _ in range(2):
        assert_parity(module(*inputs), run(*inputs))
    assert whole(pyc.torch_report())
    assert pyc.torch_report()[0].programs == 1
    assert pyc.torch_report()[0].frozen_bytes > 0


def test_lstm_is_eager_for_dynamo_and_whole_when_let_in():
    module, inputs = torch_models.make("lstm")
    assert_parity(module(*inputs), compiled(module)(*inputs))
    torch._dynamo.reset()
    pyc.torch_report(clear=True)
    with torch._dynamo.config.patch(allow_rnn=True):
        assert_parity(module(*inputs), compiled(module)(*inputs))
    assert whole(pyc.torch_report())


def test_a_growing_cache():
    """One length compiles a graph of its own, the next an open one; each length is a plan of that, and from the third
    on they find all code with those before: what attends to the cache is attention, which takes its length as an
    argument. A product whose sums have that length would be made for each."""
    torch.manual_seed(0)
    module = torch_models.Decoder().eval()
    run = compiled(module)
    tokens = torch.randint(0, 100, (1, 64))
    right, cache = module(tokens[:, :4])
    found, mine = run(tokens[:, :4])
    assert_parity(right, found)
    generated = []
    for i in range(4, 64):
        right, cache = module(tokens[:, i : i + 1], cache)
        found, mine = run(tokens[:, i : i + 1], mine)
        assert_parity((right, cache), (found, mine))
        generated.append(sum(r.generated for r in pyc.torch_report()))
    assert generated[-1] == generated[3] > 0
    reports = pyc.torch_report()
    assert whole(reports)
    assert len(reports) <= 4
    assert sum(r.shapes for r in reports) == 61


def test_plans_share_weights():
    """A weight and each view of it are constants once, whatever tensor object a reading has for them."""
    from pyc.torch.reader import Weights

    weight = torch.randn(4, 3)
    shared = Weights([weight])
    turned = shared.constant(weight.t())
    assert turned.shape == (3, 4)
    assert shared.constant(weight.t()) is turned
    assert shared.constant(weight) is not turned
    assert shared.constant(weight.clone()) is None
    assert len(shared.found) == 2


def test_open_dims_and_their_bound():
    module, _ = torch_models.make("mlp")
    run = compiled(module, max_shapes=3)
    for batch in (5, 6, 7, 8, 9, 5):
        x = torch.randn(batch, 32)
        torch._dynamo.mark_dynamic(x, 0)
        assert_parity(module(x), run(x))
    (report,) = pyc.torch_report()
    assert (report.shapes, report.dropped) == (6, 3)
    assert "6 shapes" in str(report)


def test_what_is_not_supported_stays_eager(caplog):
    def function(x):
        y = torch.special.i0(x.relu() + 1)
        return torch.fft.rfft(y).abs() + 1, y * 2

    x = torch.randn(3, 8)
    with caplog.at_level(logging.WARNING, "pyc.torch"):
        assert_parity(function(x), compiled(function)(x))
    (report,) = pyc.torch_report()
    ops = [one.op for one in report.breaks]
    assert "aten.special_i0" in ops or "aten.i0" in ops
    assert any("_fft_r2c" in op for op in ops)
    assert report.breaks[0].source.startswith(__file__)
    assert "torch.special.i0" in report.breaks[0].source
    assert 0 < report.compiled < report.nodes
    assert "stays eager" in caplog.text


def test_random_numbers_are_drawn_in_the_order_of_eager():
    def function(x):
        a = torch.rand(3) * x
        b = torch.special.i0(a)
        return a, torch.rand(3) + b, torch.nn.functional.dropout(x, 0.5, True)

    x = torch.randn(3)
    run = compiled(function)
    torch.manual_seed(1)
    right = function(x)
    torch.manual_seed(1)
    assert_parity(right, run(x))


def test_all_of_a_graph_eager():
    def function(x):
        return torch.special.i0(x)

    x = torch.randn(3)
    assert_parity(function(x), compiled(function)(x))
    (report,) = pyc.torch_report()
    assert "i0" in report.eager
    assert "eager" in str(report)


def test_weights_that_are_written_to():
    module, inputs = torch_models.make("mlp")
    run = compiled(module)
    for step in range(5):
        assert_parity(module(*inputs), run(*inputs))
        module[0].weight.add_(0.1)
    assert_parity(module(*inputs), run(*inputs))
    (report,) = pyc.torch_report()
    assert report.recompiled == 2  # then they are inputs
    module[0].weight.data.mul_(2)
    assert_parity(module(*inputs), run(*inputs))


def test_new_weights():
    module, inputs = torch_models.make("mlp")
    run = compiled(module)
    run(*inputs)
    module.load_state_dict({key: value + 1 for key, value in module.state_dict().items()})
    assert_parity(module(*inputs), run(*inputs))


def test_writes_behind_the_back_of_autograd():
    """`.data` is not counted by torch: a sample of the weight's bytes tells."""
    module, inputs = torch_models.make("mlp")
    run = compiled(module)
    run(*inputs)
    module[0].weight.data.mul_(1.5)
    assert_parity(module(*inputs), run(*inputs))
    module[2].weight.numpy()[:] += 1
    assert_parity(module(*inputs), run(*inputs))


def test_weights_as_inputs():
    module, inputs = torch_models.make("mlp")
    run = compiled(module, freeze=False)
    assert_parity(module(*inputs), run(*inputs))
    module[0].weight.data[0, 0] = 7
    assert_parity(module(*inputs), run(*inputs))
    (report,) = pyc.torch_report()
    assert (report.frozen_bytes, report.recompiled) == (0, 0)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen += x.sum(0)
        x.mul_(2)
        return x + self.seen


def test_mutation_of_inputs_and_buffers():
    mine, theirs = Counter(), Counter()
    run = compiled(mine)
    for _ in range(3):
        x = torch.randn(3, 4)
        y = x.clone()
        assert_parity(theirs(y), run(x))
        assert_parity((y, theirs.seen), (x, mine.seen))
    assert pyc.torch_report()[0].recompiled == 0


def test_batch_norm_that_trains():
    torch.manual_seed(0)
    mine, theirs = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    run = compiled(mine)
    for _ in range(2):
        x = torch.randn(4, 3, 5, 5)
        assert_parity(theirs(x), run(x))
        assert_parity(list(theirs.buffers()), list(mine.buffers()))


def test_strides_in_and_out():
    def function(x):
        return (x + 1).transpose(0, 1), x * 2, x[:, ::2] - 1

    x = torch.randn(6, 4).T
    run = compiled(function)
    assert_parity(function(x), run(x))
    assert pyc.torch_report()[0].staged_views > 0
    module = torch.nn.Conv2d(3, 4, 3)
    image = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    found = compiled(module)(image)
    assert found.stride() == module(image).stride()
    assert_parity(module(image), found)


def test_row_major_memory_is_used_in_place():
    def function(x, y):
        return x * 2 + y, x - y

    x, y = torch.randn(3, 4), torch.randn(4)
    a, b = compiled(function)(x, y)
    assert pyc.torch_report()[0].staged_views == 0
    a.add_(1)  # torch's own memory, which may be written to
    b.resize_(20)


def test_views_of_inputs_and_constants():
    def function(x):
        return x.T, x, 3, x.reshape(-1)[2:], torch.arange(4), x.shape[0]

    x = torch.randn(3, 4)
    found = compiled(function)(x)
    assert_parity([v for v in function(x) if torch.is_tensor(v)], [v for v in found if torch.is_tensor(v)])
    assert found[0].data_ptr() == x.data_ptr()
    assert found[5] == 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8])
def test_dtypes(dtype):
    def function(x, y):
        return (
            torch.where(x > y, x, y),
            x == y,
            (x | y) if dtype in (torch.bool, torch.uint8) else x * y,
            x.sum(0),
            x.float().mean(),
        )

    x, y = torch.arange(12).reshape(3, 4).to(dtype), torch.arange(4).to(dtype)
    assert_parity(function(x, y), compiled(function)(x, y))


def test_empty_and_scalar_inputs():
    def function(x, s):
        return x * s, x.sum(), s + 1

    x, s = torch.empty(0, 4), torch.tensor(2.0)
    assert_parity(function(x, s), compiled(function)(x, s))


def test_training():
    """Forward and backward are graphs as others; gradients are those of eager."""
    with torch.enable_grad():
        for name in ("mlp", "cnn"):
            torch._dynamo.reset()
            pyc.torch_report(clear=True)
            module, inputs = torch_models.make(name)
            module.train()
            again = torch_models.make(name)[0].train()
            run = compiled(module)
            run(*inputs).square().sum().backward()
            again(*inputs).square().sum().backward()
            for mine, theirs in zip(module.parameters(), again.parameters()):
                scale = theirs.grad.abs().max().item()
                torch.testing.assert_close(mine.grad, theirs.grad, rtol=0, atol=2e-4 * max(scale, 1e-3))
            assert [r.name.split()[0] for r in pyc.torch_report()] == ["forward", "backward"]


def test_an_optimizer_step_between_runs():
    with torch.enable_grad():
        module, inputs = torch_models.make("mlp")
        again = torch_models.make("mlp")[0]
        run = compiled(module)
        for model, call in ((module, run), (again, again)):
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            for _ in range(3):
                optimizer.zero_grad()
                call(*inputs).square().mean().backward()
                optimizer.step()
    assert_parity(again(*inputs), run(*inputs))


def test_threads_share_a_graph():
    from concurrent.futures import ThreadPoolExecutor

    module, inputs = torch_models.make("mlp")
    run = compiled(module)
    right = module(*inputs)
    run(*inputs)

    def once(_):
        with torch.no_grad():
            return run(*inputs)

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(once, range(16)):
            assert_parity(right, found)


def test_inference_mode():
    module, inputs = torch_models.make("cnn")
    run = compiled(module)
    with torch.inference_mode():
        assert_parity(module(*inputs), run(*inputs))


def test_options():
    module, inputs = torch_models.make("mlp")
    with pytest.raises(Exception, match="max_shapes"):
        compiled(module, max_shapes=0)(*inputs)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="thread"):
        compiled(module, thread=1)(*inputs)


def test_the_name_of_the_backend():
    assert "pyc" in torch._dynamo.list_backends(exclude_tags=())
