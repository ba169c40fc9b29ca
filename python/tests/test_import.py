"""What `import pyc` does not do: take long, load numpy or the code generator, start threads, print."""

import subprocess
import sys

CHECK = """
import os, sys, time
began = time.process_time()
import pyc
took = time.process_time() - began
maps = open("/proc/self/maps").read()
assert "libpyc.so" in maps
assert "libLLVM" not in maps and "libpyc_llvm" not in maps, "the code generator is loaded"
assert "libcuda" not in maps, "a device is touched"
assert len(os.listdir("/proc/self/task")) == 1, "a thread was started"
for heavy in ("numpy", "json", "typing", "threading", "onnx"):
    assert heavy not in sys.modules, heavy
print(took)
"""


def fresh(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_import_is_light():
    # Processor time, which other work on the machine does not add to; the least of several.
    assert min(float(fresh(CHECK)) for _ in range(5)) < 0.050


def test_a_model_runs_without_numpy_when_asked_for_tensors():
    fresh(
        """
import array, sys
import pyc
b = pyc.ModelBuilder()
b.output(b.relu(b.input("x", "f32", (3,))), "y")
(y,) = b.compile().run([array.array("f", [-1, 0, 2])], tensors=True)
assert memoryview(y).tolist() == [0, 0, 2]
assert "numpy" not in sys.modules
"""
    )
