import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
data = np.random.default_rng(1).standard_normal((50, 16)).astype(np.float32)
parts = [session.run(["probabilities"], {"x": data[i : i + 16]})[0] for i in range(0, len(data), 16)]
result = [np.concatenate(parts), np.concatenate(parts).argmax(axis=1)]
