"""What the stubs declare is there, and mypy takes the package and a program that uses it."""

import ast
import subprocess
import sys
from pathlib import Path

import pyc

PACKAGE = Path(pyc.__file__).parent
ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "mypy"

PROGRAM = """
import numpy as np
import pyc

b = pyc.ModelBuilder("layer")
x: pyc.Value = b.input("x", "f32", (2, 4))
b.output(b.relu(x @ b.constant(None, np.zeros((4, 3))) + 1.0), "y")
model: pyc.Model = b.compile(threads=2)
stats = pyc.RunStats()
copies: int = stats.staged_views
session = pyc.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
names: list[str] = [value.name for value in session.get_inputs()]
try:
    model.run([np.zeros((2, 4), np.float32)], stats=stats)
except pyc.ShapeMismatchError as error:
    print(error.node, error.cure)
kept = pyc.compile("step.onnx", state={"keys": "keys.next"}, contract={"threads": 2})
answers: list[str] = [clause.answer for clause in kept.contract()]
output: str = kept.states[0].output
trainer = pyc.Trainer("m.onnx", loss="mse", lr=0.1)
loss: float = trainer.step(np.zeros((2, 4), np.float32)).loss
pyc.report(kept, "r.html", runs=2)


@pyc.function(threads=1)
def layer(x: pyc.Value) -> pyc.Value:
    return pyc.ops.relu(x)


made: pyc.Model = layer.model(np.zeros((2, 4)))
"""


def members(body):
    names = [n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    names += [n.target.id for n in body if isinstance(n, ast.AnnAssign)]
    names += [t.id for n in body if isinstance(n, ast.Assign) for t in n.targets]
    return {name for name in names if not name.startswith("_")}


def public(thing):
    return {name for name in vars(thing) if not name.startswith(("_", "@"))}


def test_the_stub_has_what_the_module_has():
    stub = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8")).body
    assert members(stub) == public(pyc._native)
    for node in stub:
        if isinstance(node, ast.ClassDef):
            assert members(node.body) == public(getattr(pyc._native, node.name)) - {"name", "value"}, node.name


def mypy(*args, cwd):
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(CACHE)]
    command = [sys.executable, "-m", "mypy", "--strict", *config, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    return done.returncode, done.stdout + done.stderr


def test_mypy_takes_the_package_and_its_users(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("import pyc\nn: str = pyc.RunStats().staged_views\n", encoding="utf-8")
    code, said = mypy("-p", "pyc", cwd=tmp_path)
    assert code == 0, said
    code, said = mypy("program.py", cwd=tmp_path)
    assert code == 0, said
    code, said = mypy("wrong.py", cwd=tmp_path)
    assert code == 1 and "int" in said
