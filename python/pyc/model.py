"""pyc.compile: a model in, a callable out."""

from __future__ import annotations

import os

from . import _native
from .builder import ModelBuilder
from .errors import InvalidArgumentError, UnknownOptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NamedTuple

    Contract = Mapping[str, object] | str | os.PathLike[str]

    class Port(NamedTuple):
        name: str
        type: str
        dtype: str | None
        shape: tuple[int | str | None, ...] | None

    class State(NamedTuple):
        name: str
        type: str
        dtype: str
        shape: tuple[int, ...]
        output: str

    class Clause(NamedTuple):
        name: str
        answer: str
        reason: str
        detail: str

else:
    from collections import namedtuple

    Port = namedtuple("Port", "name type dtype shape")
    Port.__doc__ = """An input or an output as the model declares it.

    type is "f32[batch,3]" or "sequence(i64[?])"; dtype "f32", or None when it is no tensor of numbers; a dim of shape is
    an int, the name of an open one, or None."""
    State = namedtuple("State", "name type dtype shape output")
    State.__doc__ = """What a model keeps from run to run: the input it is, and the output that is its next value."""
    Clause = namedtuple("Clause", "name answer reason detail")
    Clause.__doc__ = """The answer to a clause of a contract: the option, "kept", by what (a code), and numbers that show it."""


_ARRAYS, _VIEWS, _TENSORS = _native.Form.ARRAYS, _native.Form.VIEWS, _native.Form.TENSORS


class Model:
    """A compiled model. Any number of threads may run it at once, unless it keeps state."""

    def __init__(self, native: _native.CompiledModel, source: Callable[[], _native.Graph | None] | None = None) -> None:
        self._native = native
        self._source = source
        self.inputs = [Port(*port) for port in native.inputs()]
        self.outputs = [Port(*port) for port in native.outputs()]
        self._input_names = [port.name for port in self.inputs]
        self.states = [_state(*state) for state in native.states()]

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

    def _in_order(self, named: Mapping[str, object], args: Sequence[object] = ()) -> list[object]:
        return in_order(self._input_names, named, args)

    def get_state(self, name: str) -> Any:
        """A copy of what the model keeps for its next run, as a numpy array."""
        return self._native.get_state(self._state(name))

    def set_state(self, name: str, value: object) -> None:
        """Copies an array into the state."""
        self._native.set_state(self._state(name), value)

    def reset_state(self, *names: str) -> None:
        """Makes the named states, or all of them, zeros, as they were before the first run."""
        for index in [self._state(name) for name in names] if names else range(len(self.states)):
            self._native.clear_state(index)

    def _state(self, name: str) -> int:
        names = [state.name for state in self.states]
        if name in names:
            return names.index(name)
        near = _native.closest_name(name, names)
        hint = f"did you mean '{near}'?" if near else f"it keeps {', '.join(names) or 'nothing'}"
        raise UnknownOptionError(f"the model has no state '{name}': {hint}", name)

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

    def contract(self) -> list[Clause]:
        """The answers of the contract that the model was compiled with: one for each option it has, by name."""
        clauses = self.decisions()["contract"]["clauses"]
        return [Clause(c["name"], c["answer"], c["reason"], c["detail"]) for c in clauses]

    def __repr__(self) -> str:
        inputs = ", ".join(f"{port.name}: {port.type}" for port in self.inputs)
        outputs = ", ".join(f"{port.name}: {port.type}" for port in self.outputs)
        return f"<pyc.Model ({inputs}) -> ({outputs})>"


def in_order(names: list[str], named: Mapping[str, object], args: Sequence[object]) -> list[object]:
    """Inputs given by position and by name, in the order of `names`."""
    if not args and len(named) == len(names):
        try:
            return [named[name] for name in names]
        except KeyError:
            pass  # said below
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


def _state(port: Any, output: str) -> State:
    name, type, dtype, shape = port
    return State(name, type, dtype, shape, output)


def compile(model: object, *, contract: Contract | None = None, **options: object) -> Model:
    """Compiles a model: a path, its bytes, an onnx.ModelProto, a torch.export.ExportedProgram or a ModelBuilder.

    Options are those of docs/options.md by name: threads=2, memory_budget=1 << 30, determinism="strict",
    dim={"batch": 4}, shape={"x": (2, 3)}, exclude=["f32_matmul"], state={"keys": "keys.next"}.

    A contract has options too, as a dict or in a file of lines NAME = VALUE: each is kept, and Model.contract() says by
    what, or the compile is refused and the error names the clause.
    """
    chosen = options if contract is None else {**options, "contract": contract}
    return Model(compile_native(model, chosen), _source_of(model, chosen))


def compile_native(model: object, options: Mapping[str, object]) -> _native.CompiledModel:
    texts = option_list(options)
    model = _exported(model)
    if isinstance(model, ModelBuilder):
        return model.graph.compile(texts)
    if isinstance(model, (str, os.PathLike)):
        return _native.compile_file(os.fspath(model), texts)
    return _native.compile_bytes(model_bytes(model), texts)


def compile_to_file(
    model: object, path: str | os.PathLike[str], *, contract: Contract | None = None, **options: object
) -> None:
    """Compiles ahead of time into a .pycm file, which pyc.compile loads without a compiler."""
    texts = option_list(options if contract is None else {**options, "contract": contract})
    graph_of(model, texts).compile_to_file(os.fspath(path), texts)


def graph_of(model: object, texts: list[tuple[str, str]]) -> _native.Graph:
    """The model as one graph, with the shapes that the options choose."""
    model = _exported(model)
    return model.graph if isinstance(model, ModelBuilder) else model_file(model).graph(texts)


def _source_of(model: object, options: Mapping[str, object]) -> Callable[[], _native.Graph | None] | None:
    """How a report finds the graph again. Nothing is kept for it: a file is read again, a builder may be gone by then."""
    if isinstance(model, (str, os.PathLike)):
        path, texts = os.path.abspath(os.fspath(model)), option_list(options)
        return lambda: _native.ModelFile.load(path).graph(texts)
    if isinstance(model, ModelBuilder):
        import weakref

        builder = weakref.ref(model)
        return lambda: found.graph if (found := builder()) else None
    return None


def _exported(model: object) -> object:
    """A torch.export.ExportedProgram as a ModelBuilder, others as they are."""
    if not _is_torch(model, "ExportedProgram"):
        return model
    from .torch import from_torch

    return from_torch(model)


def _is_torch(model: object, name: str) -> bool:
    """Whether it is of torch's class of that name. torch is not imported to find out."""
    return any(cls.__name__ == name and cls.__module__.startswith("torch.") for cls in type(model).__mro__)


def model_file(model: object) -> _native.ModelFile:
    if isinstance(model, (str, os.PathLike)):
        return _native.ModelFile.load(os.fspath(model))
    return _native.ModelFile.read(model_bytes(model))


def model_bytes(model: object) -> bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    serialize = getattr(model, "SerializeToString", None)  # onnx.ModelProto
    if serialize is None:
        hint = ""
        if _is_torch(model, "Module"):
            hint = ': pass torch.export.export(module, inputs), or call torch.compile(module, backend="pyc")'
        raise InvalidArgumentError(
            "a model is a path, bytes, an onnx.ModelProto, a torch.export.ExportedProgram or a ModelBuilder, "
            f"not {type(model).__name__}{hint}"
        )
    data: bytes = serialize()
    return data


def option_list(options: Mapping[str, object]) -> list[tuple[str, str]]:
    """Options as the C ABI takes them: text, one pair for each item of a list; the text of a contract last."""
    pairs = [(name, text) for name, value in options.items() if name != "contract" for text in _texts(value)]
    return [*pairs, ("contract", _contract_text(options["contract"]))] if "contract" in options else pairs


def _contract_text(contract: Any) -> str:
    if not hasattr(contract, "items"):
        with open(os.fspath(contract), encoding="utf-8") as file:
            return file.read()
    clauses = option_list(contract)
    for name, text in clauses:
        if "\n" in text or "#" in text:
            raise InvalidArgumentError(f"contract: {name}: a clause is one line without '#', found {text!r}", name)
    return "".join(f"{name} = {text}\n" for name, text in clauses)


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
