"""Sums, means, extremes, sorts."""

from __future__ import annotations

import math

from ..builder import Value
from .table import Call, axes_of, axis_of, op, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reduced(c: Call, name: str, x: Value, axes: list[int], keepdim: bool) -> Value:
    """Over these axes; none are none."""
    return c.apply(name, x, axes=axes, keepdims=keepdim) if axes else x


@op("sum", "sum.dim_IntList")
def _sum(c: Call, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(reduced(c, "reduce_sum", x, axes_of(dim, len(x.shape)), keepdim), c.dtype)


@op("mean", "mean.dim")
def _mean(c: Call, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    axes = axes_of(dim, len(x.shape))
    x = c.cast(x, c.wide)
    if 0 in [x.shape[axis] for axis in axes]:
        return c.cast(c.full(reduced(c, "reduce_sum", x, axes, keepdim).shape, math.nan, c.wide), c.dtype)
    return c.cast(reduced(c, "reduce_mean", x, axes, keepdim), c.dtype)


@op("prod", "prod.dim_int")
def _prod(c: Call, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(reduced(c, "reduce_prod", x, axes_of(dim, len(x.shape)), keepdim), c.dtype)


@op("amax", "max")
def _amax(c: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _extreme(c, "reduce_max", x, axes_of(dim, len(x.shape)), keepdim)


@op("amin", "min")
def _amin(c: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _extreme(c, "reduce_min", x, axes_of(dim, len(x.shape)), keepdim)


def _extreme(c: Call, name: str, x: Value, axes: list[int], keepdim: bool) -> Value:
    c.need(0 not in [x.shape[axis] for axis in axes], "the extreme of no elements")
    if x.dtype == "bool":
        return c.cast(reduced(c, name, c.cast(x, "u8"), axes, keepdim), "bool")
    return reduced(c, name, x, axes, keepdim)


def _place(c: Call, name: str, x: Value, dim: int | None, keepdim: bool) -> Value:
    rank = len(x.shape)
    x = c.cast(x, "u8") if x.dtype == "bool" else x
    if dim is None:
        flat = c.apply(name, c.apply("reshape", x, shape=[math.prod(x.shape)]), axis=0, keepdims=False)
        return c.apply("reshape", flat, shape=[1] * rank) if keepdim else flat
    if rank == 0:
        return c.number(0, "i64")
    return c.apply(name, x, axis=axis_of(dim, rank), keepdims=keepdim)


@op("argmax")
def _argmax(c: Call, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    c.need(0 not in x.shape, "the extreme of no elements")
    return _place(c, "argmax", x, dim, keepdim)


@op("argmin")
def _argmin(c: Call, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    c.need(0 not in x.shape, "the extreme of no elements")
    return _place(c, "argmin", x, dim, keepdim)


@op("max.dim")
def _max_dim(c: Call, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    return [_amax(c, x, dim, keepdim), _argmax(c, x, dim, keepdim)]


@op("min.dim")
def _min_dim(c: Call, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    return [_amin(c, x, dim, keepdim), _argmin(c, x, dim, keepdim)]


@op("aminmax")
def _aminmax(c: Call, x: Value, dim: int | None = None, keepdim: bool = False) -> list[Value]:
    return [_amin(c, x, dim, keepdim), _amax(c, x, dim, keepdim)]


@op("any", "any.dim", "any.dims")
def _any(c: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    if dim == [] and c.name == "any.dims":
        c.refuse("an empty list of dims")
    return c.cast(_holds(c, c.cast(x, "bool"), dim, keepdim), c.dtype)


@op("all", "all.dim", "all.dims")
def _all(c: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    if dim == [] and c.name == "all.dims":
        c.refuse("an empty list of dims")
    fails = c.apply("logical_not", c.cast(x, "bool"))
    return c.cast(c.apply("logical_not", _holds(c, fails, dim, keepdim)), c.dtype)


def _holds(c: Call, x: Value, dim: Any, keepdim: bool) -> Value:
    """Whether one holds, by their number: the largest of none is no truth value."""
    count = reduced(c, "reduce_sum", c.cast(x, "i64"), axes_of(dim, len(x.shape)), keepdim)
    return c.cast(count, "bool")


def variance(c: Call, x: Value, dim: Any, correction: float, keepdim: bool) -> tuple[Value, Value]:
    """Var and mean in the wide dtype."""
    axes = axes_of(dim, len(x.shape))
    count = math.prod(x.shape[axis] for axis in axes)
    c.need(count > 0, "the variance of no elements")
    x = c.cast(x, wide(x.dtype))
    mean = reduced(c, "reduce_mean", x, axes, True)
    away = x - mean
    total = reduced(c, "reduce_sum", away * away, axes, keepdim)
    divisor = c.number(max(0.0, count - correction), x.dtype)
    return total / divisor, mean if keepdim else reduced(c, "reduce_mean", x, axes, False)


def _correction(c: Call, given: Any) -> float:
    return 1.0 if given is None else float(given)


@op("var.correction")
def _var(c: Call, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Value:
    return c.cast(variance(c, x, dim, _correction(c, correction), keepdim)[0], c.dtype)


@op("var.dim")
def _var_dim(c: Call, x: Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Value:
    return c.cast(variance(c, x, dim, float(unbiased), keepdim)[0], c.dtype)


@op("std.correction")
def _std(c: Call, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Value:
    return c.cast(c.apply("sqrt", variance(c, x, dim, _correction(c, correction), keepdim)[0]), c.dtype)


@op("var_mean.correction")
def _var_mean(c: Call, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> list[Value]:
    return [c.cast(v, c.dtype) for v in variance(c, x, dim, _correction(c, correction), keepdim)]


@op("logsumexp")
def _logsumexp(c: Call, x: Value, dim: Any, keepdim: bool = False) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(reduced(c, "reduce_log_sum_exp", x, axes_of(dim, len(x.shape)), keepdim), c.dtype)


@op("linalg_vector_norm")
def _vector_norm(c: Call, x: Value, ord: float, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    c.need(ord in (1, 2, math.inf), f"ord={ord}")
    x = c.cast(x, c.wide)
    axes = axes_of(dim, len(x.shape))
    c.need(axes and 0 not in [x.shape[axis] for axis in axes], "the norm of no elements")
    if ord == math.inf:
        return c.cast(reduced(c, "reduce_max", c.apply("abs", x), axes, keepdim), c.dtype)
    return c.cast(reduced(c, "reduce_l1" if ord == 1 else "reduce_l2", x, axes, keepdim), c.dtype)


@op("cumsum")
def _cumsum(c: Call, x: Value, dim: int, dtype: Any = None) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(c.apply("cumsum", x, axis=axis_of(dim, len(x.shape))) if x.shape else x, c.dtype)


@op("cumprod")
def _cumprod(c: Call, x: Value, dim: int, dtype: Any = None) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(c.apply("cumprod", x, axis=axis_of(dim, len(x.shape))) if x.shape else x, c.dtype)


@op("_softmax")
def _softmax(c: Call, x: Value, dim: int, half_to_float: bool) -> Value:
    return _soft(c, "softmax", x, dim)


@op("_log_softmax")
def _log_softmax(c: Call, x: Value, dim: int, half_to_float: bool) -> Value:
    return _soft(c, "log_softmax", x, dim)


@op("_safe_softmax")
def _safe_softmax(c: Call, x: Value, dim: int, dtype: Any = None) -> Value:
    """A row of which nothing is let through gives 0."""
    masked = c.apply("is_inf", x, detect_positive=False)
    axis = axis_of(dim, len(x.shape))
    kept = _holds(c, c.apply("logical_not", masked), axis, True)
    return c.apply("where", kept, _soft(c, "softmax", x, dim), c.number(0, c.dtype))


def _soft(c: Call, name: str, x: Value, dim: int) -> Value:
    x = c.cast(x, c.wide)
    if x.shape:
        return c.cast(c.apply(name, x, axis=axis_of(dim, len(x.shape))), c.dtype)
    flat = c.apply(name, c.apply("reshape", x, shape=[1]), axis=0)
    return c.cast(c.apply("reshape", flat, shape=[]), c.dtype)


def _sorted(c: Call, x: Value, dim: int, descending: bool) -> list[Value]:
    if not x.shape:
        return [x, c.number(0, "i64")]
    wide_x = c.cast(x, "u8") if x.dtype == "bool" else x
    values, places = c.b.ops("sort", [wide_x], axis=axis_of(dim, len(x.shape)), descending=descending)
    return [c.cast(values, x.dtype), c.cast(places, "i64")]


@op("sort", "sort.stable")
def _sort(c: Call, x: Value, dim: int = -1, descending: bool = False, stable: bool | None = None) -> list[Value]:
    return _sorted(c, x, dim, descending)


@op("argsort", "argsort.stable")
def _argsort(c: Call, x: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    return _sorted(c, x, dim, descending)[1]


@op("topk")
def _topk(c: Call, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[Value]:
    c.need(x.shape, "a tensor of rank 0")
    c.need(x.dtype != "bool", "bools")
    values, places = c.b.ops("top_k", [x], k=k, axis=axis_of(dim, len(x.shape)), largest=largest)
    return [values, c.cast(places, "i64")]


@op("_cdist_forward")
def _cdist(c: Call, x1: Value, x2: Value, p: float, compute_mode: int | None) -> Value:
    rank = len(x1.shape)
    away = c.apply("abs", c.apply("unsqueeze", x1, axes=[rank - 1]) - c.apply("unsqueeze", x2, axes=[rank - 2]))
    return _norm(c, away, p)


@op("_pdist_forward")
def _pdist(c: Call, x: Value, p: float = 2.0) -> Value:
    import numpy

    first, second = (c.array(part.astype(numpy.int64)) for part in numpy.triu_indices(x.shape[0], 1))
    away = c.apply("abs", c.apply("gather", x, first, axis=0) - c.apply("gather", x, second, axis=0))
    return _norm(c, away, p)


def _norm(c: Call, away: Value, p: float) -> Value:
    """Of magnitudes along the last axis."""
    last = [len(away.shape) - 1]
    c.need(away.shape[-1] > 0, "the norm of no elements")
    if p == 0:
        return reduced(c, "reduce_sum", c.cast(c.cast(away, "bool"), away.dtype), last, False)
    if p == 1:
        return reduced(c, "reduce_sum", away, last, False)
    if p == 2:
        return c.apply("sqrt", reduced(c, "reduce_sum", away * away, last, False))
    if p == math.inf:
        return reduced(c, "reduce_max", away, last, False)
    total = reduced(c, "reduce_sum", c.apply("pow", away, c.number(p, away.dtype)), last, False)
    return c.apply("pow", total, c.number(1 / p, away.dtype))
