import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])
assert "CPUExecutionProvider" in ort.get_available_providers()
assert ort.get_device() in ("CPU", "GPU", "CPU-OPENBLAS")
result = [session.get_providers(), session.run(["hidden"], {"x": np.ones((1, 16), np.float32)})]
