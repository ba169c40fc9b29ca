#pragma once

// ONNX bytes → open graph. Every node gets its rule at once: a model with nodes that have none is
// refused with all of them named, before anything else is done.

#include <map>
#include <memory>
#include <string>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "ir/open_graph.h"

namespace pyc::onnx {

struct ModelInfo {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;       // by domain
  std::map<std::string, int64_t> ops;          // how often each op occurs, regions included
  std::map<std::string, int64_t> unsupported;  // of those: without a rule
  int64_t parameter_bytes = 0;
};

struct Imported {
  std::shared_ptr<const ir::OpenGraph> graph;
  ModelInfo info;
};

// kParseError (malformed), kVerifyFailed (contradicts itself), kUnsupported (names every node that
// has no rule), or the code of what is wrong with a tensor.
Result<Imported> import_model(SharedBytes bytes, const std::string& folder,
                              bool external_allowed = true);
// The same for a file; external data is looked for in its folder only.
Result<Imported> import_file(const std::string& path);
// What the file holds, whether or not it can be imported.
Result<ModelInfo> inspect_file(const std::string& path);

}  // namespace pyc::onnx
