"""Cases of products made of others: gemm, integer products, einsum."""

import numpy as np

from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import chain, is_float, near_f64, rounded, tree_sum


def product(a, b, dt):
    """The matrix product by the rules of contractions, rounded to dt."""
    out = chain(np.moveaxis(a, -1, 0)[..., None], np.moveaxis(b, -2, 0)[..., None, :])
    if is_float(dt) and np.isfinite(a).all() and np.isfinite(b).all():
        near_f64(out, np.matmul(a.astype(np.float64), b.astype(np.float64)))
    return rounded(out, dt)


@generator("gemm")
def gemm(op):
    c = Cases(op)

    def run(name, a, b, bias=None, alpha=1.0, beta=1.0, trans="", to=None):
        dt, w = a.dt, a.w.dtype.type
        step = "f32" if dt in ("f16", "bf16") else dt  # halves are rounded once, at the end
        y = product(a.w.T if "a" in trans else a.w, b.w.T if "b" in trans else b.w, step)
        if alpha != 1.0:
            y = rounded(y.astype(w) * w(alpha), step)
        if bias is not None:
            scaled = bias.w if beta == 1.0 else rounded(bias.w * w(beta), step)
            y = rounded(y.astype(w) + scaled.astype(w), step)
        y = rounded(y, to or dt)
        attrs = [f"trans_{t}=true" for t in trans]
        attrs += [] if alpha == 1.0 else [f"alpha={alpha}"]
        attrs += [] if beta == 1.0 else [f"beta={beta}"]
        attrs += [f"to={to}"] if to else []
        c.run(name, [t for t in (a, b, bias) if t is not None], Tensor(to or dt, y), ", ".join(attrs))

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
    for dt in ("f16", "bf16"):
        run(f"{dt}_rounded_once", rnd(dt, (4, 70), 26), rnd(dt, (70, 5), 27), rnd(dt, (5,), 28), 0.3, 1.7)
        run(f"{dt}_to_f32", rnd(dt, (4, 70), 26), rnd(dt, (70, 5), 27), rnd(dt, (5,), 28), 0.3, 1.7, to="f32")
        run(f"{dt}_to_f32_plain", rnd(dt, (7, 4), 29), rnd(dt, (7, 5), 30), trans="a", to="f32")
    run("i32", rnd("i32", (2, 5), 20, -9.0, 9.0), rnd("i32", (5, 3), 21, -9.0, 9.0), rnd("i32", (3,), 22, -9.0, 9.0), 2.0)
    for dt in ("u8", "i16", "u32", "u64"):
        run(dt, rnd(dt, (2, 5), 23, 0.0, 99.0), rnd(dt, (5, 3), 24, 0.0, 99.0), rnd(dt, (3,), 25, 0.0, 99.0), 2.0)
    c.refuse("bools", ["bool[3,4]", "bool[4,5]"], "dtype_mismatch",
             "a must have a float or integer dtype, found bool[3,4]")
    c.refuse("rank", ["f32[2,3,4]", "f32[4,5]"], "rank_mismatch", "a must have rank 2, found f32[2,3,4]")
    c.refuse("rank_b", ["f32[3,4]", "f32[4]"], "rank_mismatch", "b must have rank 2, found f32[4]")
    c.refuse("inner", ["f32[3,4]", "f32[5,4]"], "shape_mismatch", "inner dims differ: 4 of a f32[3,4] and 5 of b f32[5,4]")
    c.refuse("bias", ["f32[3,4]", "f32[4,5]", "f32[3]"], "shape_mismatch", "c f32[3] does not broadcast to [3,5]")
    c.refuse("dtypes", ["f32[3,4]", "f16[4,5]"], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("bias_dtype", ["f32[3,4]", "f32[4,5]", "f16[5]"], "dtype_mismatch", "inputs must have one dtype")
    c.refuse_to(["[3,4]", "[4,5]"])
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


def letters_of(equation):
    left, right = equation.split("->")
    return left.split(","), right


def contracted(equation, inputs, to=None):
    """One or two operands: the terms of each result as rows, summed in the order of the contract."""
    terms, result = letters_of(equation)
    every = dict.fromkeys("".join(terms))
    summed = [k for k in every if k not in result]
    extent = {k: 1 for k in every}
    for letters, x in zip(terms, inputs):
        for k, d in zip(letters, x.a.shape):
            extent[k] = d if extent[k] == 1 else extent[k]
    order = summed + list(result)
    wide = []
    for letters, x in zip(terms, inputs):
        a = x.w
        once = dict.fromkeys(letters)
        for k in once:
            at = [i for i, m in enumerate(letters) if m == k]
            while len(at) > 1:
                a = np.moveaxis(np.diagonal(a, axis1=at[0], axis2=at[1]), -1, at[0])
                letters = letters[:at[1]] + letters[at[1] + 1:]
                at = [i for i, m in enumerate(letters) if m == k]
        a = np.transpose(a, [letters.index(k) for k in order if k in letters])
        a = a.reshape([a.shape[[m for m in order if m in letters].index(k)] if k in letters else 1 for k in order])
        wide.append(np.broadcast_to(a, [extent[k] for k in order]))
    shape = [extent[k] for k in result]
    rows = [a.reshape([-1] + shape) if a.size else a.reshape([int(np.prod(a.shape[:len(summed)]))] + shape) for a in wide]
    dt = inputs[0].dt
    if not summed:
        y = rows[0] if len(rows) == 1 else rows[0] * rows[1]
        y = y.reshape(shape)
    elif len(rows) == 2:
        y = chain(rows[0], rows[1])
    else:
        y = tree_sum(rows[0]) if is_float(dt) else np.sum(rows[0], axis=0, dtype=rows[0].dtype)
    return Tensor(to or dt, rounded(y.astype(inputs[0].w.dtype), to or dt))


def check_einsum(equation, inputs, out):
    if all(np.isfinite(x.w).all() for x in inputs) and is_float(out.dt):
        truth = np.einsum(equation, *(x.a.astype(np.float64) for x in inputs))
        near_f64(out.w, truth, 1e-5 if inputs[0].dt in ("f32", "f64") else 1e-2)


@generator("contract")
def contract(op):
    c = Cases(op)

    def run(name, equation, *inputs, to=None):
        out = contracted(equation, inputs, to)
        check_einsum(equation, inputs, out)
        c.run(name, list(inputs), out, f'equation="{equation}"' + (f", to={to}" if to else ""))

    run("matrix", "ij,jk->ik", rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2))
    run("transposed", "ji,kj->ki", rnd("f32", (4, 3), 1), rnd("f32", (5, 4), 2))
    run("batch", "bij,bjk->bik", rnd("f32", (2, 3, 4), 3), rnd("f32", (2, 4, 5), 4))
    run("segments", "ij,jk->ik", rnd("f32", (2, 300), 5), rnd("f32", (300, 3), 6))
    run("two_summed", "iab,abj->ij", rnd("f32", (3, 4, 5), 7), rnd("f32", (4, 5, 2), 8))
    run("summed_in_another_order", "iab,baj->ij", rnd("f32", (3, 4, 5), 7), rnd("f32", (5, 4, 2), 8))
    run("dot", "i,i->", rnd("f32", (70,), 9), rnd("f32", (70,), 10))
    run("outer", "i,j->ij", rnd("f32", (3,), 11), rnd("f32", (4,), 12))
    run("elementwise", "ij,ij->ji", rnd("f32", (3, 4), 13), rnd("f32", (3, 4), 14))
    run("one_side_summed", "ij,k->k", rnd("f32", (3, 4), 15), rnd("f32", (5,), 16))
    run("broadcast", "ij,jk->ik", rnd("f32", (3, 1), 17), rnd("f32", (4, 5), 18))
    run("sum", "ij->i", rnd("f32", (3, 90), 19))
    run("sum_all", "ij->", rnd("f32", (30, 40), 20))
    run("diagonal", "ii->i", rnd("f32", (4, 4), 21))
    run("trace", "ii->", rnd("f32", (4, 4), 22))
    run("diagonal_product", "iij,jk->ik", rnd("f32", (3, 3, 4), 23), rnd("f32", (4, 2), 24))
    run("permutation", "ijk->kij", rnd("f32", (2, 3, 4), 25))
    run("scalars", ",->", lit("f32", 3.0), lit("f32", -2.0))
    run("no_terms", "ij,jk->ik", lit("f32", [], (2, 0)), lit("f32", [], (0, 3)))
    run("no_results", "ij,jk->ik", lit("f32", [], (0, 2)), rnd("f32", (2, 3), 26))
    for dt in ("f64", "f16", "bf16"):
        run(dt, "ij,kj->ik", rnd(dt, (3, 9), 27), rnd(dt, (2, 9), 28))
    for dt in ("f16", "bf16"):
        run(f"{dt}_to_f32", "ij,kj->ik", rnd(dt, (3, 300), 27), rnd(dt, (2, 300), 28), to="f32")
        run(f"{dt}_to_f32_outer", "i,j->ji", rnd(dt, (3,), 32), rnd(dt, (4,), 33), to="f32")
        run(f"{dt}_to_f32_sum", "ij->i", rnd(dt, (3, 90), 34), to="f32")
    run("i32", "ij,jk->ik", rnd("i32", (2, 9), 29, -2e9, 2e9), rnd("i32", (9, 3), 30, -2e9, 2e9))
    run("u8_sum", "ij->i", rnd("u8", (2, 9), 31, 0.0, 255.0))
    c.refuse_to(["[2,3]", "[3,2]"], 'equation="ij,jk->ik"')
    c.refuse("malformed", ["f32[2]", "f32[2]"], "invalid_argument", 'malformed equation \\"i,i\\"', 'equation="i,i"')
    c.refuse("dots", ["f32[2]"], "invalid_argument", "malformed equation", 'equation="...->"')
    c.refuse("result", ["f32[2]"], "invalid_argument", "must name dims of the operands, each once", 'equation="i->j"')
    c.refuse("result_twice", ["f32[2]"], "invalid_argument", "must name dims of the operands, each once", 'equation="i->ii"')
    c.refuse("count", ["f32[2]"], "invalid_argument", 'equation \\"i,i->\\" has 2 operands, found 1', 'equation="i,i->"')
    c.refuse("rank", ["f32[2,3]"], "rank_mismatch", '\\"i\\" needs rank 1, found f32[2,3]', 'equation="i->i"')
    c.refuse("extents", ["f32[2,3]", "f32[4]"], "shape_mismatch", "index j has extents 3 and 4", 'equation="ij,j->i"')
    c.refuse("dtypes", ["f32[2]", "f16[2]"], "dtype_mismatch", "inputs must have one dtype", 'equation="i,i->"')
    c.refuse("bools", ["bool[2]"], "dtype_mismatch", "lhs must have a float or integer dtype", 'equation="i->"')
    c.write()


@generator("einsum")
def einsum(op):
    c = Cases(op)

    def run(name, equation, steps, *inputs, to=None):
        """steps: pairs by index of value and the plain equation that joins them; values are appended."""
        values = list(inputs)
        for at, plain in steps:
            last = len(values) + 1 == len(inputs) + len(steps)
            values.append(contracted(plain, [values[i] for i in at], to if last else None))
        # Numpy itself does not sum over what dots stand for.
        check_einsum(steps[0][1] if name == "dots_summed" else equation, inputs, values[-1])
        c.run(name, list(inputs), values[-1], f'equation="{equation}"' + (f", to={to}" if to else ""))

    a, b, d = rnd("f32", (3, 4), 1), rnd("f32", (4, 5), 2), rnd("f32", (5, 2), 3)
    run("matrix", "ij,jk->ik", [((0, 1), "ij,jk->ik")], a, b)
    run("implicit", "ij,jk", [((0, 1), "ij,jk->ik")], a, b)
    run("implicit_is_sorted", "ba", [((0,), "ba->ab")], a)
    run("implicit_upper_first", "bA", [((0,), "bA->Ab")], a)
    run("blanks", " i j , j k -> i k ", [((0, 1), "ij,jk->ik")], a, b)
    run("three", "ij,jk,kl->il", [((0, 1), "ij,jk->ik"), ((3, 2), "ik,kl->il")], a, b, d)
    run("bilinear", "bi,ij,bj->b", [((0, 1), "bi,ij->bj"), ((3, 2), "bj,bj->b")], rnd("f32", (2, 4), 4), b, rnd("f32", (2, 5), 5))
    run("kept_for_later", "i,i,i->i", [((0, 1), "i,i->i"), ((3, 2), "i,i->i")], *(rnd("f32", (6,), s) for s in (6, 7, 8)))
    run("dots", "...ij,...jk->...ik", [((0, 1), "bij,bjk->bik")], rnd("f32", (2, 3, 4), 9), rnd("f32", (2, 4, 5), 10))
    run("dots_broadcast", "...ij,...jk->...ik", [((0, 1), "abij,bjk->abik")], rnd("f32", (2, 1, 3, 4), 11), rnd("f32", (3, 4, 5), 12))
    run("dots_of_none", "...i,i...->...", [((0, 1), "i,i->")], rnd("f32", (9,), 13), rnd("f32", (9,), 14))
    run("dots_summed", "...i->i", [((0,), "abi->i")], rnd("f32", (2, 3, 4), 15))
    run("dots_implicit", "...ij", [((0,), "aij->aij")], rnd("f32", (2, 3, 4), 16))
    run("dots_in_the_middle", "i...j->j...i", [((0,), "iabj->jabi")], rnd("f32", (2, 3, 2, 4), 17))
    run("trace", "ii", [((0,), "ii->")], rnd("f32", (4, 4), 18))
    run("diagonal", "...ii->...i", [((0,), "aii->ai")], rnd("f32", (2, 4, 4), 19))
    run("scalar", ",i->i", [((0, 1), ",i->i")], lit("f32", 2.0), rnd("f32", (5,), 20))
    run("empty", "ij,jk->ik", [((0, 1), "ij,jk->ik")], lit("f32", [], (2, 0)), lit("f32", [], (0, 3)))
    for dt in ("f64", "f16", "i64"):
        run(dt, "ij,kj->ik", [((0, 1), "ij,kj->ik")], rnd(dt, (3, 9), 21, -9.0, 9.0), rnd(dt, (2, 9), 22, -9.0, 9.0))
    for dt in ("f16", "bf16"):
        run(f"{dt}_to_f32", "ij,kj->ik", [((0, 1), "ij,kj->ik")], rnd(dt, (3, 300), 23), rnd(dt, (2, 300), 24), to="f32")
        # What is joined first is rounded: it is an operand of the last product.
        run(f"{dt}_to_f32_three", "ij,jk,kl->il", [((0, 1), "ij,jk->ik"), ((3, 2), "ik,kl->il")],
            rnd(dt, (3, 40), 25), rnd(dt, (40, 5), 26), rnd(dt, (5, 2), 27), to="f32")
    c.refuse_to(["[2,3]", "[3,2]"], 'equation="ij,jk->ik"')
    c.refuse("letters", ["f32[2]"], "invalid_argument", 'malformed equation \\"1->1\\"', 'equation="1->1"')
    c.refuse("arrow", ["f32[2]"], "invalid_argument", "malformed equation", 'equation="i-i"')
    c.refuse("two_dots", ["f32[2]"], "invalid_argument", "malformed equation", 'equation="i..->i"')
    c.refuse("result", ["f32[2]"], "invalid_argument", "malformed equation", 'equation="i->j"')
    c.refuse("count", ["f32[2]"], "invalid_argument", 'equation \\"i,i->\\" has 2 operands, found 1', 'equation="i,i->"')
    c.refuse("rank", ["f32[2,3]"], "rank_mismatch", '\\"i\\" needs rank 1, found f32[2,3]', 'equation="i->i"')
    c.refuse("dots_rank", ["f32[2]"], "rank_mismatch", '\\"ij\\" names more dims than there are: 1', 'equation="...ij->i"')
    c.refuse("extents", ["f32[2,3]", "f32[4]"], "shape_mismatch", "index j has extents 3 and 4", 'equation="ij,j->i"')
    c.refuse("dtypes", ["f32[2]", "f16[2]"], "dtype_mismatch", "inputs must have one dtype", 'equation="i,i->"')
    c.refuse("bools", ["bool[2]"], "dtype_mismatch", "the first operand must have a float or integer dtype", 'equation="i->"')
    c.write()


@generator("det")
def det(op):
    c = Cases(op, "Against numpy's determinant in f64.")

    def run(name, x, tol="ulp 16 abs 2e-5"):
        c.run(name, [x], Tensor(x.dt, rounded(np.asarray(np.linalg.det(x.a.astype(np.float64))), x.dt)), "", tol)

    for n in (1, 2, 3, 5):
        run(f"n{n}", rnd("f32", (n, n), n))
    run("batch", rnd("f32", (2, 3, 4, 4), 20))
    run("exchanges", lit("f32", [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]), "")
    run("one_exchange", lit("f32", [[0.0, 1.0], [1.0, 0.0]]), "")
    run("singular", lit("f32", [[1.0, 2.0], [2.0, 4.0]]), "ulp 1")
    run("zeros", lit("f32", [[0.0, 0.0, 0.0]] * 3), "")
    run("no_rows", lit("f32", [], (2, 0, 0)), "")
    run("no_matrices", lit("f32", [], (0, 3, 3)), "")
    run("f64", rnd("f64", (2, 4, 4), 21), "abs 1e-12")
    run("f16", rnd("f16", (3, 3), 22), "ulp 2")
    c.refuse("integers", ["i32[2,2]"], "dtype_mismatch", "x must have a float dtype")
    c.refuse("square", ["f32[2,3]"], "shape_mismatch", "x must be square in its last dims, found f32[2,3]")
    c.refuse("rank", ["f32[3]"], "shape_mismatch", "x must be square in its last dims, found f32[3]")
    c.refuse("large", ["f32[200,200]"], "unsupported", "matrices of more than 128 rows, found f32[200,200]")
    c.write()
