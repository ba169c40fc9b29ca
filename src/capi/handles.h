#pragma once

// What stands behind the opaque handles.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "io/tensor_file.h"
#include "ir/graph.h"
#include "pyc/compiler_api.h"
#include "runtime/model.h"

struct pyc_graph {
  pyc::ir::GraphBuilder builder;
  const pyc::ir::Graph& graph() const { return builder.graph(); }
};

struct pyc_attrs {
  pyc::ir::Attrs attrs;
};

struct pyc_tensor {
  pyc::io::Tensor tensor;
};

struct pyc_model {
  std::unique_ptr<pyc::runtime::Model> model;
  std::string fingerprint;
  pyc::driver::CompileOptions options;
};

struct pyc_refusals {
  pyc::DecisionLog log;
};

namespace pyc::capi {

// The view as the runtime takes it; `out` keeps its memory from call to call.
Status to_view(const pyc_tensor_view& view, runtime::TensorView& out);
// That the view is whole: a known type, memory, exactly the bytes of its type.
Result<ir::TensorType> check_view(const pyc_tensor_view* view);

// Fills `info` with an input or output (`kind`).
Status describe(std::span<const runtime::IoSpec> specs, size_t index, int32_t kind,
                pyc_value_info* info);

pyc_decision to_c(const Decision& decision);

}  // namespace pyc::capi
