#!/usr/bin/env python3
"""Random products, convolutions and attentions of halves on a GPU: gpu_random.py --lib LIBPYC.SO [--count N] [--seed N] [--workers N] [--limit SECONDS]

Part `random` of scripts/gpu-verify. Each graph has eight of them, of random sizes, layouts and epilogues, balanced; its outputs must have the bits of the interpreter
in the order `sm90` (--device reference, matrix_unit sm90). Needs NumPy. Prints a line for each graph that is WRONG and one at the end; ends with 1 if one is or none was run.
"""

import argparse
import concurrent.futures as futures
import ctypes as c
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench" / "models"))
from pyc_abi import Library, Model  # noqa: E402

OF_GRAPH = 8
MOST_TERMS = 1_500_000  # of an op: the interpreter sums them one by one


class Graph:
    """Inputs are f32 and rounded in the graph; results are widened, as NumPy has no bf16."""

    def __init__(self, rng):
        self.rng, self.inputs, self.lines, self.outputs, self.shapes = rng, [], [], [], []

    def half(self, name, shape, dtype):
        dims = ",".join(map(str, shape))
        self.inputs.append(f"%{name}_in: f32[{dims}]")
        self.shapes.append(shape)
        self.lines.append(f"  %{name} = cast(%{name}_in) {{to={dtype}}}")
        return f"%{name}"

    def finish(self, name, value, dtype):
        then = self.rng.choice(["", "relu", "gelu", "sigmoid", "neg"])
        if then:
            self.lines.append(f"  %{name}_e = {then}({value})")
            value = f"%{name}_e"
        if dtype != "f32":
            self.lines.append(f"  %{name}_y = cast({value}) {{to=f32}}")
            value = f"%{name}_y"
        self.outputs.append(value)

    def product(self, name):
        rng, dtype = self.rng, self.rng.choice(["bf16", "f16"])
        size = lambda most: rng.choice([rng.randint(1, most), 8 * rng.randint(1, max(1, most // 8)), 2 ** rng.randint(0, most.bit_length() - 1)])
        while True:
            b, m, n, k = rng.choice([1, 1, 1, 2, 3]), size(300), size(300), size(2600)
            if b * m * n * k <= MOST_TERMS:
                break
        batch = [b] if b > 1 else []
        turned = [rng.random() < 0.3, rng.random() < 0.5]
        operands = []
        for i, (rows, columns) in enumerate(((m, k), (k, n))):
            shape = batch + ([columns, rows] if turned[i] else [rows, columns])
            value = self.half(f"{name}_{'ab'[i]}", shape, dtype)
            if turned[i]:
                perm = list(range(len(batch))) + [len(batch) + 1, len(batch)]
                self.lines.append(f"  {value}t = transpose({value}) {{perm={perm}}}")
                value += "t"
            operands.append(value)
        to = rng.choice(["f32", dtype])
        self.lines.append(f"  %{name}_p = matmul({operands[0]}, {operands[1]}){' {to=f32}' if to == 'f32' else ''}")
        value = f"%{name}_p"
        if rng.random() < 0.4:
            bias = self.half(f"{name}_c", [n], dtype)
            self.lines += [f"  {bias}w = cast({bias}) {{to={to}}}", f"  %{name}_s = add({value}, {bias}w)"]
            value = f"%{name}_s"
        self.finish(name, value, to)

    def convolution(self, name):
        rng, dtype = self.rng, self.rng.choice(["bf16", "f16"])
        while True:
            group = rng.choice([1, 1, 1, 2])
            b, channels, filters = rng.randint(1, 3), group * rng.randint(1, 48), group * rng.randint(1, 40)
            h, w, kh, kw = rng.randint(3, 16), rng.randint(3, 16), rng.randint(1, 5), rng.randint(1, 5)
            strides, pads = [rng.randint(1, 2), rng.randint(1, 2)], [rng.randint(0, 2) for _ in range(4)]
            fits = h + pads[0] + pads[2] >= kh and w + pads[1] + pads[3] >= kw
            if fits and b * filters * h * w * (channels // group) * kh * kw <= MOST_TERMS:
                break
        x = self.half(f"{name}_x", [b, channels, h, w], dtype)
        k = self.half(f"{name}_k", [filters, channels // group, kh, kw], dtype)
        to = rng.choice(["f32", dtype])
        self.lines.append(f"  %{name}_p = conv({x}, {k}) {{strides={strides}, pads={pads}, group={group}{', to=f32' if to == 'f32' else ''}}}")
        self.finish(name, f"%{name}_p", to)

    def attention(self, name):
        rng, dtype = self.rng, self.rng.choice(["bf16", "f16"])
        while True:
            shared = rng.choice([1, 1, 2])
            b, heads, queries, keys, depth = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 150), rng.randint(1, 200), 8 * rng.randint(1, 16)
            if 2 * b * heads * shared * queries * keys * depth <= MOST_TERMS:
                break
        q = self.half(f"{name}_q", [b, heads * shared, queries, depth], dtype)
        k, v = (self.half(f"{name}_{n}", [b, heads, keys, depth], dtype) for n in "kv")
        causal = rng.choice(["", ", causal=true"])
        self.lines.append(f"  %{name}_p, %{name}_m, %{name}_l = attend({q}, {k}, {v}) {{scale=0.125{causal}}}")
        self.lines.append(f"  %{name}_y = cast(%{name}_p) {{to=f32}}")
        self.outputs.append(f"%{name}_y")

    def text(self):
        return f"graph @g({', '.join(self.inputs)}) -> ({', '.join(self.outputs)}) {{\n" + "\n".join(self.lines) + "\n}\n"


def compiled(library, path, chosen):
    options, handle = c.c_void_p(), c.c_void_p()
    library.call("pyc_compile_options_create", c.byref(options))
    try:
        for name, value in ({"cache": "off"} | chosen).items():
            library.call("pyc_compile_options_set", options, name.encode(), value.encode())
        library.call("pyc_compile_model_file", str(path).encode(), options, c.byref(handle))
    finally:
        library.so.pyc_compile_options_destroy(options)
    return handle


def check(lib, seed, device):
    """Kinds of the ops of one graph, and what is wrong with it."""
    rng = random.Random(seed)
    graph = Graph(rng)
    kinds = [rng.choice(["product", "product", "convolution", "attention"]) for _ in range(OF_GRAPH)]
    for i, kind in enumerate(kinds):
        getattr(graph, kind)(f"v{i}")
    numbers = np.random.default_rng(seed)
    inputs = [numbers.standard_normal(shape, np.float32) for shape in graph.shapes]
    library, found = Library(lib), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.ir"
        path.write_text(graph.text())
        for chosen in ({"device": device}, {"device": "reference", "matrix_unit": "sm90"}):
            try:
                handle = compiled(library, path, chosen)
                found.append([o.tobytes() for o in Model(library, handle, inputs).run_for_outputs()])
                library.destroy(handle)
            except RuntimeError as e:
                return kinds, f"{chosen['device']}: {e}\n{graph.text()}"
    wrong = [graph.outputs[i] for i in range(OF_GRAPH) if found[0][i] != found[1][i]]
    return kinds, f"{', '.join(wrong)} of seed {seed}\n{graph.text()}" if wrong else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--count", type=int, default=2000, help="of ops")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no further graph begins")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    began, counts, wrong, left = time.perf_counter(), {}, 0, iter(range(args.seed, args.seed + -(-args.count // OF_GRAPH)))
    with futures.ProcessPoolExecutor(args.workers) as pool:
        running = set()
        while True:
            while len(running) < 2 * args.workers and time.perf_counter() - began < args.limit and (seed := next(left, None)) is not None:
                running.add(pool.submit(check, args.lib.resolve(), seed, args.device))
            if not running:
                break
            done, running = futures.wait(running, return_when=futures.FIRST_COMPLETED)
            for future in done:
                kinds, problem = future.result()
                for kind in kinds:
                    counts[kind] = counts.get(kind, 0) + 1
                if problem:
                    wrong += 1
                    print(f"WRONG {problem}", flush=True)
    total = sum(counts.values())
    print(f"{'WRONG' if wrong else 'equal'}: {total} of {args.count} ops ({', '.join(f'{n} {k}s' for k, n in sorted(counts.items()))}), "
          f"{wrong} graphs of {OF_GRAPH} with other bits, {time.perf_counter() - began:.0f} s")
    sys.exit(1 if wrong or total < args.count else 0)


if __name__ == "__main__":
    main()
