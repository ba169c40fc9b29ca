"""Steps of a plan at work: torch's tensors in and out, without a copy where they are row-major."""

from __future__ import annotations

import torch

from .. import _native
from .table import DTYPES, TORCH_DTYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    from torch.fx import Node

    from ..model import Model

    Step = Union["Program", "EagerStep"]

_TENSORS = _native.Form.TENSORS


class Output:
    """A tensor that a program fills: new memory of torch's, laid out as eager would."""

    def __init__(self, node: Node, dtype: str, shape: tuple[int, ...], order: list[int] | None) -> None:
        self.node, self.pyc_dtype, self.shape = node, dtype, shape
        self.dtype = TORCH_DTYPES[dtype]
        self.is_row_major = order is None
        self.laid = shape if order is None else tuple(shape[i] for i in order)
        self.back = None if order is None else [order.index(i) for i in range(len(order))]

    def make(self) -> torch.Tensor:
        made = torch.empty(self.laid, dtype=self.dtype)
        return made if self.back is None else made.permute(self.back)


class Program:
    """One compiled part."""

    def __init__(self, model: Model, inputs: list[Node], outputs: list[Output]) -> None:
        self.model = model
        self.inputs = inputs
        self.outputs = outputs
        self.stats = _native.RunStats()

    def run(self, env: dict[Node, Any]) -> None:
        made = [output.make() for output in self.outputs]
        lent = [_lend(env[node]) for node in self.inputs]
        filled = [_at(m, o.pyc_dtype) if o.is_row_major else m for m, o in zip(made, self.outputs)]
        self.model._native.run(lent, filled, self.stats, _TENSORS)
        for output, tensor in zip(self.outputs, made):
            env[output.node] = tensor


def _at(tensor: torch.Tensor, dtype: str) -> Any:
    """A view by address, which costs less than DLPack. The caller holds the tensor."""
    return _native.tensor_at(tensor.data_ptr(), dtype, list(tensor.shape)) if tensor.numel() else tensor.detach()


def _lend(tensor: torch.Tensor) -> Any:
    if tensor.is_contiguous() and not tensor.is_neg():
        return _at(tensor, DTYPES[tensor.dtype])
    return tensor.detach().resolve_neg()  # by DLPack, with its strides


class EagerStep:
    """One node that torch computes."""

    def __init__(self, node: Node, fixed: dict[Node, Any]) -> None:
        self.node = node
        self.fixed = fixed

    def run(self, env: dict[Node, Any]) -> None:
        def found(node: Node) -> Any:
            return self.fixed[node] if node in self.fixed else env[node]

        args, kwargs = torch.fx.map_arg((self.node.args, self.node.kwargs), found)
        target: Any = self.node.target
        env[self.node] = target(*args, **kwargs)
