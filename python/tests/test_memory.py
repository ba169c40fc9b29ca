"""Nothing is lost over many runs."""

import gc
import sys
import tracemalloc

import numpy as np
import pyc
import pytest
from conftest import unary
from onnx import TensorProto

RUNS = 10_000
PAGE = 4096


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def grown_by(work, rounds=RUNS):
    """Bytes of the process that `rounds` calls take and keep, after as many to warm up."""
    for _ in range(rounds // 10):
        work()
    gc.collect()
    before = resident()
    for _ in range(rounds):
        work()
    gc.collect()
    return resident() - before


# A leak of one array object, view or handle a run would be 100 bytes or more: a megabyte.
LIMIT = RUNS * 50


def swallow(work):
    def call():
        try:
            work()
        except pyc.Error:
            return
        raise AssertionError("no error")

    return call


def works():
    x = np.ones((2, 3), np.float32)
    fixed, open_ = pyc.compile(unary("Relu", [2, 3])), pyc.compile(unary("Relu", ["n", 3]))
    strings = pyc.compile(unary("Identity", ["n"], TensorProto.STRING))
    texts = np.array(["one", "two"], object)
    out = np.empty((2, 3), np.float32)
    binding_session = pyc.InferenceSession(unary("Relu", [2, 3]).SerializeToString())
    binding = binding_session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    return {
        "new outputs": lambda: fixed(x),
        "given outputs": lambda: fixed.run([x], [out]),
        "strided": lambda: fixed(x.T.copy().T),
        "lists": lambda: fixed([[1, 2, 3], [4, 5, 6]]),
        "open shapes": lambda: open_(x),
        "DLPack both ways": lambda: np.from_dlpack(open_.run([np.asarray(x)], tensors=True)[0]),
        "strings": lambda: strings(texts),
        "binding": lambda: binding_session.run_with_iobinding(binding),
        "errors": swallow(lambda: fixed(x[:1])),
        "errors of open shapes": swallow(lambda: open_(x[:, :2])),
    }


@pytest.mark.parametrize("how", works())
def test_no_leak(how):
    assert grown_by(works()[how]) < LIMIT


def test_no_leak_of_models(relu):
    data = relu.SerializeToString()
    x = np.ones((2, 3), np.float32)
    assert grown_by(lambda: pyc.compile(data)(x), rounds=300) < 4 << 20


def test_no_reference_is_lost():
    x = np.ones((2, 3), np.float32)
    model = pyc.compile(unary("Relu", [2, 3]))
    model(x)
    before = sys.getrefcount(x)
    live = pyc._native.allocator_stats()["live_tensors"]
    tracemalloc.start()
    for _ in range(RUNS):
        model(x)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sys.getrefcount(x) == before
    assert pyc._native.allocator_stats()["live_tensors"] == live
    assert kept < RUNS
