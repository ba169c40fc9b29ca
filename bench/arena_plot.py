"""The arena over the steps of a plan as an SVG: bench/arena_plot.py MODEL OUT.svg [--pyc build/dev/pyc] [--mode balanced] [--threads 2].
A column is a step; its height is what the arena holds then, the line above all what is allocated."""

import argparse
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT, LEFT, TOP, BELOW = 720, 180, 76, 24, 22
INSTANCE = re.compile(r"^  i\d+ (?:temporary|workspace)\S* (\S+): (\d+) bytes, host at (\d+), steps (\d+)-(\d+)", re.M)


def living(plan):
    """(bytes in use per step, bytes of the arena) of a plan's text."""
    steps = len(re.findall(r"^  \d+ (?:run|copy) ", plan, re.M))
    ranges = [[] for _ in range(steps)]
    for _, size, offset, first, last in INSTANCE.findall(plan):
        for step in range(int(first), int(last) + 1):
            ranges[step].append((int(offset), int(offset) + (int(size) + 63) // 64 * 64))
    use = []
    for held in ranges:  # results in place share bytes with what they are in place of
        end, sum_of = 0, 0
        for first, last in sorted(held):
            sum_of += max(0, last - max(first, end))
            end = max(end, last)
        use.append(sum_of)
    return use, int(re.search(r"^  arena (\d+) ", plan, re.M).group(1))


def drawing(name, use, arena):
    most = max(use + [arena, 1])
    scale = (HEIGHT - TOP - BELOW) / most
    wide = (WIDTH - LEFT - 8) / max(1, len(use))
    base = HEIGHT - BELOW
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           f'<text x="{LEFT}" y="14">{name}: bytes in use in the arena, by step</text>']
    for step, size in enumerate(use):
        tall = size * scale
        out.append(f'<rect x="{LEFT + step * wide:.2f}" y="{base - tall:.2f}" width="{max(wide - 0.3, 0.3):.2f}" height="{tall:.2f}" fill="#4878a8"/>')
    line = base - arena * scale
    out += [f'<path d="M{LEFT} {line:.2f}H{WIDTH - 8}" stroke="#b03030"/>',
            f'<text x="{LEFT - 4}" y="{line + 4:.2f}" text-anchor="end">{arena:,}</text>',
            f'<text x="{LEFT - 4}" y="{base}" text-anchor="end">0</text>',
            f'<text x="{LEFT}" y="{HEIGHT - 8}">step 0</text>',
            f'<text x="{WIDTH - 8}" y="{HEIGHT - 8}" text-anchor="end">step {len(use) - 1}</text>', "</svg>"]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pyc", default=str(ROOT / "build/dev/pyc"))
    parser.add_argument("--mode", default="balanced")
    parser.add_argument("--threads", default="2")
    given = parser.parse_args()
    command = [given.pyc, "dump", str(given.model), "--stage", "plan", "--mode", given.mode, "--threads", given.threads]
    use, arena = living(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    given.out.write_text(drawing(f"{given.model.stem}, {given.mode}", use, arena))
    print(f"{given.out}: {len(use)} steps, at most {max(use):,} of {arena:,} bytes")


if __name__ == "__main__":
    main()
