#!/usr/bin/env python3
"""Writes tests/ops/*.cases (format: tests/ops/README.md).

    python3 -m venv V && V/bin/pip install numpy ml_dtypes && V/bin/python scripts/gen_cases.py [OP...]

Expected values never come from PyC. What the numerics contract fixes to the bit (sums, contractions, pools, norms) is
evaluated here in its order with IEEE arithmetic and compared with f64; functions come from decimal arithmetic of 60
digits; everything else from numpy.
"""

import importlib
import pkgutil
import sys

import cases

from cases.files import FOLDER, GENERATORS

for module in pkgutil.iter_modules(cases.__path__):  # importing them registers their generators
    importlib.import_module(f"cases.{module.name}")


def main():
    wanted = sys.argv[1:] or sorted(GENERATORS)
    for op in wanted:
        GENERATORS[op](op)
    print(f"wrote {len(wanted)} cases files to {FOLDER}")


if __name__ == "__main__":
    main()
