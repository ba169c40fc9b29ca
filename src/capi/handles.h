#pragma once

// What stands behind the opaque handles.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_file.h"
#include "ir/graph.h"
#include "model_file/load.h"
#include "pyc/results.h"
#include "runtime/model.h"
#include "session/session.h"

struct pyc_graph {
  pyc::ir::GraphBuilder builder;
  const pyc::ir::Graph& graph() const { return builder.graph(); }
};

struct pyc_attrs {
  pyc::ir::Attrs attrs;
};

struct pyc_tensor {
  pyc::NewTensor tensor;
};

// Copies share their content.
struct pyc_result {
  pyc::DynValue value;
  std::string type_text;
  std::shared_ptr<const std::vector<pyc_result>> items;  // of a sequence
  int depth = 0;                                         // sequences in sequences
};

struct pyc_results {
  std::vector<pyc_result> values;
};

namespace pyc::capi {

// What is declared about an input or an output, with the memory that pyc_value_info points to.
struct Declared {
  std::string name;
  std::string type_text;
  std::vector<int64_t> shape;
  std::vector<std::string> symbols;
  std::vector<const char*> symbol_pointers;
  pyc_value_info info{};
};
std::vector<std::unique_ptr<const Declared>> declare(std::span<const open::OpenValue> values,
                                                     int32_t kind);

}  // namespace pyc::capi

struct pyc_model {
  std::unique_ptr<pyc::session::Session> session;
  pyc::driver::CompileOptions options;
  std::vector<std::unique_ptr<const pyc::capi::Declared>> inputs;
  std::vector<std::unique_ptr<const pyc::capi::Declared>> outputs;
};

struct pyc_model_file {
  pyc::model_file::LoadedModel model;
  std::vector<pyc::open::OpenType> input_types;
  std::vector<std::unique_ptr<const pyc::capi::Declared>> inputs;
  std::vector<std::unique_ptr<const pyc::capi::Declared>> outputs;
};

struct pyc_breaks {
  pyc::session::BreakReport report;
};

struct pyc_refusals {
  pyc::DecisionLog log;
};

namespace pyc::capi {

// Values as handles of the caller's.
pyc_result to_result(DynValue value);
void give_results(std::vector<DynValue> values, pyc_results** out);

// Fills `info` with an input or output (`kind`).
Status describe(std::span<const runtime::IoSpec> specs, size_t index, int32_t kind,
                pyc_value_info* info);

pyc_decision to_c(const Decision& decision);

// A session as a handle of the caller's.
Status give_model(Result<std::unique_ptr<session::Session>> session, driver::CompileOptions options,
                  pyc_model** out);
// A graph as a handle of the caller's.
Status give_graph(Result<ir::Graph> graph, pyc_graph** out);
// Fills `info` with entry `index` of the list.
Status describe(std::span<const std::unique_ptr<const Declared>> values, size_t index,
                std::string_view what, pyc_value_info* info);

}  // namespace pyc::capi
