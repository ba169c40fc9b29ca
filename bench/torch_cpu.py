"""torch.compile with PyC beside eager and inductor, on this CPU, in one process: a round of each in turn.

build/venv-python/bin/python bench/torch_cpu.py > bench/results/torch_cpu.md
"""

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


def measure(module, inputs):
    """Least milliseconds of each over all rounds, and what the first call took in seconds."""
    calls = {
        "eager": module,
        "inductor": torch.compile(module, backend="inductor"),
        "pyc": torch.compile(module, backend="pyc"),
    }
    first = {name: once(call, inputs) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            best[name] = min(best[name], best_of_round(call, inputs))
    return {name: 1e3 * seconds for name, seconds in best.items()}, first


def main():
    torch.set_num_threads(1)
    rows, ratios = [], []
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        for name in torch_models.MODELS:
            torch._dynamo.reset()
            module, inputs = torch_models.make(name)
            best, first = measure(module, inputs)
            ratio = best["inductor"] / best["pyc"]
            ratios.append(ratio)
            times = " | ".join(f"{best[k]:.3f}" for k in ("eager", "inductor", "pyc"))
            starts = " | ".join(f"{first[k]:.1f}" for k in ("inductor", "pyc"))
            rows.append(f"| {name} | {times} | {ratio:.2f}× | {best['eager'] / best['pyc']:.2f}× | {starts} |")
            print(rows[-1], file=sys.stderr, flush=True)
    mean = torch.tensor(ratios).log().mean().exp().item()
    print(
        f"# torch.compile on a CPU\n\ntorch {torch.__version__}, PyC {pyc.__version__}, {platform.machine()}, one thread."
    )
    print(
        "Written by `bench/torch_cpu.py`: the models of `python/tests/torch_models.py`, each backend in turn, the least of all"
    )
    print("rounds. The machine was shared and busy: read the ratios, not the times.\n")
    print("| model | eager ms | inductor ms | pyc ms | inductor / pyc | eager / pyc | first call inductor s | pyc s |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\nGeometric mean of inductor / pyc: {mean:.2f}×.")


main()
