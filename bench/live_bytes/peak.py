#!/usr/bin/env python3
"""peak.py ENGINE LIBRARY MODEL.onnx INPUTS.npz THREADS OUTPUTS.npz: one engine with one model in a process that libpyc_bench_malloc.so was
loaded before. ENGINE: pyc (LIBRARY: a libpyc.so), ort or ort-no-arena. Prints a line of JSON: the most bytes out during runs less those
before the first one. Inputs and outputs are the caller's and there before.

ONNX Runtime takes memory for values in its first runs, so that RUNS of them are counted. PyC takes that of one run when a model is made, among
all else that is made then, and takes as much again for a run that comes while another goes on: two threads run the model until they
met, and what the second run took is counted. It must not be less than what PyC says it takes for a run.
"""

import ctypes
import gc
import json
import os
import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))

RUNS = 3
MEETINGS = 2000  # tries to have two runs at once


class MemoryReport(ctypes.Structure):
    """pyc_memory_report as far as it is read."""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_int64) for name in (
        "peak", "input", "parameter", "temporary", "output", "workspace", "arena", "scratch", "measured_arena")]


def counter():
    preloaded = ctypes.CDLL(None)
    for name in ("counting_begin", "counting_most", "counting_live"):
        getattr(preloaded, name).restype = ctypes.c_int64
    return preloaded


def load_pyc(library, model, inputs, threads):
    import pyc_abi

    so = pyc_abi.Library(library)
    handle = so.compile(model, threads)
    first, second = (pyc_abi.Model(so, handle, inputs.values()) for _ in range(2))
    if first.open:
        raise RuntimeError("the model is open: its outputs are made by each run")
    report = MemoryReport(struct_size=ctypes.sizeof(MemoryReport))
    so.call("pyc_model_get_memory", handle, ctypes.byref(report))
    said = report.measured_arena
    first.run()
    return first, second, said


def count_pyc(library, model, inputs, threads):
    first, second, said = load_pyc(library, model, inputs, threads)
    gate = threading.Barrier(2)
    rounds = threading.Semaphore(0)

    def accompany():
        while True:
            rounds.acquire()
            gate.wait()
            second.run()
            gate.wait()

    threading.Thread(target=accompany, daemon=True).start()
    gc.collect()
    count = counter()
    before = count.counting_begin()
    for _ in range(MEETINGS):
        rounds.release()
        gate.wait()
        first.run()
        gate.wait()
        if count.counting_most() - before >= said:
            return count.counting_most() - before, first.outputs
    raise RuntimeError(f"no second run took the {said} bytes that one takes")


def count_ort(arena, model, inputs, threads):
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = arena
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = [ort.OrtValue.ortvalue_from_numpy(array) for array in inputs.values()]
    for name, value in zip(inputs, values):
        binding.bind_ortvalue_input(name, value)
    outputs = []
    for output in session.get_outputs():
        if output.type != "tensor(float)" or not all(isinstance(size, int) for size in output.shape):
            raise RuntimeError(f"the output {output.name} is no f32 of a fixed shape")
        outputs.append(ort.OrtValue.ortvalue_from_shape_and_type(output.shape, np.float32))
        binding.bind_ortvalue_output(output.name, outputs[-1])
    gc.collect()
    count = counter()
    before = count.counting_begin()
    for _ in range(RUNS):
        session.run_with_iobinding(binding)
    return count.counting_most() - before, [value.numpy() for value in outputs]


def main():
    engine, library, model, inputs, threads, out = sys.argv[1:]
    with np.load(inputs) as file:
        arrays = {name: file[name] for name in file.files}
    if engine == "pyc":
        peak, outputs = count_pyc(library, model, arrays, int(threads))
    else:
        peak, outputs = count_ort(engine == "ort", model, arrays, int(threads))
    np.savez(out, *outputs)
    print(json.dumps({"peak": peak}), flush=True)
    os._exit(0)  # the thread that accompanies waits for ever


if __name__ == "__main__":
    main()
