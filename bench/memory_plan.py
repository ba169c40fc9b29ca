"""Arenas of the models beside the checkout against their lower bounds, in both modes, as a table:
bench/memory_plan.py [--pyc build/dev/pyc] [--models ../shared/models] [--sets real skeletons more]. Skeletons are filled one at a time."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/models"))
import model_sets  # noqa: E402

MODES = ("balanced", "memory_first")
ARENA = re.compile(r"^  arena (\d+) \(requested (\d+), lower bound (\d+) at step \d+\)$", re.M)
BUFFERS = re.compile(r"^  arena instances (\d+) ", re.M)


def plan(pyc, model, mode):
    """(arena, bound, requested, buffers) of the plan, or the first line of the refusal."""
    done = subprocess.run([pyc, "dump", model, "--stage", "plan", "--mode", mode, "--threads", "2"], capture_output=True, text=True)
    found = ARENA.search(done.stdout)
    if done.returncode or not found:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    arena, requested, bound = map(int, found.groups())
    return arena, bound, requested, int(BUFFERS.search(done.stdout).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pyc", default=str(ROOT / "build/dev/pyc"))
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--sets", nargs="+", default=["real", "skeletons"], choices=list(model_sets.SETS))
    given = parser.parse_args()
    print("| model | buffers | without reuse | arena, balanced | over its bound | arena, memory_first | over its bound |")
    print("|---|---|---|---|---|---|---|")
    for source in [s for chosen in given.sets for s in model_sets.sources(given.models, chosen)]:
        with tempfile.TemporaryDirectory() as scratch:
            model = source.file
            if source.skeleton:
                model = Path(scratch) / source.file.name
                model_sets._call("fill", source.file, given.models.parent / "tools/fill_skeletons.py", model)
            rows = [plan(given.pyc, model, mode) for mode in MODES]
        if isinstance(rows[0], str):
            print(f"| {source.name} | not one graph |", flush=True)
            continue
        cells = [f"{arena:,} | {arena / max(bound, 1) if bound else 1:.2f}" for arena, bound, _, _ in rows]
        print(f"| {source.name} | {rows[0][3]} | {rows[0][2]:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
