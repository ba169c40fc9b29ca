#!/usr/bin/env python3
"""clean_system.py PACKAGE...: installs .deb files by apt and wheels by pip in a clean Debian of this machine's release, and runs them.

The system is made by mmdebstrap from the machine's own apt sources; numpy is Debian's. Says NOT RUN and ends with 77 where that cannot be.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
RECOMMENDS = 'APT::Install-Recommends "false"'


def not_run(why):
    print(f"clean system: NOT RUN ({why})")
    sys.exit(77)


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


def release():
    facts = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line)
    return facts.get("VERSION_CODENAME", "").strip('"')


def inside(system, *command):
    own_proc = ("unshare", "--pid", "--fork", f"--mount-proc={system / 'proc'}")  # gone with the command
    return run(*own_proc, "chroot", system, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", *command)


def prepare(system):
    """apt inside reaches what apt outside does."""
    shutil.copy("/etc/resolv.conf", system / "etc/resolv.conf")
    shutil.copytree("/etc/apt/apt.conf.d", system / "etc/apt/apt.conf.d", dirs_exist_ok=True)
    inside(system, "apt-get", "update")


def try_deb(system, package):
    shutil.copy(package, system / "tmp" / package.name)
    inside(system, "apt-get", "install", "--yes", "--no-install-recommends", f"/tmp/{package.name}")
    shutil.copy(ROOT / "tests/models/mlp.ir", system / "tmp/mlp.ir")
    print(f"{package.name}: {inside(system, 'pyc', '--version').splitlines()[0]} runs: {inside(system, 'pyc', 'run', '/tmp/mlp.ir').splitlines()[0]}")
    inside(system, "apt-get", "purge", "--yes", "pyc")  # a wheel has to bring all of its own
    inside(system, "apt-get", "autoremove", "--yes", "--purge")


def try_wheel(system, package):
    shutil.copy(package, system / "tmp" / package.name)
    shutil.copy(ROOT / "python/tests/check_wheel.py", system / "tmp/check_wheel.py")
    inside(system, "python3", "-m", "venv", "--system-site-packages", "/tmp/v")
    inside(system, "/tmp/v/bin/pip", "install", "--quiet", "--no-index", f"/tmp/{package.name}")
    print(f"{package.name}: {inside(system, '/tmp/v/bin/python', '-B', '/tmp/check_wheel.py')}")


def tools():
    """mmdebstrap and the sources it is given."""
    sources = [path for path in SOURCES if path.is_file()]
    maker = shutil.which(os.environ.get("MMDEBSTRAP", "mmdebstrap"))
    if maker is None:
        not_run("mmdebstrap is not installed")
    if os.geteuid() != 0:
        not_run("only root can make one")
    if not sources:
        not_run("the machine has no apt sources of Debian's")
    return maker, sources


def make(system, wanted):
    maker, sources = tools()
    run(maker, "--mode=root", "--variant=apt", f"--include={wanted}", f"--aptopt={RECOMMENDS}", release(), system, *sources)
    prepare(system)


def main():
    packages = [Path(name).resolve(strict=True) for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        system = Path(folder) / "system"
        make(system, "python3,python3-numpy,python3-venv,ca-certificates")
        for package in packages:
            (try_deb if package.suffix == ".deb" else try_wheel)(system, package)


if __name__ == "__main__":
    main()
