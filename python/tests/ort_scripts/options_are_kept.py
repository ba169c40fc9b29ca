import onnxruntime as ort
options = ort.SessionOptions()
options.logid = "mine"
options.log_verbosity_level = 1
options.use_deterministic_compute = True
options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
levels = [int(getattr(ort.GraphOptimizationLevel, f"ORT_{name}")) for name in ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_ALL")]
session = ort.InferenceSession("mlp.onnx", options)
kept = session.get_session_options()
result = [kept.logid, kept.use_deterministic_compute, levels, kept.enable_profiling, session.end_profiling() == ""]
result.append(kept.execution_mode == ort.ExecutionMode.ORT_PARALLEL)
try:
    options.no_such_option = 1
    result.append("kept")
except AttributeError:
    result.append("refused")
