"""The harness's side of the engines: each is a worker process that stays up while its model is measured."""

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
OURS = ("pyc", "pyc-unfused")
# Where stack and heap of a process begin within a page depends on its environment and on what it allocates: lengths of paths alone
# made the same library 2 % faster than itself. So every process gets another length.
_paddings = random.Random(5)


class EngineError(Exception):
    """An engine that could not load or run the model."""


@dataclass(frozen=True)
class Engine:
    label: str  # in tables: PyC, before, ONNX Runtime
    kind: str  # a key of worker.ENGINES
    library: str = ""  # PyC only: the libpyc.so


class Worker:
    """A started engine with its model loaded, until it is closed."""

    def __init__(self, engine, model, inputs, threads, outputs):
        self.engine = engine
        # A cache on disk would make the second build run the first one's code.
        environment = {name: text for name, text in os.environ.items() if name != "PYC_CACHE_DIR"}
        environment["PYC_BENCH_PADDING"] = "x" * _paddings.randrange(4096)
        self._process = subprocess.Popen([sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, text=True, env=environment)
        self.pid = self._process.pid
        try:
            self.facts = self._ask({"do": "load", "engine": engine.kind, "library": engine.library, "model": str(model),
                                    "inputs": str(inputs), "threads": threads, "outputs": str(outputs)})
        except EngineError:
            self.close()
            raise

    def _ask(self, command):
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise EngineError(f"{self.engine.label}: the process ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(f"{self.engine.label}: {answer['error']}")
        return answer

    def run(self, runs):
        """Nanoseconds of so many runs, one after another."""
        return self._ask({"do": "run", "runs": runs})["ns"]

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
