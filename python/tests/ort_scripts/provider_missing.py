import onnxruntime as ort
import warnings

import numpy as np

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    session = ort.InferenceSession("mlp.onnx", providers=["TensorrtExecutionProvider", "CPUExecutionProvider"])
found = [str(w.message).split(".")[0] for w in caught if "TensorrtExecutionProvider" in str(w.message)]
result = [found, session.get_providers(), session.run(None, {"x": np.ones((1, 16), np.float32)})]
