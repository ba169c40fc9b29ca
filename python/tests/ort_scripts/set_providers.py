import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
session.set_providers(["CPUExecutionProvider"])
session.disable_fallback()
result = [session.get_providers(), sorted(session.get_provider_options()), session.run(None, {"x": np.ones((1, 16), np.float32)})]
