#!/usr/bin/env python3
"""site.py OUT [ROOT]: the documentation as a site: README, CONTRIBUTING, demos, docs/ and every file of the repository that they link to, as pages
with one navigation, and a page of benchmarks drawn from bench/results. Ends with 1 where a link leads nowhere, with 77 where
there is no markdown-it (Debian: python3-markdown-it; PyPI: markdown-it-py).
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

try:
    from markdown_it import MarkdownIt
except ImportError:
    # Debian's package is for Debian's Python, which need not be the first one in the path.
    own = Path("/usr/bin/python3")
    if own.exists() and own.resolve() != Path(sys.executable).resolve() and __name__ == "__main__":
        if subprocess.run([own, "-c", "import markdown_it"], capture_output=True, check=False).returncode == 0:
            os.execv(own, [str(own), "-B", *sys.argv])
    print("site: NOT RUN (no markdown-it)")
    sys.exit(77)

NAVIGATION = (
    ("Start", "README.md docs/tutorial.md demos/README.md docs/python.md docs/cli.md docs/benchmarks.md"),
    ("Guides", "docs/training.md docs/cuda.md docs/onnx.md docs/report.md docs/trace.md docs/packages.md docs/large-files.md"),
    ("Reference", "docs/options.md docs/ops.md docs/capabilities.md docs/errors.md docs/reasons.md docs/functions.md docs/GLOSSARY.md"),
    ("Inside", "docs/ARCHITECTURE.md docs/IR.md docs/NUMERICS.md docs/decisions/README.md CONTRIBUTING.md docs/adding-an-op.md"
               " docs/adding-a-pass.md docs/adding-a-backend.md docs/adding-a-kernel.md docs/adding-an-option.md"),
)
BENCHMARKS = "docs/benchmarks.md"  # made here, not a file
PICTURES = {".png", ".svg", ".jpg"}
STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881}
body{font:16px/1.5 system-ui,sans-serif;margin:0;display:grid;grid-template-columns:14rem minmax(0,1fr)}
nav{padding:1rem;border-right:1px solid var(--line);min-height:100vh;font-size:.9rem}
nav b{display:block;margin-top:1rem}nav a{display:block;text-decoration:none}nav a[aria-current]{font-weight:600}
main{padding:1rem 2rem 4rem;max-width:72rem}pre,table{overflow-x:auto;display:block}img{max-width:100%}
pre{background:var(--soft);padding:.8rem;border-radius:.3rem}code{font-size:.9em}
td,th{border:1px solid var(--line);padding:.2rem .5rem;text-align:left;vertical-align:top}table{border-collapse:collapse}
@media(max-width:50rem){body{display:block}nav{border:0;min-height:0}main{padding:1rem}}
"""


def slug(text):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


class Page(HTMLParser):
    """What a page links to, and the anchors it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[key] for key in ("href", "src") if found.get(key)]
        if found.get("id"):
            self.anchors.add(found["id"])


class Site:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
        self.waiting, self.known, self.problems = [], set(), []

    def build(self):
        first = [name for _, names in NAVIGATION for name in names.split()]
        first += sorted(str(page.relative_to(self.root)) for page in self.root.glob("docs/**/*.md"))
        for name in first:
            if name == BENCHMARKS or (self.root / name).is_file():
                self.want(name)
            else:
                self.problems.append(f"there is no page {name}")
        while self.waiting:
            self.write(self.waiting.pop(0))
        self.check()
        return len(self.known)

    def want(self, name):
        if name not in self.known:
            self.known.add(name)
            self.waiting.append(name)

    def address(self, name):
        """Where in the site a file of the repository is."""
        if Path(name).suffix in PICTURES:
            return name
        if name == "README.md":
            return "index.html"
        return (name[:-3] if name.endswith(".md") else name) + ".html"

    def write(self, name):
        target = self.out / self.address(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        source = self.root / name
        if target.suffix in PICTURES:
            shutil.copyfile(source, target)
            return
        if name == BENCHMARKS:
            title, body = self.rendered(name, benchmarks(self.root))
        elif name.endswith(".md"):
            title, body = self.rendered(name, source.read_text(encoding="utf-8"))
        else:
            text = source.read_text(encoding="utf-8", errors="replace")
            title, body = name, f"<h1>{html.escape(name)}</h1>\n<pre><code>{html.escape(text)}</code></pre>"
        target.write_text(self.framed(name, title, body), encoding="utf-8")

    def rendered(self, name, text):
        tokens, title, seen = self.markdown.parse(text), "", {}
        for i, token in enumerate(tokens):
            if token.type == "heading_open":
                plain = "".join(part.content for part in tokens[i + 1].children or [] if part.type in ("text", "code_inline"))
                title = title or plain
                anchor = slug(plain)
                seen[anchor] = seen.get(anchor, -1) + 1
                token.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            for part in token.children or []:
                for key in ("href", "src"):
                    if part.attrGet(key):
                        part.attrSet(key, self.link(name, part.attrGet(key)))
        return title or name, self.markdown.renderer.render(tokens, self.markdown.options, {})

    def link(self, page, to):
        """The link as the site has it; notes a file that has to be there."""
        parts = urlsplit(to)
        if parts.scheme or parts.netloc or not parts.path:
            return to
        name = os.path.normpath(Path(page).parent / unquote(parts.path))
        if (self.root / name).is_dir():
            name = str(Path(name) / "README.md")
        if name.startswith("..") or (name != BENCHMARKS and not (self.root / name).is_file()):
            self.problems.append(f"{page}: {to} leads nowhere")
            return to
        self.want(name)
        return self.relative(page, name) + (f"#{parts.fragment}" if parts.fragment else "")

    def relative(self, page, name):
        return os.path.relpath(self.address(name), Path(self.address(page)).parent)

    def framed(self, page, title, body):
        rows = []
        for section, names in NAVIGATION:
            rows.append(f"<b>{section}</b>")
            for name in names.split():
                here = ' aria-current="page"' if name == page else ""
                rows.append(f'<a href="{self.relative(page, name)}"{here}>{html.escape(label(name))}</a>')
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
            f"<body><nav>{''.join(rows)}</nav>\n<main>\n{body}\n</main></body></html>\n"
        )

    def check(self):
        """Every link of every page leads to a file of the site, and to an anchor of it."""
        pages = {path: Page(path.read_text(encoding="utf-8")) for path in self.out.rglob("*.html")}
        for path, page in pages.items():
            for link in page.links:
                parts = urlsplit(link)
                if parts.scheme or parts.netloc:
                    continue
                target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
                where = path.relative_to(self.out)
                if not target.is_file():
                    self.problems.append(f"{where}: {link} leads nowhere")
                elif parts.fragment and target in pages and parts.fragment not in pages[target].anchors:
                    self.problems.append(f"{where}: {link} has no such heading")


def label(name):
    if name.endswith("/README.md"):
        return Path(name).parent.name
    return {"README.md": "PyC"}.get(name, Path(name).stem.replace("-", " "))


def benchmarks(root):
    """A page of the results: charts of those that are stamped JSON, and of each page its first words and first table."""
    sys.path.insert(0, str(root / "bench" / "models"))
    import chart

    parts = ["# Benchmarks\n\nDrawn from `bench/results` when the site is made; each section links to the whole page.\n"]
    for path in sorted(root.glob("bench/results/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("format") != "pyc.bench.models/1":
            continue
        engines = ", ".join(f"{name} {engine['version']}" for name, engine in document["engines"].items())
        parts.append(f"## {path.stem}\n\n{document['date']}, commit {document['commit']}; {engines}.\n\n<div>\n{chart.svg(document)}\n</div>\n")
    for path in sorted(root.glob("bench/results/*.md")):
        if path.name != "README.md":
            parts.append(excerpt(path))
    return "\n".join(parts)


def excerpt(path):
    blocks = [block.strip("\n") for block in path.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    title = blocks.pop(0).lstrip("# ") if blocks[0].startswith("#") else path.stem
    words = next((block for block in blocks if not block.startswith(("|", "#"))), "")
    table = next((block for block in blocks if block.startswith("|")), "")
    # Links of a results page are relative to its folder; here the words alone are wanted.
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", f"{words}\n\n{table}")
    return f"## {title}\n\n[{path.name}](../bench/results/{path.name})\n\n{plain}\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    out = Path(sys.argv[1])
    root = Path(sys.argv[2]) if len(sys.argv) == 3 else Path(__file__).resolve().parents[1]
    if out.exists():
        shutil.rmtree(out)
    site = Site(root.resolve(), out)
    count = site.build()
    for problem in site.problems:
        print(problem)
    print(f"{count} pages and files, {len(site.problems)} links that lead nowhere")
    sys.exit(1 if site.problems else 0)


main()
