"""An ONNX graph as calls of PyTorch, one after another (eager): the ops that torch.onnx writes for the skeletons."""

import functools
import math

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def _gemm(a, b, c=None, alpha=1.0, beta=1.0, transA=0, transB=0):
    if alpha == beta == 1.0 and transB and not transA:
        return F.linear(a, b, c)
    product = alpha * ((a.T if transA else a) @ (b.T if transB else b))
    return product if c is None else product + beta * c


def _pads(pads, rank):
    """Pads as torch takes them; uneven ones are beyond what is needed here."""
    pads = pads or [0] * (2 * rank)
    if pads[:rank] != pads[rank:]:
        raise NotImplementedError("pads that differ between begin and end")
    return pads[:rank]


def _conv(x, w, b=None, dilations=None, group=1, pads=None, strides=None, **_):
    rank = w.ndim - 2
    call = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return call(x, w, b, strides or [1] * rank, _pads(pads, rank), dilations or [1] * rank, group)


def _max_pool(x, kernel_shape, pads=None, strides=None, dilations=None, ceil_mode=0, **_):
    rank = len(kernel_shape)
    call = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    return call(x, kernel_shape, strides, _pads(pads, rank), dilations or [1] * rank, bool(ceil_mode))


@functools.lru_cache(maxsize=16)  # of constants, which a module of torch would have in its own order
def _lstm_weights(w, r, b, hidden_size):
    """ONNX has the gates as i o f c, torch as i f c o."""
    order = torch.cat([torch.arange(gate * hidden_size, (gate + 1) * hidden_size) for gate in (0, 2, 3, 1)])
    size = 4 * hidden_size
    return [w[0][order], r[0][order], b[0][:size][order], b[0][size:][order]]


def _lstm(x, w, r, b, _, h, c, hidden_size, **attributes):
    if attributes.get("direction", b"forward") != b"forward" or attributes.get("layout", 0):
        raise NotImplementedError("LSTM other than forward")
    return torch.lstm(x, (h, c), _lstm_weights(w, r, b, hidden_size), True, 1, 0.0, False, False, False)[0].unsqueeze(1)


def _reshape(x, shape, allowzero=0):
    shape = shape.tolist()
    return x.reshape([x.shape[i] if size == 0 and not allowzero else size for i, size in enumerate(shape)])


def _slice(x, starts, ends, axes=None, steps=None):
    index = [slice(None)] * x.ndim
    axes = range(len(starts)) if axes is None else axes.tolist()
    steps = [1] * len(starts) if steps is None else steps.tolist()
    for axis, start, end, step in zip(axes, starts.tolist(), ends.tolist(), steps):
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _gather(x, indices, axis=0):
    if axis == 0 and x.ndim == 2:
        return F.embedding(indices, x)
    picked = torch.index_select(x, axis, indices.reshape(-1))
    return picked.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def _squeeze(x, axes=None):
    return x.squeeze() if axes is None else x.squeeze(axes.tolist())


def _unsqueeze(x, axes):
    rank = x.ndim + len(axes)
    for axis in sorted(axis % rank for axis in axes.tolist()):
        x = x.unsqueeze(axis)
    return x


def _reduce_mean(x, axes=None, keepdims=1, **_):
    return x.mean(list(range(x.ndim)) if axes is None else axes.tolist(), keepdim=bool(keepdims))


def _layer_norm(x, scale, bias=None, axis=-1, epsilon=1e-5, **_):
    return F.layer_norm(x, x.shape[axis % x.ndim :], scale, bias, epsilon)


def _split(x, sizes=None, axis=0, num_outputs=None):
    return x.split(math.ceil(x.shape[axis] / num_outputs) if sizes is None else sizes.tolist(), axis)


CALLS = {
    "Add": torch.add,
    "And": torch.logical_and,
    "Clip": lambda x, low=None, high=None: torch.clamp(x, low, high),
    "Concat": lambda *x, axis: torch.cat(x, axis),
    "Conv": _conv,
    "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(x.shape, shape.tolist())),
    "Gather": _gather,
    "GatherElements": lambda x, indices, axis=0: torch.gather(x, axis, indices),
    "Gelu": lambda x, approximate=b"none": F.gelu(x, approximate=approximate.decode()),
    "Gemm": _gemm,
    "GreaterOrEqual": torch.ge,
    "LSTM": _lstm,
    "LayerNormalization": _layer_norm,
    "MatMul": torch.matmul,
    "MaxPool": _max_pool,
    "Mul": torch.mul,
    "Neg": torch.neg,
    "Pow": torch.pow,
    "Range": lambda start, end, step: torch.arange(start.item(), end.item(), step.item()),
    "Reciprocal": torch.reciprocal,
    "ReduceMean": _reduce_mean,
    "Relu": torch.relu,
    "Reshape": _reshape,
    "Shape": lambda x, start=0, end=None: torch.tensor(list(x.shape)[start:end]),
    "Sigmoid": torch.sigmoid,
    "Slice": _slice,
    "Softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "Split": _split,
    "Sqrt": torch.sqrt,
    "Squeeze": _squeeze,
    "Tanh": torch.tanh,
    "Transpose": lambda x, perm: x.permute(perm),
    "Unsqueeze": _unsqueeze,
    "Where": torch.where,
}


class Graph:
    """The model's nodes in order; what depends on constants alone is computed once, other values are let go after their last use."""

    @torch.inference_mode()
    def __init__(self, path):
        graph = onnx.load(path).graph
        unknown = sorted({node.op_type for node in graph.node} - set(CALLS))
        if unknown:
            raise NotImplementedError(f"ops: {', '.join(unknown)}")
        self.constants = {t.name: torch.from_numpy(np.array(numpy_helper.to_array(t))) for t in graph.initializer}
        self.constants[""] = None  # an input left out
        self.outputs = [value.name for value in graph.output]
        last = {name: i for i, node in enumerate(graph.node) for name in node.input}
        kept = {*self.constants, *self.outputs}
        self.steps = []
        for i, node in enumerate(graph.node):
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            call = functools.partial(CALLS[node.op_type], **attributes)
            call.kind = node.op_type
            if all(name in self.constants for name in node.input):
                _step(call, node.input, node.output, self.constants)
                kept.update(node.output)
                continue
            done = {name for name in node.input if last[name] == i and name not in kept}
            self.steps.append((call, list(node.input), list(node.output), done))

    @torch.inference_mode()
    def run(self, inputs):
        values = {**self.constants, **inputs}
        for call, names, outputs, done in self.steps:
            _step(call, names, outputs, values)
            for name in done:
                del values[name]
        return [values[name] for name in self.outputs]


def _step(call, names, outputs, values):
    result = call(*[values[name] for name in names])
    values.update(zip(outputs, result if isinstance(result, (tuple, list)) else (result,)))
