import onnxruntime as ort
import numpy as np
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

session = ort.InferenceSession("mlp.onnx")
try:
    session.run(None, {"x": np.ones((2, 16))})
    result = "ran"
except InvalidArgument:
    result = "refused"
