"""bits.py PYC [LOG]: weights after 100 steps, which must not depend on how a step is computed.

Small models of four kinds are trained at 1, 2 and 7 threads, with vectors of 4, 8 and 16 lanes, without fusion, without reuse of memory, within the smallest
budget of memory that is not refused (layers run again), and by the reference interpreter. All must end with one digest of the weights and with one digest of
the metrics; with LOG, what this script wrote on another machine, that one's.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import models

STEPS = 100


def floats(*shape):
    """Eighths: the same on every machine."""
    return (np.random.default_rng(1).integers(-16, 17, shape) / 8).astype(np.float32)


def labels(classes, *shape):
    return np.random.default_rng(2).integers(0, classes, shape)


MODELS = {
    "mlp": (models.mlp(16, 24, 48, 10), floats(64, 24), labels(10, 64)),
    "cnn": (models.cnn(8, 12, (3, 8, 16), 10), floats(32, 3, 12, 12), labels(10, 32)),
    "transformer": (models.transformer(4, 12, 32, 4, 3, 19), labels(19, 16, 12), labels(19, 16, 12)),
    "lstm": (models.lstm(6, 6, 12, 20, 5), floats(6, 6, 12), labels(5, 6)),
}
WAYS = {
    "1 thread": ["--threads", "1"],
    "2 threads": ["--threads", "2"],
    "7 threads": ["--threads", "7"],
    "4 lanes": ["--threads", "2", "--lanes", "4"],
    "8 lanes": ["--threads", "2", "--lanes", "8"],
    "16 lanes": ["--threads", "2", "--lanes", "16"],
    "not fused": ["--threads", "2", "--no-fuse"],
    "no reuse of memory": ["--threads", "2", "--no-reuse"],
    "reference": ["--device", "reference"],
}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    before = Path(sys.argv[2]).read_text() if len(sys.argv) == 3 else ""
    print(f"# bits.py, {os.uname().machine}, {STEPS} steps: model, way, digest of the weights, of the metrics")
    wrong = 0
    for name, (text, x, target) in MODELS.items():
        with tempfile.TemporaryDirectory(prefix="pyc_bits_") as folder:
            folder = Path(folder)
            (folder / "model.ir").write_text(text)
            np.savez(folder / "data.npz", x=x, target=target)
            command = [sys.argv[1], "train", folder / "model.ir", "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", "0.002", "--clip-norm", "1"]
            data = ["--data", folder / "data.npz", "--seed", "5", "--steps", str(STEPS), "--metrics", folder / "m.jsonl", "--json"]
            refused = subprocess.run([*command, *data, "--threads", "2", "--memory-budget", "1000"], stdout=subprocess.PIPE, text=True, check=False).stdout
            budget = ["--threads", "2", "--memory-budget", re.search(r"smallest budget for this plan is (\d+)", refused)[1]]
            again = subprocess.run([*command, *budget, "--explain"], stdout=subprocess.PIPE, text=True, check=True).stdout.count("recompute:")
            found = set(re.findall(rf"^{name}\t.*\t(\w+)\t(\w+)$", before, re.M))
            for way, options in {**WAYS, f"{again} kernels again": budget}.items():
                done = subprocess.run([*command, *data, *options], stdout=subprocess.PIPE, text=True, check=True)
                weights, metrics = json.loads(done.stdout)["weights"], hashlib.sha256((folder / "m.jsonl").read_bytes()).hexdigest()[:32]
                print(f"{name}\t{way}\t{weights}\t{metrics}", flush=True)
                found.add((weights, metrics))
            wrong += len(found) != 1
    print(f"# {len(MODELS) - wrong} of {len(MODELS)} models have one digest")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
