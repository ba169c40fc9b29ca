import onnxruntime as ort
import numpy as np

options = ort.SessionOptions()
options.add_free_dimension_override_by_name("batch", 3)
session = ort.InferenceSession("mlp.onnx", options)
result = [session.get_inputs()[0].shape, session.run(None, {"x": np.ones((3, 16), np.float32)})]
