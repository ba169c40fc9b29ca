import onnxruntime as ort
import numpy as np

session = ort.InferenceSession("cache.onnx")
cache = np.zeros((1, 0, 4), np.float32)
result = []
for token in range(6):
    key = np.full((1, 1, 4), token, np.float32)
    scores, cache = session.run(["scores", "cache_out"], {"key": key, "cache_in": cache})
    result.append(scores)
result.append(cache)
