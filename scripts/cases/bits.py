"""Cases of comparisons, logic and bits."""

import numpy as np

from cases.elementwise import binary, COMPARISONS, EDGES, int_limits
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import is_float, NAN, NUMPY, rounded

INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")

MORE = {"greater": np.greater, "greater_equal": np.greater_equal, "less_equal": np.less_equal,
        "not_equal": np.not_equal}
COMPARISONS.update(MORE)
generator(*MORE)(binary)


def shift(a, b, left):
    """In Python's integers: all bits are lost at the width, where negative counts are beyond it."""
    width = a.dtype.itemsize * 8
    info = np.iinfo(a.dtype)

    def one(x, n):
        n = n if 0 <= n < width else width
        y = (x << n if left else x >> n) % 2 ** width
        return y - 2 ** width if y > info.max else y
    shape = np.broadcast_shapes(a.shape, b.shape)
    return np.array([one(int(x), int(n)) for x, n in np.broadcast(a, b)], a.dtype).reshape(shape)


BINARY = {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shift_left": lambda a, b: shift(a, b, True), "shift_right": lambda a, b: shift(a, b, False),
}


@generator(*BINARY)
def two_operands(op):
    c = Cases(op)
    dtypes = ("bool",) if op.startswith("logical") else INTS

    def run(name, a, b):
        c.run(name, [a, b], Tensor(a.dt, BINARY[op](a.a, b.a)))

    for dt in dtypes:
        limits = [0, 1] if dt == "bool" else int_limits(dt) + [5]
        counts = [0, 1, 3, 7, 8, 9, 31, 32, 63, 64, 100] + ([-1] if dt[0] == "i" else [])
        x = lit(dt, limits)
        run(f"{dt}_limits", Tensor(dt, x.a.reshape(-1, 1)), lit(dt, counts) if op.startswith("shift") else x)
    dt = dtypes[-1]
    small = (lambda shape, seed: rnd(dt, shape, seed, 0.0, 40.0))
    run("values", small((67,), 1), small((67,), 2))
    run("scalars", small((), 3), small((), 4))
    run("scalar_and_vector", small((), 3), small((5,), 5))
    run("row", small((3, 5), 6), small((5,), 7))
    run("outer", small((4, 1), 8), small((1, 18), 9))
    run("rank8", small((2, 1, 2, 1, 1, 2, 1, 3), 10), small((3, 1, 2, 1, 2, 1, 3), 11))
    run("empty", lit(dt, [], (0, 3)), small((1, 3), 12))
    words, wrong = ("dtype bool", "i32[2]") if dt == "bool" else ("an integer dtype", "bool[2]")
    c.refuse("other_dtype", [wrong, wrong], "dtype_mismatch", f"lhs must have {words}, found {wrong}")
    c.refuse("floats", ["f32[2]", "f32[2]"], "dtype_mismatch", f"lhs must have {words}, found f32[2]")
    c.refuse("dtypes", [f"{dt}[2]", "f64[2]"], "dtype_mismatch",
             f"inputs must have one dtype, found {dt}[2] and f64[2]")
    c.refuse("shapes", [f"{dt}[2,3]", f"{dt}[2]"], "shape_mismatch",
             f"shapes do not broadcast: {dt}[2,3] and {dt}[2]")
    c.write()


@generator("logical_not", "bitwise_not")
def inverse(op):
    c = Cases(op)
    dtypes = ("bool",) if op == "logical_not" else INTS
    for dt in dtypes:
        x = lit(dt, [0, 1] if dt == "bool" else int_limits(dt))
        c.run(dt, [x], np.invert(x.a))
    dt = dtypes[0]
    for name, x in [("scalar", lit(dt, 1)), ("empty", lit(dt, [], (2, 0))), ("long", rnd(dt, (67,), 1, 0.0, 9.0)),
                    ("rank8", rnd(dt, (1, 2, 1, 3, 1, 1, 2, 1), 2, 0.0, 9.0))]:
        c.run(name, [x], np.invert(x.a))
    words = "dtype bool" if dt == "bool" else "an integer dtype"
    wrong = "i32[3]" if dt == "bool" else "bool[3]"
    c.refuse("other_dtype", [wrong], "dtype_mismatch", f"input must have {words}, found {wrong}")
    c.refuse("floats", ["f32[3]"], "dtype_mismatch", f"input must have {words}, found f32[3]")
    c.write()


@generator("is_nan", "is_inf")
def classify(op):
    c = Cases(op)

    def run(name, x, attrs="", positive=True, negative=True):
        y = np.isnan(x.w) if op == "is_nan" else np.isinf(x.w) & np.where(x.w > 0, positive, negative)
        c.run(name, [x], Tensor("bool", y), attrs)

    for dt in ("f32", "f64", "f16", "bf16", "f8e5m2"):
        run(dt, lit(dt, EDGES[:7] + [0.5, 3.0]))
    run("f8e4m3fn", lit("f8e4m3fn", EDGES[:5] + [448.0, -448.0]))
    c.run("nan_of_any_bits", ["f32[3] dense(0xffc12345, 0x7f800001, 0x7f7fffff)"],
          Tensor("bool", np.array([op == "is_nan"] * 2 + [False])))
    if op == "is_inf":
        edges = lit("f32", EDGES)
        run("positive", edges, "detect_negative=false", negative=False)
        run("negative", edges, "detect_positive=false", positive=False)
        run("neither", edges, "detect_negative=false, detect_positive=false", False, False)
    run("scalar", lit("f32", -np.inf))
    run("empty", lit("f32", [], (0, 2)))
    run("long", rnd("f32", (67,), 1))
    run("rank8", rnd("f32", (1, 2, 1, 3, 1, 1, 2, 1), 2))
    c.refuse("integers", ["i32[3]"], "dtype_mismatch", "input must have a float dtype, found i32[3]")
    c.refuse("bools", ["bool[3]"], "dtype_mismatch", "input must have a float dtype, found bool[3]")
    c.write()


def bits_of(dt):
    """Of its value: types below a byte take a whole one in memory."""
    narrow = {"i2": 2, "u2": 2, "i4": 4, "u4": 4, "f4e2m1": 4}
    return narrow.get(dt) or np.dtype(NUMPY[dt]).itemsize * 8


@generator("bitcast")
def bitcast(op):
    c = Cases(op)

    def run(name, x, to):
        if to == "bool":
            y = x.a.view(np.uint8) != 0
        else:
            y = x.a.view(NUMPY[to])
        c.run(name, [x], Tensor(to, y), f"to={to}")

    groups = {}
    for dt in NUMPY:
        groups.setdefault(bits_of(dt), []).append(dt)
    for bits, dtypes in groups.items():
        for dt in dtypes:
            if bits <= 8 and dt != "bool":
                codes = range(2 ** bits) if bits < 8 else [0, 1, 7, 8, 60, *range(119, 130), 188, *range(247, 256)]
                a = np.array(codes, np.uint8).view(NUMPY[dt])
                # In the file there is one NaN only.
                x = Tensor(dt, np.where(a.astype(np.float64) != a.astype(np.float64), rounded(NAN, dt), a))
            elif is_float(dt):
                x = lit(dt, EDGES[:7] + [0.001, -3.0])
            else:
                x = lit(dt, [0, 1] if dt == "bool" else int_limits(dt))
            for to in dtypes:
                run(f"{dt}_to_{to}", x, to)
    for dt, to, values, canonical in (("f32", "u32", "0xffc12345, 0x7f800001", [0x7FC00000] * 2),
                                      ("f16", "i16", "0xfe01, 0x7c01", [0x7E00] * 2),
                                      ("f8e4m3fn", "u8", "0xff, 0x7f", [0x7F] * 2)):
        c.run(f"{dt}_nan_is_canonical", [f"{dt}[2] dense({values})"], lit(to, canonical), f"to={to}")
    run("scalar", lit("f32", -1.5), "i32")
    run("empty", lit("f32", [], (0, 2)), "u32")
    run("rank8", rnd("f32", (1, 2, 1, 3, 1, 1, 2, 1), 1), "i32")
    c.refuse("wider", ["f32[2]"], "dtype_mismatch", "f32[2] and f64 differ in size", "to=f64")
    c.refuse("bits", ["u8[2]"], "dtype_mismatch", "u8[2] and u4 differ in size", "to=u4")
    c.refuse("narrower", ["i64[2]"], "dtype_mismatch", "i64[2] and i32 differ in size", "to=i32")
    c.write()
