import onnxruntime as ort
import threading

import numpy as np

session = ort.InferenceSession("mlp.onnx")
done = threading.Event()
result = []


def callback(outputs, user_data, error):
    result.extend([[np.array(one) for one in outputs], user_data, error])
    done.set()


session.run_async(None, {"x": np.ones((2, 16), np.float32)}, callback, "token")
assert done.wait(30)
