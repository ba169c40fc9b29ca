import onnxruntime as ort
session = ort.InferenceSession("mlp.onnx")
result = []
for value in [*session.get_inputs(), *session.get_outputs()]:
    result.append([value.name, value.type, list(value.shape)])
result.append(len(session.get_overridable_initializers()))
for name in ("strings.onnx", "ints.onnx", "sequence.onnx"):
    other = ort.InferenceSession(name)
    result.append([[v.name, v.type] for v in [*other.get_inputs(), *other.get_outputs()]])
