"""speed.py PYC [--rows mlp,cnn,transformer,lstm] [--rounds 3] [--who pyc,bf16,eager,compiled] [--cores 0,1] [--turn FILE] [--kernels]

Training steps of PyC, f32 and bf16, beside torch eager and torch.compile on this CPU, two threads each. Both have AdamW and cross entropy over
the same shapes. In each round every one takes some steps in turn; what counts is the median over the rounds of each time and of each ratio. The floor is
3 times the forward arithmetic at the rate that `pyc bench` probes, or the bytes of parameters, gradients and kept values at its bandwidth, whichever
is longer. An update begins when the norm of all gradients is known, so its bytes cannot move while products are computed: the second ratio is to a floor with
them behind it. Roofs are probed before and after the rounds, and the higher ones count. --who: some of them alone. --cores: what is measured runs on these cores alone. --turn: a file that several such processes lock, so that they compile at once and measure
one after the other. --kernels: the slowest kernels of each step as well. Where torch is not installed the table has PyC's times alone.
"""

import argparse
import fcntl
import json
import os
import re
import statistics
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
        "mlp": lambda: nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, CLASSES)),
        "cnn": lambda: nn.Sequential(*conv(3, 32), *conv(32, 64), *conv(64, 128), nn.Flatten(), nn.Linear(2048, CLASSES)),
        "transformer": Transformer,
        "lstm": Lstm,
    }


def rows_of(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def labels_of(*shape, classes=CLASSES):
    return np.random.default_rng(2).integers(0, classes, shape)


MLP_WEIGHTS = 512 * 4096 + 4096 * 4096 + 4096 * CLASSES
CNN_PRODUCTS = 32 * (32 * 32 * 27 * 32 + 16 * 16 * 288 * 64 + 8 * 8 * 576 * 128 + 2048 * CLASSES)
BLOCK_WEIGHTS = 12 * WIDTH * WIDTH
LSTM_WEIGHTS = 4 * 256 * (128 + 256)

# By name: title, PyC's text, one batch of x and target, steps of a round, multiplications forward, parameters.
ROWS = {
    "mlp": ("MLP 512-4096-4096-10, batch 64", models.mlp(64, 512, 4096, 4096, CLASSES), rows_of(64, 512), labels_of(64), 5,
            64 * MLP_WEIGHTS, MLP_WEIGHTS),
    "cnn": ("CNN 3-32-64-128 on 32×32, batch 32", models.cnn(32, 32, (3, 32, 64, 128), CLASSES), rows_of(32, 3, 32, 32), labels_of(32), 10,
            CNN_PRODUCTS, 113_000),
    # A causal mask leaves half of the products of the scores and the values.
    "transformer": ("transformer 4 layers d 512 s 256, batch 8", models.transformer(BATCH, LENGTH, WIDTH, 8, 4, SYMBOLS),
                    labels_of(BATCH, LENGTH, classes=SYMBOLS), labels_of(BATCH, LENGTH, classes=SYMBOLS), 1,
                    BATCH * LENGTH * (4 * (BLOCK_WEIGHTS + LENGTH * WIDTH) + WIDTH * SYMBOLS), 4 * BLOCK_WEIGHTS + 2 * WIDTH * SYMBOLS + LENGTH * WIDTH),
    "lstm": ("LSTM 128-256, 32 steps, batch 32", models.lstm(32, 32, 128, 256, CLASSES), rows_of(32, 32, 128), labels_of(32), 10,
             32 * 32 * LSTM_WEIGHTS, LSTM_WEIGHTS),
}
# Of a parameter: read forward and back, its gradient written; then that, the parameter and two kept values read and the last three written.
FLOATS_BEFORE_UPDATE, FLOATS_OF_UPDATE = 3, 7


class TorchSteps:
    def __init__(self, torch, make, x, target, compiled):
        self.torch, self.x, self.target = torch, torch.from_numpy(x), torch.from_numpy(target)
        self.module = make()
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=0.0001, weight_decay=0.0)
        self.loss = self.loss_of
        if compiled:
            self.loss = torch.compile(self.loss_of)
        self.round(2)

    def loss_of(self, x, target):
        return self.torch.nn.functional.cross_entropy(self.module(x), target)

    def round(self, steps):
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.optimizer.zero_grad()
            self.loss(self.x, self.target).backward()
            self.optimizer.step()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)


class PycSteps:
    def __init__(self, pyc, folder, *more):
        self.command = [pyc, "train", folder / "model.ir", "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", "0.0001", "--threads", str(THREADS),
                        "--data", folder / "data.npz", "--cache-dir", folder / "cache", "--json", "--metrics", folder / "m.jsonl", *more]
        self.round(1)

    def round(self, steps):
        done = subprocess.run([*self.command, "--steps", str(steps + 1)], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)["step_ms"] / 1e3


def bench_step(pyc, folder):
    """The step as a model of its own: what `pyc bench` says of it, and the ops of each kernel."""
    subprocess.run([pyc, "train", folder / "model.ir", "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", "0.0001", "--write-step",
                    folder / "step.ir"], stdout=subprocess.PIPE, check=True)
    text = (folder / "step.ir").read_text()
    states = [word for pair in re.findall(r"^# (--state) (\S+)$", text, re.M) for word in pair]
    options = [folder / "step.ir", "--threads", str(THREADS), *states]
    inputs = ["--input", f"x={folder / 'x.npy'}", "--input", f"target={folder / 'target.npy'}"]
    timed = subprocess.run([pyc, "bench", *options, *inputs, "--runs", "1", "--warmup", "1", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    groups = subprocess.run([pyc, "dump", *options, "--stage", "groups"], stdout=subprocess.PIPE, text=True, check=True).stdout
    ops = {name: re.findall(r"^  %\S+ = (\w+)", body, re.M) for name, body in re.findall(r"^group (\S+) .*?{\n(.*?)^}", groups, re.M | re.S)}
    return json.loads(timed.stdout), ops


def slowest_kernels(timed, ops):
    steps = timed["steps"]
    total = sum(step["ns"] for step in steps)
    lines = [f"{len(steps)} kernels, {total / 1e6:.1f} ms in all"]
    for step in sorted(steps, key=lambda step: -step["ns"])[:10]:
        made_of = ops.get(step["name"], [])
        shown = ", ".join(made_of[:6]) + (f" and {len(made_of) - 6} more" if len(made_of) > 6 else "")
        lines.append(f"{100 * step['ns'] / total:.0f} % {step['name']} ({shown}): {step['ns'] / 1e6:.2f} ms, {step['flops'] / step['ns']:.1f} GFLOP/s, "
                     f"{step['bytes'] / step['ns']:.1f} GB/s, bound by {step['bound']}")
    return lines


def probed_roofs(pyc, folder):
    """GFLOP/s and GB/s of both threads, as `pyc bench` probes them."""
    (folder / "small.ir").write_text("graph @g(%x: f32[4]) -> (%y) {\n  %y = neg(%x)\n}\n")
    done = subprocess.run([pyc, "bench", folder / "small.ir", "--threads", str(THREADS), "--runs", "1", "--json"], stdout=subprocess.PIPE, text=True,
                          check=True)
    roofs = json.loads(done.stdout)["roofs"]
    return roofs["gflops"], roofs["gbytes_per_second"]


def stay_on(cores):
    """All threads of this process, and what it starts, run on these cores alone."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def measure(pyc, torch, folder, name, options):
    """Prints a row of the table; its title and, where asked for, its slowest kernels as lines."""
    title, text, x, target, steps, products, parameters = ROWS[name]
    (folder / "model.ir").write_text(text)
    # The first dim counts rows: of the LSTM's x it is the time, which is as long as its batch.
    np.savez(folder / "data.npz", x=x, target=target)
    np.save(folder / "x.npy", x)
    np.save(folder / "target.npy", target)
    makers = {"pyc": lambda: PycSteps(pyc, folder), "bf16": lambda: PycSteps(pyc, folder, "--precision", "bf16")}
    if torch is not None:
        make = torch_models(torch)[name]
        makers["eager"] = lambda: TorchSteps(torch, make, x, target, False)
        makers["compiled"] = lambda: TorchSteps(torch, make, x, target, True)
    contestants = {who: makers[who]() for who in options.who.split(",") if who in makers}
    with open(options.turn or os.devnull, "a") as turn:
        if options.turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
        if options.cores:
            stay_on({int(core) for core in options.cores.split(",")})
        before = probed_roofs(pyc, folder)
        rounds = [{who: steps_of.round(steps) for who, steps_of in contestants.items()} for _ in range(options.rounds)]
        gflops, gbytes = map(max, before, probed_roofs(pyc, folder))
        show_row(title, rounds, products, parameters, gflops, gbytes)
        return title, slowest_kernels(*bench_step(pyc, folder)) if options.kernels else []


def show_row(title, rounds, products, parameters, gflops, gbytes):
    arithmetic = 3 * 2 * products / (gflops * 1e9)
    before_update, of_update = (floats * 4 * parameters / (gbytes * 1e9) for floats in (FLOATS_BEFORE_UPDATE, FLOATS_OF_UPDATE))
    floor = max(arithmetic, before_update + of_update)
    in_turn = max(arithmetic, before_update) + of_update

    def ms(who):
        return f"{1e3 * statistics.median(r[who] for r in rounds):.1f}" if who in rounds[0] else "-"

    beside = [who for who in ("eager", "compiled") if who in rounds[0]]
    ratio = statistics.median(min(r[who] for who in beside) / r["pyc"] for r in rounds) if beside else None
    mine = statistics.median(r["pyc"] for r in rounds)
    print(f"| {title} | {ms('pyc')} | {ms('eager')} | {ms('compiled')} | {f'{ratio:.2f}' if ratio else '-'} | {1e3 * floor:.1f} at {gflops:.0f} GFLOP/s, "
          f"{gbytes:.0f} GB/s | {mine / floor:.2f} | {mine / in_turn:.2f} | {ms('bf16')} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("pyc")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--who", default="pyc,bf16,eager,compiled")
    parser.add_argument("--cores", default="")
    parser.add_argument("--turn", default="")
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    try:
        import torch
        torch.set_num_threads(THREADS)
        version = "torch " + torch.__version__
    except ImportError:
        torch, version = None, "torch NOT RUN: not installed"
    stamp = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    print(f"`python3 bench/training/speed.py {' '.join(sys.argv[1:])}`, {time.strftime('%Y-%m-%d')}, commit {stamp}, {os.uname().machine}, {THREADS} threads, "
          f"load {os.getloadavg()[0]:.1f}, {version}\n")
    print("| step | PyC ms | torch eager ms | torch.compile ms | the better of them / PyC | floor ms | PyC / floor | PyC / floor with the update behind | PyC bf16 ms |\n|---|---|---|---|---|---|---|---|---|",
          flush=True)
    with tempfile.TemporaryDirectory(prefix="pyc_speed_") as folder:
        tables = []
        for name in options.rows.split(","):
            (Path(folder) / name).mkdir()
            tables.append(measure(os.path.abspath(options.pyc), torch, Path(folder) / name, name, options))
    for title, lines in tables:
        for i, line in enumerate(lines):
            print(f"\n{title}: {line}\n" if i == 0 else f"- {line}")


if __name__ == "__main__":
    main()
