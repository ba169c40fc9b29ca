import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(16, 4).T
result = [session.run(None, {"x": x}), session.run(None, {"x": np.asfortranarray(x)[::-1]})]
