#!/usr/bin/env python3
"""Writes tests/autograd/*.gradients (format: tests/autograd/README.md).

    python3 -m venv V && V/bin/pip install numpy && V/bin/python scripts/gen_gradients.py [--check]

Expected gradients never come from PyC: `smooth` takes central differences of a forward function written in numpy, in f64 and with
Richardson's extrapolation; `closed` takes the formula that is given, for ties, zeros, masks and repeated indices.
With --check the files are compared with those that are there. Exits 1 on a difference, 77 where numpy is missing.
"""

import sys
from pathlib import Path

try:
    import numpy as np
except ImportError as error:
    print(f"NOT RUN: {error}")
    sys.exit(77)

from gradients import families

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "autograd"


def main():
    wrong = 0
    made = {name: text for name, text in families.generate(np).items()}
    for name, text in sorted(made.items()):
        path = FOLDER / f"{name}.gradients"
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or not families.same(path.read_text(encoding="utf-8"), text):
            print(f"{path.name} differs from what is generated")
            wrong += 1
    extra = {path.stem for path in FOLDER.glob("*.gradients")} - made.keys()
    for name in sorted(extra):
        print(f"{name}.gradients is not generated")
    if "--check" in sys.argv[1:]:
        print(f"{len(made)} files generated, {wrong + len(extra)} differ")
    return 1 if wrong or extra else 0


if __name__ == "__main__":
    sys.exit(main())
