#pragma once

// ONNX bytes → open graph. Every node gets its rule at once: a model with nodes that have none is
// refused with all of them named, before anything else is done.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "open/open_graph.h"

namespace pyc::onnx {

// A node for whose op there is no rule.
struct UnsupportedNode {
  std::string name;
  std::string op;
  std::string domain;
  int64_t opset = 0;
  std::string nearest;  // the known op that is nearest by name, or ""
  int64_t since = 0;    // the first version of this op that has a rule; 0: none has

  std::string operator_name() const;  // with its domain
  std::string to_string() const;
};

struct ModelInfo {
  int64_t ir_version = 0;
  std::string producer;
  std::string domain;
  int64_t version = 0;  // of the model, as its maker counts
  std::string graph_name;
  std::string description;
  std::vector<std::pair<std::string, std::string>> metadata;  // keys and values, as in the file
  std::map<std::string, int64_t> opsets;                      // by domain
  std::map<std::string, int64_t> ops;        // how often each op occurs, regions included
  std::vector<UnsupportedNode> unsupported;  // every one, regions included
  int64_t parameter_bytes = 0;
  bool draws_numbers = false;  // some op draws random numbers
};

struct Imported {
  std::shared_ptr<const open::OpenGraph> graph;
  ModelInfo info;
};

// The model as it stands in the file: nodes without a rule have no op, info.unsupported names them,
// and the graph can be looked at but not run. kParseError (malformed), kVerifyFailed (contradicts
// itself), or the code of what is wrong with a tensor.
Result<Imported> read_model(SharedBytes bytes, const std::string& folder,
                            bool external_allowed = true);
// kUnknownOp, naming every operator that has no rule, with its nodes and a near name.
Status check_supported(const ModelInfo& info);

// Both together: a graph that can be run.
Result<Imported> import_model(SharedBytes bytes, const std::string& folder,
                              bool external_allowed = true);
// The same for a file; external data is looked for in its folder only.
Result<Imported> import_file(const std::string& path);

}  // namespace pyc::onnx
