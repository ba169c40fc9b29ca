#!/usr/bin/env python3
"""Whole networks on a GPU, PyC beside PyTorch in turn: gpu.py --lib LIBPYC.SO --models DIR [--filter a,b] [--precision f32,bf16] [--rivals WORDS] [--profile]

DIR has .onnx files with weights (fill_skeletons.py). Tensors of both lie on the device, TF32 is off, outputs must agree before a time
counts. PyTorch runs as bench/results/cuda_rivals_h200.json says is best for the model; --rivals graph,compile_last or all (gpu_rivals.py) tries others,
which takes ten seconds and more a model for torch.compile, and --keep writes what was found there. --profile lists the kernels of a run.
Processes that share a --lock FILE take turns at measuring, so that several may compile at once. Writes NAME.json with --out NAME, prints a table.
"""

import argparse
import contextlib
import ctypes as c
import fcntl
import json
import statistics
import tempfile
import time
from pathlib import Path

import gpu_rivals
import numpy as np
import onnx
import torch
from prepare import draw, graph_inputs
from pyc_abi import DTYPES, Library, TensorView, ValueInfo

CUDA = 2  # PYC_DEVICE_CUDA
TORCH_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
TOLERANCE = {"f32": 1e-3, "bf16": 6e-2, "f16": 2e-2}  # of the largest magnitude: sums in other orders


class OnDevice:
    """A compiled model of PyC with device tensors."""

    def __init__(self, library, path, inputs, precision):
        self.library, self.handle = library, c.c_void_p()
        options = c.c_void_p()
        library.call("pyc_compile_options_create", c.byref(options))
        chosen = {"device": "cuda", "cache": "off"} | ({} if precision == "f32" else {"precision": precision})
        began = time.perf_counter()
        for name, value in chosen.items():
            library.call("pyc_compile_options_set", options, name.encode(), value.encode())
        library.call("pyc_compile_model_file", str(path).encode(), options, c.byref(self.handle))
        self.compile_s = time.perf_counter() - began
        self.inputs = inputs
        self.outputs = []
        for i in range(library.so.pyc_model_output_count(self.handle)):
            info = ValueInfo(struct_size=c.sizeof(ValueInfo))
            library.call("pyc_model_output", self.handle, c.c_size_t(i), c.byref(info))
            name = next(name for name, number in DTYPES.items() if number == info.dtype)
            self.outputs.append(torch.empty([info.shape[k] for k in range(info.rank)], dtype=getattr(torch, name), device="cuda"))
        self.in_views = self._views(inputs)
        self.out_views = self._views(self.outputs)

    def _views(self, tensors):
        views = (TensorView * max(1, len(tensors)))()
        for view, tensor in zip(views, tensors):
            view.struct_size = c.sizeof(TensorView)
            view.data, view.rank, view.bytes = tensor.data_ptr(), tensor.dim(), tensor.numel() * tensor.element_size()
            view.shape = (c.c_int64 * max(1, tensor.dim()))(*tensor.shape)
            view.dtype = DTYPES[str(tensor.dtype).removeprefix("torch.")]
            view.device_type = CUDA
        return views

    def run(self):
        self.library.call("pyc_run_model", self.handle, self.in_views, c.c_size_t(len(self.inputs)), self.out_views,
                          c.c_size_t(len(self.outputs)), None)

    def close(self):
        self.library.destroy(self.handle)


def burst(run, seconds=0.02):
    began, runs = time.perf_counter(), 0
    while True:
        run()
        runs += 1
        took = time.perf_counter() - began
        if took >= seconds:
            return took / runs


def difference(ours, theirs):
    worst = 0.0
    for a, b in zip(ours, theirs):
        a, b = a.double(), b.double()
        worst = max(worst, float((a - b).abs().max() / max(1e-30, float(b.abs().max()))))
    return worst


@contextlib.contextmanager
def turn(lock):
    """Nobody else with the same file measures meanwhile."""
    if lock is None:
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def kernels_of(run):
    """The kernels of one run in their order, as (µs by the device's own clock, when it began, grid, threads, registers, bytes of shared memory)."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        run()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        trace.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    return [(e["dur"], e["ts"], e["args"]["grid"], e["args"]["block"][0], e["args"]["registers per thread"], e["args"]["shared memory"]) for e in kernels]


def idle_share(kernels):
    """Of the time from the first kernel's beginning to the last one's end, the part in which none runs."""
    idle, until = 0.0, kernels[0][1]
    for took, began, *_ in kernels:
        idle += max(0.0, began - until)
        until = max(until, began + took)
    return idle / (until - kernels[0][1])


def measure(library, path, precision, args):
    rng = np.random.default_rng(7)
    values = graph_inputs(path)
    inputs = [torch.from_numpy(np.ascontiguousarray(draw(rng, value))).cuda() for value in values]
    ours = OnDevice(library, path, inputs, precision)
    ours.run()
    row = {"model": path.stem, "precision": precision, "compile_s": round(ours.compile_s, 3)}
    for name in gpu_rivals.wanted(args.rivals, path.stem, precision):
        try:
            run, outputs, kept = gpu_rivals.make(name, path, [value.name for value in values], inputs, TORCH_TYPES[precision], args.limit)
            row[name + "_difference"] = difference(ours.outputs, outputs)
            if not row[name + "_difference"] <= TOLERANCE[precision]:
                row[name + "_error"] = "outputs differ"
                continue
            pairs = []
            with turn(args.lock):
                for _ in range(args.pairs):
                    theirs = burst(run)
                    pairs.append((theirs, burst(ours.run)))
            row[name + "_us"] = statistics.median(p[0] for p in pairs) * 1e6
            row[name + "_ratio"] = statistics.median(p[0] / p[1] for p in pairs)
            row["pyc_us"] = statistics.median(p[1] for p in pairs) * 1e6
            del run, kept
        except Exception as e:  # the rival's own: the row says so
            row[name + "_error"] = f"{type(e).__name__}: {e}"[:200]
    if "pyc_us" not in row:
        row["pyc_us"] = statistics.median(burst(ours.run) for _ in range(args.pairs)) * 1e6
    if args.profile:
        row["kernels"] = kernels_of(ours.run)
        row["launches"], row["kernels_us"] = len(row["kernels"]), sum(k[0] for k in row["kernels"])
        row["idle_share"] = idle_share(row["kernels"])
    ours.close()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--rivals", default="best", help="best, all, or names of gpu_rivals.RIVALS")
    parser.add_argument("--keep", action="store_true", help="write the rivals' times to bench/results/cuda_rivals_h200.json")
    parser.add_argument("--limit", type=int, default=180, help="seconds in which a rival must be ready")
    parser.add_argument("--lock", type=Path)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    library = Library(args.lib)
    rows = []
    print(f"{torch.cuda.get_device_name()}, PyC {library.version()}, PyTorch {torch.__version__}, onnx {onnx.__version__}")
    for path in sorted(args.models.glob("*.onnx")):
        if args.filter and not any(word in path.stem for word in args.filter.split(",")):
            continue
        for precision in args.precision.split(","):
            try:
                row = measure(library, path, precision, args)
            except RuntimeError as e:
                row = {"model": path.stem, "precision": precision, "error": str(e)[:300]}
            rows.append(row)
            if args.keep and "error" not in row:
                with turn(args.lock):
                    gpu_rivals.keep(row)
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items() if k != "kernels"}, flush=True)
            for took, _, grid, threads, registers, shared in row.get("kernels", []):
                print(f"    {took:9.1f} us  grid {'x'.join(map(str, grid)):>14} threads {threads:5} registers {registers:4} shared {shared:7}")
            torch.cuda.empty_cache()
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{'model':22} {'type':5} {'PyC us':>9} {'rival':14} {'us':>9} {'ratio':>6}")
    for row in rows:
        head = f"{row['model']:22} {row['precision']:5} {row.get('pyc_us', float('nan')):9.1f}"
        for name in gpu_rivals.RIVALS:
            if name + "_us" in row:
                print(f"{head} {name:14} {row[name + '_us']:9.1f} {row[name + '_ratio']:6.2f}")
            elif name + "_error" in row:
                print(f"{head} {name:14} {row[name + '_error']}")
        if "error" in row:
            print(f"{head} {row['error']}")


if __name__ == "__main__":
    main()
