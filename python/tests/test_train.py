"""Training: steps over arrays and files, the bits of the program `pyc`, checkpoints, what comes out."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyc
import pytest

ROOT = Path(__file__).parents[2]
BLOBS = ROOT / "tests" / "train" / "models" / "blobs.ir"
OPTIONS = {"loss": "cross_entropy", "optimizer": "adamw", "lr": 0.002, "threads": 1}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("train") / "rows.npz"
    subprocess.run([sys.executable, ROOT / "scripts" / "train_data.py", path, "200", "1"], check=True)
    return path


def line_model():
    """y = x * w, w at first 0."""
    b = pyc.ModelBuilder("line")
    b.output(b.input("x", "f32", (4, 1)) @ b.constant("w", np.zeros((1, 1), np.float32)), "y")
    return b


def test_steps_over_arrays_learn_what_a_formula_says():
    """With mse and sgd, w goes by lr * mean(2 x (target - w x)); the numbers here are exact in f32."""
    trainer = pyc.Trainer(line_model(), loss="mse", optimizer="sgd", lr=0.25, threads=1)
    assert [port.name for port in trainer.batch] == ["x", "target"]
    x = np.array([[1], [1], [2], [0]], np.float32)
    w = 0.0
    for step in range(1, 4):
        result = trainer.step(x, 2 * x)
        assert result.loss == np.mean((2 * x - w * x) ** 2) and result.step == step and not result.skipped
        w += 0.25 * float(np.mean(2 * x * (2 * x - w * x)))
        assert trainer.parameters()["w"].tolist() == [[w]]
    assert trainer.evaluate(target=2 * x, x=x) == np.mean((2 * x - w * x) ** 2)
    assert trainer.steps_done == 3
    assert trainer.compile(threads=1)(x).tolist() == (w * x).tolist()


def test_the_program_trains_to_the_same_bits(rows, tmp_path):
    program = ROOT / "build" / "dev" / "pyc"
    if not program.exists():
        pytest.skip("NOT RUN (no build/dev/pyc)")
    flags = ["--loss=cross_entropy", "--optimizer=adamw", "--lr=0.002", "--threads=1", "--seed=7", "--steps=20", "--json"]
    command = [program, "train", BLOBS, f"--data={rows}", *flags]
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    trainer = pyc.Trainer(BLOBS, **OPTIONS)
    data = trainer.data(rows, seed=7)
    while trainer.steps_done < 20:
        last = trainer.step(data)
    assert trainer.digest() == said["weights"]
    assert last.loss == said["loss"]
    assert data.info()["position"] == 20 and data.info()["rows"] == 200


def test_arrays_and_a_file_in_its_order_give_the_same_bits(rows):
    from_file, from_arrays = pyc.Trainer(BLOBS, **OPTIONS), pyc.Trainer(BLOBS, **OPTIONS)
    data, arrays = from_file.data(rows), np.load(rows)
    size = data.info()["batch_rows"]
    losses = []
    for at in range(0, 5 * size, size):
        batch = {name: arrays[name][at : at + size] for name in ("x", "target")}
        losses.append(from_arrays.evaluate(**batch))
        assert from_file.step(data) == from_arrays.step(**batch)
    assert from_file.digest() == from_arrays.digest() != pyc.Trainer(BLOBS, **OPTIONS).digest()
    assert len(set(losses)) == 5


def test_a_resumed_run_ends_with_the_same_bits(rows, tmp_path):
    whole = pyc.Trainer(BLOBS, **OPTIONS)
    data = whole.data(rows, seed=3)
    for _ in range(12):
        whole.step(data)

    first = pyc.Trainer(BLOBS, **OPTIONS)
    data = first.data(rows, seed=3)
    for _ in range(5):
        first.step(data)
    saved = first.save(tmp_path / "run", data=data)
    assert Path(saved).exists()
    second = pyc.Trainer(BLOBS, **OPTIONS)
    data = second.data(rows, seed=3)
    assert second.resume(tmp_path / "run", data=data) == {"checkpoint": saved, "step": 5, "passed_over": []}
    assert second.digest() == first.digest()
    while second.steps_done < 12:
        second.step(data)
    assert second.digest() == whole.digest()
    state = whole.state()
    assert set(whole.parameters()) < set(state)
    assert all(state[name].tobytes() == value.tobytes() for name, value in second.state().items())


def test_state_is_put_into_another_trainer(rows):
    one, other = pyc.Trainer(BLOBS, **OPTIONS), pyc.Trainer(BLOBS, **OPTIONS)
    data = one.data(rows)
    for _ in range(3):
        one.step(data)
    state = one.state()
    state["w1"] = np.asfortranarray(state["w1"])
    other.set_state(state)
    assert other.digest() == one.digest()
    with pytest.raises(pyc.UnknownOptionError, match="did you mean 'w1'"):
        other.set_state({"w9": state["w1"]})
    with pytest.raises(pyc.ShapeMismatchError, match=r"'w1': expected the shape \(16, 64\), found \(64, 16\)"):
        other.set_state({"w1": state["w1"].T})
    with pytest.raises(pyc.DtypeMismatchError, match="'w1': expected f32, found f64"):
        other.set_state({"w1": state["w1"].astype(np.float64)})


def test_what_is_exported_gives_the_trained_bits(rows, tmp_path):
    trainer = pyc.Trainer(BLOBS, **OPTIONS)
    data = trainer.data(rows)
    for _ in range(3):
        trainer.step(data)
    x = np.load(rows)["x"][:32]
    expected = trainer.compile(threads=1)(x)
    assert expected.tobytes() != pyc.compile(BLOBS, threads=1)(x).tobytes()
    for name in ("trained.onnx", "trained.pycm"):
        trainer.export(tmp_path / name)
        assert pyc.compile(tmp_path / name, threads=1)(x).tobytes() == expected.tobytes(), name


def test_threads_that_share_a_trainer_wait_for_one_another(rows):
    trainer = pyc.Trainer(BLOBS, **OPTIONS)
    data = trainer.data(rows)
    threads = [threading.Thread(target=lambda: [trainer.step(data) for _ in range(20)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = pyc.Trainer(BLOBS, **OPTIONS)
    data = alone.data(rows)
    for _ in range(60):
        alone.step(data)
    assert trainer.digest() == alone.digest()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"optimiser": "adam"}, "did you mean 'optimizer'"),
        ({"thread": 2}, "did you mean 'threads'"),
        ({"loss": "cross"}, "cross_entropy"),
        ({"memory_budget": 10}, "10"),
    ],
)
def test_refusals_name_what_is_wrong(options, said):
    with pytest.raises(pyc.Error, match=said):
        pyc.Trainer(BLOBS, **{"loss": "cross_entropy", **options})


def test_a_batch_that_does_not_fit_changes_nothing(rows):
    trainer = pyc.Trainer(BLOBS, **OPTIONS)
    before = trainer.digest()
    with pytest.raises(pyc.ShapeMismatchError, match="x"):
        trainer.step(np.zeros((32, 15), np.float32), np.zeros(32, np.int64))
    with pytest.raises(pyc.UnknownOptionError, match="did you mean 'target'"):
        trainer.step(x=np.zeros((32, 16), np.float32), targets=np.zeros(32, np.int64))
    assert trainer.digest() == before and trainer.steps_done == 0
