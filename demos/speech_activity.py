"""Says when somebody speaks, block by block, as sound arrives.

Each block of 20 ms goes through one model: its spectrum (a product with sines and cosines), how far the loudest band is above the rest, and a
running mean of that, which the model keeps as its state from call to call.

python demos/speech_activity.py
"""

import numpy as np
import pyc

RATE, BLOCK, BANDS = 8000, 160, 64
THRESHOLD, KEPT = 4.0, 0.7


def detector():
    angle = 2 * np.pi * np.outer(np.arange(BLOCK), np.arange(1, BANDS + 1)) / BLOCK
    window = np.hanning(BLOCK)[:, None]
    b = pyc.ModelBuilder("activity")
    sound, mean = b.input("sound", "f32", (1, BLOCK)), b.input("mean", "f32", (1, 1))
    real = sound @ b.constant("cosines", (np.cos(angle) * window).astype(np.float32))
    imaginary = sound @ b.constant("sines", (np.sin(angle) * window).astype(np.float32))
    power = real * real + imaginary * imaginary + 1e-6
    contrast = b.log(b.reduce_max(power, axes=[1]) / b.reduce_mean(power, axes=[1])) * 2.0
    now = b.add(mean * KEPT, contrast * (1 - KEPT), name="mean.next")
    b.output(now)
    b.output(b.greater(now, b.scalar("f32", THRESHOLD)), "speaks")
    return b.compile(threads=1, state={"mean": "mean.next"})


def recording(rng):
    """Six seconds of noise, with a voice (a tone with overtones that rises and falls) in two places."""
    time = np.arange(6 * RATE) / RATE
    spoken = ((time > 1) & (time < 2.5)) | ((time > 4) & (time < 5))
    pitch = np.cumsum(140 + 30 * np.sin(2 * np.pi * 0.7 * time)) / RATE
    voice = sum(np.sin(2 * np.pi * n * pitch) / n for n in range(1, 6))
    return (0.1 * rng.normal(size=time.size) + spoken * voice).astype(np.float32), spoken


def main():
    sound, spoken = recording(np.random.default_rng(0))
    model = detector()
    blocks = sound.reshape(-1, 1, BLOCK)
    heard = np.array([model(block).item() for block in blocks])
    truth = spoken.reshape(-1, BLOCK).mean(1) > 0.5
    edges = np.flatnonzero(np.diff(np.concatenate([[0], heard, [0]]).astype(int)))
    for begin, end in edges.reshape(-1, 2):
        print(f"speech from {begin * BLOCK / RATE:.2f} s to {end * BLOCK / RATE:.2f} s")
    right = (heard == truth).mean()
    print(f"{right:.0%} of {len(heard)} blocks told right")
    assert right > 0.9 and len(edges) == 4


main()
