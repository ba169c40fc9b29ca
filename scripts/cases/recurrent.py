"""Cases of recurrent ops: contractions in their order; activations may be 1 ulp off, which the steps carry on."""

import numpy as np

from cases.contractions import product
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.norms import real
from cases.numerics import apply, exp_exact, log_exact, rounded, sigmoid_exact, tanh_exact

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
DEFAULTS = {"rnn": "tanh", "gru": "sigmoid,tanh", "lstm": "sigmoid,tanh,tanh"}
# Whether a function takes alpha and beta, and their defaults.
PARAMETERS = {"affine": (1.0, 0.0), "leakyrelu": (0.01, None), "thresholdedrelu": (1.0, None), "scaledtanh": (1.0, 1.0),
              "hardsigmoid": (0.2, 0.5), "elu": (1.0, None)}


def activation(name, alpha, beta, x, dt):
    t = x.dtype.type
    if name == "relu":
        return np.maximum(x, t(0))
    if name == "tanh":
        return apply(tanh_exact, x, dt)
    if name == "sigmoid":
        return apply(sigmoid_exact, x, dt)
    if name == "affine":
        return x * t(alpha) + t(beta)
    if name == "leakyrelu":
        return np.where(x < 0, x * t(alpha), x)
    if name == "thresholdedrelu":
        return np.where(x < t(alpha), t(0), x)
    if name == "scaledtanh":
        return apply(tanh_exact, x * t(beta), dt) * t(alpha)
    if name == "hardsigmoid":
        return np.minimum(np.maximum(x * t(alpha) + t(beta), t(0)), t(1))
    if name == "elu":
        return np.where(x < 0, (apply(exp_exact, x, dt) - t(1)) * t(alpha), x)
    if name == "softsign":
        return x / (np.abs(x) + t(1))
    assert name == "softplus"
    return np.maximum(x, t(0)) + apply(log_exact, apply(exp_exact, -np.abs(x), dt) + t(1), dt)


def functions(names, alphas, betas, clip, dt):
    alphas, betas, result = list(alphas), list(betas), []
    for name in names.lower().split(","):
        alpha, beta = PARAMETERS.get(name, (None, None))
        alpha = alphas.pop(0) if alpha is not None and alphas else alpha
        beta = betas.pop(0) if beta is not None and betas else beta

        def f(x, name=name, alpha=alpha, beta=beta):
            return activation(name, alpha, beta, np.clip(x, -clip, clip) if clip else x, dt)

        result.append(f)
    return result


def step(op, x, h, c, r, b, p, f, hidden, linear, coupled, dt):
    """x is x·Wᵀ plus its bias; b are the biases of h·Rᵀ."""
    t = x.dtype.type
    parts = lambda a: [a[..., i * hidden:(i + 1) * hidden] for i in range(a.shape[-1] // hidden)]
    if op == "rnn":
        return f[0](x + product(h, r.T, dt)), None
    if op == "gru":
        z, reset = parts(f[0](x[:, :2 * hidden] + product(h, r[:2 * hidden].T, dt)))
        if linear:
            inner = product(h, r[2 * hidden:].T, dt)
            inner = reset * (inner if b is None else inner + b[2 * hidden:])
        else:
            inner = product(reset * h, r[2 * hidden:].T, dt)
        return (t(1) - z) * f[1](x[:, 2 * hidden:] + inner) + z * h, None
    i, o, forget, cell = parts(x + product(h, r.T, dt))
    peep = parts(p) if p is not None else None
    i = f[0](i if peep is None else i + peep[0] * c)
    forget = t(1) - i if coupled else f[0](forget if peep is None else forget + peep[2] * c)
    new = forget * c + i * f[1](cell)
    o = f[0](o if peep is None else o + peep[1] * new)
    return o * f[2](new), new


def recurrent(op, x, w, r, named, direction, names, alphas, betas, clip, layout, linear, coupled):
    dt = real(x).dt
    t = real(x).a.dtype.type
    swap = (lambda a: np.swapaxes(a, 0, 1)) if layout else (lambda a: a)
    xs = swap(x.w)
    steps, batch, hidden = xs.shape[0], xs.shape[1], r.a.shape[2]
    directions = w.a.shape[0]
    f = functions(names, alphas, betas, clip, dt)
    count = len(f) // directions
    ys, hs, cs = [], [], []
    for d in range(directions):
        width = GATES[op] * hidden
        wb = rb = None
        if "b" in named:
            wb, rb = named["b"].w[d, :width], named["b"].w[d, width:]
        first = product(xs, w.w[d].T, dt)
        if wb is not None:
            bias = wb + rb
            if linear:
                bias = np.concatenate([bias[:2 * hidden], wb[2 * hidden:]])
            first = first + bias
        h = swap(named["initial_h"].w)[d] if "initial_h" in named else np.zeros((batch, hidden), t)
        c = swap(named["initial_c"].w)[d] if "initial_c" in named else np.zeros((batch, hidden), t)
        p = named["p"].w[d] if "p" in named else None
        y = np.zeros((steps, batch, hidden), t)
        order = range(steps)[::-1] if direction == "reverse" or d == 1 else range(steps)
        for i in order:
            nh, nc = step(op, first[i], h, c, r.w[d], rb, p, f[d * count:(d + 1) * count], hidden, linear, coupled, dt)
            alive = i < named["sequence_lens"].a[:, None] if "sequence_lens" in named else np.ones((batch, 1), bool)
            y[i] = np.where(alive, nh, t(0))
            h = np.where(alive, nh, h)
            c = np.where(alive, nc, c) if nc is not None else c
        ys.append(y)
        hs.append(h)
        cs.append(c)
    y, h, c = np.stack(ys, axis=1), np.stack(hs), np.stack(cs)
    results = [np.transpose(y, (2, 0, 1, 3)) if layout else y, swap(h)] + ([swap(c)] if op == "lstm" else [])
    return [Tensor(x.dt, rounded(a, x.dt)) for a in results]


def optional_names(op):
    return ["b", "sequence_lens", "initial_h"] + (["initial_c", "p"] if op == "lstm" else [])


@generator("rnn", "gru", "lstm")
def recurrent_cases(op):
    c = Cases(op)
    gates = GATES[op]

    def run(name, shape, dt="f32", direction="forward", given=(), lens=None, activations="", alphas=(), betas=(), clip=0.0,
            layout=0, linear=False, coupled=False):
        steps, batch, inputs, hidden = shape
        dirs = 2 if direction == "bidirectional" else 1
        lo, hi = -0.8, 0.8
        x = rnd(dt, (batch, steps, inputs) if layout else (steps, batch, inputs), 1)
        w, r = rnd(dt, (dirs, gates * hidden, inputs), 2, lo, hi), rnd(dt, (dirs, gates * hidden, hidden), 3, lo, hi)
        state = (batch, dirs, hidden) if layout else (dirs, batch, hidden)
        shapes = {"b": (dirs, 2 * gates * hidden), "initial_h": state, "initial_c": state, "p": (dirs, 3 * hidden)}
        named = {n: lit("i32", lens) if n == "sequence_lens" else rnd(dt, shapes[n], 4 + i, lo, hi)
                 for i, n in enumerate(optional_names(op)) if n in given or (n == "sequence_lens" and lens)}
        text = [f'with="{",".join(named)}"'] if named else []
        text += [f'direction="{direction}"'] if direction != "forward" else []
        text += [f'activations="{activations}"'] if activations else []
        text += [f"alphas={[float(a) for a in alphas]}"] if alphas else []
        text += [f"betas={[float(b) for b in betas]}"] if betas else []
        text += [f"clip={clip}"] if clip else []
        text += ["layout=1"] if layout else []
        text += (["linear_before_reset=true"] if linear else []) + (["input_forget=true"] if coupled else [])
        names = activations or ",".join([DEFAULTS[op]] * dirs)
        out = recurrent(op, x, w, r, named, direction, names, alphas, betas, clip, layout, linear, coupled)
        tol = {"f32": "ulp 8 abs 1e-6", "f64": "ulp 8 abs 1e-14"}.get(dt, "ulp 1 abs 1e-3")
        c.run(name, [x, w, r, *named.values()], out, ", ".join(text), tol)

    states = [n for n in optional_names(op) if n.startswith("initial")]
    small = (3, 2, 4, 5)
    run("plain", small)
    run("bias", small, given=["b"])
    run("initial", small, given=states)
    run("all", small, given=["b", *states])
    run("reverse", small, direction="reverse", given=["b"])
    run("bidirectional", small, direction="bidirectional", given=["b", *states])
    run("lengths", (4, 3, 2, 3), given=["b", *states], lens=[4, 0, 2])
    run("lengths_reverse", (4, 3, 2, 3), direction="reverse", given=states, lens=[1, 4, 2])
    run("lengths_bidirectional", (3, 2, 2, 3), direction="bidirectional", lens=[1, 3])
    run("batch_first", small, layout=1, given=["b", *states])
    run("batch_first_bidirectional", small, layout=1, direction="bidirectional", given=states)
    run("clip", small, given=["b"], clip=0.3)
    run("one_step", (1, 1, 1, 1), given=["b"])
    run("no_steps", (0, 2, 3, 4), given=states)
    run("no_batch", (2, 0, 3, 4))
    run("long_sums", (2, 1, 300, 7), given=["b"])
    if op == "rnn":
        run("many_steps", (40, 1, 1, 2), given=["b"])
    count = DEFAULTS[op].count(",") + 1
    for i, name in enumerate(("Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign",
                              "Softplus")):
        tail = DEFAULTS[op].split(",")[1:]
        run(name.lower(), (2, 1, 2, 2), activations=",".join([name, *tail]), alphas=(0.5,) if i % 2 else ())
    run("parameters", (2, 1, 2, 2), direction="bidirectional", activations=",".join(["HardSigmoid"] * (2 * count)),
        alphas=[0.1 * (k + 1) for k in range(2 * count)], betas=[0.05 * k for k in range(count)])
    if op == "gru":
        run("linear", small, given=["b", *states], linear=True)
        run("linear_without_bias", small, linear=True, direction="bidirectional")
    if op == "lstm":
        run("peepholes", small, given=["b", "p", *states])
        run("peepholes_bidirectional", small, given=["p"], direction="bidirectional", lens=[2, 3])
        run("coupled", small, given=["b", "p"], coupled=True)
    for dt in ("f64", "f16", "bf16"):
        run(dt, (2, 2, 3, 3), dt, given=["b", *states])
    refusals(c, op, gates, count)
    c.write()


def refusals(c, op, gates, count):
    x, w, r = "f32[3,2,4]", f"f32[1,{5 * gates},4]", f"f32[1,{5 * gates},5]"
    c.refuse("direction", [x, w, r], "invalid_argument", 'direction must be \\"forward\\", \\"reverse\\" or \\"bidirectional\\"',
             'direction="both"')
    c.refuse("directions", [x, w, r], "shape_mismatch", f"r must have shape [2,{5 * gates},5], found {r}",
             'direction="bidirectional"')
    c.refuse("layout", [x, w, r], "invalid_argument", "layout must be 0 or 1, found 2", "layout=2")
    c.refuse("negative_clip", [x, w, r], "invalid_argument", "clip must not be negative", "clip=-1.0")
    c.refuse("activation", [x, w, r], "invalid_argument", 'unknown activation \\"sine\\"', 'activations="Sine"')
    c.refuse("activations", [x, w, r], "invalid_argument", f"expected {count} activations, found {count + 1}",
             f'activations="{",".join(["tanh"] * (count + 1))}"')
    c.refuse("integers", [t.replace("f32", "i32") for t in (x, w, r)], "dtype_mismatch", "x must have a float dtype")
    c.refuse("rank", ["f32[3,4]", w, r], "rank_mismatch", "x must have rank 3, found f32[3,4]")
    c.refuse("dtypes", [x, w.replace("f32", "f16"), r], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("w_shape", [x, f"f32[1,{5 * gates},3]", r], "shape_mismatch", f"w must have shape [1,{5 * gates},4]")
    c.refuse("b_shape", [x, w, r, "f32[1,3]"], "shape_mismatch", f"b must have shape [1,{10 * gates}], found f32[1,3]", 'with="b"')
    c.refuse("state_shape", [x, w, r, "f32[2,1,5]"], "shape_mismatch", "initial_h must have shape [1,2,5], found f32[2,1,5]",
             'with="initial_h"')
    c.refuse("lens_shape", [x, w, r, "i32[3]"], "shape_mismatch", "sequence_lens must have shape [2], found i32[3]",
             'with="sequence_lens"')
    c.refuse("lens_dtype", [x, w, r, "f32[2]"], "dtype_mismatch", "sequence_lens must have i32 or i64, found f32[2]",
             'with="sequence_lens"')
    c.refuse("names", [x, w, r, r], "invalid_argument", 'in this order, found \\"q\\"', 'with="q"')
    c.refuse("long", ["f32[5000,2,4]", w, r], "unsupported", "sequences longer than 4096 are not unrolled")
    if op == "lstm":
        c.refuse("p_shape", [x, w, r, "f32[1,5]"], "shape_mismatch", "p must have shape [1,15], found f32[1,5]", 'with="p"')
