import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
found = session.run(None, {"x": np.zeros((0, 16), np.float32)})
result = [[list(one.shape) for one in found], found]
