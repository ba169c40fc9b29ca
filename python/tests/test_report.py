"""Reports from Python have the data of those of the program."""

import json
from pathlib import Path

import numpy as np
import onnx
import pyc
import pytest

ROOT = Path(__file__).parents[2]
BLOCK = ROOT / "tests" / "models" / "transformer_block.ir"


def data_of(model, tmp_path, *args, **options):
    path = tmp_path / "report.json"
    pyc.report(model, path, *args, **options)
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_page_is_written(tmp_path):
    pyc.report(BLOCK, tmp_path / "r.html", threads=2, runs=2)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "transformer_block.ir" in page and "pyc.report.v1" in page


def test_a_model_and_its_file_give_the_same(tmp_path):
    model = pyc.compile(BLOCK, threads=2, contract={"memory_budget": 1 << 28})
    mine = data_of(model, tmp_path, runs=3, probe=False)
    assert mine["contract"]["memory_budget"] == 1 << 28
    assert len(mine["runs"]) == 3 and all(len(run) == len(mine["steps"]) for run in mine["runs"])
    assert mine["roofs"] is None
    fresh = data_of(BLOCK, tmp_path, runs=0, threads=2)
    assert fresh["runs"] == [] and fresh["graphs"] == mine["graphs"] and fresh["groups"] == mine["groups"]
    assert fresh["title"] == "transformer_block.ir"


def test_roofs_are_measured(tmp_path):
    roofs = data_of(ROOT / "tests" / "models" / "mlp.ir", tmp_path, runs=1, threads=1)["roofs"]
    assert roofs["gflops"] > 0 and roofs["gbytes_per_second"] > 0


def test_inputs_may_be_given(tmp_path, relu):
    model = pyc.compile(relu)
    assert len(data_of(model, tmp_path, {"x": np.ones((2, 3), np.float32)}, probe=False)["runs"]) == 5
    with pytest.raises(pyc.UnknownOptionError, match="no input 'y'"):
        pyc.report(model, tmp_path / "r.html", {"y": np.ones((2, 3), np.float32)})


def test_where_there_is_no_graph_the_report_says_so(tmp_path, relu, open_relu):
    assert data_of(relu.SerializeToString(), tmp_path, probe=False)["graphs"] is None
    assert data_of(pyc.compile(open_relu), tmp_path)["open"]
    b = pyc.ModelBuilder()
    b.output(b.relu(b.input("x", "f32", (2,))))
    model = b.compile()
    assert data_of(model, tmp_path, probe=False)["graphs"] is not None
    del b
    assert data_of(model, tmp_path, probe=False)["graphs"] is None
    pyc.compile_to_file(BLOCK, tmp_path / "m.pycm")
    assert data_of(tmp_path / "m.pycm", tmp_path, probe=False)["graphs"] is None


def test_a_file_that_changed_is_refused(tmp_path, relu):
    path = tmp_path / "m.onnx"
    onnx.save(relu, path)
    model = pyc.compile(path)
    relu.graph.node[0].op_type = "Neg"
    onnx.save(relu, path)
    with pytest.raises(pyc.InvalidArgumentError):
        pyc.report(model, tmp_path / "r.html", probe=False)


def test_state_is_as_it_was(tmp_path):
    b = pyc.ModelBuilder("counter")
    total = b.input("sum", "f32", (4,))
    b.output(b.add(total, b.input("x", "f32", (4,)), name="sum.next"))
    model = b.compile(state={"sum": "sum.next"})
    model.run([np.ones(4, np.float32)])
    pyc.report(model, tmp_path / "r.html", probe=False)
    assert model.get_state("sum").tolist() == [1, 1, 1, 1]


def test_options_are_for_what_is_not_compiled_yet(tmp_path, relu):
    with pytest.raises(pyc.InvalidArgumentError, match="threads: the model is compiled already"):
        pyc.report(pyc.compile(relu), tmp_path / "r.html", threads=2)
