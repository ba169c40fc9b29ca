"""Where ONNX Runtime keeps its exceptions."""

from . import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
