#!/usr/bin/env python3
"""Runs clang-tidy over src/.

A file that passed is stamped with a hash of everything its result depends on (its text, the project headers it reaches,
its compile command, .clang-tidy, the tool's version), and is not checked again until that changes. Most of a file's time
goes into the headers it reads, so files of a folder are checked several at once, as one text; where something is found in
it, each of them alone.

With --turns a quarter of the files is checked, which one moves on with the number of commits, and those that one of the last
commits changed: four commits check all.
Usage: tidy.py BUILD_DIR STAMP_DIR JOBS [--turns]
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from hostile import this_round

ROOT = Path(__file__).resolve().parent.parent
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-16")
INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def project_headers(source, search, includes_of):
    """The project's files that `source` reaches through #include, itself included, sorted."""
    seen = {source}
    queue = [source]
    while queue:
        path = queue.pop()
        if path not in includes_of:
            includes_of[path] = [name.decode() for name in INCLUDE.findall(path.read_bytes())]
        for name in includes_of[path]:
            for folder in (path.parent, *search):
                header = folder / name
                if header.is_file():
                    header = header.resolve()
                    if header not in seen:
                        seen.add(header)
                        queue.append(header)
                    break
    return sorted(seen)


def stamp_of(entry, files, common):
    digest = hashlib.sha256(common)
    digest.update(entry["command"].encode())
    for path in files:
        digest.update(str(path).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def run_tidy(build, source):
    done = subprocess.run([TIDY, "--quiet", "-p", str(build), str(source)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


TOGETHER = 8  # as CMAKE_UNITY_BUILD joins them, so that they can stand beside each other


def together(sources):
    """The files in lists of at most TOGETHER, all of a list in one folder."""
    units = []
    for source in sorted(sources):
        if units and len(units[-1]) < TOGETHER and units[-1][0].parent == source.parent:
            units[-1].append(source)
        else:
            units.append([source])
    return units


def name_together(folder, sources):
    return folder / f"{sources[0].parent.name}_{sources[0].stem}_and_others.cpp"


def check(folder, sources):
    """What clang-tidy says of each: a list of (source, code, out, err)."""
    if len(sources) > 1:
        text = name_together(folder, sources)
        text.write_text("".join(source.read_text() for source in sources))
        code, _, _ = run_tidy(folder, text)
        if code == 0:
            return [(source, 0, "", "") for source in sources]
    return [(source, *run_tidy(folder, source)) for source in sources]


TURNS = 4
LAST_COMMITS = 40


def recently_changed():
    """The files, without their suffix, that one of the last commits changed or that are changed now."""
    names = []
    for command in (["log", f"-{LAST_COMMITS}", "-m", "--first-parent", "--name-only", "--format="], ["diff", "--name-only", "HEAD"]):
        names += subprocess.run(["git", "-C", ROOT, *command], capture_output=True, text=True, check=False).stdout.split("\n")
    return {(ROOT / name).with_suffix("") for name in names if name}


def has_its_turn(source, turn):
    return (zlib.crc32(source.relative_to(ROOT).as_posix().encode()) + turn) % TURNS == 0


def main():
    build, stamps, jobs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3])
    turns = sys.argv[4:] == ["--turns"]
    turn, recent = (this_round(), recently_changed()) if turns else (0, set())
    stamps.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    search = (ROOT / "src", ROOT / "include", build / "generated")

    todo = {}
    checked = 0
    left = 0
    includes_of = {}
    commands = json.loads((build / "compile_commands.json").read_text())
    command_of = {}  # the first: a file of the library may be part of a test program too
    for entry in commands:
        command_of.setdefault(Path(entry["file"]).resolve(), entry)
    commands = list(command_of.values())
    for source, entry in command_of.items():
        if not source.is_relative_to(ROOT / "src") or not source.is_file():
            continue
        if turns and not has_its_turn(source, turn) and source.with_suffix("") not in recent:
            left += 1
            continue
        checked += 1
        stamp = stamps / stamp_of(entry, project_headers(source, search, includes_of), common)
        if not stamp.exists():
            todo[source] = stamp

    print(f"clang-tidy: {checked} files, {checked - len(todo)} unchanged since they passed, {len(todo)} to check, {left} have another turn", flush=True)
    units = together(todo)
    for unit in units:
        if len(unit) == 1:
            continue
        first = command_of[unit[0]]
        text = str(name_together(stamps, unit))
        commands.append({**first, "command": first["command"].replace(first["file"], text), "file": text})
    (stamps / "compile_commands.json").write_text(json.dumps(commands))

    failed = 0
    count = 0
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(check, stamps, unit) for unit in units]):
            for source, code, out, err in future.result():
                count += 1
                print(f"[{count}/{len(todo)}] {source.relative_to(ROOT)}{'' if code == 0 else ' FAILED'}", flush=True)
                if code == 0:
                    todo[source].touch()
                else:
                    failed += 1
                    print(out or err, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
