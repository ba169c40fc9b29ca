#!/usr/bin/env python3
"""Attention of halves on a GPU beside torch: gpu_attention.py --lib LIBPYC.SO [--rows 1024,4096] [--depths 64,128] [--forms full,causal,alibi]

Full, causal, and with the score function of ALiBi (causal; the slope of a head times the distance of query and key, added to the score in f32). Each is a model of one op with
its tensors on the device; 32 Mi numbers in each of q, k and v up to 32 heads. Rivals: torch's scaled_dot_product_attention with cuDNN, for ALiBi flex_attention (compiled, its causal blocks
masked by a block mask), in CUDA graphs. Outputs are compared first; then both run in turn. Both store bf16; with --stored f32 PyC keeps its f32. Prints a table, writes NAME.json with --out NAME.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import torch
from gpu import OnDevice, burst, difference
from pyc_abi import Library
from torch.nn.attention import SDPBackend, sdpa_kernel

F = torch.nn.functional
ROWS = (1024, 4096, 16384)
TOLERANCE = 1e-2  # of the largest magnitude: weights are rounded to halves on both sides

PLAIN = """graph @m(%q: bf16[1,{h},{s},{d}], %k: bf16[1,{h},{s},{d}], %v: bf16[1,{h},{s},{d}]) -> (%y) {{
  %y, %m, %l = attend(%q, %k, %v) {{scale={scale}, causal={causal}{stored}}}
}}
"""
ALIBI = """graph @m(%q: bf16[1,{h},{s},{d}], %k: bf16[1,{h},{s},{d}], %v: bf16[1,{h},{s},{d}], %slope: f32[{h},1,1]) -> (%y) {{
  %i = iota() {{shape=[1,{s},1], axis=1, dtype=f32}}
  %j = iota() {{shape=[1,1,{s}], axis=2, dtype=f32}}
  %distance = sub(%j, %i)
  %bias = mul(%distance, %slope)
  %y, %m, %l = attend(%q, %k, %v, %bias) {{scale={scale}, causal=true, with="mask"{stored}}}
}}
"""


def rival_of(form, q, k, v, slope):
    """torch's function for the case, and its name."""
    if form != "alibi":

        def cudnn():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return F.scaled_dot_product_attention(q, k, v, is_causal=form == "causal")

        return cudnn
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def alibi(score, _, head, query, key):
        return score + slope[head] * (key - query)

    blocks = create_block_mask(lambda b, h, query, key: query >= key, None, None, q.shape[2], k.shape[2], device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(q, k, v, score_mod=alibi, block_mask=blocks)


def captured(call):
    """Replays the call, as PyC replays its own graph, and waits as PyC does. The graph reads what the call holds (a block mask), so it is kept."""
    for _ in range(3):
        output = call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = call()

    def run(_kept=call):
        graph.replay()
        torch.cuda.synchronize()

    run()
    return run, output


def measure(library, folder, form, s, d, args):
    heads = max(1, (32 << 20) // (s * d))
    torch.manual_seed(7)
    q, k, v = (torch.randn(1, heads, s, d, device="cuda").bfloat16() for _ in range(3))
    slope = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device="cuda") / heads)
    text = (ALIBI if form == "alibi" else PLAIN).format(h=heads, s=s, d=d, scale=d**-0.5, causal=str(form != "full").lower(),
                                                          stored="" if args.stored == "f32" else f", stored_as={args.stored}")
    path = folder / "m.ir"
    path.write_text(text)
    inputs = [q, k, v] + ([slope.reshape(heads, 1, 1)] if form == "alibi" else [])
    row = {"form": form, "heads": heads, "rows": s, "depth": d}
    ours = OnDevice(library, path, inputs, "f32")
    rival, expected = captured(rival_of(form, q, k, v, slope))
    ours.run()
    row["difference"] = difference(ours.outputs, [expected])
    turns = [(burst(rival, args.seconds), burst(ours.run, args.seconds)) for _ in range(args.turns)]
    row["torch_us"], row["pyc_us"] = (statistics.median(t[i] for t in turns) * 1e6 for i in range(2))
    row["ratio"] = statistics.median(t[0] / t[1] for t in turns)
    row["tflops"] = 4 * heads * s * s * d / (1 if form == "full" else 2) / row["pyc_us"] / 1e6
    ours.close()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--depths", default="64,128")
    parser.add_argument("--forms", default="full,causal,alibi")
    parser.add_argument("--stored", default="bf16", choices=("bf16", "f32"))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.02, help="of one burst")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    library = Library(args.lib)
    print(f"{torch.cuda.get_device_name()}, PyC {library.version()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    print(f"{'form':8} {'heads x rows, depth':22} {'PyC us':>9} {'TFLOP/s':>8} {'torch us':>9} {'ratio':>6}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for d in map(int, args.depths.split(",")):
            for s in map(int, args.rows.split(",")):
                for form in args.forms.split(","):
                    row = measure(library, Path(folder), form, s, d, args)
                    rows.append(row)
                    wrong = "" if row["difference"] <= TOLERANCE else f"OUTPUTS DIFFER by {row['difference']:.2e}"
                    place = f"{row['heads']} x {s}, {d}"
                    print(f"{form:8} {place:22} {row['pyc_us']:9.1f} {row['tflops']:8.0f} {row['torch_us']:9.1f} {row['ratio']:6.2f} {wrong}", flush=True)
    if args.out:
        args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(any(row["difference"] > TOLERANCE for row in rows))


if __name__ == "__main__":
    main()
