import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("scalar.onnx")
result = session.run(None, {"x": np.float32([1, 2, 3]), "scale": np.array(2.5, np.float32)})
