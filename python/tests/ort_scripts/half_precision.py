import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("half.onnx")
found = session.run(None, {"x": np.float16([[1, -2, 0.5, 3]])})[0]
result = [str(found.dtype), found.astype(np.float32)]
