import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidProtobuf, NoSuchFile

result = []
try:
    ort.InferenceSession("missing.onnx")
except NoSuchFile:
    result.append("no such file")
with open("broken.onnx", "wb") as file:
    file.write(b"\xff" * 100)
try:
    ort.InferenceSession("broken.onnx")
except InvalidProtobuf:
    result.append("no model")
