"""Cases of elementwise ops."""

import ml_dtypes
import numpy as np

from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import (INF, NAN, NARROW, NUMPY, apply, erf_exact, exp_exact, gelu_exact, gelu_tanh_exact, is_float,
                            log_exact, rounded, sigmoid_exact, tanh_exact)

TINY = float.fromhex("0x1p-149")
EDGES = [0.0, -0.0, 1.0, -1.0, NAN, INF, -INF, TINY, -TINY, float.fromhex("0x1p-126"), -float.fromhex("0x1p-126"),
         float.fromhex("0x1.fffffep127"), -float.fromhex("0x1.fffffep127"), 0.5, -2.0, 3.0]
# Decimals' function, range of random arguments, edges besides EDGES, ulps allowed in f32 and f64.
FUNCTIONS = {
    "sqrt": (lambda x: float(np.sqrt(x)), 0.0, 9.0, [2.0, 1e-30], (0, 0)),
    "exp": (exp_exact, -9.0, 9.0, [88.7228394, 88.8, -87.4, -100.0, -103.9, -104.5, 1e-9], (1, 2)),
    "log": (log_exact, 0.0, 20.0, [0.99999994, 1.0000001, 1e-40, 2.7182817], (1, 2)),
    "tanh": (tanh_exact, -6.0, 6.0, [1e-4, -0.02, 9.0, -10.0, 20.0], (1, 2)),
    "erf": (erf_exact, -4.5, 4.5, [1e-9, 0.84375, -1.25, 3.9, -6.0], (1, 2)),
    "sigmoid": (sigmoid_exact, -12.0, 12.0, [-80.0, -100.0, -104.0, 17.0, 1e-7, -4.15729809], (2, 2)),
    "gelu": (gelu_exact, -5.0, 5.0, [-9.5, 9.5, 1e-6], (None, None)),
}


def ulp(n):
    return f"ulp {n}" if n else ""


@generator(*(op for op in FUNCTIONS if op != "gelu"))
def functions(op):
    function, lo, hi, more, (ulp32, ulp64) = FUNCTIONS[op]
    c = Cases(op)
    for name, x in [("f32_edges", lit("f32", EDGES + more)), ("f32_values", rnd("f32", (67,), 1, lo, hi)),
                    ("f32_scalar", lit("f32", 0.75)), ("f32_empty", lit("f32", [], (2, 0, 3))),
                    ("f32_rank8", rnd("f32", (1, 2, 1, 3, 1, 1, 2, 1), 2, lo, hi))]:
        c.run(name, [x], apply(function, x.a, "f32"), tol=ulp(ulp32))
    for name, x in [("f64_edges", lit("f64", EDGES[:7] + [1e-310, 1e300, -1e300, 1e-17])),
                    ("f64_values", rnd("f64", (3, 7), 3, lo, hi))]:
        c.run(name, [x], apply(function, x.a, "f64"), tol=ulp(ulp64))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        x = lit(dt, EDGES[:5] + ([INF, -INF] if dt != "f8e4m3fn" else []) + [0.001, 1.5, -3.0, 0.3, 7.0, -0.07])
        c.run(f"{dt}_values", [x], apply(function, x.a, dt), tol=ulp(min(ulp32, 1)))
    c.refuse("integers", ["i32[3]"], "dtype_mismatch", "input must have a float dtype, found i32[3]")
    c.refuse("bools", ["bool[3]"], "dtype_mismatch", "input must have a float dtype, found bool[3]")
    c.write()


@generator("gelu")
def gelu(op):
    c = Cases(op, "Measured with 200,000 arguments in [-12, 12] against long double: at most 1.8 ulp for x > 0,\n"
                  "an absolute error of 9.3e-8 (f64: 1.8e-16) for x < 0, where 1 + erf(x) cancels.\n"
                  "gelu(-inf) is -inf * 0: NaN.")
    _, lo, hi, more, _ = FUNCTIONS[op]
    for mode, function in (("none", gelu_exact), ("tanh", gelu_tanh_exact)):
        attrs = f'approximate="{mode}"'
        x = lit("f32", EDGES[:7] + more + [0.5, -2.0, 3.0, TINY])
        c.run(f"{mode}_f32_edges", [x], apply(function, x.a, "f32"), attrs, "ulp 2 abs 1e-7")
        x = rnd("f32", (67,), 4, lo, hi)
        c.run(f"{mode}_f32_values", [x], apply(function, x.a, "f32"), attrs, "ulp 2 abs 1e-7")
        x = rnd("f64", (2, 9), 5, lo, hi)
        c.run(f"{mode}_f64_values", [x], apply(function, x.a, "f64"), attrs, "ulp 2 abs 2e-16")
        for dt in ("f16", "bf16"):
            x = rnd(dt, (19,), 6, lo, hi)
            c.run(f"{mode}_{dt}_values", [x], apply(function, x.a, dt), attrs, "ulp 1 abs 1e-7")
    x = lit("f32", [1.0, -1.0])
    c.run("default_is_none", [x], apply(gelu_exact, x.a, "f32"), tol="ulp 2 abs 1e-7")
    c.run("scalar", [lit("f32", -0.3)], apply(gelu_exact, lit("f32", -0.3).a, "f32"), tol="ulp 2 abs 1e-7")
    c.run("empty", [lit("f32", [], (0,))], lit("f32", [], (0,)))
    c.refuse("bad_mode", ["f32[3]"], "invalid_argument",
             'approximate must be \\"none\\" or \\"tanh\\", found \\"fast\\"', 'approximate="fast"')
    c.refuse("integers", ["i32[3]"], "dtype_mismatch", "input must have a float dtype, found i32[3]")
    c.write()


def int_limits(dt):
    info = np.iinfo(NUMPY[dt])
    return [info.min, info.max, info.min + 1, 0, 1, 2, 100, info.max - 1]


@generator("neg", "abs", "relu")
def signs(op):
    function = {"neg": lambda x: -x, "abs": np.abs, "relu": lambda x: maximum(x, np.zeros_like(x))}[op]
    c = Cases(op)
    for name, x in [("f32_edges", lit("f32", EDGES)), ("f32_values", rnd("f32", (37,), 1)),
                    ("f32_scalar", lit("f32", -0.25)), ("f32_empty", lit("f32", [], (0, 4))),
                    ("f32_rank8", rnd("f32", (2, 1, 1, 2, 1, 3, 1, 1), 2)), ("f64_edges", lit("f64", EDGES[:9])),
                    ("f16", lit("f16", EDGES[:7] + [1e-7, 65504.0])), ("bf16", lit("bf16", EDGES[:9])),
                    ("f8e4m3fn", lit("f8e4m3fn", [0.0, -0.0, NAN, 448.0, -448.0, -1.5])),
                    ("f8e5m2", lit("f8e5m2", [0.0, -0.0, NAN, INF, -INF, -1.5]))]:
        c.run(name, [x], rounded(function(x.w), x.dt))
    for dt in ("i8", "i32", "i64") + (("u8", "u64") if op == "abs" else ()):
        x = lit(dt, int_limits(dt))
        c.run(dt, [x], function(x.a))
    if op != "abs":
        c.refuse("unsigned", ["u8[3]"], "dtype_mismatch",
                 "input must have a float or signed integer dtype, found u8[3]")
    words = "a float or integer dtype" if op == "abs" else "a float or signed integer dtype"
    c.refuse("bools", ["bool[3]"], "dtype_mismatch", f"input must have {words}, found bool[3]")
    c.write()


def maximum(a, b):
    """IEEE maximum: NaN wins, -0 < +0."""
    y = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), y) if y.dtype.kind == "f" else y


def minimum(a, b):
    y = np.minimum(a, b)
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), y) if y.dtype.kind == "f" else y


def divide(a, b):
    """Integers truncate, x / 0 = 0, MIN / -1 = MIN."""
    if a.dtype.kind == "f":
        return a / b
    def one(x, y):
        return 0 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)
    bits = a.dtype.itemsize * 8
    values = [one(int(x), int(y)) % 2 ** bits for x, y in np.broadcast(a, b)]
    unsigned = np.array(values, np.dtype(f"u{bits // 8}")).reshape(np.broadcast_shapes(a.shape, b.shape))
    return unsigned.view(a.dtype)


ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": divide, "min": minimum, "max": maximum}
COMPARISONS = {"equal": np.equal, "less": np.less}


@generator(*ARITHMETIC, *COMPARISONS)
def binary(op):
    function = ARITHMETIC.get(op) or COMPARISONS[op]
    c = Cases(op)

    def run(name, a, b):
        y = function(a.w, b.w)
        c.run(name, [a, b], Tensor("bool", y) if op in COMPARISONS else Tensor(a.dt, rounded(y, a.dt)))

    edges = lit("f32", EDGES)
    run("f32_edges", Tensor("f32", edges.a.reshape(-1, 1)), edges)
    run("f32_values", rnd("f32", (67,), 1), rnd("f32", (67,), 2))
    run("f32_scalars", lit("f32", 1.5), lit("f32", -0.1))
    run("f32_scalar_and_vector", lit("f32", 1.5), rnd("f32", (5,), 3))
    run("f32_row", rnd("f32", (3, 5), 4), rnd("f32", (5,), 5))
    run("f32_column", rnd("f32", (3, 5), 6), rnd("f32", (3, 1), 7))
    run("f32_outer", rnd("f32", (4, 1), 8), rnd("f32", (1, 18), 9))
    run("f32_middle", rnd("f32", (2, 3, 4), 10), rnd("f32", (2, 1, 4), 11))
    run("f32_rank8", rnd("f32", (2, 1, 2, 1, 1, 2, 1, 3), 12), rnd("f32", (3, 1, 2, 1, 2, 1, 3), 13))
    run("f32_empty", lit("f32", [], (0, 3)), rnd("f32", (1, 3), 14))
    for dt in ("f64", "f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(f"{dt}_values", rnd(dt, (3, 7), 15, -9.0, 9.0), rnd(dt, (7,), 16, -9.0, 9.0))
    run("f16_overflow", lit("f16", [65504.0, -65504.0, 6e-8, 1.0]), lit("f16", [65504.0, 32.0, 6e-8, 2049.0]))
    for dt in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
        limits = int_limits(dt) + ([-1, -7] if dt.startswith("i") else [7, 3])
        x = lit(dt, limits)
        run(f"{dt}_limits", Tensor(dt, x.a.reshape(-1, 1)), x)
    if op in ("equal", "not_equal"):
        run("bools", lit("bool", [0, 0, 1, 1]), lit("bool", [0, 1, 0, 1]))
    else:
        c.refuse("bools", ["bool[2]", "bool[2]"], "dtype_mismatch",
                 "lhs must have a float or integer dtype, found bool[2]")
    c.refuse("dtypes", ["f32[2]", "f64[2]"], "dtype_mismatch", "inputs must have one dtype, found f32[2] and f64[2]")
    c.refuse("shapes", ["f32[2,3]", "f32[2]"], "shape_mismatch", "shapes do not broadcast: f32[2,3] and f32[2]")
    c.write()


@generator("where")
def where(op):
    c = Cases(op)

    def run(name, cond, a, b):
        c.run(name, [cond, a, b], Tensor(a.dt, np.where(cond.a, a.a, b.a)))

    run("f32", rnd("bool", (37,), 1), rnd("f32", (37,), 2), rnd("f32", (37,), 3))
    run("f32_edges", lit("bool", [1, 0] * 8), lit("f32", EDGES), lit("f32", EDGES[::-1]))
    run("broadcast_all", rnd("bool", (3, 1, 1), 4), rnd("f32", (4, 1), 5), rnd("f32", (5,), 6))
    run("scalar_condition", lit("bool", True), rnd("f32", (2, 3), 7), lit("f32", 0.0))
    run("scalars", lit("bool", False), lit("f64", 1.0), lit("f64", 2.0))
    run("empty", rnd("bool", (0, 2), 8), lit("f32", [], (0, 2)), lit("f32", 1.0))
    for dt in NUMPY:
        run(f"{dt}_values", rnd("bool", (9,), 9), rnd(dt, (9,), 10, 0.0, 9.0), rnd(dt, (9,), 11, 0.0, 9.0))
    c.refuse("condition", ["f32[2]", "f32[2]", "f32[2]"], "dtype_mismatch",
             "the condition must have dtype bool, found f32[2]")
    c.refuse("dtypes", ["bool[2]", "f32[2]", "i32[2]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2] and i32[2]")
    c.refuse("shapes", ["bool[2]", "f32[2]", "f32[3]"], "shape_mismatch",
             "shapes do not broadcast: f32[2] and f32[3]")
    c.refuse("condition_shape", ["bool[3]", "f32[2]", "f32[1]"], "shape_mismatch",
             "the condition bool[3] does not broadcast with the values' shape [2]")
    c.write()


def cast_exact(x, to, saturate=True):
    """By the rules of docs/NUMERICS.md, in Python's own integers."""
    if to == "bool":
        return x.a.astype(np.float64) != 0
    if to in ("f8e4m3fn", "f8e5m2") and saturate and x.dt != to:
        exact = cast_exact(x, to, False).astype(np.float64)
        overflows = ~np.isfinite(exact) & ~np.isnan(x.a.astype(np.float64))
        return rounded(np.where(overflows, np.copysign(NARROW[to][2], x.a.astype(np.float64)), exact), to)
    if is_float(to):
        if is_float(x.dt):
            return rounded(x.a.astype(np.float64), to)
        # Integers of 64 bits do not fit f64: all bits below the guard are folded into one before rounding.
        values = [int(v) for v in x.a.ravel()]
        exact = [float(v) if to == "f64" else odd_f64(v) for v in values]
        return rounded(np.array(exact).reshape(x.a.shape), to)
    info = ml_dtypes.iinfo(NUMPY[to])
    if is_float(x.dt):
        def saturated(v):
            if np.isnan(v):
                return 0
            return info.max if v >= info.max else info.min if v <= info.min else int(v)
        values = [saturated(float(v)) for v in x.a.ravel()]
    else:
        span = int(info.max) - int(info.min) + 1
        values = [(int(v) - int(info.min)) % span + int(info.min) for v in x.a.ravel()]
    return np.array(values, NUMPY[to]).reshape(x.a.shape)


def to_e8m0(x, mode, saturate):
    """ONNX's round_mode and saturate; negative numbers become NaN."""
    fraction, exponent = np.frexp(np.where(np.isfinite(x) & (x > 0), x, 1.0))  # x = 2f * 2^(e-1), 2f in [1,2)
    up = {"up": fraction > 0.5, "down": False, "nearest": fraction >= 0.75}[mode]
    e = exponent - 1 + up
    y = np.ldexp(1.0, np.clip(e, -127, 127))
    outside = (x < 2.0 ** -127) | (e > 127) | np.isinf(x)
    limit = np.where(x >= 1, 2.0 ** 127, 2.0 ** -127) if saturate else NAN
    y = np.where(outside, limit, y)
    return np.where(np.isnan(x) | (x < 0), NAN, y).astype(NUMPY["f8e8m0"])


def odd_f64(v):
    """The f64 towards zero, with its last bit set when that loses something."""
    shift = max(abs(v).bit_length() - 53, 0)
    kept = abs(v) >> shift
    kept |= 1 if (kept << shift) != abs(v) else 0
    return float(kept << shift) * (-1 if v < 0 else 1)


@generator("cast")
def cast(op):
    c = Cases(op)
    halves = [0.5, -0.5, 1.5, 2.5, -2.5, 127.5, 128.0, -129.0, 255.9, 256.0, 3e9, -3e9, 1e19, -1e19, 2e19, 1e-8]
    f64 = halves + [1.0 + 2 ** -11 + 2 ** -40, 1.0 + 2 ** -24 + 2 ** -50]  # a detour over f32 rounds these twice
    f64 += [65519.999, 65520.0, 464.0, 465.0, 61440.0, 1e39]  # around what f16, fp8 and f32 can hold
    sources = [("f32", EDGES + halves), ("f64", EDGES[:7] + f64), ("f16", EDGES[:7] + halves[:10] + [6e-8]),
               ("bf16", EDGES[:7] + halves), ("f8e4m3fn", EDGES[:5] + [448.0, -0.002, 1.75]),
               ("f8e5m2", EDGES[:7] + [57344.0, 1.5e-5])]
    for dt in ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
        sources.append((dt, [0, 1] if dt == "bool" else int_limits(dt)))
        if dt in ("i64", "u64"):
            sources[-1][1].extend([2 ** 53 + 1, 2 ** 24 + 1, 2 ** 60 + 2 ** 36 + 1])
    narrow = ("i2", "i4", "u2", "u4", "f4e2m1", "f8e8m0", "f8e4m3fnuz", "f8e5m2fnuz")
    for dt, values in sources:
        for to in [t for t in NUMPY if t not in narrow]:
            if {dt, to} & {"i16", "u16", "u32"} and not {dt, to} & {"bool", "i64", "f32"}:
                continue
            x = lit(dt, values)
            c.run(f"{dt}_to_{to}", [x], Tensor(to, cast_exact(x, to)), f"to={to}")
            if to in ("f8e4m3fn", "f8e5m2"):
                c.run(f"{dt}_to_{to}_not_saturated", [x], Tensor(to, cast_exact(x, to, False)),
                      f"saturate=false, to={to}")
    edges = EDGES[:7] + [0.25, 0.5, 0.75, 1.0, 1.5, -1.75, 2.5, 3.0, 5.0, -7.0, 7.9, -8.5, 15.9, 16.0, 240.0, -247.9,
                         248.0, 61439.0, 61440.0, 2.0 ** -127, 2.0 ** 127, -2.0 ** -17, 2.0 ** -11]
    for to in narrow:
        for x in [lit("f32", edges), lit("f64", edges + [2.0 ** -127 * (1 + 2 ** -50), 2.5 - 2 ** -50]),
                  lit("i64", int_limits("i64") + [7, 8, -8, -9, 15, 16, 247, 248, 2 ** 53 + 1]), lit("bool", [0, 1])]:
            c.run(f"{x.dt}_to_{to}", [x], Tensor(to, cast_exact(x, to, False)), f"saturate=false, to={to}")
    for dt in narrow:
        codes = np.arange(2 ** (2 if dt[1] == "2" else 4 if dt[1] == "4" else 8), dtype=np.uint8)
        x = Tensor(dt, codes.view(NUMPY[dt]))
        for to in ("bool", "i8", "f16", "f32") + narrow:
            if to != dt:
                c.run(f"{dt}_to_{to}", [x], Tensor(to, cast_exact(x, to, False)), f"saturate=false, to={to}")
    for to, largest in (("f8e4m3fn", 448.0), ("f8e5m2", 57344.0), ("f8e4m3fnuz", 240.0), ("f8e5m2fnuz", 57344.0)):
        for x in [lit("f32", edges), lit("f64", edges), lit("f16", edges[:25]), lit("i64", int_limits("i64") + [5])]:
            clamped = np.clip(x.a.astype(np.float64), -largest, largest)
            c.run(f"{x.dt}_saturates_{to}", [x], Tensor(to, rounded(clamped, to)), f"saturate=true, to={to}")
    for mode in ("up", "down", "nearest"):
        for saturate in (True, False):
            x = lit("f32", edges + [1.25, 6.0, 2.0 ** 126 * 1.5, 2.0 ** 127 * 1.5, 2.0 ** -127 * 1.5, 2.0 ** -128])
            text = str(saturate).lower()
            c.run(f"e8m0_{mode}_saturate_{text}", [x], Tensor("f8e8m0", to_e8m0(x.a.astype(np.float64), mode, saturate)),
                  f'round_mode="{mode}", saturate={text}, to=f8e8m0')
    c.refuse("round_mode", ["f32[2]"], "invalid_argument", "round_mode must be up, down or nearest, found 'even'",
             'round_mode="even", to=f8e8m0')
    for name, x in [("scalar", lit("f32", 2.5)), ("empty", lit("f32", [], (3, 0))), ("long", rnd("f32", (5, 19), 1))]:
        c.run(name, [x], Tensor("f16", cast_exact(x, "f16")), "to=f16")
    c.write()


@generator("identity")
def identity(op):
    c = Cases(op)
    for dt in NUMPY:
        x = rnd(dt, (2, 5), 1, 0.0, 9.0)
        c.run(dt, [x], x.a)
    x = lit("f32", [NAN, -0.0, TINY])
    c.run("nan_is_canonical_at_the_output", ["f32[3] dense(0xffc12345, -0.0, 1e-45)"], Tensor("f32", x.a))
    c.run("scalar", [lit("f32", 1.0)], lit("f32", 1.0).a)
    c.run("empty", [lit("f32", [], (0,))], lit("f32", [], (0,)).a)
    c.write()
