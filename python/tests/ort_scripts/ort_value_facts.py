import onnxruntime as ort
import numpy as np

array = np.arange(6, dtype=np.int64).reshape(2, 3)
value = ort.OrtValue.ortvalue_from_numpy(array)
result = [value.shape(), value.data_type(), value.element_type(), value.is_tensor(), value.is_tensor_sequence()]
result += [value.is_sparse_tensor(), value.device_name().lower(), value.numpy(), value.data_ptr() == array.ctypes.data]
