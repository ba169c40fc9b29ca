"""The models to measure, beside the checkout in ../shared/models; one at a time is filled and given inputs."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PREPARE = Path(__file__).with_name("prepare.py")
SETS = {"skeletons": "skeletons", "more": "skeletons-more", "real": "real", "quantized": "skeletons"}
QUANTIZED = ("mobilenet-v2-qdq", "shufflenet-v2-int8")
# Sizes that open dims are measured at; others have those of prepare.py.
OPEN = {
    "bert_base_dynamic": {"3x24": {"batch": 3, "seq": 24}},
    "decoder4_past": {"64": {"past": 64}, "512": {"past": 512}},
}
QUANTIZERS = {"resnet50": "static", "bert_base_s128": "dynamic"}  # ONNX Runtime's own


@dataclass(frozen=True)
class Source:
    name: str
    file: Path
    data_set: Path = None  # a folder with input_N.pb; without one inputs are drawn
    skeleton: bool = False
    dims: tuple = ()  # (name, size) of open dims
    quantizer: str = ""

    @property
    def quantized(self):
        return bool(self.quantizer) or self.name in QUANTIZED

    def is_compared(self, output):
        """Whether an output is the same in every run: those that depend on random draws are not in the data set."""
        return self.data_set is None or Path(self.data_set, f"output_{output}.pb").exists()


def sources(folder, chosen):
    """The models of a set, by name; none where the folder is not there."""
    where = folder / SETS[chosen]
    if chosen == "real":
        return [Source(file.parent.name, file, file.parent / "test_data_set_0") for file in sorted(where.glob("*/model.onnx"))]
    files = sorted(where.glob("*.onnx"))
    if chosen == "quantized":
        return [Source(f"{file.stem}_{QUANTIZERS[file.stem]}", file, skeleton=True, quantizer=QUANTIZERS[file.stem])
                for file in files if file.stem in QUANTIZERS]
    found = []
    for file in files:
        for name, dims in OPEN.get(file.stem, {"": {}}).items():
            found.append(Source("_".join(filter(None, (file.stem, name))), file, skeleton=True, dims=tuple(dims.items())))
    return found


def prepare(source, tool, scratch):
    """Writes the model and its inputs into the scratch folder: their two paths."""
    scratch.mkdir(parents=True, exist_ok=True)
    model, inputs = scratch / f"{source.name}.onnx", scratch / f"{source.name}.npz"
    if source.skeleton:
        _call("fill", source.file, tool, model)
    else:
        shutil.copyfile(source.file, model)
    if source.quantizer:
        _call("quantize", model, source.quantizer)
    _call("inputs", model, inputs, source.data_set or "", json.dumps(dict(source.dims)))
    return model, inputs


def _call(*arguments):
    done = subprocess.run([sys.executable, PREPARE, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"preparing {arguments[1]}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")


def difference(source, ours, theirs):
    """The largest difference of two files of outputs, as a part of an output's largest magnitude. ValueError where they do not
    agree, or none can be compared.

    Quantized models may differ by a tenth; of those that were trained the largest element must be the same one then.
    """
    import numpy as np

    limit = 0.1 if source.quantized else 1e-4
    worst = 0.0
    with np.load(ours) as left, np.load(theirs) as right:
        if left.files != right.files:
            raise ValueError(f"{len(left.files)} and {len(right.files)} outputs")
        compared = [name for i, name in enumerate(left.files) if source.is_compared(i)]
        if not compared:
            raise ValueError("no output can be compared")
        for name in compared:
            a, b = left[name], right[name]
            if a.shape != b.shape:
                raise ValueError(f"output {name}: shapes {a.shape} and {b.shape}")
            if a.size == 0:
                continue
            if not np.array_equal(np.isfinite(a), np.isfinite(b)):
                raise ValueError(f"output {name}: not finite in different places")
            a, b = np.nan_to_num(a.astype(np.float64)), np.nan_to_num(b.astype(np.float64))
            part = float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30))
            worst = max(worst, part)
            if part > limit:
                raise ValueError(f"output {name}: differs by {part:.2g} of its largest magnitude")
            if source.name in QUANTIZED and np.argmax(a) != np.argmax(b):
                raise ValueError(f"output {name}: the largest element is another one")
    return worst
