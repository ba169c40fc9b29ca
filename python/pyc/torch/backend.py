"""torch.compile(f, backend="pyc")."""

from __future__ import annotations

import threading
from collections import OrderedDict

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from .. import _native, errors
from ..model import option_list
from .plan import Plan, Planner, WholeGraphEager
from .reader import Facts, Weights
from .report import LOG, REPORTS, GraphReport
from .run import Program
from .table import op_name, supported_ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Weights that were written to this often are inputs from then on.
_REFREEZES = 2


def backend(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Any:
    """Compiles a graph of dynamo's. Options are those of pyc.compile, and `freeze` and `max_shapes` (docs/python.md)."""
    settings = Settings(dict(options or {}))
    compiler = aot_autograd(
        fw_compiler=lambda graph, _: Compiled(graph, settings, "forward").boxed(),
        bw_compiler=lambda graph, _: Compiled(graph, settings, "backward").boxed(),
        inference_compiler=lambda graph, _: Compiled(graph, settings, "inference").boxed(),
        decompositions=_decompositions(),
    )
    return compiler(module, inputs)


class Settings:
    def __init__(self, options: dict[str, Any]) -> None:
        self.freeze = bool(options.pop("freeze", True))
        self.max_shapes = int(options.pop("max_shapes", 64))
        if self.max_shapes < 1:
            raise errors.InvalidArgumentError("max_shapes is at least 1", "max_shapes")
        options.setdefault("threads", torch.get_num_threads())
        known = [name for name, _, _ in _native.options()]
        for name in options:
            if name not in known:
                near = _native.closest_name(name, [*known, "freeze", "max_shapes"])
                hint = f": did you mean '{near}'?" if near else ""
                raise errors.UnknownOptionError(f"there is no option '{name}'{hint}", name)
        self.contract: Mapping[str, object] = options


def _decompositions() -> dict[Any, Any]:
    """Down to core ATen, but for what the table has."""
    known = set(supported_ops())
    table = torch._decomp.core_aten_decompositions()
    return {target: rule for target, rule in table.items() if op_name(target) not in known}


def _static_inputs() -> set[int]:
    """Which inputs are parameters and buffers, and not written to by the graph itself."""
    context = torch._guards.TracingContext.try_get()
    meta = context.fw_metadata if context is not None else None
    if meta is None:
        return set()
    written = {i for i, info in enumerate(meta.input_info) if info.mutates_data or info.mutates_metadata}
    return set(meta.static_input_indices or ()) - written


class Compiled:
    """One graph: a plan for each set of sizes it meets."""

    _count = 0

    def __init__(self, module: torch.fx.GraphModule, settings: Settings, kind: str) -> None:
        Compiled._count += 1
        self.module, self.settings = module, settings
        self.placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        (output,) = (node for node in module.graph.nodes if node.op == "output")
        self.results = list(output.args[0])
        calls = [n for n in module.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)]
        self.report = GraphReport(f"{kind} {Compiled._count}", len(calls))
        REPORTS.append(self.report)
        self.open = [i for i, node in enumerate(self.placeholders) if _is_open(node.meta.get("val"))]
        # Plans of other sizes find the code that is there already; hashing weights for a cache would only take time.
        shared = option_list({"cache": False, **settings.contract})
        self.code = _native.SharedCode(shared) if self.open else None
        self.may_freeze = kind == "inference" and settings.freeze
        self.weights = sorted(_static_inputs()) if self.may_freeze else []
        self.refreezes = 0
        self.plans: OrderedDict[Any, _Bound] = OrderedDict()
        self.facts: dict[torch.fx.Node, Facts] = {}
        self.shared: Weights | None = None  # of plans of several sizes
        self.lock = threading.Lock()
        self._refuse_other_devices()

    def boxed(self) -> Any:
        return make_boxed_func(self)

    def __call__(self, *args: Any) -> Any:
        if self.report.eager:
            return self.module(*args)
        bound = self._bound(args)
        return self.module(*args) if bound is None else bound.run(args, self.report)

    def _bound(self, args: Sequence[Any]) -> _Bound | None:
        key = tuple(a if isinstance(a, (int, float)) else tuple(a.shape) for a in (args[i] for i in self.open))
        with self.lock:
            bound = self.plans.get(key)
            if bound is not None and not bound.holds(args):
                self._rewritten()
                bound = None
            if bound is not None:
                self.plans.move_to_end(key)
                return bound
            try:
                bound = self._plan(args)
            except WholeGraphEager as why:
                self._all_eager(str(why))
                return None
            self.plans[key] = bound
            if len(self.plans) > self.settings.max_shapes:
                self.plans.popitem(last=False)
                self.report.dropped += 1
            return bound

    def _plan(self, args: Sequence[Any]) -> _Bound:
        known = dict(zip(self.placeholders, args))
        frozen = {self.placeholders[i] for i in self.weights}
        if self.code is not None and self.shared is None:
            self.shared = Weights(args[i] for i in self.weights)
        planner = Planner(
            self.module.graph, known, frozen, self.settings.contract, self.code, self.facts, self.shared
        )
        plan = planner.plan()
        self.report.shapes += 1
        self.report.compiled = plan.compiled
        programs = [step for step in plan.steps if isinstance(step, Program)]
        self.report.programs = len(programs)
        if self.code is not None:
            self.report.generated += sum(_generated(program) for program in programs)
        self.report.frozen_bytes = plan.frozen_bytes
        if not self.report.breaks:
            for one in plan.breaks:
                LOG.warning("%s", one)
        self.report.breaks = plan.breaks
        return _Bound(plan, planner, self.placeholders, self.results, args, self.weights)

    def _rewritten(self) -> None:
        """A weight is not what it was: all plans have the old one."""
        self.plans.clear()
        self.shared = None
        self.refreezes += 1
        self.report.recompiled += 1
        if self.refreezes >= _REFREEZES:
            LOG.warning("%s: its weights are written to again and again: they are inputs now", self.report.name)
            self.weights = []

    def _refuse_other_devices(self) -> None:
        for node in self.placeholders:
            found = node.meta.get("val")
            if isinstance(found, torch.Tensor) and (found.device.type != "cpu" or found.layout != torch.strided):
                self._all_eager(f"the input {node.name} is {found.layout} on {found.device}")
                return

    def _all_eager(self, why: str) -> None:
        self.report.eager = why
        LOG.warning("%s stays eager: %s", self.report.name, why)


def _generated(program: Program) -> int:
    """How many kernels were made for it, and not found with a plan of other sizes; devices that share none do not say."""
    told = (one["chosen"] for one in program.model.decisions()["decisions"] if one["what"] == "code")
    return sum(int(chosen.split()[0]) for chosen in told)


def _is_open(found: Any) -> bool:
    if isinstance(found, torch.Tensor):
        return any(not isinstance(d, int) for d in found.shape)
    return not isinstance(found, torch.Tensor)


class _Bound:
    """A plan with the weights it was made for."""

    def __init__(
        self,
        plan: Plan,
        planner: Planner,
        placeholders: list[Any],
        results: list[Any],
        args: Sequence[Any],
        weights: list[int],
    ) -> None:
        self.steps = plan.steps
        self.placeholders = placeholders
        made = {output.node for step in plan.steps if isinstance(step, Program) for output in step.outputs}
        eager = {step.node for step in plan.steps if not isinstance(step, Program)}
        there = made | eager | set(placeholders)
        self.results = [
            (n, None) if n in there else (None, planner.constant(n) if isinstance(n, torch.fx.Node) else n) for n in results
        ]
        self.weights = [(i, _mark(args[i])) for i in weights]
        self.watch = _native.Watch([_block(args[i]) for i in weights])

    def holds(self, args: Sequence[Any]) -> bool:
        """Whether the weights are what they were: the same tensors, not written to by torch since, and, for writes that
        it does not count, the same in a sample of their bytes."""
        return all(_mark(args[i]) == mark for i, mark in self.weights) and self.watch.holds()

    def run(self, args: Sequence[Any], report: GraphReport) -> list[Any]:
        env = dict(zip(self.placeholders, args))
        for step in self.steps:
            step.run(env)
            if isinstance(step, Program):
                report.staged_views += step.stats.staged_views
        report.runs += 1
        return [constant if node is None else env[node] for node, constant in self.results]


def _mark(tensor: torch.Tensor) -> tuple[int, int]:
    """Where a weight is, and how often torch wrote to it."""
    return tensor.data_ptr(), -1 if tensor.is_inference() else tensor._version


def _block(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes from a weight's first to its last element."""
    if tensor.numel() == 0:
        return tensor.data_ptr(), 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), (reach + 1) * tensor.element_size()
