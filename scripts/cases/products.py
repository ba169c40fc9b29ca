"""Cases of contractions."""

import numpy as np

from cases.elementwise import TINY
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import chain, INF, is_float, NAN, near_f64, rounded


@generator("matmul")
def matmul(op):
    c = Cases(op)

    def run(name, a, b, to=None):
        x = a.w.reshape(1, -1) if a.a.ndim == 1 else a.w
        y = b.w.reshape(-1, 1) if b.a.ndim == 1 else b.w
        out = chain(np.moveaxis(x, -1, 0)[..., None], np.moveaxis(y, -2, 0)[..., None, :])
        if is_float(a.dt) and np.isfinite(a.w).all():
            near_f64(out, np.matmul(x.astype(np.float64), y.astype(np.float64)))
        if a.a.ndim == 1:
            out = out[..., 0, :]
        if b.a.ndim == 1:
            out = out[..., 0]
        c.run(name, [a, b], Tensor(to or a.dt, rounded(out, to or a.dt)), f"to={to}" if to else "")

    run("small", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2))
    run("odd", rnd("f32", (9, 17), 3), rnd("f32", (17, 13), 4))
    run("one_by_one", lit("f32", [[3.0]]), lit("f32", [[-0.5]]))
    run("row", rnd("f32", (1, 70), 5), rnd("f32", (70, 5), 6))
    run("column", rnd("f32", (5, 70), 7), rnd("f32", (70, 1), 8))
    run("one_segment", rnd("f32", (2, 256), 9), rnd("f32", (256, 3), 10))
    run("two_segments", rnd("f32", (2, 257), 11), rnd("f32", (257, 3), 12))
    run("three_segments", rnd("f32", (3, 600), 13), rnd("f32", (600, 4), 14))
    run("vectors", rnd("f32", (300,), 15), rnd("f32", (300,), 16))
    run("vector_matrix", rnd("f32", (7,), 17), rnd("f32", (7, 5), 18))
    run("matrix_vector", rnd("f32", (5, 7), 19), rnd("f32", (7,), 20))
    run("vector_batch", rnd("f32", (4,), 21), rnd("f32", (2, 3, 4, 5), 22))
    run("batch_vector", rnd("f32", (2, 3, 5, 4), 23), rnd("f32", (4,), 24))
    run("batch", rnd("f32", (2, 3, 4), 25), rnd("f32", (2, 4, 5), 26))
    run("batch_broadcast", rnd("f32", (2, 1, 3, 4), 27), rnd("f32", (5, 4, 2), 28))
    run("batch_and_matrix", rnd("f32", (3, 2, 4), 29), rnd("f32", (4, 3), 30))
    run("matrix_and_batch", rnd("f32", (2, 4), 31), rnd("f32", (3, 4, 2), 32))
    run("rank8", rnd("f32", (1, 2, 1, 1, 2, 1, 2, 3), 33), rnd("f32", (2, 1, 2, 1, 3, 2), 34))
    run("no_k", lit("f32", [], (2, 0)), lit("f32", [], (0, 3)))
    run("no_rows", lit("f32", [], (0, 4)), rnd("f32", (4, 3), 35))
    run("no_columns", rnd("f32", (2, 4), 36), lit("f32", [], (4, 0)))
    run("specials", lit("f32", [[INF, 0.0], [-0.0, 0.0], [NAN, 1.0], [3e38, 3e38], [TINY, 0.0]]),
        lit("f32", [[0.0, 1.0, 3e38], [1.0, -0.0, 0.5]]))
    run("f64", rnd("f64", (3, 300), 37), rnd("f64", (300, 2), 38))
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (3, 40), 39), rnd(dt, (40, 3), 40))
    for dt in ("f16", "bf16"):
        run(f"{dt}_to_f32", rnd(dt, (3, 300), 39), rnd(dt, (300, 3), 40), "f32")
        run(f"{dt}_to_f32_batch", rnd(dt, (2, 3, 9), 47), rnd(dt, (2, 9, 4), 48), "f32")
    # 300 · 300 is beyond the largest f16.
    run("f16_to_f32_beyond_f16", lit("f16", [[300.0, 1.0]]), lit("f16", [[300.0], [0.5]]), "f32")
    run("i32_wraps", rnd("i32", (2, 9), 41, -2e9, 2e9), rnd("i32", (9, 3), 42, -2e9, 2e9))
    run("i64_wraps", rnd("i64", (2, 9), 43, -9e18, 9e18), rnd("i64", (9, 3), 44, -9e18, 9e18))
    for dt in ("i8", "u16", "u32", "u64"):
        run(f"{dt}_wraps", rnd(dt, (2, 9), 45, 0.0, 127.0), rnd(dt, (9, 3), 46, 0.0, 127.0))
    c.refuse("inner", ["f32[8,64]", "f32[32,16]"], "shape_mismatch",
             "inner dims differ: lhs f32[8,64] has 64, rhs f32[32,16] has 32")
    c.refuse("inner_vector", ["f32[8,64]", "f32[8]"], "shape_mismatch",
             "inner dims differ: lhs f32[8,64] has 64, rhs f32[8] has 8")
    c.refuse("batch_dims", ["f32[2,3,4]", "f32[3,4,5]"], "shape_mismatch",
             "batch dims do not broadcast: lhs f32[2,3,4], rhs f32[3,4,5]")
    c.refuse("scalar", ["f32[]", "f32[2]"], "rank_mismatch",
             "operands must have rank 1 or more, found f32[] and f32[2]")
    c.refuse("dtypes", ["f32[2,2]", "f64[2,2]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2,2] and f64[2,2]")
    c.refuse_to(["[2,3]", "[3,2]"])
    c.refuse("bools", ["bool[2,2]", "bool[2,2]"], "dtype_mismatch",
             "lhs must have a float or integer dtype, found bool[2,2]")
    c.write()
