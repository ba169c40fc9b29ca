"""The arithmetic of docs/NUMERICS.md in numpy, and exact functions from decimals of 60 digits."""

from decimal import Decimal, getcontext
from fractions import Fraction

import ml_dtypes
import numpy as np

getcontext().prec = 60
np.seterr(all="ignore")
NAN, INF = float("nan"), float("inf")

NUMPY = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f64": np.float64, "i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "u2": ml_dtypes.uint2, "u4": ml_dtypes.uint4,
    "f4e2m1": ml_dtypes.float4_e2m1fn, "f8e8m0": ml_dtypes.float8_e8m0fnu,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
# Narrow floats: fraction bits, exponent of the smallest normal number, largest finite number, overflow.
NARROW = {
    "f8e4m3fn": (3, -6, 448.0, NAN), "f8e5m2": (2, -14, 57344.0, INF), "f16": (10, -14, 65504.0, INF),
    "bf16": (7, -126, float.fromhex("0x1.fep127"), INF), "f4e2m1": (1, 0, 6.0, 6.0),
    "f8e4m3fnuz": (3, -7, 240.0, NAN), "f8e5m2fnuz": (2, -15, 57344.0, NAN),
}
FLOATS = ("f4e2m1", "f8e8m0", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")


def is_float(dt):
    return dt in FLOATS


def wide(dt):
    """The numpy type arithmetic on `dt` is done in."""
    if dt in ("i2", "i4", "u2", "u4"):
        return np.int8 if dt[0] == "i" else np.uint8
    return np.float32 if dt in NARROW or dt == "f8e8m0" else NUMPY[dt]


def power_above(x):
    """The least 2^e >= x for -127 <= e <= 127, else NaN."""
    e = np.frexp(x)[1] - (np.frexp(x)[0] == 0.5)
    inside = (x >= 2.0 ** -127) & (x <= 2.0 ** 127)
    return np.where(inside, np.ldexp(1.0, np.where(inside, e, 0)), NAN)


def rounded(values, dt):
    """Values (of a type at least as wide) as elements of `dt`: one rounding, to nearest even."""
    values = np.asarray(values)
    if dt == "f8e8m0":
        return power_above(values.astype(np.float64)).astype(NUMPY[dt])
    if dt not in NARROW:
        return values.astype(NUMPY[dt])
    bits, least, largest, beyond = NARROW[dt]
    x = values.astype(np.float64)
    quantum = np.exp2(np.maximum(np.frexp(x)[1] - 1, least).astype(np.float64) - bits)
    y = np.where(np.isfinite(x), np.rint(x / quantum) * quantum, x)
    y = np.where(np.abs(y) > largest, np.copysign(beyond, y), y)
    return np.where(np.isnan(y), 6.0 if dt == "f4e2m1" else NAN, y).astype(NUMPY[dt])


def fma(a, b, c):
    """a*b + c with one rounding."""
    if a.dtype == np.float32:
        p = a.astype(np.float64) * b.astype(np.float64)  # exact
        s = p + c.astype(np.float64)
        t = s - p
        error = (p - (s - t)) + (c.astype(np.float64) - t)
        # Rounding the f64 sum to odd makes the second rounding, to f32, the only one that counts.
        inexact = np.isfinite(s) & (error != 0) & (s.view(np.int64) % 2 == 0)
        return np.where(inexact, np.nextafter(s, np.where(error > 0, INF, -INF)), s).astype(np.float32)
    if a.dtype == np.float64:
        return np.vectorize(fma_f64, otypes=[np.float64])(a, b, c)
    return a * b + c


def fma_f64(a, b, c):
    if not np.isfinite([a, b, c]).all():
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return float(exact) if exact != 0 else a * b + c


def chain(a, b, inside=None, segment=256):
    """The contraction over axis 0: fma chains from +0 over segments, joined in order; without b plain additions."""
    shape = np.broadcast_shapes(a.shape[1:], a.shape[1:] if b is None else b.shape[1:])
    total = np.zeros(shape, a.dtype)
    for begin in range(0, a.shape[0], segment):
        acc = np.zeros(shape, a.dtype)
        for k in range(begin, min(begin + segment, a.shape[0])):
            more = acc + a[k] if b is None else fma(*np.broadcast_arrays(a[k], b[k], acc))
            acc = more if inside is None else np.where(inside[k], more, acc)
        total = total + acc
    return total


def tree_sum(x, join=np.add, identity=0):
    """The canonical sum over axis 0 (or product, with multiply and 1)."""
    total = np.full(x.shape[1:], identity, x.dtype)
    if x.shape[0] > 1 << 20:
        for begin in range(0, x.shape[0], 1 << 20):
            total = join(total, tree_sum(x[begin:begin + (1 << 20)], join, identity))
        return total
    for begin in range(0, x.shape[0], 1024):
        lanes = np.full((64, *x.shape[1:]), identity, x.dtype)
        for i in range(begin, min(begin + 1024, x.shape[0])):
            lanes[i % 64] = join(lanes[i % 64], x[i])
        for half in (32, 16, 8, 4, 2, 1):
            lanes[:half] = join(lanes[:half], lanes[half:2 * half])
        total = join(total, lanes[0])
    return total


def near_f64(result, truth, scale=1e-5):
    """A guard against mistakes in the functions above; sums of numbers around 1 are expected."""
    both = np.isfinite(truth) & np.isfinite(result.astype(np.float64))
    assert np.all(np.abs(result.astype(np.float64) - truth)[both] <= scale * (1 + np.abs(truth[both]).max(initial=0)))
    return result


def exp_exact(x):
    if abs(x) > 800:
        return INF if x > 0 else 0.0
    return float(Decimal(x).exp())


def log_exact(x):
    if x < 0 or x == INF:
        return NAN if x < 0 else INF
    return -INF if x == 0 else float(Decimal(x).ln())


def tanh_decimal(x):
    e = (2 * x).exp()
    return (e - 1) / (e + 1)


def tanh_exact(x):
    if abs(x) > 50 or abs(x) < 1e-20:
        return float(np.copysign(1.0, x)) if abs(x) > 1 else x
    return float(tanh_decimal(Decimal(x)))


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def erf_decimal(x):
    term, total, n = x, x, 0
    while n < 400 and abs(term) > Decimal("1e-70") * abs(total):
        n += 1
        term = -term * x * x / n
        total += term / (2 * n + 1)
    return 2 * total / PI.sqrt()


def erf_exact(x):
    if abs(x) > 7 or x == 0:
        return float(np.copysign(1.0, x)) if x != 0 else x
    return float(erf_decimal(Decimal(x)))


def sigmoid_exact(x):
    if abs(x) > 800:
        return 1.0 if x > 0 else 0.0
    return float(1 / (1 + (-Decimal(x)).exp()))


def gelu_exact(x):
    if abs(x) == INF:
        return INF if x > 0 else NAN
    if abs(x) > 9:
        return x if x > 0 else -0.0
    d = Decimal(x)
    return float(d / 2 * (1 + erf_decimal(d / Decimal(2).sqrt()))) if x != 0 else x


def gelu_tanh_exact(x):
    if abs(x) == INF:
        return INF if x > 0 else NAN
    if abs(x) > 20:
        return x if x > 0 else -0.0
    d = Decimal(x)
    inner = (2 / PI).sqrt() * (d + Decimal("0.044715") * d ** 3)
    return float(d / 2 * (1 + tanh_decimal(inner))) if x != 0 else x


def apply(function, x, dt):
    """function on every element, rounded to the arithmetic type and then to dt."""
    y = [v if np.isnan(v) else function(v) for v in x.astype(np.float64).ravel().tolist()]
    return rounded(np.array(y, np.float64).astype(wide(dt)).reshape(x.shape), dt)
