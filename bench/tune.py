#!/usr/bin/env python3
"""How often the kernel that estimates choose is within 3 % of the fastest, by `pyc tune`.

  bench/tune.py PYC [--threads N] [--model FILE]... [--json FILE]

Measures 40 matrix products with m, n, k >= 64, listed here before anything was tuned, and the products of the models
(convolutions are products too), in a folder of its own, and prints each kernel whose estimate was further off.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SHAPES = [  # m, k, n
    (64, 64, 64), (96, 96, 96), (128, 128, 128), (192, 192, 192), (256, 256, 256), (384, 384, 384), (512, 512, 512), (768, 768, 768),
    (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (128, 768, 2304), (197, 768, 768), (197, 768, 2304), (197, 768, 3072),
    (197, 3072, 768), (128, 768, 2048), (128, 2048, 768), (384, 768, 768), (384, 768, 3072), (512, 512, 2048), (512, 2048, 512),
    (3136, 64, 64), (3136, 64, 256), (3136, 256, 64), (784, 512, 128), (784, 128, 512), (196, 1024, 256), (196, 256, 1024),
    (64, 2048, 512), (64, 512, 2048), (784, 1152, 128), (196, 2304, 256), (100, 100, 100), (77, 640, 640), (77, 640, 2560),
    (1500, 384, 384), (1500, 384, 1536), (65, 129, 257), (250, 300, 350),
]


def products_text():
    lines, inputs, outputs = [], [], []
    for i, (m, k, n) in enumerate(SHAPES):
        inputs.append(f"%x{i}: f32[{m},{k}]")
        outputs.append(f"%y{i}")
        lines.append(f"  %w{i} = const f32[{k},{n}] random(seed={i + 1}, lo=-1, hi=1)")
        lines.append(f"  %y{i} = matmul(%x{i}, %w{i})")
    return f"graph @products({', '.join(inputs)}) -> ({', '.join(outputs)}) {{\n" + "\n".join(lines) + "\n}\n"


def tune(pyc, model, threads, folder):
    call = [pyc, "tune", str(model), "--threads", str(threads), "--cache-dir", str(folder), "--json"]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(call)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pyc")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    assert len(SHAPES) == 40 and all(min(shape) >= 64 for shape in SHAPES)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        products = pathlib.Path(folder) / "products.ir"
        products.write_text(products_text())
        for model in [products, *map(pathlib.Path, options.model)]:
            report = tune(options.pyc, model, options.threads, pathlib.Path(folder) / "cache")
            results[model.stem] = report
            rows = [r for r in report["groups"] if "_matmul__" in r["untuned"] or "_matmul__" in r["chosen"]]
            fastest = [r for r in rows if r["untuned_us"] <= 1.03 * r["chosen_us"]]
            for r in rows:
                if r not in fastest:
                    print(f"  {model.stem} {r['group']}: {r['untuned']} {r['untuned_us']:.1f} us, {r['chosen']} {r['chosen_us']:.1f} us, {r['gflops']:.1f} GFLOP/s")
            print(f"{model.stem}, {options.threads} threads: {len(fastest)} of {len(rows)} products within 3 % "
                  f"({100 * len(fastest) / max(len(rows), 1):.0f} %); {report['near_best']} of {len(report['groups'])} kernels; "
                  f"machine {report['machine']['gflops']:.1f} GFLOP/s; wrong: {report['wrong']}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
