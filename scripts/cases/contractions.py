"""Cases of products made of others: gemm, integer products, einsum."""

import numpy as np

from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import chain, is_float, near_f64, rounded


def product(a, b, dt):
    """The matrix product by the rules of contractions, rounded to dt."""
    out = chain(np.moveaxis(a, -1, 0)[..., None], np.moveaxis(b, -2, 0)[..., None, :])
    if is_float(dt) and np.isfinite(a).all() and np.isfinite(b).all():
        near_f64(out, np.matmul(a.astype(np.float64), b.astype(np.float64)))
    return rounded(out, dt)


@generator("gemm")
def gemm(op):
    c = Cases(op)

    def run(name, a, b, bias=None, alpha=1.0, beta=1.0, trans=""):
        dt, w = a.dt, a.w.dtype.type
        y = product(a.w.T if "a" in trans else a.w, b.w.T if "b" in trans else b.w, dt)
        if alpha != 1.0:
            y = rounded(y.astype(w) * w(alpha), dt)
        if bias is not None:
            scaled = bias.a if beta == 1.0 else rounded(bias.w * w(beta), dt)
            y = rounded(y.astype(w) + scaled.astype(w), dt)
        attrs = [f"trans_{t}=true" for t in trans]
        attrs += [] if alpha == 1.0 else [f"alpha={alpha}"]
        attrs += [] if beta == 1.0 else [f"beta={beta}"]
        c.run(name, [t for t in (a, b, bias) if t is not None], Tensor(dt, y), ", ".join(attrs))

    run("plain", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2))
    run("bias_row", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2), rnd("f32", (5,), 3))
    run("bias_column", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2), rnd("f32", (3, 1), 4))
    run("bias_scalar", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2), lit("f32", 0.5))
    run("bias_matrix", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2), rnd("f32", (3, 5), 5))
    run("trans_a", rnd("f32", (4, 3), 6), rnd("f32", (4, 5), 7), rnd("f32", (5,), 3), trans="a")
    run("trans_b", rnd("f32", (3, 4), 8), rnd("f32", (5, 4), 9), rnd("f32", (5,), 3), trans="b")
    run("trans_both", rnd("f32", (4, 3), 10), rnd("f32", (5, 4), 11), trans="ab")
    run("factors", rnd("f32", (3, 300), 12), rnd("f32", (300, 2), 13), rnd("f32", (2,), 14), 0.3, -1.7)
    run("no_k", lit("f32", [], (2, 0)), lit("f32", [], (0, 3)), rnd("f32", (3,), 15))
    run("no_rows", lit("f32", [], (0, 4)), rnd("f32", (4, 3), 16))
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (3, 7), 17), rnd(dt, (7, 3), 18), rnd(dt, (3,), 19), 0.5, 2.0)
    run("i32", rnd("i32", (2, 5), 20, -9.0, 9.0), rnd("i32", (5, 3), 21, -9.0, 9.0), rnd("i32", (3,), 22, -9.0, 9.0), 2.0)
    c.refuse("rank", ["f32[2,3,4]", "f32[4,5]"], "rank_mismatch", "a must have rank 2, found f32[2,3,4]")
    c.refuse("rank_b", ["f32[3,4]", "f32[4]"], "rank_mismatch", "b must have rank 2, found f32[4]")
    c.refuse("inner", ["f32[3,4]", "f32[5,4]"], "shape_mismatch", "inner dims differ: 4 of a f32[3,4] and 5 of b f32[5,4]")
    c.refuse("bias", ["f32[3,4]", "f32[4,5]", "f32[3]"], "shape_mismatch", "c f32[3] does not broadcast to [3,5]")
    c.refuse("dtypes", ["f32[3,4]", "f16[4,5]"], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("bias_dtype", ["f32[3,4]", "f32[4,5]", "f16[5]"], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("whole", ["i32[3,4]", "i32[4,5]"], "invalid_argument", "alpha must be whole for integers, found 0.5",
             "alpha=0.5")
    c.write()


@generator("matmul_integer")
def matmul_integer(op):
    c = Cases(op)

    def run(name, a, b, za=None, zb=None):
        x, y = a.a.astype(np.int32), b.a.astype(np.int32)
        if za is not None:
            x = x - (za.a.astype(np.int32)[:, None] if za.a.ndim == 1 and za.a.size > 1 else za.a.astype(np.int32))
        if zb is not None:
            y = y - zb.a.astype(np.int32)
        names = [n for n, t in (("a_zero_point", za), ("b_zero_point", zb)) if t is not None]
        c.run(name, [t for t in (a, b, za, zb) if t is not None], Tensor("i32", np.matmul(x, y)),
              f'with="{",".join(names)}"' if names else "")

    def some(dt, shape, seed):
        return rnd(dt, shape, seed, *((-128.0, 128.0) if dt == "i8" else (0.0, 256.0)))

    run("plain", some("u8", (3, 4), 1), some("i8", (4, 5), 2))
    run("both_zero_points", some("u8", (3, 4), 3), some("u8", (4, 5), 4), lit("u8", 12), lit("u8", [7]))
    run("a_zero_point", some("i8", (3, 4), 5), some("u8", (4, 5), 6), lit("i8", -3))
    run("b_zero_point", some("u8", (3, 4), 7), some("i8", (4, 5), 8), None, lit("i8", 9))
    run("per_row_and_column", some("u8", (3, 70), 9), some("i8", (70, 5), 10), some("u8", (3,), 11), some("i8", (5,), 12))
    run("batch", some("u8", (2, 3, 4), 13), some("i8", (2, 4, 5), 14), some("u8", (2, 3, 1), 15), some("i8", (2, 1, 5), 16))
    run("vectors", some("u8", (9,), 17), some("i8", (9,), 18), lit("u8", 1))
    run("extremes", lit("u8", [[255] * 300]), lit("i8", [[-128]] * 300))
    run("empty", lit("u8", [], (2, 0)), lit("i8", [], (0, 3)), lit("u8", 4))
    c.refuse("dtype", ["i32[2,3]", "u8[3,2]"], "dtype_mismatch", "a must have i8 or u8, found i32[2,3]")
    c.refuse("dtype_b", ["u8[2,3]", "f32[3,2]"], "dtype_mismatch", "b must have i8 or u8, found f32[3,2]")
    c.refuse("inner", ["u8[2,3]", "i8[2,3]"], "shape_mismatch", "inner dims differ: lhs u8[2,3] has 3, rhs i8[2,3] has 2")
    c.refuse("zero_dtype", ["u8[2,3]", "i8[3,2]", "i8[]"], "dtype_mismatch", "inputs must have one dtype, found u8[2,3] and i8[]",
             'with="a_zero_point"')
    c.refuse("zero_shape", ["u8[2,3]", "i8[3,2]", "u8[4]"], "shape_mismatch", "a_zero_point u8[4] does not fit u8[2,3]",
             'with="a_zero_point"')
    c.refuse("zero_shape_b", ["u8[2,3]", "i8[3,2]", "i8[3]"], "shape_mismatch", "b_zero_point i8[3] does not fit i8[3,2]",
             'with="b_zero_point"')
    c.refuse("names", ["u8[2,3]", "i8[3,2]", "i8[3]"], "invalid_argument",
             'with must name some of a_zero_point,b_zero_point in this order, found \\"zero\\"', 'with="zero"')
    c.refuse("count", ["u8[2,3]", "i8[3,2]", "i8[3]"], "invalid_argument",
             'expected 2 inputs and those of with=\\"\\", found 3')
    c.write()
