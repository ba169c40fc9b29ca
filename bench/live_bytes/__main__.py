"""The most memory of a run beside ONNX Runtime's, by one counting malloc for both, as a table:
python bench/live_bytes [--build build/dev] [--models ../shared/models] [--sets skeletons] [--filter NAME] [--threads 2].
Run it by the Python of build/venv-bench (bench/models/requirements.txt). Exits 1 where outputs differ or an engine fails.

Bytes are the most that runs had out beyond what was there before them (peak.py): arenas that are kept count, weights and programs do not.
Inputs and outputs are the caller's, for all. ONNX Runtime stands twice: as it comes, with an arena that grows by powers of two, and
without it, so that it takes and frees each value by itself. The ratio is PyC's bytes over the lesser of these.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/models"))
import model_sets  # noqa: E402

PEAK = Path(__file__).with_name("peak.py")
ENGINES = ("pyc", "ort", "ort-no-arena")


def measure(engine, build, model, inputs, threads, outputs):
    """Bytes of one engine's runs, in a process of its own."""
    environment = {name: text for name, text in os.environ.items() if name != "PYC_CACHE_DIR"}
    environment["LD_PRELOAD"] = str(build / "libpyc_bench_malloc.so")
    command = [sys.executable, PEAK, engine, build / "libpyc.so", model, inputs, str(threads), outputs]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise ValueError(f"{engine}: {(done.stderr.strip().splitlines() or ['ended'])[-1]}")
    return json.loads(done.stdout)["peak"]


def row_of(source, build, tool, threads, scratch):
    """The bytes of each engine on one model; ValueError where one fails or outputs differ."""
    model, inputs = model_sets.prepare(source, tool, scratch)
    peaks = {}
    for engine in ENGINES:
        peaks[engine] = measure(engine, build, model, inputs, threads, scratch / f"{engine}.npz")
        if engine != "pyc":
            model_sets.difference(source, scratch / "pyc.npz", scratch / f"{engine}.npz")
    return peaks


def ratio(peaks):
    return peaks["pyc"] / max(1, min(peaks["ort"], peaks["ort-no-arena"]))


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--sets", nargs="+", default=["skeletons"], choices=list(model_sets.SETS))
    parser.add_argument("--filter", default="")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    print("| model | PyC | ONNX Runtime | without its arena | ratio |")
    print("|---|---|---|---|---|")
    ratios, failed = [], False
    for source in [s for chosen in given.sets for s in model_sets.sources(given.models, chosen) if given.filter in s.name]:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                peaks = row_of(source, given.build, given.models.parent / "tools/fill_skeletons.py", given.threads, Path(scratch))
            except ValueError as error:
                failed = True
                print(f"| {source.name} | {error} |", flush=True)
                continue
        ratios.append(ratio(peaks))
        print(f"| {source.name} | {' | '.join(f'{peaks[engine]:,}' for engine in ENGINES)} | {ratios[-1]:.2f} |", flush=True)
    if ratios:
        print(f"\nGeometric mean of {len(ratios)}: {geomean(ratios):.3f}; largest {max(ratios):.2f}.")
    return 1 if failed or not ratios else 0


if __name__ == "__main__":
    sys.exit(main())
