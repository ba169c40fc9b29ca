"""Writes bench/results/memory.md: pyc_bench_memory with the machine, the commit and the load, ResNet-50 and BERT filled from the skeletons beside
the checkout: bench/memory.py [--program build/release/pyc_bench_memory] [--models ../shared/models] [--out bench/results/memory.md]."""

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/models"))
import machine  # noqa: E402

MODELS = ("resnet50.onnx", "bert_base_s128.onnx")
TITLE = """# Budgets met by running steps again and by parameters in a file

{when}, commit {commit}; {machine}, load {load:.1f} at the start. Written by `bench/memory.py`, CPU with 2 threads.

**Half of the peak above the floor.** The floor is the arena of the largest single step, which no plan of these steps is below; the budget gives up half of what the arena has above it. Bytes
are planned and equal what is allocated. Predicted times are sums of the costs of kernels; measured ones are the least of 25 runs, taken in turn with those without a budget, on shared cores: they show the order of
magnitude and no more. Bits are those of the reference, with no budget, this one and the smallest. On U-Net forward alone (`tests/models/unet.ir`) the largest step is the peak, so its
row is the network with the gradients of all its weights.

"""
SMALLEST = """
**Budgets of networks.** Most of their memory is weights, and nothing is won by running steps again; weights stay in a file and are copied through a window. Each row is compiled and run by itself with just
that many bytes; one byte less than the smallest is refused. *Handed out* is the most that the allocator had out during five runs, inputs and outputs included; unpacked weights lie in the mapped model, which it
does not see. Times are the least of five runs against those without a budget, on shared cores.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=str(ROOT / "build/release/pyc_bench_memory"))
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/memory.md")
    given = parser.parse_args()
    head = TITLE.format(
        when=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=machine.commit(ROOT),
        machine=machine.signature(machine.describe()),
        load=os.getloadavg()[0],
    )
    with tempfile.TemporaryDirectory() as scratch:
        skeletons = Path(scratch) / "skeletons"
        skeletons.mkdir()
        for name in MODELS:
            (skeletons / name).symlink_to((given.models / "skeletons" / name).resolve())
        filled = Path(scratch) / "filled"
        subprocess.run([sys.executable, given.models.parent / "tools/fill_skeletons.py", skeletons, filled], check=True)
        command = [given.program] + [str(filled / name) for name in MODELS]
        tables = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    half, smallest = tables.split("\n\n")
    given.out.write_text(head + half + "\n" + SMALLEST + "\n" + smallest, encoding="utf-8")


if __name__ == "__main__":
    main()
