"""Writes text token by token with a small decoder, whose cache of keys and values is the model's state and stays where it lies.

Its weights are drawn at random, so the text means nothing; the point is that the cache changes nothing but the time: the tokens are those of a
decoder that reads everything again for each.

python demos/decode.py
"""

import time

import numpy as np
import pyc

WORDS, WIDTH, HEADS, LAYERS, LENGTH = 256, 64, 4, 2, 64
DEPTH = WIDTH // HEADS


def weight(b, name, *shape):
    return b.random(name, "f32", shape, seed=len(name) * 131 + sum(map(ord, name)), lo=-0.25, hi=0.25)


def attend(b, q, k, v, seen):
    """q [heads,new,depth], k and v [heads,LENGTH,depth]; `seen` is 0 for a key that may be looked at, else very low."""
    scores = q @ b.transpose(k, (0, 2, 1)) * DEPTH**-0.5 + seen
    return b.softmax(scores, axis=-1) @ v


def layer(b, i, x, cache, seen):
    """x [new,width]; `cache` makes all keys or values of the layer out of new ones [heads,new,depth]."""
    new = x.shape[0]
    heads = lambda y: b.transpose(b.reshape(y, (new, HEADS, DEPTH)), (1, 0, 2))  # noqa: E731
    norm = lambda y, n: b.layer_norm(y, b.constant(f"{n}{i}", np.ones(WIDTH, np.float32)))  # noqa: E731
    y = norm(x, "before")
    q, k, v = (heads(y @ weight(b, f"{n}{i}", WIDTH, WIDTH)) for n in ("query", "key", "value"))
    y = attend(b, q, cache(k, f"keys{i}"), cache(v, f"values{i}"), seen)
    x = x + b.reshape(b.transpose(y, (1, 0, 2)), (new, WIDTH)) @ weight(b, f"out{i}", WIDTH, WIDTH)
    y = norm(x, "between")
    return x + b.gelu(y @ weight(b, f"up{i}", WIDTH, 4 * WIDTH)) @ weight(b, f"down{i}", 4 * WIDTH, WIDTH)


def tables(b):
    """Vectors of the words and of the places."""
    return weight(b, "words", WORDS, WIDTH), weight(b, "places", LENGTH, WIDTH)


def with_cache():
    """One token in, scores of the next out; keys and values of earlier ones are states."""
    b = pyc.ModelBuilder("decoder")
    token, at = b.input("token", "i64", (1,)), b.input("at", "i64", (1,))
    places = b.iota(axis=0, shape=[LENGTH])
    here = b.reshape(b.equal(places, at), (1, LENGTH, 1))
    ahead = b.reshape(b.greater(places, at), (1, 1, LENGTH))
    seen = b.where(ahead, b.scalar("f32", -1e30), b.scalar("f32", 0.0))
    states = {}

    def cache(new, name):
        old = b.input(name, "f32", (HEADS, LENGTH, DEPTH))
        states[name] = name + ".next"
        grown = b.where(here, new, old, name=name + ".next")
        b.output(grown)
        return grown

    words, where = tables(b)
    x = b.gather(words, token) + b.gather(where, at)
    for i in range(LAYERS):
        x = layer(b, i, x, cache, seen)
    b.output(x @ b.transpose(words, (1, 0)), "scores")
    return b.compile(state=states)


def without_cache():
    """All tokens in, scores of what follows each out."""
    b = pyc.ModelBuilder("whole")
    tokens = b.input("tokens", "i64", (LENGTH,))
    row, column = b.iota(axis=0, shape=[LENGTH, LENGTH]), b.iota(axis=1, shape=[LENGTH, LENGTH])
    seen = b.where(b.greater(column, row), b.scalar("f32", -1e30), b.scalar("f32", 0.0))
    words, where = tables(b)
    x = b.gather(words, tokens) + where
    for i in range(LAYERS):
        x = layer(b, i, x, lambda new, _: new, b.reshape(seen, (1, LENGTH, LENGTH)))
    b.output(x @ b.transpose(words, (1, 0)), "scores")
    return b.compile()


def main():
    text = list(b"PyC ")
    step, whole = with_cache(), without_cache()
    cached, began = list(text), time.perf_counter()
    for at in range(LENGTH - 1):
        scores = step(np.array([cached[at]]), np.array([at]))
        if at + 1 == len(cached):
            cached.append(int(scores.argmax()))
    middle = time.perf_counter()
    again = list(text)
    while len(again) < LENGTH:
        padded = np.array(again + [0] * (LENGTH - len(again)))
        again.append(int(whole(padded)[len(again) - 1].argmax()))
    end = time.perf_counter()
    print(bytes(cached).decode("latin-1").encode("unicode_escape").decode())
    count = LENGTH - len(text)
    print(f"{count} tokens: {1e6 * (middle - began) / count:.0f} us each with a cache, {1e6 * (end - middle) / count:.0f} us without")
    assert cached == again


main()
