import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("strings.onnx")
found = session.run(None, {"s": np.array(["one", "zwei", "drei", ""], dtype=object)})[0]
result = [found.tolist(), str(found.dtype)]
