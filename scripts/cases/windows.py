"""Sliding windows over any number of dims, and the cases of convolutions."""

import itertools

import numpy as np

from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import chain, INF, NAN, near_f64, rounded


def listed(**attrs):
    """Attributes as text, those that are None left out."""
    def value(v):
        if v in ("f16", "bf16", "f32", "f64"):
            return v
        return f'"{v}"' if isinstance(v, str) else str(v).lower() if isinstance(v, bool) else str(
            list(v) if isinstance(v, tuple) else v)
    return ", ".join(f"{name}={value(v)}" for name, v in attrs.items() if v is not None)


def filled(dims, strides=None, pads=None, dilations=None):
    return strides or (1,) * dims, pads or (0,) * 2 * dims, dilations or (1,) * dims


def count_windows(planes, kernel, strides, pads, dilations):
    d = len(kernel)
    return tuple((planes[i] + pads[i] + pads[i + d] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
                 for i in range(d))


def taps(x, kernel, strides=None, pads=None, dilations=None):
    """For each tap, row-major: x at that tap of every window, whether it is inside, and its coordinates per dim."""
    planes, d = x.shape[2:], len(kernel)
    strides, pads, dilations = filled(d, strides, pads, dilations)
    counts = count_windows(planes, kernel, strides, pads, dilations)
    for k in itertools.product(*map(range, kernel)):
        at, inside = [], np.ones(counts, bool)
        for i in range(d):
            shape = [-1 if j == i else 1 for j in range(d)]
            line = (np.arange(counts[i]) * strides[i] - pads[i] + k[i] * dilations[i]).reshape(shape)
            inside = inside & (line >= 0) & (line < planes[i])
            at.append(line)
        yield x[(slice(None), slice(None), *(np.clip(a, 0, p - 1) for a, p in zip(at, planes)))], inside, at


def grouped(x, w, group, window):
    """values, weights, inside of a convolution in contraction order (taps, channel)."""
    out_channels, cg, *kernel = w.shape
    channels = np.arange(out_channels) // (out_channels // group) * cg
    values, weights, inside = [], [], []
    for k, (patch, ok, _) in zip(np.ndindex(*kernel), taps(x, tuple(kernel), **window)):
        for ci in range(cg):
            values.append(patch[:, channels + ci])
            weights.append(w[(slice(None), ci, *k)].reshape(1, -1, *(1,) * len(kernel)))
            inside.append(np.broadcast_to(ok, values[-1].shape))
    return np.array(values), np.array(weights), np.array(inside)


def per_channel(v, dims):
    return v.reshape(1, -1, *(1,) * dims)


@generator("conv")
def conv(op):
    c = Cases(op)

    def run(name, x, w, bias=None, group=1, to=None, **window):
        values, weights, inside = grouped(x.w, w.w, group, window)
        y = chain(values, weights, inside)
        if np.isfinite(w.w).all():
            masked = np.where(inside, values.astype(np.float64), 0)
            near_f64(y, (masked * weights.astype(np.float64)).sum(axis=0))
        if bias is not None:
            y = y + per_channel(bias.w, x.a.ndim - 2)
        attrs = listed(**window, group=group if group != 1 else None, to=to)
        c.run(name, [t for t in (x, w, bias) if t is not None], Tensor(to or x.dt, rounded(y, to or x.dt)), attrs)

    run("valid", rnd("f32", (1, 1, 5, 5), 1), rnd("f32", (1, 1, 3, 3), 2))
    run("channels", rnd("f32", (2, 3, 5, 4), 3), rnd("f32", (4, 3, 3, 2), 4))
    run("bias", rnd("f32", (1, 2, 4, 4), 5), rnd("f32", (3, 2, 2, 2), 6), rnd("f32", (3,), 7))
    run("same", rnd("f32", (1, 2, 5, 5), 8), rnd("f32", (3, 2, 3, 3), 9), rnd("f32", (3,), 10), pads=(1, 1, 1, 1))
    run("uneven_pads", rnd("f32", (1, 1, 4, 3), 11), rnd("f32", (2, 1, 2, 3), 12), pads=(0, 2, 1, 1))
    run("pads_over_kernel", rnd("f32", (1, 1, 2, 2), 13), rnd("f32", (1, 1, 2, 2), 14), pads=(3, 0, 0, 3))
    run("strides", rnd("f32", (1, 2, 7, 8), 15), rnd("f32", (2, 2, 3, 3), 16), strides=(2, 3), pads=(1, 1, 1, 1))
    run("dilations", rnd("f32", (1, 2, 7, 7), 17), rnd("f32", (2, 2, 3, 2), 18), pads=(1, 0, 1, 0), dilations=(2, 3))
    run("pointwise", rnd("f32", (1, 20, 3, 3), 19), rnd("f32", (5, 20, 1, 1), 20), rnd("f32", (5,), 21))
    run("groups", rnd("f32", (1, 4, 4, 4), 22), rnd("f32", (6, 2, 3, 3), 23), pads=(1, 1, 1, 1), group=2)
    run("depthwise", rnd("f32", (1, 5, 4, 4), 24), rnd("f32", (5, 1, 3, 3), 25), rnd("f32", (5,), 26),
        pads=(1, 1, 1, 1), group=5)
    run("depthwise_multiplier", rnd("f32", (1, 2, 4, 4), 27), rnd("f32", (6, 1, 3, 3), 28), strides=(2, 2), group=2)
    run("two_segments", rnd("f32", (1, 40, 3, 4), 29), rnd("f32", (2, 40, 3, 3), 30), pads=(1, 1, 1, 1))
    run("plane", rnd("f32", (1, 3, 16, 17), 31), rnd("f32", (2, 3, 3, 3), 32), pads=(1, 1, 1, 1), strides=(2, 1))
    run("skipped_taps", lit("f32", [[[[1.0, -0.0], [2.0, 3.0]]]]), lit("f32", [[[[INF, NAN], [1.0, -1.0]]]]),
        pads=(1, 0, 0, 1))
    run("negative_zero_bias", lit("f32", [[[[0.0]]]]), lit("f32", [[[[-1.0]]]]), lit("f32", [-0.0]))
    run("no_images", lit("f32", [], (0, 2, 4, 4)), rnd("f32", (3, 2, 3, 3), 33))
    run("f64", rnd("f64", (1, 2, 4, 4), 34), rnd("f64", (2, 2, 3, 3), 35), rnd("f64", (2,), 36), pads=(1, 1, 1, 1))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (1, 3, 4, 4), 37), rnd(dt, (2, 3, 3, 3), 38), rnd(dt, (2,), 39), pads=(1, 1, 1, 1))
    for dt in ("f16", "bf16"):
        run(f"{dt}_to_f32", rnd(dt, (1, 3, 4, 4), 37), rnd(dt, (2, 3, 3, 3), 38), pads=(1, 1, 1, 1), to="f32")
        run(f"{dt}_to_f32_bias", rnd(dt, (1, 40, 3), 37), rnd(dt, (2, 40, 2), 38), rnd(dt, (2,), 39), to="f32")
    run("line", rnd("f32", (2, 3, 19), 40), rnd("f32", (4, 3, 5), 41), rnd("f32", (4,), 42), strides=(2,), pads=(2, 1))
    run("causal_line", rnd("f32", (1, 4, 9), 43), rnd("f32", (4, 1, 3), 44), pads=(4, 0), dilations=(2,), group=4)
    run("volume", rnd("f32", (1, 2, 4, 3, 5), 45), rnd("f32", (3, 2, 2, 3, 2), 46), rnd("f32", (3,), 47),
        strides=(2, 1, 2), pads=(1, 1, 0, 0, 1, 1))
    run("four_dims", rnd("f32", (1, 2, 3, 2, 3, 2), 48), rnd("f32", (2, 2, 2, 1, 2, 2), 49), dilations=(2, 1, 1, 1))
    x, w = "f32[1,4,5,5]", "f32[6,4,3,3]"
    c.refuse("integers", ["i32[1,4,5,5]", "i32[6,4,3,3]"], "dtype_mismatch",
             "x must have a float dtype, found i32[1,4,5,5]")
    c.refuse("dtypes", [x, "f16[6,4,3,3]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[1,4,5,5] and f16[6,4,3,3]")
    c.refuse("x_rank", ["f32[4,5]", w], "rank_mismatch", "x must have rank 3 or more, found f32[4,5]")
    c.refuse("w_rank", [x, "f32[6,4,3]"], "rank_mismatch", "w must have rank 4, found f32[6,4,3]")
    c.refuse("bias_shape", [x, w, "f32[4]"], "shape_mismatch", "bias must have shape [6], found f32[4]")
    c.refuse("bias_dtype", [x, w, "f64[6]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[1,4,5,5] and f64[6]")
    c.refuse_to(["[1,4,5,5]", "[6,4,3,3]"])
    refuse_windows(c, x, w)
    c.write()


def refuse_windows(c, x, w):
    """The refusals of a convolution of x [1,4,5,5] with w [6,4,3,3]."""
    def of(shape, like=w):
        return like.split("[")[0] + shape
    c.refuse("channel_count", [x, of("[6,3,3,3]")], "shape_mismatch",
             f"w {of('[6,3,3,3]')} takes 3 channels per group, x {x} has 4")
    c.refuse("group_zero", [x, w], "invalid_argument", "group must be positive, found 0", "group=0")
    c.refuse("group", [x, w], "shape_mismatch", f"group 3 does not divide the channels of x {x} and w {w}", "group=3")
    c.refuse("stride_zero", [x, w], "invalid_argument", "each of strides must lie in [1,2147483647], found [0,1]",
             "strides=[0, 1]")
    c.refuse("stride_count", [x, w], "invalid_argument", "strides must have 2 entries, found [1]", "strides=[1]")
    c.refuse("pads_count", [x, w], "invalid_argument", "pads must have 4 entries, found [1,1]", "pads=[1, 1]")
    c.refuse("negative_pads", [x, w], "invalid_argument",
             "each of pads must lie in [0,2147483647], found [0,-1,0,0]", "pads=[0, -1, 0, 0]")
    c.refuse("dilation_zero", [x, w], "invalid_argument", "each of dilations must lie in [1,2147483647], found [1,0]",
             "dilations=[1, 0]")
    c.refuse("kernel_zero", [x, of("[6,4,0,3]")], "invalid_argument",
             "each of kernel must lie in [1,2147483647], found [0,3]")
    c.refuse("rows", [of("[1,4,2,5]", x), w], "shape_mismatch",
             "the window reaches over 3 elements of dim 0 of the planes [2,5], with pads there are 2")
    c.refuse("columns", [x, w], "shape_mismatch",
             "the window reaches over 7 elements of dim 1 of the planes [5,5], with pads there are 6",
             "dilations=[1, 3], pads=[0, 0, 0, 1]")


@generator("conv_integer")
def conv_integer(op):
    c = Cases(op)

    def run(name, x, w, x_zero=None, w_zero=None, group=1, **window):
        wide_x = x.a.astype(np.int64) - (0 if x_zero is None else x_zero.a.astype(np.int64))
        zero = 0 if w_zero is None else w_zero.a.astype(np.int64)
        if np.ndim(zero) == 1:
            zero = zero.reshape(-1, *(1,) * (w.a.ndim - 1))
        values, weights, inside = grouped(wide_x, w.a.astype(np.int64) - zero, group, window)
        y = np.where(inside, values * weights, 0).sum(axis=0).astype(np.int32)
        attrs = listed(**window, group=group if group != 1 else None)
        c.run(name, [t for t in (x, w, x_zero, w_zero) if t is not None], Tensor("i32", y), attrs)

    def byte(dt, shape, seed):
        return rnd(dt, shape, seed, *((0.0, 256.0) if dt == "u8" else (-128.0, 128.0)))

    for a in ("u8", "i8"):
        for b in ("u8", "i8"):
            run(f"{a}_{b}", byte(a, (1, 2, 4, 5), 1), byte(b, (3, 2, 3, 2), 2), lit(a, 17), lit(b, 3),
                pads=(1, 1, 1, 1))
    run("no_zero_points", byte("u8", (2, 3, 5, 4), 3), byte("i8", (4, 3, 3, 2), 4), strides=(2, 1))
    run("x_zero_point", byte("u8", (1, 1, 3, 3), 5), byte("u8", (1, 1, 2, 2), 6), lit("u8", 255), pads=(1, 1, 1, 1))
    run("w_zero_points", byte("u8", (1, 2, 4, 4), 7), byte("i8", (3, 2, 2, 2), 8), lit("u8", 128),
        lit("i8", [-128, 0, 127]), dilations=(2, 1))
    run("groups", byte("u8", (1, 4, 4, 4), 9), byte("i8", (6, 2, 3, 3), 10), lit("u8", 100), lit("i8", 1),
        pads=(1, 1, 1, 1), group=2)
    run("line", byte("i8", (1, 3, 17), 11), byte("i8", (2, 3, 4), 12), strides=(3,))
    run("volume", byte("u8", (1, 2, 3, 3, 4), 13), byte("i8", (2, 2, 2, 2, 3), 14), lit("u8", 7))
    run("extremes", lit("u8", [255] * 600, (1, 600, 1)), lit("i8", [-128] * 600, (1, 600, 1)))
    run("no_images", lit("u8", [], (0, 2, 4, 4)), byte("u8", (3, 2, 3, 3), 15))
    x, w = "u8[1,4,5,5]", "i8[6,4,3,3]"
    c.refuse("x_dtype", ["i32[1,4,5,5]", w], "dtype_mismatch", "x must have dtype i8 or u8, found i32[1,4,5,5]")
    c.refuse("w_dtype", [x, "f32[6,4,3,3]"], "dtype_mismatch", "w must have dtype i8 or u8, found f32[6,4,3,3]")
    c.refuse("x_rank", ["u8[4,5]", w], "rank_mismatch", "x must have rank 3 or more, found u8[4,5]")
    c.refuse("w_rank", [x, "i8[6,4,3]"], "rank_mismatch", "w must have rank 4, found i8[6,4,3]")
    c.refuse("x_zero_dtype", [x, w, "i8[]"], "dtype_mismatch", f"inputs must have one dtype, found {x} and i8[]")
    c.refuse("w_zero_dtype", [x, w, "u8[]", "u8[]"], "dtype_mismatch",
             f"inputs must have one dtype, found {w} and u8[]")
    c.refuse("x_zero_shape", [x, w, "u8[6]"], "shape_mismatch",
             "the zero point of x must be a scalar, found u8[6]")
    c.refuse("w_zero_shape", [x, w, "u8[]", "i8[4]"], "shape_mismatch",
             "the zero point of w must be a scalar or one per output channel, found i8[4]")
    refuse_windows(c, x, w)
    c.write()


def transposed(x, w, group, strides, pads, dilations, planes):
    """Element by element: the taps that meet it in (tap, channel) order, numbered by those that exist."""
    per_group, out_channels = w.shape[0] // group, w.shape[1] * group
    y = np.zeros((x.shape[0], out_channels, *planes), x.dtype)
    for at in np.ndindex(*planes):
        taps_here = [k for k in np.ndindex(*w.shape[2:]) if all(
            (o + p - i * d) % s == 0 for o, p, i, d, s in zip(at, pads, k, dilations, strides))]
        for m in range(out_channels):
            first = m // w.shape[1] * per_group
            values, weights, inside = [], [], []
            for k in taps_here:
                source = [(o + p - i * d) // s for o, p, i, d, s in zip(at, pads, k, dilations, strides)]
                ok = all(0 <= i < n for i, n in zip(source, x.shape[2:]))
                for ci in range(first, first + per_group):
                    values.append(x[(slice(None), ci, *source)] if ok else np.zeros(x.shape[0], x.dtype))
                    weights.append(np.full(x.shape[0], w[(ci, m % w.shape[1], *k)]))
                    inside.append(np.full(x.shape[0], ok))
            if values:
                y[(slice(None), m, *at)] = chain(np.array(values), np.array(weights), np.array(inside))
    return y


def scattered(x, w, group, strides, pads, dilations, planes):
    """The same as additions to the output, in f64."""
    per_group, y = w.shape[0] // group, np.zeros((x.shape[0], w.shape[1] * group, *planes))
    for ci, m, k in itertools.product(range(w.shape[0]), range(w.shape[1]), np.ndindex(*w.shape[2:])):
        for i in np.ndindex(*x.shape[2:]):
            at = tuple(a * s + b * d - p for a, b, s, d, p in zip(i, k, strides, dilations, pads))
            if all(0 <= a < n for a, n in zip(at, planes)):
                channel = ci // per_group * w.shape[1] + m
                y[(slice(None), channel, *at)] += x[(slice(None), ci, *i)] * w[(ci, m, *k)]
    return y


@generator("conv_transpose")
def conv_transpose(op):
    c = Cases(op, "Taps that meet an output element are numbered among themselves: segments of 256 count those only.")

    def run(name, x, w, planes, bias=None, group=1, strides=None, pads=None, dilations=None, to=None):
        d = len(planes)
        window = (strides or (1,) * d, pads or (0,) * d, dilations or (1,) * d)
        y = transposed(x.w, w.w, group, *window, planes)
        if np.isfinite(w.w).all():
            near_f64(y, scattered(x.w.astype(np.float64), w.w.astype(np.float64), group, *window, planes))
        if bias is not None:
            y = y + per_channel(bias.w, d)
        attrs = listed(output_shape=planes, strides=strides, pads=pads, dilations=dilations,
                       group=group if group != 1 else None, to=to)
        c.run(name, [t for t in (x, w, bias) if t is not None], Tensor(to or x.dt, rounded(y, to or x.dt)), attrs)

    run("plain", rnd("f32", (1, 1, 3, 3), 1), rnd("f32", (1, 2, 3, 3), 2), (5, 5))
    run("halves", rnd("f32", (2, 3, 3, 4), 3), rnd("f32", (3, 2, 2, 2), 4), (6, 8), rnd("f32", (2,), 5), strides=(2, 2))
    run("uneven_phases", rnd("f32", (1, 2, 3, 4), 6), rnd("f32", (2, 3, 3, 3), 7), (5, 8), strides=(2, 2),
        pads=(1, 1))
    run("gaps", rnd("f32", (1, 1, 2, 3), 8), rnd("f32", (1, 1, 2, 1), 9), (6, 9), strides=(3, 3))
    run("dilations", rnd("f32", (1, 2, 3, 3), 10), rnd("f32", (2, 2, 3, 2), 11), (9, 7), strides=(2, 2), pads=(0, 1),
        dilations=(2, 3))
    run("dilation_shares_factor", rnd("f32", (1, 1, 3, 3), 12), rnd("f32", (1, 1, 3, 3), 13), (20, 15),
        strides=(6, 4), dilations=(4, 6))
    run("output_padding", rnd("f32", (1, 1, 2, 2), 14), rnd("f32", (1, 1, 3, 3), 15), (7, 6), strides=(3, 2))
    run("cropped", rnd("f32", (1, 1, 4, 4), 16), rnd("f32", (1, 1, 3, 3), 17), (2, 3), pads=(2, 1))
    run("groups", rnd("f32", (1, 4, 3, 3), 18), rnd("f32", (4, 3, 2, 2), 19), (6, 6), rnd("f32", (6,), 20),
        strides=(2, 2), group=2)
    run("depthwise", rnd("f32", (1, 3, 4, 4), 21), rnd("f32", (3, 1, 4, 4), 22), (8, 8), strides=(2, 2), pads=(1, 1),
        group=3)
    run("two_segments", rnd("f32", (1, 150, 2, 2), 23), rnd("f32", (150, 1, 3, 3), 24), (4, 4), strides=(2, 2),
        pads=(1, 1))
    run("line", rnd("f32", (2, 2, 9), 25), rnd("f32", (2, 3, 5), 26), (19,), strides=(2,), pads=(1,))
    run("volume", rnd("f32", (1, 2, 2, 2, 3), 27), rnd("f32", (2, 2, 2, 3, 2), 28), (4, 3, 6), strides=(2, 1, 2),
        pads=(0, 1, 0))
    run("skipped_taps", lit("f32", [[[1.0, -0.0]]]), lit("f32", [[[INF, NAN, 1.0]]]), (5,))
    run("no_images", lit("f32", [], (0, 2, 3)), rnd("f32", (2, 3, 2), 29), (4,))
    run("no_output", rnd("f32", (1, 2, 3), 30), rnd("f32", (2, 3, 2), 31), (0,))
    run("f64", rnd("f64", (1, 2, 3, 3), 32), rnd("f64", (2, 2, 3, 3), 33), (5, 5), rnd("f64", (2,), 34), strides=(2, 2),
        pads=(1, 1))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (1, 3, 2, 2), 35), rnd(dt, (3, 2, 3, 3), 36), (5, 5), rnd(dt, (2,), 37), strides=(2, 2))
    for dt in ("f16", "bf16"):
        run(f"{dt}_to_f32", rnd(dt, (1, 3, 2, 2), 35), rnd(dt, (3, 2, 3, 3), 36), (5, 5), rnd(dt, (2,), 37),
            strides=(2, 2), to="f32")
    c.refuse_to(["[1,4,5,5]", "[4,6,3,3]"], "output_shape=[7, 7]")
    x, w, shape = "f32[1,4,5,5]", "f32[4,6,3,3]", "output_shape=[7, 7]"
    c.refuse("integers", ["i32[1,4,5,5]", "i32[4,6,3,3]"], "dtype_mismatch",
             "x must have a float dtype, found i32[1,4,5,5]", shape)
    c.refuse("dtypes", [x, "f16[4,6,3,3]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[1,4,5,5] and f16[4,6,3,3]", shape)
    c.refuse("x_rank", ["f32[4,5]", w], "rank_mismatch", "x must have rank 3 or more, found f32[4,5]", shape)
    c.refuse("w_rank", [x, "f32[4,6,3]"], "rank_mismatch", "w must have rank 4, found f32[4,6,3]", shape)
    c.refuse("channel_count", [x, "f32[3,6,3,3]"], "shape_mismatch",
             "w f32[3,6,3,3] takes 3 channels, x f32[1,4,5,5] has 4", shape)
    c.refuse("group_zero", [x, w], "invalid_argument", "group must be positive, found 0", shape + ", group=0")
    c.refuse("group", [x, w], "shape_mismatch", f"group 3 does not divide the channels of x {x} and w {w}",
             shape + ", group=3")
    c.refuse("bias_shape", [x, w, "f32[4]"], "shape_mismatch", "bias must have shape [6], found f32[4]", shape)
    c.refuse("output_count", [x, w], "invalid_argument", "output_shape must have 2 entries, found [7]",
             "output_shape=[7]")
    c.refuse("kernel_zero", [x, "f32[4,6,0,3]"], "invalid_argument",
             "each of kernel must lie in [1,2147483647], found [0,3]", shape)
    c.refuse("strides", [x, w], "invalid_argument", "each of strides must lie in [1,2147483647], found [0,1]",
             shape + ", strides=[0, 1]")
    c.refuse("pads", [x, w], "invalid_argument", "pads must have 2 entries, found [1,1,1,1]",
             shape + ", pads=[1, 1, 1, 1]")
    c.refuse("dilation_count", [x, w], "invalid_argument", "dilations must have 2 entries, found [1]",
             shape + ", dilations=[1]")
    c.write()


@generator("col2im")
def col2im(op):
    c = Cases(op)

    def run(name, x, image, block, **window):
        d = len(image)
        strides, pads, dilations = filled(d, **window)
        counts = count_windows(image, block, strides, pads, dilations)
        n, channels = x.a.shape[0], x.a.shape[1] // int(np.prod(block))
        columns = x.w.reshape(n, channels, *block, *counts)
        y = np.zeros((n, channels, *image), x.w.dtype)
        for k in np.ndindex(*block):  # in this order the additions to one element follow one another
            for at in np.ndindex(*counts):
                to = tuple(a * s + b * e - p for a, b, s, e, p in zip(at, k, strides, dilations, pads))
                if all(0 <= a < m for a, m in zip(to, image)):
                    y[(slice(None), slice(None), *to)] += columns[(slice(None), slice(None), *k, *at)]
        c.run(name, [x], rounded(y, x.dt), listed(image_shape=image, block_shape=block, **window))

    run("plain", rnd("f32", (1, 6, 4), 1), (3, 4), (2, 3))
    run("blocks", rnd("f32", (2, 4, 6), 2), (4, 6), (2, 2), strides=(2, 2))
    run("overlap", rnd("f32", (1, 18, 25), 3), (5, 5), (3, 3), pads=(1, 1, 1, 1))
    run("strides", rnd("f32", (1, 9, 12), 4), (5, 6), (3, 3), strides=(1, 2), pads=(0, 1, 1, 0))
    run("dilations", rnd("f32", (1, 4, 12), 5), (5, 5), (2, 2), dilations=(2, 1))
    run("line", rnd("f32", (1, 6, 8), 6), (10,), (3,))
    run("volume", rnd("f32", (1, 16, 4), 7), (2, 3, 3), (2, 2, 2))
    run("no_images", lit("f32", [], (0, 4, 6)), (4, 6), (2, 2), strides=(2, 2))
    run("f64", rnd("f64", (1, 6, 8), 8), (10,), (3,))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2", "i8", "i32", "u8"):
        run(dt, rnd(dt, (1, 6, 8), 9, 0.0, 100.0), (10,), (3,))
    attrs = "image_shape=[3, 4], block_shape=[2, 3]"
    c.refuse("bools", ["bool[1,6,6]"], "dtype_mismatch",
             "input must have a float or integer dtype, found bool[1,6,6]", attrs)
    c.refuse("rank", ["f32[6,6]"], "rank_mismatch", "input must have rank 3, found f32[6,6]", attrs)
    c.refuse("rows", ["f32[1,5,6]"], "shape_mismatch",
             "the input f32[1,5,6] must have a multiple of 6 rows and 4 columns", attrs)
    c.refuse("columns", ["f32[1,6,5]"], "shape_mismatch",
             "the input f32[1,6,5] must have a multiple of 6 rows and 4 columns", attrs)
    c.refuse("image", ["f32[1,6,6]"], "invalid_argument",
             "each of image_shape must lie in [1,2147483647], found [0,4]", "image_shape=[0, 4], block_shape=[2, 3]")
    c.refuse("block", ["f32[1,6,6]"], "invalid_argument", "block_shape must have 2 entries, found [2]",
             "image_shape=[3, 4], block_shape=[2]")
    c.refuse("too_large", ["f32[1,6,6]"], "shape_mismatch",
             "the window reaches over 5 elements of dim 0 of the planes [3,4], with pads there are 3",
             "image_shape=[3, 4], block_shape=[5, 3]")
    c.refuse("too_many_blocks", ["f32[1,1,1]"], "invalid_argument", "over the limit",
             "image_shape=[2000000000, 2000000000], block_shape=[1, 1]")
    c.refuse("stride_count", ["f32[1,6,6]"], "invalid_argument", "strides must have 2 entries, found [1]",
             attrs + ", strides=[1]")
    c.write()
