#!/usr/bin/env python3
"""That runs on a GPU always give the same bits: gpu_determinism.py --lib LIBPYC.SO [--replays N] [--threads N] [--precision f32,bf16]

Part `determinism` of scripts/gpu-verify. A network with products, attention, norms and a convolution runs N times; from N threads at once, each with its own inputs;
compiled twice, cold and warm from a store; at several batch sizes, where each example must have the same bits wherever it stands and products have other tiles; and
with the kernels that were chosen left out in turn, until none of the generators' is left. Needs NumPy. Prints one line a check, ends with 1 if one is WRONG.
"""

import argparse
import ctypes as c
import re
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


# Kernels of generators, by the names they have in a decision log; a tile stands behind two underlines.
GENERATED = re.compile(r'"chosen":\s*"((?:f32|f16|bf16)_(?:product|wgmma|attention)\w*)"')


def compiled(library, folder, batch, precision, device, **more):
    path = folder / f"m{batch}.ir"
    path.write_text(TEXT.format(b=batch))
    options, handle = c.c_void_p(), c.c_void_p()
    library.call("pyc_compile_options_create", c.byref(options))
    chosen = {"device": device, "cache": "off"} | ({} if precision == "f32" else {"precision": precision}) | more
    try:
        for name, value in chosen.items():
            for text in [value] if isinstance(value, str) else value:
                library.call("pyc_compile_options_set", options, name.encode(), text.encode())
        library.call("pyc_compile_model_file", str(path).encode(), options, c.byref(handle))
    finally:
        library.so.pyc_compile_options_destroy(options)
    return handle


def generated(library, handle):
    """The generators' kernels that a model has."""
    log = c.c_char_p()
    library.call("pyc_model_last_decision_log", handle, c.byref(log))
    return sorted(set(GENERATED.findall(log.value.decode())))


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


def check_choices(library, folder, precision, level, args, expected, checks):
    """Leaves out what was chosen, again and again; memory that is not shared and groups of one node are choices, too."""
    inputs, wrong, count, seen = drawn(7, 8), 0, 0, []
    ways = [{}, {"reuse": "off"}, {"fuse": "off"}]
    while ways:
        other = compiled(library, folder, 8, precision, args.device, determinism=level, **ways.pop(0))
        count += 1
        wrong += bits(Model(library, other, inputs).run_for_outputs()) != expected
        names = [name for name in generated(library, other) if name not in seen]
        library.destroy(other)
        seen += names
        if names and len(seen) < args.choices:
            ways.append({"exclude": list(seen)})
    checks.say(f"{precision} {level}, other kernels, memory and groups ({', '.join(seen)})", wrong, count)


def check(library, folder, precision, level, args, checks):
    handle = compiled(library, folder, 8, precision, args.device, determinism=level)
    inputs = drawn(7, 8)
    expected = bits(Model(library, handle, inputs).run_for_outputs())

    model = Model(library, handle, inputs)
    wrong = sum(bits(model.run_for_outputs()) != expected for _ in range(args.replays))
    checks.say(f"{precision} {level}, replays", wrong, args.replays)

    wrong, store = 0, str(folder / f"store_{precision}_{level}")
    ways = [{}, {"cache_dir": store}, {"cache_dir": store}]  # the second fills the store that the third takes from
    for way in ways:
        again = compiled(library, folder, 8, precision, args.device, determinism=level, **way)
        wrong += bits(Model(library, again, inputs).run_for_outputs()) != expected
        library.destroy(again)
    checks.say(f"{precision} {level}, compiled again, cold and warm", wrong, len(ways))
    if args.choices:
        check_choices(library, folder, precision, level, args, expected, checks)

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
    checks.say(f"{precision} {level}, {args.threads} threads on one model", sum(counts), args.threads * args.runs)

    first = Model(library, handle, inputs).run_for_outputs()
    wrong = count = 0
    batches = [int(batch) for batch in args.batches.split(",")]
    for batch in batches:
        other = compiled(library, folder, batch, precision, args.device, determinism=level)
        for shift in range(args.shifts):
            order = [(shift + i) % 8 for i in range(batch)]
            outputs = Model(library, other, [x[order] for x in inputs]).run_for_outputs()
            for at, example in enumerate(order):
                count += 1
                wrong += bits(o[at] for o in outputs) != bits(o[example] for o in first)
        library.destroy(other)
    checks.say(f"{precision} {level}, examples wherever they stand in batches of {args.batches}", wrong, count)
    library.destroy(handle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--replays", type=int, default=100)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--runs", type=int, default=20, help="of each thread")
    parser.add_argument("--shifts", type=int, default=8, help="places in a batch that an example is tried at")
    parser.add_argument("--batches", default="1,3,8,64")
    parser.add_argument("--choices", type=int, default=12, help="kernels to leave out at most; 0: none of that")
    parser.add_argument("--precision", default="f32,bf16,f16")
    parser.add_argument("--levels", default="balanced,strict")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    library = Library(args.lib)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for precision in args.precision.split(","):
            for level in args.levels.split(","):
                check(library, Path(folder), precision, level, args, checks)
    sys.exit(1 if checks.wrong else 0)


if __name__ == "__main__":
    main()
