"""Activation functions."""

from __future__ import annotations

from ..builder import Value
from .pointwise import clamp
from .table import FLOATS, Call, axis_of, op


@op("relu")
def _relu(c: Call, x: Value) -> Value:
    return (
        x if x.dtype == "u8" else c.apply("max", x, c.number(0, x.dtype)) if x.dtype not in FLOATS else c.apply("relu", x)
    )


@op("relu6")
def _relu6(c: Call, x: Value) -> Value:
    return clamp(c, x, 0, 6)


@op("gelu")
def _gelu(c: Call, x: Value, approximate: str) -> Value:
    c.need(approximate in ("none", "tanh"), f"approximate={approximate}")
    return c.apply("gelu", x, approximate=approximate)


@op("leaky_relu")
def _leaky_relu(c: Call, x: Value, negative_slope: float) -> Value:
    return c.apply("leaky_relu", x, alpha=negative_slope)


@op("prelu", "_prelu_kernel")
def _prelu(c: Call, x: Value, weight: Value) -> Value:
    if len(weight.shape) == 1 and len(x.shape) > 1:
        weight = c.apply("reshape", weight, shape=[-1] + [1] * (len(x.shape) - 2))
    return c.apply("where", c.apply("greater", x, c.number(0, x.dtype)), x, weight * x)


@op("elu")
def _elu(c: Call, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    x = c.cast(x, c.wide)
    low = c.apply("expm1", x * input_scale) * alpha
    return c.cast(c.apply("where", c.apply("greater", x, c.number(0, c.wide)), x, low) * scale, c.dtype)


@op("celu")
def _celu(c: Call, x: Value, alpha: float = 1.0) -> Value:
    return _elu(c, x, alpha, 1, 1 / alpha)


@op("selu")
def _selu(c: Call, x: Value) -> Value:
    return _elu(c, x, 1.6732632423543772, 1.0507009873554805)


@op("hardtanh")
def _hardtanh(c: Call, x: Value, min_val: float, max_val: float) -> Value:
    return clamp(c, x, min_val, max_val)


@op("hardsigmoid")
def _hardsigmoid(c: Call, x: Value) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(c.apply("clip", x + 3, c.number(0, c.wide), c.number(6, c.wide)) / 6, c.dtype)


@op("hardswish")
def _hardswish(c: Call, x: Value) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(x * c.apply("clip", x + 3, c.number(0, c.wide), c.number(6, c.wide)) / 6, c.dtype)


@op("silu")
def _silu(c: Call, x: Value) -> Value:
    x = c.cast(x, c.wide)
    return c.cast(x * c.apply("sigmoid", x), c.dtype)


@op("softplus")
def _softplus(c: Call, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    x = c.cast(x, c.wide)
    scaled = x * beta
    soft = c.apply("log1p", c.apply("exp", scaled)) / beta
    return c.cast(c.apply("where", c.apply("greater", scaled, c.number(threshold, c.wide)), x, soft), c.dtype)


@op("log_sigmoid_forward")
def _log_sigmoid(c: Call, x: Value) -> list[Value | None]:
    c.need(1 not in c.used, "its second output")
    return [c.cast(-c.apply("softplus", -c.cast(x, c.wide)), c.dtype), None]


@op("softshrink")
def _softshrink(c: Call, x: Value, lambd: float = 0.5) -> Value:
    limit = c.number(lambd, x.dtype)
    low = c.apply("where", c.apply("less", x, -limit), x + limit, x * c.number(0, x.dtype))
    return c.apply("where", c.apply("greater", x, limit), x - limit, low)


@op("hardshrink")
def _hardshrink(c: Call, x: Value, lambd: float = 0.5) -> Value:
    limit = c.number(lambd, x.dtype)
    inside = c.apply("logical_and", c.apply("greater_equal", x, -limit), c.apply("less_equal", x, limit))
    return c.apply("where", inside, c.number(0, x.dtype), x)


@op("threshold")
def _threshold(c: Call, x: Value, threshold: float, value: float) -> Value:
    below = c.apply("less_equal", x, c.number(threshold, x.dtype))
    return c.apply("where", below, c.number(value, x.dtype), x)


@op("threshold_backward")
def _threshold_backward(c: Call, grad_output: Value, x: Value, threshold: float) -> Value:
    below = c.apply("less_equal", x, c.number(threshold, x.dtype))
    return c.apply("where", below, c.number(0, grad_output.dtype), grad_output)


@op("glu")
def _glu(c: Call, x: Value, dim: int = -1) -> Value:
    axis = axis_of(dim, len(x.shape))
    half = x.shape[axis] // 2
    a, b = c.b.ops("split", [x], axis=axis, sizes=[half, half])
    return c.cast(c.cast(a, c.wide) * c.apply("sigmoid", c.cast(b, c.wide)), c.dtype)
