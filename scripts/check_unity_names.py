#!/usr/bin/env python3
"""Checks that no two files that may be compiled as one unit keep different things to themselves under one name.

usage: check_unity_names.py [--root FOLDER]

The presets dev and asan join the .cpp files of a folder of src/ (CMAKE_UNITY_BUILD): what stands in their unnamed namespaces then
meets. The compiler finds equal names in one namespace; in nested ones, or as overloads, it takes one for the other without a word.
Files named in SKIP_UNITY_BUILD_INCLUSION of CMakeLists.txt stay alone. Relies on the format that ./dev fmt makes: what stands in a
namespace begins in the first column. Prints one line per name (FOLDER: NAME: FILE:LINE, FILE:LINE) and exits 1 if there are any.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPENS = re.compile(r"^namespace(\s+[\w:]+)?\s*\{")
CLOSES = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class|\s+struct)?)\s+(\w+)(?!.*;\s*$)")
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
FUNCTION = re.compile(r"^[A-Za-z_][\w:<>,&*\s\[\]]*[\s&*](\w+)\(")
VARIABLE = re.compile(r"^(?:inline\s+|static\s+|thread_local\s+)*(?:constexpr|const|constinit|std::|thread_local)[^()=;{]*?[\s&*](\w+)(?:\[[^\]]*\])?\s*(?:=|\{|;)")
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)  # kernels are written as text
NO_NAMES = {"if", "for", "while", "switch", "return", "operator", "static_assert", "defined"}


def alone(root):
    """The files that are never joined with others."""
    text = (root / "CMakeLists.txt").read_text(encoding="utf-8") if (root / "CMakeLists.txt").exists() else ""
    found = set()
    for block in re.findall(r"set_source_files_properties\(([^)]*?)PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON\)", text, re.S):
        found |= set(block.split())
    return found


def own_names(path):
    """(name, line number) of what stands in the unnamed namespaces of a file."""
    spaces, names = [], []
    text = RAW_STRING.sub(lambda found: "\n" * found.group().count("\n"), path.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        if opened := OPENS.match(line):
            spaces.append(opened.group(1))
        elif CLOSES.match(line) and spaces:
            spaces.pop()
        elif None in spaces and line and not line[0].isspace() and not line.startswith(("//", "#", "}")):
            for pattern in (TYPE, ALIAS, VARIABLE, FUNCTION):
                if (found := pattern.match(line)) and found.group(1) not in NO_NAMES:
                    names.append((found.group(1), number))
                    break
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT)
    root = parser.parse_args().root
    by_folder = defaultdict(lambda: defaultdict(dict))  # folder, name, file: first line
    skipped = alone(root)
    for path in sorted((root / "src").rglob("*.cpp")):
        file = path.relative_to(root).as_posix()
        if file in skipped:
            continue
        for name, number in own_names(path):
            by_folder[path.parent.relative_to(root).as_posix()][name].setdefault(file, number)
    wrong = 0
    for folder in sorted(by_folder):
        for name, files in sorted(by_folder[folder].items()):
            if len(files) > 1:
                wrong += 1
                print(f"{folder}: {name}: " + ", ".join(f"{file}:{number}" for file, number in files.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
