import onnxruntime as ort
import numpy as np

with open("mlp.onnx", "rb") as file:
    session = ort.InferenceSession(file.read())
result = session.run(None, {"x": np.full((4, 16), 0.5, np.float32)})
