"""InferenceSession with ONNX Runtime's names: an existing script runs with only the import changed."""

from __future__ import annotations

import os
import time
import warnings

from . import _native
from .errors import RuntimeFailedError, UnknownOptionError
from .model import Model, compile_native, model_file, option_list
from .ort_options import RunOptions, SessionOptions
from .ort_types import ort_type
from .ort_values import IOBinding, OrtValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .model import Port

_CPU = "CPUExecutionProvider"


def _provider(device: str) -> str:
    """cpu: CPUExecutionProvider; cuda: CUDAExecutionProvider; those that others have no name for are PyC's."""
    known = {"cpu": _CPU, "cuda": "CUDAExecutionProvider"}
    return known.get(device, f"PyC{device.capitalize()}ExecutionProvider")


def _devices(running: bool) -> dict[str, str]:
    return {_provider(name): name for name, runs in _native.devices() if runs or not running}


def get_available_providers() -> list[str]:
    """The devices that run models here, the fastest first."""
    order = ["CUDAExecutionProvider", _CPU]
    return sorted(_devices(running=True), key=lambda name: order.index(name) if name in order else len(order))


def get_all_providers() -> list[str]:
    return list(_devices(running=False))


def get_device() -> str:
    return "GPU" if "CUDAExecutionProvider" in get_available_providers() else "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Nothing to choose: PyC writes no log."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Nothing to choose: PyC writes no log."""


def set_seed(seed: int) -> None:
    """Nothing to choose: models that draw at random without a seed are refused."""


class NodeArg:
    """An input or an output: name, ONNX Runtime's type ("tensor(float)"), shape with names for open dims."""

    __slots__ = ("name", "shape", "type")

    def __init__(self, port: Port) -> None:
        self.name = port.name
        self.type = ort_type(port.type)
        self.shape = list(port.shape or ())

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What an ONNX file says of itself."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.producer_name: str = facts.get("producer", "")
        self.graph_name: str = facts.get("graph", "")
        self.domain: str = facts.get("domain", "")
        self.description: str = facts.get("description", "")
        self.graph_description = ""
        self.version: int = facts.get("version", 0)
        self.custom_metadata_map: dict[str, str] = facts.get("metadata", {})


class InferenceSession:
    """A compiled model behind ONNX Runtime's interface. Any number of threads may run it at once."""

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        provider_options: Sequence[dict[str, Any]] | None = None,
        **kwargs: object,
    ) -> None:
        self._source = path_or_bytes
        self._options = sess_options or SessionOptions()
        self._events: list[dict[str, Any]] = []
        self._start_ns = time.time_ns()
        self._compile(providers, provider_options)

    def _compile(
        self,
        providers: Sequence[str | tuple[str, dict[str, Any]]] | None,
        provider_options: Sequence[dict[str, Any]] | None,
    ) -> None:
        pairs = [(p, {}) if isinstance(p, str) else p for p in providers or get_available_providers()[:1]]
        for i, extra in enumerate(provider_options or ()):
            pairs[i] = (pairs[i][0], {**pairs[i][1], **extra})
        self._provider, chosen = _choose(pairs)
        self._provider_options = {name: {k: str(v) for k, v in values.items()} for name, values in pairs}
        known = {name for name, _, _ in _native.options()}
        contract = self._options.contract()
        contract["device"] = _devices(running=True)[self._provider]
        contract.update({key: value for key, value in chosen.items() if key in known})
        began = time.perf_counter_ns()
        #: The model itself, for what ONNX Runtime has no name for.
        self.model = Model(compile_native(self._source, contract))
        self._note("model_loading", "Session", began)
        if self._options.optimized_model_filepath:
            graph = model_file(self._source).graph(option_list({"dim": contract["dim"]}))
            graph.export_onnx(os.fspath(self._options.optimized_model_filepath))

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self.model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self.model.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return []

    def get_providers(self) -> list[str]:
        return list(dict.fromkeys([self._provider, _CPU]))

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: self._provider_options.get(name, {}) for name in self.get_providers()}

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        provider_options: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self._compile(providers, provider_options)

    def disable_fallback(self) -> None:
        """There is none: what a device cannot run is an error."""

    def enable_fallback(self) -> None:
        """There is none: what a device cannot run is an error."""

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_modelmeta(self) -> ModelMetadata:
        import json

        return ModelMetadata(json.loads(model_file(self._source).describe()))

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Numpy arrays that may be written to; lists for sequences, None for an empty optional."""
        chosen = self._output_indices(output_names)
        if run_options is not None and run_options.terminate:
            raise RuntimeFailedError("the run was ended by RunOptions.terminate")
        began = time.perf_counter_ns()
        found = self.model.run(input_feed)
        self._note("model_run", "Session", began)
        return found if chosen is None else [found[i] for i in chosen]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: object,
        run_options: RunOptions | None = None,
    ) -> None:
        """Returns at once; the callback gets the outputs, user_data and "" or what went wrong, in another thread."""
        from threading import Thread

        def work() -> None:
            try:
                found = self.run(output_names, input_feed, run_options)
            except Exception as error:
                callback([], user_data, str(error))
            else:
                callback(found, user_data, "")

        Thread(target=work).start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        chosen = self._output_indices(output_names)
        found = self.model.run({name: value._value for name, value in input_dict_ort_values.items()}, tensors=True)
        return [OrtValue(found[i]) for i in (range(len(found)) if chosen is None else chosen)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self.model)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding.run()

    def _output_indices(self, names: Sequence[str] | None) -> list[int] | None:
        """None: all of them."""
        if not names:
            return None
        index = {port.name: i for i, port in enumerate(self.model.outputs)}
        for name in names:
            if name not in index:
                near = _native.closest_name(name, list(index))
                hint = f"did you mean '{near}'?" if near else f"the outputs are {', '.join(index)}"
                raise UnknownOptionError(f"the model has no output '{name}': {hint}", name)
        return [index[name] for name in names]

    def get_profiling_start_time_ns(self) -> int:
        return self._start_ns

    def end_profiling(self) -> str:
        """Writes what was timed as a trace (chrome://tracing, Perfetto) and returns its name; "" when not enabled."""
        import json

        if not self._options.enable_profiling:
            return ""
        path = f"{self._options.profile_file_prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._events, file)
        return path

    def _note(self, name: str, category: str, began_ns: int) -> None:
        if not self._options.enable_profiling:
            return
        from threading import get_ident

        now = time.perf_counter_ns()
        event = {"name": name, "cat": category, "ph": "X", "pid": os.getpid(), "tid": get_ident()}
        self._events.append({**event, "ts": began_ns // 1000, "dur": (now - began_ns) // 1000, "args": {}})


def _choose(pairs: Sequence[tuple[str, dict[str, Any]]]) -> tuple[str, dict[str, Any]]:
    """The first provider that is there; the CPU's when none is, as ONNX Runtime does it."""
    available = get_available_providers()
    for name, options in pairs:
        if name in available:
            return name, options
        warnings.warn(
            f"Specified provider '{name}' is not in available provider names. "
            f"Available providers: '{', '.join(available)}'",
            UserWarning,
            stacklevel=4,
        )
    return _CPU, {}
