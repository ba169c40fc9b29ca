#pragma once

// Model files. The one place that knows their formats, which are told apart by content.

#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::driver {

// A graph from a model's bytes: text IR. kUnsupported, naming what the bytes look like, for
// content of another kind; else the refusals of the format.
Result<ir::Graph> load_model(std::string_view bytes);
// The same for a file; messages start with its path.
Result<ir::Graph> load_model_file(const std::string& path);

}  // namespace pyc::driver
