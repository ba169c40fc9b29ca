"""Cases of reductions made of others, and of norms."""

import numpy as np

from cases.elementwise import int_limits
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import apply, exp_exact, INF, is_float, log_exact, NAN, NARROW, near_f64, rounded
from cases.sums import inverse_deviation, normalized, reduce_op


def wide_name(dt):
    """The dtype arithmetic on `dt` is done in."""
    return "f32" if dt in NARROW else dt


def real(x):
    """As f32 or f64; integers as f64."""
    dt = wide_name(x.dt) if is_float(x.dt) else "f64"
    return Tensor(dt, x.a.astype({"f32": np.float32, "f64": np.float64}[dt]))


def to_dtype(y, dt):
    """Truncated and saturated for integers."""
    if is_float(dt):
        return rounded(y, dt)
    info = np.iinfo(np.dtype({"i": "int", "u": "uint"}[dt[0]] + dt[1:]))
    return np.array([int(min(max(np.nan_to_num(v), info.min), info.max)) for v in y.ravel()], info.dtype).reshape(y.shape)


def reduced(kind, x, axes):
    """With the reduced axes kept."""
    if kind == "l1":
        w = Tensor(wide_name(x.dt), np.abs(x.w))
        return to_dtype(reduce_op("sum", w, axes), x.dt)
    if kind == "sum_square":
        w = Tensor(wide_name(x.dt), x.w * x.w)
        return to_dtype(reduce_op("sum", w, axes), x.dt)
    w = real(x)
    if kind == "l2":
        return to_dtype(np.sqrt(reduce_op("sum", Tensor(w.dt, w.a * w.a), axes)), x.dt)
    if kind == "log_sum":
        return to_dtype(apply(log_exact, reduce_op("sum", w, axes), w.dt), x.dt)
    m = reduce_op("max", w, axes)
    m = np.where(np.isinf(m), m.dtype.type(0), m)
    e = Tensor(w.dt, apply(exp_exact, w.a - m, w.dt))
    return to_dtype(apply(log_exact, reduce_op("sum", e, axes), w.dt) + m, x.dt)


@generator("reduce_l1", "reduce_l2", "reduce_sum_square", "reduce_log_sum", "reduce_log_sum_exp")
def made_reductions(op):
    kind = op.removeprefix("reduce_")
    c = Cases(op)
    exact = not kind.startswith("log")
    lo = 0.1 if kind == "log_sum" else -2.0

    def run(name, x, axes, keepdims=True):
        y = reduced(kind, x, axes)
        front = [a % x.a.ndim for a in axes] if axes else range(x.a.ndim)
        if not keepdims:
            y = y.reshape([d for i, d in enumerate(x.a.shape) if i not in front])
        attrs = ([f"axes={axes}"] if axes else []) + ([] if keepdims else ["keepdims=false"])
        c.run(name, [x], y, ", ".join(attrs), "" if exact else "ulp 2 abs 3e-7")

    run("rows", rnd("f32", (3, 5), 1, lo), [1])
    run("columns", rnd("f32", (3, 5), 2, lo), [0])
    run("all_to_scalar", rnd("f32", (3, 5), 3, lo), [], False)
    run("two_axes", rnd("f32", (2, 3, 4, 5), 4, lo), [-1, 1], False)
    run("two_blocks", rnd("f32", (2, 1025), 5, lo), [1])
    run("rank8", rnd("f32", (2, 1, 2, 1, 3, 1, 2, 2), 6, lo), [0, 4, 7])
    run("scalar", lit("f32", 1.25), [])
    run("no_elements", lit("f32", [], (2, 0)), [1])
    run("no_rows", lit("f32", [], (0, 3)), [1])
    run("specials", lit("f32", [[0.0, -0.0], [1.0, NAN], [INF, 1.0], [INF, -INF], [-INF, -INF], [3e38, 3e38]]), [1])
    run("large", lit("f32", [[100.0, 101.0], [1000.0, 2.0]]), [1])
    run("f64", rnd("f64", (2, 70), 7, lo), [1])
    for dt in ("f16", "bf16"):
        run(dt, rnd(dt, (3, 30), 8, lo), [1])
    run("i32", lit("i32", [[3, 4], [5, 12], [7, 1]]), [1])
    run("i64", rnd("i64", (3, 9), 9, 1.0, 30.0), [1], False)
    if kind in ("l1", "sum_square"):
        run("i32_wraps", lit("i32", int_limits("i32")), [0])
        run("u8", lit("u8", int_limits("u8")), [0])
    c.refuse("bools", ["bool[3]"], "dtype_mismatch", "input must have a float or integer dtype, found bool[3]")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axes=[2]")
    c.write()


def axis_refusals(c):
    c.refuse("integers", ["i32[3]"], "dtype_mismatch", "input must have a float dtype, found i32[3]")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis -3 is outside of f32[2,3]", "axis=-3")
    c.refuse("scalar", ["f32[]"], "invalid_argument", "axis -1 is outside of f32[]")


def axis_inputs():
    """Name, tensor, axis."""
    yield "rows", rnd("f32", (3, 17), 1, -9.0, 9.0), -1
    yield "columns", rnd("f32", (5, 6), 2, -9.0, 9.0), 0
    yield "middle", rnd("f32", (2, 3, 4), 3, -9.0, 9.0), 1
    yield "long", rnd("f32", (1, 130), 4, -3.0, 3.0), 1
    yield "ties", lit("f32", [[1.0, 1.0, 0.0], [0.0, -0.0, 0.0], [2.0, 3.0, 3.0]]), 1
    yield "specials", lit("f32", [[NAN, 1.0, 2.0], [1.0, NAN, NAN], [INF, 1.0, INF], [-INF, -INF, -INF]]), 1
    yield "large", lit("f32", [[1e30, 1.0, -1e30], [-200.0, -201.0, -150.0], [88.0, 89.0, 90.0]]), 1
    yield "one", rnd("f32", (3, 1), 5), 1
    yield "empty_axis", lit("f32", [], (2, 0)), 1
    yield "empty_rows", lit("f32", [], (0, 2)), 1
    for dt in ("f64", "f16", "bf16"):
        yield dt, rnd(dt, (3, 11), 6, -6.0, 6.0), 1


@generator("log_softmax")
def log_softmax(op):
    c = Cases(op, "x - max, the sum and the subtraction are exact in their order; exp and log may be 1 ulp off.")
    for name, x, axis in axis_inputs():
        w = real(x)
        shifted = w.a - reduce_op("max", w, [axis])
        s = reduce_op("sum", Tensor(w.dt, apply(exp_exact, shifted, w.dt)), [axis])
        y = rounded(shifted - apply(log_exact, s, w.dt), x.dt)
        c.run(name, [x], y, f"axis={axis}", "ulp 1" if x.dt in NARROW else "ulp 3 abs 3e-7")
    axis_refusals(c)
    c.write()


@generator("hardmax")
def hardmax(op):
    c = Cases(op)
    for name, x, axis in axis_inputs():
        y = np.zeros(x.a.shape)
        if x.a.size:
            first = np.argmax(x.w, axis=axis)
            np.put_along_axis(y, np.expand_dims(first, axis), 1.0, axis)
        c.run(name, [x], rounded(y, x.dt), f"axis={axis}")
    axis_refusals(c)
    c.write()


def moments(w, axes):
    mean = reduce_op("mean", w, axes)
    centred = w.a - mean
    return mean, centred, reduce_op("mean", Tensor(w.dt, centred * centred), axes)


def per_channel(p, rank):
    return p.w.reshape(p.a.shape + (1,) * (rank - 2))


def norm_truth(x, axes, epsilon):
    f = x.a.astype(np.float64)
    return (f - f.mean(axes, keepdims=True)) / np.sqrt(f.var(axes, keepdims=True) + epsilon)


NORM_SHAPES = [("image", "f32", (2, 4, 3, 5)), ("sequence", "f32", (2, 6, 7)), ("rank6", "f32", (1, 2, 1, 2, 1, 3)),
               ("long", "f32", (1, 2, 40, 33)), ("empty", "f32", (0, 2, 3, 3)), ("f64", "f64", (1, 2, 3, 5)),
               ("f16", "f16", (1, 2, 3, 5)), ("bf16", "bf16", (1, 2, 3, 5))]


def channel_refusals(c, min_rank, attrs=""):
    small = f"f32[{','.join(['3'] * (min_rank - 1))}]"
    x = f"f32[{','.join(['2', '3', '4'][:max(min_rank, 2)])}]"
    c.refuse("rank", [small, "f32[3]", "f32[3]"], "rank_mismatch",
             f"x must have rank {min_rank} or more, found {small}", attrs)
    c.refuse("integers", [x.replace("f32", "i32"), "i32[3]", "i32[3]"], "dtype_mismatch",
             "x must have a float dtype, found " + x.replace("f32", "i32"), attrs)
    c.refuse("dtypes", [x, "f16[3]", "f16[3]"], "dtype_mismatch",
             f"inputs must have one dtype, found {x} and f16[3]", attrs)
    c.refuse("gamma", [x, "f32[2]", "f32[3]"], "shape_mismatch", "gamma must have shape [3], found f32[2]", attrs)
    c.refuse("beta", [x, "f32[3]", "f32[3,1]"], "shape_mismatch", "beta must have shape [3], found f32[3,1]", attrs)


@generator("instance_norm")
def instance_norm(op):
    c = Cases(op)
    for name, dt, shape in NORM_SHAPES:
        x, gamma, beta = rnd(dt, shape, 1), rnd(dt, shape[1:2], 2), rnd(dt, shape[1:2], 3)
        epsilon = 0.125 if name == "sequence" else 1e-5
        axes = tuple(range(2, len(shape)))
        mean, _, var = moments(real(x), axes)
        g, b = per_channel(gamma, len(shape)), per_channel(beta, len(shape))
        y = normalized(x.w, mean, var, g, b, epsilon)
        near_f64(y, norm_truth(x, axes, epsilon) * g + b, 1e-4)
        c.run(name, [x, gamma, beta], rounded(y, dt), "" if epsilon == 1e-5 else f"epsilon={epsilon}")
    channel_refusals(c, 3)
    c.write()


@generator("group_norm")
def group_norm(op):
    c = Cases(op)
    for name, dt, shape in NORM_SHAPES + [("matrix", "f32", (3, 8)), ("groups_of_one", "f32", (2, 2, 5))]:
        groups = shape[1] if name == "groups_of_one" else 2
        x, gamma, beta = rnd(dt, shape, 1), rnd(dt, shape[1:2], 2), rnd(dt, shape[1:2], 3)
        epsilon = 0.125 if name == "sequence" else 1e-5
        rows = Tensor(real(x).dt, x.w.reshape(shape[0], groups, int(np.prod(shape[1:])) // groups))
        _, centred, var = moments(rows, [2])
        normal = (centred * inverse_deviation(var, epsilon)).reshape(shape)
        y = normal * per_channel(gamma, len(shape)) + per_channel(beta, len(shape))
        attrs = f"num_groups={groups}" + ("" if epsilon == 1e-5 else f", epsilon={epsilon}")
        c.run(name, [x, gamma, beta], rounded(y, dt), attrs)
    channel_refusals(c, 2, "num_groups=3")
    c.refuse("groups", ["f32[2,3,4]", "f32[3]", "f32[3]"], "invalid_argument",
             "num_groups 2 must divide the 3 channels of f32[2,3,4]", "num_groups=2")
    c.refuse("no_groups", ["f32[2,3,4]", "f32[3]", "f32[3]"], "invalid_argument",
             "num_groups 0 must divide the 3 channels of f32[2,3,4]", "num_groups=0")
    c.write()


@generator("batch_norm_training")
def batch_norm_training(op):
    c = Cases(op)
    for name, dt, shape in NORM_SHAPES + [("matrix", "f32", (5, 3))]:
        x, gamma, beta, old_mean = (rnd(dt, shape if i == 0 else shape[1:2], i + 1) for i in range(4))
        old_var = rnd(dt, shape[1:2], 5, 0.1, 4.0)
        momentum, epsilon = (0.75, 0.5) if name == "sequence" else (0.9, 1e-5)
        axes = (0,) + tuple(range(2, len(shape)))
        mean, _, var = moments(real(x), axes)
        y = normalized(x.w, mean, var, per_channel(gamma, len(shape)), per_channel(beta, len(shape)), epsilon)
        t = y.dtype.type

        def mixed(old, now):
            return Tensor(dt, rounded(old.w * t(momentum) + now.reshape(-1) * t(1.0 - momentum), dt))

        attrs = "" if momentum == 0.9 else f"epsilon={epsilon}, momentum={momentum}"
        c.run(name, [x, gamma, beta, old_mean, old_var],
              [Tensor(dt, rounded(y, dt)), mixed(old_mean, mean), mixed(old_var, var)], attrs)
    params = ["f32[3]"] * 4
    c.refuse("rank", ["f32[3]"] + params, "rank_mismatch", "x must have rank 2 or more, found f32[3]")
    for i, name in enumerate(("gamma", "beta", "mean", "var")):
        bad = params[:i] + ["f32[2]"] + params[i + 1:]
        c.refuse(name, ["f32[2,3]"] + bad, "shape_mismatch", f"{name} must have shape [3], found f32[2]")
    c.write()


@generator("layer_norm_stats")
def layer_norm_stats(op):
    c = Cases(op)
    for name, x, axis, epsilon in [("rows", rnd("f32", (3, 17), 1), -1, 1e-5), ("two_axes", rnd("f32", (2, 3, 4), 2), 1, 0.5),
                                   ("f64", rnd("f64", (2, 5), 3), 1, 1e-5), ("f16", rnd("f16", (2, 33), 4), 1, 1e-5),
                                   ("bf16", rnd("bf16", (2, 33), 5), 0, 1e-5), ("empty", lit("f32", [], (0, 2)), 1, 1e-5)]:
        w = real(x)
        mean, _, var = moments(w, list(range(axis % x.a.ndim, x.a.ndim)))
        c.run(name, [x], [Tensor(w.dt, mean), Tensor(w.dt, inverse_deviation(var, epsilon))], f"axis={axis}, epsilon={epsilon}")
    axis_refusals(c)
    c.write()


@generator("rms_norm")
def rms_norm(op):
    c = Cases(op)

    def run(name, x, gamma, axis=-1, epsilon=1e-5):
        w = real(x)
        power = reduce_op("mean", Tensor(w.dt, w.a * w.a), list(range(axis % x.a.ndim, x.a.ndim)))
        y = w.a * inverse_deviation(power, epsilon) * gamma.w
        attrs = ([] if axis == -1 else [f"axis={axis}"]) + ([] if epsilon == 1e-5 else [f"epsilon={epsilon}"])
        c.run(name, [x, gamma], rounded(y, x.dt), ", ".join(attrs))

    run("rows", rnd("f32", (3, 17), 1), rnd("f32", (17,), 2))
    run("two_axes", rnd("f32", (2, 3, 4), 3), rnd("f32", (3, 4), 4), 1, 0.5)
    run("gamma_broadcasts", rnd("f32", (2, 3, 4), 3), rnd("f32", (2, 1, 1), 5), 2)
    run("scalar_gamma", rnd("f32", (2, 9), 6), lit("f32", 0.5), 0)
    run("long", rnd("f32", (2, 1030), 7), rnd("f32", (1030,), 8))
    run("zeros", lit("f32", [[0.0, -0.0], [1e-30, 1e30], [NAN, 1.0], [INF, 1.0]]), lit("f32", [1.0, -1.0]))
    run("empty", lit("f32", [], (0, 2)), lit("f32", [1.0, 1.0]))
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (2, 33), 9), rnd(dt, (33,), 10))
    c.refuse("integers", ["i32[2,3]", "i32[3]"], "dtype_mismatch", "x must have a float dtype, found i32[2,3]")
    c.refuse("axis", ["f32[2,3]", "f32[3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axis=2")
    c.refuse("dtypes", ["f32[2,3]", "f16[3]"], "dtype_mismatch", "inputs must have one dtype, found f32[2,3] and f16[3]")
    c.refuse("gamma", ["f32[2,3]", "f32[2]"], "shape_mismatch", "gamma f32[2] does not broadcast to x f32[2,3]")
    c.refuse("gamma_rank", ["f32[2,3]", "f32[1,2,3]"], "shape_mismatch",
             "gamma f32[1,2,3] does not broadcast to x f32[2,3]")
    c.write()


@generator("lp_normalization")
def lp_normalization(op):
    c = Cases(op)
    for p in (1, 2):
        for name, x, axis in axis_inputs():
            w = real(x)
            norm = reduced("l1" if p == 1 else "l2", w, [axis])
            y = np.where(norm == 0, w.a.dtype.type(0), w.a / norm)
            c.run(f"p{p}_{name}", [x], rounded(y, x.dt), f"axis={axis}, p={p}")
    c.refuse("p", ["f32[2,3]"], "invalid_argument", "p must be 1 or 2, found 3", "p=3")
    axis_refusals(c)
    c.write()


@generator("mean_variance_normalization")
def mean_variance_normalization(op):
    c = Cases(op)
    for name, x, axes in [("default", rnd("f32", (2, 3, 4, 5), 1), None), ("rows", rnd("f32", (3, 17), 2), [1]),
                          ("constant_rows", lit("f32", [[3.0, 3.0], [1.0, -1.0]]), [-1]),
                          ("empty", lit("f32", [], (0, 2)), [1]), ("f64", rnd("f64", (2, 9), 3), [0, 1]),
                          ("f16", rnd("f16", (2, 33), 4), [1]), ("bf16", rnd("bf16", (2, 33), 5), [1])]:
        _, centred, var = moments(real(x), axes or [0, 2, 3])
        y = centred / (np.sqrt(var) + centred.dtype.type(1e-9))
        c.run(name, [x], rounded(y, x.dt), "" if axes is None else f"axes={axes}")
    c.refuse("integers", ["i32[2,3]"], "dtype_mismatch", "input must have a float dtype, found i32[2,3]", "axes=[0]")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 2 is outside of f32[2,3]")
    c.write()
