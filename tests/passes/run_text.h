#pragma once

// Runs a graph on the reference backend with some passes left out.

#include <string>
#include <vector>

#include "driver/compile.h"
#include "ir/graph.h"
#include "passes/pipeline.h"
#include "session/model.h"
#include "support/verified.h"

namespace pyc::passes {

using Bytes = std::vector<std::byte>;

// Names of all passes that may be left out.
inline std::vector<std::string> optional_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) {
    if (!pass.required) names.emplace_back(pass.name);
  }
  return names;
}

// Names of those that may change bits.
inline std::vector<std::string> value_changing_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) {
    if (pass.value_changing) names.emplace_back(pass.name);
  }
  return names;
}

struct Outcome {
  std::string error;
  std::string canonical;  // the graph after the passes, as text
  std::vector<Bytes> outputs;
};

inline Status run_into(const ir::Graph& graph, const driver::CompileOptions& options,
                       const std::vector<Bytes>& inputs, std::vector<Bytes>& outputs) {
  PYC_ASSIGN(auto model, session::compile(graph, options));
  std::vector<Bytes> copies = inputs;
  std::vector<runtime::TensorView> input_views;
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    const runtime::IoSpec& spec = model->inputs()[i];
    input_views.push_back({copies[i].data(), spec.dtype, spec.shape, spec.bytes});
  }
  std::vector<runtime::TensorView> output_views;
  outputs.clear();
  for (const runtime::IoSpec& spec : model->outputs()) {
    outputs.emplace_back(static_cast<size_t>(spec.bytes) + 1);  // never empty, so never null
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const runtime::IoSpec& spec = model->outputs()[i];
    output_views.push_back({outputs[i].data(), spec.dtype, spec.shape, spec.bytes});
  }
  return model->run(input_views, output_views);
}

inline Outcome run_graph(const ir::Graph& graph, const std::vector<std::string>& off,
                         const std::vector<Bytes>& inputs) {
  driver::CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.cache = false;
  options.fuse = false;
  options.passes_off = off;
  Outcome outcome;
  const auto text = driver::dump(test::verified(graph), options, "passes");
  if (text.ok()) outcome.canonical = *text;
  const Status status = run_into(graph, options, inputs, outcome.outputs);
  if (!status.ok()) outcome.error = status.to_string();
  return outcome;
}

inline Outcome run_text(const std::string& text, const std::vector<std::string>& off,
                        const std::vector<Bytes>& inputs) {
  auto graph = driver::parse_model(text);
  if (!graph.ok()) return {graph.status().to_string(), "", {}};
  return run_graph(*graph, off, inputs);
}

}  // namespace pyc::passes
