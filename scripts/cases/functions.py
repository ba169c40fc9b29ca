"""Cases of the elementary functions and of rounding to integers."""

import numpy as np

from cases import decimals
from cases.elementwise import FUNCTIONS, functions
from cases.files import generator

# As in FUNCTIONS: exact function, range of random arguments, edges, ulps allowed in f32 and f64.
MORE = {
    "exp2": (decimals.exp2_exact, -20.0, 20.0, [10.0, -126.5, -149.0, -150.5, 127.99999, 128.0, 1e-9], (1, 2)),
    "expm1": (decimals.expm1_exact, -4.0, 4.0, [1e-9, -1e-4, 88.72, 88.8, -17.5, -104.0], (1, 2)),
    "log2": (decimals.log2_exact, 0.0, 20.0, [0.99999994, 1.0000001, 1e-40, 8.0, 0.125], (1, 2)),
    "log1p": (decimals.log1p_exact, -0.9, 9.0, [1e-9, -1e-4, -0.99999994, 1e-40], (1, 2)),
    "sin": (decimals.sin_exact, -9.0, 9.0, [1e-9, 3.1415927, 1.5707964, 1e5, -1e10, 1e30], (1, 2)),
    "cos": (decimals.cos_exact, -9.0, 9.0, [1e-9, 3.1415927, 1.5707964, 1e5, -1e10, 1e30], (1, 2)),
    "tan": (decimals.tan_exact, -9.0, 9.0, [1e-9, 3.1415927, 1.5707964, 1e5, -1e10, 1e30], (1, 2)),
    "asin": (decimals.asin_exact, -1.0, 1.0, [1e-9, 0.99999994, -0.99999994, 0.70710677, 1.0000001], (1, 2)),
    "acos": (decimals.acos_exact, -1.0, 1.0, [1e-9, 0.99999994, -0.99999994, 0.70710677, 1.0000001], (1, 2)),
    "atan": (decimals.atan_exact, -6.0, 6.0, [1e-9, 1e10, -1e10, 0.4375], (1, 2)),
    "sinh": (decimals.sinh_exact, -6.0, 6.0, [1e-9, 1e-3, 89.0, 89.5, -89.0], (1, 2)),
    "cosh": (decimals.cosh_exact, -6.0, 6.0, [1e-9, 1e-3, 89.0, 89.5, -89.0], (1, 2)),
    "asinh": (decimals.asinh_exact, -9.0, 9.0, [1e-9, 1e-3, 1e20, -1e20], (1, 2)),
    "acosh": (decimals.acosh_exact, 1.0, 9.0, [1.0000001, 0.99999994, 1e20], (1, 2)),
    "atanh": (decimals.atanh_exact, -1.0, 1.0, [1e-9, 1e-3, 0.99999994, -0.99999994, 1.0000001], (1, 2)),
    "reciprocal": (lambda x: float(np.float64(1) / x), -4.0, 4.0, [1e-39, 1e38], (0, 0)),
}
HALVES = [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.3, 8388607.5, -8388609.0, 1e10]
MORE |= {op: (lambda x, f=f: float(f(x)), -9.0, 9.0, HALVES, (0, 0)) for op, f in
         (("floor", np.floor), ("ceil", np.ceil), ("round", np.rint), ("trunc", np.trunc))}

FUNCTIONS.update(MORE)
generator(*MORE)(functions)
