import onnxruntime as ort
import numpy as np


def preprocess(image):
    image = image.astype(np.float32) / 255
    image = (image - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    return image.transpose(2, 0, 1)[np.newaxis]


session = ort.InferenceSession("conv.onnx", providers=["CPUExecutionProvider"])
image = (np.arange(8 * 8 * 3) * 7 % 256).astype(np.uint8).reshape(8, 8, 3)
logits = session.run(None, {session.get_inputs()[0].name: preprocess(image)})[0]
order = np.argsort(logits.ravel())[::-1]
result = [logits, order[:3]]
