"""Cases of pow and mod."""

import math

import numpy as np

from cases.decimals import pow_exact
from cases.elementwise import EDGES, int_limits
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import INF, is_float, NAN, NUMPY, rounded, wide


def wrapped(value, dt):
    info = np.iinfo(NUMPY[dt])
    return (value - int(info.min)) % 2 ** info.bits + int(info.min)


def integer_power(x, n, dt):
    """x**n wrapped, by Python's modular power; negative ones are 1 / x**-n without fraction, 0 for 0."""
    if n >= 0:
        return wrapped(pow(x, n, 2 ** 64), dt)
    return (1 if n % 2 == 0 else x) if abs(x) == 1 else 0


def power(a, b):
    """Element by element, as a tensor of a's dtype."""
    shape = np.broadcast_shapes(a.a.shape, b.a.shape)
    plain = [t.a.astype(np.float64) if is_float(t.dt) else t.a for t in (a, b)]
    values = []
    for x, y in np.broadcast(*plain):
        x, y = x.item(), y.item()
        if is_float(a.dt):
            unknown = (math.isnan(x) and y != 0) or (math.isnan(y) and x != 1)
            values.append(NAN if unknown else pow_exact(float(x), float(y)))
        elif not is_float(b.dt) or y == int(y):
            values.append(integer_power(x, int(y), a.dt))
        else:
            values.append(int(pow_exact(float(x), y)) if x >= 0 else 0)
    if is_float(a.dt):
        return Tensor(a.dt, rounded(np.array(values, np.float64).astype(wide(a.dt)).reshape(shape), a.dt))
    return Tensor(a.dt, np.array(values, NUMPY[a.dt]).reshape(shape))


# The exponents whose power is arithmetic of the type it is computed in, every bit of it.
SHORT = {
    "2": (2.0, lambda x: x * x),
    "3": (3.0, lambda x: x * x * x),
    "half": (0.5, lambda x: np.where(x == -INF, x.dtype.type(INF), np.sqrt(x) + x.dtype.type(0))),
    "minus_1": (-1.0, lambda x: x.dtype.type(1) / x),
    "minus_half": (-0.5, lambda x: np.where(x == -INF, x.dtype.type(0),
                                            x.dtype.type(1) / (np.sqrt(x) + x.dtype.type(0)))),
}


def short_powers(c):
    numbers = [2.0, 1e-30, 1e30, 0.1, 1.9999999, -0.7, 7e12, 1e-39, -3e-42]
    bases = {"f32": lit("f32", EDGES + numbers), "f64": lit("f64", EDGES + numbers + [1e-310, 1e160]),
             "f16": lit("f16", EDGES[:7] + [0.1, -0.7, 3.0, 6e-8, 65504.0])}
    for name, (exponent, formula) in SHORT.items():
        for dt, x in bases.items():
            y = Tensor(dt, rounded(formula(x.a.astype(wide(dt))), dt))
            c.run(f"{dt}_to_the_{name}", [x, lit(dt, exponent)], y)
    x = bases["f32"]
    columns = [formula(x.a) for _, formula in SHORT.values()]
    exponents = lit("f32", [exponent for exponent, _ in SHORT.values()])
    c.run("f32_short_powers_in_a_row", [Tensor("f32", x.a.reshape(-1, 1)), exponents],
          Tensor("f32", np.stack(columns, axis=1)))
    cubes = SHORT["3"][1](x.a.astype(np.float64)).astype(np.float32)
    c.run("f32_to_the_i64_3", [x, lit("i64", 3)], Tensor("f32", cubes))


@generator("pow")
def pows(op):
    c = Cases(op, "Powers of floats: at most 1 ulp in f32, 2 in f64, against decimals; those to the 2, 3, ½, -1 and -½\n"
                  "to the bit; integers are exact.")

    def run(name, a, b):
        tol = {"f32": "ulp 1", "f64": "ulp 2", "f16": "ulp 1", "bf16": "ulp 1"}.get(a.dt, "")
        c.run(name, [a, b], power(a, b), tol=tol)

    edges = EDGES[:7] + [0.5, -2.0, 3.0, -3.0, 2.5]
    x = lit("f32", edges)
    run("f32_edges", Tensor("f32", x.a.reshape(-1, 1)), x)
    run("f32_values", rnd("f32", (67,), 1, 0.0, 9.0), rnd("f32", (67,), 2, -9.0, 9.0))
    run("f32_limits", lit("f32", [2.0, 2.0, 1.0000001, 10.0, 10.0, 0.5]),
        lit("f32", [127.5, -149.0, 1e8, 38.5, 38.6, 149.0]))
    run("f32_scalars", lit("f32", 1.5), lit("f32", -0.1))
    run("f32_outer", rnd("f32", (4, 1), 3, 0.0, 4.0), rnd("f32", (1, 18), 4))
    run("f32_rank8", rnd("f32", (2, 1, 2, 1, 1, 2, 1, 3), 5, 0.0, 4.0), rnd("f32", (3, 1, 2, 1, 2, 1, 3), 6))
    run("f32_empty", lit("f32", [], (0, 3)), rnd("f32", (1, 3), 7))
    short_powers(c)
    x = lit("f64", edges)
    run("f64_edges", Tensor("f64", x.a.reshape(-1, 1)), x)
    run("f64_values", rnd("f64", (3, 7), 8, 0.0, 9.0), rnd("f64", (7,), 9, -9.0, 9.0))
    for dt in ("f16", "bf16"):
        run(f"{dt}_values", rnd(dt, (3, 7), 10, 0.0, 9.0), rnd(dt, (7,), 11, -3.0, 3.0))
    for dt in ("i8", "u16", "i32", "i64", "u64"):
        bases = int_limits(dt) + [3, 10] + ([-1, -2, -3] if dt[0] == "i" else [])
        powers = [0, 1, 2, 3, 7, 31, 63, 100] + ([-1, -2, -127] if dt[0] == "i" else [])
        run(f"{dt}_limits", Tensor(dt, lit(dt, bases).a.reshape(-1, 1)), lit(dt, powers))
    whole = lit("i64", [0, 1, 2, -3, 5, 2 ** 31 + 1])
    run("f32_to_i64", Tensor("f32", lit("f32", [-1.0, 2.0, -1.5, 0.0]).a.reshape(-1, 1)), whole)
    run("f32_to_i32", lit("f32", [-1.0, -1.0, 3.0, -2.0]), lit("i32", [2 ** 24 + 1, 2 ** 24, 4, 3]))
    run("f32_to_i8", lit("f32", [-1.0, 2.0, 3.0, 0.5]), lit("i8", [3, -4, 4, 7]))
    run("f32_to_u64", lit("f32", [2.0, -2.0]), lit("u64", [10, 3]))
    run("f32_to_f64", lit("f32", [2.0, 3.0]), lit("f64", [0.1, 2.0]))
    run("f64_to_f32", lit("f64", [2.0, 3.0]), lit("f32", [0.1, 2.0]))
    run("f16_to_i32", lit("f16", [2.0, -3.0, 4.0]), lit("i32", [3, 3, -2]))
    run("i32_to_f32", lit("i32", [1, 2, 3, -3, 0, 5, 10]), lit("f32", [4.0, 5.0, 6.0, 3.0, 2.0, -1.0, 0.5]))
    run("i32_to_i64", lit("i32", [1, 2, 3, -2]), lit("i64", [2 ** 40, 31, 20, 3]))
    run("i64_to_i32", lit("i64", [7, 2, 3, -2]), lit("i32", [22, 62, 39, 63]))
    run("i64_to_u64", lit("i64", [3, 2, -1]), lit("u64", [2 ** 64 - 1, 2 ** 63, 2 ** 64 - 1]))
    run("i64_to_f64", lit("i64", [3, 10, -7, 2]), lit("f64", [33.0, 18.0, 3.0, 0.5]))
    c.refuse("base", ["bool[2]", "f32[2]"], "dtype_mismatch",
             "the base must have a float or integer dtype, found bool[2]")
    c.refuse("exponent", ["f32[2]", "bool[2]"], "dtype_mismatch",
             "the exponent must have a float or integer dtype, found bool[2]")
    c.refuse("shapes", ["f32[2,3]", "i32[2]"], "shape_mismatch", "shapes do not broadcast: f32[2,3] and i32[2]")
    c.write()


def remainder(x, y, fmod):
    if y == 0:
        return 0
    return (abs(x) % abs(y)) * (-1 if x < 0 else 1) if fmod else x % y


@generator("mod")
def mod(op):
    c = Cases(op)

    def run(name, a, b, fmod):
        if is_float(a.dt):
            # C's fmod has no rounding in f64; the sum that gives it the divisor's sign has one.
            y = rounded((np.fmod if fmod else np.mod)(a.a.astype(np.float64), b.a.astype(np.float64)), a.dt)
        else:
            shape = np.broadcast_shapes(a.a.shape, b.a.shape)
            values = [remainder(int(x), int(y), fmod) for x, y in np.broadcast(a.a, b.a)]
            y = np.array(values, a.a.dtype).reshape(shape)
        c.run(name, [a, b], y, "fmod=true" if fmod else "")

    for dt in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
        x = lit(dt, int_limits(dt) + ([-1, -7, 5] if dt[0] == "i" else [7, 3, 5]))
        for fmod in (False, True):
            run(f"{dt}_limits" + ("_fmod" if fmod else ""), Tensor(dt, x.a.reshape(-1, 1)), x, fmod)
    x = lit("f32", EDGES + [1e30, -7.5, 1.1754944e-38, 0.1, 8388609.0])
    run("f32_edges", Tensor("f32", x.a.reshape(-1, 1)), x, True)
    run("f32_edges_floor", Tensor("f32", x.a.reshape(-1, 1)), x, False)
    x = lit("f64", EDGES[:7] + [1e300, -7.5, 5e-324, 1e-310, 2.2250738585072014e-308, 0.1, 9007199254740991.0, 3.0,
                                1e22])
    run("f64_edges", Tensor("f64", x.a.reshape(-1, 1)), x, True)
    run("f64_edges_floor", Tensor("f64", x.a.reshape(-1, 1)), x, False)
    run("f32_values", rnd("f32", (67,), 1, -99.0, 99.0), rnd("f32", (67,), 2, -9.0, 9.0), True)
    run("f64_values", rnd("f64", (3, 19), 3, -1e15, 1e15), rnd("f64", (19,), 4, -1.0, 1.0), True)
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (3, 7), 5, -99.0, 99.0), rnd(dt, (7,), 6, -9.0, 9.0), True)
        run(f"{dt}_floor", rnd(dt, (3, 7), 5, -99.0, 99.0), rnd(dt, (7,), 6, -9.0, 9.0), False)
    run("f32_scalars", lit("f32", -5.5), lit("f32", 2.0), True)
    run("i32_row", rnd("i32", (3, 5), 7, -99.0, 99.0), rnd("i32", (5,), 8, -9.0, 9.0), False)
    run("i32_rank8", rnd("i32", (2, 1, 2, 1, 1, 2, 1, 3), 9, -99.0, 99.0),
        rnd("i32", (3, 1, 2, 1, 2, 1, 3), 10, -9.0, 9.0), False)
    run("i32_empty", lit("i32", [], (0, 3)), lit("i32", [1, 2, 3]), False)
    c.refuse("bools", ["bool[2]", "bool[2]"], "dtype_mismatch",
             "lhs must have a float or integer dtype, found bool[2]")
    c.refuse("dtypes", ["i32[2]", "i64[2]"], "dtype_mismatch", "inputs must have one dtype, found i32[2] and i64[2]")
    c.refuse("shapes", ["i32[2,3]", "i32[2]"], "shape_mismatch", "shapes do not broadcast: i32[2,3] and i32[2]")
    c.write()
