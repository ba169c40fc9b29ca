"""What may be passed as an array, and which of it is copied."""

import array
import ctypes
import gc

import ml_dtypes
import numpy as np
import pyc
import pytest
from conftest import model_of, tensor_info, unary
from onnx import TensorProto, helper

VALUES = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
EXPECTED = np.maximum(VALUES, 0)


class OnlyDlpack:
    """What torch's tensors look like: no buffer protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OldDlpack(OnlyDlpack):
    """From before version 1."""

    def __dlpack__(self):
        return self.array.__dlpack__()


class OnlyArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def flat_ctypes(values):
    return np.ctypeslib.as_ctypes(np.ascontiguousarray(values))


IN_PLACE = {
    "numpy": VALUES,
    "read-only": read_only(VALUES),
    "slice of rows": np.concatenate([VALUES, VALUES])[2:],
    "memoryview": memoryview(VALUES),
    "ctypes": flat_ctypes(VALUES),
    "DLPack": OnlyDlpack(VALUES),
    "DLPack before version 1": OldDlpack(VALUES),
    "read-only DLPack": OnlyDlpack(read_only(VALUES)),
}
STRIDED = {
    "column-major": np.asfortranarray(VALUES),
    "every second column": np.repeat(VALUES, 2, axis=1)[:, ::2],
    "reversed": np.ascontiguousarray(VALUES[::-1, ::-1])[::-1, ::-1],
    "transposed DLPack": OnlyDlpack(np.asfortranarray(VALUES)),
    "reversed DLPack": OnlyDlpack(np.ascontiguousarray(VALUES[:, ::-1])[:, ::-1]),
}
CONVERTED = {
    "list": VALUES.tolist(),
    "list of ints": VALUES.astype(int).tolist(),
    "__array__": OnlyArray(VALUES),
    "big-endian": VALUES.astype(">f4"),
    "field of a record": np.rec.fromarrays([VALUES, np.zeros((2, 3), np.int8)])["f0"],
}


def run(model, value):
    stats = pyc.RunStats()
    (found,) = model.run([value], stats=stats)
    np.testing.assert_array_equal(found, EXPECTED)
    return stats.staged_views


@pytest.mark.parametrize("how", IN_PLACE)
def test_row_major_memory_is_used_in_place(relu, how):
    assert run(pyc.compile(relu), IN_PLACE[how]) == 0


@pytest.mark.parametrize("how", STRIDED)
def test_strides_are_respected_and_counted(relu, how):
    assert run(pyc.compile(relu), STRIDED[how]) == 1


@pytest.mark.parametrize("how", CONVERTED)
def test_what_no_view_can_say_is_copied_and_counted(relu, how):
    assert run(pyc.compile(relu), CONVERTED[how]) == 1


def test_strict_views_refuse_a_copy(relu):
    with pytest.raises(pyc.InvalidArgumentError):
        pyc.compile(relu, strict_views=True)(STRIDED["column-major"])


def test_broadcast_strides_of_zero(relu):
    row = np.broadcast_to(np.float32([1, -2, 3]), (2, 3))
    np.testing.assert_array_equal(pyc.compile(relu)(row), [[1, 0, 3]] * 2)


def test_outputs_are_written_in_place(relu):
    out = np.full((2, 3), 7, np.float32)
    stats = pyc.RunStats()
    (found,) = pyc.compile(relu).run([VALUES], [out], stats)
    assert found is out and stats.staged_views == 0
    np.testing.assert_array_equal(out, EXPECTED)


@pytest.mark.parametrize("shape", [(2, 3), ("batch", 3)])
def test_strided_outputs_are_filled(shape):
    wide = np.full((2, 6), 7, np.float32)
    pyc.compile(unary("Relu", shape)).run([VALUES], [wide[:, ::2]])
    np.testing.assert_array_equal(wide[:, ::2], EXPECTED)
    np.testing.assert_array_equal(wide[:, 1::2], np.full((2, 3), 7))


def test_outputs_that_cannot_be_written_to_are_refused(relu):
    with pytest.raises(TypeError, match="written to"):
        pyc.compile(relu).run([VALUES], [read_only(VALUES)])


def test_an_open_output_of_another_shape_is_refused(open_relu):
    with pytest.raises(pyc.ShapeMismatchError, match="'y'") as caught:
        pyc.compile(open_relu).run([VALUES], [np.empty((5, 3), np.float32)])
    assert caught.value.node == "y"


@pytest.mark.parametrize("value", [object(), "text", {1}, None, [[1, 2], [3]], [[1j, 2, 3]] * 2])
def test_what_is_no_array_is_refused(relu, value):
    with pytest.raises((TypeError, ValueError)):
        pyc.compile(relu)(value)


def test_floats_do_not_become_integers_silently():
    model = pyc.compile(unary("Neg", [2], TensorProto.INT64))
    np.testing.assert_array_equal(model([1, 2]), [-1, -2])
    with pytest.raises(TypeError):
        model([1.5, 2])


@pytest.mark.parametrize("shape", [(), (0, 3), (1, 1, 1, 2)])
def test_ranks_and_empty_arrays(shape):
    values = np.full(shape, -2, np.float32)
    np.testing.assert_array_equal(pyc.compile(unary("Abs", shape))(values), np.abs(values))


NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes_of_numpy(dtype):
    onnx_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = np.array([0, 1, 1, 3]).astype(dtype)
    found = pyc.compile(unary("Identity", [4], onnx_type))(values)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


NARROW = {
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
}


@pytest.mark.parametrize("dtype", NARROW)
def test_dtypes_of_ml_dtypes(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype))
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [2, 3])
    graph = helper.make_graph(
        [node], "g", [tensor_info("x", [6], NARROW[dtype])], [tensor_info("y", [2, 3], NARROW[dtype])], [shape]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    values = np.arange(6).astype(kind)
    found = pyc.compile(model)(values)
    assert found.dtype == kind and found.shape == (2, 3)
    np.testing.assert_array_equal(found.astype(np.float32).ravel(), np.arange(6))


def test_bf16_by_dlpack_needs_no_numpy_type():
    model = pyc.compile(unary("Identity", [2], TensorProto.BFLOAT16))
    (tensor,) = model.run([np.array([1, 2], ml_dtypes.bfloat16)], tensors=True)
    assert (tensor.dtype, tensor.shape, tensor.nbytes) == ("bf16", (2,), 4)
    again = model.run([OnlyDlpack(tensor)])[0]
    np.testing.assert_array_equal(again.astype(np.float32), [1, 2])


def test_tensors_are_seen_by_others_without_a_copy(relu):
    (tensor,) = pyc.compile(relu).run([VALUES], tensors=True)
    for seen in (np.from_dlpack(tensor), np.asarray(tensor), np.frombuffer(tensor, np.float32).reshape(2, 3)):
        assert seen.ctypes.data == tensor.data_ptr
        np.testing.assert_array_equal(seen, EXPECTED)
    np.asarray(tensor)[0, 0] = 9
    assert tensor.numpy()[0, 0] == 9
    assert tensor.copy().data_ptr != tensor.data_ptr


def test_results_of_open_models_are_read_only_views(open_relu):
    model = pyc.compile(open_relu)
    view = model(VALUES)
    np.testing.assert_array_equal(view, EXPECTED)
    assert not view.flags.writeable
    (tensor,) = model.run([VALUES], tensors=True)
    assert not tensor.writable
    with pytest.raises(BufferError):
        tensor.__dlpack__()
    assert np.from_dlpack(tensor).flags.writeable is False
    writable = model.run([VALUES])[0]
    writable += 1
    np.testing.assert_array_equal(writable, EXPECTED + 1)


@pytest.mark.parametrize("make", [np.from_dlpack, np.asarray, memoryview, lambda t: t.numpy()])
def test_views_keep_the_memory(open_relu, make):
    big = np.arange(300_000, dtype=np.float32).reshape(-1, 3)
    model = pyc.compile(open_relu)
    view = make(model.run([big], tensors=True)[0])
    del model
    gc.collect()
    for _ in range(3):  # what would take the memory if it were free
        np.full_like(big, 7)
    np.testing.assert_array_equal(np.asarray(view), big)


def test_a_capsule_nobody_takes_frees_its_tensor():
    before = pyc._native.allocator_stats()["live_tensors"]
    for version in (None, (1, 0)):
        tensor = pyc._native.tensor("f32", [4])
        capsule = tensor.__dlpack__(max_version=version)
        del tensor
        assert pyc._native.allocator_stats()["live_tensors"] == before + 1
        del capsule
        assert pyc._native.allocator_stats()["live_tensors"] == before


def test_strings_and_sequences():
    strings = pyc.compile(unary("Identity", ["n"], TensorProto.STRING))
    found = strings(np.array(["a", "höher", ""], object))
    assert found.dtype == object and found.tolist() == ["a", "höher", ""]
    assert strings(["b"]).tolist() == ["b"]
    with pytest.raises(TypeError):
        strings(np.zeros(2))
    floats = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    sequence = helper.make_value_info("s", helper.make_sequence_type_proto(floats))
    node = helper.make_node("SequenceAt", ["s", "i"], ["y"])
    picked = pyc.compile(model_of([node], [sequence, tensor_info("i", [], TensorProto.INT64)], [tensor_info("y", ["a", "b"])]))
    items = [np.float32([1, 2]), np.float32([[3]])]
    np.testing.assert_array_equal(picked(items, 1), [[3]])
    with pytest.raises(TypeError):
        picked(np.float32([1]), 0)


def test_array_module_and_addresses(relu):
    numbers = array.array("f", VALUES.ravel())
    flat = pyc.compile(unary("Relu", [6]))
    np.testing.assert_array_equal(flat(numbers), EXPECTED.ravel())
    block = (ctypes.c_float * 6)(*VALUES.ravel())
    tensor = pyc._native.tensor_at(ctypes.addressof(block), "f32", [2, 3])
    np.testing.assert_array_equal(pyc.compile(relu)(tensor), EXPECTED)
