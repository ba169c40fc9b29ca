import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
try:
    session.run(None, {"x": np.ones((2, 17), np.float32)})
    result = "ran"
except ort.capi.onnxruntime_pybind11_state.InvalidArgument as error:
    result = ["refused", "x" in str(error)]
