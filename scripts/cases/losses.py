"""Cases of losses and steps of optimizers."""

import numpy as np

from cases.files import Cases, generator, lit, rnd, Tensor
from cases.norms import real
from cases.numerics import apply, exp_exact, log_exact, NARROW, rounded
from cases.sums import reduce_op

SHAPES = [("vector", (5, 3)), ("sequence", (2, 4, 3)), ("image", (2, 3, 4, 5)), ("rank5", (1, 3, 2, 1, 2)), ("one", (1, 1))]


def targets(shape, seed, dt="i64"):
    return rnd(dt, shape[:1] + shape[2:], seed, 0.0, float(shape[1]))


def terms_of(x, target, weight, ignore):
    w = real(x).a
    safe = np.where(target.a == ignore, 0, target.a) if ignore is not None else target.a
    picked = -np.take_along_axis(w, safe[:, None].astype(np.int64), axis=1)[:, 0] if target.a.size else np.zeros(target.a.shape, w.dtype)
    factor = np.ones(target.a.shape, w.dtype) if weight is None else weight.w[safe]
    loss = picked if weight is None else factor * picked
    if ignore is not None:
        loss, factor = (np.where(target.a == ignore, w.dtype.type(0), a) for a in (loss, factor))
    return Tensor(real(x).dt, loss), Tensor(real(x).dt, factor)


def loss_of(x, target, weight, ignore, reduction):
    loss, factor = terms_of(x, target, weight, ignore)
    if reduction == "none":
        return loss.a
    if reduction == "mean" and weight is None and ignore is None:
        return reduce_op("mean", loss, [], False)
    total = reduce_op("sum", loss, [], False)
    return total if reduction == "sum" else total / reduce_op("sum", factor, [], False)


def log_softmax(x):
    w = real(x)
    shifted = w.a - reduce_op("max", w, [1])
    s = reduce_op("sum", Tensor(w.dt, apply(exp_exact, shifted, w.dt)), [1])
    return Tensor(w.dt, shifted - apply(log_exact, s, w.dt))


def loss_cases(c, run):
    for name, shape in SHAPES:
        run(name, rnd("f32", shape, 1), targets(shape, 2))
    shape = (2, 4, 3)
    x, target, weight = rnd("f32", shape, 3), targets(shape, 4), rnd("f32", (4,), 5, 0.1, 2.0)
    for reduction in ("none", "sum", "mean"):
        run(f"{reduction}_plain", x, target, reduction=reduction)
        run(f"{reduction}_weight", x, target, weight, reduction=reduction)
        run(f"{reduction}_ignore", x, target, ignore=2, reduction=reduction)
        run(f"{reduction}_weight_ignore", x, target, weight, 1, reduction)
    run("ignore_outside", x, lit("i64", [[-5, 0, 3], [1, -5, 2]]), weight, -5)
    run("i32_targets", rnd("f32", (5, 3), 6), targets((5, 3), 7, "i32"))
    run("empty", lit("f32", [], (0, 3)), lit("i64", [], (0,)), reduction="sum")
    run("long", rnd("f32", (1100, 3), 8), targets((1100, 3), 9))
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, shape, 10), target, rnd(dt, (4,), 11, 0.1, 2.0))


def loss_refusals(c, reduces=True):
    x, t = "f32[2,4,3]", "i64[2,3]"
    c.fail("target_range", [rnd("f32", (2, 3), 1), lit("i64", [0, 3])], "target out of range")
    c.fail("target_negative", [rnd("f32", (2, 3), 1), lit("i64", [0, -1])], "target out of range")
    c.refuse("integers", ["i32[2,4,3]", t], "dtype_mismatch", "x must have a float dtype")
    c.refuse("target_dtype", [x, "f32[2,3]"], "dtype_mismatch", "target must have i32 or i64, found f32[2,3]")
    c.refuse("rank", ["f32[4]", "i64[]"], "rank_mismatch", "x must have rank 2 or more, found f32[4]")
    c.refuse("target_shape", [x, "i64[2,4]"], "shape_mismatch", "target must have shape [2,3], found i64[2,4]")
    c.refuse("no_classes", ["f32[2,0]", "i64[2]"], "shape_mismatch", "x f32[2,0] has no classes")
    c.refuse("weight_dtype", [x, t, "f16[4]"], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("weight_shape", [x, t, "f32[3]"], "shape_mismatch", "weight must have shape [4], found f32[3]")
    if reduces:
        c.refuse("reduction", [x, t], "invalid_argument", 'reduction must be \\"none\\", \\"sum\\" or \\"mean\\", found \\"max\\"',
                 'reduction="max"')


def attrs_of(ignore, reduction="mean"):
    return ", ".join(([] if ignore is None else [f"ignore_index={ignore}"]) + ([] if reduction == "mean" else [f'reduction="{reduction}"']))


@generator("nll_terms")
def nll_terms(op):
    c = Cases(op)
    for name, shape in SHAPES:
        for extra in ("", "_weight", "_ignore", "_weight_ignore"):
            x, target = rnd("f32", shape, 1), targets(shape, 2)
            weight = rnd("f32", shape[1:2], 3) if "weight" in extra else None
            ignore = 0 if "ignore" in extra else None
            c.run(name + extra, [t for t in (x, target, weight) if t is not None], list(terms_of(x, target, weight, ignore)),
                  attrs_of(ignore))
    for dt in ("f64", "f16", "bf16"):
        x, target, weight = rnd(dt, (2, 4, 3), 4), targets((2, 4, 3), 5), rnd(dt, (4,), 6)
        c.run(dt, [x, target, weight], list(terms_of(x, target, weight, None)))
    loss_refusals(c, False)
    c.write()


@generator("nll_loss")
def nll_loss(op):
    c = Cases(op)

    def run(name, x, target, weight=None, ignore=None, reduction="mean"):
        y = Tensor(x.dt, rounded(np.asarray(loss_of(x, target, weight, ignore, reduction)), x.dt))
        c.run(name, [t for t in (x, target, weight) if t is not None], y, attrs_of(ignore, reduction))

    loss_cases(c, run)
    loss_refusals(c)
    c.write()


@generator("softmax_cross_entropy_loss")
def softmax_cross_entropy_loss(op):
    c = Cases(op, "exp and log may be 1 ulp off.")

    def run(name, x, target, weight=None, ignore=None, reduction="mean"):
        p = log_softmax(x)
        y = loss_of(p, target, None if weight is None else real(weight), ignore, reduction)
        out = [Tensor(x.dt, rounded(np.asarray(a), x.dt)) for a in (y, p.a)]
        c.run(name, [t for t in (x, target, weight) if t is not None], out, attrs_of(ignore, reduction),
              "ulp 1 abs 1e-3" if x.dt in NARROW else "ulp 4 abs 1e-6")

    loss_cases(c, run)
    loss_refusals(c)
    c.write()


def optimizer_refusals(c, states, attrs=""):
    tail = ["f32[3]"] * (2 + states)
    c.refuse("rate", ["i32[]", "i64[]"] + tail, "dtype_mismatch", "rate must have a float dtype, found i32[]", attrs)
    c.refuse("rate_shape", ["f32[2]", "i64[]"] + tail, "shape_mismatch", "rate must be a scalar, found f32[2]", attrs)
    c.refuse("step", ["f32[]", "f32[]"] + tail, "dtype_mismatch", "step must have i32 or i64, found f32[]", attrs)
    c.refuse("step_shape", ["f32[]", "i64[3]"] + tail, "shape_mismatch", "step must be a scalar, found i64[3]", attrs)
    c.refuse("integers", ["f32[]", "i64[]"] + ["i32[3]"] * (2 + states), "dtype_mismatch", "x must have a float dtype", attrs)
    c.refuse("state", ["f32[]", "i64[]"] + tail[:-1] + ["f32[4]"], "shape_mismatch",
             "gradient and states must be like x f32[3], found f32[4]", attrs)


@generator("momentum", "adagrad", "adam")
def optimizers(op):
    c = Cases(op)
    states = 2 if op == "adam" else 1
    needed = "alpha=0.9, beta=0.5" if op == "momentum" else ""

    def run(name, t, dt="f32", shape=(3, 5), attrs=None, one=False):
        a = dict({"momentum": {"alpha": 0.9, "beta": 0.5}}.get(op, {}), **(attrs or {}))
        rate = lit(dt, [0.1] if one else 0.1)
        step = lit("i64", [t] if one else t)
        x, g = rnd(dt, shape, 1), rnd(dt, shape, 2)
        state = [rnd(dt, shape, 3 + i, 0.0, 2.0) for i in range(states)]
        w = real(x).a.dtype.type
        r = real(rate).a.reshape(())
        xs, gs, ss = x.w, g.w, [s.w for s in state]
        norm = a.get("norm_coefficient", 0.0)
        if norm:
            gs = xs * w(norm) + gs
        if op == "momentum":
            share = w(a["beta"]) if t > 0 else w(1)
            v = ss[0] * w(a["alpha"]) + share * gs
            way = gs + v * w(a["alpha"]) if a.get("mode") == "nesterov" else v
            out = [xs - r * way, v]
        elif op == "adagrad":
            slower = w(t) * w(a.get("decay_factor", 0.0)) + w(1)
            h = ss[0] + gs * gs
            out = [xs - (r / slower) * gs / (np.sqrt(h) + w(a.get("epsilon", 1e-6))), h]
        else:
            alpha, beta = a.get("alpha", 0.9), a.get("beta", 0.999)
            v = ss[0] * w(alpha) + gs * w(1.0 - alpha)
            h = ss[1] * w(beta) + (gs * gs) * w(1.0 - beta)
            full = float(rate.a.reshape(()))
            adjusted = w(full * np.sqrt(1 - beta ** t) / (1 - alpha ** t)) if t > 0 else r
            moved = xs - adjusted * (v / (np.sqrt(h) + w(a.get("epsilon", 1e-6))))
            out = [moved * w(1.0 - a.get("norm_coefficient_post", 0.0)), v, h]
        text = ", ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v!r}" for k, v in a.items())
        c.run(name, [rate, step, x, g, *state], [Tensor(dt, rounded(y, dt)) for y in out], text,
              "ulp 2 abs 1e-7" if op == "adam" else "")

    run("first", 0)
    run("later", 3)
    run("many", 1000)
    run("vectors_of_one", 3, one=True)
    run("norm", 2, attrs={"norm_coefficient": 0.01})
    if op == "momentum":
        run("nesterov", 2, attrs={"mode": "nesterov", "norm_coefficient": 0.01})
        run("nesterov_first", 0, attrs={"mode": "nesterov"})
        c.refuse("mode", ["f32[]", "i64[]"] + ["f32[3]"] * 3, "invalid_argument",
                 'mode must be \\"standard\\" or \\"nesterov\\", found \\"fast\\"', needed + ', mode="fast"')
    if op == "adagrad":
        run("decay", 5, attrs={"decay_factor": 0.1, "epsilon": 0.001})
    if op == "adam":
        run("post", 2, attrs={"norm_coefficient_post": 0.1, "alpha": 0.5, "beta": 0.75, "epsilon": 0.01})
    run("scalar", 1, shape=())
    run("empty", 1, shape=(0, 2))
    for dt in ("f64", "f16", "bf16"):
        run(dt, 2, dt)
    optimizer_refusals(c, states, needed)
    c.write()
