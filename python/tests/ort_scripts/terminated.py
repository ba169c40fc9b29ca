import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
options = ort.RunOptions()
options.terminate = True
try:
    session.run(None, {"x": np.ones((2, 16), np.float32)}, run_options=options)
    result = "ran"
except Exception:
    result = "terminated"
