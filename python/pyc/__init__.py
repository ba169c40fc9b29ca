"""PyC compiles machine-learning models and runs them.

    model = pyc.compile("model.onnx", threads=2)
    y = model(x)

Scripts written for ONNX Runtime run with `import pyc as ort`. docs/python.md has the rest.
"""

from __future__ import annotations

from . import capi, errors
from ._native import RunStats, Tensor, abi_version, devices
from ._native import version as __version__
from .builder import ModelBuilder, Value
from .errors import (
    BudgetExceededError,
    CompileFailedError,
    DtypeMismatchError,
    Error,
    InternalError,
    InvalidArgumentError,
    IoError,
    MisalignedError,
    NotFoundError,
    NullPointerError,
    OutOfMemoryError,
    ParseError,
    RankMismatchError,
    RuntimeFailedError,
    ShapeMismatchError,
    SizeMismatchError,
    UnknownOpError,
    UnknownOptionError,
    UnsupportedError,
    VerifyFailedError,
)
from .function import Function, function, ops
from .model import Clause, Model, Port, State, compile, compile_to_file
from .ort_options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from .ort_session import (
    InferenceSession,
    NodeArg,
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from .ort_values import IOBinding, OrtValue
from .reports import report
from .train import TrainData, Trainer, TrainResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .torch import from_torch, torch_report


def __getattr__(name: str) -> object:
    """What needs torch is there when it is asked for."""
    if name in ("from_torch", "torch_report"):
        from . import torch

        return getattr(torch, name)
    raise AttributeError(f"module 'pyc' has no attribute '{name}'")


__all__ = [
    "BudgetExceededError",
    "Clause",
    "CompileFailedError",
    "DtypeMismatchError",
    "Error",
    "ExecutionMode",
    "Function",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "MisalignedError",
    "Model",
    "ModelBuilder",
    "NodeArg",
    "NotFoundError",
    "NullPointerError",
    "OrtValue",
    "OutOfMemoryError",
    "ParseError",
    "Port",
    "RankMismatchError",
    "RunOptions",
    "RunStats",
    "RuntimeFailedError",
    "SessionOptions",
    "ShapeMismatchError",
    "SizeMismatchError",
    "State",
    "Tensor",
    "TrainData",
    "TrainResult",
    "Trainer",
    "UnknownOpError",
    "UnknownOptionError",
    "UnsupportedError",
    "Value",
    "VerifyFailedError",
    "__version__",
    "abi_version",
    "capi",
    "compile",
    "compile_to_file",
    "devices",
    "errors",
    "from_torch",
    "function",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "ops",
    "report",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
    "torch_report",
]
