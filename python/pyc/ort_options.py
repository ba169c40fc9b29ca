"""SessionOptions and RunOptions with ONNX Runtime's names.

docs/python.md says which fields choose something here. The others are there so that scripts can set them.
"""

from __future__ import annotations

from enum import IntEnum

from .errors import UnsupportedError


class GraphOptimizationLevel(IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class _Entries:
    """Settings by key, as both kinds of options have them."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _get(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"there is no entry '{key}'")
        return self._entries[key]


class SessionOptions(_Entries):
    # Slots: a misspelt field is an AttributeError, not a setting that chooses nothing.
    __slots__ = (
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "enable_profiling",
        "execution_mode",
        "execution_order",
        "graph_optimization_level",
        "inter_op_num_threads",
        "intra_op_num_threads",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "optimized_model_filepath",
        "profile_file_prefix",
        "use_deterministic_compute",
        "_dims",
    )

    def __init__(self) -> None:
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self._dims: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """"pyc.NAME" sets the option NAME of docs/options.md."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._get(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self._dims[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        raise UnsupportedError("dims are chosen by name, not by denotation")

    def register_custom_ops_library(self, path: str) -> None:
        raise UnsupportedError(f"{path}: libraries of operators cannot be loaded; a model can bring functions of its own")

    def contract(self) -> dict[str, object]:
        """What these options are for pyc.compile."""
        found: dict[str, object] = {"threads": self.intra_op_num_threads, "dim": self._dims}
        if self.use_deterministic_compute:
            found["determinism"] = "strict"
        if self.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL:
            found["fuse"] = False
        if not self.enable_mem_reuse:
            found["reuse"] = False
        prefix = "pyc."
        found.update({key[len(prefix) :]: value for key, value in self._entries.items() if key.startswith(prefix)})
        return found


class RunOptions(_Entries):
    __slots__ = (
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "only_execute_path_to_fetches",
        "terminate",
        "training_mode",
    )

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self.training_mode = False

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._get(key)
