"""Cases of resize and of the weighted sums it is made of."""

import math

import numpy as np

from cases.files import Cases, generator, lit, rnd, seq, Tensor
from cases.moves import MOVED
from cases.numerics import chain, is_float, near_f64, rounded
from cases.elementwise import cast_exact
from cases.windows import listed


def along(x, axis, indices, weights):
    """Weighted sums of x along an axis; indices and weights are [elements, taps]."""
    taken = np.moveaxis(x, axis, -1)[..., indices]  # [..., elements, taps]
    out = chain(np.moveaxis(taken, -1, 0), np.moveaxis(np.broadcast_to(weights, taken.shape), -1, 0))
    near_f64(out, (taken.astype(np.float64) * weights.astype(np.float64)).sum(axis=-1))
    return np.moveaxis(out, -1, axis)


@generator("resample")
def resample(op):
    c = Cases(op)

    def run(name, x, indices, weights=None, axis=-1):
        clipped = np.clip(indices.a, 0, x.a.shape[axis] - 1)
        if weights is None:
            out = np.take(x.a, clipped[:, 0], axis)
        else:
            out = rounded(along(x.w, axis, clipped, weights.w), x.dt)
        c.run(name, [t for t in (x, indices, weights) if t is not None], out, listed(axis=axis if axis != -1 else None))

    def ints(shape, seed, hi, dt="i64"):
        return rnd(dt, shape, seed, 0.0, float(hi))

    run("last", rnd("f32", (2, 7), 1), ints((5, 2), 2, 7), rnd("f32", (5, 2), 3))
    run("first", rnd("f32", (7, 3), 4), ints((5, 3), 5, 7), rnd("f32", (5, 3), 6), axis=0)
    run("middle", rnd("f32", (2, 5, 18), 7), ints((9, 4), 8, 5), rnd("f32", (9, 4), 9), axis=1)
    run("i32_indices", rnd("f32", (2, 7), 10), ints((5, 2), 11, 7, "i32"), rnd("f32", (5, 2), 12))
    run("clamped", rnd("f32", (2, 4), 13), lit("i64", [[-5, 0], [3, 9], [2 ** 62, -2 ** 62]]), rnd("f32", (3, 2), 14))
    run("two_segments", rnd("f32", (2, 9), 15), ints((2, 300), 16, 9), rnd("f32", (2, 300), 17))
    run("no_taps", rnd("f32", (2, 4), 18), lit("i64", [], (3, 0)), lit("f32", [], (3, 0)))
    run("no_elements", rnd("f32", (2, 4), 19), lit("i64", [], (0, 2)), lit("f32", [], (0, 2)))
    run("rank8", rnd("f32", (1, 2, 1, 3, 1, 1, 2, 1), 20), ints((4, 2), 21, 3), rnd("f32", (4, 2), 22), axis=3)
    for dt in ("f64", "f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(f"{dt}_weighted", rnd(dt, (3, 7), 23), ints((5, 3), 24, 7), rnd(dt, (5, 3), 25))
    for dt in MOVED:
        run(dt, rnd(dt, (3, 7), 26, 0.0, 9.0), ints((5, 1), 27, 7))
    run("picked_rows", seq("f32", 4, 3), lit("i64", [[3], [3], [-7], [1], [8]]), axis=0)
    i, w = "i64[5,2]", "f32[5,2]"
    c.refuse("index_dtype", ["f32[2,7]", "f32[5,2]", w], "dtype_mismatch",
             "indices must have i32 or i64, found f32[5,2]")
    c.refuse("index_rank", ["f32[2,7]", "i64[5]", w], "rank_mismatch", "indices must have rank 2, found i64[5]")
    c.refuse("axis", ["f32[2,7]", i, w], "invalid_argument", "axis 2 is outside of f32[2,7]", "axis=2")
    c.refuse("columns", ["f32[2,7]", i], "shape_mismatch",
             "without weights indices must have one column, found i64[5,2]")
    c.refuse("weighted_integers", ["i32[2,7]", i, "i32[5,2]"], "dtype_mismatch",
             "x must have a float dtype, found i32[2,7]")
    c.refuse("weight_dtype", ["f32[2,7]", i, "f64[5,2]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2,7] and f64[5,2]")
    c.refuse("weight_shape", ["f32[2,7]", i, "f32[5,3]"], "shape_mismatch",
             "weights f32[5,3] must have the shape of indices i64[5,2]")
    c.refuse("empty", ["f32[2,0]", i, w], "shape_mismatch", "dim 1 of f32[2,0] is empty, there is nothing to select")
    c.write()


def source(mode, o, n, size, scale, begin, end):
    """Where in n elements the standard's formula for the mode puts element o of the result."""
    wanted = scale * n
    if mode == "align_corners":
        return 0.0 if wanted == 1 else o * (n - 1) / (wanted - 1)
    if mode == "asymmetric":
        return o / scale
    if mode == "tf_crop_and_resize":
        span = (end - begin) * (n - 1)
        return (span / 2 if wanted == 1 else o * span / (wanted - 1)) + begin * (n - 1)
    x = (o + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return -0.5 if wanted == 1 else x
    return x + n / 2 * (1 - size / wanted) if mode == "half_pixel_symmetric" else x


def keys(a, x):
    """The cubic convolution kernel."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


NEAREST = {"round_prefer_floor": lambda x: math.ceil(x - 0.5), "round_prefer_ceil": lambda x: math.floor(x + 0.5),
           "floor": math.floor, "ceil": math.ceil}


def table(x, n, mode, cubic_coeff_a=-0.75, exclude_outside=False, antialias=False, scale=1.0, **_):
    """Neighbours of place x among n elements, unclamped, and their weights."""
    shrink = min(scale, 1.0) if antialias else 1.0
    half = math.ceil((2 if mode == "cubic" else 1) / shrink)
    first = math.ceil(x) - half
    at = list(range(first, first + 2 * half))
    far = [(i - x) * shrink for i in at]
    w = [keys(cubic_coeff_a, v) if mode == "cubic" else max(1 - abs(v), 0.0) for v in far]
    if exclude_outside:
        w = [v if 0 <= i < n else 0.0 for i, v in zip(at, w)]
    if exclude_outside or antialias:
        total = sum(w)
        w = [v / total for v in w]
    return at, w


def resized(x, sizes, scales=None, mode="nearest", coordinates="half_pixel", nearest="round_prefer_floor", roi=None,
            extrapolation_value=0.0, **more):
    """x as numpy array of the type arithmetic is done in."""
    rank, lost = x.ndim, np.zeros(sizes, bool)
    for d in range(rank):
        n, size = x.shape[d], sizes[d]
        scale = scales[d] if scales else (size / n if n else 1.0)
        begin, end = (roi[d], roi[d + rank]) if coordinates == "tf_crop_and_resize" else (0.0, 1.0)
        if n == size and (n == 0 or (scale == 1 and (begin, end) == (0.0, 1.0))):
            continue
        places = [source(coordinates, float(o), n, size, scale, begin, end) for o in range(size)]
        if mode == "nearest":
            x = np.take(x, np.clip([NEAREST[nearest](p) for p in places], 0, n - 1).astype(int), d)
        else:
            rows = [table(p, n, mode, scale=scale, **more) for p in places]
            indices = np.clip([r[0] for r in rows], 0, n - 1).astype(int)
            x = along(x, d, indices, np.array([r[1] for r in rows]).astype(x.dtype))
        if coordinates == "tf_crop_and_resize":
            outside = np.array([p < 0 or p > n - 1 for p in places])
            lost = lost | outside.reshape([-1 if i == d else 1 for i in range(rank)])
    return np.where(lost, x.dtype.type(extrapolation_value), x)


@generator("resize")
def resize(op):
    c = Cases(op)

    def run(name, x, sizes, **attrs):
        if attrs.get("mode", "nearest") == "nearest":
            out = Tensor(x.dt, resized(x.a, sizes, **attrs))
        elif is_float(x.dt):
            out = rounded(resized(x.w, sizes, **attrs), x.dt)
        else:
            wide = Tensor("f64", resized(x.a.astype(np.float64), sizes, **attrs))
            out = Tensor(x.dt, cast_exact(wide, x.dt))
        c.run(name, [x], out, listed(sizes=sizes, **attrs))

    run("nearest_double", seq("f32", 1, 2, 2, 3), (1, 2, 4, 6))
    run("nearest_uneven", seq("f32", 1, 1, 2, 3), (1, 1, 6, 6))
    run("nearest_same", seq("f32", 2, 3), (2, 3))
    run("nearest_batch", seq("f32", 2, 2), (6, 2))
    run("nearest_long", rnd("f32", (2, 19), 1), (2, 57))
    run("nearest_rank8", seq("f32", 1, 2, 1, 1, 2, 1, 1, 2), (2, 2, 1, 2, 2, 1, 1, 4))
    run("scalar", lit("f32", 1.0), ())
    run("empty", lit("f32", [], (0, 2)), (0, 4))
    run("to_empty", seq("f32", 2, 3), (2, 0))
    for mode in ("linear", "cubic"):
        c.run(f"to_empty_{mode}", [rnd("f32", (2, 3), 6)], lit("f32", [], (0, 0)), listed(sizes=(0, 0), mode=mode))
    for dt in MOVED:
        run(f"{dt}_nearest", rnd(dt, (2, 3), 2, 0.0, 9.0), (3, 5))
    for mode in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for nearest in NEAREST:
            run(f"{mode}_{nearest}", seq("f32", 3, 7), (5, 4), coordinates=mode, nearest=nearest)
        x = rnd("f32", (1, 2, 3, 5), 3)
        run(f"{mode}_linear", x, (1, 2, 5, 3), mode="linear", coordinates=mode)
        run(f"{mode}_cubic", x, (1, 2, 4, 8), mode="cubic", coordinates=mode)
        run(f"{mode}_scales", x, (1, 2, 4, 6), mode="linear", coordinates=mode, scales=(1.0, 1.0, 1.5, 1.3))
        run(f"{mode}_to_one", x, (1, 2, 1, 1), mode="linear", coordinates=mode)
        run(f"{mode}_antialias", x, (1, 2, 2, 2), mode="linear", coordinates=mode, antialias=True)
    x = rnd("f32", (1, 1, 4, 5), 4)
    roi = (0.0, 0.0, 0.4, 0.6, 1.0, 1.0, 0.6, 0.8)
    wide = (0.0, 0.0, -0.3, 0.2, 1.0, 1.0, 0.9, 1.4)
    for mode in ("nearest", "linear", "cubic"):
        run(f"crop_{mode}", x, (1, 1, 3, 3), mode=mode, coordinates="tf_crop_and_resize", roi=roi)
        run(f"crop_outside_{mode}", x, (1, 1, 5, 6), mode=mode, coordinates="tf_crop_and_resize", roi=wide,
            extrapolation_value=10.5)
    run("crop_same_size", x, (1, 1, 4, 5), mode="linear", coordinates="tf_crop_and_resize", roi=roi)
    run("crop_to_one", x, (1, 1, 1, 1), mode="linear", coordinates="tf_crop_and_resize", roi=roi)
    run("crop_integers", rnd("i32", (2, 5), 5, 0.0, 99.0), (2, 6), coordinates="tf_crop_and_resize",
        roi=(0.0, -0.5, 1.0, 1.0), extrapolation_value=-7.0)
    run("cubic_coeff", x, (1, 1, 7, 3), mode="cubic", cubic_coeff_a=-0.5)
    run("exclude_outside", x, (1, 1, 7, 9), mode="cubic", exclude_outside=True)
    run("antialias_cubic", rnd("f32", (1, 1, 9, 8), 6), (1, 1, 4, 3), mode="cubic", antialias=True)
    run("antialias_exclude", rnd("f32", (1, 1, 9, 8), 7), (1, 1, 4, 3), mode="cubic", antialias=True,
        exclude_outside=True)
    run("antialias_larger", x, (1, 1, 6, 9), mode="linear", antialias=True)
    run("antialias_much_smaller", rnd("f32", (2, 300), 8), (2, 1), mode="linear", antialias=True)
    run("linear_line", rnd("f32", (2, 19), 9), (2, 37), mode="linear")
    run("linear_volume", rnd("f32", (1, 1, 2, 3, 4), 10), (1, 1, 3, 4, 7), mode="linear")
    run("linear_channels", rnd("f32", (2, 3, 2), 11), (3, 5, 2), mode="linear")
    run("linear_same", x, (1, 1, 4, 5), mode="linear")
    for dt in ("f64", "f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(f"{dt}_linear", rnd(dt, (3, 4), 12), (5, 7), mode="linear")
    for dt in ("i8", "u8", "i32", "i64"):
        run(f"{dt}_cubic", rnd(dt, (3, 4), 13, 0.0, 127.0), (5, 7), mode="cubic")
    c.refuse("size_count", ["f32[2,3]"], "invalid_argument", "sizes must have 2 entries, found [2]", "sizes=[2]")
    c.refuse("negative", ["f32[2,3]"], "invalid_argument",
             "each of sizes must lie in [0,1099511627776], found [1,-1]", "sizes=[1, -1]")
    c.refuse("mode", ["f32[2]"], "invalid_argument",
             'mode must be one of nearest, linear, cubic, found \\"area\\"', 'sizes=[4], mode="area"')
    c.refuse("coordinates", ["f32[2]"], "invalid_argument",
             "coordinates must be one of half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, "
             'asymmetric, tf_crop_and_resize, found \\"tf\\"', 'sizes=[4], coordinates="tf"')
    c.refuse("nearest_mode", ["f32[2]"], "invalid_argument",
             'nearest must be one of round_prefer_floor, round_prefer_ceil, floor, ceil, found \\"even\\"',
             'sizes=[4], nearest="even"')
    c.refuse("scale_count", ["f32[2,3]"], "invalid_argument", "scales must have 2 entries, found 1",
             "sizes=[4, 6], scales=[2.0]")
    c.refuse("scale_zero", ["f32[2]"], "invalid_argument", "scales must be positive and finite",
             "sizes=[4], scales=[0.0]")
    c.refuse("scale_small", ["f32[2]"], "invalid_argument", "the scale of dim 0 makes nothing of f32[2]",
             'sizes=[1], scales=[0.1], mode="linear", antialias=true')
    c.refuse("roi_infinite", ["f32[2]"], "invalid_argument", "roi must be finite",
             'sizes=[1], coordinates="tf_crop_and_resize", roi=[0.0, inf]')
    c.refuse("roi_missing", ["f32[2]"], "invalid_argument", "roi must have 2 entries, found 0",
             'sizes=[4], coordinates="tf_crop_and_resize"')
    c.refuse("antialias_nearest", ["f32[2]"], "invalid_argument", 'antialias needs mode \\"linear\\" or \\"cubic\\"',
             "sizes=[4], antialias=true")
    c.refuse("bools", ["bool[2]"], "dtype_mismatch", "input must have a float or integer dtype, found bool[2]",
             'sizes=[4], mode="linear"')
    c.refuse("from_empty", ["f32[2,0]"], "shape_mismatch",
             "dim 1 of f32[2,0] is empty, there is nothing to interpolate", "sizes=[2, 4]")
    c.write()
