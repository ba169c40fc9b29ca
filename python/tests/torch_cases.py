"""Arguments for every op of the table of ATen ops, by families: what it is called with, over dtypes, shapes and edges."""

import math

import torch

FLOAT = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGER = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
ALL = [*FLOAT, *INTEGER, torch.bool]
F32, I64, BOOL = torch.float32, torch.int64, torch.bool


def tensor(shape, dtype=F32, seed=0, lo=-3, hi=3):
    generator = torch.Generator().manual_seed(seed + math.prod(shape) + len(shape))
    if dtype == BOOL:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else lo, hi + 1, shape, generator=generator).to(dtype)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * (hi - lo) + lo).to(dtype)


def index(shape, size, seed=0):
    return tensor(shape, I64, seed, 0, size - 1)


def edges(dtype):
    """Zeros of both signs, infinities, NaN, halves."""
    if dtype.is_floating_point:
        numbers = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan]
        return torch.tensor(numbers).to(dtype)
    if dtype == BOOL:
        return torch.tensor([True, False])
    info = torch.iinfo(dtype)
    return torch.tensor([info.min, info.max, 0, 1, info.max - 1]).to(dtype)


def values(dtype):
    yield tensor((3, 4), dtype)
    yield tensor((), dtype)
    yield tensor((0, 3), dtype)
    yield tensor((2, 1, 5), dtype, 1).transpose(0, 2)
    yield edges(dtype)


UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac isfinite isinf
isnan log log10 log1p log2 logical_not mish neg rad2deg reciprocal relu relu6 round rsqrt sgn sigmoid sign silu sin sinh
sqrt square tan tanh trunc bitwise_not hardsigmoid hardswish selu gelu elu celu softplus softshrink hardshrink
hardtanh leaky_relu nan_to_num logit alias clone detach lift_fresh lift_fresh_copy contiguous
zeros_like ones_like t squeeze sum mean prod any all sort argsort""".split()

BINARY = """add.Tensor sub.Tensor rsub.Tensor mul.Tensor div.Tensor true_divide.Tensor floor_divide remainder.Tensor
fmod.Tensor pow.Tensor_Tensor maximum minimum fmax fmin atan2 hypot logaddexp copysign.Tensor eq.Tensor ne.Tensor
lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor bitwise_and.Tensor bitwise_or.Tensor
bitwise_xor.Tensor""".split()

SCALAR = """add.Scalar sub.Scalar rsub.Scalar mul.Scalar div.Scalar floor_divide.Scalar remainder.Scalar fmod.Scalar
pow.Tensor_Scalar copysign.Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar""".split()


def pairs(dtype):
    yield tensor((3, 4), dtype), tensor((3, 4), dtype, 1)
    yield tensor((3, 1), dtype), tensor((2, 1, 4), dtype, 1)
    yield tensor((), dtype), tensor((5,), dtype, 1)
    yield tensor((0, 3), dtype), tensor((1, 3), dtype)
    e = edges(dtype)
    yield e[:, None], e[None, :]


def _divides_by_zero(name, other):
    integral = isinstance(other, int) or (isinstance(other, torch.Tensor) and not other.dtype.is_floating_point)
    return ("div" in name or "mod" in name or "remainder" in name) and integral and not torch.as_tensor(other).all()


def _mixed():
    """Dtypes that torch promotes."""
    for a, b in [
        (I64, F32),
        (torch.int32, I64),
        (BOOL, F32),
        (torch.bfloat16, F32),
        (torch.uint8, torch.int8),
        (BOOL, I64),
    ]:
        yield tensor((3, 4), a), tensor((3, 4), b, 1, 1, 3)
        yield tensor((3, 4), a), tensor((), b, 1, 1, 3)


def unary_cases():
    for name in UNARY:
        for dtype in ALL:
            for x in values(dtype):
                yield name, (x,), {}


def binary_cases():
    for name in BINARY:
        for dtype in ALL:
            for a, b in pairs(dtype):
                if not _divides_by_zero(name, b):
                    yield name, (a, b), {}
        for a, b in _mixed():
            if not _divides_by_zero(name, b):
                yield name, (a, b), {}
    for name in SCALAR:
        for dtype in ALL:
            for number in (2, -3, 0.5, 0, 1.25):
                if isinstance(number, float) and name.startswith("pow") and not dtype.is_floating_point:
                    continue
                if not _divides_by_zero(name, number):
                    yield name, (tensor((3, 4), dtype), number), {}
                if isinstance(number, int) and dtype.is_floating_point:
                    yield name, (edges(dtype), number), {}
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        for dtype in (*INTEGER, BOOL):
            yield f"{name}.Scalar", (tensor((3, 4), dtype), dtype == BOOL or 5), {}
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        for dtype in INTEGER:
            yield f"{name}.Tensor", (tensor((3, 4), dtype), tensor((4,), dtype, 1, 0, 5)), {}
            yield f"{name}.Tensor_Scalar", (tensor((3, 4), dtype), 2), {}
    for name in ("__lshift__", "__rshift__"):
        for dtype in INTEGER:
            yield f"{name}.Tensor", (tensor((3, 4), dtype), tensor((4,), dtype, 1, 0, 5)), {}
            yield f"{name}.Scalar", (tensor((3, 4), dtype), 2), {}


def other_pointwise_cases():
    for dtype in ALL:
        x, y = tensor((3, 4), dtype), tensor((3, 4), dtype, 1)
        yield "add.Tensor", (x, y), {"alpha": 2}
        yield "sub.Tensor", (x, y), {"alpha": -1}
        yield "rsub.Scalar", (x, 2, 3), {}
        yield "add.Tensor", (x, 7), {}
        for mode in (None, "trunc", "floor"):
            for a, b in pairs(dtype):
                if not _divides_by_zero("div", b):
                    yield "div.Tensor_mode", (a, b), {"rounding_mode": mode}
            yield "div.Scalar_mode", (x, 2), {"rounding_mode": mode}
            yield "div.Scalar_mode", (x, -0.7), {"rounding_mode": mode}
        yield "pow.Scalar", (2, tensor((3, 4), dtype, 0, 0, 3)), {}
        yield "pow.Scalar", (1.5, x), {}
        for exponent in (2, 3, 0.5, -1, -0.5, 0):
            yield "pow.Tensor_Scalar", (tensor((3, 4), dtype, 0, 1, 3), exponent), {}
        yield "clamp", (x,), {"min": -1, "max": 2}
        yield "clamp", (x,), {"min": 1}
        yield "clamp", (x,), {"max": 0.5}
        yield "clamp", (x,), {"min": 2, "max": -1}
        yield "clamp", (edges(dtype),), {"min": -1, "max": 1}
        yield "clamp.Tensor", (x, y), {}
        yield "clamp.Tensor", (x, None, y), {}
        yield "clamp_min", (x, 1), {}
        yield "clamp_max", (x, 1), {}
        yield "clamp_min.Tensor", (x, y), {}
        yield "clamp_max.Tensor", (x, y), {}
        condition = tensor((3, 1), BOOL)
        yield "where.self", (condition, x, y), {}
        yield "where.self", (condition, x, tensor((), F32)), {}
        yield "where.ScalarOther", (condition, x, 2), {}
        yield "where.ScalarSelf", (condition, 2.5, x), {}
        yield "where.Scalar", (condition, 1.0, 2.0), {}
        yield "masked_fill.Scalar", (x, condition, 1), {}
        yield "masked_fill.Tensor", (x, condition, torch.tensor(1, dtype=dtype)), {}
        yield "threshold", (x, 1, 0), {}
        for to in (F32, torch.bfloat16, torch.float64, I64, torch.int32, torch.int8, BOOL):
            if dtype.is_floating_point or to.is_floating_point or to in (I64, BOOL):
                yield "_to_copy", (x,), {"dtype": to}
                yield "to.dtype", (x, to), {}
        yield "type_as", (x, tensor((1,), I64)), {}
        yield "copy", (x, tensor((4,), F32)), {}
        yield "nan_to_num", (edges(dtype), 1.0, 2.0, -2.0), {}
    for to in INTEGER[1:]:
        yield "_to_copy", (torch.tensor([300, -300, 70000, -1, 1 << 40, 127, 255]),), {"dtype": to}
    for a, b in [(torch.int32, torch.int32), (torch.uint8, torch.int8)]:
        yield "view.dtype", (tensor((3, 4), a), b), {}
    for dtype in FLOAT:
        x, y, z = (tensor((3, 4), dtype, seed) for seed in range(3))
        yield "lerp.Scalar", (x, y, 0.3), {}
        yield "lerp.Tensor", (x, y, z), {}
        yield "addcmul", (x, y, z), {"value": 0.5}
        yield "addcdiv", (x, y, z.abs() + 1), {"value": 0.5}
        yield "gelu", (x,), {"approximate": "tanh"}
        yield "elu", (x, 0.7, 1.1, 0.9), {}
        yield "celu", (x, 0.7), {}
        yield "leaky_relu", (edges(dtype), 0.2), {}
        yield "prelu", (tensor((2, 3, 4), dtype), tensor((3,), dtype, 1)), {}
        yield "_prelu_kernel", (tensor((2, 3, 4), dtype), tensor((1, 3, 1), dtype, 1)), {}
        yield "softplus", (tensor((3, 4), dtype, 0, -30, 30), 2, 10), {}
        yield "softshrink", (edges(dtype), 0.7), {}
        yield "hardshrink", (edges(dtype), 0.7), {}
        yield "hardtanh", (x, -0.5, 0.7), {}
        yield "threshold_backward", (x, y, 0), {}
        yield "logit", (tensor((3, 4), dtype, 0, 0, 1), 0.1), {}
        yield "native_dropout", (x, 0.5, False), {}
        yield "native_dropout", (x, 0.0, True), {"used": {0}}
        yield "log_sigmoid_forward", (tensor((3, 4), dtype, 0, -90, 90),), {"used": {0}}
        yield "log_sigmoid_forward", (edges(dtype),), {"used": {0}}
        yield "glu", (x, 1), {}
        yield "glu", (tensor((4, 3), dtype), 0), {}


def reduction_cases():
    for dtype in ALL:
        x = tensor((3, 4, 5), dtype)
        nan = x.clone()
        if dtype.is_floating_point:
            nan[1, 2, 3] = math.nan
        for dims, keep in (([1], False), ([0, 2], True), ([-1], True), ([], False), (None, True)):
            yield "sum.dim_IntList", (x, dims, keep), {}
            yield "mean.dim", (x, dims, keep), {}
            if dims is not None:
                yield "amax", (nan, dims, keep), {}
                yield "amin", (nan, dims, keep), {}
            if dims != []:
                yield "any.dims", (x, dims, keep), {}
                yield "all.dims", (x, dims, keep), {}
            yield "var.correction", (x, dims), {"keepdim": keep}
            yield "var.correction", (x, dims), {"correction": 0, "keepdim": keep}
            yield "std.correction", (x, dims), {"correction": 2, "keepdim": keep}
            yield "var_mean.correction", (x, dims), {"correction": 1, "keepdim": keep}
            yield "var.dim", (x, dims, False, keep), {}
            if dims:
                yield "logsumexp", (nan, dims, keep), {}
        for name in ("sum", "mean", "prod"):
            yield name, (x,), {"dtype": F32}
        yield "sum.dim_IntList", (tensor((0, 3), dtype), [0]), {}
        yield "mean.dim", (tensor((0, 3), dtype), [0]), {}
        yield "any.dim", (tensor((0, 3), dtype), 0), {}
        yield "all.dim", (tensor((0, 3), dtype), 0), {}
        for dim in (0, -1):
            distinct = torch.randperm(12, generator=torch.Generator().manual_seed(1)).reshape(3, 4).to(dtype)
            for keep in (False, True):
                yield "argmax", (x, dim, keep), {}
                yield "argmin", (x, dim, keep), {}
                yield "max.dim", (nan, dim, keep), {}
                yield "min.dim", (nan, dim, keep), {}
                yield "any.dim", (x, dim, keep), {}
                yield "all.dim", (x, dim, keep), {}
                yield "prod.dim_int", (x, dim, keep), {}
                yield "aminmax", (x,), {"dim": dim, "keepdim": keep}
            yield "cumsum", (x, dim), {}
            yield "cumprod", (tensor((3, 4), dtype, 0, 1, 2), dim), {}
            for descending in (False, True):
                yield "sort", (nan, dim, descending), {}
                yield "sort.stable", (nan,), {"stable": True, "dim": dim, "descending": descending}
                yield "argsort.stable", (nan,), {"stable": True, "dim": dim, "descending": descending}
                yield "argsort", (distinct, dim, descending), {}
                yield "topk", (distinct, 2, dim, descending), {}
            yield "_softmax", (x, dim, False), {}
            yield "_log_softmax", (x, dim, False), {}
        for name in ("argmax", "argmin", "max", "min"):
            yield name, (x,), {}
        yield "argmax", (x, None, True), {}
        yield "max.dim", (tensor((), dtype), 0), {}
    for dtype in FLOAT:
        for shape in ((), (3, 4)):
            yield "_softmax", (tensor(shape, dtype, 0, -50, 50), -1, False), {}
            yield "_log_softmax", (tensor(shape, dtype, 0, -50, 50), -1, False), {}
        masked = tensor((3, 4), dtype).masked_fill(tensor((3, 4), BOOL), -math.inf)
        masked[1] = -math.inf
        yield "_safe_softmax", (masked, -1), {}
        for order in (1, 2, math.inf):
            yield "linalg_vector_norm", (tensor((3, 4), dtype), order, [1]), {}
        yield "cumsum", (tensor((), dtype), 0), {}
    for p in (0.0, 1.0, 2.0, 3.0, math.inf):
        yield "_cdist_forward", (tensor((2, 3, 4)), tensor((2, 5, 4), F32, 1), p, None), {}
        yield "_pdist_forward", (tensor((4, 3)), p), {}


def shape_cases():
    for dtype in (F32, I64, BOOL, torch.bfloat16, torch.uint8):
        x = tensor((2, 3, 4), dtype)
        one = tensor((1, 3, 1), dtype)
        for name in ("view", "_unsafe_view", "view_copy", "reshape"):
            yield name, (x, [6, 4]), {}
            yield name, (x, [2, -1, 2]), {}
        yield "view", (tensor((), dtype), [1, 1]), {}
        yield "view", (tensor((0, 3), dtype), [3, 0]), {}
        yield "flatten.using_ints", (x, 1, 2), {}
        yield "flatten.using_ints", (tensor((), dtype),), {}
        for name in ("permute", "permute_copy"):
            yield name, (x, [2, 0, -2]), {}
        yield "transpose.int", (x, 0, -1), {}
        yield "transpose.int", (tensor((), dtype), 0, -1), {}
        yield "t", (tensor((3, 4), dtype),), {}
        for dim in (0, 1, -1, 3):
            yield "unsqueeze", (x, dim), {}
            yield "unsqueeze_copy", (x, dim), {}
        yield "squeeze", (one,), {}
        yield "squeeze.dim", (one, 0), {}
        yield "squeeze.dim", (one, 1), {}
        yield "squeeze.dims", (one, [0, -1]), {}
        yield "expand", (one, [2, 1, 3, 5]), {}
        yield "expand", (one, [4, -1, 5]), {}
        yield "expand_copy", (one, [4, -1, 5]), {}
        yield "expand_as", (one, x), {}
        yield "repeat", (x, [2, 1, 1, 3]), {}
        yield "repeat", (x, [0, 1, 2]), {}
        yield "cat", ([x, x[:1], tensor((0,), dtype)],), {}
        yield "cat", ([x, tensor((2, 1, 4), F32)], -2), {}
        yield "stack", ([x, x, x], -1), {}
        yield "stack", ([x], 1), {}
        for args in ((0,), (1, 1, 3), (2, -3, -1), (1, 0, 100, 2), (0, 1, 1), (-1, None, 3)):
            yield "slice.Tensor", (x, *args), {}
            yield "slice_copy.Tensor", (x, *args), {}
        yield "narrow", (x, 1, 1, 2), {}
        yield "narrow_copy", (x, 2, 1, 2), {}
        for dim, at in ((0, 1), (2, -1), (-2, 0)):
            yield "select.int", (x, dim, at), {}
            yield "select_copy.int", (x, dim, at), {}
        yield "split_with_sizes", (x, [1, 2], 1), {}
        yield "split_with_sizes", (x, [4], 2), {}
        yield "split_with_sizes_copy", (x, [1, 0, 3], 2), {}
        yield "split.Tensor", (x, 3, 2), {}
        yield "unbind.int", (x, 1), {}
        yield "unbind_copy.int", (x, -1), {}
        yield "flip", (x, [0, -1]), {}
        yield "flip", (tensor((), dtype), []), {}
        yield "roll", (x, [1, -2], [0, 2]), {}
        yield "roll", (x, [5]), {}
        for offset in (0, 1, -2, 5):
            yield "diagonal", (x, offset, 1, -1), {}
            yield "diagonal_copy", (tensor((3, 5), dtype), offset), {}
        yield "unfold", (x, 2, 2, 1), {}
        yield "unfold_copy", (x, 1, 2, 2), {}
        yield "pixel_shuffle", (tensor((2, 8, 3, 2), dtype), 2), {}
        yield "pixel_unshuffle", (tensor((2, 2, 6, 4), dtype), 2), {}
        yield "channel_shuffle", (tensor((2, 6, 2, 2), dtype), 3), {}
        for diagonal in (0, 1, -1):
            yield "triu", (x, diagonal), {}
            yield "tril", (x, diagonal), {}
        size = {"dtype": dtype}
        yield "full", ([2, 3], 1), size
        yield "full", ([], 1), size
        yield "full_like", (x, 1), {}
        yield "full_like", (x, 2.5), {"dtype": torch.float64}
        yield "fill.Scalar", (x, 1), {}
        yield "fill.Tensor", (x, torch.tensor(1, dtype=dtype)), {}
        for name in ("zeros", "ones"):
            yield name, ([2, 3],), size
        for name in ("new_zeros", "new_ones"):
            yield name, (x, [2, 3]), {}
        yield "new_full", (x, [2, 0], 1), {}
        yield "scalar_tensor", (1,), size
        yield "eye", (3,), size
        yield "eye.m", (3, 5), size
    yield "arange", (5,), {}
    yield "arange.start", (2, 7.5), {}
    for args in ((0, 10, 3), (10, 0, -4), (0, 1, 0.3), (3, 3, 1), (1 << 53, (1 << 53) + 4, 1)):
        yield "arange.start_step", args, {}
    yield "arange.start_step", (0, 5, 1), {"dtype": F32}
    yield "linspace", (0, 1, 5), {"dtype": F32}
    yield "full", ([2], torch.iinfo(I64).max), {"dtype": I64}
    yield "full", ([2], torch.iinfo(I64).min), {"dtype": I64}
    yield "full", ([2], -math.inf), {"dtype": F32}


def indexing_cases():
    for dtype in (F32, torch.bfloat16, I64, BOOL):
        x = tensor((4, 5, 6), dtype)
        yield "embedding", (tensor((7, 3), dtype), index((2, 4), 7)), {}
        yield "embedding", (tensor((7, 3), dtype), index((), 7).to(torch.int32), 2), {}
        yield "index_select", (x, 1, index((3,), 5)), {}
        yield "index_select", (x, -1, index((), 6)), {}
        yield "gather", (x, 1, index((4, 2, 6), 5)), {}
        yield "gather", (x, -1, index((2, 3, 9), 6)), {}
        yield "take_along_dim", (x, index((4, 5, 2), 6), 2), {}
        for name in ("index.Tensor", "_unsafe_index.Tensor"):
            yield name, (x, [index((3,), 4)]), {}
            yield name, (x, [None, index((2, 3), 5)]), {}
            yield name, (x, [index((2, 1), 4), index((3,), 5)]), {}
            yield name, (x, [None, index((2,), 5), index((3, 1), 6)]), {}
            yield name, (x, [index((3,), 4), None, index((3,), 6, 1)]), {}
            yield name, (x, [index((3,), 4) - 4]), {}
            yield name, (x, [index((3,), 4), index((3,), 5), index((3,), 6)]), {}
        at, new = index((2, 5, 6), 4), tensor((3, 5, 6), dtype, 1)
        distinct = torch.stack([torch.randperm(4, generator=torch.Generator().manual_seed(i))[:2] for i in range(30)])
        distinct = distinct.T.reshape(2, 5, 6)
        yield "scatter.src", (x, 0, distinct, new), {}
        yield "scatter.value", (x, 0, at, 1), {}
        yield "scatter.value", (x, 2, index((2, 2, 3), 6), 1), {}
        yield "scatter_add", (x, 0, at, new), {}
        for reduce in ("sum", "prod", "amax", "amin"):
            yield "scatter_reduce.two", (x, 0, at, new, reduce), {}
        for name in ("index_put", "_unsafe_index_put"):
            yield name, (x, [torch.tensor([0, 2])], tensor((2, 5, 6), dtype, 1)), {}
            yield name, (x, [torch.tensor([0, 2])], tensor((), dtype, 1)), {}
            yield name, (x, [None, torch.tensor([0, -1])], tensor((4, 2, 6), dtype, 1)), {}
            yield name, (x, [torch.tensor([0, 2]), None, torch.tensor([1, 3])], tensor((2, 5), dtype, 1)), {}
            yield name, (x, [None, torch.tensor([0, 2]), torch.tensor([[1], [3]])], tensor((2, 2), dtype, 1)), {}
            yield name, (x, [torch.tensor([0, 2, 0])], tensor((3, 5, 6), dtype, 1), True), {}
        yield "index_put", (x, [tensor((4, 5), BOOL)], torch.tensor(1, dtype=dtype)), {}
        yield "index_put", (x, [tensor((4, 5, 6), BOOL)], torch.tensor([1], dtype=dtype)), {}
        for dim, start, end, step in ((0, 1, 3, 1), (1, None, None, 2), (2, -2, 100, 1), (0, 3, 1, 1)):
            part = (
                x.select(dim, 0)
                .unsqueeze(dim)
                .expand_as(x)
                .narrow(dim, 0, len(range(*slice(start, end, step).indices(x.shape[dim]))))
            )
            yield "slice_scatter", (x, part, dim, start, end, step), {}
        yield "select_scatter", (x, tensor((4, 6), dtype, 1), 1, -2), {}


def product_cases():
    for dtype in (*FLOAT, I64, torch.int32):
        a, b = tensor((3, 4), dtype), tensor((4, 5), dtype, 1)
        yield "mm", (a, b), {}
        yield "mm", (a, tensor((5, 4), dtype, 1).T), {}
        yield "mm", (tensor((3, 0), dtype), tensor((0, 2), dtype)), {}
        yield "bmm", (tensor((2, 3, 4), dtype), tensor((2, 4, 5), dtype, 1)), {}
        yield "matmul", (tensor((2, 1, 3, 4), dtype), tensor((5, 4, 2), dtype, 1)), {}
        yield "matmul", (tensor((4,), dtype), b), {}
        yield "mv", (a, tensor((4,), dtype)), {}
        yield "dot", (tensor((4,), dtype), tensor((4,), dtype, 1)), {}
        yield "linear", (tensor((2, 3, 4), dtype), tensor((5, 4), dtype, 1), tensor((5,), dtype)), {}
        yield "linear", (a, tensor((5, 4), dtype, 1)), {}
        for more in ({}, {"beta": 2, "alpha": 3}, {"beta": 0}):
            yield "addmm", (tensor((5,), dtype), a, b), more
            yield "baddbmm", (tensor((2, 3, 1), dtype), tensor((2, 3, 4), dtype), tensor((2, 4, 5), dtype)), more
            yield "addmv", (tensor((3,), dtype), a, tensor((4,), dtype, 1)), more
    for dtype in FLOAT[:3]:
        q, k, v = tensor((2, 2, 5, 4), dtype), tensor((2, 2, 6, 4), dtype, 1), tensor((2, 2, 6, 4), dtype, 2)
        name = "_scaled_dot_product_flash_attention_for_cpu"
        yield name, (q, k, v), {"used": {0}}
        yield name, (q, k[:, :, :5], v[:, :, :5], 0.0, True), {"used": {0}, "scale": 0.3}
        yield name, (q, k, v), {"used": {0}, "attn_mask": tensor((2, 1, 5, 6), dtype)}


def layer_cases():
    for dtype in FLOAT[:2]:
        x = tensor((2, 5, 8), dtype, 0, -1, 1)
        weights = [tensor(shape, dtype, 3, -1, 1) for shape in ((24, 8), (24,), (8, 8), (8,))]
        norms = [tensor((8,), dtype, seed) for seed in range(4)]
        wide = [tensor(shape, dtype, 5, -1, 1) for shape in ((16, 8), (16,), (8, 16), (8,))]
        for gelu, first in ((True, True), (False, False)):
            yield "_transformer_encoder_layer_fwd", (x, 8, 2, *weights, gelu, first, 1e-5, *norms, *wide), {}
        lstm = [tensor(shape, dtype, 3, -1, 1) for shape in ((24, 8), (24, 6), (24,), (24,), (2, 6), (2, 6))]
        for reverse in (False, True):
            yield "mkldnn_rnn_layer", (
                x.transpose(0, 1).contiguous(),
                *lstm,
                reverse,
                [],
                2,
                6,
                1,
                True,
                False,
                False,
                False,
            ), {"used": {0, 1, 2}}
        for ways, layers, bias, first in ((1, 1, True, False), (2, 2, True, True), (1, 2, False, True)):
            params = []
            for i in range(layers):
                for k in range(ways):
                    shapes = [(24, 8 if i == 0 else 6 * ways), (24, 6), (24,), (24,)][: 4 if bias else 2]
                    params += [tensor(shape, dtype, i + k, -1, 1) for shape in shapes]
            states = [tensor((ways * layers, 2 if first else 5, 6), dtype, k) for k in range(2)]
            yield "lstm.input", (x, states, params, bias, layers, 0.0, False, ways == 2, first), {}
        for average in (True, False):
            yield "_native_multi_head_attention", (x, x, x, 8, 2, *weights, None, True, average), {}


def conv(x, w, bias=None, stride=1, pad=0, dilation=1, transposed=False, more=0, groups=1):
    n = x.dim() - 2
    each = lambda v: [v] * n if isinstance(v, int) else v  # noqa: E731
    return "convolution", (x, w, bias, each(stride), each(pad), each(dilation), transposed, each(more), groups), {}


def image_cases():
    for dtype in FLOAT[:3]:
        for n in (1, 2, 3):
            x = tensor((2, 4, *(7, 6, 5)[:n]), dtype)
            w, b = tensor((6, 4, *(3,) * n), dtype, 1), tensor((6,), dtype)
            yield conv(x, w, b)
            yield conv(x, w, None, 2, 1)
            yield conv(x, tensor((4, 2, *(3,) * n), dtype, 1), None, 1, 2, 2, groups=2)
            yield conv(x, tensor((4, 1, *(3,) * n), dtype, 1), b[:4], 1, 1, groups=4)
            t = tensor((4, 3, *(3,) * n), dtype, 1)
            yield conv(x, t, b[:3], 2, 1, 1, True, 1)
            yield conv(x, t, None, 3, 0, 1, True, 2, 2)
            yield conv(x, t, None, 1, 1, 2, True, 0)
        x = tensor((2, 3, 7, 6), dtype)
        for shape in ((2, 3, 7, 6), (3, 7, 6)):
            for args in ((2,), ([3, 2], [2, 1], 1), (3, 2, 1, 2), (3, 2, 1, 1, True), (2, 3, 0, 1, True)):
                yield "max_pool2d_with_indices", (
                    tensor(shape, dtype),
                    *((a if isinstance(a, (list, bool)) else [a, a]) for a in args),
                ), {}
                yield "max_pool2d", (
                    tensor(shape, dtype),
                    *((a if isinstance(a, (list, bool)) else [a, a]) for a in args),
                ), {}
            for args in (
                (2,),
                (3, 2, 1),
                (3, 2, 1, True),
                (3, 2, 1, True, False),
                (2, 3, 0, True),
                ([3, 2], [1, 2], [1, 0]),
            ):
                yield "avg_pool2d", (
                    tensor(shape, dtype),
                    *((a if isinstance(a, (list, bool)) else [a, a]) for a in args),
                ), {}
        volume = tensor((1, 2, 5, 4, 6), dtype)
        yield "max_pool3d_with_indices", (volume, [2, 2, 2], [2, 1, 2]), {}
        yield "max_pool3d", (volume, [2, 2, 2], [2, 1, 2]), {}
        yield "avg_pool3d", (volume, [2, 2, 2], [2, 1, 2], [1, 0, 1]), {}
        yield "avg_pool1d", (tensor((2, 3, 7), dtype), [3], [2], [1]), {}
        yield "max_pool1d", (tensor((2, 3, 7), dtype), [3], [2], [1]), {}
        for size in ([1, 1], [2, 3], [7, 6], [4, 5], [9, 1]):
            yield "_adaptive_avg_pool2d", (x, size), {}
        yield "_adaptive_avg_pool3d", (volume, [2, 4, 3]), {}
        yield "adaptive_avg_pool1d", (tensor((2, 3, 7), dtype), [3]), {}
        yield "adaptive_max_pool2d", (x, [7, 3]), {"used": {0}}
        yield "reflection_pad1d", (tensor((2, 3, 7), dtype), [2, 1]), {}
        yield "reflection_pad2d", (x, [2, 1, 0, 3]), {}
        yield "reflection_pad3d", (volume, [2, 1, 0, 3, 1, 1]), {}
        yield "replication_pad1d", (tensor((2, 3, 7), dtype), [2, 1]), {}
        yield "replication_pad2d", (x, [2, 1, 0, 3]), {}
        yield "replication_pad3d", (volume, [2, 1, 0, 3, 1, 1]), {}
        names = {1: "linear1d", 2: "bilinear2d", 3: "trilinear3d"}
        for n, name in names.items():
            y = tensor((1, 2, *(5, 4, 3)[:n]), dtype)
            for size, scales in (
                ([8, 9, 7][:n], None),
                (None, [2.0] * n),
                (None, [1.6, 0.7, 1.3][:n]),
                (None, [1.1, 1.2, 1.3][:n]),
                ([3, 2, 2][:n], None),
            ):
                yield f"upsample_nearest{n}d.vec", (y, size, scales), {}
                yield f"_upsample_nearest_exact{n}d.vec", (y, size, scales), {}
                for corners in (False, True):
                    yield f"upsample_{name}.vec", (y, size, corners, scales), {}
                    if n == 2:
                        yield "upsample_bicubic2d.vec", (y, size, corners, scales), {}
    for dtype in FLOAT[:2]:
        for mode in range(3):
            for padding in range(3):
                for corners in (False, True):
                    yield "grid_sampler_2d", (
                        tensor((2, 3, 7, 6), dtype),
                        tensor((2, 4, 5, 2), dtype, 1, -1.4, 1.4),
                        mode,
                        padding,
                        corners,
                    ), {}
        yield "col2im", (tensor((2, 12, 12), dtype), [5, 4], [2, 2], [1, 1], [0, 0], [1, 1]), {}
        yield "col2im", (tensor((12, 16), dtype), [6, 5], [2, 2], [2, 1], [1, 0], [1, 1]), {}
    for dtype in ALL:
        yield "constant_pad_nd", (tensor((2, 3, 4), dtype), [1, 2]), {}
        yield "constant_pad_nd", (tensor((2, 3, 4), dtype), [1, -1, 0, 2, 3, 0], 1), {}


def norm_cases():
    for dtype in FLOAT[:3]:
        for shape in ((2, 4), (2, 4, 5), (2, 4, 3, 5)):
            x = tensor(shape, dtype)
            w, b, mean, var = (tensor((4,), dtype, i, 1, 2) for i in range(4))
            yield "_native_batch_norm_legit_no_training", (x, w, b, mean, var, 0.1, 1e-5), {"used": {0}}
            yield "_native_batch_norm_legit_no_training", (x, None, None, mean, var, 0.1, 1e-3), {"used": {0}}
            yield "_native_batch_norm_legit.no_stats", (x, w, b, True, 0.1, 1e-5), {}
            yield "_native_batch_norm_legit_functional", (x, w, b, mean, var, True, 0.1, 1e-5), {}
            yield "_native_batch_norm_legit_functional", (x, None, None, mean, var, False, 0.1, 1e-5), {"used": {0, 3, 4}}
            last = shape[-1:]
            lw, lb = tensor(last, dtype, 5), tensor(last, dtype, 6)
            yield "native_layer_norm", (x, list(last), lw, lb, 1e-5), {}
            yield "native_layer_norm", (x, list(last), None, None, 1e-3), {}
            yield "native_layer_norm", (x, list(shape[1:]), None, None, 1e-3), {}
            yield "rms_norm", (x, list(last), lw, 1e-5), {}
            yield "rms_norm", (x, list(last), None, None), {}
            yield "_fused_rms_norm", (x, list(last), lw, 1e-5), {"used": {0}}
            spots = math.prod(shape[2:])
            yield "native_group_norm", (x, w, b, 2, 4, spots, 2, 1e-5), {}
            yield "native_group_norm", (x, None, None, 2, 4, spots, 4, 1e-3), {}


FAMILIES = [
    unary_cases,
    binary_cases,
    other_pointwise_cases,
    reduction_cases,
    shape_cases,
    indexing_cases,
    product_cases,
    layer_cases,
    image_cases,
    norm_cases,
]

# Empty tensors have no contents to compare, sizes are numbers and not values.
WITHOUT_CASES = {
    "empty.memory_format",
    "empty_strided",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "sym_size.int",
    "sym_numel",
}


def by_op():
    """Cases by op, in the order of the table."""
    found = {}
    for family in FAMILIES:
        for name, args, options in family():
            found.setdefault(name, []).append((args, options))
    return found
