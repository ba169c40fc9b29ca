"""What models keep from run to run: the bits of passing it by hand, and what the program `pyc` says."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pyc
import pytest

ROOT = Path(__file__).parents[2]
DECODER = ROOT / "tests" / "models" / "decoder_step.ir"
KEPT = {"keys": "keys.next", "values": "values.next"}
STEPS = 9


def counter(**options):
    b = pyc.ModelBuilder("counter")
    x, total = b.input("x", "f32", (4,)), b.input("sum", "f32", (4,))
    after = b.add(total, x, name="sum.next")
    b.output(b.neg(after), "y")
    b.output(after)
    return b.compile(state={"sum": "sum.next"}, threads=1, **options)


def tokens():
    return [(np.array([7 * i % 24]), np.array([i])) for i in range(STEPS)]


def test_a_decoder_keeps_its_caches_with_the_bits_of_passing_them():
    keeping, passing = pyc.compile(DECODER, state=KEPT), pyc.compile(DECODER, device="reference")
    assert [port.name for port in keeping.inputs] == ["token", "position"]
    assert [(s.name, s.output, s.dtype, s.shape) for s in keeping.states] == [
        (name, output, "f32", (1, 2, 32, 8)) for name, output in KEPT.items()
    ]
    keys = values = np.zeros((1, 2, 32, 8), np.float32)
    stats = pyc.RunStats()
    for token, position in tokens():
        logits, keys, values = passing(token, position, keys, values)
        (kept,) = keeping.run([token, position], stats=stats)
        assert kept.tobytes() == logits.tobytes()
        assert keeping.get_state("keys").tobytes() == keys.tobytes()
        assert keeping.get_state("values").tobytes() == values.tobytes()
        assert stats.copied_bytes == 0
    assert keeping.memory()["state_bytes"] == keys.nbytes + values.nbytes


def test_the_program_has_the_same_bits(tmp_path):
    """`pyc run --repeat` runs it on the same inputs again and again."""
    program = ROOT / "build" / "dev" / "pyc"
    if not program.exists():
        pytest.skip("NOT RUN (no build/dev/pyc)")
    model = pyc.compile(DECODER, state=KEPT, threads=1)
    inputs = [np.array([3]), np.array([5])]
    for port, array in zip(model.inputs, inputs):
        np.save(tmp_path / f"{port.name}.npy", array)
    flags = [f"--input={port.name}={tmp_path / port.name}.npy" for port in model.inputs]
    flags += [f"--state={name}={output}" for name, output in KEPT.items()]
    flags += ["--threads=1", "--repeat=3", f"--output-dir={tmp_path}", "--json"]
    said = json.loads(subprocess.run([program, "run", DECODER, *flags], check=True, capture_output=True).stdout)
    for _ in range(3):
        logits = model(*inputs)
    assert np.load(tmp_path / "logits.npy").tobytes() == logits.tobytes()
    assert said["memory"]["state_bytes"] == model.memory()["state_bytes"]


def test_states_are_set_and_reset():
    model = counter()
    ones = np.ones(4, np.float32)
    assert [model(ones)[0] for _ in range(3)] == [-1, -2, -3]
    model.set_state("sum", [10, 20, 30, 40])
    assert model(ones).tolist() == [-11, -21, -31, -41]
    held = model.get_state("sum")
    model.reset_state()
    assert held.tolist() == [11, 21, 31, 41] and model.get_state("sum").tolist() == [0, 0, 0, 0]
    model(ones)
    model.reset_state("sum")
    assert model(ones)[0] == -1


def test_wrong_states_are_named():
    model = counter()
    with pytest.raises(pyc.UnknownOptionError, match="did you mean 'sum'"):
        model.get_state("sun")
    with pytest.raises(pyc.UnknownOptionError, match="no state 'x'"):
        model.reset_state("sum", "x")
    with pytest.raises(pyc.ShapeMismatchError, match="sum"):
        model.set_state("sum", np.ones(5, np.float32))
    with pytest.raises(pyc.DtypeMismatchError, match="sum"):
        model.set_state("sum", np.ones(4, np.float64))
    with pytest.raises(pyc.Error, match="total"):
        pyc.compile(DECODER, state={"total": "keys.next"})


def test_a_model_without_state_has_none(relu):
    model = pyc.compile(relu)
    assert model.states == []
    model.reset_state()
    with pytest.raises(pyc.UnknownOptionError, match="it keeps nothing"):
        model.get_state("x")
