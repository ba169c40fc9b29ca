"""memory.py PYC [--rounds 2] [--cores 0,1] [--turn FILE]: the transformer's training step within budgets of memory.

Budgets are parts of the peak that the step has without one. For each: the planned peak, what the allocator handed out for a run beside what was planned
for it, kernels that run again, the time of a step (median of rounds in turn) and the digest of the weights after three steps, which must be that without a budget.
"""

import argparse
import fcntl
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import speed

PARTS = (1.0, 0.75, 0.65, 0.5)
STEPS = 3


def pyc_json(command):
    return json.loads(subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("pyc")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cores", default="")
    parser.add_argument("--turn", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pyc_memory_") as name:
        folder = Path(name)
        _, text, x, target, *_ = speed.ROWS["transformer"]
        (folder / "model.ir").write_text(text)
        np.savez(folder / "data.npz", x=x, target=target)
        np.save(folder / "x.npy", x)
        np.save(folder / "target.npy", target)
        train = [options.pyc, "train", folder / "model.ir", "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", "0.0001", "--threads",
                 str(speed.THREADS)]
        subprocess.run([*train, "--write-step", folder / "step.ir"], stdout=subprocess.PIPE, check=True)
        states = re.findall(r"^# --state (\S+)$", (folder / "step.ir").read_text(), re.M)
        bench = [options.pyc, "bench", folder / "step.ir", "--threads", str(speed.THREADS), *(word for state in states for word in ("--state", state)),
                 "--input", f"x={folder / 'x.npy'}", "--input", f"target={folder / 'target.npy'}", "--runs", "1", "--warmup", "0"]
        train += ["--data", folder / "data.npz", "--steps", str(STEPS), "--metrics", folder / "m.jsonl", "--cache-dir", folder / "cache"]
        plans, budgets = {}, {}
        for part in PARTS:
            budgets[part] = ["--memory-budget", str(int(plans[1.0]["planned_peak_bytes"] * part))] if part < 1 else []
            plans[part] = pyc_json([*bench, *budgets[part]])
        with open(options.turn or os.devnull, "a") as turn:
            if options.turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
            if options.cores:
                speed.stay_on({int(core) for core in options.cores.split(",")})
            rounds = [{part: pyc_json([*train, *budgets[part]]) for part in PARTS} for _ in range(options.rounds)]
    print(f"`python3 bench/training/memory.py {options.pyc} --rounds {options.rounds}`, {time.strftime('%Y-%m-%d')}, {os.uname().machine}, "
          f"{speed.THREADS} threads, load {os.getloadavg()[0]:.1f}\n")
    print("| budget | planned peak | less | for a run: planned | handed out | kernels again | step ms | more | weights after 3 steps |\n"
          "|---|---|---|---|---|---|---|---|---|")
    first = plans[1.0]
    digest = rounds[0][1.0]["weights"]
    for part in PARTS:
        plan, memory = plans[part], plans[part]["memory"]
        ms = statistics.median(r[part]["step_ms"] for r in rounds)
        more = statistics.median(r[part]["step_ms"] / r[1.0]["step_ms"] for r in rounds) - 1
        peak = plan["planned_peak_bytes"]
        same = all(r[part]["weights"] == digest for r in rounds)
        print(f"| {'none' if part == 1 else f'{100 * part:.0f} %'} | {peak} | {100 * (1 - peak / first['planned_peak_bytes']):.0f} % | "
              f"{memory['arena_bytes'] + memory['scratch_bytes']} | {memory['measured_arena_bytes']} | {len(plan['steps']) - len(first['steps'])} | {ms:.0f} | "
              f"{100 * more:+.0f} % | {digest if same else 'DIFFER'} |")


if __name__ == "__main__":
    main()
