"""ModelBuilder: a graph, op by op, with the names that the C++ one has."""

from __future__ import annotations

import functools

from . import _native
from .errors import InvalidArgumentError, UnknownOpError
from .ort_types import dtype_name, numpy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .model import Contract, Model


class Value:
    """A value of a graph under construction; + - * / @ and - build nodes, numbers become constants of its dtype."""

    __slots__ = ("_type", "builder", "id")
    __array_ufunc__ = None  # so that numpy leaves `array + value` to us, who refuse it

    def __init__(self, builder: ModelBuilder, id: int) -> None:
        self.builder = builder
        self.id = id
        self._type: tuple[str, str, tuple[int, ...]] | None = None  # asked for once: it never changes

    def _known(self) -> tuple[str, str, tuple[int, ...]]:
        if self._type is None:
            self._type = self.builder.graph.value_type(self.id)
        return self._type

    @property
    def name(self) -> str:
        return self._known()[0]

    @property
    def dtype(self) -> str:
        return self._known()[1]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._known()[2]

    def __repr__(self) -> str:
        return f"<pyc.Value {self.name}: {self.dtype}{list(self.shape)}>"

    def _binary(self, op: str, other: object, swapped: bool = False) -> Value:
        if isinstance(other, (int, float)):
            other = self.builder.scalar(self.dtype, other)
        if not isinstance(other, Value):
            kind = type(other).__name__
            raise InvalidArgumentError(f"{op} takes values and numbers, not {kind}: make it a value with constant()", op)
        return self.builder.op(op, [other, self] if swapped else [self, other])

    def __add__(self, other: object) -> Value:
        return self._binary("add", other)

    def __radd__(self, other: object) -> Value:
        return self._binary("add", other, swapped=True)

    def __sub__(self, other: object) -> Value:
        return self._binary("sub", other)

    def __rsub__(self, other: object) -> Value:
        return self._binary("sub", other, swapped=True)

    def __mul__(self, other: object) -> Value:
        return self._binary("mul", other)

    def __rmul__(self, other: object) -> Value:
        return self._binary("mul", other, swapped=True)

    def __truediv__(self, other: object) -> Value:
        return self._binary("div", other)

    def __rtruediv__(self, other: object) -> Value:
        return self._binary("div", other, swapped=True)

    def __matmul__(self, other: object) -> Value:
        return self._binary("matmul", other)

    def __neg__(self) -> Value:
        return self.builder.op("neg", [self])


def _dtype(dtype: object) -> str:
    """PyC's name of a dtype, which may also be numpy's: "f32", "float32", np.float32."""
    if isinstance(dtype, str):
        return numpy_names().get(dtype, dtype)
    return dtype_name(dtype)


@functools.cache
def _kinds(op: str) -> dict[str, str]:
    """Of each attribute of an op what kind it is."""
    return dict(_native.op_info(op)[1])


class ModelBuilder:
    """Builds a graph. Every op of docs/ops.md is a method: values by position, then attributes in the order of that
    page or by name; `name` names the output.

        b = pyc.ModelBuilder("layer")
        x = b.input("x", "f32", (2, 4))
        b.output(b.softmax(x, axis=-1), "y")
        model = b.compile(threads=2)
    """

    def __init__(self, name: str = "main") -> None:
        self.graph = _native.Graph(name)

    def __repr__(self) -> str:
        return f"<pyc.{type(self).__name__}: a graph, which compile() makes a model of>"

    def input(self, name: str, dtype: object, shape: Sequence[int]) -> Value:
        return Value(self, self.graph.input(name, _dtype(dtype), list(shape)))

    def constant(self, name: str | None, array: object, copy: bool = True) -> Value:
        """A copy of an array's elements. With copy=False the array itself, where it is row-major: it is kept, and must
        stay as it is while a model made of it lives."""
        return Value(self, self.graph.constant(name, array) if copy else self.graph.borrow(name, array))

    def constant_of(self, name: str | None, constant: Value) -> Value:
        """A constant of another builder: both have it then, and models of both share what is made of it."""
        return Value(self, self.graph.constant_of(name, constant.builder.graph, constant.id))

    def random(self, name: str | None, dtype: object, shape: Sequence[int], seed: int, lo: float, hi: float) -> Value:
        """Elements uniform in [lo, hi), the same for the same seed everywhere."""
        return Value(self, self.graph.random(name, _dtype(dtype), list(shape), seed, lo, hi))

    def scalar(self, dtype: object, number: float) -> Value:
        return Value(self, self.graph.scalar(_dtype(dtype), number))

    def op(self, op: str, inputs: Sequence[Value], name: str | None = None, **attributes: object) -> Value:
        """Any op; returns its first output."""
        return self.ops(op, inputs, name, **attributes)[0]

    def ops(self, op: str, inputs: Sequence[Value], name: str | None = None, **attributes: object) -> list[Value]:
        """Any op; returns all its outputs."""
        if any(value.builder is not self for value in inputs):
            raise InvalidArgumentError(f"{op}: an input is of another builder", op)
        kinds = _kinds(op)
        for key in attributes:
            if key not in kinds:
                near = _native.closest_name(key, list(kinds))
                hint = f"did you mean '{near}'?" if near else f"it has {', '.join(kinds) or 'none'}"
                raise InvalidArgumentError(f"{op} has no attribute '{key}': {hint}", op)
        typed = [(key, kinds[key], value) for key, value in attributes.items()]
        ids = self.graph.op(op, [value.id for value in inputs], typed, name)
        return [Value(self, id) for id in ids]

    def output(self, value: Value, name: str | None = None) -> None:
        """Makes the value the next output; with a name, a copy of it under that name."""
        self.graph.output(value.id if name is None else self.op("identity", [value], name).id)

    def compile(self, *, contract: Contract | None = None, **options: object) -> Model:
        from .model import compile

        return compile(self, contract=contract, **options)

    def __getattr__(self, op: str) -> Callable[..., Value]:
        if op.startswith("_"):
            raise AttributeError(op)
        try:
            summary, known = _native.op_info(op)
        except UnknownOpError as error:
            raise AttributeError(error.message) from error

        def build(*args: object, name: str | None = None, **attributes: object) -> Value:
            inputs = [arg for arg in args if isinstance(arg, Value)]
            given = [arg for arg in args if not isinstance(arg, Value)]
            if len(given) > len(known):
                kind = type(given[len(known)]).__name__
                raise InvalidArgumentError(
                    f"{op} takes values and at most {len(known)} attributes, not {kind}: make it a value with constant()", op
                )
            attributes.update({key: value for (key, _), value in zip(known, given)})
            return self.op(op, inputs, name, **attributes)

        build.__name__, build.__doc__ = op, summary
        return build
