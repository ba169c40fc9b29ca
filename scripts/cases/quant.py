"""Cases of quantisation."""

import ml_dtypes
import numpy as np

from cases.elementwise import int_limits
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import INF, is_float, NAN, NARROW, NUMPY, rounded


def spread(p, shape, axis, block):
    """A scale or zero point for every element."""
    if p.ndim == 0 or p.size == 1 and p.ndim == 1:
        return np.broadcast_to(p.reshape(()), shape)
    if block:
        at = np.arange(shape[axis]) // block
        return np.take(p, at, axis)
    dims = [1] * len(shape)
    dims[axis] = -1
    return np.broadcast_to(p.reshape(dims), shape)


def division(x, scale):
    return np.float64 if "f64" in (x.dt, scale.dt) else np.float32


def quantized(x, scale, zero, to, axis, block, saturate):
    wide = division(x, scale)
    ratio = x.a.astype(wide) / spread(scale.a.astype(wide), x.a.shape, axis, block)
    if is_float(to):
        largest = NARROW[to][2]
        return rounded(np.clip(ratio, -largest, largest) if saturate else ratio, to)
    info = ml_dtypes.iinfo(NUMPY[to])
    zeros = np.zeros(x.a.shape) if zero is None else spread(zero.a.astype(np.float64), x.a.shape, axis, block)
    steps = np.where(np.isnan(ratio), 0.0, np.rint(ratio).astype(np.float64))
    return np.clip(steps + zeros, info.min, info.max).astype(NUMPY[to])


def attrs_of(to, axis, block, saturate=True):
    attrs = [f"to={to}"] + ([] if axis == 1 else [f"axis={axis}"]) + ([f"block_size={block}"] if block else [])
    return ", ".join(attrs + ([] if saturate else ["saturate=false"]))


def scale_refusals(c, x, to):
    c.refuse("scale_dtype", [x, "i32[]"], "dtype_mismatch", "scale must have a float dtype, found i32[]", f"to={to}")
    c.refuse("scale_shape", [x, "f32[2]"], "shape_mismatch", "scale must have one element or shape [3], found f32[2]",
             f"to={to}")
    c.refuse("axis", [x, "f32[3]"], "invalid_argument", "axis 2 is outside of", f"to={to}, axis=2")
    c.refuse("block", [x, "f32[2,3]"], "shape_mismatch", "scale must have one element or shape [2,2], found f32[2,3]",
             f"to={to}, block_size=2")
    c.refuse("negative_block", [x, "f32[2,3]"], "invalid_argument", "block_size must not be negative, found -1",
             f"to={to}, block_size=-1")


@generator("quantize")
def quantize(op):
    c = Cases(op)

    def run(name, x, scale, zero=None, to="u8", axis=1, block=0, saturate=True):
        y = quantized(x, scale, zero, to, axis, block, saturate)
        c.run(name, [t for t in (x, scale, zero) if t is not None], Tensor(to, y), attrs_of(to, axis, block, saturate))

    run("ties", lit("f32", [0.5, 1.5, 2.5, -0.5, -1.5, 1e-9, 300.0, -300.0]), lit("f32", 1.0), lit("u8", 128))
    run("edges", lit("f32", [NAN, INF, -INF, 3e38, -3e38, 0.0, -0.0, 255.5]), lit("f32", [0.5]), lit("u8", [3]))
    run("edges_i8", lit("f32", [NAN, INF, -INF, 3e38, -3e38, 127.5, -128.5]), lit("f32", 1.0), lit("i8", -7), "i8")
    run("without_zero_point", rnd("f32", (4, 5), 1, -50.0, 300.0), lit("f32", 1.25))
    run("per_axis", rnd("f32", (2, 3, 4), 2, -9.0, 9.0), lit("f32", [0.1, 0.5, 2.0]), lit("i8", [1, -2, 3]), "i8")
    run("last_axis", rnd("f32", (2, 3), 3, -9.0, 9.0), lit("f32", [0.1, 0.5, 2.0]), lit("u8", [1, 2, 3]), axis=-1)
    run("blocks", rnd("f32", (2, 5), 4, -9.0, 9.0), rnd("f32", (2, 3), 5, 0.1, 1.0), rnd("u8", (2, 3), 6, 0.0, 255.0), block=2)
    run("blocks_first_axis", rnd("f32", (7, 3), 7, -9.0, 9.0), rnd("f32", (3, 3), 8, 0.1, 1.0), to="i8", axis=0, block=3)
    for to in ("i8", "u8", "i16", "u16"):
        run(f"to_{to}", rnd("f32", (19,), 9, -80000.0, 80000.0), lit("f32", 0.9), lit(to, 5), to)
    for to in ("i4", "u4", "i2", "u2"):
        run(f"to_{to}", lit("f32", [-9.0, -8.5, -2.5, -2.0, -1.5, -0.5, 0.5, 1.5, 2.5, 7.5, 14.5, 99.0, NAN]), lit("f32", 1.0),
            lit(to, 1), to)
    run("to_i4_blocks", rnd("f32", (2, 6), 12, -9.0, 9.0), rnd("f32", (2, 2), 13, 0.5, 1.5), None, "i4", block=3)
    run("to_f4e2m1", lit("f32", [0.0, -0.0, INF, -INF, 0.12, 0.13, 0.9, 2.6, -1.3, 9.0]), lit("f32", 0.5), to="f4e2m1")
    for to in ("f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"):
        x = lit("f32", [0.0, -0.0, NAN, INF, -INF, 1e9, -448.0, 470.0, 0.3, 1.7, 1e-9, 60000.0])
        run(f"to_{to}", x, lit("f32", 0.5), to=to)
        run(f"to_{to}_overflows", x, lit("f32", 0.5), to=to, saturate=False)
    run("zero_scale", lit("f32", [0.0, 1.0, -1.0]), lit("f32", 0.0), lit("u8", 9))
    run("scalar", lit("f32", 3.3), lit("f32", 0.1), lit("u8", 9))
    run("empty", lit("f32", [], (0, 3)), lit("f32", [1.0, 2.0, 3.0]))
    run("i32", lit("i32", int_limits("i32")), lit("f32", 1e7), lit("u8", 100))
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (3, 7), 10, -9.0, 9.0), lit(dt, 0.125), lit("i8", 5), "i8")
    run("f16_with_f32_scale", rnd("f16", (9,), 11, -9.0, 9.0), lit("f32", 0.1), lit("u8", 128))
    scale_refusals(c, "f32[2,3]", "u8")
    c.refuse("bools", ["bool[3]", "f32[]"], "dtype_mismatch", "x must have a float dtype or i32, found bool[3]", "to=u8")
    c.refuse("result", ["f32[3]", "f32[]"], "dtype_mismatch",
             "the result must have an integer dtype of at most 16 bits or a float dtype of 4 or 8, found i32[]", "to=i32")
    c.refuse("zero_dtype", ["f32[3]", "f32[]", "i8[]"], "dtype_mismatch", "zero_point must have dtype u8, found i8[]", "to=u8")
    c.refuse("zero_shape", ["f32[3]", "f32[]", "u8[1]"], "shape_mismatch",
             "zero_point must have the shape of scale f32[], found u8[1]", "to=u8")
    c.write()


@generator("dequantize")
def dequantize(op):
    c = Cases(op)

    def run(name, x, scale, zero=None, to="f32", axis=1, block=0):
        wide = division(x, scale)
        steps = x.a.astype(wide) if is_float(x.dt) else x.a.astype(np.int32)
        if zero is not None and not is_float(x.dt):
            steps = steps - spread(zero.a.astype(np.int32), x.a.shape, axis, block)
        y = steps.astype(wide) * spread(scale.a.astype(wide), x.a.shape, axis, block)
        c.run(name, [t for t in (x, scale, zero) if t is not None], Tensor(to, rounded(y, to)), attrs_of(to, axis, block))

    for dt in ("i8", "u8", "i16", "u16"):
        run(dt, lit(dt, int_limits(dt)), lit("f32", 0.1), lit(dt, 3))
    run("i4", lit("i4", [-8, -1, 0, 7]), lit("f32", 0.3), lit("i4", -2))
    run("u4", lit("u4", [0, 1, 15]), lit("f32", 0.3), lit("u4", 8))
    run("i2", lit("i2", [-2, -1, 0, 1]), lit("f32", 0.3))
    run("u2", lit("u2", [0, 1, 2, 3]), lit("f32", 0.3), lit("u2", 2))
    run("i4_blocks", lit("i4", [[-8, 7, 3, 2, 1]]), lit("f16", [[0.5, 0.25, 2.0]]), to="f16", block=2)
    run("f4e2m1", lit("f4e2m1", [0.0, -0.0, 0.5, -1.5, 6.0]), lit("f32", 0.3))
    run("power_of_two_scale", lit("f8e4m3fn", [0.5, -1.5, 448.0]), lit("f8e8m0", [4.0]))
    run("without_zero_point", lit("u8", [[0, 128, 255]]), lit("f32", 2.5))
    run("i32", lit("i32", int_limits("i32")), lit("f32", 0.1))
    run("per_axis", rnd("u8", (2, 3, 4), 1, 0.0, 255.0), lit("f32", [0.1, 0.5, 2.0]), lit("u8", [1, 2, 3]))
    run("first_axis", rnd("i8", (3, 2), 2, -128.0, 127.0), lit("f32", [0.1, 0.5, 2.0]), axis=0)
    run("blocks", rnd("i8", (2, 5), 3, -128.0, 127.0), rnd("f32", (2, 3), 4, 0.1, 1.0), rnd("i8", (2, 3), 5, -9.0, 9.0), block=2)
    run("f8e4m3fn", lit("f8e4m3fn", [0.0, -0.0, NAN, 448.0, -1.5]), lit("f32", 0.5))
    run("f8e5m2", lit("f8e5m2", [0.0, -0.0, NAN, INF, -1.5]), lit("f32", 0.5))
    run("to_f16", rnd("u8", (9,), 6, 0.0, 255.0), lit("f16", 0.3), lit("u8", 128), "f16")
    run("to_bf16", rnd("u8", (9,), 7, 0.0, 255.0), lit("f32", 0.3), lit("u8", 128), "bf16")
    run("f64", rnd("i8", (9,), 8, -128.0, 127.0), lit("f64", 0.3), lit("i8", 1), "f64")
    run("scalar", lit("u8", 3), lit("f32", 0.1), lit("u8", 9))
    run("empty", lit("u8", [], (0, 3)), lit("f32", [1.0, 2.0, 3.0]))
    scale_refusals(c, "u8[2,3]", "f32")
    c.refuse("floats", ["f32[3]", "f32[]"], "dtype_mismatch",
             "x must have an integer dtype of at most 32 signed or 16 unsigned bits or a float dtype of 4 or 8, found f32[3]", "to=f32")
    c.refuse("result", ["u8[3]", "f32[]"], "dtype_mismatch", "the result must have a float dtype, found i32[]", "to=i32")
    c.refuse("zero_dtype", ["u8[3]", "f32[]", "i8[]"], "dtype_mismatch",
             "zero_point must have the dtype of x u8[3], found i8[]", "to=f32")
    c.refuse("zero_shape", ["u8[3]", "f32[]", "u8[1]"], "shape_mismatch",
             "zero_point must have the shape of scale f32[], found u8[1]", "to=f32")
    c.write()


@generator("dynamic_quantize")
def dynamic_quantize(op):
    c = Cases(op)
    for name, x in [("values", rnd("f32", (3, 7), 1, -3.0, 5.0)), ("positive", rnd("f32", (9,), 2, 1.0, 5.0)),
                    ("negative", rnd("f32", (9,), 3, -4.0, -1.0)), ("zeros", lit("f32", [0.0, -0.0])),
                    ("scalar", lit("f32", -2.5)), ("empty", lit("f32", [], (0, 2))), ("long", rnd("f32", (2000,), 4, -1.0, 9.0))]:
        f = np.float32
        hi, lo = np.max(x.a, initial=f(0)), np.min(x.a, initial=f(0))
        scale = (f(1) if hi == lo else hi - lo) / f(255)
        zero = np.clip(np.rint(-lo / scale), 0, 255).astype(np.uint8)
        y = np.clip(np.rint(x.a / scale) + zero, 0, 255).astype(np.uint8)
        c.run(name, [x], [Tensor("u8", y), Tensor("f32", np.asarray(scale)), Tensor("u8", np.asarray(zero))])
    c.refuse("dtype", ["f16[3]"], "dtype_mismatch", "x must have dtype f32, found f16[3]")
    c.write()
