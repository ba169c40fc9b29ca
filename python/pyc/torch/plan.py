"""How one graph of ATen's ops runs for one set of sizes: programs of PyC, with eager nodes between them."""

from __future__ import annotations

import operator

import torch
from torch.fx import Node

from .. import _native, errors
from ..builder import ModelBuilder, Value
from ..model import Model
from .errors import UnsupportedTorchError
from .reader import Facts, Missing, Reader, Weights, types_of
from .report import Break
from .run import EagerStep, Output, Program
from .table import DTYPES, TORCH_DTYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .run import Step


class WholeGraphEager(Exception):
    """No part of the graph can be compiled; its text is the reason."""


class Plan:
    """Steps in order, and what they compute: `breaks` stay eager."""

    def __init__(self, steps: list[Step], breaks: list[Break], compiled: int, frozen_bytes: int) -> None:
        self.steps = steps
        self.breaks = breaks
        self.compiled = compiled
        self.frozen_bytes = frozen_bytes


class Planner:
    """Reads a graph once to see what can be compiled, then makes a program of each part.

    `known` are the placeholders: tensors that are constants, fake or real ones that give dtype and shape, or numbers.
    `code`, where there is one, has the options and what plans of other sizes compiled.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        known: Mapping[Node, Any],
        frozen: set[Node],
        options: Mapping[str, Any],
        code: _native.SharedCode | None = None,
        facts: dict[Node, Facts] | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.code = code
        self.facts = {} if facts is None else facts
        self.weights = weights
        self.nodes = [node for node in graph.nodes if node.op == "call_function"]
        self.known, self.frozen, self.options = known, frozen, options
        (output,) = (node for node in graph.nodes if node.op == "output")
        self.results: list[Any] = list(output.args[0])
        self.breaks: list[Break] = []
        self.eager: set[Node] = set()
        self.read = Reader(ModelBuilder("torch"), self.facts, weights)

    def plan(self) -> Plan:
        self._place_inputs(self.read, self.known)
        for node in self.nodes:
            try:
                self.read.read(node)
            except UnsupportedTorchError as why:
                self._stay_eager(node, why)
        steps: list[Step]
        frozen = 0
        if self.eager:
            steps, frozen = self._steps()
        else:
            wanted = self._tensors(self.results)
            steps = [self._program(self.read, [n for n in self.known], wanted)] if wanted else []
            frozen = self.read.constant_bytes
        compiled = sum(1 for node in self.nodes if node not in self.eager and node.target is not operator.getitem)
        if not any(isinstance(step, Program) for step in steps) and self.eager:
            raise WholeGraphEager(str(self.breaks[0]))
        return Plan(steps, self.breaks, compiled, frozen)

    # ---- the first reading ----

    def _place_inputs(self, reader: Reader, known: Mapping[Node, Any]) -> None:
        for node, found in known.items():
            if not isinstance(found, torch.Tensor) or node in self.frozen:
                reader.env[node] = found
            elif found.dtype not in DTYPES:
                reader.env[node] = Missing(f"its input {node.name} is of {found.dtype}")
            else:
                reader.env[node] = reader.b.input(node.name, DTYPES[found.dtype], list(found.shape))

    def _stay_eager(self, node: Node, why: UnsupportedTorchError) -> None:
        types = types_of(node)
        if not all(t is None or isinstance(t, torch.Tensor) for t in types):
            raise WholeGraphEager(f"{why.op} ({node.name}) gives a number that depends on contents") from why
        if "as_strided" in why.op:
            raise WholeGraphEager(f"{why.op} ({node.name}) reads memory by strides, which are not kept") from why
        self.eager.add(node)
        self.read.env[node] = self._stand_in(node)
        if node.target is not operator.getitem:
            self.breaks.append(Break(why.op, node.name, why.reason, why.source))

    def _stand_in(self, node: Node) -> Any:
        """Inputs in the place of what the node gives, with the shapes it gives for these sizes."""
        try:
            shapes = self._shapes(node)
        except UnsupportedTorchError as why:
            return Missing(why.reason)
        except Exception as error:  # whatever a kernel of torch's says to tensors without contents
            return Missing(f"{node.name} has no shape before it runs: {error}")
        made = [self._input(f"{node.name}.{i}", found) for i, found in enumerate(shapes)]
        return made if isinstance(node.meta.get("val"), (list, tuple)) else made[0]

    def _shapes(self, node: Node) -> list[Any]:
        def stand_in(x: Any) -> Any:
            if isinstance(x, Missing):
                raise UnsupportedTorchError(x.why)
            if isinstance(x, Value):
                return torch.empty(x.shape, dtype=TORCH_DTYPES[x.dtype], device="meta")
            return x.to("meta") if isinstance(x, torch.Tensor) else x

        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: self.read.env[n])
        args, kwargs = torch.utils._pytree.tree_map(
            stand_in, (args, kwargs), is_leaf=lambda x: isinstance(x, (Value, Missing))
        )
        if isinstance(kwargs.get("device"), (torch.device, str)):
            kwargs = {**kwargs, "device": "meta"}
        target: Any = node.target
        found = target(*args, **kwargs)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def _input(self, name: str, found: Any) -> Any:
        if not isinstance(found, torch.Tensor):
            return found
        if found.dtype not in DTYPES:
            return Missing(f"its input {name} is of {found.dtype}")
        return self.read.b.input(name, DTYPES[found.dtype], list(found.shape))

    # ---- parts ----

    def _levels(self) -> dict[Node, int]:
        """Even levels are programs, odd ones eager; what a node needs has a level no higher. What draws random numbers
        keeps its order."""
        levels: dict[Node, int] = {}
        drawn = 1
        for node in self.nodes:
            if not self._is_step(node):
                continue
            parity = 1 if node in self.eager else 0
            needed = max((levels[n] for n in node.all_input_nodes if n in levels), default=parity)
            level = needed if needed % 2 == parity else needed + 1
            if parity and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
                level = drawn = max(level, drawn)
            levels[node] = level
        return levels

    def _is_step(self, node: Node) -> bool:
        """Whether it is computed in a run: sizes and constants are there."""
        found = self.read.env[node]
        return node in self.eager or isinstance(found, (Value, list, Missing))

    def _steps(self) -> tuple[list[Step], int]:
        levels = self._levels()
        for node in self.nodes:  # an element is where its list is
            if node.target is operator.getitem and node.args[0] in levels:
                levels[node] = levels[node.args[0]]
                if node.args[0] in self.eager:
                    self.eager.add(node)
        steps: list[Step] = []
        frozen = 0
        for level in sorted(set(levels.values())):
            part = [node for node in self.nodes if levels.get(node) == level]
            if level % 2:
                steps += [EagerStep(node, self._fixed(node)) for node in part]
                continue
            outside = [n for n in self.nodes if levels.get(n) != level]
            needed = {n for user in outside for n in user.all_input_nodes} | set(self._tensors(self.results))
            wanted = [n for n in part if n in needed and isinstance(self.read.env[n], Value)]
            if wanted:
                program, bytes_of = self._part(part, wanted)
                steps.append(program)
                frozen += bytes_of
        return steps, frozen

    def _part(self, part: list[Node], wanted: list[Node]) -> tuple[Program, int]:
        reader = Reader(ModelBuilder("torch"), self.facts, self.weights)
        inside = set(part)
        inputs = []
        for node in dict.fromkeys(n for user in part for n in user.all_input_nodes):
            if node in inside:
                continue
            found = self.read.env[node]
            if isinstance(found, Value):
                inputs.append(node)
                found = reader.b.input(node.name, found.dtype, list(found.shape))
            reader.env[node] = found
        for node in part:
            reader.read(node)
        return self._program(reader, inputs, wanted), reader.constant_bytes

    def _fixed(self, node: Node) -> dict[Node, Any]:
        """What an eager node reads that no step computes: sizes, and constants folded by torch."""
        found = ((n, self.read.env[n]) for n in node.all_input_nodes if n not in self.known)
        return {n: value for n, value in found if not isinstance(value, (Value, list, Missing))}

    def _tensors(self, nodes: Iterable[Any]) -> list[Node]:
        """Of results: those that a program has to give."""
        found = [n for n in nodes if isinstance(n, Node) and n.op == "call_function"]
        return list(dict.fromkeys(n for n in found if isinstance(self.read.env[n], (Value, torch.Tensor))))

    def _program(self, reader: Reader, inputs: list[Node], wanted: list[Node]) -> Program:
        outputs = []
        for node in wanted:
            value = reader.value(reader.env[node])
            reader.b.output(reader.b.op("identity", [value]))
            outputs.append(Output(node, value.dtype, value.shape, _order(types_of(node)[0])))
        taken = [node for node in inputs if isinstance(reader.env[node], Value)]
        try:
            if self.code is None:
                return Program(reader.b.compile(**self.options), taken, outputs)
            return Program(Model(reader.b.graph.compile_shared(self.code)), taken, outputs)
        except (errors.InvalidArgumentError, errors.BudgetExceededError):
            raise  # what the caller asked for cannot be
        except errors.Error as error:
            raise WholeGraphEager(f"compiling it failed: {error.message}") from error

    def constant(self, node: Node) -> Any:
        """A result that no step computes: a size, an input."""
        return self.read.env[node]


def _order(fake: torch.Tensor) -> list[int] | None:
    """The dims from slowest to fastest as torch laid them out; None when that is row-major, or no dense memory."""
    hints = [s if isinstance(s, int) else s.node.hint for s in (*fake.shape, *fake.stride())]
    shape, strides = hints[: fake.dim()], hints[fake.dim() :]
    if 0 in shape:
        return None
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], -shape[i] == -1, i))
    expected = 1
    for i in reversed(order):
        if shape[i] != 1 and strides[i] != expected:
            return None
        expected *= shape[i]
    kept = [i for i in order if shape[i] != 1]
    return None if kept == sorted(kept) else order
