#!/usr/bin/env python3
"""cost_test.py SOURCE [CMAKE_ARGUMENT...]: what adding an op, a kernel, an option and a backend costs, counted.

Applies each recipe of docs/adding-*.md, exactly as it is printed, to a copy of the tree: a block under a path is a new file or, for a
file that is there, lines that go where the page's words say. What changed is counted and compared with the page's line "Cost: …". Then
the copy must pass the checks of layers and names and, configured by CMake, compile every new file: no further file is needed. That
the recipes work is for the other tests of this folder, which compile and run them.
"""

import difflib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Where the lines of a page go that change a file: after the last line with this text; "": at the end of the file.
INSERTED = {"src/driver/compile_options.inc": "", "src/driver/backends.inc": "", "scripts/check_layers.py": "BACKEND_EXTRA = {"}
PAGES = ["adding-an-op.md", "adding-a-kernel.md", "adding-an-option.md", "adding-a-backend.md"]


def blocks(page):
    """(path, text) of every block of the page under a line that begins with a path."""
    path, found, inside = None, [], None
    for line in page.splitlines(keepends=True):
        if inside is not None:
            if line.startswith("```"):
                if path:
                    found.append((path, "".join(inside)))
                path, inside = None, None
            else:
                inside.append(line)
        elif line.startswith("```"):
            inside = []
        elif named := re.match(r"`((?:src|tests|scripts)/[^`]+)`", line):
            path = named[1]
    return found


def apply(tree, path, text):
    """Writes a new file, or puts the lines into the file that is there."""
    file = tree / path
    if path not in INSERTED:
        assert not file.exists(), f"{path} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return
    lines = file.read_text().splitlines(keepends=True)
    mark = INSERTED[path]
    at = max(i for i, line in enumerate(lines) if mark in line) + 1 if mark else len(lines)
    file.write_text("".join(lines[:at] + [text] + lines[at:]))


def changed_lines(before, after):
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return sum(1 for line in diff if re.match(r"[+-](?!\+\+|--)", line))


def cost(source, tree, changes):
    """Words for what the changes are, and the new files."""
    new = sorted({path for path, _ in changes if not (source / path).exists()})
    parts = [f"{len(new)} new file{'' if len(new) == 1 else 's'}"]
    for path in sorted({path for path, _ in changes} - set(new)):
        n = changed_lines((source / path).read_text(), (tree / path).read_text())
        parts.append(f"{n} line{'' if n == 1 else 's'} of `{path}`")
    return ", ".join(parts), new


def copy_tree(source, tree):
    """What the library and the program are built from."""
    for folder in ["src", "include", "tools", "cmake", "scripts", "python"]:
        shutil.copytree(source / folder, tree / folder)
    for file in ("CMakeLists.txt", "LICENSE"):
        shutil.copy(source / file, tree)


def main():
    source = Path(sys.argv[1]).resolve()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(source, tree)
        all_new = []
        for name in PAGES:
            page = (source / "docs" / name).read_text()
            changes = blocks(page)
            for path, text in changes:
                apply(tree, path, text)
            found, new = cost(source, tree, changes)
            all_new += new
            print(f"{name}: {found}")
            if f"Cost: {found}." not in page:
                failures.append(f"docs/{name} should say 'Cost: {found}.'")
        for check in ["check_layers.py", "check_unity_names.py"]:
            run = subprocess.run([sys.executable, tree / "scripts" / check, "--root", tree], capture_output=True, text=True)
            if run.returncode:
                failures.append(f"{check}: {run.stdout}{run.stderr}")
        configured = subprocess.run(
            ["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DPYC_BUILD_TESTS=OFF", "-DPYC_BUILD_BENCH=OFF", *sys.argv[2:]],
            capture_output=True, text=True)
        if configured.returncode:
            failures.append(configured.stdout[-2000:] + configured.stderr[-2000:])
        else:
            commands = json.loads((tree / "build/compile_commands.json").read_text())
            compiled = {str(Path(c["file"]).resolve().relative_to(tree.resolve())) for c in commands}
            failures += [f"{path} is not compiled" for path in all_new if path.endswith(".cpp") and path not in compiled]
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
