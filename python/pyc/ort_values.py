"""OrtValue and IOBinding: memory that inputs and outputs are bound to, with ONNX Runtime's names."""

from __future__ import annotations

from . import _native
from .errors import InvalidArgumentError, UnsupportedError
from .ort_types import ONNX_NUMBER, dtype_name, ort_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy import ndarray

    from .model import Model

_HOST = ("cpu", "cuda_pinned")


def _check_host(device_type: str) -> None:
    if device_type.lower() not in _HOST:
        raise UnsupportedError(f"memory of the device '{device_type}': models run on the host's memory")


class OrtValue:
    """A value of any kind. A tensor shares its memory with the array it was made from."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value: Any = value

    @staticmethod
    def ortvalue_from_numpy(array: ndarray[Any, Any], device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _check_host(device_type)
        return OrtValue(array)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: ndarray[Any, Any], onnx_element_type: int) -> OrtValue:
        """The array's bits as elements of another type of the same size: bf16 in uint16."""
        from . import _arrays

        names = _native.dtype_names(dtype_name(onnx_element_type))
        return OrtValue(data.view(_arrays.dtype(*names)))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: object, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        _check_host(device_type)
        return OrtValue(_native.tensor(dtype_name(element_type), list(shape)))

    @staticmethod
    def from_dlpack(data: object, is_bool_tensor: bool = False) -> OrtValue:
        return OrtValue(data)

    def __dlpack__(self, **kwargs: object) -> object:
        return self._value.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._value.__dlpack_device__()
        return device

    def numpy(self) -> ndarray[Any, Any]:
        import numpy

        return self._value.numpy() if isinstance(self._value, _native.Tensor) else numpy.asarray(self._value)

    def _dtype(self) -> str:
        if isinstance(self._value, _native.Tensor):
            return self._value.dtype
        dtype = self._value.dtype
        return "string" if dtype.kind in "OSU" else dtype_name(dtype)

    def shape(self) -> list[int]:
        return list(self._value.shape)

    def data_type(self) -> str:
        if self.is_tensor_sequence():
            return f"seq({OrtValue(self._value[0]).data_type()})" if self._value else "seq()"
        return ort_type(self._dtype())

    def element_type(self) -> int:
        return ONNX_NUMBER[self._dtype()]

    def device_name(self) -> str:
        return "cpu"

    def data_ptr(self) -> int:
        if isinstance(self._value, _native.Tensor):
            return self._value.data_ptr
        address: int = self._value.ctypes.data
        return address

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return self.has_value() and not self.is_tensor_sequence()

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, (list, tuple))

    def is_sparse_tensor(self) -> bool:
        return False

    def update_inplace(self, array: ndarray[Any, Any]) -> None:
        import numpy

        numpy.copyto(self.numpy(), array, casting="no")


class IOBinding:
    """Where each input is read from and each output goes; made by InferenceSession.io_binding."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._input_names = {port.name for port in model.inputs}
        self._output_names = {port.name for port in model.outputs}
        self._inputs: dict[str, object] = {}
        self._outputs: dict[str, object | None] = {}
        self._results: dict[str, object] = {}

    def bind_cpu_input(self, name: str, array: object) -> None:
        self._bind(self._inputs, self._input_names, name, array)

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: object,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Memory at an address, which the caller keeps until the runs are over."""
        _check_host(device_type)
        tensor = _native.tensor_at(buffer_ptr, dtype_name(element_type), list(shape))
        self._bind(self._inputs, self._input_names, name, tensor)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self._bind(self._inputs, self._input_names, name, value._value)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: object = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Without a buffer: memory that each run makes."""
        _check_host(device_type)
        target: object | None = None
        if buffer_ptr is not None:
            if shape is None:
                raise InvalidArgumentError(f"output '{name}': memory at an address needs a shape", name)
            target = _native.tensor_at(buffer_ptr, dtype_name(element_type), list(shape))
        self._bind(self._outputs, self._output_names, name, target)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self._bind(self._outputs, self._output_names, name, value._value)

    @staticmethod
    def _bind(bound: dict[str, Any], names: set[str], name: str, value: object | None) -> None:
        if name not in names:
            raise InvalidArgumentError(f"the model has no '{name}' to bind: it has {', '.join(sorted(names))}", name)
        bound[name] = value

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: the memory is the host's."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: a run has ended when it returns."""

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()

    def run(self) -> None:
        targets = [self._outputs.get(port.name) for port in self._model.outputs]
        found = self._model.run(self._inputs, targets, tensors=True)
        by_name = {port.name: value for port, value in zip(self._model.outputs, found)}
        self._results = {name: by_name[name] for name in self._outputs}

    def get_outputs(self) -> list[OrtValue]:
        """In the order they were bound."""
        return [OrtValue(value) for value in self._results.values()]

    def copy_outputs_to_cpu(self) -> list[ndarray[Any, Any]]:
        return [value.numpy().copy() for value in self.get_outputs()]
