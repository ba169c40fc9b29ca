#include "session/evaluate.h"

#include "exec/run_values.h"
#include "session/model.h"

namespace pyc::session {

Result<std::vector<SharedBytes>> evaluate(ir::Graph graph) {
  driver::CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.cache = false;
  PYC_ASSIGN(const std::unique_ptr<runtime::Model> model, compile(std::move(graph), options));
  runtime::RunStats measured;
  PYC_ASSIGN(const std::vector<DynValue> results, exec::run_values(*model, {}, measured));
  std::vector<SharedBytes> bytes;
  for (const DynValue& value : results) bytes.push_back(value.bytes);
  return bytes;
}

}  // namespace pyc::session
