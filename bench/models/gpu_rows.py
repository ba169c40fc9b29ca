#!/usr/bin/env python3
"""Row operations on a GPU beside a copy of as many bytes: gpu_rows.py --lib LIBPYC.SO [--columns 256,4096] [--types f32,bf16] [--only WORD,...] [--mib N]

Layer norm, RMS norm, softmax, gelu and the sum with a residual before a layer norm, over rows of 256 to 262,144; the sum and the running sum of 1e8; sorting 64 rows of 50,000.
Each is a model of one op with its tensors on the device, timed in turn with torch's copy of a tensor of the same size and with torch's own op; results are
compared with torch's first. `share` is the bytes that must be read and written per time, against the same of the copy. Writes NAME.json with --out NAME, prints a table.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from gpu import OnDevice, burst
from pyc_abi import Library

COLUMNS = (256, 768, 1024, 4096, 16384, 65536, 262144)
TORCH_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
TOLERANCE = {"f32": 1e-4, "bf16": 2e-2}  # of the largest magnitude

F = torch.nn.functional
# name: (inputs besides x, expression, outputs, tensors read and written, torch)
ROWS = {
    "layer_norm": ("%g: {t}[{c}], %b: {t}[{c}]", "  %y = layer_norm(%x, %g, %b)\n", "%y", 2,
                   lambda x, g, b: (F.layer_norm(x, x.shape[-1:], g, b),)),
    "rms_norm": ("%g: {t}[{c}]", "  %y = rms_norm(%x, %g)\n", "%y", 2, lambda x, g: (F.rms_norm(x, x.shape[-1:], g, 1e-5),)),
    "softmax": ("", "  %y = softmax(%x)\n", "%y", 2, lambda x: (F.softmax(x, -1),)),
    "gelu": ("", "  %y = gelu(%x)\n", "%y", 2, lambda x: (F.gelu(x),)),
    "residual_norm": ("%r: {t}[{n},{c}], %g: {t}[{c}], %b: {t}[{c}]", "  %s = add(%x, %r)\n  %y = layer_norm(%s, %g, %b)\n", "%y, %s", 4,
                      lambda x, r, g, b: (F.layer_norm(x + r, x.shape[-1:], g, b), x + r)),
}
# name: (shape, expression, outputs, tensors read and written, torch)
WHOLE = {
    "sum": ((100_000_000,), "  %y = reduce_sum(%x) {keepdims=false}\n", "%y", 1, lambda x: (x.sum(),)),
    "cumsum": ((100_000_000,), "  %y = cumsum(%x)\n", "%y", 2, lambda x: (x.cumsum(0),)),
    "sort": ((64, 50_000), "  %y, %i = sort(%x)\n", "%y, %i", 4, lambda x: tuple(x.sort(stable=True))),
}


def cases(args):
    for dtype in args.types.split(","):
        size = 4 if dtype == "f32" else 2
        for columns in map(int, args.columns.split(",")) if args.columns else COLUMNS:
            rows = (args.mib << 20) // size // columns
            for name, (more, body, outputs, passes, run) in ROWS.items():
                given = f"%x: {dtype}[{rows},{columns}]" + (", " + more.format(t=dtype, n=rows, c=columns) if more else "")
                shapes = [(rows, columns)] + [(rows, columns) if "%r" in part else (columns,) for part in more.split(", ") if part]
                yield f"{name} {dtype} {columns}", dtype, shapes, f"graph @m({given}) -> ({outputs}) {{\n{body}}}\n", passes, run
    for name, (shape, body, outputs, passes, run) in WHOLE.items():
        sizes = ",".join(map(str, shape))
        yield f"{name} f32 {sizes}", "f32", [shape], f"graph @m(%x: f32[{sizes}]) -> ({outputs}) {{\n{body}}}\n", passes, run


def differs(ours, theirs, tolerance):
    """Why the results do not agree; "" if they do. The first and the last rows are looked at."""
    for a, b in zip(ours, theirs):
        if a.shape != b.shape:
            return f"shapes {list(a.shape)} and {list(b.shape)}"
        for part in (slice(0, 1 << 20), slice(-(1 << 20), None)):
            x, y = a.flatten()[part].double(), b.flatten()[part].double()
            off = float((x - y).abs().max()) / max(1e-30, float(y.abs().max()))
            if not off <= tolerance:
                return f"off by {off:.2e}"
    return ""


def synced(call):
    def run():
        call()
        torch.cuda.synchronize()

    return run


def measure(library, folder, case, args):
    name, dtype, shapes, text, passes, theirs = case
    row = {"case": name}
    generator = torch.Generator("cuda").manual_seed(7)
    inputs = [torch.randn(shape, generator=generator, device="cuda").to(TORCH_TYPES[dtype]) for shape in shapes]
    path = folder / "m.ir"
    path.write_text(text)
    ours = OnDevice(library, path, inputs, "f32")
    row["compile_s"] = round(ours.compile_s, 2)
    began = time.perf_counter()
    ours.run()
    is_slow = time.perf_counter() - began > 0.2  # then once is enough
    expected = theirs(*inputs)
    # A long sum in another order is off by more than its rounding.
    row["error"] = differs(ours.outputs, expected, max(TOLERANCE[dtype], 1e-3 if "sum" in name else 0))
    del expected
    to = torch.empty_like(inputs[0])
    copy = synced(lambda: to.copy_(inputs[0]))
    rival = synced(lambda: theirs(*inputs))
    copy(), rival()
    turns = [(burst(copy, args.seconds), burst(rival, args.seconds), burst(ours.run, args.seconds)) for _ in range(1 if is_slow else args.turns)]
    row["copy_us"], row["torch_us"], row["pyc_us"] = (statistics.median(t[i] for t in turns) * 1e6 for i in range(3))
    row["share"] = statistics.median(passes / 2 * t[0] / t[2] for t in turns)
    row["against_torch"] = statistics.median(t[1] / t[2] for t in turns)
    ours.close()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--columns", default="")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--only", default="")
    parser.add_argument("--mib", type=int, default=512, help="of each large tensor")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.01, help="of one burst")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no further case begins")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    library = Library(args.lib)
    print(f"{torch.cuda.get_device_name()}, PyC {library.version()}, PyTorch {torch.__version__}")
    print(f"{'case':28} {'PyC us':>9} {'copy us':>9} {'torch us':>9} {'share':>6} {'x torch':>7}")
    began, rows = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(args):
            if args.only and not any(word in case[0] for word in args.only.split(",")):
                continue
            if time.perf_counter() - began > args.limit:
                rows.append({"case": case[0], "error": "not run: out of time"})
                continue
            try:
                rows.append(measure(library, Path(folder), case, args))
            except RuntimeError as e:
                rows.append({"case": case[0], "error": str(e)[:200]})
            cells = [f"{rows[-1].get(k, float('nan')):>{w}.{d}f}" for k, w, d in
                     (("pyc_us", 9, 1), ("copy_us", 9, 1), ("torch_us", 9, 1), ("share", 6, 2), ("against_torch", 7, 2))]
            print(f"{case[0]:28} {' '.join(cells)} {rows[-1]['error']}", flush=True)
            torch.cuda.empty_cache()
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(any("off by" in row["error"] or "shapes" in row["error"] for row in rows))


if __name__ == "__main__":
    main()
