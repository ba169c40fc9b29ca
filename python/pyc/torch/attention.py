"""Attention, and the layers that torch has as one op."""

from __future__ import annotations

import math

import numpy

from ..builder import Value
from .nn import linear
from .reductions import reduced
from .shapes import reshaped
from .table import Call, op


@op("_scaled_dot_product_flash_attention_for_cpu")
def _attention(
    c: Call,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> list[Value | None]:
    c.need(dropout_p == 0, "dropout")
    c.need(1 not in c.used, "its logsumexp")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = c.apply("matmul", query, c.apply("transpose", key, perm=[0, 1, 3, 2])) * c.number(scale, query.dtype)
    if is_causal:
        seen = numpy.tril(numpy.ones((query.shape[-2], key.shape[-2]), bool))
        scores = c.apply("where", c.array(seen), scores, c.number(-math.inf, scores.dtype))
    if attn_mask is not None:
        scores = scores + c.cast(attn_mask, scores.dtype)
    return [c.apply("matmul", c.apply("softmax", scores, axis=-1), value), None]


def _self_attention(c: Call, x: Value, heads: int, qkv: Value, qkv_bias: Value) -> tuple[Value, Value]:
    """Of x (batch, length, width): the heads side by side again, and their weights."""
    batch, length, width = x.shape
    parts = reshaped(c, linear(c, x, qkv, qkv_bias), [batch, length, 3, heads, width // heads])
    turned = c.apply("transpose", parts, perm=[2, 0, 3, 1, 4])
    q, k, v = (
        reshaped(c, part, [batch, heads, length, width // heads])
        for part in c.b.ops("split", [turned], axis=0, sizes=[1, 1, 1])
    )
    scale = c.number(1 / math.sqrt(width // heads), x.dtype)
    scores = c.apply("matmul", q * scale, c.apply("transpose", k, perm=[0, 1, 3, 2]))
    weights = c.apply("softmax", scores, axis=-1)
    joined = c.apply("transpose", c.apply("matmul", weights, v), perm=[0, 2, 1, 3])
    return reshaped(c, joined, [batch, length, width]), weights


@op("_native_multi_head_attention")
def _multi_head(
    c: Call,
    query: Value,
    key: Value,
    value: Value,
    embed_dim: int,
    num_head: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    need_weights: bool = True,
    average_attn_weights: bool = True,
) -> list[Value | None]:
    c.need(query.id == key.id == value.id, "attention to another sequence")
    joined, weights = _self_attention(c, query, num_head, qkv_weight, qkv_bias)
    shown = reduced(c, "reduce_mean", weights, [1], False) if average_attn_weights else weights
    c.need(need_weights or 1 not in c.used, "weights that it does not give")
    return [linear(c, joined, proj_weight, proj_bias), shown if need_weights else None]


@op("_transformer_encoder_layer_fwd")
def _encoder_layer(
    c: Call,
    src: Value,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    ffn_weight_1: Value,
    ffn_bias_1: Value,
    ffn_weight_2: Value,
    ffn_bias_2: Value,
) -> Value:
    def norm1(x: Value) -> Value:
        return c.apply("layer_norm", x, norm_weight_1, norm_bias_1, epsilon=eps)

    def norm2(x: Value) -> Value:
        return c.apply("layer_norm", x, norm_weight_2, norm_bias_2, epsilon=eps)

    def attended(x: Value) -> Value:
        return linear(c, _self_attention(c, x, num_heads, qkv_weight, qkv_bias)[0], proj_weight, proj_bias)

    def fed(x: Value) -> Value:
        inside = c.apply("gelu" if use_gelu else "relu", linear(c, x, ffn_weight_1, ffn_bias_1))
        return linear(c, inside, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attended(norm1(src))
        return x + fed(norm2(x))
    x = norm1(src + attended(src))
    return norm2(x + fed(x))
