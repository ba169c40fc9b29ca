"""Every program of demos/ runs: it checks its own results."""

import shutil
import subprocess
import sys
from pathlib import Path

import pyc
import pytest

ROOT = Path(__file__).parents[2]
DEMOS = sorted(path.name for path in (ROOT / "demos").glob("*.py"))


def test_there_are_five():
    assert len(DEMOS) + len(list((ROOT / "demos").glob("*.c"))) == 5
    text = (ROOT / "demos" / "README.md").read_text(encoding="utf-8")
    assert all(f"({name})" in text for name in DEMOS)


@pytest.mark.parametrize("name", DEMOS)
def test_demo(name, tmp_path):
    done = subprocess.run([sys.executable, "-B", ROOT / "demos" / name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_demo_in_c(tmp_path):
    compiler, library = shutil.which("cc"), ROOT / "build" / "dev" / "libpyc.so"
    if compiler is None or not library.exists():
        pytest.skip("NOT RUN (no cc, or no build/dev)")
    b = pyc.ModelBuilder("layer")
    b.output(b.input("x", "f32", (1, 4)) + 2.0, "y")
    pyc.compile_to_file(b, str(tmp_path / "m.pycm"))
    flags = [f"-I{ROOT / 'include'}", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-Wall", "-Werror"]
    subprocess.run([compiler, ROOT / "demos" / "deploy.c", *flags, "-lpyc", "-o", tmp_path / "deploy"], check=True)
    done = subprocess.run([tmp_path / "deploy", tmp_path / "m.pycm"], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("y: 3 3 3 3\n")
