"""Cases of ops that work along an axis in order: running sums, arg-max, sorting."""

import numpy as np

from cases.files import Cases, Tensor, generator, lit, rnd
from cases.numerics import INF, NAN, NUMPY, is_float, rounded, wide

NARROW = ("f16", "bf16", "f8e4m3fn", "f8e5m2", "f4e2m1", "i4", "u2")


def scanned(x, axis, times, exclusive, reverse):
    """base + (carry + local): chains inside a block of 1024, of the blocks in a super-block, of the super-blocks."""
    rows = np.moveaxis(x.w, axis, 0)
    rows = rows[::-1] if reverse else rows
    one = np.full(rows.shape[1:], 1 if times else 0, rows.dtype)
    join = np.multiply if times else np.add
    out, base, carry, local, y = np.empty_like(rows), one, one, one, one
    for i in range(rows.shape[0]):
        if i % 1024 == 0:
            carry, local = join(carry, local), one
        if i % (1 << 20) == 0:
            base, carry = join(base, carry), one
        local = join(local, rows[i])
        before, y = y, join(base, join(carry, local))
        out[i] = before if exclusive else y
    out = out[::-1] if reverse else out
    return rounded_wrapping(np.moveaxis(out, 0, axis), x.dt)


def rounded_wrapping(values, dt):
    return rounded(values, dt) if is_float(dt) else values.astype(NUMPY[dt])


@generator("cumsum", "cumprod")
def scans(op):
    c = Cases(op)
    times = op == "cumprod"

    def run(name, x, axis, exclusive=False, reverse=False):
        attrs = [f"axis={axis}"] + ["exclusive=true"] * exclusive + ["reverse=true"] * reverse
        c.run(name, [x], scanned(x, axis, times, exclusive, reverse), ", ".join(attrs))

    for dt in ("f32", "f64", "i8", "u8", "i32", "i64", "u64") + NARROW:
        run(dt, rnd(dt, (3, 7), 1, 0.0 if dt[0] == "u" else -2.0, 3.0), 1)
    for exclusive in (False, True):
        for reverse in (False, True):
            flags = "_exclusive" * exclusive + "_reverse" * reverse
            run("row" + flags, rnd("f32", (5,), 2), 0, exclusive, reverse)
            run("middle" + flags, rnd("f32", (2, 6, 5), 3), -2, exclusive, reverse)
            run("blocks" + flags, rnd("f32", (2050,), 4, 0.9, 1.1), 0, exclusive, reverse)
    run("blocks_of_columns", rnd("f32", (1030, 3), 5, 0.9, 1.1), 0)
    run("specials", lit("f32", [-0.0, -0.0, 1.0, INF, 2.0, -INF, 3.0, NAN, 4.0]), 0)
    run("specials_exclusive", lit("f32", [-0.0, 1.0, INF, 0.0, 3.0]), 0, True)
    run("empty", lit("f32", [], (0,)), 0)
    run("empty_rows", lit("f32", [], (0, 3)), 1)
    run("one", lit("i32", [5]), 0)
    run("high_rank", rnd("i32", (2, 1, 3, 2, 1, 2, 2), 6, -9.0, 9.0), 3)
    c.refuse("bool", ["bool[2]"], "dtype_mismatch", "input must have a float or integer dtype, found bool[2]")
    c.refuse("scalar", ["f32[]"], "invalid_argument", "axis 0 is outside of f32[]")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axis=2")
    c.write()


@generator("argmax", "argmin")
def args(op):
    c = Cases(op)

    def run(name, x, axis=0, keepdims=True, last=False):
        w = np.moveaxis(x.w.astype(np.float64) if is_float(x.dt) else x.w, axis, -1)
        pick = np.max if op == "argmax" else np.min  # both give NaN if there is one
        hit = (w == pick(w, -1, keepdims=True)) | (np.isnan(w) if is_float(x.dt) else False)
        y = w.shape[-1] - 1 - np.argmax(hit[..., ::-1], -1) if last else np.argmax(hit, -1)
        y = np.expand_dims(y, axis) if keepdims else y
        attrs = [f"axis={axis}"] + ["keepdims=false"] * (not keepdims) + ["select_last=true"] * last
        c.run(name, [x], Tensor("i64", np.asarray(y, np.int64)), ", ".join(attrs))

    for dt in ("f32", "f64", "i8", "u8", "i32", "i64", "u64") + NARROW:
        run(dt, rnd(dt, (3, 7), 1, 0.0 if dt[0] == "u" else -2.0, 3.0), 1)
    for last in (False, True):
        tag = "last" if last else "first"
        run(f"ties_{tag}", lit("i32", [3, 1, 3, 1, 2]), 0, True, last)
        run(f"nan_{tag}", lit("f32", [[1, NAN, 5, NAN, 0], [2, 2, 1, 1, 2]]), 1, False, last)
        run(f"zeros_{tag}", lit("f32", [-0.0, 0.0, -0.0]), 0, True, last)
        run(f"infinities_{tag}", lit("f32", [-INF, -INF, INF, INF]), 0, True, last)
        run(f"middle_{tag}", rnd("i32", (2, 5, 3), 2, 0.0, 4.0), -2, False, last)
    run("only_infinities", lit("f32", [[INF, INF], [-INF, -INF]]), 1)
    run("long", rnd("f32", (2500,), 3), 0, False)
    run("columns", rnd("f32", (70, 33), 4), 0)
    run("one", lit("f32", [5.0]), 0)
    run("no_rows", lit("f32", [], (0, 3)), 1)
    run("high_rank", rnd("i32", (2, 1, 3, 2, 1, 2, 2), 6, -9.0, 9.0), 3)
    c.refuse("bool", ["bool[2]"], "dtype_mismatch", "input must have a float or integer dtype, found bool[2]")
    c.refuse("empty_axis", ["f32[2,0]"], "shape_mismatch", "dim 1 of f32[2,0] is empty", "axis=1")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis -3 is outside of f32[2,3]", "axis=-3")
    c.write()


def order(row, descending):
    """Stable; NaN is greatest."""
    keys = [(np.isnan(v), 0 if np.isnan(v) else v) for v in row]
    if descending:
        keys = [(not n, -v) for n, v in keys]
    return sorted(range(len(row)), key=keys.__getitem__)


def sorted_along(x, axis, descending):
    w = np.moveaxis(x.a, axis, -1)
    as_numbers = [float] if is_float(x.dt) else [int]
    flat = w.reshape(-1, w.shape[-1]) if w.size else np.empty((0, w.shape[-1]), w.dtype)
    at = np.array([order([as_numbers[0](v) for v in r], descending) for r in flat], np.int64).reshape(w.shape)
    values = np.take_along_axis(w.astype(wide(x.dt)), at, -1)
    return np.moveaxis(values, -1, axis).astype(NUMPY[x.dt]), np.moveaxis(at, -1, axis)


@generator("sort")
def sorting(op):
    c = Cases(op)

    def run(name, x, axis=-1, descending=False):
        values, at = sorted_along(x, axis, descending)
        c.run(name, [x], [values, Tensor("i64", at)], f"axis={axis}" + ", descending=true" * descending)

    for dt in ("bool", "f32", "f64", "i8", "u8", "i32", "i64", "u64") + NARROW:
        for descending in (False, True):
            name = dt + "_descending" * descending
            run(name, rnd(dt, (3, 9), 1, 0.0 if dt[0] == "u" else -2.0, 3.0), 1, descending)
    for n in (0, 1, 2, 3, 4, 5, 8, 31, 100):
        run(f"length_{n}", rnd("i32", (2, n), n, 0.0, 40.0))
    for descending in (False, True):
        tag = "_descending" * descending
        run("specials" + tag, lit("f32", [1, NAN, -0.0, INF, 0.0, NAN, -INF, -0.0, 1]), 0, descending)
        run("ties" + tag, lit("i64", [2, 1, 2, 1, 2, 1, 3]), 0, descending)
    limits = np.iinfo(np.int64)
    run("limits", lit("i64", [limits.max, 0, limits.min, -1, limits.max - 1]), 0)
    run("columns", rnd("f32", (13, 4), 2), 0)
    run("middle", rnd("f32", (2, 11, 3), 3), 1, True)
    run("no_rows", lit("f32", [], (0, 3)), 1)
    run("high_rank", rnd("i32", (2, 1, 3, 2, 1, 2, 2), 6, -9.0, 9.0), 2)
    c.refuse("scalar", ["f32[]"], "invalid_argument", "axis -1 is outside of f32[]")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axis=2")
    c.write()


@generator("top_k")
def top_k(op):
    c = Cases(op)

    def run(name, x, k, axis=-1, largest=True, extra=""):
        values, at = (np.take(v, range(k), axis) for v in sorted_along(x, axis, largest))
        attrs = f"axis={axis}, k={k}" + ", largest=false" * (not largest) + extra
        c.run(name, [x], [values, Tensor("i64", at)], attrs)

    for dt in ("f32", "f64", "i8", "u8", "i32", "i64", "u64", "f16", "bf16", "f8e4m3fn", "i4"):
        run(dt, rnd(dt, (3, 9), 1, 0.0 if dt[0] == "u" else -2.0, 3.0), 4)
    for largest in (True, False):
        tag = "largest" if largest else "smallest"
        run(f"specials_{tag}", lit("f32", [1, NAN, -0.0, INF, 0.0, NAN, -INF, 1]), 5, 0, largest)
        run(f"ties_{tag}", lit("i64", [2, 1, 2, 1, 2, 1, 3]), 4, 0, largest)
        run(f"middle_{tag}", rnd("f32", (2, 11, 3), 3), 3, 1, largest)
    run("unsorted", rnd("f32", (8,), 5), 3, 0, True, ", sorted=false")
    run("all", rnd("f32", (6,), 5), 6)
    run("none", rnd("f32", (2, 6), 5), 0)
    run("one", lit("f32", [7.0]), 1)
    run("no_rows", lit("f32", [], (0, 3)), 2)
    c.refuse("too_many", ["f32[2,3]"], "invalid_argument", "k must lie in [0,3], found 4", "k=4")
    c.refuse("negative", ["f32[2,3]"], "invalid_argument", "k must lie in [0,3], found -1", "k=-1")
    c.refuse("axis", ["f32[2,3]"], "invalid_argument", "axis 2 is outside of f32[2,3]", "axis=2, k=1")
    c.write()
