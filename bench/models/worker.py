#!/usr/bin/env python3
"""One engine with one model, in a process of its own that stays up: reads a JSON command per line from stdin and answers with a
line of JSON on stdout.

  {"do": "load", "engine": NAME, "library": PATH, "model": PATH, "inputs": PATH.npz, "threads": N, "outputs": PATH.npz}
      -> {"version", "cold_ms", "warm_ms", "rss_mib"}; writes the outputs of one run
  {"do": "run", "runs": N} -> {"ns": [N times]}, after one run that is not timed
An error is answered with {"error": TEXT}. The process ends with its stdin.
"""

import gc
import json
import os
import resource
import sys
import time

import numpy as np


class Pyc:
    """A libpyc.so. warm_ms: the same compile again, which the compile cache of the process answers."""

    flags = 0

    def __init__(self, command, inputs):
        import pyc_abi

        self.library = pyc_abi.Library(command["library"])
        self.version = self.library.version()

        def compiled():
            began = time.perf_counter()
            handle = self.library.compile(command["model"], command["threads"], self.flags)
            return handle, (time.perf_counter() - began) * 1e3

        handle, self.cold_ms = compiled()
        again, self.warm_ms = compiled()
        self.library.destroy(again)
        self.model = pyc_abi.Model(self.library, handle, inputs.values())
        self.run = self.model.run

    def outputs(self):
        return self.model.run_for_outputs()


class PycUnfused(Pyc):
    flags = 1  # PYC_COMPILE_NO_FUSE


class OnnxRuntime:
    """All graph optimizations, inputs bound once."""

    def __init__(self, command, inputs):
        import onnxruntime as ort

        self.version = ort.__version__
        ort.set_default_logger_severity(3)
        options = ort.SessionOptions()
        options.intra_op_num_threads = command["threads"]
        options.inter_op_num_threads = 1
        began = time.perf_counter()
        self.session = ort.InferenceSession(command["model"], options, providers=["CPUExecutionProvider"])
        self.cold_ms, self.warm_ms = (time.perf_counter() - began) * 1e3, None
        self.binding = self.session.io_binding()
        self.values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in inputs.items()}
        for name, value in self.values.items():
            self.binding.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        self.run()
        return self.binding.copy_outputs_to_cpu()


class OpenVino:
    """One stream for the least latency, f32 arithmetic."""

    def __init__(self, command, inputs):
        import openvino as ov

        self.version = ov.__version__
        core = ov.Core()
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": command["threads"], "NUM_STREAMS": 1,
                    "INFERENCE_PRECISION_HINT": "f32"}
        began = time.perf_counter()
        self.compiled = core.compile_model(command["model"], "CPU", settings)
        self.cold_ms, self.warm_ms = (time.perf_counter() - began) * 1e3, None
        self.request = self.compiled.create_infer_request()
        for name, array in inputs.items():
            tensor = ov.Tensor(array.dtype, array.shape)
            tensor.data[...] = array
            self.request.set_tensor(name, tensor)
        self.run = self.request.infer

    def outputs(self):
        self.run()
        return [self.request.get_output_tensor(i).data.copy() for i in range(len(self.compiled.outputs))]


class Torch:
    """PyTorch, eager: call by call."""

    def __init__(self, command, inputs):
        import torch

        from torch_graph import Graph

        self.version = torch.__version__
        torch.set_num_threads(command["threads"])
        self.inputs = {name: torch.from_numpy(array) for name, array in inputs.items()}
        began = time.perf_counter()
        self.graph = Graph(command["model"])
        self.cold_ms, self.warm_ms = (time.perf_counter() - began) * 1e3, None

    def run(self):
        return self.graph.run(self.inputs)

    def outputs(self):
        return [output.numpy() for output in self.run()]


ENGINES = {"pyc": Pyc, "pyc-unfused": PycUnfused, "onnxruntime": OnnxRuntime, "openvino": OpenVino, "torch": Torch}


def load(command):
    # Kept for as long as the process: see engines.py.
    command["padding"] = [bytearray(len(os.environ.get("PYC_BENCH_PADDING", ""))) for _ in range(3)]
    with np.load(command["inputs"]) as file:
        inputs = {name: file[name] for name in file.files}
    engine = ENGINES[command["engine"]](command, inputs)
    engine.command = command
    np.savez(command["outputs"], *engine.outputs())
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return engine, {"version": engine.version, "cold_ms": engine.cold_ms, "warm_ms": engine.warm_ms, "rss_mib": rss}


def timed_runs(engine, runs):
    clock = time.perf_counter_ns
    engine.run()
    times = []
    for _ in range(runs):
        began = clock()
        engine.run()
        times.append(clock() - began)
    return times


def shortened(text):
    """One line, the beginning and the end of it."""
    text = " ".join(text.split())
    return text if len(text) <= 300 else f"{text[:150]} ... {text[-145:]}"


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the engine prints is no answer
    gc.disable()
    engine = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "load":
                engine, answer = load(command)
            else:
                answer = {"ns": timed_runs(engine, command["runs"])}
        except Exception as error:  # the harness reports it and goes on with the next model
            answer = {"error": shortened(f"{type(error).__name__}: {error}")}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
