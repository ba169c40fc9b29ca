import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
hidden, probabilities = session.run(None, {"x": np.ones((2, 16), np.float32)})
hidden *= 2
probabilities[0, 0] = 7
result = [hidden, probabilities]
