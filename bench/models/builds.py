"""Builds of PyC to compare: the libpyc.so of a commit, made in a folder of its own under build/bench/commits."""

import hashlib
import os
import subprocess


def _run(command, log, **options):
    with open(log, "a", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed: see {log}")


def digest(library):
    """Tells one libpyc.so from another."""
    return hashlib.sha256(library.read_bytes()).hexdigest()[:12]


def build_commit(root, name, jobs):
    """The commit's hash and its libpyc.so (release preset), built unless it is there already."""
    found = subprocess.run(["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], cwd=root, capture_output=True, text=True)
    if found.returncode:
        raise RuntimeError(f"there is no commit '{name}'")
    commit = found.stdout.strip()[:12]
    folder = root / "build/bench/commits" / commit
    library = folder / "build/release/libpyc.so"
    done = folder / "built"
    if done.exists():
        return commit, library
    folder.mkdir(parents=True, exist_ok=True)
    log = folder.with_suffix(".log")
    archive = folder.with_suffix(".tar")
    _run(["git", "archive", "--output", str(archive), commit], log, cwd=root)
    _run(["tar", "-xf", str(archive), "-C", str(folder)], log)
    archive.unlink()
    environment = {**os.environ, "CCACHE_BASEDIR": str(folder)}
    _run(["cmake", "--preset", "release", "-DPYC_BUILD_TESTS=OFF", "-DPYC_BUILD_BENCH=OFF"], log, cwd=folder, env=environment)
    _run(["cmake", "--build", "build/release", "--parallel", str(jobs), "--target", "pyc_shared", "pyc_llvm_module"], log, cwd=folder,
         env=environment)
    done.touch()
    return commit, library
