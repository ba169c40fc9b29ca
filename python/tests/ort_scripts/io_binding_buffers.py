import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("conv.onnx")
image = np.linspace(0, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)
logits = np.empty((1, 5), np.float32)
binding = session.io_binding()
binding.bind_input(
    name="image", device_type="cpu", device_id=0, element_type=np.float32, shape=image.shape, buffer_ptr=image.ctypes.data
)
binding.bind_output(
    name="logits", device_type="cpu", device_id=0, element_type=np.float32, shape=logits.shape, buffer_ptr=logits.ctypes.data
)
result = []
for scale in (1, 2, 3):
    image *= scale
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    result.append(logits.copy())
