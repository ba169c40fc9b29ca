"""torch.compile with PyC beside eager and inductor, on this CPU, in one process: a round of each in turn. Then a decoder whose cache grows.

build/venv-python/bin/python bench/torch_cpu.py [MODEL...] > bench/results/torch_cpu.md
"""

import os
import platform
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python" / "tests"))
warnings.simplefilter("ignore")

import pyc  # noqa: E402
import torch  # noqa: E402
import torch_models  # noqa: E402

ROUNDS, SECONDS = 5, 0.2
BACKENDS = ("eager", "inductor", "pyc")
FIRST, LENGTHS = 4, 60  # of the growing cache


def once(call, inputs):
    start = time.perf_counter()
    call(*inputs)
    return time.perf_counter() - start


def best_of_round(call, inputs):
    end = time.perf_counter() + SECONDS
    best = once(call, inputs)
    while time.perf_counter() < end:
        best = min(best, once(call, inputs))
    return best


def calls_of(module):
    return {name: module if name == "eager" else torch.compile(module, backend=name) for name in BACKENDS}


def measure(module, inputs):
    """Least milliseconds of each over all rounds, and what the first call took in seconds."""
    calls = calls_of(module)
    first = {name: once(call, inputs) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            best[name] = min(best[name], best_of_round(call, inputs))
    return {name: 1e3 * seconds for name, seconds in best.items()}, first


def grow(call, tokens):
    """Seconds of each step of a decoder whose cache grows by one."""
    _, cache = call(tokens[:, :FIRST])
    times = []
    for i in range(FIRST, LENGTHS):
        start = time.perf_counter()
        _, cache = call(tokens[:, i : i + 1], cache)
        times.append(time.perf_counter() - start)
    return times


def growing():
    """Of each backend: seconds for all lengths the first time, the median step of it, and the median step when all were met."""
    torch._dynamo.reset()
    pyc.torch_report(clear=True)
    torch.manual_seed(0)
    calls = calls_of(torch_models.Decoder().eval())
    tokens = torch.randint(0, 100, (1, LENGTHS))
    rows = []
    for name, call in calls.items():
        new, met = grow(call, tokens), [min(pair) for pair in zip(grow(call, tokens), grow(call, tokens))]
        middle = lambda times: 1e3 * sorted(times)[len(times) // 2]  # noqa: E731
        rows.append(f"| {name} | {sum(new):.1f} | {middle(new):.2f} | {middle(met):.3f} |")
    made = [f"{r.shapes} plans, {r.generated} kernels" for r in pyc.torch_report() if r.generated]
    return rows, made


def main():
    torch.set_num_threads(1)
    rows, ratios = [], []
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        for name in sys.argv[1:] or torch_models.MODELS:
            torch._dynamo.reset()
            module, inputs = torch_models.make(name)
            best, first = measure(module, inputs)
            ratio = best["inductor"] / best["pyc"]
            ratios.append(ratio)
            times = " | ".join(f"{best[k]:.3f}" for k in BACKENDS)
            starts = " | ".join(f"{first[k]:.1f}" for k in BACKENDS[1:])
            rows.append(f"| {name} | {times} | {ratio:.2f}× | {best['eager'] / best['pyc']:.2f}× | {starts} |")
            print(rows[-1], file=sys.stderr, flush=True)
        decoder, made = growing()
    mean = torch.tensor(ratios).log().mean().exp().item()
    print("# torch.compile on a CPU\n")
    print(f"torch {torch.__version__}, PyC {pyc.__version__}, {platform.machine()}, one thread, {os.cpu_count()} cores with a load of")
    print(f"{os.getloadavg()[1]:.0f} at the end. Written by `bench/torch_cpu.py`: the models of `python/tests/torch_models.py`, each backend in turn, the least of all")
    print("rounds. The machine was shared and busy: read the ratios, not the times.\n")
    print("| model | eager ms | inductor ms | pyc ms | inductor / pyc | eager / pyc | first call inductor s | pyc s |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\nGeometric mean of inductor / pyc: {mean:.2f}×.\n")
    print(f"A decoder shaped as GPT-2 (2 layers of 64), one token at a time, its cache from {FIRST} to {LENGTHS - 1}; sizes are open after the second length.\n")
    print("| backend | all lengths for the first time, s | median step of it, ms | median step, lengths met before, ms |")
    print("|---|---|---|---|")
    print("\n".join(decoder))
    print(f"\nPyC made, for the graphs that torch handed over: {'; '.join(made)}.")


main()
