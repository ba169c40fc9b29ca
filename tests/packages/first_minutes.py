#!/usr/bin/env python3
"""first_minutes.py [--system FOLDER] [--ccache FOLDER] > bench/results/first_minutes.md: what someone meets who has a fresh Debian with git and nothing else.

The system is made as by clean_system.py. The committed state of this checkout is cloned there and the commands of the README are run by the
clock, each in a shell of its own. Says NOT RUN and ends with 77 where no such system can be made.
"""

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import clean_system

ROOT = clean_system.ROOT
HOME = "/root"
# What pip outside is told about how to reach its index holds inside too.
PASSED_ON = ("PIP_", "SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
FROM_PYTHON = "import numpy as np, pyc; b = pyc.ModelBuilder(); b.output(b.relu(b.input('x', 'f32', (4,)))); print(b.compile()(np.array([-1, 2, -3, 4], 'f4')))"

# The words before a command, the command, and what its output must have.
STEPS = (
    ("A clone (here of a file, without the time a network takes)", "git -c advice.detachedHead=false clone -q /tmp/pyc.bundle pyc", None),
    ("The first output: packages by apt, the build, a model run, a report", "cd pyc && ./dev demo", "the report is"),
    ("The build again, nothing changed", "cd pyc && ./dev build release pyc", "no work to do"),
    ("The build again, one file of an op changed", "cd pyc && echo '[[maybe_unused]] static int changed;' >> src/ops/relu.cpp && ./dev build release pyc && git checkout -q src", None),
    ("The Python package, which builds the library without tests and bundles LLVM", "cd pyc && python3 -m venv v && v/bin/pip install -q .", None),
    ("The first output from Python", f'cd pyc && v/bin/python -c "{FROM_PYTHON}"', "[0. 2. 0. 4.]"),
    ("The Python package again", "cd pyc && v/bin/pip install -q .", None),
)


def make_system(system):
    clean_system.make(system, "git,ca-certificates")
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", system / "etc/ssl/certs/ca-certificates.crt")
    if Path("/etc/pip.conf").is_file():
        shutil.copy("/etc/pip.conf", system / "etc/pip.conf")


def timed(system, command, wanted):
    """Seconds of a command inside, and its last lines."""
    kept = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(PASSED_ON)]
    own_proc = ("unshare", "--pid", "--fork", f"--mount-proc={system / 'proc'}")
    environment = ("/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"HOME={HOME}", *kept)
    start = time.monotonic()
    done = subprocess.run(
        [*own_proc, "chroot", str(system), *environment, "bash", "-c", f"cd {HOME} && {command}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - start
    print(f"{seconds:.1f} s: {command}", file=sys.stderr, flush=True)
    if done.returncode or (wanted and wanted not in done.stdout):
        sys.exit(f"{command}: ended with {done.returncode}\n{done.stdout[-6000:]}")
    return seconds, done.stdout


def follow(system, cache):
    subprocess.run(["git", "bundle", "create", "-q", str(system / "tmp/pyc.bundle"), "HEAD"], cwd=ROOT, check=True)
    commit = clean_system.run("git", "-C", ROOT, "rev-parse", "--short", "HEAD")
    name = clean_system.inside(system, "bash", "-c", ". /etc/os-release && echo $PRETTY_NAME")
    if cache:
        shutil.copytree(cache, system / "root/.cache/ccache", dirs_exist_ok=True)
    rows = []
    for words, command, wanted in STEPS:
        seconds, output = timed(system, command, wanted)
        last = [re.sub(r"\S*/pyc/", "", line) for line in output.strip().splitlines()[-1:]] or [""]
        rows.append(f"| {words} | `{command.removeprefix('cd pyc && ')}` | {seconds:.1f} | {last[0]} |")
    print("# The first minutes\n")
    print(f"{datetime.date.today()}, {commit}; {name} ({os.uname().machine}) with git and nothing else, made by mmdebstrap, {os.cpu_count()} cores "
          f"with a load of {os.getloadavg()[1]:.1f}.")  # fmt: skip
    print("Written by `tests/packages/first_minutes.py`, which runs the commands in that order, in a clone of the commit, "
          f"with {'a compiler cache that another checkout filled' if cache else 'an empty compiler cache'}.\n")  # fmt: skip
    print("| what | command | seconds | last line |\n|---|---|---|---|")
    print("\n".join(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--system", type=Path, help="a folder for the system, used again where it is there, and kept")
    parser.add_argument("--ccache", type=Path, help="a compiler cache to begin with: the build is short, and its time is not that of a first one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        system = given.system or Path(folder) / "system"
        if not system.exists():
            make_system(system)
        follow(system, given.ccache)


if __name__ == "__main__":
    main()
