"""The conversions that only numpy can do; the native module calls them when it meets a need."""

from __future__ import annotations

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def dtype(name: str, is_numpys: bool) -> numpy.dtype[Any]:
    found: numpy.dtype[Any] = numpy.dtype(name if is_numpys else _extension(name))
    return found


def _extension(name: str) -> Any:
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"numpy has no {name}: pip install ml_dtypes, or take the value by DLPack") from error
    return getattr(ml_dtypes, name)


def plain(value: object, declared: str | None) -> numpy.ndarray[Any, Any]:
    """A copy that can be viewed: its own dtype in this machine's byte order, row-major.

    What has no dtype (lists, numbers) gets the declared one, as far as that loses no kind of number.
    """
    array = numpy.asarray(value)
    if declared is not None and isinstance(value, (list, tuple, int, float, bool)):
        array = array.astype(declared, casting="same_kind")
    return numpy.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def strings(value: object) -> tuple[list[str | bytes], tuple[int, ...]]:
    """The strings of an array, row-major, and its shape."""
    array = numpy.asarray(value)
    if array.dtype.kind not in "OSUT":
        raise TypeError(f"expected strings, found an array of {array.dtype}")
    return array.ravel().tolist(), array.shape


def object_array(items: list[str], shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
    array = numpy.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)
