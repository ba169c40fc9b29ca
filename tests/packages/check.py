#!/usr/bin/env python3
"""check.py SOURCE BUILD: installs a build into a folder, moves it, and builds and runs programs of others with it.

By find_package (shared, static, C alone) and by pkg-config: all programs compute the same layer, so they print the same
digest. As a part of another project PyC is configured and one folder of it built, since all of it takes minutes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command, env=None):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def without_library_path():
    return {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}


def main():
    source, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    here = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        first, prefix = Path(folder) / "first", Path(folder) / "moved" / "here"
        run("cmake", "--install", build, "--prefix", first, "--component", "pyc")
        prefix.parent.mkdir()
        first.rename(prefix)  # nothing may know where it was installed
        env = without_library_path()
        version = run(prefix / "bin" / "pyc", "--version", env=env).splitlines()[0]
        found = {"program": version}
        for name in ("man/man1/pyc.1", "bash-completion/completions/pyc"):
            if "pyc" not in (prefix / "share" / name).read_text(encoding="utf-8"):
                sys.exit(f"share/{name} has nothing of the program")

        for name in ("shared", "static", "c_only"):
            work = Path(folder) / name
            run("cmake", "-G", "Ninja", "-S", here / name, "-B", work, f"-DCMAKE_PREFIX_PATH={prefix}")
            run("cmake", "--build", work)
            found[name] = run(work / "consumer", env=env).strip()

        if shutil.which("pkg-config"):
            env["PKG_CONFIG_PATH"] = str(prefix / "lib" / "pkgconfig")
            flags = run("pkg-config", "--cflags", "--libs", "pyc", env=env).split()
            program = Path(folder) / "by_pkg_config"
            run("cc", here / "layer.c", *flags, f"-Wl,-rpath,{prefix / 'lib'}", "-o", program)
            found["pkg-config"] = run(program, env=env).strip()
            wanted = run("pkg-config", "--modversion", "pyc", env=env).strip()
            if wanted not in version:
                sys.exit(f"pyc.pc says {wanted}, the program {version}")
        else:
            print("pkg-config: NOT RUN (not installed)")

        work = Path(folder) / "subproject"
        run("cmake", "-G", "Ninja", "-S", here / "subproject", "-B", work, f"-DPYC_SOURCE={source}")
        run("cmake", "--build", work, "--target", "pyc_io")
        steps = len(run("ninja", "-C", work, "-t", "commands", "consumer").splitlines())
        if steps < 100:
            sys.exit(f"the program of the other project is made in {steps} steps: PyC is not part of it")
        found["subproject"] = f"{steps} steps"

        for name, said in found.items():
            print(f"{name}: {said}")
        digests = {said for name, said in found.items() if name not in ("program", "subproject")}
        if len(digests) != 1 or len(digests.pop()) != 32:
            sys.exit("the programs do not print one digest")


if __name__ == "__main__":
    main()
