"""Graphs that ONNX cannot express, and graphs that vanish, show in the counts of scripts/differential.py.

usage: differential_counts.py ROOT
"""

import importlib.util
import sys
import tempfile
import types
from pathlib import Path
from unittest import mock

for name in ("numpy", "onnx", "onnxruntime"):  # what is tested here needs none of them
    sys.modules.setdefault(name, types.ModuleType(name))
path = Path(sys.argv[1]) / "scripts" / "differential.py"
spec = importlib.util.spec_from_file_location("differential", path)
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

PRINTED = "seed 3: node 'y' (nll_terms): no ONNX operator\nseed 4: node 'z' (nll_terms): no ONNX operator\nwritten=3 of 5\n"


class NoReasons:
    @staticmethod
    def explain(_text, _what):
        return None


def run(results, printed=PRINTED):
    with tempfile.TemporaryDirectory() as folder:
        made = types.SimpleNamespace(returncode=0, stdout=printed)
        script.WORK = Path(folder)

        def pretend(_folder, _tolerance):
            for seed in results:
                (script.WORK / "1" / f"{seed}.ir").write_text("graph", encoding="utf-8")
            return results

        with mock.patch.object(script, "program", lambda: "program"), \
             mock.patch.object(script, "results_of", pretend), \
             mock.patch.object(script.subprocess, "run", lambda *a, **k: made):
            (script.WORK / "1").mkdir()
            with mock.patch.object(script.Path, "mkdir", lambda *a, **k: None):
                return script.run_chunk(types.SimpleNamespace(nodes=2, tolerance=1e-4), NoReasons, "pairs", 1, 5)


counts = run({"1": ["same", ""], "2": ["same", ""], "5": ["same", ""]})
assert counts["not_exported"] == 2, counts
assert counts["same"] == 3 and counts["drawn"] == 5, counts
try:
    run({"1": ["same", ""], "2": ["same", ""]})
except SystemExit as lost:
    assert "some are missing" in str(lost), lost
else:
    raise AssertionError("a graph that was neither compared nor left out must not pass")
print("ok")
