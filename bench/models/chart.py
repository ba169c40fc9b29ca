"""A chart of ratios as SVG: a bar from 1 to each median with its interval, on a logarithmic axis, for light and dark pages."""

import math
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW = 860, 330, 60, 64, 22
STYLE = """
text{font:12px system-ui,sans-serif;fill:#1b1f24}.title{font-size:15px;font-weight:600}.note{fill:#57606a}
.page{fill:#fff}.grid{stroke:#d0d7de}.one{stroke:#1b1f24}.range{stroke:#1b1f24;stroke-width:1.5}
.faster,.within{fill:#2da44e}.slower{fill:#cf222e}.same{fill:#8c959f}.inconclusive{fill:#d4a72c;fill-opacity:.55}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9da7b1}.page{fill:#0d1117}.grid{stroke:#30363d}
.one,.range{stroke:#e6edf3}.faster,.within{fill:#3fb950}.slower{fill:#f85149}.same{fill:#6e7681}.inconclusive{fill:#d29922}}
"""
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)
LEAST_GAP = 34  # between labels of the axis


def _bars(document):
    """Label, figures and verdict of each bar."""
    bars = [(f"{row['model']}, {row['threads']}t, {row['b']}", row) for row in document["rows"] if "median" in row]
    return bars + [(f"geometric mean, {mean['threads']}t, {mean['b']}", mean) for mean in document["means"]]


def _scale(bars):
    """Maps a ratio to a coordinate; 1 is always on the axis."""
    low = min([0.95, *(row["low"] for _, row in bars)]) / 1.03
    high = max([1.05, *(row["high"] for _, row in bars)]) * 1.03
    span = math.log(high / low)
    return low, high, lambda ratio: LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio / low) / span


def _axis(low, high, at, bottom):
    """Lines and labels, from 1 outwards, as far as labels do not touch."""
    parts, taken = [], []
    for tick in sorted((tick for tick in TICKS if low <= tick <= high), key=lambda tick: abs(math.log(tick))):
        x = at(tick)
        if any(abs(x - other) < LEAST_GAP for other in taken):
            continue
        taken.append(x)
        kind = "one" if tick == 1 else "grid"
        parts += [f'<line class="{kind}" x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{bottom}"/>',
                  f'<text class="note" x="{x:.1f}" y="{TOP - 10}" text-anchor="middle">{tick:g}</text>']
    return parts


def _bar(label, row, y, at):
    x, one = at(row["median"]), at(1)
    low, high, middle = at(row["low"]), at(row["high"]), y + ROW / 2
    return [f'<text x="{LEFT - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(label)}</text>',
            f'<rect class="{row["verdict"]}" x="{min(x, one):.1f}" y="{y + 4}" width="{max(1.0, abs(x - one)):.1f}" height="{ROW - 8}"/>',
            f'<line class="range" x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}"/>',
            f'<text class="note" x="{WIDTH - RIGHT + 8}" y="{middle + 4:.1f}">{row["median"]:.2f}</text>']


def svg(document):
    bars = _bars(document)
    low, high, at = _scale(bars)
    bottom = TOP + ROW * len(bars)
    first = document["rows"][0]
    above = f"{first['a']} is faster" if document["mode"] == "rivals" else f"{first['b']} is slower"
    title = f"Time of the other engine over {first['a']}'s" if document["mode"] == "rivals" else f"Time of {first['b']} over {first['a']}"
    stamp = document["machine"]
    note = f"{document['date']}, {document['commit']}, {stamp['cpu']}, {stamp['cores']} cores; yellow: inconclusive"
    engines = ", ".join(f"{label} {facts['version']}" for label, facts in document["engines"].items())
    stamps = f"{engines}; {stamp['architecture']}, Linux {stamp['kernel']}, {stamp['memory_gib']} GiB, {' '.join(stamp['features'])}"
    body = [f"<desc>{escape(stamps)}</desc>", f'<rect class="page" width="{WIDTH}" height="{bottom + 36}"/>',
            f'<text class="title" x="16" y="24">{escape(title)} (above 1: {escape(above)}), median and 95 % interval</text>']
    body += _axis(low, high, at, bottom)
    for i, (label, row) in enumerate(bars):
        body += _bar(label, row, TOP + ROW * i, at)
    body.append(f'<text class="note" x="16" y="{bottom + 24}">{escape(note)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 36}" role="img">'
            f"<style>{STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n")
