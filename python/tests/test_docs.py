"""The code blocks of the pages run: those of one page one after the other, in one folder."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import model_of, tensor_info
from onnx import helper, numpy_helper

ROOT = Path(__file__).parents[2]


def blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def write_model(path):
    """y = softmax(x @ w), f32[batch,4]: what the pages call model.onnx."""
    w = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Softmax", ["p"], ["y"])]
    onnx.save(model_of(nodes, [tensor_info("x", ["batch", 4])], [tensor_info("y", ["batch", 4])], [w]), path)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_model("model.onnx")
    found = blocks(page)
    assert found
    scope = {}
    for block in found:
        if "import torch" in block and importlib.util.find_spec("torch") is None:
            continue
        exec(compile(block, page, "exec"), scope)


# Lines that install and build; other steps of `./dev test` run these.
BUILDING = {"./dev demo", "python3 -m venv v && v/bin/pip install ."}


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs lines of bash in a folder, with the program, this Python and a pkg-config that knows the library of build/dev."""
    build = ROOT / "build" / "dev"
    if not (build / "pyc").exists() or shutil.which("cc") is None:
        pytest.skip("NOT RUN (no build/dev/pyc, or no cc)")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "pyc").symlink_to(build / "pyc")
    (tools / "python").symlink_to(sys.executable)
    flags = f"-I{ROOT / 'include'} -L{build} -Wl,-rpath,{build} -lpyc"
    (tools / "pkg-config").write_text(f"#!/bin/sh\necho '{flags}'\n", encoding="utf-8")
    (tools / "pkg-config").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)

    def run(lines):
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", lines], capture_output=True, text=True)
        assert done.returncode == 0, f"{lines}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


def test_the_tutorial_runs(shell, tmp_path):
    shutil.copy(ROOT / "demos" / "deploy.c", tmp_path)
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    scope = {}
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
    assert len(found) >= 10
    for kind, block in found:
        assert kind in ("sh", "python")
        if kind == "python":
            exec(compile(block, "tutorial", "exec"), scope)
        elif set(block.splitlines()) != BUILDING:
            shell(block)


COMMAND = re.compile(r"^build/release/(pyc .*)$", re.M)

# Pages with code, and what runs it.
RUN_BY = {
    "README.md": "here",
    "CONTRIBUTING.md": "./dev test is what it shows",
    "docs/ARCHITECTURE.md": "tests/cli/architecture_test.cpp",
    "docs/IR.md": "tests/ir/text_test.cpp, tests/onnx/open_text_test.cpp",
    "docs/adding-a-backend.md": "tests/recipes/",
    "docs/adding-a-kernel.md": "tests/recipes/",
    "docs/adding-a-pass.md": "tests/recipes/",
    "docs/adding-an-op.md": "tests/recipes/",
    "docs/adding-an-option.md": "tests/recipes/",
    "docs/cli.md": "no commands: the forms of JSON, tests/cli/",
    "docs/cuda.md": "scripts/gpu-verify, where there is a GPU",
    "docs/onnx.md": "here",
    "docs/packages.md": "tests/packages/check.py",
    "docs/python.md": "here",
    "docs/report.md": "here",
    "docs/trace.md": "here",
    "docs/training.md": "here, and tests/autograd/training_page_test.cpp",
    "docs/tutorial.md": "here",
}


def test_every_page_with_code_is_run_by_something():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "demos").glob("*.md")]
    with_code = {str(page.relative_to(ROOT)) for page in pages if "\n```" in page.read_text(encoding="utf-8")}
    assert with_code == RUN_BY.keys()
    for words in RUN_BY.values():
        for path in re.findall(r"(?:tests|scripts)/[\w./-]+", words):
            assert (ROOT / path).exists(), path


def test_the_command_of_the_training_page_runs(shell):
    """With fewer steps."""
    (command,) = re.findall(r"^(pyc train .*\\\n.*)$", (ROOT / "docs" / "training.md").read_text(encoding="utf-8"), re.M)
    shell(f"pyc export {ROOT}/tests/train/models/blobs.ir -o mlp.onnx")
    shell(f"python {ROOT}/scripts/train_data.py train.npz 640 1 && python {ROOT}/scripts/train_data.py test.npz 64 2")
    shell(command.replace("--steps 3000", "--steps 60").replace("--checkpoint-every 100", "--checkpoint-every 20"))
    assert "%" in shell("pyc inspect trained.onnx && pyc dump trained.onnx --stage graph")


def test_the_commands_of_the_readme_run(shell, tmp_path):
    """Those of the program, with the release build's name taken for the one that is here."""
    write_model("model.onnx")
    data = tmp_path / "cases" / "one" / "test_data_set_0"
    data.mkdir(parents=True)
    write_model("cases/one/model.onnx")
    zeros = np.zeros((2, 4), np.float32)
    onnx.save_tensor(numpy_helper.from_array(zeros, "x"), data / "input_0.pb")
    onnx.save_tensor(numpy_helper.from_array(zeros + 0.25, "y"), data / "output_0.pb")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(COMMAND.findall(text)) >= 8
    shell(f"python {ROOT}/scripts/train_data.py data.npz 640 1")
    for page in ("README.md", "docs/onnx.md", "docs/report.md", "docs/trace.md", "docs/training.md"):
        for command in COMMAND.findall((ROOT / page).read_text(encoding="utf-8")):
            shell(command)
    inline = re.findall(r"`build/release/(pyc [^`]+)`", text)
    assert len(inline) == 3  # one for each of the three things
    for command in inline:
        shell(command)
    (block,) = re.findall(r"^```\n(graph @.*?)^```", text, re.M | re.S)
    (tmp_path / "layer.ir").write_text(block, encoding="utf-8")
    assert "y: f32[2,3]" in shell("pyc run layer.ir")


def test_the_readme_has_ten_lines():
    (block,) = blocks("README.md")
    assert len(block.splitlines()) <= 10


def test_the_example_in_cpp_compiles_and_runs(tmp_path):
    """It has the names of the one in Python, and gives a row of y for each of x."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```cpp\n(.*?)^```", text, re.M | re.S)
    assert len(block.splitlines()) <= 10
    compiler, library = shutil.which("g++"), ROOT / "build" / "dev" / "libpyc.so"
    if compiler is None or not library.exists():
        pytest.skip("NOT RUN (no g++, or no build/dev)")
    check = "return y.size() == 1 && y[0].shape() == std::vector<int64_t>{2, 3} ? 0 : 1;"
    source = tmp_path / "layer.cpp"
    source.write_text(f'#include "pyc/pyc.hpp"\nint main() {{\n{block}{check}\n}}\n', encoding="utf-8")
    flags = ["-std=c++20", f"-I{ROOT / 'include'}", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}"]
    subprocess.run([compiler, *flags, source, "-lpyc", "-o", tmp_path / "layer"], check=True)
    subprocess.run([tmp_path / "layer"], check=True)


def test_both_examples_build_the_same_layer():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (cpp,) = re.findall(r"^```cpp\n(.*?)^```", text, re.M | re.S)
    (python,) = blocks("README.md")
    called = [re.findall(r"\bb\.(\w+)\(", block) for block in (cpp, python)]
    assert [name for name in called[0] if name not in ("matmul", "scalar")] == called[1]  # which are @ and a number
