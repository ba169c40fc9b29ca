import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
x = np.ones((2, 16), np.float32)
result = [session.run(["probabilities", "hidden"], {"x": x}), session.run(["hidden"], {"x": x}), session.run([], {"x": x})]
