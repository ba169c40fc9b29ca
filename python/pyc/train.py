"""Training: a model, a loss and an optimizer become steps over arrays."""

from __future__ import annotations

import os

from . import _native
from .errors import UnknownOptionError
from .model import Model, Port, graph_of, in_order, option_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NamedTuple

    class TrainResult(NamedTuple):
        loss: float
        norm: float
        step: int
        skipped: bool

else:
    from collections import namedtuple

    TrainResult = namedtuple("TrainResult", "loss norm step skipped")
    TrainResult.__doc__ = """What a step did: its loss, the norm of all gradients, the steps done with it.

    skipped: loss or norm was not finite, and on_nan="skip" says to pass such a step over."""


class Trainer:
    """A training run of a model, whose float constants are trained.

        trainer = pyc.Trainer("mlp.onnx", loss="mse", optimizer="adamw", lr=1e-3, threads=2)
        while trainer.step(x, target).loss > 0.1: ...
        trainer.export("trained.onnx")

    The model is one that pyc.compile takes and that is one graph. Options are those of training (docs/training.md) and of
    a compile (docs/options.md). Threads that share a trainer wait for one another.
    """

    def __init__(self, model: object, **options: object) -> None:
        training = {name for name, _, _ in _native.train_options()}
        known = [*training, *(name for name, _, _ in _native.options()), "contract"]
        for name in options:
            if name not in known:
                near = _native.closest_name(name, known)
                hint = f"did you mean '{near}'?" if near else "docs/training.md and docs/options.md list them"
                raise UnknownOptionError(f"there is no option '{name}': {hint}", name)
        texts = option_list({name: value for name, value in options.items() if name not in training})
        chosen = option_list({name: value for name, value in options.items() if name in training})
        self._native = _native.make_trainer(graph_of(model, texts), chosen, texts)
        #: The arrays a step takes: the model's inputs, then "target" unless the loss is "output".
        self.batch = [Port(*port) for port in self._native.batch()]
        self._names = [port.name for port in self.batch]
        self._state = {port[0]: (index, trained) for index, (port, trained) in enumerate(self._native.state())}

    def step(self, *args: object, **kwargs: object) -> TrainResult:
        """One step, over a batch of arrays by position or by name, or over the next batch of a TrainData.

        A step that is refused leaves everything as it was before it.
        """
        if len(args) == 1 and isinstance(args[0], TrainData):
            return TrainResult(*self._native.step_data(args[0]._native))
        return TrainResult(*self._native.step(in_order(self._names, kwargs, args) if kwargs else list(args)))

    def evaluate(self, *args: object, **kwargs: object) -> float:
        """The loss of a batch, or the mean over one pass of a TrainData; nothing changes."""
        if len(args) == 1 and isinstance(args[0], TrainData):
            return self._native.evaluate_data(args[0]._native)
        return self._native.evaluate(in_order(self._names, kwargs, args) if kwargs else list(args))

    @property
    def steps_done(self) -> int:
        return self._native.steps_done()

    def parameters(self) -> dict[str, Any]:
        """Copies of what is trained, as numpy arrays by name."""
        return {name: self._native.get_state(index) for name, (index, trained) in self._state.items() if trained}

    def state(self) -> dict[str, Any]:
        """The same of everything a step changes: parameters, the optimizer's values, the count of steps."""
        return {name: self._native.get_state(index) for name, (index, _) in self._state.items()}

    def set_state(self, values: Mapping[str, object]) -> None:
        """Copies arrays into parameters and other values of the state."""
        for name in values:
            if name not in self._state:
                near = _native.closest_name(name, list(self._state))
                hint = f"did you mean '{near}'?" if near else f"it has {', '.join(self._state)}"
                raise UnknownOptionError(f"the trainer has no value '{name}': {hint}", name)
        for name, value in values.items():
            self._native.set_state(self._state[name][0], value)

    def digest(self) -> str:
        """Of the parameters' names, types and bits; `pyc train` prints the same."""
        return self._native.digest()

    def data(self, path: str | os.PathLike[str], seed: int | None = None) -> TrainData:
        """Rows of a .npz or .safetensors file, or of a folder of .npy files, as batches; with a seed each pass has an order of its own."""
        return TrainData(self, path, seed)

    def save(self, folder: str | os.PathLike[str], *, keep: int = 3, data: TrainData | None = None) -> str:
        """Writes a checkpoint, removes all but the `keep` newest; returns its path."""
        return self._native.save(os.fspath(folder), keep, data._native if data else None)

    def resume(self, folder: str | os.PathLike[str], *, data: TrainData | None = None) -> dict[str, Any]:
        """Goes on from the newest good checkpoint: {"checkpoint": its path, or None where there is none, "step",
        "passed_over": ["FILE: why", …]}."""
        import json

        report: dict[str, Any] = json.loads(self._native.resume(os.fspath(folder), data._native if data else None))
        return report

    def export(self, path: str | os.PathLike[str], **options: object) -> None:
        """Writes the model with the parameters as they are: as ONNX, or compiled where the name ends in .pycm."""
        path = os.fspath(path)
        if path.endswith(".pycm"):
            self._native.graph().compile_to_file(path, option_list(options))
        else:
            self._native.graph().export_onnx(path)

    def compile(self, **options: object) -> Model:
        """The model with the parameters as they are, to be called."""
        return Model(self._native.graph().compile(option_list(options)), self._native.graph)


class TrainData:
    """Rows of a file or folder (Trainer.data) as batches for a trainer: an array for each of Trainer.batch, the first dim counting rows."""

    def __init__(self, trainer: Trainer, path: str | os.PathLike[str], seed: int | None = None) -> None:
        self._native = trainer._native.load_data(os.fspath(path), seed)

    def info(self) -> dict[str, Any]:
        """rows, batch_rows, batches (of a pass), position (batches taken so far) and digest (of all arrays)."""
        return self._native.info()
