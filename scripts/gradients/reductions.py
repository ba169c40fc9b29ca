"""Reductions, norms, softmaxes and losses."""

import math

import numpy as np

from gradients.elementwise import rnd


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def norm(x, axes, eps):
    m = x.mean(axes, keepdims=True)
    return (x - m) / np.sqrt(((x - m) ** 2).mean(axes, keepdims=True) + eps)


def nll(x, t, w=None, ignore=None, reduction="mean"):
    keep = np.ones(t.shape) if ignore is None else (t != ignore).astype(float)
    safe = np.where(keep > 0, t, 0)
    factor = keep * (1 if w is None else w[safe])
    terms = -factor * np.take_along_axis(x, safe[:, None], 1)[:, 0]
    return terms if reduction == "none" else terms.sum() if reduction == "sum" else terms.sum() / factor.sum()


def write(f):
    forms = {
        "reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
        "reduce_l1": lambda x, **k: np.abs(x).sum(**k), "reduce_l2": lambda x, **k: np.sqrt((x * x).sum(**k)),
        "reduce_log_sum": lambda x, **k: np.log(x.sum(**k)), "reduce_log_sum_exp": lambda x, **k: np.log(np.exp(x).sum(**k)),
        "reduce_sum_square": lambda x, **k: (x * x).sum(**k),
    }
    for op, forward in forms.items():
        f.smooth(op, f"{op} {{axes=[1]}}", [rnd((2, 3, 2), f.count, 0.3, 2)], lambda x, r=forward: r(x, axis=1, keepdims=True))
        f.smooth(op + "_two_axes", f"{op} {{axes=[0,-1], keepdims=false}}", [rnd((2, 3, 2), f.count, 0.3, 2)],
                 lambda x, r=forward: r(x, axis=(0, 2)))
        f.smooth(op + "_all", f"{op} {{keepdims=false}}", [rnd((2, 3), f.count, 0.3, 2)], lambda x, r=forward: r(x))
    f.closed("reduce_max_shares_ties_evenly", "reduce_max {axes=[1], keepdims=false}", [[[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]], [[6.0, 3.0]],
             [[[0, 3, 3], [1, 1, 1]]])
    f.closed("reduce_min_shares_ties_evenly", "reduce_min {axes=[1], keepdims=false}", [[[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]]], [[6.0, 3.0]],
             [[[3, 3, 0], [1, 1, 1]]])
    f.closed("reduce_prod_with_one_zero", "reduce_prod {keepdims=false}", [[2.0, 0.0, 3.0]], [2.0], [[0, 12, 0]])
    f.closed("reduce_prod_with_two_zeros", "reduce_prod {keepdims=false}", [[2.0, 0.0, 0.0]], [2.0], [[0, 0, 0]])
    f.closed("reduce_l2_of_zeros", "reduce_l2 {axes=[1], keepdims=false}", [[[0.0, 0.0], [3.0, 4.0]]], [[1.0, 5.0]], [[[0, 0], [3, 4]]])
    f.closed("reduce_l1_at_zero", "reduce_l1 {keepdims=false}", [[0.0, -2.0, 3.0]], [2.0], [[0, -2, 2]])
    f.closed("reduce_log_sum_exp_of_masked", "reduce_log_sum_exp {axes=[1], keepdims=false}",
             [[[-math.inf, -math.inf], [-math.inf, 1.0]]], [[1.0, 2.0]], [[[0, 0], [0, 2]]])
    f.closed("reduce_sum_of_nothing", "reduce_sum {axes=[1], keepdims=false}", [np.zeros((2, 0))], [[1.0, 2.0]], [np.zeros((2, 0))])
    f.closed("reduce_max_of_nothing", "reduce_max {axes=[1], keepdims=false}", [np.zeros((2, 0))], [[1.0, 2.0]], [np.zeros((2, 0))])
    f.smooth("cumsum", "cumsum {axis=1}", [rnd((2, 4), f.count)], lambda x: np.cumsum(x, 1))
    f.smooth("cumsum_reverse", "cumsum {axis=0, reverse=true}", [rnd((3, 2), f.count)], lambda x: np.cumsum(x[::-1], 0)[::-1])
    f.smooth("cumsum_exclusive", "cumsum {axis=1, exclusive=true}", [rnd((2, 4), f.count)], lambda x: np.cumsum(x, 1) - x)
    f.smooth("cumprod", "cumprod {axis=1}", [rnd((2, 4), f.count)], lambda x: np.cumprod(x, 1))
    f.smooth("cumprod_reverse", "cumprod {axis=0, reverse=true}", [rnd((3, 2), f.count)], lambda x: np.cumprod(x[::-1], 0)[::-1])
    f.closed("cumprod_with_a_zero", "cumprod {axis=0}", [[2.0, 0.0, 3.0]], [[1.0, 1.0, 1.0]], [[1, 8, 0]])
    f.smooth("softmax", "softmax {axis=1}", [rnd((2, 3, 2), f.count)], lambda x: softmax(x, 1))
    f.smooth("log_softmax", "log_softmax {axis=-1}", [rnd((2, 4), f.count)], lambda x: np.log(softmax(x, -1)))
    f.closed("softmax_of_masked", "softmax", [[-math.inf, 0.0, 0.0]], [[5.0, 1.0, 3.0]], [[0, -0.5, 0.5]])
    f.smooth("layer_norm", "layer_norm", [rnd((2, 4), f.count), rnd((4,), 3), rnd((4,), 4)], lambda x, g, b: norm(x, (1,), 1e-5) * g + b)
    f.closed("layer_norm_of_equals", "layer_norm {epsilon=0.25}", [[[2.0, 2.0]], [1.0, 1.0], [0.0, 0.0]], [[[1.0, 0.0]]],
             [[[1, -1]], [0, 0], [1, 0]])
    f.smooth("rms_norm", "rms_norm", [rnd((2, 3), f.count), rnd((3,), 3)],
             lambda x, g: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * g)
    f.smooth("layer_norm_stats", "layer_norm_stats", [rnd((2, 3), f.count)],
             lambda x: (x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)))
    image = (2, 4, 2, 2)
    each = lambda p: p.reshape(1, -1, 1, 1)
    f.smooth("batch_norm", "batch_norm", [rnd(image, f.count)] + [rnd((4,), s, 0.5, 2) for s in (1, 2, 3, 4)],
             lambda x, g, b, m, v: (x - each(m)) / np.sqrt(each(v) + 1e-5) * each(g) + each(b))
    f.smooth("batch_norm_training", "batch_norm_training", [rnd(image, f.count)] + [rnd((4,), s, 0.5, 2) for s in (1, 2, 3, 4)],
             lambda x, g, b, m, v: (norm(x, (0, 2, 3), 1e-5) * each(g) + each(b), 0.9 * m + 0.1 * x.mean((0, 2, 3)),
                                    0.9 * v + 0.1 * x.var((0, 2, 3))))
    f.smooth("instance_norm", "instance_norm", [rnd(image, f.count), rnd((4,), 1), rnd((4,), 2)],
             lambda x, g, b: norm(x, (2, 3), 1e-5) * each(g) + each(b))
    f.smooth("group_norm", "group_norm {num_groups=2}", [rnd(image, f.count), rnd((4,), 1), rnd((4,), 2)],
             lambda x, g, b: norm(x.reshape(2, 2, -1), (2,), 1e-5).reshape(x.shape) * each(g) + each(b))
    f.smooth("mean_variance_normalization", "mean_variance_normalization", [rnd(image, f.count)],
             lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1e-9))
    f.closed("mean_variance_normalization_of_equals", "mean_variance_normalization {axes=[0]}", [[2.0, 2.0]], [[1.0, 0.0]],
             [[5e8, -5e8]], "rel 1e-12")
    f.smooth("lp_normalization", "lp_normalization", [rnd((2, 3), f.count)], lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)))
    f.smooth("lp_normalization_1", "lp_normalization {p=1}", [rnd((2, 3), f.count)], lambda x: x / np.abs(x).sum(-1, keepdims=True))
    f.closed("lp_normalization_of_zeros", "lp_normalization", [[0.0, 0.0]], [[1.0, 2.0]], [[0, 0]])
    f.smooth("lrn", "lrn {size=3, alpha=0.2, beta=0.75, bias=1.5}", [rnd((1, 5, 2), f.count)], lambda x: x / (1.5 + 0.2 / 3 * np.stack(
        [(x[:, max(c - 1, 0):c + 2] ** 2).sum(1) for c in range(5)], 1)) ** 0.75)
    t, w = np.array([2, 0, 1]), np.array([0.5, 1.5, 2.0])
    for reduction in ("none", "sum", "mean"):
        f.smooth("nll_loss_" + reduction, f'nll_loss {{reduction="{reduction}"}}', [rnd((3, 3), f.count), t, w],
                 lambda x, t, w, r=reduction: nll(x, t, w, None, r))
    f.smooth("nll_terms", "nll_terms {ignore_index=1}", [rnd((3, 3), f.count), t, w],
             lambda x, t, w: (nll(x, t, w, 1, "none"), np.where(t == 1, 0, w[t])))
    f.smooth("nll_loss_ignores", "nll_loss {ignore_index=0}", [rnd((3, 3), f.count), t], lambda x, t: nll(x, t, None, 0))
    f.smooth("cross_entropy", "softmax_cross_entropy_loss", [rnd((3, 3), f.count), t, w],
             lambda x, t, w: (nll(np.log(softmax(x, 1)), t, w), np.log(softmax(x, 1))))
    f.smooth("cross_entropy_of_images", "softmax_cross_entropy_loss {ignore_index=1}", [rnd((2, 3, 2), f.count), np.array([[0, 1], [2, 2]])],
             lambda x, t: (nll(np.log(softmax(x, 1)), t, None, 1), np.log(softmax(x, 1))))
