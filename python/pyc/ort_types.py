"""Element types by the names and numbers that ONNX Runtime and ONNX have for them."""

from __future__ import annotations

from .errors import DtypeMismatchError

# PyC's name, ONNX Runtime's, numpy's or ml_dtypes', the number in ONNX's TensorProto.
_TYPES = [
    ("f32", "float", "float32", 1),
    ("u8", "uint8", "uint8", 2),
    ("i8", "int8", "int8", 3),
    ("u16", "uint16", "uint16", 4),
    ("i16", "int16", "int16", 5),
    ("i32", "int32", "int32", 6),
    ("i64", "int64", "int64", 7),
    ("string", "string", "object", 8),
    ("bool", "bool", "bool", 9),
    ("f16", "float16", "float16", 10),
    ("f64", "double", "float64", 11),
    ("u32", "uint32", "uint32", 12),
    ("u64", "uint64", "uint64", 13),
    ("c64", "complex64", "complex64", 14),
    ("c128", "complex128", "complex128", 15),
    ("bf16", "bfloat16", "bfloat16", 16),
    ("f8e4m3fn", "float8e4m3fn", "float8_e4m3fn", 17),
    ("f8e4m3fnuz", "float8e4m3fnuz", "float8_e4m3fnuz", 18),
    ("f8e5m2", "float8e5m2", "float8_e5m2", 19),
    ("f8e5m2fnuz", "float8e5m2fnuz", "float8_e5m2fnuz", 20),
    ("u4", "uint4", "uint4", 21),
    ("i4", "int4", "int4", 22),
    ("f4e2m1", "float4e2m1", "float4_e2m1fn", 23),
    ("f8e8m0", "float8e8m0", "float8_e8m0fnu", 24),
    ("u2", "uint2", "uint2", 25),
    ("i2", "int2", "int2", 26),
]
_ORT_NAME = {pyc: ort for pyc, ort, _, _ in _TYPES}
_BY_NUMPY = {numpy: pyc for pyc, _, numpy, _ in _TYPES}
_BY_ONNX = {onnx: pyc for pyc, _, _, onnx in _TYPES}
ONNX_NUMBER = {pyc: onnx for pyc, _, _, onnx in _TYPES}


def numpy_names() -> dict[str, str]:
    """PyC's names by those of numpy and ml_dtypes."""
    return _BY_NUMPY


def ort_type(text: str) -> str:
    """f32[batch,3]: tensor(float); sequence(i64[?]): seq(tensor(int64))."""
    for word, ort in (("sequence(", "seq("), ("optional(", "optional(")):
        if text.startswith(word):
            return f"{ort}{ort_type(text[len(word) : -1])})"
    name = text.split("[")[0]
    return f"tensor({_ORT_NAME.get(name, name)})"


def dtype_name(element_type: object) -> str:
    """PyC's name for a numpy dtype, a scalar type of numpy's or a number of ONNX's TensorProto."""
    if isinstance(element_type, int):
        found = _BY_ONNX.get(element_type)
    else:
        name = getattr(element_type, "__name__", None) or getattr(element_type, "name", None) or str(element_type)
        found = _BY_NUMPY.get(name.rstrip("_"))
    if found is None or found == "string":
        raise DtypeMismatchError(f"{element_type!r} is no element type of memory")
    return found
