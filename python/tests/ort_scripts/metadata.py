import onnxruntime as ort
meta = ort.InferenceSession("mlp.onnx").get_modelmeta()
result = [meta.producer_name, meta.graph_name, meta.version, meta.domain, meta.description, meta.custom_metadata_map]
