"""Elementwise ops: functions, arithmetic with broadcasting, choices, casts."""

import math

import numpy as np

ERF = np.vectorize(math.erf)


def rnd(shape, seed, lo=-2.0, hi=2.0):
    return np.round(np.random.default_rng(seed).uniform(lo, hi, shape), 3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


UNARY = {
    "abs": (np.abs, -2, 2), "acos": (np.arccos, -0.9, 0.9), "acosh": (np.arccosh, 1.2, 3), "asin": (np.arcsin, -0.9, 0.9),
    "asinh": (np.arcsinh, -2, 2), "atan": (np.arctan, -2, 2), "atanh": (np.arctanh, -0.9, 0.9), "cos": (np.cos, -3, 3),
    "cosh": (np.cosh, -2, 2), "erf": (ERF, -2, 2), "exp": (np.exp, -2, 2), "exp2": (np.exp2, -2, 2), "expm1": (np.expm1, -2, 2),
    "identity": (lambda x: x, -2, 2), "log": (np.log, 0.2, 3), "log1p": (np.log1p, -0.5, 3), "log2": (np.log2, 0.2, 3),
    "neg": (np.negative, -2, 2), "reciprocal": (lambda x: 1 / x, 0.3, 2), "sigmoid": (sigmoid, -3, 3), "sin": (np.sin, -3, 3),
    "sinh": (np.sinh, -2, 2), "softplus": (softplus, -3, 3), "softsign": (lambda x: x / (1 + np.abs(x)), -2, 2),
    "sqrt": (np.sqrt, 0.2, 3), "tan": (np.tan, -1, 1), "tanh": (np.tanh, -2, 2), "relu": (lambda x: np.maximum(x, 0), -2, 2),
    "mish": (lambda x: x * np.tanh(softplus(x)), -3, 3), "gelu": (lambda x: x / 2 * (1 + ERF(x / np.sqrt(2))), -3, 3),
    "gelu {approximate=\"tanh\"}": (lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), -3, 3),
    "celu {alpha=0.7}": (lambda x: np.maximum(x, 0) + np.minimum(0, 0.7 * np.expm1(x / 0.7)), -2, 2),
    "elu {alpha=1.5}": (lambda x: np.where(x < 0, 1.5 * np.expm1(x), x), -2, 2),
    "selu": (lambda x: 1.05070102214813232421875 * np.where(x < 0, 1.67326319217681884765625 * np.expm1(x), x), -2, 2),
    "hard_sigmoid": (lambda x: np.clip(0.2 * x + 0.5, 0, 1), -4, 4),
    "hard_swish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), -4, 4),
    "leaky_relu {alpha=0.1}": (lambda x: np.where(x < 0, 0.1 * x, x), -2, 2),
    "swish {alpha=1.5}": (lambda x: x * sigmoid(1.5 * x), -3, 3),
    "shrink {bias=0.25, lambd=0.5}": (lambda x: np.where(x < -0.5, x + 0.25, np.where(x > 0.5, x - 0.25, 0)), -2, 2),
    "thresholded_relu {alpha=0.5}": (lambda x: np.where(x > 0.5, x, 0), -2, 2),
}


def write(f):
    for op, (forward, lo, hi) in UNARY.items():
        name = op.split(" ")[0] + ("_" + op.split('"')[1] if '"' in op else "")
        f.smooth(name, op, [rnd((2, 5), f.count, lo, hi)], forward)
    f.smooth("exp_of_nothing", "exp", [np.zeros((0, 3))], np.exp)
    f.smooth("exp_of_a_scalar", "exp", [np.array(0.5)], np.exp)
    binary = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
              "pow": np.power, "mod": np.mod}
    for op, forward in binary.items():
        a, b = rnd((2, 3), f.count, 0.3, 2), rnd((2, 3), f.count + 50, 0.3, 2)
        f.smooth(op, op, [a, b], forward)
        f.smooth(op + "_broadcast", op, [rnd((2, 1, 3), f.count, 0.3, 2), rnd((4, 1), f.count + 50, 0.3, 2)], forward)
        f.smooth(op + "_scalar", op, [rnd((3,), f.count, 0.3, 2), np.array(1.7)], forward)
    f.smooth("mod_by_sign_of_a", "mod {fmod=true}", [rnd((4,), 5), np.array([0.7, -0.6, 0.7, -0.6])], np.fmod)
    f.smooth("pow_of_integers", "pow", [rnd((4,), 6), np.array([2, 3, 0, 1])], lambda a, n: a ** n.astype(float))
    f.smooth("prelu", "prelu", [rnd((2, 3, 2), 7), np.array([[0.1], [0.2], [0.3]])], lambda x, s: np.where(x < 0, s * x, x))
    f.smooth("clip", "clip", [rnd((6,), 8), np.array(-0.6), np.array(0.7)], np.clip)
    f.smooth("where", "where", [np.array([True, False, True]), rnd((2, 1), 9), rnd((3,), 10)], np.where)

    # Kinks and ties, where differences would not say what the rule is.
    g = [1.0, 2.0, 3.0]
    f.closed("abs_at_zero", "abs", [[-1.0, 0.0, -0.0]], [g], [[-1, 0, 0]])
    f.closed("relu_at_zero", "relu", [[-1.0, 0.0, 1.0]], [g], [[0, 0, 3]])
    f.closed("max_of_equals_halves", "max", [[1.0, 2.0, 3.0], [1.0, 1.0, 4.0]], [g], [[0.5, 2, 0], [0.5, 0, 3]])
    f.closed("min_of_equals_halves", "min", [[1.0, 2.0, 3.0], [1.0, 1.0, 4.0]], [g], [[0.5, 0, 3], [0.5, 2, 0]])
    f.closed("clip_at_its_bounds_is_x", "clip", [[-1.0, 2.0, 5.0], -1.0, 2.0], [g], [[1, 2, 0], 0, 3])
    f.closed("clip_with_lo_over_hi_is_hi", "clip", [[-1.0, 2.0, 5.0], 3.0, 1.0], [g], [[0, 0, 0], 0, 6])
    f.closed("clip_below", "clip", [[-3.0, 0.0, 0.5], -1.0, 2.0], [g], [[0, 2, 3], 1, 0])
    f.closed("pow_zero_to_zero", "pow", [[0.0, 0.0, 2.0], [0.0, 2.0, 0.0]], [g], [[0, 0, 0], [0, 0, 3 * math.log(2)]])
    f.closed("sqrt_at_zero_is_infinite", "sqrt", [[0.0, 4.0, 1.0]], [g], [[math.inf, 0.5, 1.5]])
    f.closed("elu_far_out", "elu", [[-800.0, 800.0, 0.0]], [g], [[0, 2, 3]])
    f.closed("softplus_far_out", "softplus", [[-800.0, 800.0, 0.0]], [g], [[0, 2, 1.5]])
    f.closed("cast_to_a_wider_float", "cast {to=f64}", [np.array([1.0, 2.0, 3.0], np.float32)], [g], [np.array(g, np.float32)])
