"""torch.compile with PyC beside eager and inductor on this CPU: modules of the common kinds, and a decoder whose cache grows.

torch_cpu.py first FOLDER [--threads N] [MODEL...]   compiles each from nothing in a process of its own; may run on a busy machine
torch_cpu.py turns FOLDER [--threads N] [MODEL...]   measures in turn, with what inductor compiled before; wants the machine for itself
torch_cpu.py table FOLDER > bench/results/torch_cpu.md

What was found is kept in FOLDER, with inductor's cache: first calls that are there are not made again. The package is to be one over
the release library (docs/python.md).
"""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))
warnings.simplefilter("ignore")

TURNS, SECONDS = 25, 0.06
BACKENDS = ("eager", "inductor", "pyc")
FIRST, LENGTHS = 4, 60  # of the growing cache
TOLERANCE = 1e-4  # of the largest magnitude that eager gives
# torch has a kernel for a whole layer of an encoder, which inductor only calls: the module is measured with it and without.
FAST_PATH = "encoder, torch's fast path"
DECODER = "decoder, growing cache"
MODELS = ("mlp", "cnn", "resnet18", "encoder", FAST_PATH, DECODER, "lstm", "lstm_cells", "unet")


class Subject:
    """One of the models with its inputs; all backends do the same work with it."""

    def __init__(self, name):
        import torch
        import torch_models

        torch._dynamo.reset()
        torch.backends.mha.set_fastpath_enabled(name == FAST_PATH)
        self.name, self.grows = name, name == DECODER
        if self.grows:
            torch.manual_seed(0)
            self.module, self.tokens = torch_models.Decoder().eval(), torch.randint(0, 100, (1, LENGTHS))
        else:
            self.module, self.inputs = torch_models.make("encoder" if name == FAST_PATH else name)
        self.calls = {b: self.module if b == "eager" else torch.compile(self.module, backend=b) for b in BACKENDS}

    def once(self, backend):
        """The seconds of a call, or of each step of a cache that grows, and what came out."""
        call = self.calls[backend]
        if not self.grows:
            start = time.perf_counter()
            found = call(*self.inputs)
            return [time.perf_counter() - start], found
        _, cache = call(self.tokens[:, :FIRST])
        times, found = [], None
        for i in range(FIRST, LENGTHS):
            start = time.perf_counter()
            found, cache = call(self.tokens[:, i : i + 1], cache)
            times.append(time.perf_counter() - start)
        return times, (found, cache)

    def turn(self, backend):
        """The median milliseconds of the calls or steps that a turn has time for."""
        end, times = time.perf_counter() + SECONDS, []
        while time.perf_counter() < end:
            times += self.once(backend)[0]
        return 1e3 * statistics.median(times)

    def check(self, backend):
        from torch.utils._pytree import tree_leaves

        expected = tree_leaves(self.once("eager")[1])
        for right, ours in zip(expected, tree_leaves(self.once(backend)[1]), strict=True):
            if (right - ours).abs().max() > TOLERANCE * right.abs().max():
                raise SystemExit(f"{self.name} with {backend}: not what eager gives")


def first(name):
    """In a new process: what each backend takes to compile and run once, and the steps of a growing cache at all its lengths."""
    import pyc
    import torch

    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))  # dynamo itself is there
    subject, found = Subject(name), {}
    for backend in BACKENDS:
        times = subject.once(backend)[0]
        found[backend] = {"seconds": sum(times), "step": 1e3 * statistics.median(times)}
    found["made"] = [f"{r.shapes} plans with {r.generated} kernels" for r in pyc.torch_report() if r.generated]
    return found


def turns(name):
    """Of each backend the milliseconds of its turns, which go round."""
    subject = Subject(name)
    for backend in BACKENDS[1:]:
        subject.check(backend)
    found = {backend: [] for backend in BACKENDS}
    for i in range(TURNS):
        for k in range(len(BACKENDS)):
            backend = BACKENDS[(i + k) % len(BACKENDS)]
            found[backend].append(subject.turn(backend))
    return found


class Kept:
    """A JSON file of a folder, by model."""

    def __init__(self, folder, kind, threads):
        self.path = folder / f"{kind}_{threads}.json"
        self.found = json.loads(self.path.read_text()) if self.path.exists() else {}

    def put(self, name, found):
        self.found[name] = found
        self.path.write_text(json.dumps(self.found, indent=1))


def all_first(names, given):
    kept = Kept(given.folder, "first", given.threads)
    for name in names:
        if name in kept.found:
            continue
        command = [sys.executable, __file__, "first", given.folder, "--threads", str(given.threads), "--alone", name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        kept.put(name, json.loads(done.stdout.splitlines()[-1]))
        print(name, kept.found[name], file=sys.stderr, flush=True)


def all_turns(names, given):
    import pyc
    import torch

    kept = Kept(given.folder, "turns", given.threads)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        for name in names:
            kept.put(name, turns(name))
            print(row(name, kept.found[name], None)[0], file=sys.stderr, flush=True)
    kept.put("facts", facts(torch, pyc))


def facts(torch, pyc):
    lines = subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
    named = [line.split(":")[1].strip() for line in lines if line.startswith("Model name")] or [""]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    machine = " ".join(filter(None, (named[0], f"({platform.machine()})")))
    return f"{datetime.date.today()}, {commit}; torch {torch.__version__}, PyC {pyc.__version__}, {machine}, {os.cpu_count()} cores"


def median_of(ratios):
    """The median with the order statistics between which it lies at 95 %."""
    n, below, k = len(ratios), 0.0, 0
    while below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    ordered = sorted(ratios)
    return statistics.median(ratios), ordered[max(k - 1, 0)], ordered[min(n - k, n - 1)]


def row(name, found, began):
    ratio = median_of([a / b for a, b in zip(found["inductor"], found["pyc"])])
    eager = statistics.median(a / b for a, b in zip(found["eager"], found["pyc"]))
    times = " | ".join(f"{statistics.median(found[backend]):.3f}" for backend in BACKENDS)
    starts = f" {began['inductor']['seconds']:.1f} | {began['pyc']['seconds']:.1f} |" if began else ""
    return f"| {name} | {times} | {ratio[0]:.2f}× ({ratio[1]:.2f}–{ratio[2]:.2f}) | {eager:.2f}× |{starts}", ratio


def counted(ratios):
    """Each module once: of the two ways to run the encoder the one that is better for inductor, of the two LSTMs the layer."""
    kept = {name: ratio for name, ratio in ratios.items() if name != "lstm_cells"}
    if FAST_PATH in kept and "encoder" in kept:
        del kept[max(("encoder", FAST_PATH), key=lambda name: kept[name][0])]
    return kept


def table(folder):
    print("# torch.compile on a CPU\n")
    said = False
    for threads in (1, 2):
        found, began = Kept(folder, "turns", threads).found, Kept(folder, "first", threads).found
        if not found:
            continue
        if not said:
            print(f"{found['facts']}; each process alone on its cores (real-time priority).")
            print(f"Written by `bench/torch_cpu.py` over the release library: the models of `python/tests/torch_models.py`; all give what eager gives within {TOLERANCE:g} of its largest.")
            print(f"Times are medians over {TURNS} turns of {1e3 * SECONDS:.0f} ms in which the backends go round; a ratio is the median of those of the turns, with its 95 % interval. The decoder is")
            print(f"shaped as GPT-2 (2 layers of 64), one token at a time, its cache from {FIRST} to {LENGTHS - 1}: milliseconds of a step. First calls ran on busy cores; inductor's of one thread")
            print("had an empty cache, those of two found kernels of one thread that are the same.")
            said = True
        print(f"\n## {threads} thread{'s' * (threads > 1)}\n")
        print("| model | eager ms | inductor ms | pyc ms | inductor / pyc | eager / pyc | first call inductor s | pyc s |\n|---|---|---|---|---|---|---|---|")
        ratios = {}
        for name in (name for name in MODELS if name in found):
            text, ratios[name] = row(name, found[name], began.get(name))
            print(text)
        means = [math.exp(statistics.fmean(math.log(r[k]) for r in counted(ratios).values())) for k in range(3)]
        print(f"\nGeometric mean of inductor / pyc over {'; '.join(counted(ratios))}: **{means[0]:.2f}×** ({means[1]:.2f}–{means[2]:.2f}, of the ends of the intervals).")
    grown = Kept(folder, "first", 1).found.get(DECODER)
    if grown:
        steps = ", ".join(f"{backend} {grown[backend]['step']:.1f} ms" for backend in BACKENDS)
        print(f"\nThe decoder at lengths it meets for the first time, a step: {steps} (medians, busy cores; its first calls above are all {LENGTHS - FIRST} lengths). PyC made: {'; '.join(grown['made'])}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=("first", "turns", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--alone", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="; ".join(MODELS))
    given = parser.parse_intermixed_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.do == "table":
        table(given.folder)
        return
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(given.folder.resolve() / "inductor")
    names = given.models or MODELS
    if given.do == "first" and not given.alone:
        all_first(names, given)
        return
    import torch

    torch.set_num_threads(given.threads)
    if given.do == "turns":
        all_turns(names, given)
        return
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        print(json.dumps(first(given.alone)))


main()
