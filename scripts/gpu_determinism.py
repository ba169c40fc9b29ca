#!/usr/bin/env python3
"""That runs on a GPU always give the same bits: gpu_determinism.py --lib LIBPYC.SO [--replays N] [--threads N] [--precision f32,bf16]

Part `determinism` of scripts/gpu-verify. A network with products, attention, norms and a convolution runs N times; from N threads at once, each with its own inputs;
compiled twice; and at several batch sizes, where each example must have the same bits wherever it stands. Needs NumPy. Prints one line a check, ends with 1 if one is WRONG.
"""

import argparse
import ctypes as c
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench" / "models"))
from pyc_abi import Library, Model  # noqa: E402

# Batch, then what one example is.
TEXT = """graph @m(%x: f32[{b},48,64], %p: f32[{b},16,9,9]) -> (%y, %q) {{
  %g = const f32[64] random(seed=1, lo=0.5, hi=1.5)
  %n = layer_norm(%x, %g)
  %wq = const f32[64,64] random(seed=2, lo=-0.3, hi=0.3)
  %wv = const f32[64,64] random(seed=3, lo=-0.3, hi=0.3)
  %k0 = matmul(%n, %wq)
  %v0 = matmul(%n, %wv)
  %k1 = reshape(%k0) {{shape=[{b},48,2,32]}}
  %v1 = reshape(%v0) {{shape=[{b},48,2,32]}}
  %k = transpose(%k1) {{perm=[0,2,1,3]}}
  %v = transpose(%v1) {{perm=[0,2,1,3]}}
  %a, %a1, %a2, %a3 = attention(%k, %k, %v) {{causal=true}}
  %at = transpose(%a) {{perm=[0,2,1,3]}}
  %ar = reshape(%at) {{shape=[{b},48,64]}}
  %w1 = const f32[64,640] random(seed=4, lo=-0.2, hi=0.2)
  %h = matmul(%ar, %w1)
  %hg = gelu(%h)
  %w2 = const f32[640,64] random(seed=5, lo=-0.2, hi=0.2)
  %o = matmul(%hg, %w2)
  %r = add(%x, %o)
  %y = softmax(%r)
  %cw = const f32[24,16,3,3] random(seed=6, lo=-0.3, hi=0.3)
  %conv = conv(%p, %cw) {{pads=[1,1,1,1]}}
  %q = relu(%conv)
}}
"""


def compiled(library, folder, batch, precision, device):
    path = folder / f"m{batch}.ir"
    path.write_text(TEXT.format(b=batch))
    options, handle = c.c_void_p(), c.c_void_p()
    library.call("pyc_compile_options_create", c.byref(options))
    chosen = {"device": device, "cache": "off"} | ({} if precision == "f32" else {"precision": precision})
    try:
        for name, value in chosen.items():
            library.call("pyc_compile_options_set", options, name.encode(), value.encode())
        library.call("pyc_compile_model_file", str(path).encode(), options, c.byref(handle))
    finally:
        library.so.pyc_compile_options_destroy(options)
    return handle


def drawn(seed, batch):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((batch, 48, 64), np.float32), rng.standard_normal((batch, 16, 9, 9), np.float32)]


def bits(outputs):
    return [output.tobytes() for output in outputs]


class Checks:
    def __init__(self):
        self.wrong = 0

    def say(self, what, wrong, count):
        print(f"{'WRONG' if wrong else 'equal'} {what}: {count - wrong} of {count}", flush=True)
        self.wrong += bool(wrong)


def check(library, folder, precision, args, checks):
    handle = compiled(library, folder, 8, precision, args.device)
    inputs = drawn(7, 8)
    expected = bits(Model(library, handle, inputs).run_for_outputs())

    model = Model(library, handle, inputs)
    wrong = sum(bits(model.run_for_outputs()) != expected for _ in range(args.replays))
    checks.say(f"{precision}, replays", wrong, args.replays)

    again = compiled(library, folder, 8, precision, args.device)
    checks.say(f"{precision}, compiled again", int(bits(Model(library, again, inputs).run_for_outputs()) != expected), 1)
    library.destroy(again)

    own = [drawn(100 + t, 8) for t in range(args.threads)]
    alone = [bits(Model(library, handle, x).run_for_outputs()) for x in own]
    counts = [0] * args.threads

    def work(t):
        mine = Model(library, handle, own[t])
        counts[t] = sum(bits(mine.run_for_outputs()) != alone[t] for _ in range(args.runs))

    threads = [threading.Thread(target=work, args=(t,)) for t in range(args.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    checks.say(f"{precision}, {args.threads} threads on one model", sum(counts), args.threads * args.runs)

    first = Model(library, handle, inputs).run_for_outputs()
    wrong = count = 0
    for batch in (1, 3, 8):
        other = compiled(library, folder, batch, precision, args.device)
        for shift in range(args.shifts):
            order = [(shift + i) % 8 for i in range(batch)]
            outputs = Model(library, other, [x[order] for x in inputs]).run_for_outputs()
            for at, example in enumerate(order):
                count += 1
                wrong += bits(o[at] for o in outputs) != bits(o[example] for o in first)
        library.destroy(other)
    checks.say(f"{precision}, examples wherever they stand in batches of 1, 3 and 8", wrong, count)
    library.destroy(handle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--replays", type=int, default=100)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--runs", type=int, default=20, help="of each thread")
    parser.add_argument("--shifts", type=int, default=8, help="places in a batch that an example is tried at")
    parser.add_argument("--precision", default="f32,bf16,f16")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    library = Library(args.lib)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for precision in args.precision.split(","):
            check(library, Path(folder), precision, args, checks)
    sys.exit(1 if checks.wrong else 0)


if __name__ == "__main__":
    main()
