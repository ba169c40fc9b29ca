import onnxruntime as ort
import json
import os

import numpy as np

options = ort.SessionOptions()
options.enable_profiling = True
options.profile_file_prefix = "timing"
session = ort.InferenceSession("mlp.onnx", options)
for _ in range(3):
    session.run(None, {"x": np.ones((2, 16), np.float32)})
path = session.end_profiling()
assert session.get_profiling_start_time_ns() > 0
with open(path, encoding="utf-8") as file:
    events = json.load(file)
os.remove(path)
runs = [event for event in events if event["name"] == "model_run"]
result = [path.startswith("timing"), len(runs), all(event["dur"] >= 0 for event in runs)]
