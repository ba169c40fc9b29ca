"""Run by `./dev python wheel` in an environment that has the wheel and nothing else of PyC's.

Compiles and runs a model, then looks at what the process has loaded: each library that the wheel carries comes from it.
"""

import sys
from pathlib import Path

import numpy as np
import pyc

SYSTEM = ("libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "ld-linux", "libstdc++.so", "libgcc_s.so")


def main():
    builder = pyc.ModelBuilder()
    builder.output(builder.relu(builder.input("x", "f32", (4,))), "y")
    found = builder.compile()(np.float32([-1, 0, 1, 2]))
    assert found.tolist() == [0, 0, 1, 2], found

    package = Path(pyc.__file__).parent
    carried = {path.name for path in (package / "lib").iterdir()}
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    mapped = {Path(line.split(maxsplit=5)[5]) for line in lines if ".so" in line}
    own = {path for path in mapped if path.is_relative_to(package)}
    strangers = [str(path) for path in mapped - own if path.name in carried]
    assert not strangers, f"not from the wheel: {strangers}"
    for needed in ("libpyc.so", "libpyc_llvm.so", "libLLVM"):
        assert any(path.name.startswith(needed) for path in own), f"{needed} is not loaded from the wheel"
    assert not [name for name in carried if name.startswith(SYSTEM)]
    print(f"the wheel runs on Python {sys.version.split()[0]} with {len(own)} libraries of its own")


if __name__ == "__main__":
    main()
