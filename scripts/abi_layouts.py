#!/usr/bin/env python3
"""abi_layouts.py HEADER... : writes a C program that prints every struct of the C ABI, its fields' offsets and sizes, and
every number that a name stands for. tests/capi/struct_layouts.txt is what it prints on machines of 64 bits."""

import re
import sys
from pathlib import Path


def declarations(text):
    """The names of structs with their fields, and of numbers, in the order of the header."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    structs = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.S)
    enums = re.findall(r"enum \{(.*?)\};", text, re.S)
    fields = {name: re.findall(r"(\w+)(?:\[\w+\])?\s*;", body) for name, body in structs}
    numbers = [name for body in enums for name in re.findall(r"\b(PYC_\w+)\s*=", body)]
    return fields, numbers


def main():
    headers = [Path(path) for path in sys.argv[1:]]
    if not headers:
        sys.exit(__doc__)
    print("#include <stddef.h>\n#include <stdio.h>\n")
    for header in headers:
        print(f'#include "pyc/{header.name}"')
    print("\nint main(void) {")
    for header in headers:
        fields, numbers = declarations(header.read_text(encoding="utf-8"))
        for struct, names in fields.items():
            print(f'  printf("{struct} %zu\\n", sizeof({struct}));')
            for name in names:
                size = f"sizeof((({struct}*)0)->{name})"
                print(f'  printf("{struct}.{name} at %zu, %zu\\n", offsetof({struct}, {name}), {size});')
        for name in numbers:
            print(f'  printf("{name} = %d\\n", (int){name});')
    print("  return 0;\n}")


if __name__ == "__main__":
    main()
