"""Cases of attention and what goes with it. Products and sums are in their order; exp and tanh may be 1 ulp off."""

import numpy as np

from cases.contractions import product
from cases.files import Cases, generator, lit, rnd, Tensor
from cases.norms import real
from cases.numerics import apply, chain, exp_exact, INF, NAN, NARROW, rounded, sigmoid_exact, tanh_exact, tree_sum
from cases.sums import reduce_op


def per_head(a, b, dt):
    """Each head of a with the head of b that its group shares."""
    return product(a, np.repeat(b, a.shape[1] // b.shape[1], axis=1), dt)


def attend(q, k, v, named, scale=0.0, causal=False, softcap=0.0, left=-1, right=-1, mode=0):
    dt, wide = q.dt, real(q).dt
    t = real(q).a.dtype.type
    key, value = k.a, v.a
    if "past_key" in named:
        key = np.concatenate([named["past_key"].a, key], axis=2)
        value = np.concatenate([named["past_value"].a, value], axis=2)
    queries, keys = q.a.shape[2], key.shape[2]
    s = per_head(q.w, np.swapaxes(key, 2, 3).astype(t), wide) * t(scale or 1.0 / np.sqrt(q.a.shape[3]))
    shown = [s]
    if softcap:
        s = apply(tanh_exact, s / t(softcap), wide) * t(softcap)
    shown.append(s)
    if "mask" in named:
        mask = named["mask"].a
        short = keys - mask.shape[-1] if mask.shape[-1] != 1 else 0
        beyond = False if mask.dtype == np.bool_ else -INF
        mask = np.concatenate([mask, np.full(mask.shape[:-1] + (short,), beyond, mask.dtype)], axis=-1)
        s = np.where(mask, s, t(-INF)) if mask.dtype == np.bool_ else s + mask.astype(t)
    at_key, at_query = np.arange(keys).reshape(1, 1, 1, -1), np.arange(queries).reshape(1, 1, -1, 1)
    if "nonpad_kv_seqlen" in named:
        lengths = named["nonpad_kv_seqlen"].a.reshape(-1, 1, 1, 1)
        s = np.where(at_key < lengths, s, t(-INF))
        at_query = at_query + lengths - queries
    else:
        at_query = at_query + keys - k.a.shape[2]
    allowed = np.ones(s.shape, bool)
    if causal:
        allowed &= at_key <= at_query
    if left >= 0:
        allowed &= at_key >= at_query - left
    if right >= 0:
        allowed &= at_key <= at_query + right
    s = np.where(allowed, s, t(-INF))
    shown.append(s)
    y, m, l = blocked(s, np.repeat(value.astype(t), q.a.shape[1] // value.shape[1], axis=1), wide)
    none = m == -INF
    p = apply(exp_exact, s - np.where(none, t(0), m)[..., None], wide) / np.where(none, t(1), l)[..., None]
    shown.append(p)
    return [Tensor(dt, rounded(y, dt)), Tensor(dt, key), Tensor(dt, value), Tensor(dt, rounded(shown[mode], dt))], m, l


BLOCK = 128


def blocked(s, v, wide):
    """Rows, their maxima and sums: softmax(s)·v over blocks of 128 keys with a running maximum."""
    t = s.dtype.type
    m, l = np.full(s.shape[:3], -INF, s.dtype), np.zeros(s.shape[:3], s.dtype)
    o = np.zeros((*s.shape[:3], v.shape[3]), s.dtype)
    for begin in range(0, s.shape[3], BLOCK):
        part, values = s[..., begin:begin + BLOCK], v[:, :, begin:begin + BLOCK]
        after = np.maximum(m, part.max(axis=3))
        live = after != -INF
        with np.errstate(invalid="ignore"):
            factor = np.where(live, apply(exp_exact, m - after, wide), t(1))
            p = np.where(part == -INF, t(0), apply(exp_exact, part - after[..., None], wide))
        l = l * factor + tree_sum(np.moveaxis(p, 3, 0))
        weighted = chain(np.moveaxis(p, 3, 0)[..., None], np.moveaxis(values, 2, 0)[:, :, :, None, :], segment=BLOCK)
        o = o * factor[..., None] + weighted
        m = after
    with np.errstate(invalid="ignore", divide="ignore"):
        y = np.where((m == -INF)[..., None], t(0), (o + t(0)) / l[..., None])
    return y, m, l


@generator("attention")
def attention(op):
    c = Cases(op)
    order = ("mask", "past_key", "past_value", "nonpad_kv_seqlen")
    words = {"left": "left_window", "right": "right_window", "mode": "qk_output"}

    def run(name, shape, dt="f32", named=None, **attrs):
        b, h, g, s, t, d, e = shape
        q, k, v = rnd(dt, (b, h, s, d), 1), rnd(dt, (b, g, t, d), 2), rnd(dt, (b, g, t, e), 3)
        named = named or {}
        given = [n for n in order if n in named]
        text = [f'with="{",".join(given)}"'] if given else []
        text += [f"{words.get(k_, k_)}={str(a).lower()}" for k_, a in attrs.items()]
        tol = {"f32": "ulp 8 abs 1e-6", "f64": "ulp 8 abs 1e-14"}.get(dt, "ulp 1 abs 1e-3")
        c.run(name, [q, k, v] + [named[n] for n in given], attend(q, k, v, named, **attrs)[0], ", ".join(text), tol)

    def b_mask(shape, seed):
        return {"mask": rnd("bool", shape, seed)}

    plain = (2, 3, 3, 4, 5, 8, 6)
    run("plain", plain)
    run("scale", plain, scale=0.25)
    run("one_query", (1, 2, 2, 1, 9, 4, 4), causal=True)
    run("causal", (1, 2, 2, 4, 4, 8, 8), causal=True)
    run("causal_more_keys", (1, 1, 1, 2, 5, 4, 4), causal=True)
    run("causal_more_queries", (1, 1, 1, 5, 2, 4, 4), causal=True)
    run("grouped", (2, 6, 2, 3, 4, 4, 5))
    run("multi_query", (1, 4, 1, 3, 4, 4, 4), causal=True)
    run("softcap", plain, softcap=1.5, mode=1)
    run("bool_mask", plain, named=b_mask((4, 5), 11), mode=2)
    run("bool_mask_4d", plain, named=b_mask((2, 1, 4, 5), 12))
    run("bool_mask_rows", plain, named=b_mask((4, 1), 13), mode=3)
    run("float_mask", plain, named={"mask": rnd("f32", (2, 3, 4, 5), 14)}, mode=2)
    run("float_mask_short", plain, named={"mask": rnd("f32", (4, 3), 15)}, mode=2)
    run("bool_mask_short", plain, named=b_mask((3, 1, 3), 16))
    run("infinite_mask", (1, 1, 1, 2, 3, 2, 2), named={"mask": lit("f32", [[-INF, -INF, -INF], [0.0, -INF, 1.0]])}, mode=3)
    past = {"past_key": rnd("f32", (2, 3, 2, 8), 21), "past_value": rnd("f32", (2, 3, 2, 6), 22)}
    run("past", plain, named=past)
    run("past_causal", (2, 3, 3, 5, 5, 8, 6), named=past, causal=True, mode=3)
    run("past_mask", plain, named={"mask": rnd("bool", (2, 1, 4, 7), 23), **past}, causal=True)
    lengths = {"nonpad_kv_seqlen": lit("i64", [3, 5])}
    run("lengths", plain, named=lengths, mode=3)
    run("lengths_causal", plain, named=lengths, causal=True, mode=3)
    run("lengths_mask", plain, named={**b_mask((4, 5), 24), **lengths})
    run("window", (1, 1, 1, 6, 6, 4, 4), left=2, right=1)
    run("left_window_causal", (1, 2, 1, 6, 6, 4, 4), left=2, causal=True)
    run("window_past", plain, named=past, right=0, mode=2)
    run("window_lengths", plain, named=lengths, left=1)
    run("long", (1, 1, 1, 2, 300, 16, 4))
    run("long_grouped", (1, 4, 2, 9, 260, 8, 12), causal=True)
    run("long_window", (1, 1, 1, 3, 400, 4, 4), left=100, right=0)
    run("long_masked", (1, 2, 1, 2, 290, 4, 4), named=b_mask((2, 290), 26), mode=3)
    run("whole_blocks", (1, 1, 1, 10, 256, 64, 64))
    run("no_keys", (1, 1, 1, 2, 0, 4, 4))
    run("no_queries", (1, 1, 1, 0, 2, 4, 4))
    for dt in ("f64", "f16", "bf16"):
        run(dt, (1, 2, 1, 3, 4, 8, 8), dt, causal=True)
    run("f16_mask", (1, 2, 1, 3, 4, 8, 8), "f16", named={"mask": rnd("f16", (3, 4), 25)}, softcap=2.0)
    q, k, v = "f32[1,4,3,8]", "f32[1,2,5,8]", "f32[1,2,5,6]"
    c.refuse("rank", ["f32[4,3,8]", k, v], "rank_mismatch", "q must have rank 4, found f32[4,3,8]")
    c.refuse("dtype", [t.replace("f32", "i32") for t in (q, k, v)], "dtype_mismatch", "q must have a float dtype")
    c.refuse("dtypes", [q, k, v.replace("f32", "f16")], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("sizes", [q, "f32[1,2,5,4]", v], "shape_mismatch", f"q {q}, k f32[1,2,5,4] and v {v} do not fit")
    c.refuse("values", [q, k, "f32[1,2,4,6]"], "shape_mismatch", f"q {q}, k {k} and v f32[1,2,4,6] do not fit")
    c.refuse("heads", [q, "f32[1,3,5,8]", "f32[1,3,5,6]"], "shape_mismatch",
             "the 4 heads of q must be a multiple of the 3 of k")
    c.refuse("half_a_past", [q, k, v, k], "invalid_argument", "past_key and past_value come together", 'with="past_key"')
    c.refuse("past_rank", [q, k, v, "f32[2,5,8]", v], "rank_mismatch", "past_key must have rank 4, found f32[2,5,8]",
             'with="past_key,past_value"')
    c.refuse("past_shape", [q, k, v, k, "f32[1,2,4,6]"], "shape_mismatch",
             "past_value must have shape [1,2,5,6], found f32[1,2,4,6]", 'with="past_key,past_value"')
    c.refuse("past_and_lengths", [q, k, v, k, v, "i64[1]"], "invalid_argument",
             "nonpad_kv_seqlen and past_key exclude one another", 'with="past_key,past_value,nonpad_kv_seqlen"')
    c.refuse("lengths_shape", [q, k, v, "i64[2]"], "shape_mismatch", "nonpad_kv_seqlen must have shape [1], found i64[2]",
             'with="nonpad_kv_seqlen"')
    c.refuse("lengths_dtype", [q, k, v, "f32[1]"], "dtype_mismatch", "nonpad_kv_seqlen must have i32 or i64, found f32[1]",
             'with="nonpad_kv_seqlen"')
    c.refuse("mask_dtype", [q, k, v, "i32[3,5]"], "dtype_mismatch", "mask must have dtype bool or f32, found i32[3,5]", 'with="mask"')
    c.refuse("mask_shape", [q, k, v, "bool[2,5]"], "shape_mismatch", "mask bool[2,5] does not broadcast to [1,4,3,5]", 'with="mask"')
    c.refuse("mask_long", [q, k, v, "bool[3,6]"], "shape_mismatch", "mask bool[3,6] does not broadcast to [1,4,3,5]", 'with="mask"')
    c.refuse("mode", [q, k, v], "invalid_argument", "qk_output must lie in [0,3], found 4", "qk_output=4")
    c.refuse("window_range", [q, k, v], "invalid_argument", "left_window must be -1 or more, found -2", "left_window=-2")
    c.refuse("names", [q, k, v, v], "invalid_argument",
             'with must name some of mask,past_key,past_value,nonpad_kv_seqlen in this order, found \\"bias\\"', 'with="bias"')
    c.write()


@generator("attend")
def attend_rows(op):
    c = Cases(op)
    words = {"left": "left_window", "right": "right_window"}
    names = {"nonpad_kv_seqlen": "lengths"}

    def run(name, shape, dt="f32", named=None, **attrs):
        b, h, g, s, t, d, e = shape
        q, k, v = rnd(dt, (b, h, s, d), 1), rnd(dt, (b, g, t, d), 2), rnd(dt, (b, g, t, e), 3)
        named = named or {}
        text = [f'with="{",".join(names.get(n, n) for n in named)}"'] if named else []
        text += [f"{words.get(k_, k_)}={str(a).lower()}" for k_, a in attrs.items()]
        wide = real(q).dt
        outputs, m, l = attend(q, k, v, named, **{"scale": 1.0, **attrs})
        y = attend(*(Tensor(wide, x.w) for x in (q, k, v)), named, **attrs)[0][0].a if dt != wide else outputs[0].a
        tol = {"f32": "ulp 8 abs 1e-6", "f64": "ulp 8 abs 1e-14"}.get(wide)
        c.run(name, [q, k, v, *named.values()], [Tensor(wide, y), Tensor(wide, m), Tensor(wide, l)], ", ".join(text), tol)

    run("plain", (2, 3, 3, 4, 5, 8, 6), scale=0.25)
    run("grouped", (2, 6, 2, 3, 4, 4, 5), scale=0.5, causal=True)
    run("blocks", (1, 2, 1, 9, 300, 8, 4), scale=0.5)
    run("mask", (1, 2, 2, 3, 140, 4, 4), named={"mask": rnd("bool", (3, 140), 4)}, scale=0.5)
    run("added_mask", (1, 2, 2, 3, 5, 4, 4), named={"mask": rnd("f32", (1, 1, 3, 5), 5)}, scale=0.5, softcap=2.0)
    run("lengths", (2, 1, 1, 3, 5, 4, 4), named={"nonpad_kv_seqlen": lit("i64", [3, 5])}, scale=0.5, left=1)
    run("no_keys", (1, 1, 1, 2, 0, 4, 4), scale=1.0)
    for dt in ("f64", "f16", "bf16"):
        run(dt, (1, 2, 1, 3, 4, 8, 8), dt, scale=0.5)
    q, k, v = "f32[1,4,3,8]", "f32[1,2,5,8]", "f32[1,2,5,6]"
    given = "scale=1.0"
    c.refuse("rank", ["f32[4,3,8]", k, v], "rank_mismatch", "q must have rank 4, found f32[4,3,8]", given)
    c.refuse("dtypes", [q, k, v.replace("f32", "f16")], "dtype_mismatch", "inputs must have one dtype", given)
    c.refuse("dtype", [t.replace("f32", "i32") for t in (q, k, v)], "dtype_mismatch", "q must have a float dtype", given)
    c.refuse("sizes", [q, "f32[1,2,5,4]", v], "shape_mismatch", f"q {q}, k f32[1,2,5,4] and v {v} do not fit", given)
    c.refuse("mask_dtype", [q, k, v, "i32[3,5]"], "dtype_mismatch", "mask must have dtype bool or f32, found i32[3,5]",
             given + ', with="mask"')
    c.refuse("mask_shape", [q, k, v, "bool[2,5]"], "shape_mismatch", "mask bool[2,5] does not broadcast to [1,4,3,5]",
             given + ', with="mask"')
    c.refuse("lengths_shape", [q, k, v, "i64[2]"], "shape_mismatch", "lengths must have shape [1], found i64[2]",
             given + ', with="lengths"')
    c.refuse("lengths_dtype", [q, k, v, "f32[1]"], "dtype_mismatch", "lengths must have i32 or i64, found f32[1]",
             given + ', with="lengths"')
    c.refuse("names", [q, k, v, v], "invalid_argument", 'with must name some of mask,lengths in this order, found \\"bias\\"',
             given + ', with="bias"')
    c.write()


@generator("rotary_embedding")
def rotary_embedding(op):
    c = Cases(op)

    def run(name, x, cos, sin, ids=None, interleaved=False, rotary=0, heads=0):
        w = x.w
        x4 = w if w.ndim == 4 else np.swapaxes(w.reshape(*w.shape[:2], heads, -1), 1, 2)
        r = rotary or x4.shape[3]
        table = [t.w[:, None] if ids is None else t.w[ids.a][:, None] for t in (cos, sin)]
        first, second = (slice(0, r, 2), slice(1, r, 2)) if interleaved else (slice(0, r // 2), slice(r // 2, r))
        a, b = x4[..., first], x4[..., second]
        y = x4.copy()
        y[..., first] = table[0] * a - table[1] * b
        y[..., second] = table[1] * a + table[0] * b
        y = y if w.ndim == 4 else np.swapaxes(y, 1, 2).reshape(w.shape)
        attrs = ["interleaved=true"] if interleaved else []
        attrs += ([f"rotary_dim={rotary}"] if rotary else []) + ([f"num_heads={heads}"] if heads else [])
        c.run(name, [t for t in (x, cos, sin, ids) if t is not None], rounded(y, x.dt), ", ".join(attrs))

    x4 = rnd("f32", (2, 3, 4, 8), 1)
    cos, sin = rnd("f32", (2, 4, 4), 2), rnd("f32", (2, 4, 4), 3)
    table = rnd("f32", (50, 4), 4), rnd("f32", (50, 4), 5)
    ids = rnd("i64", (2, 4), 6, 0.0, 50.0)
    run("halves", x4, cos, sin)
    run("interleaved", x4, cos, sin, interleaved=True)
    run("ids", x4, *table, ids)
    run("ids_i32", x4, *table, rnd("i32", (2, 4), 7, 0.0, 50.0), True)
    run("flat", rnd("f32", (2, 4, 24), 8), cos, sin, heads=3)
    run("flat_interleaved", rnd("f32", (2, 4, 24), 8), *table, ids, True, heads=3)
    part = rnd("f32", (2, 4, 2), 9), rnd("f32", (2, 4, 2), 10)
    run("part", x4, *part, rotary=4)
    run("part_interleaved", x4, *part, interleaved=True, rotary=4)
    run("part_flat", rnd("f32", (2, 4, 24), 11), *part, rotary=4, heads=3)
    run("specials", lit("f32", [[[[NAN, 1.0], [INF, 0.0], [-0.0, 0.0]]]]), lit("f32", [[[1.0], [0.0], [1.0]]]),
        lit("f32", [[[0.0], [1.0], [-0.0]]]))
    run("empty", lit("f32", [], (0, 3, 4, 8)), lit("f32", [], (0, 4, 4)), lit("f32", [], (0, 4, 4)))
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (1, 2, 3, 6), 12), rnd(dt, (1, 3, 3), 13), rnd(dt, (1, 3, 3), 14))
    c.fail("id_range", [x4, *table, lit("i64", [[0, 1, 2, 50], [0, 0, 0, 0]])], "position id out of range")
    c.fail("id_negative", [x4, *table, lit("i64", [[0, 1, 2, -1], [0, 0, 0, 0]])], "position id out of range")
    x, t = "f32[2,3,4,8]", "f32[2,4,4]"
    c.refuse("integers", ["i32[2,3,4,8]", "i32[2,4,4]", "i32[2,4,4]"], "dtype_mismatch", "x must have a float dtype")
    c.refuse("rank", ["f32[4,8]", t, t], "rank_mismatch", "x must have rank 3 or 4, found f32[4,8]")
    c.refuse("heads", ["f32[2,4,24]", t, t], "invalid_argument", "num_heads 0 must divide the last dim of f32[2,4,24]")
    c.refuse("odd", ["f32[2,3,4,7]", t, t], "invalid_argument", "7 elements to turn must be even and at most the head's 7")
    c.refuse("rotary", [x, t, t], "invalid_argument", "10 elements to turn must be even and at most the head's 8", "rotary_dim=10")
    c.refuse("dtypes", [x, t, "f16[2,4,4]"], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("table_rank", [x, "f32[50,4]", t], "rank_mismatch", "cos must have rank 3, found f32[50,4]")
    c.refuse("table_shape", [x, t, "f32[2,4,3]"], "shape_mismatch", "sin must have shape [2,4,4], found f32[2,4,3]")
    c.refuse("ids_shape", [x, "f32[50,4]", "f32[50,4]", "i64[4]"], "shape_mismatch",
             "position_ids must have shape [2,4], found i64[4]")
    c.refuse("ids_dtype", [x, "f32[50,4]", "f32[50,4]", "f32[2,4]"], "dtype_mismatch",
             "position_ids must have i32 or i64, found f32[2,4]")
    c.refuse("no_table", [x, "f32[0,4]", "f32[0,4]", "i64[2,4]"], "shape_mismatch", "cos f32[0,4] is empty")
    c.write()


@generator("linear_attention")
def linear_attention(op):
    c = Cases(op)

    def run(name, shape, rule, dt="f32", past=False, per_key=False, one_beta=False, scale=0.0):
        b, t, h, g, d, e = shape
        q, k, v = rnd(dt, (b, t, h * d), 1, -1.0, 1.0), rnd(dt, (b, t, g * d), 2, -1.0, 1.0), rnd(dt, (b, t, g * e), 3)
        named = {}
        if past:
            named["past_state"] = rnd("f32" if dt == "f16" else dt, (b, g, d, e), 4)
        if "gated" in rule:
            named["decay"] = rnd(dt, (b, t, g * d if per_key else g), 5, -1.0, 0.0)
        if "delta" in rule:
            named["beta"] = rnd(dt, (b, t, 1 if one_beta else g), 6, 0.0, 1.0)
        wide, one = real(q).dt, real(q).a.dtype.type
        state = named["past_state"].a.astype(one) if past else np.zeros((b, g, d, e), one)
        rows = []
        for i in range(t):
            kt, vt = k.w[:, i].reshape(b, g, d, 1), v.w[:, i].reshape(b, g, 1, e)
            if "gated" in rule:
                state = state * apply(exp_exact, named["decay"].w[:, i], wide).reshape(b, g, -1, 1)
            if "delta" in rule:
                vt = named["beta"].w[:, i].reshape(b, -1, 1, 1) * (vt - product(np.swapaxes(kt, 2, 3), state, wide))
            state = state + kt * vt
            rows.append(product(q.w[:, i].reshape(b, g, h // g, d), state, wide).reshape(b, 1, h * e))
        y = np.concatenate(rows, axis=1) if rows else np.zeros((b, 0, h * e), one)
        y = y * one(scale or 1.0 / np.sqrt(d))
        given = [n for n in ("past_state", "decay", "beta") if n in named]
        attrs = [f'update_rule="{rule}", num_heads={h}, kv_num_heads={g}'] + ([f"scale={scale}"] if scale else [])
        attrs += [f'with="{",".join(given)}"'] if given else []
        end = named["past_state"].dt if past else dt
        tol = "" if "gated" not in rule else "ulp 8 abs 1e-6" if dt == "f32" else "ulp 2 abs 1e-3"
        c.run(name, [q, k, v] + [named[n] for n in given],
              [Tensor(dt, rounded(y, dt)), Tensor(end, rounded(state, end))], ", ".join(attrs), tol)

    run("linear", (2, 3, 2, 2, 4, 3), "linear")
    run("linear_past", (1, 2, 2, 1, 4, 3), "linear", past=True, scale=0.5)
    run("gated", (2, 3, 2, 2, 4, 3), "gated")
    run("gated_per_key", (2, 3, 2, 2, 4, 3), "gated", per_key=True, past=True)
    run("delta", (2, 3, 4, 2, 4, 3), "delta")
    run("delta_one_beta", (2, 3, 2, 2, 4, 3), "delta", one_beta=True)
    run("gated_delta", (2, 4, 4, 2, 3, 5), "gated_delta", past=True)
    run("gated_delta_per_key", (1, 4, 2, 2, 3, 5), "gated_delta", per_key=True)
    run("one_token", (1, 1, 2, 1, 4, 4), "gated_delta", past=True)
    run("no_tokens", (1, 0, 2, 1, 4, 4), "linear", past=True)
    for dt in ("f64", "f16", "bf16"):
        run(dt, (1, 2, 2, 1, 3, 2), "delta", dt, past=True)
    q, k, v = "f32[1,2,8]", "f32[1,2,4]", "f32[1,2,6]"
    heads = 'num_heads=2, kv_num_heads=1, update_rule="linear"'
    c.refuse("rule", [q, k, v], "invalid_argument", 'update_rule must be \\"linear\\"', 'num_heads=2, kv_num_heads=1, update_rule="x"')
    c.refuse("decay", [q, k, v], "invalid_argument", 'update_rule \\"gated\\" takes decay and no beta',
             'num_heads=2, kv_num_heads=1, update_rule="gated"')
    c.refuse("beta", [q, k, v, v], "invalid_argument", 'update_rule \\"linear\\" takes no decay and no beta', heads + ', with="beta"')
    c.refuse("rank", ["f32[2,8]", k, v], "rank_mismatch", "q must have rank 3, found f32[2,8]", heads)
    c.refuse("integers", ["i32[1,2,8]", "i32[1,2,4]", "i32[1,2,6]"], "dtype_mismatch", "q must have a float dtype", heads)
    c.refuse("dtypes", [q, "f16[1,2,4]", v], "dtype_mismatch", "inputs must have one dtype", heads)
    c.refuse("heads", [q, k, v], "invalid_argument", "num_heads 2 must be a positive multiple of kv_num_heads 3",
             'num_heads=2, kv_num_heads=3, update_rule="linear"')
    c.refuse("sizes", [q, "f32[1,2,3]", v], "shape_mismatch", "do not fit 2 and 1 heads", heads)
    c.refuse("state", [q, k, v, "f32[1,1,4,4]"], "shape_mismatch", "past_state must have shape [1,1,4,6], found f32[1,1,4,4]",
             heads + ', with="past_state"')
    c.refuse("beta_shape", [q, k, v, "f32[1,2,3]"], "shape_mismatch", "beta must have shape [1,2,1], found f32[1,2,3]",
             'num_heads=2, kv_num_heads=1, update_rule="delta", with="beta"')
    c.refuse("decay_shape", [q, k, v, "f32[1,2,3]"], "shape_mismatch",
             "decay must have shape [1,2,1] or [1,2,4], found f32[1,2,3]",
             'num_heads=2, kv_num_heads=1, update_rule="gated", with="decay"')
    c.refuse("long", ["f32[1,5000,8]", "f32[1,5000,4]", "f32[1,5000,6]"], "unsupported",
             "sequences longer than 4096 are not unrolled", heads)
    c.write()


@generator("causal_conv_with_state")
def causal_conv_with_state(op):
    c = Cases(op)

    def run(name, shape, taps, dt="f32", bias=False, past=False, activation="none"):
        b, channels, length = shape
        x, w = rnd(dt, shape, 1), rnd(dt, (channels, 1, taps), 2)
        named = {"bias": rnd(dt, (channels,), 3)} if bias else {}
        if past:
            named["past_state"] = rnd(dt, (b, channels, taps - 1), 4)
        before = named["past_state"].a if past else np.zeros((b, channels, taps - 1), x.a.dtype)
        joined = np.concatenate([before, x.a], axis=2)
        at = np.arange(length)[None, :] + np.arange(taps)[:, None]
        terms = np.moveaxis(joined.astype(x.w.dtype)[:, :, at], 2, 0)
        factors = np.moveaxis(w.w[:, 0], 1, 0)[:, None, :, None]
        inside = None if past else np.broadcast_to((at >= taps - 1)[:, None, None, :], terms.shape)
        y = chain(terms, factors, inside)
        if bias:
            y = y + named["bias"].w[:, None]
        if activation != "none":
            y = y * apply(sigmoid_exact, y, real(x).dt)
        attrs = [f'with="{",".join(named)}"'] if named else []
        attrs += [] if activation == "none" else [f'activation="{activation}"']
        tol = "" if activation == "none" else "ulp 1" if dt in NARROW else "ulp 2"
        c.run(name, [x, w, *named.values()], [Tensor(dt, rounded(y, dt)), Tensor(dt, joined[:, :, length:])],
              ", ".join(attrs), tol)

    run("plain", (2, 3, 7), 4)
    run("bias", (2, 3, 7), 4, bias=True)
    run("past", (2, 3, 7), 4, past=True)
    run("all", (2, 3, 7), 4, bias=True, past=True, activation="silu")
    run("swish", (1, 5, 3), 2, activation="swish")
    run("one_token", (2, 3, 1), 4, bias=True, past=True)
    run("short", (2, 3, 2), 4)
    run("one_tap", (2, 3, 4), 1, past=True)
    run("no_tokens", (2, 3, 0), 3, past=True)
    run("empty", (0, 3, 4), 3)
    for dt in ("f64", "f16", "bf16"):
        run(dt, (1, 3, 5), 3, dt, True, True, "silu")
    x, w = "f32[2,3,7]", "f32[3,1,4]"
    c.refuse("activation", [x, w], "invalid_argument", 'activation must be \\"none\\", \\"silu\\" or \\"swish\\", found \\"relu\\"',
             'activation="relu"')
    c.refuse("integers", ["i32[2,3,7]", "i32[3,1,4]"], "dtype_mismatch", "x must have a float dtype")
    c.refuse("rank", ["f32[3,7]", w], "rank_mismatch", "x must have rank 3, found f32[3,7]")
    c.refuse("w_rank", [x, "f32[3,4]"], "rank_mismatch", "w must have rank 3, found f32[3,4]")
    c.refuse("w_shape", [x, "f32[2,1,4]"], "shape_mismatch", "w must have shape [3,1,K], found f32[2,1,4]")
    c.refuse("dtypes", [x, "f16[3,1,4]"], "dtype_mismatch", "inputs must have one dtype")
    c.refuse("bias_shape", [x, w, "f32[2]"], "shape_mismatch", "bias must have shape [3], found f32[2]", 'with="bias"')
    c.refuse("state", [x, w, "f32[2,3,4]"], "shape_mismatch", "past_state must have shape [2,3,3], found f32[2,3,4]",
             'with="past_state"')
    c.write()
