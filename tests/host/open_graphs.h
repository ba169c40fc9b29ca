#pragma once

// Open graphs made by hand.

#include <memory>
#include <string>
#include <vector>

#include "import/onnx/rules.h"
#include "open/open_graph.h"
#include "session/session.h"

namespace pyc::host {

using open::OpenGraph;
using open::OpenId;
using open::OpenNode;

inline OpenNode node(std::string_view op, std::vector<OpenId> in, std::vector<OpenId> out) {
  return {.op = onnx::find_rule("", op, 16),
          .name = std::string(op),
          .version = 16,
          .inputs = std::move(in),
          .outputs = std::move(out),
          .attrs = {}};
}

inline std::shared_ptr<OpenGraph> graph_of(size_t values, std::vector<OpenId> in,
                                           std::vector<OpenId> out, std::vector<OpenNode> nodes) {
  auto g = std::make_shared<OpenGraph>();
  g->values.resize(values);
  g->inputs = std::move(in);
  g->outputs = std::move(out);
  g->nodes = std::move(nodes);
  return g;
}

inline Result<std::unique_ptr<session::Session>> session_of(
    std::shared_ptr<const OpenGraph> graph) {
  driver::CompileOptions options;
  options.device = "reference";
  options.cache = false;
  return session::Session::create(std::move(graph), options);
}

}  // namespace pyc::host
