#!/usr/bin/env python3
"""What PyC says of a run on a GPU beside what the driver sees: gpu_accounts.py --lib LIBPYC.SO --models DIR [--filter a,b] [--precision bf16] [--start NAME,...]

For each .onnx file with weights: bytes of device memory as planned (parameters, arena, room for the caller's tensors) and as asked of cuMemAlloc;
bytes sent and fetched by a run of host tensors as PyC counts them and as they are copied; launches of a run; the time of a call with its tensors on
the device beyond the device's own (events around the graph). A library between PyC and libcuda counts (counting_driver.cpp). --start NAME,... also
measures new processes: the context, compiling without and with a filled store, and loading a .pycm. Needs g++ and numpy, not PyTorch.
"""

import argparse
import ctypes as c
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from prepare import SEED, draw, graph_inputs
from pyc_abi import DTYPES, Library, TensorView, ValueInfo

CUDA = 2  # PYC_DEVICE_CUDA
COUNTS = ("allocated", "most_allocated", "allocations", "sent", "fetched", "copies", "graphs", "launches", "waits", "device_ns")
ALIGNMENT = 256  # of a caller's tensor in the room it passes through
MEMORY = ("peak", "input", "parameter", "temporary", "output", "workspace", "arena", "scratch", "measured_arena", "staging", "code",
          "kept_program", "state", "mapped")
STATS = ("wall_ns", "steps", "allocations", "value_bytes", "value_peak_bytes", "staged_views", "staged_bytes", "copied_bytes",
         "recomputed_steps", "sent_bytes", "fetched_bytes")


def numbers(name, fields):
    return type(name, (c.Structure,), {"_fields_": [("struct_size", c.c_size_t)] + [(f, c.c_int64) for f in fields]})


Memory, Stats = numbers("Memory", MEMORY), numbers("Stats", STATS)


def build(folder, counted):
    out = folder / "libpyc_counting_cuda.so"
    source = Path(__file__).with_name("counting_driver.cpp")
    subprocess.run(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f'-DPYC_COUNTED="{counted}"', source, "-o", out, "-Wl,--no-as-needed",
                    f"-L{Path(counted).parent}", f"-l:{Path(counted).name}", f"-Wl,-rpath,{Path(counted).parent}"], check=True)
    return out


def find_driver():
    if os.environ.get("PYC_LIBCUDA"):
        return os.path.realpath(os.environ["PYC_LIBCUDA"])
    c.CDLL("libcuda.so.1")
    return next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcuda.so" in line)


def compile_model(library, path, **chosen):
    options, model = c.c_void_p(), c.c_void_p()
    library.call("pyc_compile_options_create", c.byref(options))
    for name, value in chosen.items():
        library.call("pyc_compile_options_set", options, name.encode(), value.encode())
    library.call("pyc_compile_model_file", str(path).encode(), options, c.byref(model))
    library.so.pyc_compile_options_destroy(options)
    return model


class Counted:
    """A model with its inputs, on the host or on the device."""

    def __init__(self, library, model, path):
        self.library, self.model = library, model
        rng = np.random.default_rng(SEED)
        self.inputs = [np.ascontiguousarray(draw(rng, value)) for value in graph_inputs(path)]
        self.outputs = [self._room(i) for i in range(library.so.pyc_model_output_count(model))]

    def _room(self, index):
        info = ValueInfo(struct_size=c.sizeof(ValueInfo))
        self.library.call("pyc_model_output", self.model, c.c_size_t(index), c.byref(info))
        name = next(name for name, number in DTYPES.items() if number == info.dtype)
        return np.empty([info.shape[k] for k in range(info.rank)], np.dtype(name))

    def views(self, arrays, on_device):
        views = self.library.views_of(arrays)
        for view, array in zip(views, arrays):
            if on_device is not None:
                view.data, view.device_type = on_device(array), CUDA
        return views

    def run(self, inputs, outputs):
        stats = Stats(struct_size=c.sizeof(Stats))
        self.library.call("pyc_run_model", self.model, inputs, c.c_size_t(len(self.inputs)), outputs, c.c_size_t(len(self.outputs)),
                          c.byref(stats))
        return stats


def account(library, counting, driver, path, precision, runs):
    counts = (c.c_int64 * len(COUNTS))()

    def read():
        counting.pyc_counts_read(counts, len(COUNTS))
        return dict(zip(COUNTS, counts))

    before = read()
    model = compile_model(library, path, device="cuda", cache="off", **({} if precision == "f32" else {"precision": precision}))
    counted = Counted(library, model, path)
    host = (counted.views(counted.inputs, None), counted.views(counted.outputs, None))
    counted.run(*host)
    loaded = read()
    stats = counted.run(*host)
    after = read()
    memory = Memory(struct_size=c.sizeof(Memory))
    library.call("pyc_model_get_memory", model, c.byref(memory))
    passing = sum((a.nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT for a in counted.inputs + counted.outputs)
    row = {"model": path.stem, "precision": precision, "parameter_bytes": memory.parameter, "arena_bytes": memory.arena, "passing_bytes": passing,
           "planned_bytes": memory.parameter + memory.arena + passing, "allocated_bytes": loaded["allocated"] - before["allocated"],
           "sent_bytes": stats.sent_bytes, "sent_seen": after["sent"] - loaded["sent"],
           "fetched_bytes": stats.fetched_bytes, "fetched_seen": after["fetched"] - loaded["fetched"],
           "launches": after["launches"] - loaded["launches"], "copies": after["copies"] - loaded["copies"],
           "waits": after["waits"] - loaded["waits"], "allocations_of_a_run": after["allocations"] - loaded["allocations"]}
    taken, stream = [], c.c_void_p()
    driver.cuStreamCreate(c.byref(stream), 1)

    def on_device(array):
        address = c.c_uint64()
        if driver.cuMemAlloc_v2(c.byref(address), c.c_size_t(max(1, array.nbytes))) != 0:
            raise RuntimeError("cuMemAlloc")
        driver.cuMemcpyHtoDAsync_v2(address, array.ctypes.data_as(c.c_void_p), c.c_size_t(array.nbytes), stream)
        driver.cuStreamSynchronize(stream)
        taken.append(address)
        return address.value

    there = (counted.views(counted.inputs, on_device), counted.views(counted.outputs, on_device))
    for _ in range(3):
        counted.run(*there)
    # Turns, since the clock of the device changes; the calls with events are others than those that are timed.
    walls, device = [], []
    for _ in range(runs):
        walls.append(min(counted.run(*there).wall_ns for _ in range(3)))
        counting.pyc_counts_time(1)
        times = []
        for _ in range(3):
            counted.run(*there)
            times.append(read()["device_ns"])
        device.append(min(times))
        counting.pyc_counts_time(0)
    row["call_us"], row["device_us"] = statistics.median(walls) / 1e3, statistics.median(device) / 1e3
    row["beyond_us"] = statistics.median(w - d for w, d in zip(walls, device)) / 1e3
    for address in taken:
        driver.cuMemFree_v2(address)
    driver.cuStreamDestroy_v2(stream)
    library.destroy(model)
    row["left_bytes"] = read()["allocated"] - before["allocated"]
    return row


STARTED = """
import sys, time, ctypes as c
sys.path.insert(0, {folder!r})
import gpu_accounts as g
from pathlib import Path
library = g.Library({lib!r})
driver = c.CDLL({driver!r})
began = time.perf_counter()
context = c.c_void_p()
assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
there = time.perf_counter()
model = g.compile_model(library, {path!r}, **{options!r})
made = time.perf_counter()
counted = g.Counted(library, model, Path({source!r}))
views = (counted.views(counted.inputs, None), counted.views(counted.outputs, None))
ready = time.perf_counter()
counted.run(*views)
print(*(1e3 * x for x in (there - began, made - there, time.perf_counter() - ready)))
"""


def start(args, path, precision, driver):
    """Milliseconds of new processes: the context, until the model is there, its first run."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"device": "cuda"} | ({} if precision == "f32" else {"precision": precision})
        artifact = f"{folder}/{path.stem}.pycm"

        def process(what, **given):
            text = STARTED.format(folder=str(Path(__file__).parent), lib=str(args.lib.resolve()), driver=driver, source=str(path), **given)
            ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
            if ended.returncode != 0:
                print(f"{path.stem} {precision} {what}: {ended.stderr[-300:]}")
                return
            context, made, first = map(float, ended.stdout.split())
            print(f"{path.stem} {precision} {what}: context {context:.0f} ms, model {made:.0f} ms, first run {first:.1f} ms", flush=True)

        stored = options | {"cache_dir": f"{folder}/store"}
        for what in ("cold", "from the store", "from the store"):
            process(what, path=str(path), options=stored)
        made = subprocess.run([args.lib.parent / "pyc", "compile", path, "-o", artifact, "--device", "cuda"]
                              + ([] if precision == "f32" else ["--precision", precision]), capture_output=True, text=True)
        if made.returncode != 0:
            print(f"{path.stem} {precision} .pycm: {made.stderr[-300:]}")
            return
        for _ in range(2):
            process(".pycm", path=artifact, options={})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--start", default="", help="models whose start is measured")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    driver = find_driver()
    paths = sorted(args.models.glob("*.onnx"))
    with tempfile.TemporaryDirectory() as folder:
        counting = build(Path(folder), driver)
        chosen = os.environ.get("PYC_LIBCUDA")
        os.environ["PYC_LIBCUDA"] = str(counting)
        library, rows = Library(args.lib), []
        # A context that stays: the counting library's events are of it.
        context, device = c.c_void_p(), c.CDLL(driver)
        device.cuInit(0)
        device.cuDevicePrimaryCtxRetain(c.byref(context), 0)
        print(f"{'model':20} {'type':5} {'planned':>11} {'allocated':>11} {'sent':>10} {'seen':>10} {'fetched':>10} {'seen':>10} "
              f"{'launches':>8} {'waits':>5} {'call us':>9} {'device us':>9} {'beyond':>7}")
        for path in paths:
            if args.filter and not any(word in path.stem for word in args.filter.split(",")):
                continue
            for precision in args.precision.split(","):
                rows.append(account(library, c.CDLL(str(counting)), c.CDLL(driver), path, precision, args.runs))
                r = rows[-1]
                print(f"{r['model']:20} {precision:5} {r['planned_bytes']:11} {r['allocated_bytes']:11} {r['sent_bytes']:10} {r['sent_seen']:10} "
                      f"{r['fetched_bytes']:10} {r['fetched_seen']:10} {r['launches']:8} {r['waits']:5} {r['call_us']:9.1f} {r['device_us']:9.1f} "
                      f"{r['beyond_us']:7.1f}{'' if r['planned_bytes'] == r['allocated_bytes'] else '  NOT EQUAL'}"
                      f"{'' if r['left_bytes'] == 0 else '  LEFT ' + str(r['left_bytes'])}", flush=True)
        del os.environ["PYC_LIBCUDA"]
        os.environ |= {} if chosen is None else {"PYC_LIBCUDA": chosen}
    for path in paths:
        if path.stem in args.start.split(","):
            for precision in args.precision.split(","):
                start(args, path, precision, driver)
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
