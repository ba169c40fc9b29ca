"""torch.compile with PyC beside eager and inductor on this CPU: modules of the common kinds, then a decoder whose cache grows.

build/venv-python/bin/python bench/torch_cpu.py [--cores 2,3] [--jobs N] [--patience SECONDS] [MODEL...] > bench/results/torch_cpu.md

First every module is compiled from nothing in a process of its own, N at once: that gives the first calls, and inductor a cache. Then one
process, alone on the named cores, measures them all with one thread: each round has a turn of each backend.
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
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))
warnings.simplefilter("ignore")

import pyc  # noqa: E402
import torch  # noqa: E402
import torch_models  # noqa: E402

ROUNDS, SECONDS = 5, 0.1
BACKENDS = ("eager", "inductor", "pyc")
FIRST, LENGTHS = 4, 60  # of the growing cache
TOLERANCE = 1e-4  # of the largest magnitude that eager gives
# torch has a kernel for a whole layer of an encoder, which inductor only calls: the module is measured with it and without.
FAST_PATH = "encoder (torch's fast path)"
MODELS = (*torch_models.MODELS, FAST_PATH)


def make(name):
    torch._dynamo.reset()
    torch.backends.mha.set_fastpath_enabled(name == FAST_PATH)
    return torch_models.make("encoder" if name == FAST_PATH else name)


def calls_of(module):
    return {name: module if name == "eager" else torch.compile(module, backend=name) for name in BACKENDS}


def once(call, inputs):
    start = time.perf_counter()
    call(*inputs)
    return time.perf_counter() - start


def tensors(found):
    return [found] if isinstance(found, torch.Tensor) else [t for item in found for t in tensors(item)]


def check(name, expected, found):
    for right, ours in zip(tensors(expected), tensors(found), strict=True):
        if (right - ours).abs().max() > TOLERANCE * right.abs().max():
            raise SystemExit(f"{name}: not what eager gives")


def best_of_turn(call, inputs):
    end = time.perf_counter() + SECONDS
    best = once(call, inputs)
    while time.perf_counter() < end:
        best = min(best, once(call, inputs))
    return 1e3 * best


def rounds(name):
    """Of each backend the best milliseconds of each of its turns."""
    module, inputs = make(name)
    calls = calls_of(module)
    expected = module(*inputs)
    for backend, call in calls.items():
        check(f"{name} with {backend}", expected, call(*inputs))
    found = [{backend: best_of_turn(call, inputs) for backend, call in calls.items()} for _ in range(ROUNDS)]
    return {backend: [turn[backend] for turn in found] for backend in BACKENDS}


def grow(call, tokens):
    """Seconds of each step of a decoder whose cache grows by one."""
    _, cache = call(tokens[:, :FIRST])
    times = []
    for i in range(FIRST, LENGTHS):
        start = time.perf_counter()
        _, cache = call(tokens[:, i : i + 1], cache)
        times.append(time.perf_counter() - start)
    return times


def decoder():
    torch._dynamo.reset()
    torch.manual_seed(0)
    return calls_of(torch_models.Decoder().eval()), torch.randint(0, 100, (1, LENGTHS))


def first_calls(name):
    """In a new process: what each backend takes to compile and run once, the growing decoder at all its lengths."""
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))  # dynamo itself is there
    if name != "decoder":
        module, inputs = make(name)
        return {backend: once(call, inputs) for backend, call in calls_of(module).items()}
    calls, tokens = decoder()
    found = {}
    for backend, call in calls.items():
        times = grow(call, tokens)
        found[backend] = {"all": sum(times), "step": 1e3 * statistics.median(times)}
    found["made"] = [f"{r.shapes} plans with {r.generated} kernels" for r in pyc.torch_report() if r.generated]
    return found


def child(name, patience):
    """What first_calls says; None when it takes too long."""
    command = [sys.executable, __file__, "--first", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def processor():
    facts = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    named = [line.split(":")[1].strip() for line in facts.splitlines() if line.startswith("model name")]
    return named[0] if named else platform.machine()


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def row(name, turns, first):
    ratios = [a / b for a, b in zip(turns["inductor"], turns["pyc"])]
    ratio, eager = statistics.median(ratios), statistics.median(a / b for a, b in zip(turns["eager"], turns["pyc"]))
    times = " | ".join(f"{min(turns[backend]):.3f}" for backend in BACKENDS)
    spread = f"{ratio:.2f}× ({min(ratios):.2f}–{max(ratios):.2f})"
    starts = f"{first['inductor']:.1f} | {first['pyc']:.1f}" if first else "not waited for | –"
    return f"| {name} | {times} | {spread} | {eager:.2f}× | {starts} |", ratio


def counted(ratios):
    """Of the two ways to run the encoder, the one that is better for inductor."""
    kept = dict(ratios)
    if FAST_PATH in kept and "encoder" in kept:
        del kept[max(("encoder", FAST_PATH), key=lambda name: kept[name])]
    return kept


def measure(names, jobs, cores, patience):
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
        with ThreadPoolExecutor(jobs) as pool:
            first = dict(zip([*names, "decoder"], pool.map(lambda name: child(name, patience), [*names, "decoder"])))
        print({name: found for name, found in first.items() if name != "decoder"}, file=sys.stderr, flush=True)
        if cores:
            os.sched_setaffinity(0, cores)
        torch.set_num_threads(1)
        rows, ratios, met = [], {}, {}
        with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
            for name in names:
                text, ratios[name] = row(name, rounds(name), first[name])
                rows.append(text)
                print(text, file=sys.stderr, flush=True)
            calls, tokens = decoder()
            for backend, call in calls.items() if first["decoder"] else ():
                grow(call, tokens)
                met[backend] = 1e3 * statistics.median(map(min, zip(grow(call, tokens), grow(call, tokens))))
    write(rows, counted(ratios), first["decoder"], met, load)


def write(rows, ratios, grown, met, load):
    mean = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
    print("# torch.compile on a CPU\n")
    print(f"{datetime.date.today()}, {commit()}; torch {torch.__version__}, PyC {pyc.__version__}, {processor()} ({platform.machine()}), one thread, "
          f"load {load:.1f} before and {os.getloadavg()[0]:.1f} after.")  # fmt: skip
    print(f"Written by `bench/torch_cpu.py`: the models of `python/tests/torch_models.py`; all give what eager gives within {TOLERANCE} of its largest. Times are the")
    print(f"least of all turns, ratios the median of {ROUNDS} rounds with the least and the most. First calls are of processes that ran beside one another.\n")
    print("| model | eager ms | inductor ms | pyc ms | inductor / pyc | eager / pyc | first call inductor s | pyc s |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\nGeometric mean of inductor / pyc over {', '.join(ratios)}: **{mean:.2f}×**.\n")
    if grown is None:
        return
    print(f"A decoder shaped as GPT-2 (2 layers of 64), one token at a time, its cache from {FIRST} to {LENGTHS - 1}; sizes are open after the second length.\n")
    print("| backend | all lengths for the first time, s | median step of it, ms | median step, lengths met before, ms |")
    print("|---|---|---|---|")
    for backend in BACKENDS:
        print(f"| {backend} | {grown[backend]['all']:.1f} | {grown[backend]['step']:.2f} | {met[backend]:.3f} |")
    print(f"\nPyC made, for the graphs that torch handed over: {'; '.join(grown['made'])}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", help="the processors to measure on: 2,3")
    parser.add_argument("--jobs", type=int, default=1, help="first calls at once")
    parser.add_argument("--patience", type=float, help="seconds that a first call may take, or it is not waited for")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    given = parser.parse_args()
    if given.first:
        torch.set_num_threads(1)
        with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
            print(json.dumps(first_calls(given.first)))
        return
    cores = {int(core) for core in given.cores.split(",")} if given.cores else None
    measure(given.models or MODELS, given.jobs, cores, given.patience)


main()
