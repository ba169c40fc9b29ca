"""A model behind PyC's C ABI (include/pyc), of whatever build's libpyc.so: what the worker needs of it.

Builds before ABI version 4 have a struct of options and another view of a tensor; both are spoken here, so that such a build
can be the one before.
"""

import ctypes as c

import numpy as np

NO_FUSE, NO_CACHE = 1, 4
TENSOR = 0
# PYC_DTYPE_*
DTYPES = {
    "bool": 0, "int8": 3, "int16": 4, "int32": 5, "int64": 6, "uint8": 9, "uint16": 10, "uint32": 11, "uint64": 12,
    "float16": 19, "bfloat16": 20, "float32": 21, "float64": 22,
}
NUMPY_TYPES = {number: np.dtype(name) for name, number in DTYPES.items() if name != "bfloat16"}  # NumPy has none


NAMED_OPTIONS_SINCE = 4  # the ABI version


class TensorView(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("data", c.c_void_p), ("byte_offset", c.c_int64), ("bytes", c.c_int64),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.c_void_p), ("rank", c.c_int64), ("dtype", c.c_int32),
                ("device_type", c.c_int32), ("device_id", c.c_int32), ("reserved", c.c_int32)]


class OlderTensorView(c.Structure):
    _fields_ = [("data", c.c_void_p), ("shape", c.POINTER(c.c_int64)), ("rank", c.c_int64), ("bytes", c.c_int64),
                ("dtype", c.c_int32), ("reserved", c.c_int32)]


class ValueInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("shape", c.POINTER(c.c_int64)), ("rank", c.c_int64),
                ("bytes", c.c_int64), ("dtype", c.c_int32), ("kind", c.c_int32), ("type", c.c_int32), ("reserved", c.c_int32),
                ("symbols", c.c_void_p), ("type_text", c.c_char_p)]


class OlderCompileOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_char_p), ("determinism", c.c_int32), ("threads", c.c_int32),
                ("lanes", c.c_int32), ("flags", c.c_uint32), ("memory_budget", c.c_int64), ("excluded_kernels", c.c_void_p),
                ("excluded_kernel_count", c.c_size_t), ("target", c.c_char_p), ("loop_limit", c.c_int64), ("dims", c.c_void_p),
                ("dim_count", c.c_size_t), ("shapes", c.c_void_p), ("shape_count", c.c_size_t), ("cache_dir", c.c_char_p),
                ("value_limit", c.c_int64)]


class Library:
    def __init__(self, path):
        self.so = c.CDLL(str(path))
        for name in ("pyc_version", "pyc_error_message", "pyc_error_node"):
            getattr(self.so, name).restype = c.c_char_p
        for name in ("pyc_model_output_count", "pyc_model_input_count", "pyc_results_count"):
            getattr(self.so, name).restype = c.c_size_t
        self.named_options = self.so.pyc_abi_version() >= NAMED_OPTIONS_SINCE
        self.view_type = TensorView if self.named_options else OlderTensorView

    def empty_view(self):
        return TensorView(struct_size=c.sizeof(TensorView)) if self.named_options else OlderTensorView()

    def view_of(self, array):
        """A view of an array, which must outlive it."""
        view = self.empty_view()
        view.data, view.rank, view.bytes = array.ctypes.data, array.ndim, array.nbytes
        view.shape = (c.c_int64 * max(1, array.ndim))(*array.shape)
        view.dtype = DTYPES[array.dtype.name]
        return view

    def views_of(self, arrays):
        return (self.view_type * max(1, len(arrays)))(*map(self.view_of, arrays))

    def version(self):
        return self.so.pyc_version().decode()

    def call(self, name, *args):
        error = c.c_void_p()
        if getattr(self.so, name)(*args, c.byref(error)) != 0:
            message = self.so.pyc_error_message(error).decode() if error else "no memory"
            self.so.pyc_error_destroy(error)
            raise RuntimeError(f"{name}: {message}")

    def compile(self, path, threads, flags=0):
        model = c.c_void_p()
        if not self.named_options:
            options = OlderCompileOptions(struct_size=c.sizeof(OlderCompileOptions), threads=threads, flags=flags)
            self.call("pyc_compile_model_file", str(path).encode(), c.byref(options), c.byref(model))
            return model
        options = c.c_void_p()
        self.call("pyc_compile_options_create", c.byref(options))
        chosen = {"threads": str(threads)}
        chosen |= {"fuse": "off"} if flags & NO_FUSE else {}
        chosen |= {"cache": "off"} if flags & NO_CACHE else {}
        try:
            for name, value in chosen.items():
                self.call("pyc_compile_options_set", options, name.encode(), value.encode())
            self.call("pyc_compile_model_file", str(path).encode(), options, c.byref(model))
        finally:
            self.so.pyc_compile_options_destroy(options)
        return model

    def destroy(self, model):
        self.so.pyc_destroy_model(model)


class Model:
    """A compiled model with its inputs. Fixed shapes run into outputs made once, open ones into results of each run."""

    def __init__(self, library, handle, inputs):
        self.library = library
        self.handle = handle
        self.inputs = [array.copy(order="C") for array in inputs]
        count = library.so.pyc_model_input_count(handle)
        if count != len(self.inputs):
            raise RuntimeError(f"the model has {count} inputs, {len(self.inputs)} were given")
        self.views = library.views_of(self.inputs)
        self.open = library.so.pyc_model_is_open(handle) != 0
        if not self.open:
            self.outputs = [self._output(i) for i in range(library.so.pyc_model_output_count(handle))]
            self.output_views = library.views_of(self.outputs)

    def _output(self, index):
        info = ValueInfo(struct_size=c.sizeof(ValueInfo))
        self.library.call("pyc_model_output", self.handle, c.c_size_t(index), c.byref(info))
        return np.empty([info.shape[i] for i in range(info.rank)], NUMPY_TYPES[info.dtype])

    def run(self):
        inputs = (self.handle, self.views, c.c_size_t(len(self.inputs)))
        if self.open:
            results = c.c_void_p()
            self.library.call("pyc_run_model_dynamic", *inputs, c.byref(results), None)
            self.library.so.pyc_results_destroy(results)
        else:
            self.library.call("pyc_run_model", *inputs, self.output_views, c.c_size_t(len(self.outputs)), None)

    def run_for_outputs(self):
        if not self.open:
            self.run()
            return [output.copy() for output in self.outputs]
        results = c.c_void_p()
        self.library.call("pyc_run_model_dynamic", self.handle, self.views, c.c_size_t(len(self.inputs)), c.byref(results), None)
        outputs = [self._result(results, i) for i in range(self.library.so.pyc_results_count(results))]
        self.library.so.pyc_results_destroy(results)
        return outputs

    def _result(self, results, index):
        result, view = c.c_void_p(), self.library.empty_view()
        self.library.call("pyc_results_get", results, c.c_size_t(index), c.byref(result))
        self.library.call("pyc_result_tensor", result, c.byref(view))
        shape = [view.shape[i] for i in range(view.rank)]
        data = c.string_at(view.data, view.bytes) if view.bytes else b""
        return np.frombuffer(data, NUMPY_TYPES[view.dtype]).reshape(shape)
