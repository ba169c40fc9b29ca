#!/usr/bin/env python3
"""Products on a GPU beside cuBLAS: gpu_products.py --lib LIBPYC.SO [--pyc PROGRAM] [--only WORD,...]

bf16 products of squares and of a transformer's shapes, plain and with what follows them in a network, and products of f32, each a model of one product with its
tensors on the device. Both sides are timed in turn by the device's own clock (the profiler's times of their kernels), torch with cuBLAS for the product and kernels
of its own for the rest. `share` is of the unit's 989 TFLOP/s. Results are compared with torch's first. With --pyc the table names the kernel that was chosen.
"""

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from gpu import OnDevice
from pyc_abi import Library
from torch.profiler import ProfilerActivity, profile

F = torch.nn.functional
UNIT_TFLOPS = 989.0
TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
TOLERANCE = {"bf16": 2e-2, "f32": 1e-4}  # of the largest magnitude
LARGE = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (512, 2304, 768), (512, 768, 768), (512, 3072, 768), (512, 768, 3072),
         (1024, 768, 768), (1024, 2304, 768), (1024, 3072, 768), (1024, 768, 3072), (12288, 768, 768), (12288, 3072, 768), (12288, 768, 3072)]
FEW_ROWS = [(128, 768, 768), (128, 2304, 768), (128, 3072, 768), (128, 768, 3072), (256, 1024, 1024), (64, 4096, 4096), (16, 4096, 4096), (1, 4096, 4096)]
FOLLOWED = [(1024, 3072, 768), (12288, 3072, 768), (12288, 768, 3072), (4096, 4096, 4096)]
FLOATS = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (512, 3072, 768), (1024, 768, 3072)]
# name: (inputs besides a and b, text from %p to %y, torch)
AFTER = {
    "plain": ("", "  %y = matmul(%a, %b)\n", lambda a, b: a @ b),
    "gelu": ("%c: {t}[{n}]", "  %p = matmul(%a, %b)\n  %q = add(%p, %c)\n  %y = gelu(%q)\n", lambda a, b, c: F.gelu(torch.addmm(c, a, b))),
    "gate": ("%c: {t}[{n}], %g: {t}[{m},{n}]", "  %p = matmul(%a, %b)\n  %q = add(%p, %c)\n  %s = sigmoid(%g)\n  %y = mul(%q, %s)\n",
             lambda a, b, c, g: torch.addmm(c, a, b) * torch.sigmoid(g)),
    "residual": ("%c: {t}[{n}], %g: {t}[{m},{n}]", "  %p = matmul(%a, %b)\n  %q = add(%p, %c)\n  %y = add(%q, %g)\n",
                 lambda a, b, c, g: torch.addmm(c, a, b) + g),
}


def cases():
    for kind, dtype, after, shapes in [("over 256 rows", "bf16", "plain", LARGE), ("to 256 rows", "bf16", "plain", FEW_ROWS),
                                       *[("followed", "bf16", after, FOLLOWED) for after in ("gelu", "gate", "residual")], ("f32", "f32", "plain", FLOATS)]:
        for m, n, k in shapes:
            yield kind, dtype, after, m, n, k


def kernel_name(program, path):
    if not program:
        return ""
    said = subprocess.run([program, "explain", path, "--device", "cuda"], capture_output=True, text=True, check=False).stdout
    found = re.findall(r"\b(?:bf16|f32)_(?:wgmma|product|matmul)\w*__(\w+)", said)
    return found[0] if found else "?"


def prepare(library, program, folder, case):
    _, dtype, after, m, n, k = case
    more, body, _ = AFTER[after]
    given = f"%a: {dtype}[{m},{k}], %b: {dtype}[{k},{n}]" + (", " + more.format(t=dtype, m=m, n=n) if more else "")
    path = folder / f"{after}_{dtype}_{m}_{n}_{k}.ir"
    path.write_text(f"graph @m({given}) -> (%y) {{\n{body}}}\n")
    shapes = [[int(d) for d in sizes.split(",")] for sizes in re.findall(r"\[([\d,]+)\]", given)]
    inputs = [torch.rand(shape, device="cuda").mul_(4).sub_(2).to(TYPES[dtype]) for shape in shapes]
    return kernel_name(program, path), OnDevice(library, path, inputs, "f32")


def times_of(runs, turns):
    """The µs of each one's kernels in a run, medians over the turns."""
    for run in runs:
        run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(turns):
            for run in runs:
                run()
                torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        trace.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    result = []
    for ours in (True, False):
        durations = [e["dur"] for e in kernels if e["name"].startswith("pyc") == ours]
        each = max(1, len(durations) // turns)
        result.append(statistics.median(sum(durations[i : i + each]) for i in range(0, each * turns, each)) if durations else math.nan)
    return result


def measure(case, kernel, ours, args):
    kind, dtype, after, m, n, k = case
    theirs = AFTER[after][2]
    ours.run()
    expected = theirs(*ours.inputs).float()
    off = float((ours.outputs[0].float() - expected).abs().max() / expected.abs().max())
    del expected
    row = {"kind": kind, "case": f"{m}x{n}x{k} {after}", "kernel": kernel, "off": off}
    row["error"] = "" if off <= TOLERANCE[dtype] else f"off by {off:.1e}"
    row["pyc_us"], row["torch_us"] = times_of([ours.run, lambda: theirs(*ours.inputs)], args.turns)
    row["tflops"] = 2e-6 * m * n * k / row["pyc_us"]
    row["ratio"] = row["torch_us"] / row["pyc_us"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--pyc", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    library = Library(args.lib)
    print(f"{torch.cuda.get_device_name()}, PyC {library.version()}, PyTorch {torch.__version__}")
    wanted = [c for c in cases() if not args.only or any(word in f"{c[1]} {c[2]} {c[0]} {c[3]}x{c[4]}x{c[5]}" for word in args.only.split(","))]
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
        ready = [pool.submit(prepare, library, args.pyc, Path(folder), case) for case in wanted]
        print(f"{'case':28} {'kernel':22} {'PyC us':>9} {'TFLOP/s':>8} {'share':>6} {'torch us':>9} {'torch/PyC':>9}")
        for case, made in zip(wanted, ready):
            try:
                kernel, ours = made.result()
                row = measure(case, kernel, ours, args)
                ours.close()
            except RuntimeError as e:
                row = {"kind": case[0], "case": " ".join(map(str, case)), "error": str(e)[:200]}
            rows.append(row)
            if "ratio" in row:
                share = row["tflops"] / UNIT_TFLOPS
                print(f"{row['case']:28} {row['kernel']:22} {row['pyc_us']:9.2f} {row['tflops']:8.0f} {share:6.2f} {row['torch_us']:9.2f} {row['ratio']:9.3f} {row['error']}", flush=True)
            else:
                print(f"{row['case']:28} {row['error']}", flush=True)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["kind"] == kind and "ratio" in row]
        if ratios:
            print(f"{kind}: geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.3f}, least {min(ratios):.3f}, {len(ratios)} of them")
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(any(row["error"] for row in rows))


if __name__ == "__main__":
    main()
