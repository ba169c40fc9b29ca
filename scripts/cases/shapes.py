"""Cases of ops that split, repeat, reorder and fill."""

import numpy as np

from cases.files import Cases, generator, lit, rnd, seq, Tensor
from cases.moves import MOVED, text
from cases.numerics import is_float, NUMPY, rounded, wide


@generator("tile")
def tile(op):
    c = Cases(op)

    def run(name, x, repeats):
        c.run(name, [x], np.tile(x.a, repeats), f"repeats={text(repeats)}")

    run("rows", seq("f32", 2, 3), [2, 1])
    run("columns", seq("f32", 2, 3), [1, 3])
    run("both", seq("f32", 2, 3), [3, 2])
    run("once", seq("f32", 2, 3), [1, 1])
    run("never", seq("f32", 2, 3), [2, 0])
    run("of_ones", seq("f32", 1, 3, 1), [4, 1, 5])
    run("long", rnd("f32", (2, 19), 1), [1, 4])
    run("rank8", seq("f32", 1, 2, 1, 1, 2, 1, 1, 2), [2, 1, 1, 2, 1, 1, 1, 2])
    run("scalar", lit("f32", 1.0), [])
    run("empty", lit("f32", [], (0, 2)), [2, 2])
    for dt in MOVED:
        run(dt, rnd(dt, (2, 3), 2, 0.0, 9.0), [2, 2])
    c.refuse("count", ["f32[2,3]"], "invalid_argument", "repeats must have 2 entries, found [2]", "repeats=[2]")
    c.refuse("negative", ["f32[2,3]"], "invalid_argument",
             "each of repeats must lie in [0,1099511627776], found [1,-1]", "repeats=[1, -1]")
    c.refuse("too_large", ["f32[2,3]"], "invalid_argument", "f32[2,3] times [1,1099511627776] is too large",
             "repeats=[1, 1099511627776]")
    c.write()


@generator("split")
def split(op):
    c = Cases(op)

    def run(name, x, sizes, axis=None):
        parts = np.split(x.a, np.cumsum(sizes)[:-1], axis or 0)
        attrs = (f"axis={axis}, " if axis is not None else "") + f"sizes={text(sizes)}"
        c.run(name, [x], list(parts), attrs)

    run("rows", seq("f32", 5, 3), [2, 3])
    run("columns", seq("f32", 3, 7), [1, 4, 2], 1)
    run("negative_axis", seq("f32", 2, 3, 4), [3, 1], -1)
    run("middle", seq("f32", 2, 5, 3), [2, 3], 1)
    run("one_part", seq("f32", 2, 3), [2])
    run("eight_parts", seq("f32", 36), [1, 2, 3, 4, 5, 6, 7, 8])
    run("with_empty_parts", seq("f32", 3, 2), [0, 2, 0, 1])
    run("empty", lit("f32", [], (0, 3)), [0, 0])
    run("empty_beside", lit("f32", [], (3, 0)), [1, 2])
    run("long", rnd("f32", (2, 70), 1), [33, 37], 1)
    run("rank8", seq("f32", 1, 2, 1, 3, 1, 1, 2, 1), [1, 2], 3)
    for dt in MOVED:
        run(dt, rnd(dt, (3, 4), 2, 0.0, 9.0), [3, 1], 1)
    x = "f32[4,5]"
    c.refuse("axis_range", [x], "invalid_argument", "axis 2 is outside of f32[4,5]", "axis=2, sizes=[4]")
    c.refuse("scalar", ["f32[]"], "invalid_argument", "axis 0 is outside of f32[]", "sizes=[1]")
    c.refuse("too_few", [x], "shape_mismatch", "sizes [1,2] do not make up dim 0 of f32[4,5]", "sizes=[1, 2]")
    c.refuse("too_many", [x], "shape_mismatch", "sizes [3,2] do not make up dim 0 of f32[4,5]", "sizes=[3, 2]")
    c.refuse("negative", [x], "shape_mismatch", "sizes [5,-1] do not make up dim 0 of f32[4,5]", "sizes=[5, -1]")
    c.refuse("none", ["f32[0]"], "shape_mismatch", "sizes [] do not make up dim 0 of f32[0]", "sizes=[]")
    c.write()


@generator("squeeze", "unsqueeze")
def squeezes(op):
    c = Cases(op)

    def run(name, x, axes=None):
        if op == "squeeze":
            y = np.squeeze(x.a, None if axes is None else tuple(axes))
        else:
            y = np.expand_dims(x.a, tuple(axes))
        c.run(name, [x], y, f"axes={text(axes)}" if axes is not None else "")

    x = "f32[1,3,1]"
    if op == "squeeze":
        run("first", seq("f32", 1, 3, 1), [0])
        run("negative", seq("f32", 1, 3, 1), [-1])
        run("two", seq("f32", 1, 3, 1, 2), [2, 0])
        run("all", seq("f32", 1, 3, 1, 2))
        run("all_of_none", seq("f32", 3, 2))
        run("to_scalar", seq("f32", 1, 1))
        run("scalar", lit("f32", 2.0))
        run("empty", lit("f32", [], (0, 1)), [1])
        run("rank8", seq("f32", 1, 2, 1, 3, 1, 1, 2, 1), [0, 2, 7])
        c.refuse("dim", [x], "shape_mismatch", "dim 1 of f32[1,3,1] is not 1", "axes=[1]")
        c.refuse("axis", [x], "invalid_argument", "axis 3 is outside of f32[1,3,1]", "axes=[3]")
        c.refuse("axis_twice", [x], "invalid_argument", "axis -3 appears twice in axes [0,-3]", "axes=[0, -3]")
    else:
        run("front", seq("f32", 2, 3), [0])
        run("back", seq("f32", 2, 3), [-1])
        run("two", seq("f32", 2, 3), [3, 1])
        run("none", seq("f32", 2, 3), [])
        run("scalar", lit("f32", 2.0), [0, 1])
        run("empty", lit("f32", [], (0, 3)), [1])
        run("of_ones", seq("f32", 1, 1), [1])
        run("rank8", seq("f32", 2, 1, 3, 2), [0, 2, 5, 7])
        c.refuse("axis", [x], "invalid_argument", "axis 4 is outside of", "axes=[4]")
        c.refuse("axis_twice", [x], "invalid_argument", "axis -5 appears twice in axes [0,-5]", "axes=[0, -5]")
        c.refuse("rank", [x], "invalid_argument", "rank", f"axes={text(range(14))}")
    for dt in MOVED:
        run(dt, rnd(dt, (3, 1, 2), 1, 0.0, 9.0), [1])
    c.write()


@generator("flatten")
def flatten(op):
    c = Cases(op)

    def run(name, x, axis=None):
        at = 1 if axis is None else axis
        rows = int(np.prod(x.a.shape[:at], dtype=np.int64))
        columns = int(np.prod(x.a.shape[at:] if at >= -x.a.ndim else (), dtype=np.int64))
        c.run(name, [x], x.a.reshape(rows, columns), f"axis={axis}" if axis is not None else "")

    run("default", seq("f32", 2, 3, 4))
    run("all_columns", seq("f32", 2, 3, 4), 0)
    run("all_rows", seq("f32", 2, 3, 4), 3)
    run("negative", seq("f32", 2, 3, 4), -1)
    run("vector", seq("f32", 5))
    run("scalar", lit("f32", 2.0), 0)
    run("empty", lit("f32", [], (2, 0, 3)), 2)
    run("rank8", seq("f32", 2, 1, 2, 1, 3, 1, 2, 1), 5)
    for dt in MOVED:
        run(dt, rnd(dt, (3, 2, 2), 1, 0.0, 9.0), 2)
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 3 is outside of f32[2,3]", "axis=3")
    c.refuse("negative_axis", ["f32[2,3]"], "invalid_argument", "axis -3 is outside of f32[2,3]", "axis=-3")
    c.refuse("scalar_default", ["f32[]"], "invalid_argument", "axis 1 is outside of f32[]")
    c.write()


def depth_to_space(x, b, mode):
    n, channels, h, w = x.shape
    if mode == "DCR":
        y = x.reshape(n, b, b, channels // b ** 2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, channels // b ** 2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, channels // b ** 2, h * b, w * b)


def space_to_depth(x, b, mode="DCR"):
    n, channels, h, w = x.shape
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    y = x.reshape(n, channels, h // b, b, w // b, b).transpose(order)
    return y.reshape(n, channels * b ** 2, h // b, w // b)


@generator("depth_to_space")
def d2s(op):
    c = Cases(op)

    def run(name, x, b, modes=("DCR", "CRD")):
        for mode in modes:
            c.run(f"{name}_{mode.lower()}", [x], depth_to_space(x.a, b, mode), f'block={b}, mode="{mode}"')

    run("one_channel", seq("f32", 1, 4, 2, 3), 2)
    run("channels", seq("f32", 2, 12, 2, 2), 2)
    run("three", seq("f32", 1, 18, 1, 2), 3)
    run("same", seq("f32", 1, 2, 2, 3), 1)
    run("long", rnd("f32", (1, 8, 2, 19), 1), 2)
    run("no_images", lit("f32", [], (0, 4, 2, 2)), 2)
    run("no_channels", lit("f32", [], (1, 0, 2, 2)), 2)
    for dt in MOVED:
        run(dt, rnd(dt, (1, 8, 1, 2), 2, 0.0, 9.0), 2, ["CRD"])
    x = seq("f32", 1, 8, 1, 2)
    c.run("default_is_dcr", [x], depth_to_space(x.a, 2, "DCR"), "block=2")
    c.refuse("rank", ["f32[4,2,2]"], "rank_mismatch", "input (NCHW) must have rank 4, found f32[4,2,2]", "block=2")
    c.refuse("block", ["f32[1,4,2,2]"], "invalid_argument", "each of block must lie in [1,1048576], found [0]",
             "block=0")
    c.refuse("channels", ["f32[1,6,2,2]"], "shape_mismatch",
             "block 2 squared does not divide the channels of f32[1,6,2,2]", "block=2")
    c.refuse("mode", ["f32[1,4,2,2]"], "invalid_argument", 'mode must be \\"DCR\\" or \\"CRD\\", found \\"RCD\\"',
             'block=2, mode="RCD"')
    c.refuse("too_large", ["bool[1,0,1099511627776,1]"], "invalid_argument",
             "bool[1,0,1099511627776,1] times [1,1,2,2] is too large", "block=2")
    c.write()


@generator("space_to_depth")
def s2d(op):
    c = Cases(op)

    def run(name, x, b):
        c.run(name, [x], space_to_depth(x.a, b), f"block={b}")
        c.run(f"{name}_crd", [x], space_to_depth(x.a, b, "CRD"), f'block={b}, mode="CRD"')

    run("one_channel", seq("f32", 1, 1, 4, 6), 2)
    run("channels", seq("f32", 2, 3, 4, 2), 2)
    run("three", seq("f32", 1, 2, 3, 6), 3)
    run("same", seq("f32", 1, 2, 2, 3), 1)
    run("long", rnd("f32", (1, 2, 2, 38), 1), 2)
    run("no_images", lit("f32", [], (0, 4, 2, 2)), 2)
    run("no_channels", lit("f32", [], (1, 0, 2, 2)), 2)
    run("no_plane", lit("f32", [], (1, 3, 0, 2)), 2)
    for dt in MOVED:
        run(dt, rnd(dt, (1, 2, 2, 4), 2, 0.0, 9.0), 2)
    c.refuse("rank", ["f32[4,2,2]"], "rank_mismatch", "input (NCHW) must have rank 4, found f32[4,2,2]", "block=2")
    c.refuse("block", ["f32[1,4,2,2]"], "invalid_argument", "each of block must lie in [1,1048576], found [-2]",
             "block=-2")
    c.refuse("plane", ["f32[1,1,4,3]"], "shape_mismatch", "block 2 does not divide the plane of f32[1,1,4,3]",
             "block=2")
    c.refuse("mode", ["f32[1,4,2,2]"], "invalid_argument", 'mode must be \\"DCR\\" or \\"CRD\\", found \\"RCD\\"',
             'block=2, mode="RCD"')
    c.refuse("too_large", ["bool[1,1099511627776,0,0]"], "invalid_argument",
             "bool[1,1099511627776,0,0] times [1,4,1,1] is too large", "block=2")
    c.write()


@generator("tri")
def tri(op):
    c = Cases(op)

    def run(name, x, upper=True, k=0):
        attrs = ([f"k={k}"] if k else []) + ([] if upper else ["upper=false"])
        far = int(np.clip(k, -999, 999))
        y = np.triu(x.a, far) if upper else np.tril(x.a, far)
        c.run(name, [x], y.astype(NUMPY[x.dt]), ", ".join(attrs))

    for upper in (True, False):
        side = "upper" if upper else "lower"
        x = Tensor("f32", rnd("f32", (4, 5), 1).a)
        run(f"{side}_main", x, upper)
        run(f"{side}_above", x, upper, 2)
        run(f"{side}_below", x, upper, -1)
        run(f"{side}_far_above", x, upper, 2 ** 63 - 1)
        run(f"{side}_far_below", x, upper, -2 ** 63)
        run(f"{side}_tall", rnd("f32", (6, 2), 2), upper, -1)
        run(f"{side}_batch", rnd("f32", (2, 3, 3, 4), 3), upper, 1)
        run(f"{side}_long", rnd("f32", (3, 37), 4), upper)
        run(f"{side}_empty", lit("f32", [], (2, 0, 3)), upper)
    run("nan_outside", lit("f32", [[1.0, np.nan], [np.nan, 2.0]]), True)
    run("rank8", rnd("f32", (1, 2, 1, 1, 2, 1, 3, 3), 5), False)
    for dt in MOVED:
        if dt != "f8e8m0":  # has no 0
            run(dt, rnd(dt, (3, 3), 6, 1.0, 9.0), False)
    c.refuse("rank", ["f32[3]"], "rank_mismatch", "input must have rank 2 or more, found f32[3]")
    c.write()


@generator("eye")
def eye(op):
    c = Cases(op)

    def run(name, rows, cols, k=0, dt="f32"):
        y = (np.arange(cols)[None, :] - np.arange(rows)[:, None]) == k
        attrs = f"cols={cols}" + (f", dtype={dt}" if dt != "f32" else "") + (f", k={k}" if k else "")
        c.run(name, [], Tensor(dt, y.astype(NUMPY[dt])), attrs + f", rows={rows}")

    run("square", 3, 3)
    run("wide", 3, 37)
    run("tall", 5, 2)
    run("above", 3, 4, 1)
    run("below", 4, 3, -2)
    run("outside", 2, 2, 5)
    run("far", 2, 2, -2 ** 63)
    run("empty", 0, 3)
    for dt in MOVED:
        run(dt, 2, 3, 1, dt)
    c.refuse("negative", [], "invalid_argument", "-1", "cols=3, rows=-1")
    c.refuse("too_large", [], "invalid_argument", "limit", "cols=1099511627776, rows=1099511627776")
    c.write()


@generator("iota")
def iota(op):
    c = Cases(op)

    def run(name, dt, shape, axis=None, start=None, step=None):
        at = axis or 0
        i = np.arange(shape[at]).reshape([-1 if d == at % len(shape) else 1 for d in range(len(shape))])
        s, d = start or 0.0, 1.0 if step is None else step
        if is_float(dt):
            t = wide(dt)
            y = rounded(i.astype(t) * t(d) + t(s), dt)
        else:
            y = (i * int(d) + int(s)).astype(NUMPY[dt])
        attrs = [f"axis={axis}"] if axis is not None else []
        attrs += [f"dtype={dt}"] if dt != "i64" else []
        attrs += [f"shape={text(shape)}"]
        attrs += [f"start={start!r}"] if start is not None else []
        attrs += [f"step={step!r}"] if step is not None else []
        c.run(name, [], Tensor(dt, np.broadcast_to(y, shape)), ", ".join(attrs))

    run("vector", "i64", [5])
    run("from_start", "i64", [7], None, 3.0, 2.0)
    run("down", "i64", [7], None, 3.0, -2.0)
    run("columns", "i64", [2, 5], 1)
    run("rows", "i64", [3, 2], 0)
    run("negative_axis", "i32", [2, 3, 4], -1, 1.0)
    run("empty", "i64", [0])
    run("empty_beside", "i64", [3, 0])
    run("large", "i64", [3], None, 2.0 ** 53, -2.0 ** 53)
    run("long", "f32", [67], None, 0.1, 0.3)
    run("rank8", "f32", [1, 2, 1, 1, 3, 1, 2, 1], 4, -1.5, 0.25)
    for dt in NUMPY:
        if dt != "bool":
            run(dt, dt, [9], None, 2.0, 3.0)
    for dt in ("i8", "u8", "i16", "u32"):
        run(f"{dt}_wraps", dt, [5], None, -3.0, 100.0)
    for dt in ("f16", "bf16", "f64"):
        run(f"{dt}_fractions", dt, [9], None, -0.7, 0.3)
    c.refuse("bools", [], "dtype_mismatch", "the result must have a float or integer dtype, found bool[3]",
             "dtype=bool, shape=[3]")
    c.refuse("axis", [], "invalid_argument", "axis 1 is outside of i64[3]", "axis=1, shape=[3]")
    c.refuse("scalar", [], "invalid_argument", "axis 0 is outside of i64[]", "shape=[]")
    c.refuse("dims", [], "invalid_argument", "-1", "shape=[-1]")
    c.refuse("start", [], "invalid_argument", "start must be an integer of at most 2^53 for an integer dtype",
             "shape=[3], start=0.5")
    c.refuse("step", [], "invalid_argument", "step must be an integer of at most 2^53 for an integer dtype",
             "shape=[3], step=1e17")
    c.write()


@generator("reverse")
def reverse(op):
    c = Cases(op)

    def run(name, x, axes):
        c.run(name, [x], np.flip(x.a, tuple(axes)), f"axes={text(axes)}")

    run("vector", seq("f32", 5), [0])
    run("rows", seq("f32", 3, 4), [0])
    run("columns", seq("f32", 3, 37), [-1])
    run("both", seq("f32", 3, 4), [1, 0])
    run("none", seq("f32", 3, 4), [])
    run("scalar", lit("f32", 1.0), [])
    run("empty", lit("f32", [], (0, 3)), [0, 1])
    run("rank8", seq("f32", 1, 2, 1, 3, 1, 1, 2, 1), [1, 3, -2])
    for dt in MOVED:
        run(dt, rnd(dt, (3, 4), 1, 0.0, 9.0), [1])
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axes=[2]")
    c.refuse("axis_twice", ["f32[2,3]"], "invalid_argument", "axis -1 appears twice in axes [1,-1]", "axes=[1, -1]")
    c.write()
