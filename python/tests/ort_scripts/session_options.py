import onnxruntime as ort
import numpy as np

options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.inter_op_num_threads = 1
options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
options.log_severity_level = 3
options.enable_mem_pattern = False
options.enable_cpu_mem_arena = False
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = ort.InferenceSession("mlp.onnx", sess_options=options, providers=["CPUExecutionProvider"])
result = [
    session.run(None, {"x": np.ones((2, 16), np.float32)}),
    session.get_session_options().intra_op_num_threads,
    options.get_session_config_entry("session.intra_op.allow_spinning"),
]
