"""@pyc.function: a Python function over values becomes a model for each set of shapes it is called with."""

from __future__ import annotations

import functools
import inspect

from .builder import ModelBuilder, Value
from .errors import InvalidArgumentError
from .ort_types import dtype_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from .model import Model


class _Ops:
    """Every op of docs/ops.md as a function: pyc.ops.softmax(x, axis=-1)."""

    def __getattr__(self, op: str) -> Callable[..., Value]:
        if op.startswith("_"):
            raise AttributeError(op)

        def build(*args: object, **attributes: Any) -> Value:
            for arg in args:
                if isinstance(arg, Value):
                    found: Value = getattr(arg.builder, op)(*args, **attributes)
                    return found
            raise InvalidArgumentError(f"{op}: none of the arguments is a value of a function or a ModelBuilder", op)

        build.__name__ = op
        return build


ops = _Ops()


class Function:
    """What @pyc.function returns. Arguments by position are arrays; those by keyword are passed to the function as they
    are, and a model is made for each of their values."""

    def __init__(self, function: Callable[..., object], options: dict[str, Any]) -> None:
        self._function = function
        self._options = options
        self._models: dict[Hashable, Model] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *arrays: object, **settings: Hashable) -> Any:
        given = [self._array(array) for array in arrays]
        return self._model(given, settings)(*given)

    def model(self, *arrays: object, **settings: Hashable) -> Model:
        """The model that a call with these would run: for decisions(), memory(), pyc.report."""
        return self._model([self._array(array) for array in arrays], settings)

    @staticmethod
    def _array(array: object) -> Any:
        if hasattr(array, "dtype") and hasattr(array, "shape") and hasattr(array, "__array_interface__"):
            return array
        import numpy

        return numpy.asarray(array)

    def _model(self, arrays: list[Any], settings: dict[str, Hashable]) -> Model:
        signature = (tuple((array.dtype, array.shape) for array in arrays), tuple(sorted(settings.items())))
        model = self._models.get(signature)
        if model is None:
            model = self._models[signature] = self._compile(arrays, settings)
        return model

    def _compile(self, arrays: list[Any], settings: dict[str, Hashable]) -> Model:
        signature = inspect.signature(self._function)
        signature.bind(*arrays, **settings)  # a TypeError in Python's words where they do not fit
        named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in signature.parameters.values() if p.kind in named][: len(arrays)]
        names += [f"x{i}" for i in range(len(names), len(arrays))]  # of *arrays
        b = ModelBuilder(self._function.__name__)
        values = [b.input(name, dtype_name(array.dtype), array.shape) for name, array in zip(names, arrays)]
        result = self._function(*values, **settings)
        results = result if isinstance(result, tuple) else (result,)
        for i, value in enumerate(results):
            if not isinstance(value, Value):
                raise InvalidArgumentError(f"{self._function.__name__} returns {type(value).__name__}, not a value", "")
            b.output(value, f"y{i}" if len(results) > 1 else "y")
        return b.compile(**self._options)


def _function(function: Callable[..., object] | None = None, **options: object) -> object:
    """Makes a function over values one over arrays; options are those of pyc.compile.

    @pyc.function(threads=2)
    def layer(x, w, b):
        return pyc.ops.relu(x @ w + b)
    """
    if function is None:
        return lambda f: Function(f, options)
    return Function(function, options)


if TYPE_CHECKING:
    from typing import overload

    @overload
    def function(function: Callable[..., object], /) -> Function: ...
    @overload
    def function(**options: object) -> Callable[[Callable[..., object]], Function]: ...
    def function(*args: Any, **options: Any) -> Any: ...

else:
    function = _function
