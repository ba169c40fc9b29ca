"""PyTorch on a GPU in the ways it is fast: eager in a CUDA graph, torch.compile, both layouts of convolutions.

Which way is best for a model is found once for a version of PyTorch (gpu.py --rivals all --keep) and kept in bench/results/cuda_rivals_h200.json;
afterwards that one runs beside PyC.
"""

import json
import signal
from pathlib import Path

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch_graph import Graph

FOUND = Path(__file__).resolve().parent.parent / "results" / "cuda_rivals_h200.json"
HOST_INPUTS = {"Reshape", "Slice", "Expand", "Squeeze", "Unsqueeze", "Split", "ReduceMean", "Range"}  # read by the host behind the first
NUMBERS = {"Add", "Clip", "Div", "Mul", "Pow", "Sub", "Where"}  # take numbers behind the first, as a program of PyTorch would have them
IMAGE_RANK = 4  # of what has channels to put last


def laid_out(tensor, channels_last):
    return tensor.contiguous(memory_format=torch.channels_last) if channels_last and tensor.dim() == IMAGE_RANK else tensor


class TorchOnDevice(Graph):
    """The graph with its tensors on the device but for what the host reads: shapes, axes."""

    def __init__(self, path, dtype, channels_last=False):
        super().__init__(path)
        host = {name: value for name, value in self.constants.items()}
        moved = {}
        for name, value in host.items():
            if isinstance(value, torch.Tensor):
                moved[name] = laid_out(value.to("cuda", dtype if value.is_floating_point() else None), channels_last)
        numbers = {name: value.item() for name, value in moved.items() if value.dim() == 0}

        def place(kind, i, name):
            if i > 0 and kind in NUMBERS and name in numbers:
                return name + "@number"
            return name if name not in moved or (i > 0 and kind in HOST_INPUTS) else name + "@cuda"

        self.steps = [(call, [place(getattr(call, "kind", ""), i, name) for i, name in enumerate(names)], outputs, done)
                      for call, names, outputs, done in self.steps]
        self.constants = {**host, **{name + "@cuda": value for name, value in moved.items()},
                          **{name + "@number": value for name, value in numbers.items()}}
        self.outputs = [name + "@cuda" if name in moved else name for name in self.outputs]


def given_inputs(inputs, dtype, channels_last):
    return [laid_out(x.to(dtype), channels_last) if x.is_floating_point() else x for x in inputs]


def captured(path, names, inputs, dtype, channels_last):
    """The ops of the file one after another, in a CUDA graph: a function that replays it, its outputs, and what must be kept alive."""
    graph = TorchOnDevice(path, dtype, channels_last)
    given = dict(zip(names, given_inputs(inputs, dtype, channels_last)))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            graph.run(given)
    torch.cuda.synchronize()
    replayed = torch.cuda.CUDAGraph()
    with torch.cuda.graph(replayed):
        outputs = graph.run(given)

    def run():
        replayed.replay()
        torch.cuda.synchronize()

    run()
    return run, outputs, (graph, replayed)


def traced(path, names, given, dtype, channels_last):
    """The model as a module of ATen calls with its weights as buffers: nothing of the ONNX file is left for the compiler to stumble over."""
    graph = TorchOnDevice(path, dtype, channels_last)
    run = Graph.run.__wrapped__  # inference mode would mark what the trace makes
    module = make_fx(lambda *values: run(graph, dict(zip(names, values))))(*given)
    # A tensor that is no buffer is an input of every run, which replayed graphs copy.
    for name in [name for name, value in vars(module).items() if isinstance(value, torch.Tensor)]:
        value = getattr(module, name)
        delattr(module, name)
        module.register_buffer(name, value.clone(memory_format=torch.preserve_format))
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def compiled(mode):
    def make(path, names, inputs, dtype, channels_last):
        torch._dynamo.reset()
        given = given_inputs(inputs, dtype, channels_last)
        with torch.no_grad():
            module = traced(path, names, given, dtype, channels_last)
            call = torch.compile(module, mode=mode, fullgraph=True, dynamic=False)

            def run():
                with torch.no_grad():
                    outputs = call(*given)
                torch.cuda.synchronize()
                return outputs

            for _ in range(4):  # compiles, warms up, records, replays
                outputs = run()
        return run, [x.clone() for x in outputs], (module, call)

    return make


# name: how it is made, channels last
RIVALS = {
    "graph": (captured, False),
    "graph_last": (captured, True),
    "compile": (compiled("reduce-overhead"), False),
    "compile_last": (compiled("reduce-overhead"), True),
    "autotune": (compiled("max-autotune"), False),
    "autotune_last": (compiled("max-autotune"), True),
}


def make(name, path, names, inputs, dtype, seconds):
    """The rival, or TimeoutError where it is not ready after so many seconds."""
    how, channels_last = RIVALS[name]

    def late(*_):
        raise TimeoutError(f"not ready in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        return how(path, names, inputs, dtype, channels_last)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def key(model, precision):
    return f"{model} {precision}"


def read_found():
    found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return found if found.get("torch") == torch.__version__ else {"torch": torch.__version__, "models": {}}


def best_of(model, precision):
    """The rival that was best for the model with this PyTorch; eager in a graph where none was looked for."""
    return read_found()["models"].get(key(model, precision), {}).get("best", "graph")


def wanted(words, model, precision):
    if words == "best":
        return [best_of(model, precision)]
    return list(RIVALS) if words == "all" else words.split(",")


def keep(row):
    """Adds what was seen; a rival that was not ready or differs says so in place of its time."""
    found = read_found()
    found["device"] = torch.cuda.get_device_name()
    entry = found["models"].setdefault(key(row["model"], row["precision"]), {"us": {}})
    for name in RIVALS:
        seen = row.get(name + "_us", row.get(name + "_error"))
        if seen is not None:
            entry["us"][name] = round(seen, 1) if isinstance(seen, float) else seen
    times = {name: us for name, us in entry["us"].items() if isinstance(us, float)}
    if times:
        entry["best"] = min(times, key=times.get)
    FOUND.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
