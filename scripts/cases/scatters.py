"""Cases of ops that write elements to places given by indices."""

import numpy as np

from cases.files import Cases, Tensor, generator, lit, rnd, seq
from cases.numerics import INF, NAN, NUMPY, is_float, rounded, wide

REDUCTIONS = ("none", "add", "mul", "max", "min")


def combined(old, new, reduction, dt):
    if reduction == "none":
        return new
    a, b = np.asarray(old).astype(wide(dt)), np.asarray(new).astype(wide(dt))
    y = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction](a, b)
    return rounded(y, dt) if is_float(dt) else y.astype(NUMPY[dt])


def scatter_elements_exact(data, indices, updates, axis, reduction):
    out = data.a.copy()
    for at in np.ndindex(*indices.a.shape):
        to = list(at)
        to[axis] = int(indices.a[at])
        out[tuple(to)] = combined(out[tuple(to)], updates.a[at], reduction, data.dt)
    return out


def attributes(axis, reduction):
    parts = ([f"axis={axis}"] if axis is not None else []) + ([f'reduction="{reduction}"'] if reduction != "none" else [])
    return ", ".join(parts)


@generator("scatter_elements")
def scatter_elements(op):
    c = Cases(op)

    def run(name, data, indices, updates, axis=0, reduction="none"):
        out = scatter_elements_exact(data, indices, updates, axis, reduction)
        c.run(name, [data, indices, updates], out, attributes(axis, reduction))

    for dt in ("bool", "f32", "f64", "i8", "u8", "i64", "f16", "bf16", "f8e4m3fn", "f8e5m2", "f4e2m1", "i4"):
        run(dt, rnd(dt, (3, 4), 1, 0.0, 5.0), lit("i64", [[0, 2, 1, 0], [2, 2, 0, 1]]), rnd(dt, (2, 4), 2, 0.0, 5.0))
    repeated = lit("i64", [0, 3, 0, 3, 3, -1, 2, 0])
    for reduction in REDUCTIONS:
        for dt in ("f32", "i32", "f16", "i4"):
            run(f"repeated_{reduction}_{dt}", rnd(dt, (4,), 3, -2.0, 3.0), repeated, rnd(dt, (8,), 4, -2.0, 3.0), 0, reduction)
        run(f"rows_{reduction}", rnd("f32", (2, 5, 3), 5), rnd("i64", (2, 7, 3), 6, -5.0, 5.0), rnd("f32", (2, 7, 3), 7), 1,
            reduction)
        run(f"fewer_rows_{reduction}", rnd("f32", (3, 5, 3), 5), rnd("i32", (2, 7, 1), 6, -5.0, 5.0),
            rnd("f32", (2, 7, 1), 7), 1, reduction)
    for reduction in ("max", "min"):
        run(f"specials_{reduction}", lit("f32", [0.0, 1.0, NAN, -INF]), lit("i64", [0, 1, 2, 3]),
            lit("f32", [-1.0, NAN, 1.0, INF]), 0, reduction)
    run("last_axis", seq("i32", 2, 3), lit("i32", [[2, 0], [1, 1]]), lit("i32", [[10, 20], [30, 40]]), -1)
    run("long", rnd("f32", (500,), 8), rnd("i64", (700,), 9, 0.0, 500.0), rnd("f32", (700,), 10), 0, "add")
    run("no_updates", seq("i32", 2, 3), lit("i64", [], (0, 3)), lit("i32", [], (0, 3)))
    run("empty", lit("f32", [], (0, 3)), lit("i64", [], (0, 3)), lit("f32", [], (0, 3)))
    run("high_rank", rnd("i32", (2, 1, 3, 2, 1, 2), 6, -9.0, 9.0), rnd("i64", (2, 1, 4, 2, 1, 2), 7, -3.0, 3.0),
        rnd("i32", (2, 1, 4, 2, 1, 2), 8, -9.0, 9.0), 2, "add")
    c.fail("index_too_large", [seq("f32", 3), lit("i64", [3]), lit("f32", [1.0])], "index out of range")
    c.fail("index_too_small", [seq("f32", 3), lit("i64", [-4]), lit("f32", [1.0])], "index out of range")
    c.refuse("reduction", ["f32[3]", "i64[1]", "f32[1]"], "invalid_argument",
             "reduction must be none, add, mul, max or min, found 'sub'", 'reduction="sub"')
    c.refuse("bool_sum", ["bool[3]", "i64[1]", "bool[1]"], "dtype_mismatch",
             "data must have a float or integer dtype, found bool[3]", 'reduction="add"')
    c.refuse("indices_dtype", ["f32[3]", "f32[1]", "f32[1]"], "dtype_mismatch", "indices must have i32 or i64, found f32[1]")
    c.refuse("updates_dtype", ["f32[3]", "i64[1]", "f64[1]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[3] and f64[1]")
    c.refuse("axis", ["f32[3]", "i64[1]", "f32[1]"], "invalid_argument", "axis 1 is outside of f32[3]", "axis=1")
    c.refuse("rank", ["f32[3]", "i64[1,1]", "f32[1,1]"], "rank_mismatch", "indices must have rank 1, found i64[1,1]")
    c.refuse("updates_shape", ["f32[3]", "i64[2]", "f32[1]"], "shape_mismatch",
             "updates f32[1] must have the shape of indices i64[2]")
    c.refuse("too_many_rows", ["f32[3,2]", "i64[1,3]", "f32[1,3]"], "shape_mismatch",
             "indices i64[1,3] reach beyond dim 1 of f32[3,2]")
    c.refuse("nothing_to_hit", ["f32[0]", "i64[1]", "f32[1]"], "shape_mismatch", "indices i64[1] reach beyond dim 0 of f32[0]")
    c.write()


@generator("scatter_nd")
def scatter_nd(op):
    c = Cases(op)

    def run(name, data, indices, updates, reduction="none"):
        out = data.a.copy()
        for at in np.ndindex(*indices.a.shape[:-1]):
            to = tuple(int(i) for i in indices.a[at])
            out[to] = combined(out[to], updates.a[at], reduction, data.dt)
        c.run(name, [data, indices, updates], out, attributes(None, reduction))

    for dt in ("bool", "f32", "f64", "i8", "u8", "i64", "f16", "bf16", "f8e4m3fn", "f8e5m2", "f4e2m1", "i4"):
        run(dt, rnd(dt, (4, 3), 1, 0.0, 5.0), lit("i64", [[2], [0]]), rnd(dt, (2, 3), 2, 0.0, 5.0))
    for reduction in REDUCTIONS:
        run(f"elements_{reduction}", rnd("f32", (5,), 3), rnd("i64", (9, 1), 4, -5.0, 5.0), rnd("f32", (9,), 5), reduction)
        run(f"slices_{reduction}", rnd("f32", (3, 2, 19), 3), rnd("i32", (4, 1), 4, -3.0, 3.0), rnd("f32", (4, 2, 19), 5),
            reduction)
        run(f"pairs_{reduction}", rnd("f16", (3, 2, 5), 3), rnd("i64", (2, 3, 2), 4, -2.0, 2.0), rnd("f16", (2, 3, 5), 5),
            reduction)
        run(f"points_{reduction}", rnd("i4", (3, 4), 3, -8.0, 8.0), rnd("i64", (6, 2), 4, -3.0, 3.0),
            rnd("i4", (6,), 5, -8.0, 8.0), reduction)
    run("all", seq("f32", 2, 3), lit("i64", [], (0,)), lit("f32", [7, 8, 9, 10, 11, 12], (2, 3)))
    run("no_updates", seq("i32", 2, 3), lit("i64", [], (0, 1)), lit("i32", [], (0, 3)))
    run("empty_slices", lit("f32", [], (3, 0)), lit("i64", [[1]]), lit("f32", [], (1, 0)))
    run("high_rank", rnd("i32", (2, 1, 3, 2, 1, 2), 6, -9.0, 9.0), rnd("i64", (2, 4, 3), 7, -1.0, 1.0),
        rnd("i32", (2, 4, 2, 1, 2), 8, -9.0, 9.0), "add")
    c.fail("index_too_large", [seq("f32", 3, 2), lit("i64", [[1, 2]]), lit("f32", [1.0])], "index out of range")
    c.fail("index_too_small", [seq("f32", 3, 2), lit("i64", [[-4, 0]]), lit("f32", [1.0])], "index out of range")
    c.refuse("reduction", ["f32[3]", "i64[1,1]", "f32[1]"], "invalid_argument",
             "reduction must be none, add, mul, max or min, found 'sub'", 'reduction="sub"')
    c.refuse("bool_sum", ["bool[3]", "i64[1,1]", "bool[1]"], "dtype_mismatch",
             "data must have a float or integer dtype, found bool[3]", 'reduction="add"')
    c.refuse("indices_dtype", ["f32[3]", "f32[1,1]", "f32[1]"], "dtype_mismatch",
             "indices must have i32 or i64, found f32[1,1]")
    c.refuse("updates_dtype", ["f32[3]", "i64[1,1]", "f64[1]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[3] and f64[1]")
    c.refuse("scalar_indices", ["f32[3]", "i64[]", "f32[]"], "shape_mismatch",
             "the last dim of indices i64[] must count leading dims of f32[3]")
    c.refuse("too_deep", ["f32[3]", "i64[1,2]", "f32[1]"], "shape_mismatch",
             "the last dim of indices i64[1,2] must count leading dims of f32[3]")
    c.refuse("updates_shape", ["f32[3,2]", "i64[4,1]", "f32[4]"], "shape_mismatch",
             "updates must have shape [4,2], found f32[4]")
    c.refuse("nothing_to_hit", ["f32[0,2]", "i64[1,1]", "f32[1,2]"], "shape_mismatch", "dim 0 of f32[0,2] is empty")
    c.write()


@generator("tensor_scatter")
def tensor_scatter(op):
    c = Cases(op)

    def run(name, past, update, begin=None, axis=-2, mode="linear"):
        out = past.a.copy()
        at = axis % past.a.ndim
        for prefix in np.ndindex(*past.a.shape[:at]):
            for i in range(update.a.shape[at]):
                to = (0 if begin is None else int(begin.a[prefix[0]])) + i
                to = to % past.a.shape[at] if mode == "circular" else to
                out[(*prefix, to)] = update.a[(*prefix, i)]
        attrs = f'axis={axis}, mode="{mode}"'
        c.run(name, [past, update] + ([] if begin is None else [begin]), out, attrs)

    for dt in ("bool", "f32", "f64", "i8", "i64", "f16", "bf16", "f8e4m3fn", "i4"):
        run(dt, rnd(dt, (2, 5, 3), 1, 0.0, 5.0), rnd(dt, (2, 2, 3), 2, 0.0, 5.0), lit("i64", [3, 0]))
    run("from_zero", rnd("f32", (2, 3, 5, 2), 1), rnd("f32", (2, 3, 4, 2), 2))
    run("whole", rnd("f32", (2, 4, 2), 1), rnd("f32", (2, 4, 2), 2), lit("i64", [0, 0]))
    run("circular", rnd("f32", (3, 2, 5, 2), 1), rnd("f32", (3, 2, 3, 2), 2), lit("i64", [4, 1, 13]), -2, "circular")
    run("circular_negative", rnd("f32", (2, 5, 2), 1), rnd("f32", (2, 3, 2), 2), lit("i64", [-1, -7]), -2, "circular")
    run("last_axis", rnd("f32", (2, 3, 7), 1), rnd("f32", (2, 3, 2), 2), lit("i32", [5, 2]), -1)
    run("second_axis", rnd("f32", (2, 7, 3, 2), 1), rnd("f32", (2, 2, 3, 2), 2), lit("i64", [5, 2]), 1)
    run("no_update", rnd("f32", (2, 5, 3), 1), lit("f32", [], (2, 0, 3)), lit("i64", [5, 0]))
    run("no_batch", lit("f32", [], (0, 5, 3)), lit("f32", [], (0, 2, 3)), lit("i64", [], (0,)))
    c.fail("too_far", [rnd("f32", (1, 5, 2), 1), rnd("f32", (1, 2, 2), 2), lit("i64", [4])], "write index out of range")
    c.fail("before", [rnd("f32", (1, 5, 2), 1), rnd("f32", (1, 2, 2), 2), lit("i64", [-1])], "write index out of range")
    c.refuse("mode", ["f32[1,5,2]", "f32[1,2,2]"], "invalid_argument", "mode must be linear or circular, found 'ring'",
             'mode="ring"')
    c.refuse("dtype", ["f32[1,5,2]", "f16[1,2,2]"], "dtype_mismatch", "inputs must have one dtype, found f32[1,5,2] and f16[1,2,2]")
    c.refuse("axis", ["f32[5]", "f32[2]"], "invalid_argument", "axis -2 is outside of f32[5]")
    c.refuse("batch_axis", ["f32[5,2]", "f32[2,2]"], "invalid_argument", "axis 0 is the batch, not the sequence")
    c.refuse("update_shape", ["f32[1,5,2]", "f32[1,2,3]"], "shape_mismatch",
             "update f32[1,2,3] does not fit f32[1,5,2] along axis 1")
    c.refuse("update_rank", ["f32[1,5,2]", "f32[2,2]"], "shape_mismatch", "update f32[2,2] does not fit f32[1,5,2] along axis 1")
    c.refuse("update_too_long", ["f32[1,5,2]", "f32[1,6,2]"], "shape_mismatch",
             "update f32[1,6,2] does not fit f32[1,5,2] along axis 1")
    c.refuse("indices_dtype", ["f32[1,5,2]", "f32[1,2,2]", "f32[1]"], "dtype_mismatch",
             "write_indices must have i32 or i64, found f32[1]")
    c.refuse("indices_shape", ["f32[1,5,2]", "f32[1,2,2]", "i64[2]"], "shape_mismatch",
             "write_indices must have one entry per batch of f32[1,5,2], found i64[2]")
    c.write()


@generator("max_unpool")
def max_unpool(op):
    c = Cases(op)

    def run(name, x, indices, shape):
        out = np.zeros(int(np.prod(shape)), NUMPY[x.dt])
        for v, i in zip(x.a.ravel(), indices.a.ravel()):
            out[int(i)] = v
        c.run(name, [x, indices], out.reshape(shape), f"shape={list(shape)}".replace(" ", ""))

    places = lit("i64", [[[[5, 7], [13, 15]]]])
    for dt in ("f32", "f64", "i8", "u8", "f16", "bf16", "f8e5m2", "i4"):
        run(dt, rnd(dt, (1, 1, 2, 2), 1, 1.0, 5.0), places, (1, 1, 4, 4))
    run("channels", rnd("f32", (2, 2, 1, 2), 1), lit("i64", [0, 3, 4, 6, 9, 11, 12, 15], (2, 2, 1, 2)), (2, 2, 2, 2))
    run("larger_shape", rnd("f32", (1, 1, 2, 2), 1), places, (1, 1, 5, 5))
    run("repeated", lit("f32", [1.0, 2.0, 3.0]), lit("i32", [1, 1, 0]), (4,))
    run("one_dim", rnd("f32", (40,), 1), lit("i64", list(range(0, 80, 2)), (40,)), (81,))
    run("empty", lit("f32", [], (1, 0, 2)), lit("i64", [], (1, 0, 2)), (1, 0, 4))
    run("only_zeros", lit("f32", [], (1, 0, 2)), lit("i64", [], (1, 0, 2)), (1, 1, 4))
    c.fail("index_too_large", [lit("f32", [1.0]), lit("i64", [4])], "index out of range", "shape=[4]")
    c.fail("index_too_small", [lit("f32", [1.0]), lit("i64", [-1])], "index out of range", "shape=[4]")
    c.refuse("indices_dtype", ["f32[1]", "f32[1]"], "dtype_mismatch", "indices must have i32 or i64, found f32[1]", "shape=[4]")
    c.refuse("indices_shape", ["f32[1]", "i64[2]"], "shape_mismatch", "indices i64[2] must have the shape of f32[1]",
             "shape=[4]")
    c.refuse("no_room", ["f32[1]", "i64[1]"], "shape_mismatch", "shape [4,0] has no room for f32[1]", "shape=[4,0]")
    c.refuse("negative_shape", ["f32[1]", "i64[1]"], "invalid_argument", "each of shape must lie in [0,", "shape=[-1]")
    c.write()
