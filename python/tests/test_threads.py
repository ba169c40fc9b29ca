"""Runs let other threads of Python work, and overlap on one model."""

import threading
import time

import numpy as np
import pyc
import pytest


def slow_model(milliseconds=100):
    """A model on one thread that takes at least so long, and its input."""
    b = pyc.ModelBuilder()
    value = x = b.input("x", "f32", (192, 192))
    for _ in range(4):
        value = b.sin(value @ x)
    b.output(value, "y")
    array = np.full((192, 192), 1e-3, np.float32)
    model = b.compile(threads=1, device="reference")
    stats = pyc.RunStats()
    model.run([array], stats=stats)
    assert stats.wall_ns > milliseconds * 1e6, f"{stats.wall_ns / 1e6:.0f} ms are too few to see anything"
    return model, array


@pytest.fixture(scope="module")
def slow():
    return slow_model()


def ticks_during(work):
    """How often a thread of Python woke up, 5 ms apart, between the beginning and the end of `work` in another."""
    span = []

    def worker():
        began = time.perf_counter()
        work()
        span.extend([began, time.perf_counter()])

    thread = threading.Thread(target=worker)
    ticks = []
    thread.start()
    while thread.is_alive():
        time.sleep(0.005)
        ticks.append(time.perf_counter())
    thread.join()
    return sum(span[0] < tick < span[1] for tick in ticks)


def test_a_run_releases_the_gil(slow):
    model, array = slow
    assert ticks_during(lambda: model(array)) >= 5


def test_the_clock_of_this_test_sees_a_held_gil():
    """One long call that keeps the GIL: the test above would be red for it."""
    assert ticks_during(lambda: sum(range(20_000_000))) <= 2


def test_runs_of_one_model_overlap(slow):
    model, array = slow
    expected = model(array)
    found = [None] * 3
    gate = threading.Barrier(len(found))

    def worker(i):
        gate.wait()
        found[i] = model(array)

    threads = [threading.Thread(target=worker, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        np.testing.assert_array_equal(one, expected)
    # The model makes memory for a run only when all it has is in use.
    assert model.stats()["contexts"] >= 2


def test_many_threads_on_one_session(relu):
    session = pyc.InferenceSession(relu.SerializeToString())
    wrong = []

    def worker(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            x = rng.standard_normal((2, 3), np.float32)
            if not np.array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0)):
                wrong.append(seed)

    threads = [threading.Thread(target=worker, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
