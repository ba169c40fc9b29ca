"""speed.py PYC [ROUNDS]: training steps of PyC beside torch eager, on this CPU, in turn, two threads each.

A round is some steps of torch, then as many of `pyc train`; the best round of each counts. Both have AdamW and cross entropy over the same
shapes. Behind the table: the program of each step, its slowest kernels by `pyc bench` with their share of the time, and what bounds each.
Where torch is not installed the table has PyC's times alone.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import models

ROOT = Path(__file__).parents[2]
THREADS = 2
CLASSES = 10
BATCH, LENGTH, WIDTH, SYMBOLS = 8, 256, 512, 96


def torch_models(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.joined, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            parts = self.joined(self.norm1(x)).reshape(BATCH, LENGTH, 3, 8, WIDTH // 8).permute(2, 0, 3, 1, 4)
            context = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.projection(context.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
            return x + self.mlp(self.norm2(x))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.places = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.norm, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS)

        def forward(self, x):
            return self.logits(self.norm(self.blocks(self.embedding(x) + self.places))).transpose(1, 2)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.classes = nn.LSTM(128, 256), nn.Linear(256, CLASSES)

        def forward(self, x):
            return self.classes(self.layer(x)[0][-1])

    def conv(inside, outside):
        return [nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]

    return {
        "MLP 512-4096-4096-10, batch 64": lambda: nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, CLASSES)),
        "CNN 3-32-64-128 on 32×32, batch 32": lambda: nn.Sequential(*conv(3, 32), *conv(32, 64), *conv(64, 128), nn.Flatten(), nn.Linear(2048, CLASSES)),
        "transformer 4 layers d 512 s 256, batch 8": Transformer,
        "LSTM 128-256, 32 steps, batch 32": Lstm,
    }


def rows_of(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def labels_of(*shape, classes=CLASSES):
    return np.random.default_rng(2).integers(0, classes, shape)


# Name, PyC's text, one batch of x and target, steps of a round.
ROWS = [
    ("MLP 512-4096-4096-10, batch 64", models.mlp(64, 512, 4096, 4096, CLASSES), rows_of(64, 512), labels_of(64), 5),
    ("CNN 3-32-64-128 on 32×32, batch 32", models.cnn(32, 32, (3, 32, 64, 128), CLASSES), rows_of(32, 3, 32, 32), labels_of(32), 5),
    ("transformer 4 layers d 512 s 256, batch 8", models.transformer(BATCH, LENGTH, WIDTH, 8, 4, SYMBOLS),
     labels_of(BATCH, LENGTH, classes=SYMBOLS), labels_of(BATCH, LENGTH, classes=SYMBOLS), 2),
    ("LSTM 128-256, 32 steps, batch 32", models.lstm(32, 32, 128, 256, CLASSES), rows_of(32, 32, 128), labels_of(32), 10),
]


def torch_round(torch, module, optimizer, x, target, steps):
    begin = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(x), target).backward()
        optimizer.step()
    return (time.perf_counter() - begin) / steps


def pyc_command(pyc, folder):
    return [pyc, "train", folder / "model.ir", "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", "0.0001", "--threads", str(THREADS)]


def pyc_round(pyc, folder, steps, *more):
    done = subprocess.run([*pyc_command(pyc, folder), "--data", folder / "data.npz", "--steps", str(steps + 2), "--cache-dir", folder / "cache", "--json",
                           "--metrics", folder / "m.jsonl", *more], stdout=subprocess.PIPE, text=True, check=True)
    return 1 / json.loads(done.stdout)["steps_per_second"]


def slowest_kernels(pyc, folder):
    """The step as a model of its own, timed kernel by kernel: the slowest five as lines."""
    subprocess.run([*pyc_command(pyc, folder), "--write-step", folder / "step.ir"], stdout=subprocess.PIPE, check=True)
    text = (folder / "step.ir").read_text()
    states = [word for pair in re.findall(r"^# (--state) (\S+)$", text, re.M) for word in pair]
    options = [folder / "step.ir", "--threads", str(THREADS), *states]
    inputs = ["--input", f"x={folder / 'x.npy'}", "--input", f"target={folder / 'target.npy'}"]
    timed = subprocess.run([pyc, "bench", *options, *inputs, "--runs", "3", "--warmup", "1", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    groups = subprocess.run([pyc, "dump", *options, "--stage", "groups"], stdout=subprocess.PIPE, text=True, check=True).stdout
    ops = {name: re.findall(r"^  %\S+ = (\w+)", body, re.M) for name, body in re.findall(r"^group (\S+) .*?{\n(.*?)^}", groups, re.M | re.S)}
    steps = json.loads(timed.stdout)["steps"]
    total = sum(step["ns"] for step in steps)
    lines = [f"{len(steps)} kernels, {total / 1e6:.1f} ms in all"]
    for step in sorted(steps, key=lambda step: -step["ns"])[:5]:
        made_of = ops.get(step["name"], [])
        shown = ", ".join(made_of[:6]) + (f" and {len(made_of) - 6} more" if len(made_of) > 6 else "")
        lines.append(f"{100 * step['ns'] / total:.0f} % {step['name']} ({shown}): {step['ns'] / 1e6:.2f} ms, {step['flops'] / step['ns']:.1f} GFLOP/s, "
                     f"{step['bytes'] / step['ns']:.1f} GB/s, bound by {step['bound']}")
    return lines


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    pyc, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 3
    try:
        import torch
        torch.set_num_threads(THREADS)
        version = "torch " + torch.__version__
    except ImportError:
        torch, version = None, "torch NOT RUN: not installed"
    stamp = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    print(f"`python3 bench/training/speed.py {sys.argv[1]} {rounds}`, {time.strftime('%Y-%m-%d')}, commit {stamp}, {os.uname().machine}, {THREADS} threads, "
          f"load {os.getloadavg()[0]:.1f}, {version}\n")
    print("| step | PyC ms | torch eager ms | torch / PyC | PyC bf16 ms |\n|---|---|---|---|---|")
    tables = []
    with tempfile.TemporaryDirectory(prefix="pyc_speed_") as name:
        folder = Path(name)
        for row, text, x, target, steps in ROWS:
            (folder / "model.ir").write_text(text)
            # The first dim counts rows: of the LSTM's x it is the time, which is as long as its batch.
            np.savez(folder / "data.npz", x=x, target=target)
            np.save(folder / "x.npy", x)
            np.save(folder / "target.npy", target)
            best = {}
            if torch is not None:
                module = torch_models(torch)[row]()
                optimizer = torch.optim.AdamW(module.parameters(), lr=0.0001, weight_decay=0.0)
                batch = torch.from_numpy(x), torch.from_numpy(target)
                torch_round(torch, module, optimizer, *batch, 2)
            for _ in range(rounds):
                if torch is not None:
                    best["torch"] = min(best.get("torch", 1e9), torch_round(torch, module, optimizer, *batch, steps))
                best["pyc"] = min(best.get("pyc", 1e9), pyc_round(pyc, folder, steps))
                best["bf16"] = min(best.get("bf16", 1e9), pyc_round(pyc, folder, steps, "--precision", "bf16"))
            beside = f"{1e3 * best['torch']:.1f} | {best['torch'] / best['pyc']:.2f}" if "torch" in best else "- | -"
            print(f"| {row} | {1e3 * best['pyc']:.1f} | {beside} | {1e3 * best['bf16']:.1f} |", flush=True)
            tables.append((row, slowest_kernels(pyc, folder)))
    for row, lines in tables:
        print(f"\n{row}: {lines[0]}\n")
        for line in lines[1:]:
            print(f"- {line}")


if __name__ == "__main__":
    main()
