"""Pools, paddings, resizing."""

from __future__ import annotations

import math

import numpy

from ..builder import Value
from .nn import each
from .reductions import reduced
from .shapes import reshaped
from .table import FLOATS, Call, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class _Windows:
    """The windows of a pool as PyC states them: torch's ceil_mode is longer pads at the ends."""

    def __init__(
        self, c: Call, x: Value, planes: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
    ) -> None:
        self.kernel = each(kernel, planes)
        self.strides = each(stride, planes) if stride else self.kernel
        self.begins = each(padding, planes)
        self.dilations = each(dilation, planes)
        self.ends = []
        for i, size in enumerate(x.shape[-planes:]):
            pad, step = self.begins[i], self.strides[i]
            reach = self.dilations[i] * (self.kernel[i] - 1) + 1
            count = (size + 2 * pad - reach + (step - 1 if ceil else 0)) // step + 1
            if ceil and (count - 1) * step >= size + pad:
                count -= 1  # the last window starts inside
            c.need(count > 0, "windows larger than the image")
            self.ends.append(max(0, (count - 1) * step + reach - size - pad))

    def attributes(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "strides": self.strides,
            "pads": self.begins + self.ends,
            "dilations": self.dilations,
        }


def _batched(c: Call, x: Value, planes: int) -> Value:
    return x if len(x.shape) == planes + 2 else reshaped(c, x, [1, *x.shape])


def _unbatched(c: Call, y: Value, x: Value) -> Value:
    return y if len(y.shape) == len(x.shape) else reshaped(c, y, y.shape[1:])


@op("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    c: Call, x: Value, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> list[Value | None]:
    planes = 2 if "2d" in c.name else 3
    c.need(x.dtype in FLOATS, f"pools of {x.dtype}")
    image = _batched(c, x, planes)
    windows = _Windows(c, image, planes, kernel_size, stride, padding, dilation, ceil_mode).attributes()
    largest = _unbatched(c, c.apply("max_pool", image, **windows), x)
    if 1 not in c.used:
        return [largest, None]
    places = c.apply("max_pool_indices", image, **windows)
    inside = c.apply("mod", places, c.number(math.prod(image.shape[2:]), "i64"))
    return [largest, _unbatched(c, inside, x)]


@op("max_pool2d", "max_pool3d", "max_pool1d")
def _max_pool_alone(
    c: Call, x: Value, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Value:
    planes = int(c.name[len("max_pool")])
    c.need(x.dtype in FLOATS, f"pools of {x.dtype}")
    image = _batched(c, x, planes)
    windows = _Windows(c, image, planes, kernel_size, stride, padding, dilation, ceil_mode)
    return _unbatched(c, c.apply("max_pool", image, **windows.attributes()), x)


@op("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    c: Call,
    x: Value,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    planes = int(c.name[len("avg_pool")])
    c.need(x.dtype in FLOATS, f"pools of {x.dtype}")
    image = _batched(c, x, planes)
    windows = _Windows(c, image, planes, kernel_size, stride, padding, 1, ceil_mode)
    counted = windows.begins + [min(end, begin) for begin, end in zip(windows.begins, windows.ends)]
    attributes = windows.attributes()
    attributes["counted_pads"] = counted if count_include_pad else []
    return _unbatched(c, c.apply("avg_pool", image, **attributes), x)


def _bins(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


@op("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def _adaptive_avg_pool(c: Call, x: Value, output_size: Sequence[int]) -> Value:
    """Along one axis after the other a product with the matrix of averages."""
    first = len(x.shape) - len(output_size)
    c.need(0 not in x.shape and 0 not in output_size, "empty images")
    if all(count == 1 for count in output_size):
        y = reduced(c, "reduce_mean", c.cast(x, c.wide), list(range(first, len(x.shape))), True)
        return c.cast(y, c.dtype)
    y = c.cast(x, c.wide)
    for axis, count in enumerate(output_size, first):
        size = x.shape[axis]
        if size == count:
            continue
        averages = numpy.zeros((size, count))
        for column, (low, high) in enumerate(_bins(size, count)):
            averages[low:high, column] = 1 / (high - low)
        last = len(x.shape) - 1
        perm = [*(i for i in range(last + 1) if i != axis), axis]
        y = c.apply("matmul", c.apply("transpose", y, perm=perm), c.array(averages, c.wide))
        y = c.apply("transpose", y, perm=[perm.index(i) for i in range(last + 1)])
    return c.cast(y, c.dtype)


@op("adaptive_max_pool2d")
def _adaptive_max_pool(c: Call, x: Value, output_size: Sequence[int]) -> list[Value | None]:
    c.need(1 not in c.used, "its indices")
    sizes = x.shape[-2:]
    c.need(all(size % count == 0 for size, count in zip(sizes, output_size)), "windows of several sizes")
    kernel = [size // count for size, count in zip(sizes, output_size)]
    image = _batched(c, x, 2)
    return [_unbatched(c, c.apply("max_pool", image, kernel=kernel, strides=kernel), x), None]


# ---- paddings ----


def _padded(c: Call, x: Value, pad: Sequence[int], mode: str, value: float = 0.0) -> Value:
    """torch names the pads of the last axis first."""
    rank, count = len(x.shape), len(pad) // 2
    begins, ends = [0] * rank, [0] * rank
    for i in range(count):
        begins[rank - 1 - i], ends[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    if not any(begins + ends):
        return x
    return c.apply("pad", x, mode=mode, pads=begins + ends, value=value)


@op("constant_pad_nd")
def _constant_pad(c: Call, x: Value, pad: Sequence[int], value: Any = 0) -> Value:
    if x.dtype == "bool":
        return c.cast(_padded(c, c.cast(x, "u8"), pad, "constant", float(bool(value))), "bool")
    c.need(x.dtype in FLOATS or abs(value) < 2**53, "a padding that is not exact")
    return _padded(c, x, pad, "constant", float(value))


@op("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def _reflection_pad(c: Call, x: Value, padding: Sequence[int]) -> Value:
    c.need(min(padding) >= 0, "negative pads")
    return _padded(c, x, padding, "reflect")


@op("replication_pad1d", "replication_pad2d", "replication_pad3d")
def _replication_pad(c: Call, x: Value, padding: Sequence[int]) -> Value:
    c.need(min(padding) >= 0, "negative pads")
    return _padded(c, x, padding, "edge")


# ---- resizing ----


def _resized(c: Call, x: Value, output_size: Any, scale_factors: Any, **attributes: Any) -> Value:
    sizes = list(x.shape[2:])
    if output_size is not None:
        target, scales = list(output_size), [new / old for new, old in zip(output_size, sizes)]
    else:
        target = [math.floor(old * factor) for old, factor in zip(sizes, scale_factors)]
        scales = list(scale_factors)
    if attributes.get("coordinates") == "align_corners":
        scales = [new / old for new, old in zip(target, sizes)]
    if attributes["mode"] == "linear":  # torch copies along a dim that stays as long as it is
        scales = [1.0 if new == old else scale for new, old, scale in zip(target, sizes, scales)]
    y = c.cast(x, c.wide)
    y = c.apply("resize", y, sizes=[*x.shape[:2], *target], scales=[1.0, 1.0, *scales], **attributes)
    return c.cast(y, c.dtype)


def _coordinates(align_corners: bool) -> str:
    return "align_corners" if align_corners else "half_pixel"


@op("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def _upsample_nearest(c: Call, input: Value, output_size: Any, scale_factors: Any) -> Value:
    y = _resized(c, input, output_size, scale_factors, mode="nearest", coordinates="asymmetric", nearest="floor")
    return input if "2d" in c.name and y.shape == input.shape else y  # where torch copies, whatever the scales


@op("_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec")
def _upsample_nearest_exact(c: Call, input: Value, output_size: Any, scale_factors: Any) -> Value:
    return _resized(
        c, input, output_size, scale_factors, mode="nearest", coordinates="half_pixel", nearest="round_prefer_ceil"
    )


@op("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec")
def _upsample_linear(c: Call, input: Value, output_size: Any, align_corners: bool, scale_factors: Any) -> Value:
    return _resized(c, input, output_size, scale_factors, mode="linear", coordinates=_coordinates(align_corners))


@op("upsample_bicubic2d.vec")
def _upsample_cubic(c: Call, input: Value, output_size: Any, align_corners: bool, scale_factors: Any) -> Value:
    return _resized(c, input, output_size, scale_factors, mode="cubic", coordinates=_coordinates(align_corners))


@op("grid_sampler_2d")
def _grid_sampler(
    c: Call, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    c.need(0 <= interpolation_mode < 3 and 0 <= padding_mode < 3, "an unknown mode")
    c.need(interpolation_mode < 2 or padding_mode == 0, "bicubic with taps beyond the border")
    mode = ["linear", "nearest", "cubic"][interpolation_mode]
    padding = ["zeros", "border", "reflection"][padding_mode]
    return c.apply("grid_sample", input, grid, mode=mode, padding=padding, align_corners=align_corners)


@op("col2im")
def _col2im(c: Call, x: Value, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Value:
    columns = x if len(x.shape) == 3 else reshaped(c, x, [1, *x.shape])
    pads = each(padding, 2)
    image = c.apply(
        "col2im",
        columns,
        image_shape=list(output_size),
        block_shape=each(kernel_size, 2),
        dilations=each(dilation, 2),
        pads=pads + pads,
        strides=each(stride, 2),
    )
    return image if len(x.shape) == 3 else reshaped(c, image, image.shape[1:])


@op("channel_shuffle")
def _channel_shuffle(c: Call, x: Value, groups: int) -> Value:
    batch, channels, *planes = x.shape
    parts = reshaped(c, x, [batch, groups, channels // groups, *planes])
    turned = c.apply("transpose", parts, perm=[0, 2, 1, *range(3, len(parts.shape))])
    return reshaped(c, turned, x.shape)
