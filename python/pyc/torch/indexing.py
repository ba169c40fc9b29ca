"""Elements picked and written by index."""

from __future__ import annotations

import math

import numpy

from ..builder import Value
from .shapes import reshaped, sliced
from .table import Call, axis_of, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@op("embedding")
def _embedding(
    c: Call, weight: Value, indices: Value, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Value:
    return c.apply("gather", weight, c.cast(indices, "i64"), axis=0)


@op("index_select")
def _index_select(c: Call, x: Value, dim: int, index: Value) -> Value:
    if not x.shape:
        return x
    index = reshaped(c, index, [math.prod(index.shape)])
    return c.apply("gather", x, c.cast(index, "i64"), axis=axis_of(dim, len(x.shape)))


def _like_index(c: Call, x: Value, index: Value, but: int) -> Value:
    """x cut to the sizes of index in every dim but one."""
    for axis, size in enumerate(index.shape):
        if axis != but:
            x = sliced(c, x, axis, 0, size)
    return x


@op("gather")
def _gather(c: Call, x: Value, dim: int, index: Value) -> Value:
    if not x.shape or not index.shape:
        c.refuse("a tensor of rank 0")
    axis = axis_of(dim, len(x.shape))
    return c.apply("gather_elements", _like_index(c, x, index, axis), c.cast(index, "i64"), axis=axis)


@op("take_along_dim")
def _take_along(c: Call, x: Value, indices: Value, dim: int | None = None) -> Value:
    c.need(dim is not None and len(x.shape) == len(indices.shape), "other ranks")
    return _gather(c, x, int(dim or 0), indices)


_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min", "none": "none"}


def _scatter(c: Call, x: Value, dim: int, index: Value, src: Value, reduction: str) -> Value:
    if not x.shape:
        c.refuse("a tensor of rank 0")
    c.need(x.dtype != "bool" or reduction == "none", "reducing bools")
    src = _like_index(c, src, index, -1)
    axis = axis_of(dim, len(x.shape))
    return c.apply("scatter_elements", x, c.cast(index, "i64"), c.cast(src, x.dtype), axis=axis, reduction=reduction)


@op("scatter.src")
def _scatter_src(c: Call, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _scatter(c, x, dim, index, src, "none")


@op("scatter.value")
def _scatter_value(c: Call, x: Value, dim: int, index: Value, value: Any) -> Value:
    return _scatter(c, x, dim, index, c.full(index.shape, value, x.dtype), "none")


@op("scatter_add")
def _scatter_add(c: Call, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _scatter(c, x, dim, index, src, "add")


@op("scatter_reduce.two")
def _scatter_reduce(c: Call, x: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True) -> Value:
    c.need(include_self, "include_self=False")
    c.need(reduce in _REDUCTIONS, f"reduce={reduce}")
    return _scatter(c, x, dim, index, src, _REDUCTIONS[reduce])


# ---- x[indices] ----


def _front(c: Call, x: Value, indices: Sequence[Value | None]) -> tuple[Value, list[int], list[Value]]:
    """x with its indexed axes in front, the order of axes that made it, and the indices as far as there are some."""
    for index in indices:
        c.need(
            index is None or index.dtype in ("i64", "i32", "u8", "i8", "i16"), "the number of elements depends on contents"
        )
        c.need(index is None or index.dtype != "u8", "a mask of bytes")
    axes = [i for i, index in enumerate(indices) if index is not None]
    order = axes + [i for i in range(len(x.shape)) if i not in axes]
    if order != sorted(order):
        x = c.apply("transpose", x, perm=order)
    return x, order, [index for index in indices if index is not None]


def _rows(c: Call, indices: list[Value]) -> tuple[Value, list[int]]:
    """Indices side by side in a last axis, broadcast to one shape."""
    shape = list(numpy.broadcast_shapes(*(index.shape for index in indices)))
    columns = []
    for index in indices:
        wide = c.apply("expand", c.cast(index, "i64"), shape=shape)
        columns.append(reshaped(c, wide, [*shape, 1]))
    return (columns[0] if len(columns) == 1 else c.apply("concat", *columns, axis=len(shape))), shape


@op("index.Tensor", "_unsafe_index.Tensor")
def _index(c: Call, x: Value, indices: Sequence[Value | None]) -> Value:
    axes = [i for i, index in enumerate(indices) if index is not None]
    turned, _, given = _front(c, x, indices)
    if len(axes) == 1:
        return c.apply("gather", x, c.cast(given[0], "i64"), axis=axes[0])
    rows, shape = _rows(c, given)
    picked = c.apply("gather_nd", turned, rows)
    if axes[0] == 0 or axes != list(range(axes[0], axes[0] + len(axes))):
        return picked
    lead = len(shape)  # axes beside one another: theirs is the place of the first
    order = [*range(lead, lead + axes[0]), *range(lead), *range(lead + axes[0], len(picked.shape))]
    return c.apply("transpose", picked, perm=order)


def _masked(c: Call, x: Value, indices: Sequence[Value | None], values: Value) -> Value | None:
    """x[mask] = one number."""
    if len(indices) != 1 or indices[0] is None or indices[0].dtype != "bool" or math.prod(values.shape) != 1:
        return None
    mask = reshaped(c, indices[0], [*indices[0].shape, *[1] * (len(x.shape) - len(indices[0].shape))])
    return c.apply("where", mask, reshaped(c, c.cast(values, x.dtype), []), x)


@op("index_put", "_unsafe_index_put")
def _index_put(c: Call, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False) -> Value:
    if not accumulate:
        masked = _masked(c, x, indices, values)
        if masked is not None:
            return masked
    turned, order, given = _front(c, x, indices)
    c.need(x.dtype != "bool" or not accumulate, "adding bools")
    axes = order[: len(given)]
    rows, shape = _rows(c, given)
    rest = list(turned.shape[len(given) :])
    beside = axes == list(range(axes[0], axes[0] + len(axes)))
    lead = axes[0] if beside else 0  # where the shape of the indices stands among the axes of values
    full = [*rest[:lead], *shape, *rest[lead:]]
    values = c.apply("expand", c.cast(values, x.dtype), shape=full)
    if lead:
        back = [*range(lead, lead + len(shape)), *range(lead), *range(lead + len(shape), len(full))]
        values = c.apply("transpose", values, perm=back)
    written = c.apply("scatter_nd", turned, rows, values, reduction="add" if accumulate else "none")
    if order == sorted(order):
        return written
    return c.apply("transpose", written, perm=[order.index(i) for i in range(len(order))])


@op("slice_scatter")
def _slice_scatter(c: Call, x: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    axis = axis_of(dim, len(x.shape))
    size = x.shape[axis]
    first, last, _ = slice(start, end).indices(size)
    places = numpy.arange(first, max(first, last), step)
    return _written(c, x, c.cast(src, x.dtype), axis, places)


@op("select_scatter")
def _select_scatter(c: Call, x: Value, src: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, len(x.shape))
    one = reshaped(c, c.cast(src, x.dtype), [*x.shape[:axis], 1, *x.shape[axis + 1 :]])
    return _written(c, x, one, axis, numpy.array([index % x.shape[axis]]))


def _written(c: Call, x: Value, src: Value, axis: int, places: Any) -> Value:
    """x with src at places along an axis."""
    size = x.shape[axis]
    if len(places) == 0:
        return x
    first, last = int(places[0]), int(places[-1]) + 1
    if last - first == len(places):
        parts = [sliced(c, x, axis, 0, first)] if first else []
        parts += [src] + ([sliced(c, x, axis, last, size)] if last < size else [])
        return parts[0] if len(parts) == 1 else c.apply("concat", *parts, axis=axis)
    source = numpy.zeros(size, numpy.int64)
    source[places] = numpy.arange(len(places))
    hit = numpy.zeros([size if i == axis else 1 for i in range(len(x.shape))], bool)
    hit.reshape(-1)[places] = True
    return c.apply("where", c.array(hit), c.apply("gather", src, c.array(source), axis=axis), x)
