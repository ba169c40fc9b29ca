"""Ops that move elements: shapes, slices, indices, scatters, sorting."""

import numpy as np

from gradients.elementwise import rnd


def scattered(data, index, updates, reduction):
    y = data.copy()
    for at in np.ndindex(index.shape):
        to = (at[0], index[at])
        y[to] = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction](y[to], updates[at])
    return y


def pooled(x, index, shape):
    y = np.zeros(shape)
    for v, i in zip(x.ravel(), index.ravel()):
        y.ravel()[i] = v
    return y


def write(f):
    x = rnd((2, 3, 4), 1)
    f.smooth("reshape", "reshape {shape=[4,6]}", [x], lambda a: a.reshape(4, 6))
    f.smooth("flatten", "flatten {axis=2}", [x], lambda a: a.reshape(6, 4))
    f.smooth("squeeze", "squeeze {axes=[1]}", [rnd((2, 1, 3), 2)], lambda a: a[:, 0])
    f.smooth("unsqueeze", "unsqueeze {axes=[0,2]}", [rnd((2, 3), 2)], lambda a: a[None, :, None])
    f.smooth("transpose", "transpose {perm=[2,0,1]}", [x], lambda a: a.transpose(2, 0, 1))
    f.smooth("transpose_all", "transpose", [x], lambda a: a.T)
    f.smooth("expand", "expand {shape=[2,3,4]}", [rnd((3, 1), 3)], lambda a: np.broadcast_to(a, (2, 3, 4)))
    f.smooth("tile", "tile {repeats=[2,1,3]}", [rnd((2, 2, 2), 4)], lambda a: np.tile(a, (2, 1, 3)))
    f.smooth("repeat", "repeat {times=[1,3]}", [rnd((2, 2), 4)], lambda a: np.repeat(a, 3, 1))
    f.closed("tile_no_times", "tile {repeats=[0]}", [[1.0, 2.0]], [np.zeros(0)], [[0, 0]])
    f.smooth("slice", "slice {starts=[1,-1], ends=[3,0], axes=[1,2], steps=[1,-2]}", [x], lambda a: a[:, 1:3, -1:0:-2])
    f.smooth("slice_by_threes", "slice {starts=[1], ends=[9], steps=[3]}", [rnd((10,), 5)], lambda a: a[1:9:3])
    f.smooth("slice_of_nothing", "slice {starts=[2], ends=[2]}", [rnd((3,), 5)], lambda a: a[2:2])
    f.smooth("concat", "concat {axis=1}", [rnd((2, 1), 6), rnd((2, 3), 7), rnd((2, 0), 8)], lambda *a: np.concatenate(a, 1))
    f.smooth("split", "split {axis=1, sizes=[1,3]}", [rnd((2, 4), 6)], lambda a: (a[:, :1], a[:, 1:]))
    f.smooth("pad", "pad {pads=[1,-1,0,2], value=3.0}", [rnd((2, 3), 6)], lambda a: np.pad(a[:, 1:], ((1, 0), (0, 2)), constant_values=3))
    f.smooth("pad_reflect", 'pad {pads=[2,2], mode="reflect"}', [rnd((4,), 6)], lambda a: np.pad(a, 2, mode="reflect"))
    f.smooth("pad_edge", 'pad {pads=[0,2,1,1], mode="edge"}', [rnd((2, 2), 6)], lambda a: np.pad(a, ((0, 1), (2, 1)), mode="edge"))
    f.smooth("pad_wrap", 'pad {pads=[3,2], mode="wrap"}', [rnd((3,), 6)], lambda a: np.pad(a, (3, 2), mode="wrap"))
    f.smooth("reverse", "reverse {axes=[1]}", [rnd((2, 3), 6)], lambda a: a[:, ::-1])
    f.smooth("reverse_sequence", "reverse_sequence {batch_axis=0, time_axis=1}", [rnd((2, 3), 6), np.array([2, 3])],
             lambda a, n: np.stack([np.concatenate([r[:k][::-1], r[k:]]) for r, k in zip(a, n)]))
    f.smooth("tri", "tri {k=1}", [rnd((3, 3), 6)], lambda a: np.triu(a, 1))
    f.smooth("depth_to_space", "depth_to_space {block=2}", [rnd((1, 4, 1, 2), 6)],
             lambda a: a.reshape(1, 2, 2, 1, 1, 2).transpose(0, 3, 4, 1, 5, 2).reshape(1, 1, 2, 4))
    f.smooth("space_to_depth", "space_to_depth {block=2}", [rnd((1, 1, 2, 4), 6)],
             lambda a: a.reshape(1, 1, 1, 2, 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 4, 1, 2))
    f.smooth("frames", "frames {axis=0, length=3, step=2}", [rnd((7,), 6)], lambda a: np.stack([a[i:i + 3] for i in (0, 2, 4)]))
    f.smooth("one_hot", "one_hot {depth=3}", [np.array([1, 5, -1]), rnd((2,), 6)],
             lambda i, v: np.where(np.arange(3) == np.where(i < 0, i + 3, i)[:, None], v[1], v[0]))

    # Indices that repeat send sums.
    f.smooth("gather", "gather {axis=1}", [rnd((2, 3), 7), np.array([[2, 0], [2, -1]])], lambda a, i: np.take(a, i, 1))
    f.closed("gather_one_row_often", "gather", [[[1.0, 2.0], [3.0, 4.0]], np.array([1, 1, 1])], [[[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]],
             [[[0, 0], [7, 70]]])
    f.closed("gather_nothing", "gather", [[[1.0, 2.0]], np.zeros(0, int)], [np.zeros((0, 2))], [[[0, 0]]])
    f.smooth("gather_elements", "gather_elements {axis=1}", [rnd((2, 3), 7), np.array([[0, 0], [2, -1]])],
             lambda a, i: np.take_along_axis(a, np.where(i < 0, i + 3, i), 1))
    f.smooth("gather_nd", "gather_nd", [rnd((2, 3, 2), 7), np.array([[0, 1], [1, -1], [0, 1]])], lambda a, i: a[i[:, 0], i[:, 1]])
    f.smooth("gather_nd_of_batches", "gather_nd {batch_dims=1}", [rnd((2, 3), 7), np.array([[[2], [2]], [[0], [1]]])],
             lambda a, i: np.take_along_axis(a, i[:, :, 0], 1))
    f.smooth("resample", "resample {axis=0}", [rnd((3,), 7), np.array([[0, 1], [2, 9], [1, 1]]), rnd((3, 2), 8)],
             lambda a, i, w: (a[np.clip(i, 0, 2)] * w).sum(1))
    index = np.array([[0, 2, 0], [1, 1, 1]])
    for reduction in ("none", "add", "mul", "max", "min"):
        f.smooth("scatter_elements_" + reduction, f'scatter_elements {{axis=1, reduction="{reduction}"}}',
                 [rnd((2, 4), 8), index, rnd((2, 3), 9)], lambda d, i, u, r=reduction: scattered(d, i, u, r))
        f.smooth("scatter_nd_" + reduction, f'scatter_nd {{reduction="{reduction}"}}',
                 [rnd((4,), 8), np.array([[1], [3], [1]]), rnd((3,), 9)],
                 lambda d, i, u, r=reduction: scattered(d[None], i.T, u[None], r)[0])
    f.closed("scatter_mul_by_one_zero", 'scatter_nd {reduction="mul"}', [[2.0], np.array([[0], [0]]), [0.0, 3.0]], [[1.0]], [[0], [6, 0]])
    f.closed("scatter_mul_by_two_zeros", 'scatter_nd {reduction="mul"}', [[2.0], np.array([[0], [0]]), [0.0, 0.0]], [[1.0]], [[0], [0, 0]])
    f.closed("scatter_max_shares_ties", 'scatter_nd {reduction="max"}', [[2.0], np.array([[0], [0]]), [2.0, 2.0]], [[3.0]], [[1], [1, 1]])
    f.closed("scatter_last_wins", "scatter_nd", [[2.0, 5.0], np.array([[0], [0]]), [7.0, 8.0]], [[3.0, 4.0]], [[0, 4], [0, 3]])
    f.smooth("tensor_scatter", "tensor_scatter {axis=1}", [rnd((2, 4), 8), rnd((2, 2), 9), np.array([1, 2])],
             lambda p, u, b: scattered(p, b[:, None] + np.arange(2), u, "none"))
    f.smooth("tensor_scatter_circular", 'tensor_scatter {axis=1, mode="circular"}', [rnd((2, 4), 8), rnd((2, 2), 9), np.array([3, 2])],
             lambda p, u, b: scattered(p, (b[:, None] + np.arange(2)) % 4, u, "none"))
    f.smooth("max_unpool", "max_unpool {shape=[1,1,6]}", [rnd((1, 1, 3), 8), np.array([[[4, 1, 4]]])],
             lambda v, i: pooled(v, i, (1, 1, 6)))
    f.smooth("sort", "sort {axis=1}", [rnd((2, 4), 9)], lambda a: (np.sort(a, 1), np.argsort(a, 1)))
    f.closed("sort_keeps_the_order_of_equals", "sort {descending=true}", [[1.0, 2.0, 2.0]], [[1.0, 2.0, 4.0]], [[4, 1, 2]])
    f.smooth("top_k", "top_k {k=2}", [rnd((2, 4), 9)], lambda a: (-np.sort(-a, 1)[:, :2], np.argsort(-a, 1)[:, :2]))
