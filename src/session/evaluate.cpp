#include "session/evaluate.h"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/value_meter.h"
#include "driver/folded.h"
#include "exec/run_values.h"
#include "session/model.h"

namespace pyc::session {

namespace {

Result<std::vector<SharedBytes>> evaluate_with(ir::Graph graph, eval::Evaluators* evaluators) {
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
  PYC_ASSIGN(auto folded, driver::folded_outputs(given, evaluators));
  if (folded) return std::move(*folded);
  driver::CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.cache = false;
  PYC_ASSIGN(const std::unique_ptr<runtime::Model> model, compile(std::move(given), options));
  runtime::RunStats measured;
  PYC_ASSIGN(const std::vector<DynValue> results, exec::run_values(*model, {}, measured));
  std::vector<SharedBytes> bytes;
  for (const DynValue& value : results) bytes.push_back(value.bytes);
  return bytes;
}

// Results by all that they follow from. What is full keeps what it has.
class KeptResults {
 public:
  bool find(const std::string& key, std::vector<SharedBytes>& results) const {
    const std::scoped_lock lock(mutex_);
    const auto it = results_.find(key);
    if (it == results_.end()) return false;
    results = it->second;
    return true;
  }

  // For what is not kept.
  eval::Evaluators* evaluators() { return evaluators_.get(); }

  void keep(const std::string& key, const std::vector<SharedBytes>& results) {
    size_t bytes = key.size();
    for (const SharedBytes& result : results) bytes += result.size();
    const std::scoped_lock lock(mutex_);
    if (bytes_ + bytes > kMostBytes) return;
    if (results_.try_emplace(key, results).second) bytes_ += bytes;
  }

 private:
  static constexpr size_t kMostBytes = 1 << 20;

  const std::shared_ptr<eval::Evaluators> evaluators_ = driver::make_evaluators();
  mutable std::mutex mutex_;  // guards everything below
  std::unordered_map<std::string, std::vector<SharedBytes>> results_;
  size_t bytes_ = 0;
};

}  // namespace

Result<std::vector<SharedBytes>> evaluate(ir::Graph graph) {
  return evaluate_with(std::move(graph), nullptr);
}

open::Evaluate keeping_evaluate() {
  return [kept = std::make_shared<KeptResults>()](
             ir::Graph graph) -> Result<std::vector<SharedBytes>> {
    const MeterScope unmetered(nullptr);  // what is kept is the model's
    const std::string key = ir::fingerprint_key(graph);
    std::vector<SharedBytes> results;
    if (kept->find(key, results)) return results;
    PYC_ASSIGN(results, evaluate_with(std::move(graph), kept->evaluators()));
    kept->keep(key, results);
    return results;
  };
}

}  // namespace pyc::session
