"""Cases of pools."""

import numpy as np

from cases.elementwise import int_limits, maximum, TINY
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import chain, INF, is_float, NAN, near_f64, rounded
from cases.windows import count_windows, filled, listed, taps


def windows(x, kernel, window):
    patches = list(taps(x, kernel, **window))
    values, inside = np.array([p for p, _, _ in patches]), np.array([ok for _, ok, _ in patches])
    return values, np.broadcast_to(inside[:, None, None], values.shape), [at for _, _, at in patches]


def average(x, kernel, counted=None, **window):
    values, inside, places = windows(x.w, kernel, window)
    total = chain(values, None, inside, segment=1 << 40)
    d = len(kernel)
    counted = counted or (0,) * 2 * d
    count = 0
    for at in places:
        ok = True
        for i in range(d):
            ok = ok & (at[i] >= -counted[i]) & (at[i] < x.a.shape[2 + i] + counted[i + d])
        count = count + np.asarray(ok).astype(total.dtype)
    truth = np.where(inside, values.astype(np.float64), 0).sum(axis=0)
    return rounded(near_f64(total, truth) / count, x.dt)


def norm(x, kernel, p=2, **window):
    values, inside, _ = windows(x.w, kernel, window)
    if p > 2:
        exact = (np.where(inside, np.abs(values.astype(np.float64)), 0) ** p).sum(axis=0) ** (1 / p)
        return rounded(exact, x.dt)
    total = chain(values * values if p == 2 else np.abs(values), None, inside, segment=1 << 40)
    return rounded(np.sqrt(total) if p == 2 else total, x.dt)


def lowest(x):
    return x.w.dtype.type(-INF if is_float(x.dt) else np.iinfo(x.a.dtype).min)


def largest(x, kernel, **window):
    y = None
    for patch, ok, _ in taps(x.w, kernel, **window):
        patch = np.where(ok, patch, lowest(x))
        y = patch if y is None else maximum(y, patch)
    return rounded(y, x.dt)


def places_of_largest(x, kernel, column_major=None, **window):
    d = len(kernel)
    counts = count_windows(x.a.shape[2:], kernel, *filled(d, **window))
    y = np.full((*x.a.shape[:2], *counts), -1, np.int64)
    strides, pads, dilations = filled(d, **window)
    for at in np.ndindex(*y.shape):
        best = None
        for k in np.ndindex(*kernel):
            p = tuple(o * s + i * e - b for o, s, i, e, b in zip(at[2:], strides, k, dilations, pads))
            if any(i < 0 or i >= n for i, n in zip(p, x.a.shape[2:])):
                continue
            v = x.w[(*at[:2], *p)]
            if best is None or v > best or (v != v and best == best):
                best = v
                order = "F" if column_major else "C"
                flat = np.ravel_multi_index(p, x.a.shape[2:], order=order)
                y[at] = (at[0] * x.a.shape[1] + at[1]) * np.prod(x.a.shape[2:], dtype=np.int64) + flat
    return Tensor("i64", y)


POOLS = {"max_pool": largest, "avg_pool": average, "lp_pool": norm, "max_pool_indices": places_of_largest}


@generator(*POOLS)
def pools(op):
    c = Cases(op)

    def run(name, x, kernel, tol="", **more):
        y = POOLS[op](x, kernel, **more)
        attrs = {("counted_pads" if n == "counted" else n): v for n, v in more.items()}
        c.run(name, [x], y, listed(kernel=kernel, **attrs), tol)

    run("plain", rnd("f32", (1, 2, 5, 6), 1), (2, 3))
    run("halves", rnd("f32", (2, 3, 6, 6), 2), (2, 2), strides=(2, 2))
    run("rest_is_dropped", rnd("f32", (1, 1, 7, 8), 3), (3, 3), strides=(3, 3))
    run("pads", rnd("f32", (1, 2, 5, 5), 4), (3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    run("uneven_pads", rnd("f32", (1, 1, 4, 5), 5), (3, 2), strides=(1, 2), pads=(2, 0, 1, 1))
    run("whole_plane", rnd("f32", (1, 2, 5, 7), 6), (5, 7))
    run("one_by_one", rnd("f32", (1, 2, 3, 3), 7), (1, 1), strides=(2, 2))
    run("wide", rnd("f32", (1, 1, 3, 37), 8), (2, 2), strides=(1, 2), pads=(0, 1, 0, 0))
    run("no_images", lit("f32", [], (0, 1, 4, 4)), (2, 2))
    run("dilations", rnd("f32", (1, 2, 7, 6), 12), (3, 2), dilations=(2, 3), pads=(1, 1, 2, 0))
    run("line", rnd("f32", (2, 2, 19), 13), (4,), strides=(3,), pads=(1, 2))
    run("volume", rnd("f32", (1, 2, 4, 3, 5), 14), (2, 2, 3), strides=(2, 1, 1), pads=(0, 1, 0, 0, 0, 1))
    run("four_dims", rnd("f32", (1, 1, 3, 2, 3, 2), 15), (2, 1, 2, 2))
    run("window_of_padding", rnd("f32", (1, 1, 3, 4), 16), (2, 2), strides=(2, 2), pads=(2, 0, 3, 2))
    run("specials", lit("f32", [0.0, -0.0, NAN, INF, -INF, -0.0, 1.0, -INF, -0.0, -0.0, TINY, 3e38], (1, 1, 3, 4)),
        (2, 2), pads=(1, 1, 1, 1))
    run("f64", rnd("f64", (1, 1, 4, 4), 9), (2, 2))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (1, 1, 4, 4), 10), (3, 3), pads=(1, 1, 1, 1))
    EXTRAS[op](c, run)
    x = "f32[1,1,4,4]"
    c.refuse("rank", ["f32[4,4]"], "rank_mismatch", "input must have rank 3 or more, found f32[4,4]", "kernel=[2, 2]")
    c.refuse("kernel_count", [x], "invalid_argument", "kernel must have 2 entries, found [2]", "kernel=[2]")
    c.refuse("kernel_zero", [x], "invalid_argument", "each of kernel must lie in [1,2147483647], found [0,2]",
             "kernel=[0, 2]")
    c.refuse("strides", [x], "invalid_argument", "each of strides must lie in [1,2147483647], found [1,-1]",
             "kernel=[2, 2], strides=[1, -1]")
    c.refuse("pad_count", [x], "invalid_argument", "pads must have 4 entries, found [2,0]", "kernel=[2, 2], pads=[2, 0]")
    c.refuse("dilation_zero", [x], "invalid_argument", "each of dilations must lie in [1,2147483647], found [0,1]",
             "kernel=[2, 2], dilations=[0, 1]")
    c.refuse("empty_plane", ["f32[1,1,0,4]"], "shape_mismatch", "the input f32[1,1,0,4] has an empty plane",
             "kernel=[2, 2], pads=[1, 1, 1, 1]")
    c.refuse("too_large", [x], "shape_mismatch",
             "the window reaches over 5 elements of dim 0 of the planes [4,4], with pads there are 4", "kernel=[5, 2]")
    c.write()


def refuse_integers(c):
    c.refuse("integers", ["i32[1,1,4,4]"], "dtype_mismatch", "input must have a float dtype, found i32[1,1,4,4]",
             "kernel=[2, 2]")


def more_averages(c, run):
    x = rnd("f32", (1, 2, 4, 4), 11)
    run("counted_pads", x, (3, 3), pads=(1, 1, 1, 1), counted=(1, 1, 1, 1))
    run("rounded_up", x, (3, 3), strides=(2, 2), pads=(1, 1, 2, 2), counted=(1, 1, 1, 1))
    run("counted_dilations", x, (2, 3), pads=(2, 3, 2, 3), counted=(1, 2, 0, 1), dilations=(3, 2))
    refuse_integers(c)
    c.refuse("counted_count", ["f32[1,1,4,4]"], "invalid_argument", "counted_pads must have 4 entries, found [1]",
             "kernel=[2, 2], counted_pads=[1]")
    c.refuse("counted", ["f32[1,1,4,4]"], "invalid_argument",
             "counted_pads [0,0,1,0] must be within pads [0,0,0,0]", "kernel=[2, 2], counted_pads=[0, 0, 1, 0]")


def more_norms(c, run):
    x = rnd("f32", (1, 2, 4, 4), 11)
    run("sums", x, (3, 3), p=1)
    run("cubes", x, (3, 3), p=3, pads=(1, 1, 1, 1), tol="ulp 6")
    run("f64_fourth", rnd("f64", (1, 2, 4, 4), 11), (3, 3), p=4, tol="ulp 12")
    refuse_integers(c)
    c.refuse("p", ["f32[1,1,4,4]"], "invalid_argument", "p must be positive, found 0", "kernel=[2, 2], p=0")


def more_maxima(c, run):
    for dt in ("i8", "u8", "i32", "i64"):
        run(dt, lit(dt, int_limits(dt) * 2, (1, 1, 4, 4)), (2, 2), pads=(1, 1, 0, 0))
    c.refuse("bools", ["bool[1,1,4,4]"], "dtype_mismatch",
             "input must have a float or integer dtype, found bool[1,1,4,4]", "kernel=[2, 2]")


def more_places(c, run):
    more_maxima(c, run)
    run("column_major", rnd("f32", (2, 2, 4, 5), 20), (2, 3), column_major=True, pads=(1, 1, 0, 0))
    run("column_major_volume", rnd("f32", (1, 2, 3, 4, 5), 21), (2, 2, 2), column_major=True)
    run("first_of_equals", lit("f32", [1.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0, NAN, 3.0, NAN, INF], (1, 1, 3, 4)), (2, 2))


EXTRAS = {"max_pool": more_maxima, "avg_pool": more_averages, "lp_pool": more_norms, "max_pool_indices": more_places}


@generator("global_avg_pool", "global_max_pool", "global_lp_pool")
def global_pools(op):
    c = Cases(op)
    function = POOLS[op.removeprefix("global_")]
    floats = op != "global_max_pool"
    for name, x in [("image", rnd("f32", (2, 3, 4, 5), 1)), ("one", rnd("f32", (1, 2, 1, 1), 2)),
                    ("large", rnd("f32", (1, 2, 17, 19), 3)), ("no_images", lit("f32", [], (0, 2, 2, 2))),
                    ("f64", rnd("f64", (1, 2, 3, 3), 4)), ("f16", rnd("f16", (1, 2, 9, 9), 5)),
                    ("bf16", rnd("bf16", (1, 2, 9, 9), 6)), ("line", rnd("f32", (2, 3, 37), 7)),
                    ("volume", rnd("f32", (1, 2, 3, 4, 5), 8)), ("rank8", rnd("f32", (1, 2, 2, 1, 3, 1, 2, 2), 9))]:
        c.run(name, [x], function(x, x.a.shape[2:]))
    if op == "global_lp_pool":
        x = rnd("f32", (2, 3, 4, 5), 10)
        c.run("sums", [x], norm(x, (4, 5), 1), "p=1")
        c.run("cubes", [x], norm(x, (4, 5), 3), "p=3", "ulp 6")
        c.refuse("p", ["f32[1,1,2,2]"], "invalid_argument", "p must be positive, found 0", "p=0")
    if floats:
        c.refuse("integers", ["i32[1,1,2,2]"], "dtype_mismatch", "input must have a float dtype, found i32[1,1,2,2]")
    else:
        x = rnd("u8", (1, 2, 3, 5), 11, 0.0, 255.0)
        c.run("u8", [x], function(x, (3, 5)))
        c.refuse("bools", ["bool[1,1,2,2]"], "dtype_mismatch",
                 "input must have a float or integer dtype, found bool[1,1,2,2]")
    c.refuse("rank", ["f32[2,3]"], "rank_mismatch", "input must have rank 3 or more, found f32[2,3]")
    c.refuse("empty_plane", ["f32[1,1,2,0]"], "shape_mismatch", "the input f32[1,1,2,0] has an empty plane")
    c.write()
