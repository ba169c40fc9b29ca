"""Ops that move elements and compute none, and those that make tensors of numbers."""

from __future__ import annotations

import math

import numpy

from ..builder import Value
from .table import Call, axis_of, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def reshaped(c: Call, x: Value, shape: Sequence[int]) -> Value:
    return x if list(x.shape) == list(shape) else c.apply("reshape", x, shape=list(shape))


def _with_size(c: Call, x: Value, size: Sequence[int]) -> list[int]:
    """A size with its -1 worked out."""
    size = list(size)
    if -1 in size:
        rest = math.prod(d for d in size if d != -1)
        c.need(rest > 0, "a dim of -1 beside one of 0")
        size[size.index(-1)] = math.prod(x.shape) // rest
    return size


@op("view", "_unsafe_view", "reshape", "view_copy")
def _view(c: Call, x: Value, size: Any = None, shape: Any = None) -> Value:
    return reshaped(c, x, _with_size(c, x, size if shape is None else shape))


@op("flatten.using_ints")
def _flatten(c: Call, x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if not x.shape:
        return reshaped(c, x, [1])
    first, last = axis_of(start_dim, len(x.shape)), axis_of(end_dim, len(x.shape))
    return reshaped(c, x, [*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]])


@op("permute", "permute_copy")
def _permute(c: Call, x: Value, dims: Sequence[int]) -> Value:
    perm = [axis_of(d, len(x.shape)) for d in dims]
    return x if perm == sorted(perm) else c.apply("transpose", x, perm=perm)


@op("transpose.int")
def _transpose(c: Call, x: Value, dim0: int, dim1: int) -> Value:
    rank = len(x.shape)
    perm = list(range(rank))
    if rank:
        a, b = axis_of(dim0, rank), axis_of(dim1, rank)
        perm[a], perm[b] = b, a
    return _permute(c, x, perm)


@op("t")
def _t(c: Call, x: Value) -> Value:
    return _permute(c, x, list(reversed(range(len(x.shape)))))


@op("unsqueeze", "unsqueeze_copy")
def _unsqueeze(c: Call, x: Value, dim: int) -> Value:
    axis = axis_of(dim, len(x.shape) + 1)
    return reshaped(c, x, [*x.shape[:axis], 1, *x.shape[axis:]])


@op("squeeze")
def _squeeze(c: Call, x: Value) -> Value:
    return reshaped(c, x, [d for d in x.shape if d != 1])


@op("squeeze.dim", "squeeze.dims")
def _squeeze_dims(c: Call, x: Value, dim: Any) -> Value:
    dims = [dim] if isinstance(dim, int) else dim
    axes = {axis_of(d, len(x.shape)) for d in dims}
    return reshaped(c, x, [d for i, d in enumerate(x.shape) if i not in axes or d != 1])


@op("expand", "expand_copy")
def _expand(c: Call, x: Value, size: Sequence[int]) -> Value:
    added = len(size) - len(x.shape)
    shape = [x.shape[i - added] if d == -1 else d for i, d in enumerate(size)]
    return x if shape == list(x.shape) else c.apply("expand", x, shape=shape)


@op("expand_as")
def _expand_as(c: Call, x: Value, other: Value) -> Value:
    return _expand(c, x, other.shape)


@op("repeat")
def _repeat(c: Call, x: Value, repeats: Sequence[int]) -> Value:
    shape = [1] * (len(repeats) - len(x.shape)) + list(x.shape)
    if not repeats:
        return x
    return c.apply("tile", reshaped(c, x, shape), repeats=list(repeats))


@op("cat")
def _cat(c: Call, tensors: Sequence[Value], dim: int = 0) -> Value:
    kept = [c.cast(x, c.dtype) for x in tensors if list(x.shape) != [0]] or [c.cast(tensors[0], c.dtype)]
    return kept[0] if len(kept) == 1 else c.apply("concat", *kept, axis=axis_of(dim, len(kept[0].shape)))


@op("stack")
def _stack(c: Call, tensors: Sequence[Value], dim: int = 0) -> Value:
    axis = axis_of(dim, len(tensors[0].shape) + 1)
    kept = [_unsqueeze(c, c.cast(x, c.dtype), axis) for x in tensors]
    return kept[0] if len(kept) == 1 else c.apply("concat", *kept, axis=axis)


def sliced(c: Call, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
    if (start, end, step) == (0, x.shape[axis], 1):
        return x
    return c.apply("slice", x, starts=[start], ends=[end], axes=[axis], steps=[step])


def _bounds(x: Value, axis: int, start: int | None, end: int | None) -> tuple[int, int]:
    first, last, _ = slice(start, end).indices(x.shape[axis])
    return first, max(first, last)


@op("slice.Tensor", "slice_copy.Tensor")
def _slice(c: Call, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    axis = axis_of(dim, len(x.shape))
    return sliced(c, x, axis, *_bounds(x, axis, start, end), step)


@op("narrow", "narrow_copy")
def _narrow(c: Call, x: Value, dim: int, start: int, length: int) -> Value:
    axis = axis_of(dim, len(x.shape))
    first = start % x.shape[axis] if start < 0 else start
    return sliced(c, x, axis, first, first + length)


@op("select.int", "select_copy.int")
def _select(c: Call, x: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, len(x.shape))
    at = index + x.shape[axis] if index < 0 else index
    c.need(0 <= at < x.shape[axis], f"index {index} is out of range")
    return reshaped(c, sliced(c, x, axis, at, at + 1), [*x.shape[:axis], *x.shape[axis + 1 :]])


@op("split_with_sizes", "split_with_sizes_copy")
def _split(c: Call, x: Value, split_sizes: Sequence[int], dim: int = 0) -> list[Value]:
    if len(split_sizes) == 1:
        return [x]
    return c.b.ops("split", [x], axis=axis_of(dim, len(x.shape)), sizes=list(split_sizes))


@op("split.Tensor")
def _split_even(c: Call, x: Value, split_size: int, dim: int = 0) -> list[Value]:
    size = x.shape[axis_of(dim, len(x.shape))]
    c.need(split_size > 0 and size > 0, "parts of size 0")
    return _split(c, x, [min(split_size, size - at) for at in range(0, size, split_size)], dim)


@op("unbind.int", "unbind_copy.int")
def _unbind(c: Call, x: Value, dim: int = 0) -> list[Value]:
    axis = axis_of(dim, len(x.shape))
    parts = _split(c, x, [1] * x.shape[axis], axis) if x.shape[axis] else []
    return [reshaped(c, part, [*x.shape[:axis], *x.shape[axis + 1 :]]) for part in parts]


@op("flip")
def _flip(c: Call, x: Value, dims: Sequence[int]) -> Value:
    axes = sorted(axis_of(d, len(x.shape)) for d in dims)
    return c.apply("reverse", x, axes=axes) if axes and x.shape else x


@op("roll")
def _roll(c: Call, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> Value:
    shape = x.shape
    if not dims:
        c.need(len(shifts) == 1, "several shifts without dims")
        x, dims = reshaped(c, x, [math.prod(shape)]), [0]
    for shift, dim in zip(shifts, dims):
        axis = axis_of(dim, len(x.shape))
        size = x.shape[axis]
        cut = -shift % size if size else 0
        if cut:
            x = c.apply("concat", sliced(c, x, axis, cut, size), sliced(c, x, axis, 0, cut), axis=axis)
    return reshaped(c, x, shape)


@op("diagonal", "diagonal_copy")
def _diagonal(c: Call, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    rank = len(x.shape)
    a, b = axis_of(dim1, rank), axis_of(dim2, rank)
    others = [i for i in range(rank) if i not in (a, b)]
    rows, cols = x.shape[a], x.shape[b]
    first, count = (-offset * cols if offset < 0 else offset), max(0, min(rows + min(offset, 0), cols - max(offset, 0)))
    flat = reshaped(c, _permute(c, x, [*others, a, b]), [*(x.shape[i] for i in others), rows * cols])
    places = c.array(numpy.arange(count, dtype=numpy.int64) * (cols + 1) + first)
    return c.apply("gather", flat, places, axis=len(others))


@op("unfold", "unfold_copy")
def _unfold(c: Call, x: Value, dimension: int, size: int, step: int) -> Value:
    c.need(x.shape, "a tensor of rank 0")
    axis = axis_of(dimension, len(x.shape))
    frames = c.apply("frames", x, axis=axis, length=size, step=step)
    rank = len(frames.shape)
    return _permute(c, frames, [*(i for i in range(rank) if i != axis + 1), axis + 1])


@op("pixel_shuffle")
def _pixel_shuffle(c: Call, x: Value, upscale_factor: int) -> Value:
    *front, channels, height, width = x.shape
    r, lead = upscale_factor, len(front)
    parts = reshaped(c, x, [*front, channels // (r * r), r, r, height, width])
    order = [*range(lead), *(lead + i for i in (0, 3, 1, 4, 2))]
    return reshaped(c, _permute(c, parts, order), [*front, channels // (r * r), height * r, width * r])


@op("pixel_unshuffle")
def _pixel_unshuffle(c: Call, x: Value, downscale_factor: int) -> Value:
    *front, channels, height, width = x.shape
    r, lead = downscale_factor, len(front)
    parts = reshaped(c, x, [*front, channels, height // r, r, width // r, r])
    order = [*range(lead), *(lead + i for i in (0, 2, 4, 1, 3))]
    return reshaped(c, _permute(c, parts, order), [*front, channels * r * r, height // r, width // r])


# ---- new tensors ----


@op("full")
def _full(c: Call, size: Sequence[int], fill_value: Any, dtype: Any = None) -> Value:
    return c.full(size, fill_value, c.dtype)


@op("full_like")
def _full_like(c: Call, x: Value, fill_value: Any, dtype: Any = None) -> Value:
    return c.full(x.shape, fill_value, c.dtype)


@op("fill.Scalar", "fill.Tensor")
def _fill(c: Call, x: Value, value: Any) -> Value:
    return c.apply("expand", c.operand(value, c.dtype), shape=list(x.shape))


@op("zeros", "empty.memory_format", "new_zeros", "new_empty")
def _zeros(c: Call, size: Sequence[int], dtype: Any = None, x: Any = None) -> Value:
    return c.full(size, 0, c.dtype)


@op("empty_strided", "new_empty_strided")
def _empty_strided(c: Call, size: Sequence[int], stride: Any, dtype: Any = None, x: Any = None) -> Value:
    return c.full(size, 0, c.dtype)


@op("ones", "new_ones")
def _ones(c: Call, size: Sequence[int], dtype: Any = None, x: Any = None) -> Value:
    return c.full(size, 1, c.dtype)


@op("new_full")
def _new_full(c: Call, x: Value, size: Sequence[int], fill_value: Any, dtype: Any = None) -> Value:
    return c.full(size, fill_value, c.dtype)


@op("zeros_like", "empty_like")
def _zeros_like(c: Call, x: Value, dtype: Any = None) -> Value:
    return c.full(x.shape, 0, c.dtype)


@op("ones_like")
def _ones_like(c: Call, x: Value, dtype: Any = None) -> Value:
    return c.full(x.shape, 1, c.dtype)


@op("scalar_tensor")
def _scalar_tensor(c: Call, s: Any, dtype: Any = None) -> Value:
    return c.number(s, c.dtype)


@op("arange", "arange.start", "arange.start_step")
def _arange(c: Call, end: Any, start: Any = 0, step: Any = 1, dtype: Any = None) -> Value:
    c.need(step != 0, "a step of 0")
    count = max(0, math.ceil((end - start) / step))
    if all(isinstance(x, int) for x in (start, end, step)):
        return c.array(numpy.arange(start, start + count * step, step, dtype=numpy.int64)[:count], c.dtype)
    return c.array(start + numpy.arange(count, dtype=numpy.float64) * step, c.dtype)


@op("linspace")
def _linspace(c: Call, start: float, end: float, steps: int, dtype: Any = None) -> Value:
    c.need(c.dtype in ("f32", "f64", "f16", "bf16"), "integers")
    return c.array(numpy.linspace(start, end, steps), c.dtype)


@op("eye", "eye.m")
def _eye(c: Call, n: int, m: int | None = None, dtype: Any = None) -> Value:
    return c.array(numpy.eye(n, n if m is None else m), c.dtype)


def _triangle(c: Call, x: Value, diagonal: int, upper: bool) -> Value:
    rows, cols = x.shape[-2:]
    kept = (
        numpy.triu(numpy.ones((rows, cols), bool), diagonal)
        if upper
        else numpy.tril(numpy.ones((rows, cols), bool), diagonal)
    )
    return c.apply("where", c.array(kept), x, c.number(0, x.dtype))


@op("triu")
def _triu(c: Call, x: Value, diagonal: int = 0) -> Value:
    return _triangle(c, x, diagonal, True)


@op("tril")
def _tril(c: Call, x: Value, diagonal: int = 0) -> Value:
    return _triangle(c, x, diagonal, False)


# ---- sizes: numbers, not values ----


@op("sym_size.int")
def _sym_size(c: Call, x: Value, dim: int) -> int:
    return x.shape[dim]


@op("sym_numel")
def _sym_numel(c: Call, x: Value) -> int:
    return math.prod(x.shape)
