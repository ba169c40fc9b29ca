#!/usr/bin/env python3
"""Checks every #include of src/, include/, tools/ and python/ against the table of who may include whom.

Prints one line per violation (file:line: ...) and exits 1 if there are any. tests/ and bench/ may include anything.
"""

import argparse
import os
import re
import sys
from pathlib import Path

# A folder may include itself, base, and what is here: folders, or single headers of a folder.
ALLOWED = {
    "base": [],
    "ir": [],
    "loop": [],
    "runtime": [],
    "artifact": ["runtime"],
    "open": ["ir"],
    "io": ["ir", "open", "import"],
    "ops": ["ir", "loop"],
    "import": ["ir", "open", "ops", "host", "autograd"],
    "export": ["ir", "ops"],
    "autograd": ["ir", "ops"],
    "lower": ["ir", "ops", "loop"],
    "eval": ["ir", "ops", "loop", "lower"],
    "passes": ["ir", "ops", "eval"],
    "exec": ["ir", "open", "runtime"],
    "host": ["ir", "open"],
    "plan": ["ir", "loop", "lower/types.h"],
    "backends": ["loop", "lower/types.h", "plan/types.h", "runtime"],
    "driver": ["ir", "ops", "loop", "policy", "lower", "passes", "plan", "backends", "runtime"],
    "rails": [],
    "policy": ["pyc"],
    "session": ["ir", "ops", "open", "exec", "rails", "driver", "backends/backend.h", "runtime", "artifact"],
    "tune": ["ir", "loop", "lower/types.h", "eval", "driver", "session", "backends/backend.h", "runtime", "artifact"],
    "model_file": ["ir", "open", "import", "export", "exec", "driver", "session", "runtime", "artifact"],
    "tooling": ["ir", "ops", "open", "import", "passes", "driver", "session", "runtime"],
    "report": ["ir", "loop", "lower", "plan", "driver"],
    "train": ["ir", "ops", "autograd", "driver", "session", "runtime", "io"],
    "capi": ["train", "tune", "report", "tooling", "model_file", "session", "rails", "driver", "exec", "runtime", "artifact", "open", "ir", "io", "pyc"],
    "include": ["pyc"],
    "tools": ["pyc"],
    "python": ["pyc"],
}
# Every backend: what is under "backends", the interface, and its own line here.
BACKEND_INTERFACE = "backends/backend.h"
BACKEND_EXTRA = {"reference": ["eval"]}

# Within a folder: what the second calls does not call back.
ONE_WAY = {"session/artifacts.cpp": "session/model.h", "session/artifacts.h": "session/model.h"}

# Headers of other projects that are kept inside some folders.
CONFINED = [
    (re.compile(r"llvm(-c)?/"), "LLVM", ["backends/cpu"]),
    (re.compile(r"(cuda|cudnn|cublas|cublasLt|cufft|curand|cusparse|nvrtc|nccl|nvml|nvToolsExt)\w*\.h$"),
     "CUDA", ["backends/cuda"]),
    (re.compile(r"(cuda|cub|thrust|cutlass|cute)/"), "CUDA", ["backends/cuda"]),
    (re.compile(r"protozero/"), "protozero", ["import", "export"]),
    (re.compile(r"(re2|webp)/|(jpeglib|png|tiffio|openjpeg)\.h$"), "RE2 and image", ["host"]),
]

# Headers written by the build, and the folder they belong to.
GENERATED = {"op_list.inc": "ops", "report_page.inc": "report"}

SUFFIXES = {".h", ".hpp", ".inc", ".c", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def layer_of(path):
    """The layer of a header named as in an #include: 'ir', 'backends/cpu'; 'backends' for a file directly in it."""
    parts = path.split("/")
    if parts[0] == "backends" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def allowed_for(layer):
    """What the layer may include besides itself, or None for a layer that the table does not have."""
    if layer.startswith("backends/"):
        extra = BACKEND_EXTRA.get(layer.removeprefix("backends/"), [])
        return ["base", BACKEND_INTERFACE, *ALLOWED["backends"], *extra]
    if layer not in ALLOWED:
        return None
    return ALLOWED[layer] if layer in ("base", "include", "tools", "python") else ["base", *ALLOWED[layer]]


def permits(layer, allowed, target):
    if layer_of(target) == layer:
        return True
    return any(target == entry or target.startswith(entry + "/") for entry in allowed)


class Tree:
    def __init__(self, root):
        self.root = root
        self.src = root / "src"
        self.include = root / "include"

    def files(self):
        """Every file to check with its layer, in a fixed order."""
        for top in ("include", "src", "tools", "python"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in SUFFIXES and path.is_file():
                    inside = path.relative_to(self.root / top).as_posix()
                    yield path, layer_of(inside) if top == "src" else top

    def resolve(self, path, name, quoted):
        """The name of a header of this project as seen from src/ or include/; None for another project's header."""
        if quoted:
            beside = Path(os.path.normpath(path.parent / name))
            for base in (self.src, self.include, self.root):
                if beside.is_file() and beside.is_relative_to(base):
                    return beside.relative_to(base).as_posix()
        if name in GENERATED:
            return f"{GENERATED[name]}/{name}"
        first = name.split("/")[0]
        if first in ALLOWED or first == "pyc" or (self.src / name).is_file() or (self.include / name).is_file():
            return os.path.normpath(name)
        return None

    def check_include(self, path, layer, name, quoted):
        """Why this include is wrong, or None."""
        target = self.resolve(path, name, quoted)
        if target is not None:
            if path.is_relative_to(self.src) and ONE_WAY.get(path.relative_to(self.src).as_posix()) == target:
                return f"'{name}' is built on this file: the two would call each other"
            allowed = allowed_for(layer)
            if not permits(layer, allowed, target):
                shown = ", ".join(dict.fromkeys([*allowed, layer]))
                return f"folder '{layer}' may not include '{name}' (allowed: {shown})"
            return None
        for pattern, project, homes in CONFINED:
            if pattern.match(name) and layer not in homes:
                return f"folder '{layer}' may not include '{name}' ({project} headers only under: {', '.join(homes)})"
        return None


def check(tree):
    """All violations as printable lines, and the number of files and includes seen."""
    violations = []
    files = includes = 0
    for path, layer in tree.files():
        files += 1
        shown = path.relative_to(tree.root).as_posix()
        if allowed_for(layer) is None:
            violations.append(f"{shown}:1: folder '{layer}' is not in the table of scripts/check_layers.py")
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            match = INCLUDE.match(line)
            if not match:
                continue
            includes += 1
            reason = tree.check_include(path, layer, match[1] or match[2], quoted=match[1] is not None)
            if reason:
                violations.append(f"{shown}:{number}: {reason}")
    return violations, files, includes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="the tree to check (default: the one this script is in)")
    root = parser.parse_args().root.resolve()
    if not (root / "src").is_dir():
        print(f"{root}: has no src/ to check", file=sys.stderr)
        return 2
    violations, files, includes = check(Tree(root))
    for line in violations:
        print(line)
    print(f"layer check: {files} files, {includes} includes, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
