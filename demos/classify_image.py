"""Draws pictures of circles, squares and crosses, trains a small convolutional network on them and names new ones.

python demos/classify_image.py
"""

import numpy as np
import pyc

SIZE, BATCH, STEPS = 16, 32, 250
NAMES = ("circle", "square", "cross")


def draw(kind, rng):
    """One picture, f32[1,SIZE,SIZE]: a shape somewhere, of some size, under noise."""
    radius = rng.uniform(3, 5)
    y0, x0 = rng.uniform(radius, SIZE - radius, 2)
    y, x = np.mgrid[:SIZE, :SIZE]
    dy, dx = np.abs(y - y0), np.abs(x - x0)
    far = np.hypot(dy, dx) if kind == 0 else np.maximum(dy, dx)
    inside = far < radius if kind < 2 else (np.minimum(dy, dx) < 1) & (far < radius)
    return (inside + rng.normal(0, 0.1, (SIZE, SIZE)))[None].astype(np.float32)


def pictures(rng):
    kinds = rng.integers(0, len(NAMES), BATCH)
    return np.stack([draw(kind, rng) for kind in kinds]), kinds


def network():
    rng = np.random.default_rng(0)
    b = pyc.ModelBuilder("shapes")

    def weights(name, *shape):
        scale = np.sqrt(2 / np.prod(shape[1:])) if len(shape) == 4 else np.sqrt(1 / shape[0])
        return b.constant(name, rng.normal(0, scale, shape).astype(np.float32))

    x = b.input("picture", "f32", (BATCH, 1, SIZE, SIZE))
    x = b.relu(b.conv(x, weights("w1", 8, 1, 3, 3), pads=[1, 1, 1, 1]))
    x = b.max_pool(x, kernel=[2, 2], strides=[2, 2])
    x = b.relu(b.conv(x, weights("w2", 16, 8, 3, 3), pads=[1, 1, 1, 1]))
    x = b.reshape(b.max_pool(x, kernel=[2, 2], strides=[2, 2]), (BATCH, 16 * 4 * 4))
    b.output(x @ weights("w3", 16 * 4 * 4, len(NAMES)), "scores")
    return b


def main():
    rng = np.random.default_rng(1)
    trainer = pyc.Trainer(network(), loss="cross_entropy", optimizer="adamw", lr=0.003)
    while trainer.steps_done < STEPS:
        images, kinds = pictures(rng)
        loss = trainer.step(images, kinds).loss
    classify = trainer.compile()
    images, kinds = pictures(rng)
    found = classify(images).argmax(1)
    for row in images[0, 0]:
        print("".join(" .:*#"[int(np.clip(4 * v + 0.5, 0, 4))] for v in row))
    print(f"this is a {NAMES[found[0]]}")
    right = (found == kinds).mean()
    print(f"loss {loss:.3f} after {STEPS} steps; {right:.0%} of {BATCH} new pictures named right")
    assert right >= 0.9


main()
