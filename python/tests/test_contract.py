"""Contracts: each clause has an answer, or the compile is refused by its name."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pyc
import pytest

ROOT = Path(__file__).parents[2]
MLP = ROOT / "tests" / "models" / "mlp.ir"
CLAUSES = {"memory_budget": 1 << 24, "threads": 2, "determinism": "strict", "reuse": True}


def test_every_clause_of_a_dict_has_an_answer():
    model = pyc.compile(MLP, contract=CLAUSES)
    answers = {clause.name: clause for clause in model.contract()}
    assert list(answers) == sorted(CLAUSES)
    assert {clause.answer for clause in answers.values()} == {"kept"}
    budget = answers["memory_budget"]
    assert (budget.reason, budget.detail) == ("within_budget", f"peak {model.memory()['peak_bytes']} of {1 << 24} bytes")
    assert answers["threads"].reason == "threads_used"


def test_a_file_says_the_same_as_a_dict_and_as_the_program(tmp_path):
    file = tmp_path / "contract"
    file.write_text("# of the tests\nmemory_budget = 16777216\nthreads = 2\ndeterminism = strict\nreuse = on\n")
    answers = pyc.compile(MLP, contract=file).contract()
    assert answers == pyc.compile(MLP, contract=CLAUSES).contract() == pyc.compile(MLP, contract=str(file)).contract()
    program = ROOT / "build" / "dev" / "pyc"
    if not program.exists():
        pytest.skip("NOT RUN (no build/dev/pyc)")
    ran = subprocess.run([program, "run", MLP, "--contract", file, "--json"], check=True, capture_output=True)
    clauses = json.loads(ran.stdout)["log"]["contract"]["clauses"]
    assert [pyc.Clause(**clause) for clause in clauses] == answers


def test_a_list_has_one_answer():
    model = pyc.compile(
        ROOT / "tests" / "models" / "decoder_step.ir", contract={"state": {"keys": "keys.next", "values": "values.next"}}
    )
    assert [clause.name for clause in model.contract()] == ["state"]
    assert [state.name for state in model.states] == ["keys", "values"]


@pytest.mark.parametrize(
    ("contract", "options", "said"),
    [
        ({"memory_budget": 1}, {}, "memory_budget"),
        ({"memory_bugdet": 1 << 20}, {}, "did you mean 'memory_budget'"),
        ({"threads": 2}, {"threads": 1}, "the contract says '2', but it is set to '1'"),
        ({"cache_dir": "a # b"}, {}, "cache_dir: a clause is one line without '#'"),
        ({"latency_target_us": 1, "device": "reference"}, {}, "latency_target_us"),
    ],
)
def test_refusals_name_the_clause(contract, options, said):
    with pytest.raises(pyc.Error, match=said):
        pyc.compile(MLP, contract=contract, **options)


def test_a_contract_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        pyc.compile(MLP, contract="no_such_file")


def test_without_a_contract_there_are_no_answers(relu):
    model = pyc.compile(relu, threads=2)
    assert model.contract() == []
    b = pyc.ModelBuilder()
    b.output(b.relu(b.input("x", "f32", (2,))))
    built = b.compile(contract={"threads": 1})
    assert [clause.name for clause in built.contract()] == ["threads"]
    assert built(np.array([-1, 2], np.float32)).tolist() == [0, 2]
