#!/usr/bin/env python3
"""Which tests `./dev test` leaves to another commit.

usage: turns.py dev|asan          a regular expression of ctest for the tests whose turn it is not
       turns.py --part            0, 1 or 2: the target sanitized_0, _1 or _2 has this commit's programs
       turns.py --check BUILD     fails if a list names a test that BUILD does not have
       turns.py --list COSTS      the tests that take long, from build/asan/Testing/Temporary/CTestCostData.txt

In the plain run the sweeps of tests/turns_dev.txt take turns by halves: two commits run all. Under the address sanitizer
folders of tests take turns by thirds (a line of tests/turns_folders.txt each); those that read files, and the fuzzers, always
run. Two thirds of its time go into few tests, and those of tests/turns_asan.txt take turns besides: a quarter of them runs,
the next one three commits later, so that twelve commits run all. PYC_HOSTILE_ROUND stands for the number of commits.
`./dev test --slow` runs all at once. The lists are ordered by time, which makes the parts alike.
"""

import re
import subprocess
import sys
from pathlib import Path

from hostile import this_round

TESTS = Path(__file__).resolve().parent.parent / "tests"
LONG_S = 5.0


def names_of(kind):
    return (TESTS / f"turns_{kind}.txt").read_text().split()


def folders_by_part():
    return [line.split() for line in (TESTS / "turns_folders.txt").read_text().splitlines()]


def long_tests(costs):
    """The lines of ctest are: name, runs, mean seconds; a line --- ends them."""
    rows = [line.split() for line in Path(costs).read_text().splitlines()]
    rows = [(float(row[2]), row[0]) for row in rows if len(row) == 3]
    return [name for seconds, name in sorted(rows, reverse=True) if seconds > LONG_S and not name.startswith("fuzz_")]


def without_turn(names, turn, turns):
    return [name for i, name in enumerate(names) if (i + turn) % turns != 0]


def missing(build):
    """What the lists name and BUILD has not; a program that is not built has no tests that could be looked for."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True, check=True).stdout
    there = set(re.findall(r"^ +Test +#\d+: (.*)$", listed, re.MULTILINE))
    built = {name.split(".")[0] for name in there if f"pyc_{name.split('.')[0]}_tests_NOT_BUILT" not in there}
    gone = {name for name in names_of("dev") + names_of("asan") if name.split(".")[0] in built} - there
    return gone | {folder for part in folders_by_part() for folder in part if not (TESTS / folder).is_dir()}


def excluded(kind, turn):
    """A regular expression for the names of tests."""
    if kind == "dev":
        texts = [re.escape(name) for name in without_turn(names_of(kind), turn, 2)]
    else:
        parts = folders_by_part()
        folders = "|".join(name for i, part in enumerate(parts) if i != turn % len(parts) for name in part)
        texts = [rf"({folders})\..*", f"pyc_({folders})_tests_NOT_BUILT"]
        texts += [re.escape(name) for name in without_turn(names_of(kind), turn // len(parts), 4)]
    return f"^({'|'.join(texts)})$"


def main():
    match sys.argv[1:]:
        case [("dev" | "asan") as kind]:
            print(excluded(kind, this_round()))
        case ["--part"]:
            print(this_round() % len(folders_by_part()))
        case ["--check", build]:
            sys.exit("".join(f"tests/turns_*.txt: {name} is not there\n" for name in sorted(missing(build))) or 0)
        case ["--list", costs]:
            print("\n".join(long_tests(costs)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
