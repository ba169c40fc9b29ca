#!/usr/bin/env python3
"""train_kills.py PYC COUNT [SEED]: kills training runs with -9 at random moments and lets them go on.

First one run that is never stopped. Then COUNT runs of the same training, with 1, 2 and 7 threads in turn: each is killed
at a random moment between its start and the time the first one took, and resumed. Weights, metrics and the last
checkpoint must have the bits of the first. Prints one line a kill; exits 1 when one differs.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEPS = 900
LAST = f"step-{STEPS:012}.safetensors"


def command(pyc, folder, threads):
    return [pyc, "train", os.path.join(ROOT, "tests/train/models/blobs.ir"), "--data", os.path.join(os.path.dirname(folder), "data.npz"),
            "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", "0.003", "--schedule", "cosine", "--schedule-steps",
            str(STEPS), "--clip-norm", "1", "--steps", str(STEPS), "--seed", "3", "--checkpoint-dir", folder, "--checkpoint-every",
            "5", "--keep", "2", "--metrics", folder + ".jsonl", "--threads", str(threads), "--resume"]


def result_of(folder, output):
    """What must be equal: the digest that the run printed, the metrics, the last checkpoint."""
    digest = re.search(r"weights ([0-9a-f]{32})", output)
    with open(folder + ".jsonl", "rb") as metrics, open(os.path.join(folder, LAST), "rb") as checkpoint:
        return digest and digest.group(1), metrics.read(), checkpoint.read()


def finish(pyc, folder, threads):
    done = subprocess.run(command(pyc, folder, threads), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        return None, done.stdout
    return result_of(folder, done.stdout), done.stdout


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    pyc, count = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) == 4 else 1)
    work = tempfile.mkdtemp(prefix="pyc_train_kills_")
    try:
        data = os.path.join(work, "data.npz")
        subprocess.run([sys.executable, os.path.join(ROOT, "scripts/train_data.py"), data, "1000", "1"], check=True)
        began = time.monotonic()
        expected, text = finish(pyc, os.path.join(work, "whole"), 1)
        whole = time.monotonic() - began
        if expected is None:
            sys.exit(text)
        print(f"never stopped: {STEPS} steps, weights {expected[0]}")
        equal = killed = torn = tried = 0
        while killed < count:
            folder = os.path.join(work, f"run{tried}")
            threads = (1, 2, 7)[tried % 3]
            tried += 1
            moment = draw.uniform(0, whole)
            run = subprocess.Popen(command(pyc, folder, threads), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(moment)
            run.kill()
            if run.wait() == 0:
                continue  # it was faster than the first
            killed += 1
            left = os.listdir(folder) if os.path.isdir(folder) else []
            half = any(name.startswith(".pyc-tmp.") for name in left)
            result, text = finish(pyc, folder, threads)
            found = re.search(r"goes on from .*/step-0*([0-9]+)\.", text)
            same = result == expected and not any(name.startswith(".") for name in os.listdir(folder))
            torn += half
            equal += same
            print(f"{killed:3}: {threads} threads, killed at {moment / whole:.3f} of the time{' within a write' if half else ''}, "
                  f"on from step {found.group(1) if found else 0}: {'equal' if same else 'DIFFERENT'}", flush=True)
            if not same:
                print(text)
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{equal} of {killed} equal, {torn} of them killed within a write")
        sys.exit(0 if equal == count else 1)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
