#!/usr/bin/env python3
"""Writes tests/ops/*.cases (format: tests/ops/README.md).

    python3 -m venv V && V/bin/pip install numpy ml_dtypes && V/bin/python scripts/gen_cases.py [--check] [OP...]

With --check nothing is written: the files that would be are compared with those that are there, and files that nothing writes are
named. Exits 1 on a difference, 77 where numpy or ml_dtypes is missing.
Expected values never come from PyC. What the numerics contract fixes to the bit (sums, contractions, pools, norms) is
evaluated here in its order with IEEE arithmetic and compared with f64; functions come from decimal arithmetic of 60
digits; everything else from numpy.
"""

import difflib
import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

try:
    import cases
    from cases import files
except ImportError as error:
    print(f"NOT RUN: {error}")
    sys.exit(77)

for module in pkgutil.iter_modules(cases.__path__):  # importing them registers their generators
    importlib.import_module(f"cases.{module.name}")


def generate(ops):
    for op in ops:
        files.GENERATORS[op](op)


def check(ops, committed):
    """The number of files that differ from those in the folder `committed`; prints how."""
    with tempfile.TemporaryDirectory() as folder:
        files.FOLDER = Path(folder)
        generate(ops)
        made = {path.name: path.read_text(encoding="utf-8") for path in files.FOLDER.glob("*.cases")}
    there = {path.name: path.read_text(encoding="utf-8") for path in committed.glob("*.cases")}
    if len(ops) < len(files.GENERATORS):
        there = {name: text for name, text in there.items() if name in made}
    wrong = 0
    for name in sorted(made.keys() | there.keys()):
        if made.get(name) == there.get(name):
            continue
        wrong += 1
        lines = difflib.unified_diff(there.get(name, "").splitlines(), made.get(name, "").splitlines(),
                                     f"{name} as it is", f"{name} as it is generated", n=0, lineterm="")
        print("\n".join(line[:200] for line in list(lines)[:12]))
    print(f"{len(made)} cases files generated, {wrong} differ")
    return wrong


def main():
    only_check = "--check" in sys.argv[1:]
    wanted = [op for op in sys.argv[1:] if op != "--check"] or sorted(files.GENERATORS)
    if only_check:
        return 1 if check(wanted, files.FOLDER) else 0
    generate(wanted)
    print(f"wrote {len(wanted)} cases files to {files.FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
