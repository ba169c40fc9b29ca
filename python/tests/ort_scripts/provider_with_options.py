import onnxruntime as ort
import numpy as np

providers = [("CPUExecutionProvider", {"use_arena": "1"})]
session = ort.InferenceSession("mlp.onnx", providers=providers)
result = session.run(None, {"x": np.zeros((3, 16), np.float32)})
