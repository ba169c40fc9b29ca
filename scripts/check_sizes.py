#!/usr/bin/env python3
"""Prints the largest source files; exits 1 if one is over the limit without a reason.

usage: check_sizes.py [FILE...]   without arguments: every source file that git knows or that is new

Reasons stand in docs/large-files.md as table rows: | `path` | reason |
"""

import re
import subprocess
import sys
from pathlib import Path

LIMIT = 800
SHOWN = 10
SOURCES = ["*.c", "*.cpp", "*.cu", "*.cuh", "*.h", "*.hpp", "*.py"]
REASONS = Path("docs/large-files.md")
ROW = re.compile(r"^\|\s*`([^`]+)`\s*\|\s*(.*?)\s*\|\s*$")


def read_reasons():
    if not REASONS.is_file():
        return {}
    rows = (ROW.match(line) for line in REASONS.read_text(encoding="utf-8").splitlines())
    return {row[1]: row[2] for row in rows if row}


def source_files():
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES]
    names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in names if name and Path(name).is_file()})


def main():
    reasons = read_reasons()
    names = sys.argv[1:] or source_files()
    if not names:
        sys.exit("check_sizes.py: no source files here")
    sizes = []
    for name in names:
        with open(name, "rb") as file:
            sizes.append((sum(1 for _ in file), name))
    sizes.sort(key=lambda item: (-item[0], item[1]))
    failed = False
    for lines, name in sizes:
        over = lines > LIMIT
        failed |= over and not reasons.get(name)
    print(f"{len(sizes)} source files, {sum(lines for lines, _ in sizes)} lines; the largest:")
    for rank, (lines, name) in enumerate(sizes):
        if rank >= SHOWN and lines <= LIMIT:
            break
        note = ""
        if lines > LIMIT:
            note = reasons.get(name) or f"over {LIMIT} lines: split it, or give the reason in {REASONS}"
        print(f"{lines:6}  {name}  {note}".rstrip())
    for name in sorted(set(reasons) - {name for lines, name in sizes if lines > LIMIT}):
        print(f"{REASONS}: '{name}' is no longer over {LIMIT} lines, remove its row")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
