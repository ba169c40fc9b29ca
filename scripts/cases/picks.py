"""Cases of ops that pick elements by indices or lengths."""

import numpy as np

from cases.files import Cases, generator, lit, rnd, seq, Tensor
from cases.moves import MOVED
from cases.numerics import is_float


@generator("one_hot")
def one_hot(op):
    c = Cases(op)

    def run(name, indices, values, depth, axis=None):
        at = -1 if axis is None else axis
        wanted = np.trunc(indices.a.astype(np.float64)) if is_float(indices.dt) else indices.a.astype(object)
        places = np.moveaxis(np.arange(depth).reshape((depth,) + (1,) * indices.a.ndim), 0, at)
        wanted = np.expand_dims(wanted, at)
        hit = np.asarray((places == wanted) | (places == wanted + depth), bool)
        attrs = (f"axis={axis}, " if axis is not None else "") + f"depth={depth}"
        c.run(name, [indices, values], Tensor(values.dt, np.where(hit, values.a[1], values.a[0])), attrs)

    ones = lit("f32", [0.0, 1.0])
    run("rows", lit("i64", [1, 0, 3]), ones, 4)
    run("axis_0", lit("i64", [1, 0, 3]), ones, 4, 0)
    run("axis_middle", lit("i64", [[1, 0, 3], [2, 2, 0]]), ones, 4, 1)
    run("axis_negative", lit("i64", [[1, 0, 3], [2, 2, 0]]), ones, 4, -3)
    run("negative_indices", lit("i64", [-1, -4, -5, 3, 4, 100, -2 ** 63, 2 ** 63 - 1]), ones, 4)
    run("scalar", lit("i64", 2), ones, 5)
    run("values", lit("i32", [0, 2]), lit("i8", [-3, 5]), 3)
    run("bools", lit("i32", [0, 2]), lit("bool", [1, 0]), 3)
    run("no_indices", lit("i64", [], (0,)), ones, 3)
    run("no_depth", lit("i64", [1, 2]), ones, 0)
    run("long", rnd("i64", (3,), 1, 0.0, 37.0), ones, 37)
    run("rank8", rnd("i64", (1, 2, 1, 3, 1, 1, 2), 2, 0.0, 4.0), ones, 4, 3)
    for dt in ("i8", "i16", "i32", "u8", "u16", "u32"):
        run(f"{dt}_indices", lit(dt, [0, 2, 100] + ([-1] if dt[0] == "i" else [])), ones, 3)
    run("u64_indices", lit("u64", [0, 2, 2 ** 64 - 1]), ones, 3)
    for dt in ("f16", "bf16", "f32", "f64"):
        run(f"{dt}_indices", lit(dt, [0.0, 2.5, -1.0, 7.0, -0.5]), ones, 3)
    for dt in MOVED:
        run(f"{dt}_values", lit("i64", [1, 2]), lit(dt, [0, 1]), 3)
    c.refuse("indices", ["bool[2]", "f32[2]"], "dtype_mismatch",
             "indices must have a float or integer dtype, found bool[2]", "depth=3")
    c.refuse("values_shape", ["i64[2]", "f32[3]"], "shape_mismatch", "values must have shape [2], found f32[3]",
             "depth=3")
    c.refuse("depth", ["i64[2]", "f32[2]"], "invalid_argument",
             "each of depth must lie in [0,1099511627776], found [-1]", "depth=-1")
    c.refuse("axis", ["i64[2]", "f32[2]"], "invalid_argument",
             "axis 2 is outside of the result, which has 2 dims", "axis=2, depth=3")
    c.write()


@generator("reverse_sequence")
def reverse_sequence(op):
    c = Cases(op)

    def run(name, x, lengths, batch=1, time=0):
        y = np.moveaxis(x.a, (batch, time), (0, 1)).copy()
        for b, n in enumerate(lengths.a):
            y[b, :n] = y[b, :n][::-1].copy()
        c.run(name, [x, lengths], np.moveaxis(y, (0, 1), (batch, time)), f"batch_axis={batch}, time_axis={time}")

    run("time_first", seq("f32", 4, 3), lit("i64", [4, 1, 2]))
    run("batch_first", seq("f32", 3, 4), lit("i64", [3, 0, 4]), 0, 1)
    run("i32_lengths", seq("f32", 3, 4), lit("i32", [3, 2, 4]), 0, 1)
    run("inner_dims", seq("f32", 4, 2, 3), lit("i64", [3, 2]))
    run("last_axes", seq("f32", 2, 3, 4), lit("i64", [1, 3, 4]), 1, -1)
    run("long", rnd("f32", (2, 37), 1), lit("i64", [30, 37]), 0, 1)
    run("empty_batch", lit("f32", [], (4, 0)), lit("i64", [], (0,)))
    run("empty_time", lit("f32", [], (0, 2)), lit("i64", [0, 0]))
    run("rank8", seq("f32", 1, 2, 1, 3, 1, 1, 2, 1), lit("i64", [2, 3]), 1, 3)
    x = seq("f32", 4, 2)
    c.run("default_axes", [x, lit("i64", [4, 1])], np.stack([x.a[::-1, 0], x.a[:, 1]], 1))
    for dt in MOVED:
        run(dt, rnd(dt, (3, 2), 2, 0.0, 9.0), lit("i64", [3, 2]))
    for name, values in (("too_long", [5, 0]), ("negative", [1, -1]), ("far", [2 ** 62, 1]),
                         ("far_below", [1, -2 ** 63])):
        c.fail(name, [seq("f32", 4, 2), lit("i64", values)], "length out of range")
    c.refuse("axis", ["f32[4,2]", "i64[2]"], "invalid_argument", "axis 2 is outside of f32[4,2]", "time_axis=2")
    c.refuse("one_axis", ["f32[4,2]", "i64[2]"], "invalid_argument", "axis 0 appears twice in axes [0,0]",
             "batch_axis=0")
    c.refuse("lengths", ["f32[4,2]", "f32[2]"], "dtype_mismatch", "lengths must have i32 or i64, found f32[2]")
    c.refuse("lengths_shape", ["f32[4,2]", "i64[4]"], "shape_mismatch", "lengths must have shape [2], found i64[4]")
    c.write()


def fail_out_of_range(c, indices):
    for name, value in (("above", 4), ("below", -5), ("far", 2 ** 62), ("far_below", -2 ** 63)):
        c.fail(name, [seq("f32", 4, 2), indices(value)], "index out of range")


@generator("gather_elements")
def gather_elements(op):
    c = Cases(op)

    def run(name, x, indices, axis=0):
        if indices.a.size:
            part = x.a[tuple(slice(None) if d == axis % x.a.ndim else slice(n) for d, n in enumerate(indices.a.shape))]
            y = np.take_along_axis(part, indices.a, axis)
        else:
            y = np.zeros(indices.a.shape, x.a.dtype)
        c.run(name, [x, indices], y, f"axis={axis}" if axis else "")

    run("rows", seq("f32", 4, 3), lit("i64", [[2, 0, 3], [1, 1, 0]]))
    run("columns", seq("f32", 2, 5), lit("i64", [[4, 4, 0], [1, 2, 3]]), 1)
    run("negative_axis", seq("f32", 2, 5), lit("i64", [[4, 4], [1, 2]]), -1)
    run("negative_indices", seq("f32", 4, 2), lit("i64", [[-1, -4], [3, -2]]))
    run("i32_indices", seq("f32", 4), lit("i32", [-1, 0, 3]))
    run("smaller", seq("f32", 4, 5), lit("i64", [[3, 1]]))
    run("middle", seq("f32", 2, 3, 4), rnd("i64", (2, 5, 4), 1, -3.0, 3.0), 1)
    run("no_indices", seq("f32", 3, 4), lit("i64", [], (0, 4)))
    run("empty_axis_no_indices", lit("f32", [], (0, 4)), lit("i64", [], (0, 4)))
    run("long", rnd("f32", (3, 37), 2), rnd("i64", (3, 37), 3, 0.0, 37.0), 1)
    run("rank8", seq("f32", 1, 2, 1, 3, 1, 1, 2, 1), rnd("i64", (1, 2, 1, 5, 1, 1, 2, 1), 4, 0.0, 3.0), 3)
    for dt in MOVED:
        run(dt, rnd(dt, (4, 3), 5, 0.0, 9.0), lit("i64", [[3, 1, 0]]))
    fail_out_of_range(c, lambda v: lit("i64", [[0, v]]))
    c.refuse("indices", ["f32[4]", "f32[2]"], "dtype_mismatch", "indices must have i32 or i64, found f32[2]")
    c.refuse("axis", ["f32[4]", "i64[2]"], "invalid_argument", "axis 1 is outside of f32[4]", "axis=1")
    c.refuse("rank", ["f32[4,2]", "i64[2]"], "rank_mismatch", "indices must have rank 2, found i64[2]")
    c.refuse("dims", ["f32[4,2]", "i64[4,3]"], "shape_mismatch", "dim 1 of f32[4,2] is too small for indices i64[4,3]")
    c.refuse("empty_axis", ["f32[0,4]", "i64[1,4]"], "shape_mismatch",
             "dim 0 of f32[0,4] is too small for indices i64[1,4]")
    c.write()


@generator("gather_nd")
def gather_nd(op):
    c = Cases(op)

    def run(name, x, indices, batch=0):
        outer, k = indices.a.shape[:-1], indices.a.shape[-1]
        y = np.zeros(outer + x.a.shape[batch + k:], x.a.dtype)
        for at in np.ndindex(*outer):
            y[at] = x.a[at[:batch] + tuple(indices.a[at])]
        c.run(name, [x, indices], y, f"batch_dims={batch}" if batch else "")

    run("elements", seq("f32", 2, 3), lit("i64", [[0, 0], [1, 2], [0, -1]]))
    run("rows", seq("f32", 4, 3), lit("i64", [[2], [0], [-4]]))
    run("one", seq("f32", 4, 3), lit("i64", [2, 1]))
    run("whole", seq("f32", 2, 3), lit("i64", [], (2, 0)))
    run("planes", seq("f32", 2, 3, 4), lit("i64", [[[0, 1]], [[1, 0]]]))
    run("batch", seq("f32", 2, 3, 4), lit("i64", [[1], [2]]), 1)
    run("batch_of_many", seq("f32", 2, 3, 4), lit("i64", [[[1, 0], [2, 3]], [[0, -1], [-3, 1]]]), 1)
    run("two_batches", seq("f32", 2, 2, 4), lit("i64", [[[1], [2]], [[3], [0]]]), 2)
    run("i32_indices", seq("f32", 2, 3), lit("i32", [[1, 1]]))
    run("no_indices", seq("f32", 2, 3), lit("i64", [], (0, 2)))
    run("empty_rows", lit("f32", [], (3, 0)), lit("i64", [[1], [1]]))
    run("long", rnd("f32", (5, 37), 1), rnd("i64", (6, 1), 2, 0.0, 5.0))
    run("rank8", seq("f32", 1, 2, 1, 3, 1, 1, 2, 1), rnd("i64", (3, 4), 3, 0.0, 1.0))
    for dt in MOVED:
        run(dt, rnd(dt, (4, 3), 4, 0.0, 9.0), lit("i64", [[3, 1], [0, 2]]))
    fail_out_of_range(c, lambda v: lit("i64", [[0, 0], [v, 1]]))
    c.refuse("indices", ["f32[4]", "f32[2]"], "dtype_mismatch", "indices must have i32 or i64, found f32[2]")
    c.refuse("indices_rank", ["f32[4]", "i64[]"], "rank_mismatch", "indices must have rank 1 or more, found i64[]")
    c.refuse("batch_dims", ["f32[4,2]", "i64[2]"], "invalid_argument",
             "batch_dims 1 must be less than the ranks of f32[4,2] and indices i64[2]", "batch_dims=1")
    c.refuse("too_many", ["f32[4,2]", "i64[1,3]"], "shape_mismatch",
             "indices i64[1,3] name 3 dims, f32[4,2] has 2 after the batch")
    c.refuse("batch_differs", ["f32[4,2]", "i64[3,1]"], "shape_mismatch",
             "the first 1 dims of f32[4,2] and indices i64[3,1] differ", "batch_dims=1")
    c.refuse("empty", ["f32[0,4]", "i64[2,1]"], "shape_mismatch",
             "f32[0,4] is empty, there is nothing to select")
    c.write()
