"""Cases of reductions and norms."""

import numpy as np

from cases.elementwise import int_limits, maximum, minimum, TINY
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import apply, exp_exact, INF, is_float, NAN, NARROW, near_f64, NUMPY, rounded, tree_sum


def reduced_first(a, axes):
    """The reduced axes, in graph order, as one axis in front; and the other axes' dims."""
    rank = a.ndim
    axes = sorted(x % rank for x in axes) if axes else list(range(rank))
    rest = [i for i in range(rank) if i not in axes]
    kept = tuple(a.shape[i] for i in rest)
    count = int(np.prod([a.shape[i] for i in axes]))
    return np.transpose(a, axes + rest).reshape(count, *kept), axes


def extreme_of_none(kind, dt):
    """What the largest (smallest) of no elements is."""
    if dt == "bool":
        return kind == "min"
    if is_float(dt):
        return -INF if kind == "max" else INF
    info = np.iinfo(NUMPY[dt])
    return info.min if kind == "max" else info.max


def reduce_op(kind, x, axes, keepdims=True):
    rows, front = reduced_first(x.w, axes)
    if kind in ("max", "min"):
        y = np.full(rows.shape[1:], extreme_of_none(kind, x.dt), rows.dtype)
        for row in rows:
            y = (maximum if kind == "max" else minimum)(y, row)
    elif kind == "prod":
        y = tree_sum(rows, np.multiply, 1) if is_float(x.dt) else np.prod(rows, axis=0, dtype=rows.dtype)
    elif not is_float(x.dt):
        y = np.sum(rows, axis=0, dtype=rows.dtype)
    else:
        y = near_f64(tree_sum(rows), rows.astype(np.float64).sum(axis=0))
        y = y / rows.dtype.type(rows.shape[0]) if kind == "mean" else y
    shape = [1 if i in front else d for i, d in enumerate(x.a.shape)]
    return rounded(y.reshape(shape) if keepdims else y, x.dt)


@generator("reduce_sum", "reduce_max", "reduce_min", "reduce_mean", "reduce_prod")
def reductions(op):
    kind = op.removeprefix("reduce_")
    c = Cases(op)

    def run(name, x, axes, keepdims=True):
        attrs = [f"axes={axes}"] if axes else []
        attrs += [] if keepdims else ["keepdims=false"]
        c.run(name, [x], reduce_op(kind, x, axes, keepdims), ", ".join(attrs))

    run("rows", rnd("f32", (3, 5), 1), [1])
    run("columns", rnd("f32", (3, 5), 2), [0])
    run("all", rnd("f32", (3, 5), 3), [])
    run("all_to_scalar", rnd("f32", (3, 5), 4), [], False)
    run("negative_axis", rnd("f32", (2, 3, 4), 5), [-1], False)
    run("two_axes", rnd("f32", (2, 3, 4, 5), 6), [0, 2], False)
    run("axes_in_any_order", rnd("f32", (2, 3, 4, 5), 6), [2, 0], False)
    run("inner_axes", rnd("f32", (2, 7, 19), 7), [1, 2])
    run("one_block", rnd("f32", (2, 1024), 8), [1])
    run("two_blocks", rnd("f32", (2, 1025), 9), [1])
    run("many_blocks", rnd("f32", (3000,), 10), [0])
    if kind in ("sum", "mean"):
        run("super_blocks", rnd("f32", ((1 << 20) + 1025,), 17), [0])
    run("strided_blocks", rnd("f32", (1100, 3), 11), [0])
    run("lanes", rnd("f32", (63,), 12), [0])
    run("rank8", rnd("f32", (2, 1, 2, 1, 3, 1, 2, 2), 13), [0, 4, 7])
    run("scalar", lit("f32", 1.25), [])
    run("no_elements", lit("f32", [], (2, 0)), [1])
    run("no_rows", lit("f32", [], (0, 3)), [1])
    run("specials", lit("f32", [[0.0, -0.0, -0.0], [-0.0, -0.0, -0.0], [1.0, NAN, 2.0], [INF, 1.0, INF],
                                [INF, -INF, 1.0], [-INF, -INF, -INF], [3e38, 3e38, -3e38], [TINY, TINY, -TINY]]), [1])
    run("f64", rnd("f64", (2, 70), 14), [1])
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (3, 90), 15), [1])
    if kind != "mean":
        for dt in ("i8", "u8", "i32", "i64"):
            run(dt, lit(dt, int_limits(dt) * 2, (2, 8)), [1])
        run("i32_no_elements", lit("i32", [], (2, 0)), [1])
    if kind in ("max", "min"):
        run("bools", lit("bool", [[0, 0, 0], [0, 1, 0], [1, 1, 1]]), [1])
        run("bools_none", lit("bool", [], (2, 0)), [1])
        run("bools_all", rnd("bool", (5, 9), 16), [], False)
    elif kind != "mean":
        c.refuse("bools", ["bool[3]"], "dtype_mismatch", "input must have a float or integer dtype, found bool[3]")
    else:
        c.refuse("integers", ["i32[3]"], "dtype_mismatch", "input must have a float dtype, found i32[3]")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axes=[2]")
    c.refuse("axis_twice", ["f32[2,3]"], "invalid_argument", "axis -1 appears twice in axes [1,-1]", "axes=[1, -1]")
    c.write()


@generator("softmax")
def softmax(op):
    c = Cases(op, "x - max, the sum, its reciprocal and the product are exact in their order; exp may be 1 ulp off.")

    def run(name, x, axis):
        m = reduce_op("max", Tensor("f64" if x.dt == "f64" else "f32", x.w), [axis])
        e = apply(exp_exact, x.w - m, "f64" if x.dt == "f64" else "f32")
        s = reduce_op("sum", Tensor("f64" if x.dt == "f64" else "f32", e), [axis])
        tol = "ulp 1" if x.dt in NARROW else "ulp 3"
        c.run(name, [x], rounded(e * (s.dtype.type(1) / s), x.dt), f"axis={axis}", tol)

    run("rows", rnd("f32", (3, 17), 1, -9.0, 9.0), -1)
    run("columns", rnd("f32", (5, 6), 2, -9.0, 9.0), 0)
    run("middle", rnd("f32", (2, 3, 4), 3, -9.0, 9.0), 1)
    run("long", rnd("f32", (1, 130), 4, -3.0, 3.0), 1)
    run("large", lit("f32", [[1e30, 1.0, -1e30], [-200.0, -201.0, -150.0], [88.0, 89.0, 90.0]]), 1)
    run("masked", lit("f32", [[-INF, 1.0, 2.0], [0.5, -INF, -INF]]), 1)
    run("nan", lit("f32", [[NAN, 1.0, 2.0], [INF, 1.0, 2.0], [-INF, -INF, -INF], [0.0, -0.0, 0.0]]), 1)
    run("one", rnd("f32", (3, 1), 5), 1)
    run("empty_axis", lit("f32", [], (2, 0)), 1)
    run("empty_rows", lit("f32", [], (0, 2)), 1)
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (3, 11), 6, -6.0, 6.0), 1)
    c.refuse("integers", ["i32[3]"], "dtype_mismatch", "input must have a float dtype, found i32[3]")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis -3 is outside of f32[2,3]", "axis=-3")
    c.refuse("scalar", ["f32[]"], "invalid_argument", "axis -1 is outside of f32[]")
    c.write()


def inverse_deviation(var, epsilon):
    t = var.dtype.type
    return t(1) / np.sqrt(var + t(epsilon))


def normalized(x, mean, var, gamma, beta, epsilon):
    y = (x - mean) * inverse_deviation(var, epsilon) * gamma
    return y if beta is None else y + beta


@generator("layer_norm")
def layer_norm(op):
    c = Cases(op)

    def run(name, x, gamma, beta=None, axis=-1, epsilon=1e-5):
        w = Tensor("f64" if x.dt == "f64" else "f32", x.w)
        axes = list(range(axis % x.a.ndim, x.a.ndim))
        mean = reduce_op("mean", w, axes)
        centred = w.a - mean
        var = reduce_op("mean", Tensor(w.dt, centred * centred), axes)
        y = normalized(w.a, mean, var, gamma.w, None if beta is None else beta.w, epsilon)
        if x.a.size and np.isfinite(x.w).all():
            f = x.a.astype(np.float64)
            truth = (f - f.mean(tuple(axes), keepdims=True)) / np.sqrt(f.var(tuple(axes), keepdims=True) + epsilon)
            truth = truth * gamma.a.astype(np.float64) + (0 if beta is None else beta.a.astype(np.float64))
            near_f64(y, truth, 1e-4)
        attrs = [] if axis == -1 else [f"axis={axis}"]
        attrs += [] if epsilon == 1e-5 else [f"epsilon={epsilon!r}"]
        c.run(name, [t for t in (x, gamma, beta) if t is not None], rounded(y, x.dt), ", ".join(attrs))

    run("rows", rnd("f32", (3, 17), 1), rnd("f32", (17,), 2), rnd("f32", (17,), 3))
    run("without_beta", rnd("f32", (2, 5), 4), rnd("f32", (5,), 5))
    run("two_axes", rnd("f32", (2, 3, 4), 6), rnd("f32", (3, 4), 7), rnd("f32", (3, 4), 8), axis=1)
    run("all_axes", rnd("f32", (2, 9), 9), rnd("f32", (2, 9), 10), rnd("f32", (2, 9), 11), axis=-2, epsilon=0.5)
    run("long", rnd("f32", (1, 130), 12), rnd("f32", (130,), 12), axis=1)
    run("constant_rows", lit("f32", [[3.0, 3.0], [-1.0, 1.0]]), lit("f32", [1.0, 2.0]), lit("f32", [0.5, -0.0]))
    run("specials", lit("f32", [[NAN, 1.0], [INF, 1.0], [1e30, -1e30]]), lit("f32", [1.0, 1.0]), lit("f32", [0.0, 0.0]))
    run("empty", lit("f32", [], (0, 2)), lit("f32", [1.0, 1.0]), lit("f32", [0.0, 0.0]))
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (2, 33), 13), rnd(dt, (33,), 14), rnd(dt, (33,), 15))
    c.refuse("integers", ["i32[2,3]", "i32[3]"], "dtype_mismatch", "x must have a float dtype, found i32[2,3]")
    c.refuse("axis", ["f32[2,3]", "f32[3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axis=2")
    c.refuse("dtypes", ["f32[2,3]", "f16[3]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2,3] and f16[3]")
    c.refuse("gamma", ["f32[2,3]", "f32[2]"], "shape_mismatch",
             "gamma must have the normalised shape [3], found f32[2]")
    c.refuse("beta", ["f32[2,3]", "f32[3]", "f32[1,3]"], "shape_mismatch",
             "beta must have the normalised shape [3], found f32[1,3]")
    c.write()


@generator("batch_norm")
def batch_norm(op):
    c = Cases(op)

    def run(name, dt, shape, seed, epsilon=1e-5):
        x = rnd(dt, shape, seed)
        gamma, beta, mean = (rnd(dt, shape[1:2], seed + i) for i in (1, 2, 3))
        var = rnd(dt, shape[1:2], seed + 4, 0.1, 4.0)
        per_channel = (shape[1],) + (1,) * (len(shape) - 2)
        g, b, m, v = (t.w.reshape(per_channel) for t in (gamma, beta, mean, var))
        y = rounded(normalized(x.w, m, v, g, b, epsilon), dt)
        c.run(name, [x, gamma, beta, mean, var], y, "" if epsilon == 1e-5 else f"epsilon={epsilon!r}")

    run("image", "f32", (2, 3, 4, 5), 1)
    run("epsilon", "f32", (1, 2, 3, 3), 11, 0.125)
    run("matrix", "f32", (3, 7), 21)
    run("sequence", "f32", (2, 5, 3), 31)
    run("rank6", "f32", (1, 2, 1, 2, 1, 3), 41)
    run("empty", "f32", (0, 2, 3, 3), 51)
    for dt in ("f64", "f16", "bf16"):
        run(dt, dt, (1, 2, 3, 5), 61)
    params = ["f32[3]"] * 4
    c.refuse("rank", ["f32[3]"] + params, "rank_mismatch", "x must have rank 2 or more, found f32[3]")
    c.refuse("integers", ["i32[2,3]"] + ["i32[3]"] * 4, "dtype_mismatch", "x must have a float dtype, found i32[2,3]")
    c.refuse("dtypes", ["f32[2,3]"] + ["f16[3]"] * 4, "dtype_mismatch",
             "inputs must have one dtype, found f32[2,3] and f16[3]")
    for i, name in enumerate(("gamma", "beta", "mean", "var")):
        bad = params[:i] + ["f32[2]"] + params[i + 1:]
        c.refuse(name, ["f32[2,3]"] + bad, "shape_mismatch", f"{name} must have shape [3], found f32[2]")
    c.write()
