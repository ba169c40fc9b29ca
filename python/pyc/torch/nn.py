"""Products, convolutions, normalizations."""

from __future__ import annotations

import math

import torch

from ..builder import Value
from .reductions import reduced
from .shapes import reshaped
from .table import FLOATS, TORCH_DTYPES, Call, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


# ---- products ----


@op("mm", "bmm", "matmul", "mv", "dot")
def _matmul(c: Call, x: Value, mat2: Any = None, other: Any = None, vec: Any = None, tensor: Any = None) -> Value:
    right = next(v for v in (mat2, other, vec, tensor) if v is not None)
    return product(c, x, right)


def product(c: Call, a: Value, b: Value) -> Value:
    c.need(a.dtype in (*FLOATS, "i32", "i64"), f"products of {a.dtype}")
    return c.apply("matmul", a, b)


@op("addmm", "baddbmm", "addmv")
def _addmm(
    c: Call,
    x: Value,
    mat1: Any = None,
    mat2: Any = None,
    batch1: Any = None,
    batch2: Any = None,
    mat: Any = None,
    vec: Any = None,
    beta: Any = 1,
    alpha: Any = 1,
) -> Value:
    left = next(v for v in (mat1, batch1, mat) if v is not None)
    right = next(v for v in (mat2, batch2, vec) if v is not None)
    result = product(c, left, right)
    if alpha != 1:
        result = result * c.number(alpha, result.dtype)
    if beta == 0:
        return result
    return result + (x if beta == 1 else x * c.number(beta, x.dtype))


@op("linear")
def linear(c: Call, input: Value, weight: Value, bias: Value | None = None) -> Value:
    perm = [1, 0] if len(weight.shape) == 2 else [0]
    result = product(c, input, c.apply("transpose", weight, perm=perm))
    return result if bias is None else result + bias


# ---- convolutions ----


def each(values: Any, count: int) -> list[int]:
    given: list[int] = [values] if isinstance(values, int) else list(values)
    return given * count if len(given) == 1 else given


@op("convolution")
def _convolution(
    c: Call,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    planes = len(input.shape) - 2
    c.need(c.dtype in FLOATS, f"convolutions of {c.dtype}")
    strides, pads, dilations, more = (each(v, planes) for v in (stride, padding, dilation, output_padding))
    inputs = [input, weight] if bias is None else [input, weight, bias]
    shared: dict[str, Any] = {"strides": strides, "dilations": dilations, "group": groups}
    if not transposed:
        return c.apply("conv", *inputs, pads=pads + pads, **shared)
    shape = [
        (input.shape[2 + i] - 1) * strides[i] - 2 * pads[i] + dilations[i] * (weight.shape[2 + i] - 1) + more[i] + 1
        for i in range(planes)
    ]
    return c.apply("conv_transpose", *inputs, output_shape=shape, pads=pads, **shared)


# ---- normalizations ----


def _per_channel(c: Call, v: Value, rank: int) -> Value:
    return reshaped(c, v, [1, v.shape[0], *[1] * (rank - 2)])


def _scaled(c: Call, x: Value, weight: Value | None, bias: Value | None, rank: int) -> Value:
    if weight is not None:
        x = x * _per_channel(c, c.cast(weight, x.dtype), rank)
    return x if bias is None else x + _per_channel(c, c.cast(bias, x.dtype), rank)


@op("_native_batch_norm_legit_no_training")
def _batch_norm(
    c: Call,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> list[Value | None]:
    channels, dtype = input.shape[1], input.dtype
    gamma = c.full([channels], 1, dtype) if weight is None else c.cast(weight, dtype)
    beta = c.full([channels], 0, dtype) if bias is None else c.cast(bias, dtype)
    mean, var = c.cast(running_mean, dtype), c.cast(running_var, dtype)
    c.need(not c.used & {1, 2}, "statistics that it does not save")
    return [c.apply("batch_norm", input, gamma, beta, mean, var, epsilon=eps), None, None]


def _batch_norm_by_batch(
    c: Call, input: Value, weight: Value | None, bias: Value | None, eps: float
) -> tuple[list[Value | None], Value, Value]:
    c.need(c.dtype in ("f32", "f64"), "statistics of narrow floats, which torch rounds in between")
    axes = [i for i in range(len(input.shape)) if i != 1]
    x = c.cast(input, c.wide)
    mean = reduced(c, "reduce_mean", x, axes, True)
    away = x - mean
    var = reduced(c, "reduce_mean", away * away, axes, True)
    spread = c.apply("reciprocal", c.apply("sqrt", var + eps))
    out = c.cast(_scaled(c, away * spread, weight, bias, len(input.shape)), c.dtype)
    flat = [input.shape[1]]
    saved = [c.cast(reshaped(c, v, flat), str(c.dtypes[1])) for v in (mean, spread)]
    return [out, *saved], reshaped(c, mean, flat), reshaped(c, var, flat)


@op("_native_batch_norm_legit.no_stats")
def _batch_norm_no_stats(
    c: Call, input: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float, eps: float
) -> list[Value | None]:
    c.need(training, "no statistics to take")
    return _batch_norm_by_batch(c, input, weight, bias, eps)[0]


@op("_native_batch_norm_legit_functional")
def _batch_norm_functional(
    c: Call,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Value | None]:
    if not training:
        c.need(not c.used & {1, 2}, "statistics that it does not save")
        return [*_batch_norm(c, input, weight, bias, running_mean, running_var, momentum, eps), running_mean, running_var]
    outs, mean, var = _batch_norm_by_batch(c, input, weight, bias, eps)
    count = math.prod(input.shape) // input.shape[1]
    unbiased = var * (count / max(count - 1, 1))
    new_mean = c.cast(running_mean, c.wide) * (1 - momentum) + mean * momentum
    new_var = c.cast(running_var, c.wide) * (1 - momentum) + unbiased * momentum
    return [*outs, c.cast(new_mean, running_mean.dtype), c.cast(new_var, running_var.dtype)]


@op("native_layer_norm")
def _layer_norm(
    c: Call, input: Value, normalized_shape: Sequence[int], weight: Value | None, bias: Value | None, eps: float
) -> list[Value | None]:
    count = len(normalized_shape)
    gamma = c.full(normalized_shape, 1, input.dtype) if weight is None else c.cast(weight, input.dtype)
    inputs = [input, gamma] if bias is None else [input, gamma, c.cast(bias, input.dtype)]
    out = c.apply("layer_norm", *inputs, axis=-count, epsilon=eps)
    if not c.used & {1, 2}:
        return [out, None, None]
    mean, spread = c.b.ops("layer_norm_stats", [input], axis=-count, epsilon=eps)
    shape = [*input.shape[: len(input.shape) - count], *[1] * count]
    return [out, *(c.cast(reshaped(c, v, shape), str(c.dtypes[1])) for v in (mean, spread))]


@op("rms_norm", "_fused_rms_norm")
def _rms_norm(
    c: Call, input: Value, normalized_shape: Sequence[int], weight: Value | None = None, eps: float | None = None
) -> Any:
    epsilon = torch.finfo(TORCH_DTYPES[input.dtype]).eps if eps is None else eps
    gamma = c.full(normalized_shape, 1, input.dtype) if weight is None else c.cast(weight, input.dtype)
    out = c.apply("rms_norm", input, gamma, axis=-len(normalized_shape), epsilon=epsilon)
    if c.name == "rms_norm":
        return out
    c.need(1 not in c.used, "its second output")
    return [out, None]


@op("native_group_norm")
def _group_norm(
    c: Call, input: Value, weight: Value | None, bias: Value | None, N: int, C: int, HxW: int, group: int, eps: float
) -> list[Value | None]:
    gamma = c.full([C], 1, input.dtype) if weight is None else c.cast(weight, input.dtype)
    beta = c.full([C], 0, input.dtype) if bias is None else c.cast(bias, input.dtype)
    shape = list(input.shape)
    planes = input if len(shape) > 2 else reshaped(c, input, [*shape, 1])
    out = reshaped(c, c.apply("group_norm", planes, gamma, beta, epsilon=eps, num_groups=group), shape)
    if not c.used & {1, 2}:
        return [out, None, None]
    rows = c.cast(reshaped(c, input, [N, group, C // group * HxW]), c.wide)
    mean = reduced(c, "reduce_mean", rows, [2], True)
    away = rows - mean
    spread = c.apply("reciprocal", c.apply("sqrt", reduced(c, "reduce_mean", away * away, [2], True) + eps))
    return [out, *(c.cast(reshaped(c, v, [N, group]), str(c.dtypes[1])) for v in (mean, spread))]
