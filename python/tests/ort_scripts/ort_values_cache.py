import onnxruntime as ort
# A decoder's loop: the state of one run is the input of the next.
import numpy as np

session = ort.InferenceSession("step.onnx")
state = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 4), np.float32))
result = []
for token in range(5):
    x = ort.OrtValue.ortvalue_from_numpy(np.full((1, 4), token, np.float32))
    y, state = session.run_with_ort_values(["y", "next"], {"x": x, "state": state})
    result.append(y.numpy())
result += [state.numpy(), state.shape(), state.data_type(), state.has_value()]
