"""The table of ATen ops: for each overload a function that builds it with a ModelBuilder."""

from __future__ import annotations

import functools
import inspect
from typing import TypeVar

import numpy
import torch

from ..builder import ModelBuilder, Value
from .errors import UnsupportedTorchError, source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    Handler = Callable[..., Any]

DTYPES = {
    torch.bool: "bool",
    torch.uint8: "u8",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
}
TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()}
FLOATS = ("f16", "bf16", "f32", "f64")

# Arguments that say where and how memory lies, or how gradients are stored: no part of a value.
_NO_PART_OF_VALUES = {"layout", "device", "pin_memory", "non_blocking", "memory_format", "implicit", "sparse_grad"}

_Handler = TypeVar("_Handler", bound="Handler")
_HANDLERS: dict[str, Handler] = {}
_TAKES: dict[str, set[str]] = {}


def op(*names: str) -> Callable[[_Handler], _Handler]:
    """Enters a handler under overloads, "add.Tensor". It is given a Call and those arguments of the op's schema that
    it has parameters for; the others must be as the schema's defaults have them."""

    def enter(handler: _Handler) -> _Handler:
        takes = set(list(inspect.signature(handler).parameters)[1:])
        for name in names:
            _HANDLERS[name] = handler
            _TAKES[name] = takes
        return handler

    return enter


@functools.cache
def op_name(target: Any) -> str:
    """aten.add.Tensor: "add.Tensor"; aten.relu.default: "relu"."""
    text = str(target)
    if not text.startswith("aten."):
        return text
    return text.removeprefix("aten.").removesuffix(".default")


def supported_ops() -> list[str]:
    """The overloads of ATen that the table has."""
    return sorted(_HANDLERS)


class Call:
    """One node while it is read: the builder, and what torch says its outputs are."""

    def __init__(
        self, builder: ModelBuilder, name: str, node: str, trace: str | None, dtypes: list[Any], used: set[int]
    ) -> None:
        self.b = builder
        self.name, self.node, self.trace = name, node, trace
        self.dtypes = dtypes  # PyC's names of the outputs' dtypes, None where an output is no tensor
        self.used = used  # which outputs somebody reads

    @property
    def dtype(self) -> str:
        """Of the first output."""
        return str(self.dtypes[0])

    @property
    def wide(self) -> str:
        """What torch computes in, when several steps round only once."""
        return wide(self.dtype)

    def refuse(self, why: str) -> NoReturn:
        raise UnsupportedTorchError(why, f"aten.{self.name}", self.node, source_of(self.trace))

    def need(self, holds: object, why: str) -> None:
        if not holds:
            self.refuse(why)

    def cast(self, value: Value, dtype: str) -> Value:
        if value.dtype == dtype:
            return value
        if dtype == "bool":
            return self.b.op("not_equal", [value, self.number(0, value.dtype)])
        if dtype == "u8" and value.dtype in FLOATS:
            value = self.b.op("cast", [value], to="i64")  # below 0 torch wraps
        return self.b.op("cast", [value], to=dtype)

    def number(self, number: Any, dtype: str) -> Value:
        """A constant of rank 0. Integers keep all their bits."""
        if dtype in FLOATS:
            return self.b.scalar(dtype, float(number))
        if dtype == "bool":
            return self.array(numpy.array(bool(number)))
        return self.array(numpy.array(int(number), numpy.int64).astype(TORCH_NUMPY[dtype]))

    def array(self, array: Any, dtype: str | None = None) -> Value:
        value = self.b.constant(None, numpy.ascontiguousarray(array).reshape(numpy.shape(array)))
        return value if dtype is None else self.cast(value, dtype)

    def full(self, shape: Sequence[int], number: Any, dtype: str) -> Value:
        return self.b.op("expand", [self.number(number, dtype)], shape=list(shape))

    def operand(self, x: Any, dtype: str) -> Value:
        return self.cast(x, dtype) if isinstance(x, Value) else self.number(x, dtype)

    def promoted(self, *xs: Any) -> str:
        """The dtype torch would compute these tensors and numbers in."""
        stand_ins = [
            (
                torch.empty((1,) * min(len(x.shape), 1), dtype=TORCH_DTYPES[x.dtype], device="meta")
                if isinstance(x, Value)
                else x
            )
            for x in xs
        ]
        kind = torch.result_type(stand_ins[0], stand_ins[1] if len(xs) > 1 else stand_ins[0])
        return DTYPES[kind]

    def apply(self, name: str, *values: Value, **attributes: Any) -> Value:
        return self.b.op(name, list(values), **attributes)


TORCH_NUMPY = {
    "bool": numpy.bool_,
    "u8": numpy.uint8,
    "i8": numpy.int8,
    "i16": numpy.int16,
    "i32": numpy.int32,
    "i64": numpy.int64,
    "f32": numpy.float32,
    "f64": numpy.float64,
}


def wide(dtype: str) -> str:
    return "f32" if dtype in ("f16", "bf16") else dtype


def axis_of(dim: int, rank: int) -> int:
    return dim % rank if rank else 0


def axes_of(dims: Any, rank: int) -> list[int]:
    """Dims of a reduction: none given, or an empty list, are all of them."""
    if dims is None or rank == 0:
        return list(range(rank))
    dims = [dims] if isinstance(dims, int) else list(dims)
    return sorted(axis_of(d, rank) for d in dims) if dims else list(range(rank))


@functools.cache
def _arguments(target: Any) -> list[tuple[str, str, bool, Any]]:
    """Of each argument in an op's schema: its name there and in the table, whether it has a default, and that."""
    found = [(a.name, a.has_default_value(), a.default_value) for a in target._schema.arguments]
    return [(name, "x" if name == "self" else name, has, default) for name, has, default in found]


def build(call: Call, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What the table makes of a node: a Value, a number, or a list of Values."""
    handler = _HANDLERS.get(call.name)
    if handler is None:
        call.refuse("the table has no such op")
    given: dict[str, Any] = {}
    takes = _TAKES[call.name]
    for i, (keyword, name, has_default, default) in enumerate(_arguments(target)):
        if i < len(args):
            found = args[i]
        elif keyword in kwargs:
            found = kwargs[keyword]
        elif has_default:
            found = default
        else:
            call.refuse(f"argument {keyword} is missing")
        if name in takes:
            given[name] = found
        elif name == "device":
            call.need(found is None or torch.device(found).type == "cpu", f"device {found}")
        elif name == "layout":
            call.need(found in (None, torch.strided), f"layout {found}")
        elif name not in _NO_PART_OF_VALUES:
            call.need(found == (default if has_default else None), f"{name}={found} is not supported")
    return handler(call, **given)
