import onnxruntime as ort
from concurrent.futures import ThreadPoolExecutor

import numpy as np

session = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])


def infer(i):
    return session.run(["probabilities"], {"x": np.full((i % 3 + 1, 16), i / 10, np.float32)})[0]


with ThreadPoolExecutor(4) as pool:
    result = list(pool.map(infer, range(24)))
