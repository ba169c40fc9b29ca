"""Ops that compute each element by itself."""

from __future__ import annotations

import math

import torch

from ..builder import Value
from .table import FLOATS, TORCH_DTYPES, Call, op, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Floating-point functions: integers are converted first.
_FLOAT = """acos acosh asin asinh atan atanh cos cosh erf exp exp2 expm1 log log1p log2 reciprocal sigmoid sin sinh
sqrt tan tanh mish""".split()
# Those that keep integers as they are.
_ROUNDING = ["floor", "ceil", "trunc", "round"]


def _enter_functions() -> None:
    for name in _FLOAT:
        op(name)(lambda c, x, name=name: c.apply(name, c.cast(x, c.dtype)))
    for name in _ROUNDING:
        op(name)(lambda c, x, name=name: c.apply(name, x) if x.dtype in FLOATS else x)


_enter_functions()


@op("abs")
def _abs(c: Call, x: Value) -> Value:
    return x if x.dtype in ("bool", "u8") else c.apply("abs", x)


@op("neg")
def _neg(c: Call, x: Value) -> Value:
    return c.apply("sub", c.number(0, x.dtype), x) if x.dtype == "u8" else c.apply("neg", x)


@op("sign", "sgn")
def _sign(c: Call, x: Value) -> Value:
    if x.dtype == "bool":
        return x
    if x.dtype not in FLOATS:
        return c.apply("sign", x)
    return c.apply("where", c.apply("is_nan", x), c.number(0, x.dtype), c.apply("sign", x))


@op("log10")
def _log10(c: Call, x: Value) -> Value:
    return c.cast(c.apply("log2", c.cast(x, c.wide)) * math.log10(2), c.dtype)


@op("rsqrt")
def _rsqrt(c: Call, x: Value) -> Value:
    return c.cast(c.apply("reciprocal", c.apply("sqrt", c.cast(x, c.wide))), c.dtype)


@op("erfc")
def _erfc(c: Call, x: Value) -> Value:
    return c.cast(1 - c.apply("erf", c.cast(x, c.wide)), c.dtype)


@op("frac")
def _frac(c: Call, x: Value) -> Value:
    return x - c.apply("trunc", x)


@op("square")
def _square(c: Call, x: Value) -> Value:
    return _mul(c, x, x)


@op("deg2rad")
def _deg2rad(c: Call, x: Value) -> Value:
    return c.cast(c.cast(x, c.wide) * (math.pi / 180), c.dtype)


@op("rad2deg")
def _rad2deg(c: Call, x: Value) -> Value:
    return c.cast(c.cast(x, c.wide) * (180 / math.pi), c.dtype)


@op("logit")
def _logit(c: Call, x: Value, eps: float | None) -> Value:
    x = c.cast(x, c.wide)
    if eps is not None:
        x = c.apply("clip", x, c.number(eps, c.wide), c.number(1 - eps, c.wide))
    return c.cast(c.apply("log", x / (1 - x)), c.dtype)


# ---- two operands ----


def _scalars_apart(c: Call, *xs: Any) -> str:
    """A number beside a narrow tensor is not rounded to that tensor's dtype."""
    return c.wide if any(not isinstance(x, Value) for x in xs) else c.dtype


def _arithmetic(c: Call, name: str, a: Any, b: Any) -> Value:
    dtype = _scalars_apart(c, a, b)
    return c.cast(c.apply(name, c.operand(a, dtype), c.operand(b, dtype)), c.dtype)


@op("add.Tensor", "add.Scalar")
def _add(c: Call, x: Value, other: Any, alpha: Any = 1) -> Value:
    if c.dtype == "bool":
        return c.apply("logical_or", c.operand(x, "bool"), c.operand(other, "bool")) if alpha else x
    return _arithmetic(c, "add", x, _times(c, other, alpha))


@op("sub.Tensor", "sub.Scalar")
def _sub(c: Call, x: Value, other: Any, alpha: Any = 1) -> Value:
    return _arithmetic(c, "sub", x, _times(c, other, alpha))


@op("rsub.Tensor", "rsub.Scalar")
def _rsub(c: Call, x: Value, other: Any, alpha: Any = 1) -> Value:
    return _arithmetic(c, "sub", other, _times(c, x, alpha))


def _times(c: Call, x: Any, factor: Any) -> Any:
    if factor == 1:
        return x
    if not isinstance(x, Value):
        return x * factor
    dtype = c.wide
    product = c.cast(x, dtype) * c.number(factor, dtype)
    return c.cast(product, c.dtype)


@op("mul.Tensor", "mul.Scalar")
def _mul(c: Call, x: Value, other: Any) -> Value:
    if c.dtype == "bool":
        return c.apply("logical_and", c.operand(x, "bool"), c.operand(other, "bool"))
    return _arithmetic(c, "mul", x, other)


@op("div.Tensor", "div.Scalar", "true_divide.Tensor")
def _div(c: Call, x: Value, other: Any) -> Value:
    return _arithmetic(c, "div", x, other)


@op("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(c: Call, x: Value, other: Any, rounding_mode: str | None) -> Value:
    if rounding_mode is None:
        return _div(c, x, other)
    c.need(rounding_mode in ("trunc", "floor"), f"rounding_mode={rounding_mode}")
    dtype = c.wide
    a, b = c.operand(x, dtype), c.operand(other, dtype)
    if rounding_mode == "trunc":
        quotient = c.apply("div", a, b)
        return c.cast(c.apply("trunc", quotient) if dtype in FLOATS else quotient, c.dtype)
    return c.cast(_floor_float(c, a, b) if dtype in FLOATS else _floor_integer(c, a, b), c.dtype)


@op("floor_divide", "floor_divide.Scalar")
def _floor_divide(c: Call, x: Value, other: Any) -> Value:
    return _div_mode(c, x, other, "floor")


def _floor_integer(c: Call, a: Value, b: Value) -> Value:
    quotient = c.apply("div", a, b)
    rest = a - quotient * b
    zero = c.number(0, a.dtype)
    signs_differ = c.apply("logical_xor", c.apply("less", rest, zero), c.apply("less", b, zero))
    below = c.apply("logical_and", c.apply("not_equal", rest, zero), signs_differ)
    return quotient - c.cast(below, a.dtype)


def _floor_float(c: Call, a: Value, b: Value) -> Value:
    """By the remainder, since a / b may round up to the next integer."""
    zero = c.number(0, a.dtype)
    rest = c.apply("mod", a, b, fmod=True)
    quotient = (a - rest) / b
    signs_differ = c.apply("logical_xor", c.apply("less", rest, zero), c.apply("less", b, zero))
    below = c.apply("logical_and", c.apply("not_equal", rest, zero), signs_differ)
    floor = c.apply("round", quotient - c.cast(below, a.dtype))
    return c.apply("where", c.apply("equal", b, zero), a / b, floor)


@op("remainder.Tensor", "remainder.Scalar")
def _remainder(c: Call, x: Any, other: Any) -> Value:
    return _arithmetic(c, "mod", x, other)


@op("fmod.Tensor", "fmod.Scalar")
def _fmod(c: Call, x: Value, other: Any) -> Value:
    dtype = _scalars_apart(c, x, other)
    return c.cast(c.apply("mod", c.operand(x, dtype), c.operand(other, dtype), fmod=True), c.dtype)


@op("pow.Tensor_Tensor")
def _pow(c: Call, x: Any, exponent: Any) -> Value:
    return _arithmetic(c, "pow", x, exponent)


@op("pow.Tensor_Scalar")
def _pow_number(c: Call, x: Value, exponent: Any) -> Value:
    if exponent == 2:
        return _mul(c, x, x)
    if exponent == 0.5 and c.dtype in FLOATS:
        # As pow has it: the root of -0 is +0, that of -inf is inf.
        value = c.cast(x, c.wide)
        return c.cast(c.apply("pow", value, c.number(0.5, c.wide)), c.dtype)
    if exponent < 0 and c.dtype not in FLOATS:
        c.refuse("an integer to a negative power")
    return _arithmetic(c, "pow", x, exponent)


@op("pow.Scalar")
def _number_pow(c: Call, x: Any, exponent: Value) -> Value:
    return _arithmetic(c, "pow", x, exponent)


@op("maximum")
def _maximum(c: Call, x: Value, other: Any) -> Value:
    name = "logical_or" if c.dtype == "bool" else "max"
    return c.apply(name, c.operand(x, c.dtype), c.operand(other, c.dtype))


@op("minimum")
def _minimum(c: Call, x: Value, other: Any) -> Value:
    name = "logical_and" if c.dtype == "bool" else "min"
    return c.apply(name, c.operand(x, c.dtype), c.operand(other, c.dtype))


@op("fmax")
def _fmax(c: Call, x: Value, other: Value) -> Value:
    return _without_nan(c, x, other, _maximum(c, x, other))


@op("fmin")
def _fmin(c: Call, x: Value, other: Value) -> Value:
    return _without_nan(c, x, other, _minimum(c, x, other))


def _without_nan(c: Call, x: Value, other: Value, both: Value) -> Value:
    if c.dtype not in FLOATS:
        return both
    a, b = c.cast(x, c.dtype), c.cast(other, c.dtype)
    return c.apply("where", c.apply("is_nan", a), b, c.apply("where", c.apply("is_nan", b), a, both))


@op("atan2")
def _atan2(c: Call, x: Value, other: Value) -> Value:
    """The angle of the smaller over the larger magnitude, put into its eighth of the circle."""
    y, x = c.cast(x, c.wide), c.cast(other, c.wide)
    zero, one = c.number(0, c.wide), c.number(1, c.wide)

    def negative(v: Value) -> Value:
        return c.apply("less", c.apply("where", c.apply("equal", v, zero), one / v, v), zero)

    across, along = c.apply("abs", y), c.apply("abs", x)
    small, large = c.apply("min", across, along), c.apply("max", across, along)
    ratio = c.apply("where", c.apply("equal", small, large), one, small / large)
    ratio = c.apply("where", c.apply("equal", large, zero), zero, ratio)
    angle = c.apply("atan", ratio)
    angle = c.apply("where", c.apply("greater", across, along), math.pi / 2 - angle, angle)
    angle = c.apply("where", negative(x), math.pi - angle, angle)
    angle = c.apply("where", negative(y), -angle, angle)
    nan = c.apply("logical_or", c.apply("is_nan", x), c.apply("is_nan", y))
    return c.cast(c.apply("where", nan, c.number(math.nan, c.wide), angle), c.dtype)


@op("hypot")
def _hypot(c: Call, x: Value, other: Value) -> Value:
    a, b = c.cast(x, "f64"), c.cast(other, "f64")
    infinite = c.apply("logical_or", c.apply("is_inf", a), c.apply("is_inf", b))
    length = c.apply("sqrt", a * a + b * b)
    return c.cast(c.apply("where", infinite, c.number(math.inf, "f64"), length), c.dtype)


@op("logaddexp")
def _logaddexp(c: Call, x: Value, other: Value) -> Value:
    a, b = c.cast(x, c.wide), c.cast(other, c.wide)
    top = c.apply("max", a, b)
    rest = c.apply("log1p", c.apply("exp", -c.apply("abs", a - b)))
    return c.cast(c.apply("where", c.apply("equal", a, b), a + math.log(2), top + rest), c.dtype)


@op("copysign.Tensor", "copysign.Scalar")
def _copysign(c: Call, x: Value, other: Any) -> Value:
    a, b = c.operand(x, c.dtype), c.operand(other, c.dtype)
    zero = c.number(0, c.dtype)
    signed = c.apply("where", c.apply("equal", b, zero), c.apply("reciprocal", b), b)
    size = c.apply("abs", a)
    return c.apply("where", c.apply("less", signed, zero), -size, size)


@op("lerp.Scalar", "lerp.Tensor")
def _lerp(c: Call, x: Value, end: Value, weight: Any) -> Value:
    a, b, w = c.cast(x, c.wide), c.cast(end, c.wide), c.operand(weight, c.wide)
    return c.cast(a + w * (b - a), c.dtype)


@op("addcmul")
def _addcmul(c: Call, x: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    a, b, d = (c.cast(v, c.wide) for v in (x, tensor1, tensor2))
    return c.cast(a + b * d * c.number(value, c.wide), c.dtype)


@op("addcdiv")
def _addcdiv(c: Call, x: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    a, b, d = (c.cast(v, c.wide) for v in (x, tensor1, tensor2))
    return c.cast(a + b / d * c.number(value, c.wide), c.dtype)


# ---- comparisons and logic ----


def _enter_comparisons() -> None:
    names = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    for aten, name in names.items():
        op(f"{aten}.Tensor", f"{aten}.Scalar")(lambda c, x, other, name=name: _compare(c, name, x, other))
    for name in ("logical_and", "logical_or", "logical_xor"):
        op(name)(lambda c, x, other, name=name: c.apply(name, c.cast(x, "bool"), c.cast(other, "bool")))
    for name in ("and", "or", "xor"):
        op(f"bitwise_{name}.Tensor", f"bitwise_{name}.Scalar")(lambda c, x, other, name=name: _bitwise(c, name, x, other))


def _compare(c: Call, name: str, x: Value, other: Any) -> Value:
    dtype = c.promoted(x, other)
    if not isinstance(other, Value):
        dtype = wide(dtype)
    if dtype == "bool" and name not in ("equal", "not_equal"):
        dtype = "u8"
    return c.apply(name, c.operand(x, dtype), c.operand(other, dtype))


def _bitwise(c: Call, name: str, x: Value, other: Any) -> Value:
    kind = "logical_" if c.dtype == "bool" else "bitwise_"
    return c.apply(kind + name, c.operand(x, c.dtype), c.operand(other, c.dtype))


_enter_comparisons()


@op("logical_not")
def _logical_not(c: Call, x: Value) -> Value:
    return c.apply("logical_not", c.cast(x, "bool"))


@op("bitwise_not")
def _bitwise_not(c: Call, x: Value) -> Value:
    return c.apply("logical_not" if x.dtype == "bool" else "bitwise_not", x)


@op("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar", "__lshift__.Tensor")
def _shift_left(c: Call, x: Value, other: Any) -> Value:
    c.need(c.dtype not in FLOATS, "shifting floats")
    return c.apply("shift_left", c.operand(x, c.dtype), c.operand(other, c.dtype))


@op("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar", "__rshift__.Tensor")
def _shift_right(c: Call, x: Value, other: Any) -> Value:
    c.need(c.dtype not in FLOATS, "shifting floats")
    return c.apply("shift_right", c.operand(x, c.dtype), c.operand(other, c.dtype))


@op("isnan")
def _isnan(c: Call, x: Value) -> Value:
    return c.apply("is_nan", x) if x.dtype in FLOATS else c.full(x.shape, False, "bool")


@op("isinf")
def _isinf(c: Call, x: Value) -> Value:
    return c.apply("is_inf", x) if x.dtype in FLOATS else c.full(x.shape, False, "bool")


@op("isfinite")
def _isfinite(c: Call, x: Value) -> Value:
    return c.apply("logical_not", c.apply("logical_or", _isnan(c, x), _isinf(c, x)))


@op("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(c: Call, condition: Value, x: Any, other: Any) -> Value:
    return c.apply("where", c.cast(condition, "bool"), c.operand(x, c.dtype), c.operand(other, c.dtype))


@op("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(c: Call, x: Value, mask: Value, value: Any) -> Value:
    return c.apply("where", mask, c.operand(value, c.dtype), x)


@op("clamp", "clamp.Tensor")
def clamp(c: Call, x: Value, min: Any, max: Any) -> Value:
    x = c.cast(x, c.dtype)
    if min is not None:
        x = _maximum(c, x, min)
    return x if max is None else _minimum(c, x, max)


@op("clamp_min", "clamp_min.Tensor")
def _clamp_min(c: Call, x: Value, min: Any) -> Value:
    return clamp(c, x, min, None)


@op("clamp_max", "clamp_max.Tensor")
def _clamp_max(c: Call, x: Value, max: Any) -> Value:
    return clamp(c, x, None, max)


@op("nan_to_num")
def _nan_to_num(c: Call, x: Value, nan: float | None, posinf: float | None, neginf: float | None) -> Value:
    if x.dtype not in FLOATS:
        return x
    limits = torch.finfo(TORCH_DTYPES[x.dtype])
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    up = c.apply("is_inf", x, detect_negative=False)
    down = c.apply("is_inf", x, detect_positive=False)
    x = c.apply("where", up, c.number(high, x.dtype), c.apply("where", down, c.number(low, x.dtype), x))
    return c.apply("where", c.apply("is_nan", x), c.number(nan or 0.0, x.dtype), x)


# ---- conversions ----


@op("_to_copy")
def _to_copy(c: Call, x: Value, dtype: Any = None) -> Value:
    return c.cast(x, c.dtype)


@op("to.dtype", "type_as")
def _to(c: Call, x: Value, dtype: Any = None, other: Any = None, copy: bool = False) -> Value:
    return c.cast(x, c.dtype)


@op("clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "contiguous")
def _same(c: Call, x: Value) -> Value:
    return x


@op("copy")
def _copy(c: Call, x: Value, src: Value) -> Value:
    return c.apply("expand", c.cast(src, c.dtype), shape=list(x.shape))


@op("view.dtype")
def _view_dtype(c: Call, x: Value, dtype: Any) -> Value:
    sizes = {"bool": 1, "u8": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}
    c.need(sizes[x.dtype] == sizes[c.dtype], "a view as a dtype of another size")
    c.need(not {x.dtype, c.dtype} & {*FLOATS, "bool"}, "bits of floats: a NaN keeps none of its own")
    return c.apply("bitcast", x, to=c.dtype)


@op("native_dropout")
def _dropout(c: Call, input: Value, p: float, train: bool | None) -> list[Value | None]:
    c.need(train is False or p == 0, "it draws random numbers")
    return [input, c.full(input.shape, True, "bool") if 1 in c.used else None]
