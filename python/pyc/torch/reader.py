"""A graph of torch.fx with ATen's ops, node by node into a ModelBuilder."""

from __future__ import annotations

import operator

import torch
from torch.fx import Node

from .. import errors
from ..builder import ModelBuilder, Value
from . import (
    activations,
    attention,
    images,
    indexing,
    nn,
    pointwise,
    recurrent,
    reductions,
    shapes,
)  # their ops enter the table
from .errors import UnsupportedTorchError, source_of
from .table import DTYPES, Call, build, op_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_FAMILIES = (activations, attention, images, indexing, nn, pointwise, recurrent, reductions, shapes)

# Moves of a weight's elements are done once, by torch, so that products see a plain constant.
_FOLDED = {"t", "permute", "transpose.int", "view", "reshape", "unsqueeze", "squeeze.dim", "squeeze.dims", "_to_copy"}
_FOLDED |= {"alias", "detach", "clone", "select.int", "slice.Tensor", "lift_fresh_copy"}
# They check what torch assumed while tracing; nothing reads them.
_CHECKS = {"_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size", "_assert_scalar"}

# torch.export gives outputs of these a dim of 1 too many; eager does not.
_UNTRUE_TYPES = {"lstm.input"}


class Missing:
    """A value that PyC has no type for, or that nobody makes."""

    def __init__(self, why: str) -> None:
        self.why = why


def types_of(node: Node) -> list[Any]:
    """What torch says the node's outputs are: fake tensors, numbers, None."""
    found = node.meta.get("val")
    return list(found) if isinstance(found, (list, tuple)) else [found]


def used_outputs(node: Node) -> set[int]:
    return {int(user.args[1]) for user in node.users if user.target is operator.getitem}


def leaves(x: Any) -> Iterator[Any]:
    """What the arguments of a node hold. Those of torch's trees cost ten times as much, and a plan reads every node."""
    if isinstance(x, (list, tuple, dict)):
        for item in x.values() if isinstance(x, dict) else x:
            yield from leaves(item)
    else:
        yield x


def mapped(x: Any, change: Callable[[Any], Any]) -> Any:
    """The same arguments with other leaves."""
    if isinstance(x, dict):
        return {key: mapped(item, change) for key, item in x.items()}
    if isinstance(x, (list, tuple)):
        made = [mapped(item, change) for item in x]
        return tuple(made) if isinstance(x, tuple) else made
    return change(x)


class Facts:
    """What torch says of a node, which is the same at all sizes."""

    def __init__(self, node: Node) -> None:
        types = types_of(node)
        self.dtypes = [DTYPES.get(t.dtype) if isinstance(t, torch.Tensor) else None for t in types]
        # Of outputs that are tensors: dtype and dims, None for those that are open.
        self.tensors = [
            (t.dtype, [d if isinstance(d, int) else None for d in t.shape]) if isinstance(t, torch.Tensor) else None
            for t in types
        ]
        self.used = used_outputs(node)
        self.trace = node.stack_trace


class Weights:
    """Constants that the plans of one graph share: a copy of each weight, and of each view of one that products read."""

    def __init__(self, weights: Iterable[torch.Tensor]) -> None:
        self.b = ModelBuilder("weights")
        self.memory = {w.untyped_storage().data_ptr() for w in weights if w.numel()}
        self.found: dict[Any, tuple[torch.Tensor, Value]] = {}  # the tensor is held, so that its address stays its own

    def constant(self, x: torch.Tensor) -> Value | None:
        """None for what is no weight's memory, and another at each reading."""
        if x.untyped_storage().data_ptr() not in self.memory:
            return None
        key = (x.data_ptr(), x.dtype, x.shape, x.stride())
        if key not in self.found:
            self.found[key] = (x, self.b.constant(None, x.detach().contiguous()))
        return self.found[key][1]


class Reader:
    """Reads nodes into one builder. `env` has what was read: Values, numbers, lists of Values, and tensors of torch
    that are constants nobody needed yet."""

    def __init__(
        self, builder: ModelBuilder, facts: dict[Node, Facts] | None = None, weights: Weights | None = None, copy: bool = True
    ) -> None:
        self.b = builder
        self.facts = {} if facts is None else facts
        self.weights, self.copy = weights, copy
        self.env: dict[Node, Any] = {}
        self.constants: dict[int, tuple[torch.Tensor, Value]] = {}
        self.constant_bytes = 0
        self.copied_bytes = 0  # of those

    def read(self, node: Node) -> None:
        """One call; UnsupportedTorchError says why not."""
        try:
            self.env[node] = self._call(node)
        except UnsupportedTorchError:
            raise
        except errors.Error as error:
            raise self.refusal(node, error.message) from error

    def refusal(self, node: Node, why: str) -> UnsupportedTorchError:
        target: Any = node.target
        name = str(target).removesuffix(".default")
        if not isinstance(target, torch._ops.OpOverload):
            name = f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}".strip(".")
        return UnsupportedTorchError(why, name, node.name, source_of(node.stack_trace))

    def value(self, x: Any) -> Any:
        """A constant of torch's as a Value, once; others as they are."""
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) not in self.constants:
            self.constants[id(x)] = (x, self._constant(x))
        return self.constants[id(x)][1]

    def _constant(self, x: torch.Tensor) -> Value:
        self.constant_bytes += x.nbytes
        shared = self.weights.constant(x) if self.weights is not None else None
        if shared is not None:
            return self.b.constant_of(None, shared)
        if self.copy:
            self.copied_bytes += x.nbytes
            return self.b.constant(None, x.detach().contiguous())
        order = sorted(range(x.dim()), key=lambda i: -x.stride(i))
        lying = x.detach().permute(order)  # as its memory lies: a product's weight is often a transpose
        plain = lying.contiguous()
        if plain.data_ptr() != lying.data_ptr():
            self.copied_bytes += plain.nbytes
        value = self.b.constant(None, plain, copy=False)
        return value if order == sorted(order) else self.b.op("transpose", [value], perm=[order.index(i) for i in range(x.dim())])

    def _call(self, node: Node) -> Any:
        args = torch.fx.map_arg(node.args, lambda n: self.env[n])
        kwargs = torch.fx.map_arg(node.kwargs, lambda n: self.env[n])
        target: Any = node.target
        if target is operator.getitem and isinstance(args[0], (list, tuple)):
            return args[0][args[1]]
        flat = [*leaves(args), *leaves(kwargs)]
        for x in flat:
            if isinstance(x, Missing):
                raise self.refusal(node, x.why)
        tensors = [x for x in flat if isinstance(x, (Value, torch.Tensor))]
        if not isinstance(target, torch._ops.OpOverload):
            if not tensors:
                return target(*args, **kwargs)  # arithmetic of sizes
            raise self.refusal(node, "it is no op of ATen")
        name = op_name(target)
        if target.namespace != "aten":
            raise self.refusal(node, "it is no op of ATen")
        if name in _CHECKS:
            return None
        if name in _FOLDED and tensors and not any(isinstance(x, Value) for x in tensors):
            return target(*args, **kwargs)
        return self._build(node, name, args, kwargs)

    def _build(self, node: Node, name: str, args: Any, kwargs: Any) -> Any:
        facts = self.facts.get(node)
        if facts is None:
            facts = self.facts[node] = Facts(node)
        for dtype, tensor in zip(facts.dtypes, facts.tensors):
            if dtype is None and tensor is not None:
                raise self.refusal(node, f"outputs of {tensor[0]}")
        call = Call(self.b, name, node.name, facts.trace, facts.dtypes, facts.used)
        made = build(call, node.target, mapped(args, self.value), mapped(kwargs, self.value))
        if name not in _UNTRUE_TYPES:
            self._check(node, facts, made)
        if isinstance(made, list):
            return [Missing("an output that PyC does not compute") if x is None else x for x in made]
        return made

    def _check(self, node: Node, facts: Facts, made: Any) -> None:
        """What was built has the dtype and the shape that torch says."""
        for dtype, expected, found in zip(facts.dtypes, facts.tensors, made if isinstance(made, list) else [made]):
            if expected is None or found is None:
                continue
            dims, shape = expected[1], found.shape
            fits = len(dims) == len(shape) and all(d is None or d == size for d, size in zip(dims, shape))
            if not fits or dtype != found.dtype:
                raise self.refusal(node, f"came out as {found.dtype}{list(shape)}, torch says {expected[0]}{dims}")
