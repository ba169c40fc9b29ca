"""The counting malloc sees what a program has out, by every way to ask for memory, and the most of it."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench/live_bytes"
# Takes memory in every way, and prints the most that was out and what still is, less what was before.
PROGRAM = """
import ctypes, threading
c = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "aligned_alloc", "memalign"):
    getattr(c, name).restype = ctypes.c_void_p
for name in ("counting_begin", "counting_most", "counting_live"):
    getattr(c, name).restype = ctypes.c_int64
P, MIB = ctypes.c_void_p, 1 << 20
out = P()
before = c.counting_begin()
blocks = [c.malloc(MIB), c.calloc(2, MIB), c.aligned_alloc(64, MIB), c.memalign(4096, MIB)]
assert c.posix_memalign(ctypes.byref(out), 64, MIB) == 0
blocks.append(out.value)
blocks[0] = c.realloc(P(blocks[0]), 2 * MIB)
thread = threading.Thread(target=lambda: blocks.append(c.malloc(MIB)))
thread.start()
thread.join()
for block in blocks:
    c.free(P(block))
middle = c.counting_live() - before
c.free(P(c.malloc(4 * MIB)))
print(c.counting_most() - before, middle, c.counting_begin() - before, c.counting_most() - c.counting_live())
"""


@unittest.skipUnless(shutil.which("c++") and sys.platform == "linux" and "LD_PRELOAD" not in os.environ, "needs a compiler and glibc")
class CountingMalloc(unittest.TestCase):
    def test_every_way_to_take_memory_is_counted(self):
        with tempfile.TemporaryDirectory() as scratch:
            library = Path(scratch, "libcount.so")
            subprocess.run(["c++", "-std=c++20", "-O2", "-shared", "-fPIC", FOLDER / "counting_malloc.cpp", "-o", library], check=True)
            done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "LD_PRELOAD": str(library)}, capture_output=True,
                                  text=True, check=True)
        most, middle, behind, since = map(int, done.stdout.split())
        mib, slack = 1 << 20, 1 << 18  # what Python itself takes meanwhile
        self.assertTrue(8 * mib <= most < 9 * mib + slack, most)  # seven blocks at once; two more while the first was moved
        self.assertLess(abs(middle), slack)
        self.assertLess(abs(behind), slack)
        self.assertLess(since, slack)


class Figures(unittest.TestCase):
    def test_ratios_are_to_the_lesser_of_both(self):
        sys.path.insert(0, str(FOLDER))
        spec = importlib.util.spec_from_file_location("live_bytes_main", FOLDER / "__main__.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.assertEqual(module.ratio({"pyc": 50, "ort": 200, "ort-no-arena": 100}), 0.5)
        self.assertEqual(module.ratio({"pyc": 50, "ort": 25, "ort-no-arena": 100}), 2.0)
        self.assertAlmostEqual(module.geomean([0.5, 2.0]), 1.0)


if __name__ == "__main__":
    unittest.main()
