import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("mlp.onnx")
binding = session.io_binding()
binding.bind_cpu_input("x", np.ones((2, 16), np.float32))
binding.bind_output("probabilities")
binding.bind_output("hidden", "cpu")
session.run_with_iobinding(binding)
result = [binding.copy_outputs_to_cpu(), [one.shape() for one in binding.get_outputs()]]
