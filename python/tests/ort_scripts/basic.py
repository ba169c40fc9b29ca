import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)
result = session.run(None, {session.get_inputs()[0].name: x})
