#!/usr/bin/env python3
"""Runs every FOLDER/*/model.onnx at one thread and at others, with seeded inputs or those of its first data set, and
compares the digests of all outputs.

Usage: check_thread_bits.py PYC FOLDER [THREADS ...]. Prints one line per model and exits 1 if any bits differ.
"""

import json
import subprocess
import sys
from pathlib import Path


def inputs_of(program, model):
    """The --input options of the model's first data set, or none when a file is missing."""
    inspected = subprocess.run([program, "inspect", model, "--json"], capture_output=True, check=True)
    names = [value["name"] for value in json.loads(inspected.stdout)["inputs"]]
    for data_set in sorted(model.parent.glob("test_data_set_*")):
        files = [data_set / f"input_{i}.pb" for i in range(len(names))]
        if all(file.exists() for file in files):
            return [option for name, file in zip(names, files) for option in ("--input", f"{name}={file}")]
    return []


def digests(program, model, inputs, threads):
    command = [program, "run", model, "--json", "--threads", str(threads), *inputs]
    ran = subprocess.run(command, capture_output=True, check=False)
    if ran.returncode != 0:
        return f"exit {ran.returncode}: {ran.stdout.decode()[:300]}"
    return json.loads(ran.stdout)["outputs"]


def main():
    program, folder, *threads = sys.argv[1:]
    differing = 0
    models = sorted(Path(folder).glob("*/model.onnx"))
    for model in models:
        for inputs in ([], inputs_of(program, model)):
            found = [digests(program, model, inputs, t) for t in [1, *(threads or [2])]]
            same = all(f == found[0] for f in found) and not isinstance(found[0], str)
            differing += not same
            what = "data set" if inputs else "seeded"
            print(f"{'same ' if same else 'DIFFERS'} {model.parent.name} ({what})", "" if same else found, flush=True)
    print(f"{len(models)} models, {differing} differing")
    return 1 if differing or not models else 0


if __name__ == "__main__":
    sys.exit(main())
