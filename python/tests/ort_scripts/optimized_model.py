import onnxruntime as ort
import numpy as np

options = ort.SessionOptions()
options.optimized_model_filepath = "written.onnx"
feed = {"image": np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)}
result = ort.InferenceSession("conv.onnx", options).run(None, feed)
result += ort.InferenceSession("written.onnx").run(None, feed)
