"""Recurrent layers that torch has as one op."""

from __future__ import annotations

from ..builder import Value
from .shapes import reshaped, sliced
from .table import Call, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LSTM = 2  # of torch's modes


def _gates(c: Call, v: Value) -> Value:
    """From torch's order i, f, c, o to PyC's i, o, f, c, as one direction of it."""
    i, f, g, o = c.b.ops("split", [v], axis=0, sizes=[v.shape[0] // 4] * 4)
    joined = c.apply("concat", i, o, f, g, axis=0)
    return reshaped(c, joined, [1, *joined.shape])


def _layer(
    c: Call, x: Value, directions: list[Sequence[Value]], h: Value, cell: Value, direction: str
) -> tuple[Value, Value, Value]:
    """One layer over x (steps, batch, features); each direction has its weights, then its biases if there are some."""
    turned = [[_gates(c, v) for v in weights] for weights in directions]
    if len(turned[0]) == 4:
        turned = [[w, r, c.apply("concat", b, d, axis=1)] for w, r, b, d in turned]
    columns = list(zip(*turned))
    joined = [column[0] if len(column) == 1 else c.apply("concat", *column, axis=0) for column in columns]
    names = [*(["b"] if len(joined) == 3 else []), "initial_h", "initial_c"]
    attributes = {"with": ",".join(names), "direction": direction}
    y, h, cell = c.b.ops("lstm", [x, *joined, h, cell], None, **attributes)
    steps, count, batch, size = y.shape
    if count > 1:
        y = c.apply("transpose", y, perm=[0, 2, 1, 3])
    return reshaped(c, y, [steps, batch, count * size]), h, cell


@op("lstm.input")
def _lstm(
    c: Call,
    input: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Value]:
    c.need(not train or dropout == 0, "dropout")
    c.need(len(input.shape) == 3 and 0 not in input.shape, "an input that is no batch of sequences")
    each, ways = (4 if has_biases else 2), (2 if bidirectional else 1)
    c.need(len(params) == each * ways * num_layers, "projections")
    x = c.apply("transpose", input, perm=[1, 0, 2]) if batch_first else input
    hs, cells = [], []
    for i in range(num_layers):
        at = i * ways * each
        weights = [params[at + k * each : at + (k + 1) * each] for k in range(ways)]
        first = [sliced(c, state, 0, i * ways, (i + 1) * ways) for state in hx]
        x, h, cell = _layer(c, x, weights, first[0], first[1], "bidirectional" if bidirectional else "forward")
        hs.append(h)
        cells.append(cell)
    y = c.apply("transpose", x, perm=[1, 0, 2]) if batch_first else x
    return [y, *(v[0] if len(v) == 1 else c.apply("concat", *v, axis=0) for v in (hs, cells))]


@op("mkldnn_rnn_layer")
def _rnn_layer(
    c: Call,
    input: Value,
    weight0: Value,
    weight1: Value,
    weight2: Value,
    weight3: Value,
    hx_: Value,
    cx_: Value,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> list[Value | None]:
    """One layer in one direction over steps, batch, features."""
    c.need(mode == _LSTM, f"mode={mode}")
    c.need(not batch_sizes, "sequences of several lengths")
    c.need(3 not in c.used, "its workspace")
    weights = [weight0, weight1, weight2, weight3] if has_biases else [weight0, weight1]
    states = [reshaped(c, state, [1, input.shape[1], hidden_size]) for state in (hx_, cx_)]
    y, h, cell = _layer(c, input, [weights], states[0], states[1], "reverse" if reverse else "forward")
    return [y, reshaped(c, h, hx_.shape), reshaped(c, cell, cx_.shape), None]
