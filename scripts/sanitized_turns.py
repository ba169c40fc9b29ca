#!/usr/bin/env python3
"""Which tests the sanitizers' run leaves to another commit.

usage: sanitized_turns.py                  a regular expression of ctest for the tests whose turn it is not
       sanitized_turns.py --check BUILD    fails if the list names a test that BUILD does not have
       sanitized_turns.py --half           0 or 1: the target sanitized_0 or sanitized_1 has this commit's programs
       sanitized_turns.py --list COSTS     the tests that take long, from build/asan/Testing/Temporary/CTestCostData.txt

Folders of tests take turns by halves (tests/sanitized_halves.txt: a line for even commits, one for odd ones), those that read
files, and the fuzzers, always run. Under the address sanitizer two thirds of the time go into few tests. Those of
tests/sanitized_turns.txt take turns besides: a quarter of them runs, and the next one two commits later, so that eight commits
run all. PYC_HOSTILE_ROUND stands for the number of commits. `./dev test --slow` runs all at once. The list is ordered by
time, which makes the quarters alike.
"""

import re
import subprocess
import sys
from pathlib import Path

from hostile import this_round

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "sanitized_turns.txt"
HALVES = ROOT / "tests" / "sanitized_halves.txt"
TURNS = 4
LONG_S = 5.0


def long_tests(costs):
    """The lines of ctest are: name, runs, mean seconds; a line --- ends them."""
    rows = [line.split() for line in Path(costs).read_text().splitlines()]
    rows = [(float(row[2]), row[0]) for row in rows if len(row) == 3]
    return [name for seconds, name in sorted(rows, reverse=True) if seconds > LONG_S and not name.startswith("fuzz_")]


def waiting(names, turn):
    return [name for i, name in enumerate(names) if (i + turn) % TURNS != 0]


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--list":
        print("\n".join(long_tests(sys.argv[2])))
        return
    if sys.argv[1:] == ["--half"]:
        print(this_round() % 2)
        return
    halves = [line.split() for line in HALVES.read_text().splitlines()]
    names = LIST.read_text().split()
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        listed = subprocess.run(["ctest", "--test-dir", sys.argv[2], "-N"], capture_output=True, text=True, check=True).stdout
        there = set(re.findall(r"^ +Test +#\d+: (.*)$", listed, re.MULTILINE))
        built = {name.split(".")[0] for name in there if f"pyc_{name.split('.')[0]}_tests_NOT_BUILT" not in there}
        gone = {name for name in names if name.split(".")[0] in built} - there
        gone |= {folder for half in halves for folder in half if not (ROOT / "tests" / folder).is_dir()}
        sys.exit("".join(f"{LIST.name} names {name}, which is not there\n" for name in sorted(gone)) or 0)
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    turn = this_round()
    names = waiting(names, turn // 2)
    folders = "|".join(halves[1 - turn % 2])
    print(rf"^(({folders})\..*|pyc_({folders})_tests_NOT_BUILT|" + "|".join(re.sub(r"([][.*+?^$()|\\{}])", r"\\\1", name) for name in names) + ")$")


if __name__ == "__main__":
    main()
