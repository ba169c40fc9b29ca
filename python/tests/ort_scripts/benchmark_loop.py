import onnxruntime as ort
import time

import numpy as np

session = ort.InferenceSession("conv.onnx")
feed = {session.get_inputs()[0].name: np.ones(session.get_inputs()[0].shape, np.float32)}
for _ in range(3):
    session.run(None, feed)
times = []
for _ in range(20):
    began = time.perf_counter()
    found = session.run(None, feed)
    times.append(time.perf_counter() - began)
result = [found, np.percentile(times, 50) > 0]
