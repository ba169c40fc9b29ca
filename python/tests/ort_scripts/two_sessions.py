import onnxruntime as ort
import numpy as np

first = ort.InferenceSession("mlp.onnx")
second = ort.InferenceSession("scalar.onnx")
hidden = first.run(["hidden"], {"x": np.ones((1, 16), np.float32)})[0]
result = second.run(["y"], {"x": hidden[0], "scale": np.array(3, np.float32)})
