"""Cases of contractions and pools."""

import numpy as np

from cases.elementwise import int_limits, maximum, TINY
from cases.files import Cases, generator, lit, rnd
from cases.numerics import chain, INF, is_float, NAN, near_f64, rounded


@generator("matmul")
def matmul(op):
    c = Cases(op)

    def run(name, a, b):
        x = a.w.reshape(1, -1) if a.a.ndim == 1 else a.w
        y = b.w.reshape(-1, 1) if b.a.ndim == 1 else b.w
        out = chain(np.moveaxis(x, -1, 0)[..., None], np.moveaxis(y, -2, 0)[..., None, :])
        if is_float(a.dt) and np.isfinite(a.w).all():
            near_f64(out, np.matmul(x.astype(np.float64), y.astype(np.float64)))
        if a.a.ndim == 1:
            out = out[..., 0, :]
        if b.a.ndim == 1:
            out = out[..., 0]
        c.run(name, [a, b], rounded(out, a.dt))

    run("small", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2))
    run("odd", rnd("f32", (9, 17), 3), rnd("f32", (17, 13), 4))
    run("one_by_one", lit("f32", [[3.0]]), lit("f32", [[-0.5]]))
    run("row", rnd("f32", (1, 70), 5), rnd("f32", (70, 5), 6))
    run("column", rnd("f32", (5, 70), 7), rnd("f32", (70, 1), 8))
    run("one_segment", rnd("f32", (2, 256), 9), rnd("f32", (256, 3), 10))
    run("two_segments", rnd("f32", (2, 257), 11), rnd("f32", (257, 3), 12))
    run("three_segments", rnd("f32", (3, 600), 13), rnd("f32", (600, 4), 14))
    run("vectors", rnd("f32", (300,), 15), rnd("f32", (300,), 16))
    run("vector_matrix", rnd("f32", (7,), 17), rnd("f32", (7, 5), 18))
    run("matrix_vector", rnd("f32", (5, 7), 19), rnd("f32", (7,), 20))
    run("vector_batch", rnd("f32", (4,), 21), rnd("f32", (2, 3, 4, 5), 22))
    run("batch_vector", rnd("f32", (2, 3, 5, 4), 23), rnd("f32", (4,), 24))
    run("batch", rnd("f32", (2, 3, 4), 25), rnd("f32", (2, 4, 5), 26))
    run("batch_broadcast", rnd("f32", (2, 1, 3, 4), 27), rnd("f32", (5, 4, 2), 28))
    run("batch_and_matrix", rnd("f32", (3, 2, 4), 29), rnd("f32", (4, 3), 30))
    run("matrix_and_batch", rnd("f32", (2, 4), 31), rnd("f32", (3, 4, 2), 32))
    run("rank8", rnd("f32", (1, 2, 1, 1, 2, 1, 2, 3), 33), rnd("f32", (2, 1, 2, 1, 3, 2), 34))
    run("no_k", lit("f32", [], (2, 0)), lit("f32", [], (0, 3)))
    run("no_rows", lit("f32", [], (0, 4)), rnd("f32", (4, 3), 35))
    run("no_columns", rnd("f32", (2, 4), 36), lit("f32", [], (4, 0)))
    run("specials", lit("f32", [[INF, 0.0], [-0.0, 0.0], [NAN, 1.0], [3e38, 3e38], [TINY, 0.0]]),
        lit("f32", [[0.0, 1.0, 3e38], [1.0, -0.0, 0.5]]))
    run("f64", rnd("f64", (3, 300), 37), rnd("f64", (300, 2), 38))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (3, 40), 39), rnd(dt, (40, 3), 40))
    run("i32_wraps", rnd("i32", (2, 9), 41, -2e9, 2e9), rnd("i32", (9, 3), 42, -2e9, 2e9))
    run("i64_wraps", rnd("i64", (2, 9), 43, -9e18, 9e18), rnd("i64", (9, 3), 44, -9e18, 9e18))
    c.refuse("inner", ["f32[8,64]", "f32[32,16]"], "shape_mismatch",
             "inner dims differ: lhs f32[8,64] has 64, rhs f32[32,16] has 32")
    c.refuse("inner_vector", ["f32[8,64]", "f32[8]"], "shape_mismatch",
             "inner dims differ: lhs f32[8,64] has 64, rhs f32[8] has 8")
    c.refuse("batch_dims", ["f32[2,3,4]", "f32[3,4,5]"], "shape_mismatch",
             "batch dims do not broadcast: lhs f32[2,3,4], rhs f32[3,4,5]")
    c.refuse("scalar", ["f32[]", "f32[2]"], "rank_mismatch",
             "operands must have rank 1 or more, found f32[] and f32[2]")
    c.refuse("dtypes", ["f32[2,2]", "f64[2,2]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2,2] and f64[2,2]")
    c.refuse("small_integers", ["i8[2,2]", "i8[2,2]"], "dtype_mismatch",
             "lhs must have a float dtype, i32 or i64, found i8[2,2]")
    c.write()


def taps(x, kernel, strides, pads, dilations=(1, 1)):
    """For each tap in (kh, kw) order: x at that tap of every window [..., OH, OW], and whether it is inside."""
    (h, w), (kh, kw) = x.shape[2:], kernel
    oh = (h + pads[0] + pads[2] - (kh - 1) * dilations[0] - 1) // strides[0] + 1
    ow = (w + pads[1] + pads[3] - (kw - 1) * dilations[1] - 1) // strides[1] + 1
    for i in range(kh):
        for j in range(kw):
            rows = np.arange(oh)[:, None] * strides[0] - pads[0] + i * dilations[0]
            cols = np.arange(ow)[None, :] * strides[1] - pads[1] + j * dilations[1]
            inside = (rows >= 0) & (rows < h) & (cols >= 0) & (cols < w)
            yield x[:, :, np.clip(rows, 0, h - 1), np.clip(cols, 0, w - 1)], inside


@generator("conv2d")
def conv2d(op):
    c = Cases(op)

    def run(name, x, w, bias=None, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1):
        out_channels, cg, kh, kw = w.a.shape
        per_group = out_channels // group
        channels = np.arange(out_channels) // per_group * cg
        values, weights, inside = [], [], []
        for t, (patch, ok) in enumerate(taps(x.w, (kh, kw), strides, pads, dilations)):
            for ci in range(cg):
                values.append(patch[:, channels + ci])
                weights.append(w.w[:, ci, t // kw, t % kw].reshape(1, -1, 1, 1))
                inside.append(np.broadcast_to(ok, values[-1].shape))
        y = chain(np.array(values), np.array(weights), np.array(inside))
        if np.isfinite(w.w).all():
            masked = np.where(np.array(inside), np.array(values).astype(np.float64), 0)
            near_f64(y, (masked * np.array(weights).astype(np.float64)).sum(axis=0))
        if bias is not None:
            y = y + bias.w.reshape(1, -1, 1, 1)
        attrs = [f"{n}={list(v)}" for n, v, default in (("strides", strides, (1, 1)), ("pads", pads, (0, 0, 0, 0)),
                                                         ("dilations", dilations, (1, 1))) if v != default]
        attrs += [f"group={group}"] if group != 1 else []
        c.run(name, [t for t in (x, w, bias) if t is not None], rounded(y, x.dt), ", ".join(attrs))

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
    for dt in ("f16", "bf16"):
        run(dt, rnd(dt, (1, 3, 4, 4), 37), rnd(dt, (2, 3, 3, 3), 38), rnd(dt, (2,), 39), pads=(1, 1, 1, 1))
    x, w = "f32[1,4,5,5]", "f32[6,4,3,3]"
    c.refuse("integers", ["i32[1,4,5,5]", "i32[6,4,3,3]"], "dtype_mismatch",
             "x must have a float dtype, found i32[1,4,5,5]")
    c.refuse("dtypes", [x, "f16[6,4,3,3]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[1,4,5,5] and f16[6,4,3,3]")
    c.refuse("x_rank", ["f32[4,5,5]", w], "rank_mismatch", "x (NCHW) must have rank 4, found f32[4,5,5]")
    c.refuse("w_rank", [x, "f32[6,4,3]"], "rank_mismatch", "w (OIHW) must have rank 4, found f32[6,4,3]")
    c.refuse("channel_count", [x, "f32[6,3,3,3]"], "shape_mismatch",
             "w f32[6,3,3,3] takes 3 channels per group, x f32[1,4,5,5] has 4")
    c.refuse("group_zero", [x, w], "invalid_argument", "group must be positive, found 0", "group=0")
    c.refuse("group", [x, w], "shape_mismatch",
             "group 3 does not divide the channels of x f32[1,4,5,5] and w f32[6,4,3,3]", "group=3")
    c.refuse("bias_shape", [x, w, "f32[4]"], "shape_mismatch", "bias must have shape [6], found f32[4]")
    c.refuse("bias_dtype", [x, w, "f64[6]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[1,4,5,5] and f64[6]")
    c.refuse("stride_zero", [x, w], "invalid_argument", "each of strides must lie in [1,2147483647], found [0,1]",
             "strides=[0, 1]")
    c.refuse("stride_count", [x, w], "invalid_argument", "strides must have 2 entries, found [1]", "strides=[1]")
    c.refuse("pads_count", [x, w], "invalid_argument", "pads must have 4 entries, found [1,1]", "pads=[1, 1]")
    c.refuse("negative_pads", [x, w], "invalid_argument",
             "each of pads must lie in [0,2147483647], found [0,-1,0,0]", "pads=[0, -1, 0, 0]")
    c.refuse("dilation_zero", [x, w], "invalid_argument", "each of dilations must lie in [1,2147483647], found [1,0]",
             "dilations=[1, 0]")
    c.refuse("kernel_zero", [x, "f32[6,4,0,3]"], "invalid_argument",
             "each of kernel must lie in [1,2147483647], found [0,3]")
    c.refuse("rows", ["f32[1,4,2,5]", w], "shape_mismatch",
             "the window reaches over 3 rows, the padded input f32[1,4,2,5] has 2")
    c.refuse("columns", [x, w], "shape_mismatch",
             "the window reaches over 7 columns, the padded input f32[1,4,5,5] has 6",
             "dilations=[1, 3], pads=[0, 0, 0, 1]")
    c.write()


def average(x, kernel, strides, pads, include):
    patches = list(taps(x.w, kernel, strides, pads))
    values, inside = np.array([p for p, _ in patches]), np.array([ok for _, ok in patches])
    total = chain(values, None, np.broadcast_to(inside[:, None, None], values.shape), segment=1 << 40)
    count = np.full(inside.shape[1:], kernel[0] * kernel[1]) if include else inside.sum(axis=0)
    truth = np.where(inside[:, None, None], values.astype(np.float64), 0).sum(axis=0)
    return rounded(near_f64(total, truth) / count.astype(total.dtype), x.dt)


@generator("max_pool2d", "avg_pool2d")
def pools(op):
    c = Cases(op)

    def run(name, x, kernel, strides=(1, 1), pads=(0, 0, 0, 0), include=False):
        if op == "avg_pool2d":
            y = average(x, kernel, strides, pads, include)
        else:
            y = None
            for patch, ok in taps(x.w, kernel, strides, pads):
                low = -INF if is_float(x.dt) else np.iinfo(x.a.dtype).min
                patch = np.where(ok, patch, patch.dtype.type(low))
                y = patch if y is None else maximum(y, patch)
            y = rounded(y, x.dt)
        attrs = [f"kernel={list(kernel)}"]
        attrs += [f"strides={list(strides)}"] if strides != (1, 1) else []
        attrs += [f"pads={list(pads)}"] if pads != (0, 0, 0, 0) else []
        attrs += ["count_include_pad=true"] if include else []
        c.run(name, [x], y, ", ".join(attrs))

    run("plain", rnd("f32", (1, 2, 5, 6), 1), (2, 3))
    run("halves", rnd("f32", (2, 3, 6, 6), 2), (2, 2), (2, 2))
    run("rest_is_dropped", rnd("f32", (1, 1, 7, 8), 3), (3, 3), (3, 3))
    run("pads", rnd("f32", (1, 2, 5, 5), 4), (3, 3), (2, 2), (1, 1, 1, 1))
    run("uneven_pads", rnd("f32", (1, 1, 4, 5), 5), (3, 2), (1, 2), (2, 0, 1, 1))
    run("whole_plane", rnd("f32", (1, 2, 5, 7), 6), (5, 7))
    run("one_by_one", rnd("f32", (1, 2, 3, 3), 7), (1, 1), (2, 2))
    run("wide", rnd("f32", (1, 1, 3, 37), 8), (2, 2), (1, 2), (0, 1, 0, 0))
    run("no_images", lit("f32", [], (0, 1, 4, 4)), (2, 2))
    run("specials", lit("f32", [0.0, -0.0, NAN, INF, -INF, -0.0, 1.0, -INF, -0.0, -0.0, TINY, 3e38], (1, 1, 3, 4)),
        (2, 2), (1, 1), (1, 1, 1, 1))
    run("f64", rnd("f64", (1, 1, 4, 4), 9), (2, 2))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (1, 1, 4, 4), 10), (3, 3), (1, 1), (1, 1, 1, 1))
    if op == "avg_pool2d":
        run("count_include_pad", rnd("f32", (1, 2, 4, 4), 11), (3, 3), (1, 1), (1, 1, 1, 1), True)
        c.refuse("integers", ["i32[1,1,4,4]"], "dtype_mismatch", "input must have a float dtype, found i32[1,1,4,4]",
                 "kernel=[2, 2]")
    else:
        for dt in ("i8", "u8", "i32", "i64"):
            run(dt, lit(dt, int_limits(dt) * 2, (1, 1, 4, 4)), (2, 2), (1, 1), (1, 1, 0, 0))
        c.refuse("bools", ["bool[1,1,4,4]"], "dtype_mismatch",
                 "input must have a float or integer dtype, found bool[1,1,4,4]", "kernel=[2, 2]")
    x = "f32[1,1,4,4]"
    c.refuse("rank", ["f32[1,4,4]"], "rank_mismatch", "input (NCHW) must have rank 4, found f32[1,4,4]",
             "kernel=[2, 2]")
    c.refuse("kernel_count", [x], "invalid_argument", "kernel must have 2 entries, found [2]", "kernel=[2]")
    c.refuse("kernel_zero", [x], "invalid_argument", "each of kernel must lie in [1,2147483647], found [0,2]",
             "kernel=[0, 2]")
    c.refuse("strides", [x], "invalid_argument", "each of strides must lie in [1,2147483647], found [1,-1]",
             "kernel=[2, 2], strides=[1, -1]")
    c.refuse("pads_over_kernel", [x], "invalid_argument", "pads [2,0,0,0] must be smaller than the kernel [2,2]",
             "kernel=[2, 2], pads=[2, 0, 0, 0]")
    c.refuse("empty_plane", ["f32[1,1,0,4]"], "shape_mismatch", "the input f32[1,1,0,4] has an empty plane",
             "kernel=[2, 2], pads=[1, 1, 1, 1]")
    c.refuse("too_large", [x], "shape_mismatch", "the window reaches over 5 rows, the padded input f32[1,1,4,4] has 4",
             "kernel=[5, 2]")
    c.write()


@generator("global_avg_pool")
def global_avg_pool(op):
    c = Cases(op)
    for name, x in [("image", rnd("f32", (2, 3, 4, 5), 1)), ("one", rnd("f32", (1, 2, 1, 1), 2)),
                    ("large", rnd("f32", (1, 2, 17, 19), 3)), ("no_images", lit("f32", [], (0, 2, 2, 2))),
                    ("f64", rnd("f64", (1, 2, 3, 3), 4)), ("f16", rnd("f16", (1, 2, 9, 9), 5)),
                    ("bf16", rnd("bf16", (1, 2, 9, 9), 6))]:
        c.run(name, [x], average(x, x.a.shape[2:], (1, 1), (0, 0, 0, 0), False))
    c.refuse("rank", ["f32[2,3]"], "rank_mismatch", "input (NCHW) must have rank 4, found f32[2,3]")
    c.refuse("integers", ["i32[1,1,2,2]"], "dtype_mismatch", "input must have a float dtype, found i32[1,1,2,2]")
    c.refuse("empty_plane", ["f32[1,1,2,0]"], "shape_mismatch", "the input f32[1,1,2,0] has an empty plane")
    c.write()
