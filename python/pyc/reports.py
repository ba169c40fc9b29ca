"""pyc.report: one page that shows what became of a model."""

from __future__ import annotations

import os

from . import _native
from .builder import ModelBuilder
from .errors import InvalidArgumentError, UnsupportedError
from .model import Model, compile, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .model import Contract

    Inputs = list[object] | tuple[object, ...] | Mapping[str, object] | None


def report(
    model: object,
    path: str | os.PathLike[str],
    inputs: Inputs = None,
    *,
    runs: int = 5,
    probe: bool = True,
    title: str | None = None,
    contract: Contract | None = None,
    **options: object,
) -> None:
    """Writes a report (docs/report.md): an HTML page, or its data where the name ends in .json.

    `model` is a Model or what pyc.compile takes, which is then compiled with the options. It is run once and then `runs`
    times on the inputs, by default drawn from a seed, and what the machine reaches at best is measured too (`probe`).
    What a model keeps from run to run is put back afterwards. A model that was compiled from bytes, or whose builder is
    gone, has no graph to show.
    """
    path = os.fspath(path)
    if isinstance(model, Model) and (options or contract is not None):
        name = next(iter(options), "contract")
        raise InvalidArgumentError(f"{name}: the model is compiled already; pass options to pyc.compile", name)
    compiled = model if isinstance(model, Model) else compile(model, contract=contract, **options)
    if title is None:
        title = os.path.basename(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else "model"
    step_ns = _measure(compiled, inputs, runs)
    flops, moved = _roofs(compiled) if step_ns and probe else (0.0, 0.0)
    text = compiled._native.report(_graph(compiled, model), title, step_ns, flops, moved, not path.endswith(".json"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _graph(compiled: Model, model: object) -> _native.Graph | None:
    if isinstance(model, ModelBuilder):
        return model.graph
    if compiled.is_open or compiled._source is None:
        return None
    try:
        return compiled._source()
    except UnsupportedError:  # a .pycm file has no graph
        return None


def _measure(model: Model, inputs: Inputs, runs: int) -> list[int]:
    """The time of each step, run after run; nothing of a model that is open, which has no steps."""
    if model.is_open or runs == 0:
        return []
    if inputs is None:
        given = _drawn(model)
    else:
        given = list(inputs) if isinstance(inputs, (list, tuple)) else in_order([p.name for p in model.inputs], inputs, ())
    kept = {state.name: model.get_state(state.name) for state in model.states}
    try:
        model.run(given, tensors=True)
        return [ns for _ in range(runs) for ns in model._native.profile(given)]
    finally:
        for name, value in kept.items():
            model.set_state(name, value)


def _drawn(model: Model) -> list[object]:
    return [
        _native.random_tensor(port.dtype or "f32", [dim for dim in port.shape or () if isinstance(dim, int)], seed)
        for seed, port in enumerate(model.inputs)
    ]


def _roofs(model: Model) -> tuple[float, float]:
    """Flop and bytes per nanosecond that the model's device and threads reach: a matrix product, and a pass over more
    memory than caches hold."""
    chosen = model.decisions()["options"]
    options = {name: chosen[name] for name in ("device", "threads", "determinism", "lanes")}
    generated = options["device"] == "cpu"
    n, elements = (384, 8 << 20) if generated else (48, 1 << 15)
    product = ModelBuilder("flops")
    product.output(product.input("x", "f32", (n, n)) @ product.random("w", "f32", (n, n), 1, -1.0, 1.0))
    copy = ModelBuilder("bytes")
    copy.output(copy.relu(copy.input("x", "f32", (elements,))))
    return 2.0 * n**3 / _fastest(product, options), 8.0 * elements / _fastest(copy, options)


def _fastest(builder: ModelBuilder, options: dict[str, Any], runs: int = 5) -> int:
    model = builder.compile(**options)
    inputs = _drawn(model)
    stats = _native.RunStats()
    times = []
    for _ in range(runs):
        model.run(inputs, stats=stats, tensors=True)
        times.append(stats.wall_ns)
    return max(1, min(times))
