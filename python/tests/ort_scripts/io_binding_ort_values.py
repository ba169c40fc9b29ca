import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
x = ort.OrtValue.ortvalue_from_numpy(np.ones((2, 16), np.float32), "cpu", 0)
hidden = ort.OrtValue.ortvalue_from_shape_and_type([2, 8], np.float32, "cpu", 0)
binding = session.io_binding()
binding.bind_ortvalue_input("x", x)
binding.bind_ortvalue_output("hidden", hidden)
session.run_with_iobinding(binding)
first = hidden.numpy().copy()
x.update_inplace(np.full((2, 16), -1, np.float32))
session.run_with_iobinding(binding)
result = [first, hidden.numpy(), hidden.data_type(), hidden.device_name(), hidden.element_type(), hidden.is_tensor()]
