"""Cases of ops that move elements."""

import numpy as np

from cases.files import Cases, generator, lit, rnd, seq
from cases.numerics import INF, is_float, NUMPY, rounded

MOVED = tuple(NUMPY)


def text(ints):
    return "[" + ", ".join(map(str, ints)) + "]"


@generator("reshape")
def reshape(op):
    c = Cases(op)

    def run(name, x, shape):
        c.run(name, [x], x.a.reshape(shape), f"shape={text(shape)}")

    run("flat", seq("f32", 2, 3, 4), [24])
    run("split", seq("f32", 24), [2, 3, 4])
    run("regroup", seq("f32", 6, 4), [3, 8])
    run("odd", seq("f32", 5, 7), [7, 5])
    run("rest", seq("f32", 4, 6), [3, -1, 2])
    run("rest_of_empty", lit("f32", [], (0, 6)), [3, -1])
    run("to_scalar", seq("f32", 1, 1), [])
    run("from_scalar", lit("f32", 7.0), [1, 1, 1])
    run("ones", seq("f32", 2, 3), [1, 2, 1, 3, 1])
    run("rank8", seq("f32", 4, 6), [2, 1, 2, 1, 3, 1, 2, 1])
    run("empty", lit("f32", [], (2, 0, 3)), [0, 5])
    for dt in MOVED:
        run(dt, rnd(dt, (2, 6), 1, 0.0, 9.0), [3, 4])
    for name, x, shape in (("count", "f32[2,3] with 6", [4, 2]), ("rest_does_not_divide", "f32[2,3] with 6", [4, -1]),
                           ("rest_of_nothing", "f32[0,3] with 0", [0, -1])):
        c.refuse(name, [x.split()[0]], "shape_mismatch",
                 f"{x} elements does not fit shape [{shape[0]},{shape[1]}]", f"shape={text(shape)}")
    c.refuse("two_rests", ["f32[2,3]"], "invalid_argument", "shape [-1,-1] has -1 more than once", "shape=[-1, -1]")
    c.refuse("negative", ["f32[2,3]"], "invalid_argument", "-2", "shape=[-2, 3]")
    c.refuse("overflow", ["f32[2,3]"], "invalid_argument", "over the limit",
             "shape=[4611686018427387904, 4611686018427387904]")
    c.write()


@generator("transpose")
def transpose(op):
    c = Cases(op)

    def run(name, x, perm=None):
        c.run(name, [x], np.transpose(x.a, perm), f"perm={text(perm)}" if perm else "")

    run("matrix", seq("f32", 5, 19))
    run("matrix_perm", seq("f32", 3, 4), [1, 0])
    run("reversed", seq("f32", 2, 3, 4))
    run("heads", seq("f32", 2, 3, 2, 4), [0, 2, 1, 3])
    run("cycle", seq("f32", 2, 3, 4), [2, 0, 1])
    run("same", seq("f32", 2, 3), [0, 1])
    run("rank8", seq("f32", 2, 1, 3, 1, 2, 1, 1, 2), [7, 2, 0, 1, 4, 6, 5, 3])
    run("scalar", lit("f32", 1.0))
    run("empty", lit("f32", [], (2, 0, 3)), [1, 2, 0])
    for dt in MOVED:
        run(dt, rnd(dt, (3, 5), 1, 0.0, 9.0))
    c.refuse("count", ["f32[2,3]"], "invalid_argument", "perm must have 2 entries, found [0]", "perm=[0]")
    c.refuse("range", ["f32[2,3]"], "invalid_argument", "each of perm must lie in [0,1], found [0,2]", "perm=[0, 2]")
    c.refuse("twice", ["f32[2,3]"], "invalid_argument", "perm [1,1] names dim 1 twice", "perm=[1, 1]")
    c.write()


@generator("slice")
def slices(op):
    c = Cases(op)

    def run(name, x, starts, ends, axes=(), steps=()):
        index = [slice(None)] * x.a.ndim
        for i, (start, end) in enumerate(zip(starts, ends)):
            step = steps[i] if steps else 1
            axis = (axes[i] if axes else i) % max(x.a.ndim, 1)
            # Python has no number for "one before the first" once negative ends count from the back.
            index[axis] = slice(start, None if step < 0 and end < -x.a.shape[axis] else end, step)
        attrs = f"starts={text(starts)}, ends={text(ends)}"
        attrs += f", axes={text(axes)}" if axes else ""
        attrs += f", steps={text(steps)}" if steps else ""
        c.run(name, [x], x.a[tuple(index)], attrs)

    x = seq("f32", 4, 5)
    big = 2 ** 63 - 1
    run("front", x, [1], [3])
    run("both", x, [1, 2], [3, 4])
    run("axis", x, [1], [4], [1])
    run("negative_axis", x, [1], [4], [-1])
    run("negative_indices", x, [-3, -4], [-1, -1])
    run("steps", x, [0, 1], [4, 5], [0, 1], [2, 3])
    run("backwards", x, [3, 4], [0, 1], [0, 1], [-1, -2])
    run("reversed", x, [-1, -1], [-big, -big - 1], [0, 1], [-1, -1])
    run("clamped", x, [-100, 1], [100, big])
    run("long_step", x, [1, 3], [big, -big], [0, 1], [big, -big - 1])
    run("nothing", x, [3], [2])
    run("nothing_backwards", x, [1], [3], [0], [-1])
    run("beyond", x, [9], [12])
    run("none", x, [], [])
    run("row", seq("f32", 3, 37), [5], [30], [1])
    run("rank8", seq("f32", 2, 1, 3, 1, 2, 1, 1, 4), [1, -1, 1], [2, -9, 4], [2, 4, 7], [1, -1, 2])
    run("scalar", lit("f32", 1.0), [], [])
    run("empty", lit("f32", [], (0, 3)), [0, -1], [5, -9], [0, 1], [1, -1])
    run("empty_backwards", lit("f32", [], (0, 3)), [5], [-5], [0], [-1])
    for dt in MOVED:
        run(dt, rnd(dt, (3, 5), 1, 0.0, 9.0), [2, 1], [-4, 4], [0, 1], [-1, 1])
    x = "f32[4,5]"
    c.refuse("ends", [x], "invalid_argument", "starts [1], ends [2,3], axes [] and steps [] differ in length",
             "starts=[1], ends=[2, 3]")
    c.refuse("axes_count", [x], "invalid_argument", "starts [1], ends [2], axes [0,1] and steps [] differ in length",
             "starts=[1], ends=[2], axes=[0, 1]")
    c.refuse("steps_count", [x], "invalid_argument", "starts [1], ends [2], axes [] and steps [1,1] differ in length",
             "starts=[1], ends=[2], steps=[1, 1]")
    c.refuse("step_zero", [x], "invalid_argument", "steps must not be 0, found [0]", "starts=[1], ends=[2], steps=[0]")
    c.refuse("too_many", [x], "invalid_argument", "starts [0,0,0] are more than the dims of f32[4,5]",
             "starts=[0, 0, 0], ends=[1, 1, 1]")
    c.refuse("axis_range", [x], "invalid_argument", "axis 2 is outside of f32[4,5]", "starts=[0], ends=[1], axes=[2]")
    c.refuse("axis_twice", [x], "invalid_argument", "axis -2 appears twice in axes [0,-2]",
             "starts=[0, 0], ends=[1, 1], axes=[0, -2]")
    c.write()


@generator("concat")
def concat(op):
    c = Cases(op)

    def run(name, inputs, axis):
        c.run(name, inputs, np.concatenate([x.a for x in inputs], axis), f"axis={axis}")

    run("rows", [seq("f32", 2, 3), rnd("f32", (1, 3), 1)], 0)
    run("columns", [seq("f32", 2, 3), rnd("f32", (2, 5), 2), rnd("f32", (2, 1), 3)], 1)
    run("negative_axis", [seq("f32", 2, 3), rnd("f32", (2, 2), 4)], -1)
    run("middle", [rnd("f32", (2, 2, 3), 5), rnd("f32", (2, 4, 3), 6)], 1)
    run("one", [seq("f32", 2, 3)], 0)
    run("eight", [rnd("f32", (i + 1,), 7 + i) for i in range(8)], 0)
    run("with_empty", [lit("f32", [], (0, 3)), seq("f32", 2, 3), lit("f32", [], (0, 3)), rnd("f32", (1, 3), 15)], 0)
    run("all_empty", [lit("f32", [], (0, 3)), lit("f32", [], (0, 3))], 0)
    run("empty_beside", [lit("f32", [], (2, 0)), lit("f32", [], (3, 0))], 0)
    run("long", [rnd("f32", (2, 33), 16), rnd("f32", (2, 20), 17)], 1)
    run("rank8", [rnd("f32", (1, 2, 1, 1, 2, 1, n, 2), 18 + n) for n in (1, 2)], 6)
    for dt in MOVED:
        run(dt, [rnd(dt, (2, 3), 21, 0.0, 9.0), rnd(dt, (2, 2), 22, 0.0, 9.0)], 1)
    c.refuse("axis", ["f32[2]", "f32[2]"], "invalid_argument", "axis 1 is outside of f32[2]", "axis=1")
    c.refuse("scalars", ["f32[]", "f32[]"], "invalid_argument", "axis 0 is outside of f32[]", "axis=0")
    c.refuse("dtypes", ["f32[2]", "i32[2]"], "dtype_mismatch", "inputs must have one dtype, found f32[2] and i32[2]",
             "axis=0")
    c.refuse("ranks", ["f32[2]", "f32[2,1]"], "rank_mismatch", "each input must have rank 1, found f32[2,1]", "axis=0")
    c.refuse("shapes", ["f32[2,3]", "f32[2,4]"], "shape_mismatch",
             "inputs may differ only in dim 0, found f32[2,3] and f32[2,4]", "axis=0")
    c.refuse("too_large", ["bool[1099511627776]", "bool[1]"], "invalid_argument", "dim 0 of the result is too large",
             "axis=0")
    c.write()


@generator("pad")
def pad(op):
    c = Cases(op)

    def run(name, x, pads, value=None):
        rank = x.a.ndim
        shape = [d + pads[i] + pads[rank + i] for i, d in enumerate(x.a.shape)]
        out = np.full(shape, rounded(np.float64(value or 0.0), x.dt) if is_float(x.dt) else NUMPY[x.dt](value or 0))
        for at in np.ndindex(*x.a.shape):
            to = tuple(i + p for i, p in zip(at, pads))
            if all(0 <= t < d for t, d in zip(to, shape)):
                out[to] = x.a[at]
        attrs = f"pads={text(pads)}" + (f", value={value!r}" if value is not None else "")
        c.run(name, [x], out, attrs)

    def copy(name, x, pads, modes=("reflect", "edge", "wrap")):
        rank = x.a.ndim
        kept = x.a[tuple(slice(max(-pads[i], 0), d + min(pads[rank + i], 0)) for i, d in enumerate(x.a.shape))]
        around = [(max(pads[i], 0), max(pads[rank + i], 0)) for i in range(rank)]
        for mode in modes:
            y = np.pad(kept, around, mode) if rank else kept
            c.run(f"{mode}_{name}", [x], y, f'mode="{mode}", pads={text(pads)}')

    run("around", seq("f32", 2, 3), [1, 2, 1, 1])
    run("value", seq("f32", 2, 3), [0, 1, 2, 0], -1.5)
    run("infinity", seq("f32", 2, 2), [0, 1, 0, 1], -INF)
    run("nothing", seq("f32", 2, 3), [0, 0, 0, 0])
    run("crop", seq("f32", 4, 5), [-1, 0, -1, -2])
    run("crop_and_pad", seq("f32", 3, 4), [-2, 1, 2, -1], 9.0)
    run("crop_all", seq("f32", 2, 3), [-1, 0, -1, 0])
    run("of_empty", lit("f32", [], (0, 2)), [1, 0, 1, 0], 3.0)
    run("image", rnd("f32", (1, 2, 3, 3), 1), [0, 0, 1, 1, 0, 0, 1, 1])
    run("long", rnd("f32", (2, 30), 2), [0, 3, 0, 4])
    run("rank8", rnd("f32", (1, 2, 1, 1, 2, 1, 1, 2), 3), [0] * 7 + [1] + [0] * 4 + [1, 0, 0, 0])
    run("scalar", lit("f32", 4.0), [])
    for dt in MOVED:
        run(dt, rnd(dt, (2, 3), 4, 0.0, 9.0), [1, 0, 0, 1], 1.0)
    copy("around", seq("f32", 3, 4), [1, 2, 2, 3])
    copy("far", seq("f32", 2, 3), [5, 7, 4, 9])
    copy("one", seq("f32", 1, 2), [3, 0, 2, 1])
    copy("nothing", seq("f32", 2, 3), [0, 0, 0, 0])
    copy("crop", seq("f32", 4, 5), [-1, 0, -1, -2])
    copy("crop_and_pad", seq("f32", 3, 5), [2, -1, -1, 3])
    copy("image", rnd("f32", (1, 2, 3, 3), 5), [0, 0, 1, 1, 0, 0, 1, 1])
    copy("long", rnd("f32", (2, 30), 6), [0, 3, 0, 4])
    copy("rank8", rnd("f32", (1, 2, 1, 1, 2, 1, 1, 2), 7), [0] * 7 + [1] + [0] * 4 + [1, 0, 0, 1])
    copy("empty", lit("f32", [], (0, 2)), [0, 1, 0, 1])
    copy("to_empty", seq("f32", 2, 2), [-1, 1, -1, 1])
    copy("scalar", lit("f32", 4.0), [])
    for dt in MOVED:
        copy(dt, rnd(dt, (2, 3), 8, 0.0, 9.0), [1, 0, 0, 1], ["reflect"])
    c.refuse("mode", ["f32[2]"], "invalid_argument",
             'mode must be \\"constant\\", \\"reflect\\", \\"edge\\" or \\"wrap\\", found \\"mirror\\"',
             'mode="mirror", pads=[1, 1]')
    c.refuse("of_nothing", ["f32[0,2]"], "shape_mismatch",
             "pads [1,0,0,0] leave nothing of dim 0 of f32[0,2] to copy from", 'mode="edge", pads=[1, 0, 0, 0]')
    c.refuse("of_nothing_left", ["f32[2]"], "shape_mismatch",
             "pads [-2,1] leave nothing of dim 0 of f32[2] to copy from", 'mode="wrap", pads=[-2, 1]')
    c.refuse("count", ["f32[2,3]"], "invalid_argument", "pads must have 4 entries, found [1,1]", "pads=[1, 1]")
    c.refuse("too_much", ["f32[2,3]"], "shape_mismatch",
             "pads [-1,0,-2,0] take more from dim 0 of f32[2,3] than it has", "pads=[-1, 0, -2, 0]")
    c.refuse("huge", ["f32[2]"], "invalid_argument", "each of pads must lie in", "pads=[9223372036854775807, 1]")
    c.write()


@generator("gather")
def gather(op):
    c = Cases(op)

    def run(name, x, indices, axis=0):
        c.run(name, [x, indices], np.take(x.a, indices.a, axis), f"axis={axis}" if axis else "")

    run("rows", seq("f32", 4, 3), lit("i64", [2, 0, 3]))
    run("columns", seq("f32", 3, 5), lit("i64", [4, 4, 0, 1]), 1)
    run("negative_axis", seq("f32", 3, 5), lit("i64", [1, 2]), -1)
    run("negative_indices", seq("f32", 4, 2), lit("i64", [-1, -4, 3, -2]))
    run("i32_indices", seq("f32", 4, 2), lit("i32", [-1, 0, 3]))
    run("matrix_of_indices", seq("f32", 3, 2), lit("i64", [[0, 2], [1, -1], [2, 2]]))
    run("middle", seq("f32", 2, 3, 4), lit("i64", [[2, 0]]), 1)
    run("scalar_index", seq("f32", 3, 4), lit("i64", 2))
    run("vector_and_scalar", seq("f32", 5), lit("i32", -2))
    run("no_indices", seq("f32", 3, 4), lit("i64", [], (0,)))
    run("empty_axis_no_indices", lit("f32", [], (0, 4)), lit("i64", [], (2, 0)))
    run("empty_rows", lit("f32", [], (3, 0)), lit("i64", [1, 1]))
    run("embedding", rnd("f32", (11, 19), 1), rnd("i64", (2, 3), 2, 0.0, 11.0))
    run("rank8", seq("f32", 2, 1, 2, 1, 3, 2), lit("i64", [[2, 0], [1, 1], [0, 2]]), 4)
    for dt in MOVED:
        run(dt, rnd(dt, (4, 3), 3, 0.0, 9.0), lit("i64", [3, 1]))
    for name, values in (("above", [0, 4]), ("below", [-5, 0]), ("far", [2 ** 62, 0]), ("far_below", [-2 ** 63, 1])):
        c.fail(name, [seq("f32", 4, 2), lit("i64", values)], "index out of range")
    c.fail("i32_above", [seq("f32", 4, 2), lit("i32", [2 ** 31 - 1])], "index out of range")
    c.refuse("indices", ["f32[4]", "f32[2]"], "dtype_mismatch", "indices must have i32 or i64, found f32[2]")
    c.refuse("axis", ["f32[4]", "i64[2]"], "invalid_argument", "axis 1 is outside of f32[4]", "axis=1")
    c.refuse("scalar", ["f32[]", "i64[2]"], "invalid_argument", "axis 0 is outside of f32[]")
    c.refuse("empty_axis", ["f32[0,4]", "i64[2]"], "shape_mismatch",
             "dim 0 of f32[0,4] is empty, there is nothing to select")
    c.write()


@generator("expand")
def expand(op):
    c = Cases(op)

    def run(name, x, shape):
        c.run(name, [x], np.broadcast_to(x.a, shape), f"shape={text(shape)}")

    run("rows", seq("f32", 3), [2, 3])
    run("columns", seq("f32", 3, 1), [3, 19])
    run("middle", seq("f32", 2, 1, 3), [2, 2, 3])
    run("scalar", lit("f32", 2.0), [2, 3])
    run("scalar_to_scalar", lit("f32", 2.0), [])
    run("same", seq("f32", 2, 3), [2, 3])
    run("to_empty", seq("f32", 1, 3), [0, 3])
    run("rank8", seq("f32", 2, 1, 2), [1, 2, 1, 1, 1, 2, 2, 2])
    for dt in MOVED:
        run(dt, rnd(dt, (3, 1), 1, 0.0, 9.0), [2, 3, 2])
    c.refuse("dims", ["f32[2,3]"], "shape_mismatch", "f32[2,3] does not broadcast to shape [2,4]", "shape=[2, 4]")
    c.refuse("shrinks", ["f32[2,3]"], "shape_mismatch", "f32[2,3] does not broadcast to shape [1,3]", "shape=[1, 3]")
    c.refuse("rank", ["f32[2,3]"], "shape_mismatch", "f32[2,3] does not broadcast to shape [3]", "shape=[3]")
    c.refuse("negative", ["f32[3]"], "invalid_argument", "-1", "shape=[-1, 3]")
    c.write()
