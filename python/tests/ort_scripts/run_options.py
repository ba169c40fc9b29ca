import onnxruntime as ort
import numpy as np

options = ort.RunOptions()
options.log_severity_level = 4
options.logid = "run 1"
options.only_execute_path_to_fetches = True
options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
session = ort.InferenceSession("mlp.onnx")
result = session.run(["hidden"], {"x": np.ones((2, 16), np.float32)}, options)
