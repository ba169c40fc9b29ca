"""The site builds without a link that leads nowhere, has a page of benchmarks, and says which link of a page is wrong.

site_test.py ROOT; ends with 77 where there is no markdown-it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])


def build(out, *root):
    run = subprocess.run([sys.executable, "-B", ROOT / "scripts" / "site.py", out, *root], capture_output=True, text=True)
    if run.returncode == 77:
        print(run.stdout.strip())
        sys.exit(77)
    return run.returncode, run.stdout


def check_site(folder):
    code, said = build(folder / "site")
    assert code == 0, said
    benchmarks = (folder / "site" / "docs" / "benchmarks.html").read_text(encoding="utf-8")
    assert "<svg" in benchmarks and "<table>" in benchmarks
    index = (folder / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="docs/tutorial.html"' in index and 'aria-current="page"' in index
    cli = (folder / "site" / "docs" / "cli.html").read_text(encoding="utf-8")
    assert 'id="exit-codes"' in cli and "<code>pyc conformance" not in cli.split("<main>")[0]


def check_planted(folder):
    """A tree with one wrong file and one wrong heading in its README."""
    tree = folder / "tree"
    for name in ("docs", "demos", "bench", "CONTRIBUTING.md", "tests", "include", "src", "scripts", "python", "dev", "LICENSE"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).symlink_to(ROOT.resolve() / name)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (tree / "README.md").write_text(text + "\n[a](docs/gone.md) [b](docs/cli.md#gone) [c](docs/cli.md#exit-codes)\n", encoding="utf-8")
    code, said = build(folder / "planted", tree)
    assert code == 1, said
    assert "README.md: docs/gone.md leads nowhere" in said, said
    assert "docs/cli.html#gone has no such heading" in said, said
    assert "exit-codes" not in said, said


def main():
    with tempfile.TemporaryDirectory() as name:
        check_site(Path(name))
        check_planted(Path(name))


main()
