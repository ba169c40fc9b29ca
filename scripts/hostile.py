#!/usr/bin/env python3
"""Runs test programs again under every configuration of tests/configs/*.conf.

usage: hostile.py BUILD_FOLDER [CONFIG...]
       hostile.py --coverage    how many commits it takes until every test has met every configuration

A configuration is made of lines:
  programs NAME...          which pyc_NAME_tests to run
  set WORD[,WORD...]        PYC_TEST_CONFIG, see tests/configs/hostile.cpp
  env NAME=VALUE            another environment variable
  limit stack KIB           or: limit files N
  folder PATH               the current folder of the programs
  locale NAME               made with localedef if it is not installed
  args ARG...               arguments of the programs
  shard PROGRAM I/N         of this program only every N-th test; which, moves on by one with every commit, from the I-th on
  skip PROGRAM TEST REASON  a test that cannot hold there, and why
The round, which the shards move on with, is the number of commits, or what PYC_HOSTILE_ROUND says: N rounds, and every test
has met the configuration.
As many programs run at once as PYC_JOBS says, by default one per core. Prints one line per program and ends with
"N passed, N failed, N skipped"; exits 1 if anything failed.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "tests" / "configs"
TIMEOUT_S = 300


class Config:
    def __init__(self, path):
        self.name = path.stem
        self.programs, self.args, self.env, self.limits, self.skips = [], [], {}, [], []
        self.shards, self.folder, self.locale = {}, None, None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if not self.take(words):
                sys.exit(f"{path}:{number}: not understood: {line}")

    def take(self, words):
        key, rest = words[0], words[1:]
        if key == "programs":
            self.programs += rest
        elif key == "args":
            self.args += rest
        elif key == "set" and len(rest) == 1:
            self.env["PYC_TEST_CONFIG"] = rest[0]
        elif key == "env" and len(rest) == 1 and "=" in rest[0]:
            name, value = rest[0].split("=", 1)
            self.env[name] = value
        elif key == "limit" and len(rest) == 2 and rest[0] in ("stack", "files"):
            self.limits.append((rest[0], int(rest[1])))
        elif key == "folder" and len(rest) == 1:
            self.folder = rest[0]
        elif key == "locale" and len(rest) == 1:
            self.locale = rest[0]
        elif key == "shard" and len(rest) == 2 and re.fullmatch(r"\d+/\d+", rest[1]):
            index, total = map(int, rest[1].split("/"))
            if not 0 <= index < total:
                return False
            self.shards[rest[0]] = (index, total)
        elif key == "skip" and len(rest) >= 3:
            self.skips.append((rest[0], rest[1]))
        else:
            return False
        return True

    def shard(self, program, at):
        """The part of the program that round `at` runs, as the variables that gtest reads; none: all of it."""
        if program not in self.shards:
            return {}
        index, total = self.shards[program]
        return {"GTEST_SHARD_INDEX": str((index + at) % total), "GTEST_TOTAL_SHARDS": str(total)}

    def limiter(self):
        """What a command begins with to be run under the limits."""
        options = [f"--stack={value * 1024}" if what == "stack" else f"--nofile={value}" for what, value in self.limits]
        return ["prlimit", *options, "--"] if options else []


def make_locale(name, folder):
    """The variables that give a program the locale; None where it can neither be found nor made."""
    installed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    if name.lower().replace("-", "") in installed.lower().replace("-", "").split():
        return {"LC_ALL": name}
    language, charset = name.split(".")
    made = subprocess.run(["localedef", "-i", language, "-f", charset, f"{folder}/{name}"],
                          capture_output=True, check=False)
    return {"LC_ALL": name, "LOCPATH": str(folder)} if made.returncode == 0 else None


def this_round():
    if os.environ.get("PYC_HOSTILE_ROUND"):
        return int(os.environ["PYC_HOSTILE_ROUND"])
    counted = subprocess.run(["git", "-C", ROOT, "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False)
    return int(counted.stdout) if counted.returncode == 0 else 0


def show_coverage(configs):
    """Prints how many rounds each program of each configuration needs; fails if some test would never run."""
    missed = 0
    for config in configs:
        for program in config.programs:
            total = config.shards.get(program, (0, 1))[1]
            parts = {config.shard(program, at).get("GTEST_SHARD_INDEX") for at in range(total)}
            missed += total - len(parts)
            print(f"{config.name:16} {program:10} all tests in {total} rounds" +
                  ("" if len(parts) == total else f", {total - len(parts)} parts NEVER"))
    return 1 if missed else 0


def count(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(config, program, build, at, extra):
    skipped = [test for name, test in config.skips if name == program]
    tests = str(build / f"pyc_{program}_tests")
    command = [*config.limiter(), tests, "--gtest_brief=1", "--gtest_color=no", *config.args]
    if skipped:
        command.append("--gtest_filter=-" + ":".join(skipped))
    began, env = time.monotonic(), {**os.environ, **config.env, **config.shard(program, at), **extra}
    try:
        done = subprocess.run(command, env=env, cwd=config.folder or build, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT_S, check=False)
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        code, text = -1, f"stopped after {expired.timeout} s\n"
    passed, failed = count(r"\[  PASSED  \] (\d+) test", text), count(r"(\d+) FAILED TEST", text)
    if code != 0 and failed == 0:
        failed = 1
    if passed == 0 and failed == 0:
        failed, text = 1, text + "no test ran\n"
    report = (f"{config.name:16} {program:10} {passed:5} passed {failed:3} failed {len(skipped):3} skipped "
              f"{time.monotonic() - began:6.1f} s\n")
    if failed:
        report += "\n".join(text.splitlines()[-60:]) + f"\n(exit code {code})\n"
    sys.stdout.write(report)  # in one piece: others report too
    sys.stdout.flush()
    return passed, failed, len(skipped)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--coverage":
        return show_coverage([Config(path) for path in sorted(CONFIGS.glob("*.conf"))])
    build, at = Path(sys.argv[1]).resolve(), this_round()
    configs = [Config(path) for path in sorted(CONFIGS.glob("*.conf")) if not sys.argv[2:] or path.stem in sys.argv[2:]]
    if not configs:
        sys.exit("hostile.py: no such configuration")
    totals, runs = [0, 0, 0], []
    print(f"round {at}: shards move on with every commit")
    jobs = int(os.environ.get("PYC_JOBS") or os.cpu_count())
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        for config in configs:
            extra = make_locale(config.locale, folder) if config.locale else {}
            if extra is None:
                print(f"{config.name:16} NOT RUN: no locale {config.locale} here, and localedef cannot make it")
                continue
            runs += [pool.submit(run, config, program, build, at, extra) for program in config.programs]
        for done in runs:
            totals = [a + b for a, b in zip(totals, done.result())]
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
