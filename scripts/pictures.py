#!/usr/bin/env python3
"""pictures.py PYC: writes the pictures of the README into docs/pictures: models.svg, the figures of
bench/results/models_neoverse_v1.json, and report.png, what a headless Chromium shows of a report that the program PYC writes.
pictures.py --check: whether models.svg has the figures of that file.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = "bench/results/models_neoverse_v1.json"
PICTURES = ROOT / "docs" / "pictures"
MODEL = ROOT / "tests" / "models" / "transformer_block.ir"
sys.path[:0] = [str(ROOT / "bench" / "models"), str(ROOT / "tests" / "report")]

import browser  # noqa: E402
import chart  # noqa: E402


def document():
    """What the benchmark's runner saw with two threads."""
    whole = json.loads((ROOT / FIGURES).read_text(encoding="utf-8"))
    return {**whole, **{part: [row for row in whole[part] if row["threads"] == 2] for part in ("rows", "means")}}


def take_report(pyc):
    program = browser.find()
    if program is None:
        sys.exit("report.png: NOT MADE (there is no chromium-headless-shell here)")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        subprocess.run([pyc, "report", MODEL, "-o", page, "--threads", "2", "--quiet"], check=True)
        with browser.Browser(program, width=1280, height=900) as shown:
            shown.open(page)
            shown.screenshot(PICTURES / "report.png")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    picture = chart.svg(document())
    if sys.argv[1] == "--check":
        if (PICTURES / "models.svg").read_text(encoding="utf-8") != picture:
            sys.exit(f"docs/pictures/models.svg is not what {FIGURES} says: scripts/pictures.py PYC writes it anew")
        return
    (PICTURES / "models.svg").write_text(picture, encoding="utf-8")
    take_report(sys.argv[1])


if __name__ == "__main__":
    main()
