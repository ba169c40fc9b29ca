import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("sequence.onnx")
parts = session.run(None, {"x": np.arange(12, dtype=np.float32).reshape(6, 2)})[0]
result = [isinstance(parts, list), len(parts), parts]
