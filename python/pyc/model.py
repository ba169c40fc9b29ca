"""pyc.compile: a model in, a callable out."""

from __future__ import annotations

import os

from . import _native
from .builder import ModelBuilder
from .errors import InvalidArgumentError, UnknownOptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NamedTuple

    class Port(NamedTuple):
        name: str
        type: str
        dtype: str | None
        shape: tuple[int | str | None, ...] | None

else:
    from collections import namedtuple

    Port = namedtuple("Port", "name type dtype shape")
    Port.__doc__ = """An input or an output as the model declares it.

    type is "f32[batch,3]" or "sequence(i64[?])"; dtype "f32", or None when it is no tensor of numbers; a dim of shape is
    an int, the name of an open one, or None."""


_ARRAYS, _VIEWS, _TENSORS = _native.Form.ARRAYS, _native.Form.VIEWS, _native.Form.TENSORS


class Model:
    """A compiled model. Any number of threads may run it at once."""

    def __init__(self, native: _native.CompiledModel) -> None:
        self._native = native
        self.inputs = [Port(*port) for port in native.inputs()]
        self.outputs = [Port(*port) for port in native.outputs()]
        self._input_names = [port.name for port in self.inputs]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs it on inputs by position or by name; returns the output, or a tuple when there are several.

        Outputs are numpy arrays. Those of a model with open shapes are views of the result and read-only.
        """
        inputs = self._in_order(kwargs, args) if kwargs else list(args)
        outputs = self._native.run(inputs, None, None, _VIEWS)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(
        self,
        inputs: list[object] | tuple[object, ...] | Mapping[str, object],
        outputs: Sequence[object | None] | None = None,
        stats: _native.RunStats | None = None,
        *,
        tensors: bool = False,
    ) -> list[Any]:
        """The same in full: arrays to be filled, one or None for each output; what the run cost.

        With `tensors` new outputs are pyc.Tensor, which needs no numpy and has every dtype.
        """
        ordered = list(inputs) if isinstance(inputs, (list, tuple)) else self._in_order(inputs)
        return self._native.run(ordered, outputs, stats, _TENSORS if tensors else _ARRAYS)

    def _in_order(self, named: Any, args: Sequence[object] = ()) -> list[object]:
        if not args and len(named) == len(self._input_names):
            try:
                return [named[name] for name in self._input_names]
            except KeyError:
                pass  # said below
        names = self._input_names
        unknown = [name for name in named if name not in names]
        if unknown:
            near = _native.closest_name(unknown[0], names)
            hint = f"did you mean '{near}'?" if near else f"the inputs are {', '.join(names)}"
            raise UnknownOptionError(f"the model has no input '{unknown[0]}': {hint}", unknown[0])
        rest = names[len(args) :]
        twice = [name for name in names[: len(args)] if name in named]
        if twice:
            raise InvalidArgumentError(f"input '{twice[0]}' is given by position and by name", twice[0])
        missing = [name for name in rest if name not in named]
        if missing:
            raise InvalidArgumentError(f"input '{missing[0]}' is missing", missing[0])
        return [*args, *(named[name] for name in rest)]

    @property
    def is_open(self) -> bool:
        """Whether shapes are only known when it runs, or parts of it are no tensor code."""
        return self._native.is_open

    def stats(self) -> dict[str, int]:
        """Counts over all runs, and the time of the compile."""
        return self._native.stats()

    def memory(self) -> dict[str, int]:
        """Bytes by what they are for, planned before the run."""
        return self._native.memory()

    def decisions(self) -> dict[str, Any]:
        """Everything the compiler chose, and why: the decision log."""
        import json

        log: dict[str, Any] = json.loads(self._native.decision_log())
        return log

    def __repr__(self) -> str:
        inputs = ", ".join(f"{port.name}: {port.type}" for port in self.inputs)
        outputs = ", ".join(f"{port.name}: {port.type}" for port in self.outputs)
        return f"<pyc.Model ({inputs}) -> ({outputs})>"


def compile(model: object, **contract: object) -> Model:
    """Compiles a model: a path, its bytes, an onnx.ModelProto, a torch.export.ExportedProgram or a ModelBuilder.

    The contract is options by name (docs/options.md): threads=2, memory_budget=1 << 30, determinism="strict",
    dim={"batch": 4}, shape={"x": (2, 3)}, exclude=["f32_matmul"].
    """
    return Model(compile_native(model, contract))


def compile_native(model: object, contract: Mapping[str, object]) -> _native.CompiledModel:
    options = option_list(contract)
    model = _exported(model)
    if isinstance(model, ModelBuilder):
        return model.graph.compile(options)
    if isinstance(model, (str, os.PathLike)):
        return _native.compile_file(os.fspath(model), options)
    return _native.compile_bytes(model_bytes(model), options)


def compile_to_file(model: object, path: str | os.PathLike[str], **contract: object) -> None:
    """Compiles ahead of time into a .pycm file, which pyc.compile loads without a compiler."""
    options = option_list(contract)
    model = _exported(model)
    if isinstance(model, ModelBuilder):
        graph = model.graph
    else:
        graph = model_file(model).graph(options)
    graph.compile_to_file(os.fspath(path), options)


def _exported(model: object) -> object:
    """A torch.export.ExportedProgram as a ModelBuilder, others as they are. torch is not imported to find out."""
    if not any(cls.__name__ == "ExportedProgram" and cls.__module__.startswith("torch.") for cls in type(model).__mro__):
        return model
    from .torch import from_torch

    return from_torch(model)


def model_file(model: object) -> _native.ModelFile:
    if isinstance(model, (str, os.PathLike)):
        return _native.ModelFile.load(os.fspath(model))
    return _native.ModelFile.read(model_bytes(model))


def model_bytes(model: object) -> bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    serialize = getattr(model, "SerializeToString", None)  # onnx.ModelProto
    if serialize is None:
        raise InvalidArgumentError(
            "a model is a path, bytes, an onnx.ModelProto, a torch.export.ExportedProgram or a ModelBuilder, "
            f"not {type(model).__name__}"
        )
    data: bytes = serialize()
    return data


def option_list(contract: Mapping[str, object]) -> list[tuple[str, str]]:
    """Options as the C ABI takes them: text, one pair for each item of a list."""
    return [(name, text) for name, value in contract.items() for text in _texts(value)]


def _texts(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["on" if value else "off"]
    if hasattr(value, "items"):
        return [f"{key}={_item(item)}" for key, item in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [str(item) for item in value]
    return [os.fspath(value) if isinstance(value, os.PathLike) else str(value)]


def _item(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
