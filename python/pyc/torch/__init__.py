"""PyC for torch: `pyc.from_torch` reads exported programs, `torch.compile(f, backend="pyc")` compiles graphs."""

from __future__ import annotations

from .errors import UnsupportedTorchError
from .export import TorchModel, from_torch
from .report import Break, GraphReport, torch_report
from .table import supported_ops

__all__ = ["Break", "GraphReport", "TorchModel", "UnsupportedTorchError", "from_torch", "supported_ops", "torch_report"]
