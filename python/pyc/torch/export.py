"""pyc.from_torch: an ExportedProgram as a ModelBuilder."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from .. import errors
from ..builder import ModelBuilder, Value
from .errors import UnsupportedTorchError
from .reader import Reader
from .table import DTYPES, op_name, supported_ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class TorchModel(ModelBuilder):
    """A ModelBuilder with what an exported program computes. Weights stay where torch has them and must not be written to
    while a model of it lives; `copied_bytes` are of those that no view can describe."""

    copied_bytes = 0


def from_torch(program: ExportedProgram, *, shape: Mapping[str, Sequence[int]] | None = None) -> TorchModel:
    """The graph of torch.export in PyC's builder: `pyc.from_torch(torch.export.export(module, inputs)).compile()`.

    Inputs and outputs have the names of the program. A builder's shapes are fixed: `shape` gives those of inputs with
    open dims. UnsupportedTorchError names op, node and source line of what PyC has no meaning for.
    """
    if not isinstance(program, ExportedProgram):
        raise errors.InvalidArgumentError(
            f"from_torch takes what torch.export.export(module, inputs) returns, not {type(program).__name__}"
        )
    program = program.run_decompositions(_decompositions())
    _refuse_mutation(program)
    model = TorchModel("torch")
    reader = Reader(model, copy=False)
    nodes = list(program.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    sizes = _Sizes(program, dict(shape or {}))
    for node, spec in zip(placeholders, program.graph_signature.input_specs):
        reader.env[node] = _input(program, model, node, spec, sizes)
    sizes.check()
    for node in nodes:
        if node.op == "call_function":
            reader.read(node)
        elif node.op not in ("placeholder", "output"):
            raise reader.refusal(node, f"a node of the kind {node.op}")
    taken = {spec.arg.name for spec in program.graph_signature.input_specs}
    for spec, node in zip(program.graph_signature.output_specs, _results(program)):
        found = reader.value(reader.env[node]) if isinstance(node, torch.fx.Node) else node
        if not isinstance(found, Value):
            raise UnsupportedTorchError(f"the output {spec.arg} is no tensor", node=str(spec.arg))
        model.output(found, _free_name(spec.arg.name, taken))
    model.copied_bytes = reader.copied_bytes
    return model


def _results(program: ExportedProgram) -> list[Any]:
    (output,) = (node for node in program.graph.nodes if node.op == "output")
    return list(output.args[0])


def _free_name(name: str, taken: set[str]) -> str:
    """An output may be an input, or another output again."""
    free = name
    while free in taken:
        free = f"{free}.out"
    taken.add(free)
    return free


def _decompositions() -> Any:
    """Down to core ATen, but for what the table has."""
    table = torch.export.default_decompositions()
    known = set(supported_ops())
    for target in list(table.keys()):
        if isinstance(target, torch._ops.OpOverload) and op_name(target) in known:
            table.pop(target)
    return table


def _refuse_mutation(program: ExportedProgram) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            kind = spec.kind.name.lower().replace("_", " ")
            raise UnsupportedTorchError(f"it changes {spec.target} ({kind}): a graph has no state", node=str(spec.arg.name))


def _input(program: ExportedProgram, model: ModelBuilder, node: torch.fx.Node, spec: Any, sizes: _Sizes) -> Any:
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
        if spec.target in program.state_dict:
            return program.state_dict[spec.target]
        return program.constants[spec.target]
    if spec.kind == InputKind.CONSTANT_TENSOR:
        return program.constants[spec.target]
    fake = node.meta.get("val")
    if spec.kind == InputKind.USER_INPUT and isinstance(fake, torch.Tensor):
        if fake.device.type != "cpu" or fake.dtype not in DTYPES:
            raise UnsupportedTorchError(f"the input {node.name} is {fake.dtype} on {fake.device}", node=node.name)
        return model.input(node.name, DTYPES[fake.dtype], sizes.of(node.name, fake))
    if isinstance(fake, (int, float, bool)) or fake is None:
        return fake
    raise UnsupportedTorchError(f"the input {node.name} is no tensor", node=node.name)


class _Sizes:
    """Shapes of inputs, those of open dims as the caller gives them."""

    def __init__(self, program: ExportedProgram, given: dict[str, Sequence[int]]) -> None:
        self.ranges = program.range_constraints
        self.given = given
        self.known: dict[Any, int] = {}

    def of(self, name: str, fake: torch.Tensor) -> list[int]:
        shape = self.given.pop(name, None)
        if shape is None:
            open_dims = [str(d) for d in fake.shape if not isinstance(d, int)]
            if open_dims:
                raise errors.InvalidArgumentError(
                    f"the input '{name}' has open dims {', '.join(open_dims)}: give its shape", name
                )
            return [int(d) for d in fake.shape]
        if len(shape) != len(fake.shape):
            raise errors.RankMismatchError(f"the input '{name}' has {len(fake.shape)} dims, not {len(shape)}", name)
        for dim, size in zip(fake.shape, shape):
            self._bind(name, dim, size)
        return list(shape)

    def _bind(self, name: str, dim: Any, size: int) -> None:
        symbol: Any = dim if isinstance(dim, int) else dim.node.expr
        if isinstance(dim, int) or symbol.is_number:
            expected = int(symbol)
        else:
            bounds = self.ranges.get(symbol)
            if bounds is not None and not bounds.lower <= size <= bounds.upper:
                raise errors.ShapeMismatchError(
                    f"the input '{name}': {size} is outside of {bounds.lower} to {bounds.upper}", name
                )
            if not symbol.is_symbol:
                self.known.setdefault(symbol, size)
                return
            expected = self.known.setdefault(symbol, size)
        if expected != size:
            raise errors.ShapeMismatchError(f"the input '{name}': {size} where the program has {expected}", name)

    def check(self) -> None:
        if self.given:
            name = next(iter(self.given))
            raise errors.UnknownOptionError(f"the program has no input '{name}'", name)
        symbols = {s: n for s, n in self.known.items() if s.is_symbol}
        for expression, size in self.known.items():
            if not expression.is_symbol and expression.subs(symbols) != size:
                raise errors.ShapeMismatchError(
                    f"{expression} is {expression.subs(symbols)} for the other shapes, not {size}"
                )
