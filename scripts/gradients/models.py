"""Products, convolutions, pools, attention, sampling, signals and quantities."""

import itertools
import math

import numpy as np

from gradients.elementwise import rnd, sigmoid
from gradients.reductions import softmax


def conv(x, w, bias=None, stride=1, pad=(0, 0), dilation=1, group=1):
    """One dim: x [N,C,L], w [O,C/group,K]."""
    x = np.pad(x, ((0, 0), (0, 0), pad))
    k, per = w.shape[2], w.shape[1]
    places = (x.shape[2] - (k - 1) * dilation - 1) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], places))
    for o, p in itertools.product(range(w.shape[0]), range(places)):
        first = o // (w.shape[0] // group) * per
        window = x[:, first:first + per, p * stride:p * stride + (k - 1) * dilation + 1:dilation]
        y[:, o, p] = (window * w[o]).sum((1, 2))
    return y if bias is None else y + bias[:, None]


def conv_transpose(x, w, length, stride, pad):
    y = np.zeros((x.shape[0], w.shape[1], length + 100))
    for i, k in itertools.product(range(x.shape[2]), range(w.shape[2])):
        y[:, :, i * stride + k + 50 - pad] += np.einsum("nc,co->no", x[:, :, i], w[:, :, k])
    return y[:, :, 50:50 + length]


def windows(x, kernel, stride, pad, value):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad)), constant_values=value)
    return np.stack([x[:, :, i:i + kernel] for i in range(0, x.shape[2] - kernel + 1, stride)], 2)


def attention(q, k, v, mask=None, causal=False, softcap=0.0):
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], 1) for a in (k, v))
    s = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    raw = s
    if softcap:
        s = softcap * np.tanh(s / softcap)
    if mask is not None:
        s = np.where(mask, s, -1e300) if mask.dtype == bool else s + mask
    if causal:
        s = np.where(np.tri(*s.shape[2:], dtype=bool), s, -1e300)
    return softmax(s, 3) @ v, raw


def sample(x, grid):
    """Linear, zeros outside, corners not aligned; x [C,L], grid [P]."""
    place = ((grid + 1) * x.shape[1] - 1) / 2
    y = np.zeros((x.shape[0], grid.shape[0]))
    for p, at in enumerate(place):
        for i in (math.floor(at), math.floor(at) + 1):
            if 0 <= i < x.shape[1]:
                y[:, p] += x[:, i] * (1 - abs(at - i))
    return y


def write(f):
    pairs = {"vectors": ((3,), (3,)), "row": ((3,), (3, 2)), "column": ((2, 3), (3,)), "matrices": ((2, 3), (3, 4)),
             "shared_weights": ((2, 2, 3), (3, 2)), "batches": ((2, 1, 2, 3), (3, 3, 2)), "nothing": ((2, 0), (0, 3))}
    for name, (a, b) in pairs.items():
        f.smooth("matmul_" + name, "matmul", [rnd(a, f.count), rnd(b, f.count + 9)], np.matmul)
    f.smooth("gemm", "gemm {trans_a=true, trans_b=true, alpha=0.5, beta=2.0}", [rnd((3, 2), 1), rnd((4, 3), 2), rnd((4,), 3)],
             lambda a, b, c: 0.5 * a.T @ b.T + 2 * c)
    for op, equation, shapes in (
            ("contract", "bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]), ("contract", "ii->i", [(3, 3)]), ("contract", "ij->", [(2, 3)]),
            ("contract", "ij,kj->i", [(2, 3), (2, 3)]), ("contract", "iij,j->ij", [(2, 2, 3), (3,)]), ("einsum", "ij,jk,k->i", [(2, 3), (3, 2), (2,)]),
            ("einsum", "...ij->...ji", [(2, 2, 3)])):
        f.smooth(f"{op}_{f.count}", f'{op} {{equation="{equation}"}}', [rnd(s, f.count + i) for i, s in enumerate(shapes)],
                 lambda *a, e=equation: np.einsum(e, *a))
    f.smooth("det", "det", [rnd((2, 3, 3), 4)], np.linalg.det)
    f.smooth("conv", "conv {strides=[2], pads=[1,2], dilations=[2]}", [rnd((2, 2, 6), 5), rnd((3, 2, 2), 6), rnd((3,), 7)],
             lambda x, w, b: conv(x, w, b, 2, (1, 2), 2))
    f.smooth("conv_groups", "conv {group=2, pads=[1,1]}", [rnd((2, 4, 4), 5), rnd((2, 2, 3), 6)], lambda x, w: conv(x, w, None, 1, (1, 1), 1, 2))
    f.smooth("conv_leaves_a_rest", "conv {strides=[3]}", [rnd((1, 1, 6), 5), rnd((1, 1, 2), 6)], lambda x, w: conv(x, w, None, 3))
    f.smooth("conv_transpose", "conv_transpose {output_shape=[8], strides=[2], pads=[1]}", [rnd((2, 2, 4), 5), rnd((2, 3, 3), 6)],
             lambda x, w: conv_transpose(x, w, 8, 2, 1))
    f.smooth("conv_transpose_beyond", "conv_transpose {output_shape=[12], strides=[2]}", [rnd((1, 1, 3), 5), rnd((1, 2, 2), 6)],
             lambda x, w: conv_transpose(x, w, 12, 2, 0))
    f.smooth("causal_conv_with_state", 'causal_conv_with_state {with="bias,past_state", activation="silu"}',
             [rnd((1, 2, 3), 5), rnd((2, 1, 3), 6), rnd((2,), 7), rnd((1, 2, 2), 8)],
             lambda x, w, b, s: (lambda a: (lambda y: (y * sigmoid(y), a[:, :, -2:]))(conv(a, w, b, group=2)))(np.concatenate([s, x], 2)))
    f.smooth("max_pool", "max_pool {kernel=[3], strides=[2], pads=[1,1]}", [rnd((1, 2, 6), 5)], lambda x: windows(x, 3, 2, 1, -np.inf).max(3))
    f.closed("max_pool_takes_the_first_of_equals", "max_pool {kernel=[2]}", [[[[1.0, 1.0, 1.0]]]], [[[[2.0, 3.0]]]], [[[[2, 3, 0]]]])
    f.smooth("global_max_pool", "global_max_pool", [rnd((1, 2, 4), 5)], lambda x: x.max(2, keepdims=True))
    f.smooth("avg_pool", "avg_pool {kernel=[3], strides=[2], pads=[1,1]}", [rnd((1, 2, 6), 5)],
             lambda x: windows(x, 3, 2, 1, 0).sum(3) / windows(np.ones_like(x), 3, 2, 1, 0).sum(3))
    f.smooth("avg_pool_counts_pads", "avg_pool {kernel=[3], pads=[1,1], counted_pads=[1,1]}", [rnd((1, 1, 4), 5)],
             lambda x: windows(x, 3, 1, 1, 0).mean(3))
    f.smooth("global_avg_pool", "global_avg_pool", [rnd((1, 2, 4), 5)], lambda x: x.mean(2, keepdims=True))
    f.smooth("lp_pool", "lp_pool {kernel=[2], p=3}", [rnd((1, 1, 5), 5)], lambda x: (np.abs(windows(x, 2, 1, 0, 0)) ** 3).sum(3) ** (1 / 3))
    f.closed("lp_pool_of_zeros", "lp_pool {kernel=[2]}", [[[[0.0, 0.0, 3.0]]]], [[[[1.0, 2.0]]]], [[[[0, 0, 2]]]])
    f.smooth("global_lp_pool", "global_lp_pool {p=1}", [rnd((1, 2, 3), 5)], lambda x: np.abs(x).sum(2, keepdims=True))
    f.smooth("col2im", "col2im {image_shape=[4], block_shape=[2], pads=[1,0], strides=[2]}", [rnd((1, 4, 2), 5)], lambda x: np.stack(
        [[np.bincount(*_at(x[0, 2 * c:2 * c + 2]), minlength=6)[1:5] for c in range(2)]], 0))
    f.smooth("attention", "attention", [rnd((1, 2, 2, 3), 1), rnd((1, 1, 3, 3), 2), rnd((1, 1, 3, 2), 3)],
             lambda q, k, v: (lambda y, s: (y, k, v, s))(*attention(q, k, v)))
    f.smooth("attention_causal_capped", 'attention {causal=true, softcap=1.5, with="mask"}',
             [rnd((1, 1, 3, 2), 1), rnd((1, 1, 3, 2), 2), rnd((1, 1, 3, 2), 3), rnd((3, 3), 4)],
             lambda q, k, v, m: (lambda y, s: (y, k, v, s))(*attention(q, k, v, m, True, 1.5)))
    f.smooth("attend_sums_and_maxima", "attend {scale=0.5}", [rnd((1, 1, 2, 2), 1), rnd((1, 1, 3, 2), 2), rnd((1, 1, 3, 2), 3)], lambda q, k, v: (
        lambda s: (softmax(s, 3) @ v, s.max(3), np.exp(s - s.max(3, keepdims=True)).sum(3)))(0.5 * q @ k.swapaxes(2, 3)))
    f.closed("attend_a_row_without_keys", 'attend {scale=1.0, with="mask"}',
             [np.ones((1, 1, 2, 1)), [[[[0.0], [0.0]]]], [[[[1.0], [3.0]]]], np.array([[False, False], [True, True]])],
             [[[[[5.0], [1.0]]]], np.zeros((1, 1, 2)), np.zeros((1, 1, 2))],
             [np.zeros((1, 1, 2, 1)), [[[[-0.5], [0.5]]]], [[[[0.5], [0.5]]]]])
    f.closed("attention_weights_of_a_row_without_keys", 'attention {with="mask", qk_output=3, scale=1.0}',
             [np.ones((1, 1, 2, 1)), [[[[0.0], [0.0]]]], [[[[1.0], [3.0]]]], np.array([[False, False], [True, True]])],
             [np.zeros((1, 1, 2, 1)), np.zeros((1, 1, 2, 1)), np.zeros((1, 1, 2, 1)), [[[[5.0, 7.0], [2.0, 4.0]]]]],
             [np.zeros((1, 1, 2, 1)), [[[[-0.5], [0.5]]]], np.zeros((1, 1, 2, 1))])
    f.smooth("rotary_embedding", "rotary_embedding", [rnd((1, 1, 2, 4), 1), rnd((1, 2, 2), 2), rnd((1, 2, 2), 3)], lambda x, c, s: np.concatenate(
        [c[:, None] * x[..., :2] - s[:, None] * x[..., 2:], s[:, None] * x[..., :2] + c[:, None] * x[..., 2:]], 3))
    f.smooth("grid_sample", "grid_sample", [rnd((1, 2, 4), 1), rnd((1, 3, 1), 2, -1.2, 1.2)], lambda x, g: sample(x[0], g[0, :, 0])[None])
    f.smooth("affine_grid", "affine_grid {size=[2,1,3]}", [rnd((2, 1, 2), 1)],
             lambda t: (t[:, :, :1] * (np.array([-2, 0, 2]) / 3) + t[:, :, 1:]).transpose(0, 2, 1))
    f.smooth("resize_linear", 'resize {sizes=[5], mode="linear", coordinates="align_corners"}', [rnd((3,), 1)],
             lambda x: np.interp(np.arange(5) / 2, np.arange(3), x))
    f.smooth("resize_nearest", "resize {sizes=[6]}", [rnd((3,), 1)], lambda x: np.repeat(x, 2))
    f.smooth("dft", "dft", [rnd((1, 4, 1), 1)], lambda x: (lambda y: np.stack([y.real, y.imag], 2))(np.fft.fft(x[:, :, 0], axis=1)))
    f.smooth("stft", "stft {frame_step=2, frame_length=4}", [rnd((1, 6, 1), 1), rnd((4,), 2)], lambda x, w: np.stack(
        [(lambda y: np.stack([y.real, y.imag], 1))(np.fft.rfft(x[0, i:i + 4, 0] * w)) for i in (0, 2)])[None])
    f.smooth("rnn", "rnn", [rnd((2, 1, 2), 1), rnd((1, 2, 2), 2), rnd((1, 2, 2), 3)], _rnn)
    f.smooth("dequantize", "dequantize {to=f64, axis=0}", [np.array([3, -5], np.int32), rnd((2,), 1), np.array([1, 2], np.int32)],
             lambda x, s, z: (x - z) * s)
    f.closed("dynamic_quantize_by_its_range", "dynamic_quantize", [np.array([-1.0, 3.0, 0.5], np.float32)], [np.float32(255.0)],
             [np.array([-1.0, 1.0, 0.0], np.float32)])
    f.smooth("linear_attention", 'linear_attention {num_heads=1, kv_num_heads=1, update_rule="linear", scale=1.0}',
             [rnd((1, 2, 2), 1), rnd((1, 2, 2), 2), rnd((1, 2, 1), 3)], _linear_attention)


def _at(block):
    """Where the taps of the blocks at 0 and 2 land in an image with one pad in front, and what they hold."""
    places = [o + k for k in range(2) for o in (0, 2)]
    return np.array(places), block.ravel()


def _rnn(x, w, r):
    h, rows = np.zeros((1, 2)), []
    for step in x:
        h = np.tanh(step @ w[0].T + h @ r[0].T)
        rows.append(h)
    return np.stack(rows)[:, None], h[None]


def _linear_attention(q, k, v):
    state, rows = np.zeros((2, 1)), []
    for t in range(2):
        state = state + np.outer(k[0, t], v[0, t])
        rows.append(q[0, t] @ state)
    return np.stack(rows)[None], state[None, None]
