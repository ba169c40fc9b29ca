"""Cases of activations, with and without attributes."""

from functools import partial

import numpy as np

from cases import decimals
from cases.elementwise import EDGES, int_limits, maximum, minimum, TINY
from cases.files import Cases, generator, lit, rnd
from cases.numerics import apply, INF, NAN, rounded

NARROW_VALUES = EDGES[:5] + [0.001, 1.5, -3.0, 0.3, 7.0, -0.07]


def attr_text(attrs):
    return ", ".join(f"{name}={value!r}" for name, value in sorted(attrs.items()))


def inputs(lo=-6.0, hi=6.0):
    """A name and a tensor for each kind of float argument."""
    yield "f32_edges", lit("f32", EDGES + [1e-4, -1e-4, -20.0, -90.0, -110.0, 20.0, 90.0])
    yield "f32_values", rnd("f32", (67,), 1, lo, hi)
    yield "f32_scalar", lit("f32", -0.75)
    yield "f32_empty", lit("f32", [], (2, 0, 3))
    yield "f32_rank8", rnd("f32", (1, 2, 1, 3, 1, 1, 2, 1), 2, lo, hi)
    yield "f64_edges", lit("f64", EDGES[:7] + [1e-310, 1e300, -1e300, 1e-17, -1e-17])
    yield "f64_values", rnd("f64", (3, 7), 3, lo, hi)
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        yield dt, lit(dt, NARROW_VALUES)


def refuse_non_floats(c):
    c.refuse("integers", ["i32[3]"], "dtype_mismatch", "input must have a float dtype, found i32[3]")
    c.refuse("bools", ["bool[3]"], "dtype_mismatch", "input must have a float dtype, found bool[3]")


# By an exact function: the function, attributes to try besides the defaults, ulps allowed in f32 and f64.
EXACT = {
    "softplus": (decimals.softplus_exact, {}, [], (1, 1)),
    "mish": (decimals.mish_exact, {}, [], (2, 2)),
    "swish": (decimals.swish_exact, {"alpha": 1.0}, [{"alpha": 1.75}, {"alpha": -0.5}], (3, 3)),
    "elu": (decimals.elu_exact, {"alpha": 1.0}, [{"alpha": 1.75}, {"alpha": -0.5}], (1, 1)),
    "selu": (decimals.elu_exact, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
             [{"alpha": 0.5, "gamma": 1.25}], (2, 1)),
    "celu": (decimals.celu_exact, {"alpha": 1.0}, [{"alpha": 1.75}, {"alpha": 0.25}], (1, 1)),
}


@generator(*EXACT)
def exact(op):
    function, defaults, others, (ulp32, ulp64) = EXACT[op]
    c = Cases(op, "Measured against decimals with 8,000 arguments in [-12, 12] (f64: 4,000) and the default attributes:\n"
                  f"at most {ulp32} ulp in f32, {ulp64} in f64. Where exp(x) is subnormal the error is absolute.")
    for name, x in inputs():
        tol = ulp64 if x.dt == "f64" else ulp32 if x.dt == "f32" else 1
        tiny = " abs 1e-42" if x.dt == "f32" else ""
        c.run(name, [x], apply(partial(function, **defaults), x.a, x.dt), tol=f"ulp {tol}{tiny}")
    for i, attrs in enumerate(others):
        for dt, tol in (("f32", ulp32), ("f64", ulp64)):
            x = lit(dt, EDGES[:7] + np.linspace(-9.0, 9.0, 31).tolist())
            # Rounding alpha·x costs half an ulp of the result for each power of e in it.
            tol += 8 if op == "swish" else 1
            c.run(f"{dt}_attributes_{i}", [x], apply(partial(function, **attrs), x.a, dt), attr_text(attrs),
                  f"ulp {tol}")
    refuse_non_floats(c)
    c.write()


def hard_sigmoid(x, alpha, beta):
    t = x.dtype.type
    return maximum(np.zeros_like(x), minimum(np.ones_like(x), x * t(alpha) + t(beta)))


def shrink(x, bias, lambd):
    t = x.dtype.type
    return np.where(x < t(-lambd), x + t(bias), np.where(x > t(lambd), x - t(bias), t(0)))


# By plain arithmetic in the contract's order, exact to the bit; attributes as above.
ARITHMETIC = {
    "softsign": (lambda x: x / (np.abs(x) + x.dtype.type(1)), {}, []),
    "hard_sigmoid": (hard_sigmoid, {"alpha": 0.2, "beta": 0.5},
                     [{"alpha": 0.5, "beta": 0.6}, {"alpha": -1.0, "beta": 0.0}]),
    "hard_swish": (lambda x: x * hard_sigmoid(x, 1.0 / 6.0, 0.5), {}, []),
    "leaky_relu": (lambda x, alpha: np.where(x < 0, x * x.dtype.type(alpha), x), {"alpha": 0.01},
                   [{"alpha": 0.3}, {"alpha": -2.0}]),
    "thresholded_relu": (lambda x, alpha: np.where(x > x.dtype.type(alpha), x, x.dtype.type(0)), {"alpha": 1.0},
                         [{"alpha": 0.1}, {"alpha": -2.5}]),
    "shrink": (shrink, {"bias": 0.0, "lambd": 0.5}, [{"bias": 1.5, "lambd": 1.5}, {"bias": 0.1, "lambd": 0.2}]),
}


@generator(*ARITHMETIC)
def arithmetic(op):
    function, defaults, others = ARITHMETIC[op]
    c = Cases(op)
    for name, x in inputs():
        c.run(name, [x], rounded(function(x.w, **defaults), x.dt))
    for i, attrs in enumerate(others):
        for dt in ("f32", "f64", "f16", "bf16"):
            x = lit(dt, EDGES[:7] + np.linspace(-9.0, 9.0, 31).tolist())
            c.run(f"{dt}_attributes_{i}", [x], rounded(function(x.w, **attrs), dt), attr_text(attrs))
    if op != "shrink":
        refuse_non_floats(c)
    else:
        for dt in ("i8", "u8", "i32", "i64", "u64"):
            x = lit(dt, int_limits(dt) + [3, 4])
            below = x.a < -2 if dt[0] == "i" else np.zeros(x.a.shape, bool)
            one = x.a.dtype.type(1)
            y = np.where(below, x.a + one, np.where(x.a > 2, x.a - one, x.a - x.a))
            c.run(dt, [x], y, "bias=1.0, lambd=2.0")
        c.refuse("bools", ["bool[3]"], "dtype_mismatch", "input must have a float or integer dtype, found bool[3]")
    c.write()


@generator("prelu")
def prelu(op):
    c = Cases(op)

    def run(name, x, slope):
        y = np.where(x.w < 0, slope.w * x.w, x.w)
        c.run(name, [x, slope], rounded(y, x.dt))

    run("f32_edges", lit("f32", EDGES), lit("f32", 0.25))
    run("f32_special_slopes", lit("f32", [-1.0, -INF, 1.0, -TINY]), lit("f32", [NAN, 0.0, INF, 0.5]))
    run("f32_same_shape", rnd("f32", (67,), 1), rnd("f32", (67,), 2))
    run("f32_channels", rnd("f32", (2, 3, 4, 5), 3), rnd("f32", (3, 1, 1), 4))
    run("f32_row", rnd("f32", (3, 5), 5), rnd("f32", (5,), 6))
    run("f32_scalar", lit("f32", -0.5), lit("f32", 3.0))
    run("f32_empty", lit("f32", [], (0, 3)), rnd("f32", (3,), 7))
    run("f32_rank8", rnd("f32", (2, 1, 1, 2, 1, 3, 1, 2), 8), rnd("f32", (3, 1, 1), 9))
    for dt in ("f64", "f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (3, 7), 10), rnd(dt, (7,), 11))
    for dt in ("i8", "u8", "i32", "i64", "u32", "u64"):
        x = lit(dt, int_limits(dt))
        run(dt, x, lit(dt, 3))
    c.refuse("bools", ["bool[2]", "bool[2]"], "dtype_mismatch",
             "lhs must have a float or integer dtype, found bool[2]")
    c.refuse("dtypes", ["f32[2]", "f64[2]"], "dtype_mismatch", "inputs must have one dtype, found f32[2] and f64[2]")
    c.refuse("shapes", ["f32[2,3]", "f32[2]"], "shape_mismatch", "shapes do not broadcast: f32[2,3] and f32[2]")
    c.refuse("slope_larger", ["f32[3]", "f32[2,3]"], "shape_mismatch",
             "the slope f32[2,3] does not broadcast to x f32[3]")
    c.write()


@generator("clip")
def clip(op):
    c = Cases(op)

    def run(name, x, lo, hi):
        lo, hi = lit(x.dt, lo), lit(x.dt, hi)
        c.run(name, [x, lo, hi], rounded(minimum(maximum(x.w, lo.w), hi.w), x.dt))

    edges = lit("f32", EDGES)
    run("f32_edges", edges, -1.5, 2.0)
    run("f32_zeros", edges, -0.0, 0.0)
    run("f32_no_bounds", edges, -INF, INF)
    run("f32_crossed_bounds", edges, 2.0, 1.0)
    run("f32_nan_bound", edges, NAN, 1.0)
    run("f32_values", rnd("f32", (67,), 1), -0.5, 1.25)
    run("f32_scalar", lit("f32", 3.0), 0.0, 1.0)
    run("f32_empty", lit("f32", [], (0, 3)), 0.0, 1.0)
    run("f32_rank8", rnd("f32", (2, 1, 1, 2, 1, 3, 1, 2), 2), -1.0, 1.0)
    for dt in ("f64", "f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (3, 7), 3), -0.75, 1.0)
    for dt in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
        run(dt, lit(dt, int_limits(dt)), 1, 99)
    c.refuse("bools", ["bool[2]", "bool[]", "bool[]"], "dtype_mismatch",
             "x must have a float or integer dtype, found bool[2]")
    c.refuse("lo_dtype", ["f32[2]", "f64[]", "f32[]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2] and f64[]")
    c.refuse("hi_dtype", ["f32[2]", "f32[]", "i32[]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2] and i32[]")
    c.refuse("lo_rank", ["f32[2]", "f32[1]", "f32[]"], "rank_mismatch", "lo must have rank 0, found f32[1]")
    c.refuse("hi_rank", ["f32[2]", "f32[]", "f32[2]"], "rank_mismatch", "hi must have rank 0, found f32[2]")
    c.write()


@generator("sign")
def sign(op):
    c = Cases(op)
    for name, x in inputs():
        y = np.where(np.isnan(x.w), x.w, (x.w > 0).astype(x.w.dtype) - (x.w < 0).astype(x.w.dtype))
        c.run(name, [x], rounded(y, x.dt))
    for dt in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
        x = lit(dt, int_limits(dt))
        c.run(dt, [x], np.sign(x.a))
    c.refuse("bools", ["bool[3]"], "dtype_mismatch", "input must have a float or integer dtype, found bool[3]")
    c.write()
