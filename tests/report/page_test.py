#!/usr/bin/env python3
"""Opens reports in a headless Chromium: elements, keys, hostile names, no error, no request.

usage: page_test.py PYC [--pictures FOLDER]

Exits 77, which ctest takes for "not run", where there is no browser.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = browser.find()
PYC = ""
PICTURES = None
HOSTILE = ['</script><script>window.broken = 1</script>', '<img src=x onerror="window.broken = 1">', '<!--<script>',
           '"};window.broken = 1;//', '${window.broken = 1}', '&lt;b&gt;', 'a\u2028b', '\u202eabc', "'><svg onload='window.broken=1'>"]


def field(number, content):
    """A field of a protobuf message: a number, text or a message."""
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def hostile_onnx():
    """A chain of Tanh whose names are markup."""
    def value(name):
        dim = field(1, field(1, 4))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dim + dim)))
    names = ["in " + HOSTILE[0]] + [f"{i} {name}" for i, name in enumerate(HOSTILE)]
    nodes = b"".join(field(1, field(1, a) + field(2, b) + field(3, "node " + b) + field(4, "Tanh")) for a, b in zip(names, names[1:]))
    graph = nodes + field(2, HOSTILE[0]) + field(11, value(names[0])) + field(12, value(names[-1]))
    return field(1, 8) + field(8, field(2, 17)) + field(7, graph)


def large_model(nodes):
    """Layers of products, sums with what was before, and functions."""
    lines = ["graph @large(%x: f32[4,8]) -> (%last) {", "  %w = const f32[8,8] splat(0.125)"]
    before = kept = "x"
    for i in range(nodes):
        name = "last" if i == nodes - 1 else f"layer.{i // 10}.op.{i}"
        op = {0: f"matmul(%{before}, %w)", 1: f"softmax(%{before})", 2: f"add(%{before}, %{kept})"}.get(i % 6, f"tanh(%{before})")
        lines.append(f"  %{name} = {op}")
        if i % 6 == 2:
            kept = name
        before = name
    return "\n".join(lines + ["}"]) + "\n"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="pyc-report-")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return str(Path(self.folder.name) / name)

    def report(self, model, name, *options):
        out = self.path(name)
        done = subprocess.run([PYC, "report", str(model), "-o", out, "--quiet", *options], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        return out

    def visit(self, html, scheme="light", width=1440):
        page = browser.Browser(PROGRAM, scheme=scheme, width=width)
        self.addCleanup(page.__exit__)
        page.seconds = page.open(html)
        self.addCleanup(self.expect_quiet, page)
        return page

    def expect_quiet(self, page):
        self.assertEqual(page.complaints(), [])
        self.assertEqual(page.requests(), [])

    def picture(self, page, name):
        if PICTURES:
            page.screenshot(str(Path(PICTURES) / name))

    # Whether something is drawn on the canvas.
    def drawn(self, page, canvas):
        return page.value(f"""new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {{
            const c = document.getElementById("{canvas}");
            const blank = Object.assign(document.createElement("canvas"), {{width: c.width, height: c.height}});
            done(c.toDataURL() !== blank.toDataURL()); }})))""")

    def test_elements(self):
        html = self.report(ROOT / "tests/models/transformer_block.ir", "block.html", "--runs", "2", "--memory-budget", "1000000")
        for scheme, paper in (("light", "rgb(247, 246, 243)"), ("dark", "rgb(19, 21, 25)")):
            page = self.visit(html, scheme)
            self.assertEqual(page.value("getComputedStyle(document.body).backgroundColor"), paper)
            self.assertEqual(page.value("document.getElementById('title').textContent"), "transformer_block.ir")
            for canvas in ("graph-canvas", "graph-map", "timeline-canvas", "memory-canvas", "roofline-canvas"):
                self.assertTrue(self.drawn(page, canvas), canvas)
            self.assertEqual(page.value("document.querySelectorAll('.tile').length"), 5)
            self.assertGreater(page.value("document.querySelectorAll('#decision-table tbody > tr').length"), 50)
            self.assertEqual(page.value("document.querySelectorAll('#steps tbody > tr').length"), 12)
            self.assertIn("977", page.value("document.querySelector('.term p').textContent"))  # KiB of the budget
            self.assertIn("kept", page.value("document.querySelector('.term .state').textContent"))
            terms = page.value("document.getElementById('terms').textContent")
            self.assertIn("no target", terms)
            self.assertIn(" estimated", terms)
            self.assertNotIn(" yet", terms)
            self.assertFalse(page.value("document.getElementById('clauses') !== null"))
            self.picture(page, f"block-{scheme}.png")

    def test_contract(self):
        contract = Path(self.folder.name) / "contract.txt"
        contract.write_text("memory_budget = 1000000\nlatency_target_us = 900000\ncompile_budget_ms = 600000\n")
        page = self.visit(self.report(ROOT / "tests/models/mlp.ir", "contract.html", "--runs", "1", "--no-probe", "--contract", str(contract)))
        rows = "[...document.querySelectorAll('#clauses tbody tr')].map((r) => [...r.cells].slice(0, 3).map((c) => c.textContent).join(' '))"
        self.assertEqual(page.value(rows), ["memory_budget kept within_budget", "latency_target_us kept predicted", "compile_budget_ms kept within_budget"])
        terms = page.value("document.getElementById('terms').textContent")
        self.assertIn("estimated of 900 ms", terms)
        self.assertIn("of 600 s", terms)

    def test_selecting(self):
        page = self.visit(self.report(ROOT / "tests/models/mlp.ir", "mlp.html", "--runs", "1", "--no-probe"))
        self.assertIn("not probed", page.value("document.getElementById('roofline-note').textContent"))
        page.value("document.querySelector('#steps button.link').click()")
        self.assertFalse(page.value("document.getElementById('selection').hidden"))
        group = page.value("document.querySelector('#inspector h3').textContent")
        self.assertRegex(group, r"^g\d+$")
        page.value("document.querySelectorAll('#selection button')[1].click()")
        whats = page.value("[...document.querySelectorAll('#decision-table td:first-child')].map((e) => e.textContent)")
        self.assertIn(f"kernel:{group}", whats)
        self.assertLess(len(whats), page.value("decisions.length"))
        page.click("#show-before")
        self.assertEqual(page.value("document.getElementById('show-before').getAttribute('aria-pressed')"), "true")
        page.click("#roofline-canvas", 0.02, 0.02)
        self.assertTrue(page.value("document.getElementById('selection').hidden"))

    def test_keys(self):
        page = self.visit(self.report(ROOT / "tests/models/mlp.ir", "keys.html", "--runs", "0"))
        page.press("/", "/")
        self.assertEqual(page.value("document.activeElement.id"), "search")
        page.call("Input.insertText", text="relu")
        self.assertRegex(page.value("document.getElementById('found').textContent"), r"^[1-9]\d* nodes?, \d+ decisions?$")
        page.press("Enter")
        self.assertIn("relu", page.value("document.getElementById('inspector').textContent"))
        page.press("Escape")
        self.assertEqual(page.value("document.getElementById('search').value"), "")
        page.value("document.getElementById('graph-canvas').focus()")
        view = page.value("({...graph_view.view})")
        page.press("ArrowDown")
        page.press("ArrowRight")
        moved = page.value("({...graph_view.view})")
        self.assertGreater(moved["y"], view["y"])
        self.assertGreater(moved["x"], view["x"])
        page.press("+", "+")
        self.assertGreater(page.value("graph_view.view.zoom"), moved["zoom"])
        page.press("-", "-")
        page.press("-", "-")
        self.assertLess(page.value("graph_view.view.zoom"), moved["zoom"])
        page.press("0", "0")
        page.press("Enter")
        first = page.value("graph_view.picked.index")
        page.press("ArrowUp", modifiers=8)
        self.assertNotEqual(page.value("graph_view.picked.index"), first)

    def test_tab_order(self):
        page = self.visit(self.report(ROOT / "tests/models/mlp.ir", "tab.html", "--runs", "1", "--no-probe"))
        seen = []
        for _ in range(80):
            page.press("Tab")
            seen.append(page.value("document.activeElement.id || document.activeElement.textContent"))
        wanted = ["Skip to the report", "Graph", "search", "theme", "show-after", "zoom-in", "graph-canvas", "timeline-canvas", "memory-canvas", "roofline-canvas"]
        found = [seen.index(name) for name in wanted]
        self.assertEqual(found, sorted(found), seen)
        nameless = page.value("""[...document.querySelectorAll("button, canvas[tabindex], input, select, a")].filter((e) =>
            !(e.textContent.trim() || e.getAttribute("aria-label") || (e.id && document.querySelector(`label[for=${e.id}]`)) || e.closest("label"))).map((e) => e.outerHTML)""")
        self.assertEqual(nameless, [])

    def test_hostile_names(self):
        model = Path(self.path("</title><b>.onnx".replace("/", "_")))
        model.write_bytes(hostile_onnx())
        html = self.report(model, "hostile.html", "--runs", "1", "--no-probe", "--no-fuse")
        page = self.visit(html)
        self.assertIsNone(page.value("window.broken"))
        self.assertEqual(page.value("document.querySelectorAll('main img, main svg, main b > b').length"), 0)
        self.assertEqual(page.value("document.querySelectorAll('script').length"), 2)
        names = page.value("report.strings")
        for i, name in enumerate(HOSTILE):
            self.assertIn(f"node {i} {name}", names)
        # Shown as they are, by every part that shows names.
        page.value("graph_view.pick(graph_view.graph.boxes.find((b) => b.kind === 1 && graph_view.graph.nodes[b.item].location.startsWith('node 1 <img')))")
        self.assertIn(HOSTILE[1], page.value("document.getElementById('inspector').textContent"))
        page.value("document.getElementById('search').value = '<svg'; document.getElementById('search').dispatchEvent(new Event('input'))")
        self.assertIn(HOSTILE[-1], page.value("document.getElementById('decision-table').textContent"))
        page.value("tip.show(10, 10, report.strings[report.strings.length - 1], ...report.strings.slice(0, 50))")
        self.assertIsNone(page.value("window.broken"))

    def test_large(self):
        model = Path(self.path("large.ir"))
        model.write_text(large_model(5000), encoding="utf-8")
        html = self.report(model, "large.html", "--runs", "1", "--device", "reference", "--no-probe")
        self.assertLess(Path(html).stat().st_size, 5_000_000)
        page = self.visit(html, "dark")
        opened = min(page.seconds, *(self.visit(html, "light").seconds for _ in range(2)))  # the machine has other work too
        print(f"a graph of 5,000 nodes: {Path(html).stat().st_size} bytes, open after {opened:.2f} s")
        self.assertLess(opened, 2.0)
        self.assertEqual(page.value("graph_view.graph.nodes.length >= 5000"), True)
        self.assertTrue(self.drawn(page, "graph-canvas"))
        self.assertLess(page.value("document.querySelectorAll('*').length"), 5000)
        self.picture(page, "large-dark.png")
        page.value("document.getElementById('zoom-fit').click()")
        self.assertTrue(self.drawn(page, "graph-canvas"))
        page.click("#show-before")
        self.assertTrue(self.drawn(page, "graph-canvas"))

    def test_what_is_not_known_is_said(self):
        pycm = self.path("mlp.pycm")
        subprocess.run([PYC, "compile", str(ROOT / "tests/models/mlp.ir"), "-o", pycm], check=True, capture_output=True)
        page = self.visit(self.report(pycm, "pycm.html", "--runs", "2", "--no-probe"))
        said = page.value("document.querySelector('main').textContent")
        self.assertIn("compiled ahead of time", said)
        self.assertIn("the plan is part of the report only where the graph is", said)
        self.assertTrue(self.drawn(page, "timeline-canvas"))
        self.picture(page, "pycm-light.png")

        page = self.visit(self.report(ROOT / "tests/open_models/branch_loop.ir", "open.html", "--shape", "x=2,4"))
        said = page.value("document.querySelector('main').textContent")
        self.assertIn("several programs", said)
        self.assertGreater(page.value("decisions.length"), 0)

        page = self.visit(self.report(ROOT / "tests/models/linear_relu.ir", "small.html", "--runs", "0"), width=800)
        said = page.value("document.querySelector('main').textContent")
        self.assertIn("made with --runs 0", said)
        self.assertIn("No arena", said)
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 800)
        self.picture(page, "small-light.png")

    def test_json_is_the_data_of_the_page(self):
        model = str(ROOT / "tests/models/mlp.ir")
        html = self.report(model, "data.html", "--runs", "0")
        done = subprocess.run([PYC, "report", model, "--runs", "0", "--json"], capture_output=True, text=True, check=True)
        data = json.loads(done.stdout)
        page = self.visit(html)
        for key in ("schema", "graphs", "groups", "steps", "places", "instances", "options"):
            self.assertEqual(page.value(f"report.{key}"), data[key], key)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(2)
    if PROGRAM is None:
        print("report page: NOT RUN (there is no chromium-headless-shell here)")
        sys.exit(77)
    PYC = str(Path(sys.argv[1]).resolve())
    if len(sys.argv) > 3 and sys.argv[2] == "--pictures":
        PICTURES = sys.argv[3]
        del sys.argv[2:4]
    del sys.argv[1]
    unittest.main(verbosity=2)
