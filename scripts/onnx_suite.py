#!/usr/bin/env python3
"""Writes the complete backend suite of the installed onnx package: OUT/KIND/CASE with model.onnx and test_data_set_*.

The node cases are computed by the package's own numpy code; the others (simple, pytorch-*) are files it ships. Models
that would be downloaded are left out. Prints the number of cases. An OUT that already has this version is kept.
"""

import argparse
import shutil
import sys
from pathlib import Path

import onnx
import onnx.backend.test.loader as loader
from onnx import TensorProto, numpy_helper

SHIPPED = ("simple", "pytorch-converted", "pytorch-operator")


def to_bytes(value, info):
    """A value of a case as the bytes of its file; `info` is the graph's input or output it stands for."""
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    kinds = {"map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list,
             "optional_type": numpy_helper.from_optional, "tensor_type": numpy_helper.from_array}
    convert = kinds[info.type.WhichOneof("value")]
    return convert(value, info.name).SerializeToString()


def write_case(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                (data / f"{kind}_{i}.pb").write_bytes(to_bytes(value, info))


def write_suite(out):
    cases = loader.load_model_tests(kind="node")
    for case in cases:
        write_case(case, out / "node" / case.name)
    count = len(cases)
    for kind in SHIPPED:
        for case in loader.load_model_tests(kind=kind):
            shutil.copytree(case.model_dir, out / kind / case.name)
            count += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    stamp = out / "complete"
    if stamp.is_file() and stamp.read_text().startswith(f"onnx {onnx.__version__}:"):
        print(stamp.read_text().strip())
        return 0
    shutil.rmtree(out, ignore_errors=True)
    count = write_suite(out)
    stamp.write_text(f"onnx {onnx.__version__}: {count} cases\n")
    print(stamp.read_text().strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
