import onnxruntime as ort
# The output of one model is the input of the next, as values.
import numpy as np

first = ort.InferenceSession("step.onnx")
x = ort.OrtValue.ortvalue_from_numpy(np.full((1, 4), 0.5, np.float32))
zero = ort.OrtValue.ortvalue_from_shape_and_type((1, 4), np.float32)
zero.update_inplace(np.zeros((1, 4), np.float32))
(y,) = first.run_with_ort_values(["y"], {"x": x, "state": zero})
(again,) = first.run_with_ort_values(["y"], {"x": y, "state": y})
result = [y.numpy(), again.numpy(), again.shape()]
