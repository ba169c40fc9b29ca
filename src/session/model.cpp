#include "session/model.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/fp_state.h"
#include "base/store.h"
#include "driver/contract.h"
#include "driver/devices.h"
#include "driver/fallback.h"
#include "session/artifacts.h"
#include "session/cache.h"
#include "session/cache_folder.h"

namespace pyc::session {
namespace {

using driver::Compiled;
using driver::CompileOptions;

// All that the program is made from, so that entries are compared by more than a hash; of constants
// their hashes of 128 bits.
std::string disk_key(const ir::Graph& graph, const CompileOptions& o) {
  return fmt::format("pyc={} {}{}", artifact::version(), program_key(o),
                     ir::fingerprint_key(graph));
}

Decision disk_decision(std::string_view chosen, std::string_view reason, std::string detail) {
  return {"disk_cache", std::string(chosen), std::string(reason), std::move(detail), {}};
}

// What the store has, or nothing and why.
Result<Compiled> stored(const Store& store, const std::string& key, int threads) {
  std::string problem;
  std::optional<SharedBytes> found = store.get(key, &problem);
  if (!found) return Status(problem.empty() ? Code::kNotFound : Code::kParseError, problem);
  PYC_ASSIGN(artifact::Artifact artifact,
             artifact::decode(std::move(*found), artifact::Checksums::kDone));
  return from_artifact(std::move(artifact), threads);
}

Status keep(const Store& store, const std::string& key, const artifact::Artifact& made) {
  PYC_ASSIGN(const std::vector<SharedBytes> pieces, artifact::encode(made));
  return store.put(key, pieces);
}

// What the store on disk has, or a new compile that is put there. No failure of the store stops a
// compile; the log says what happened.
Result<Compiled> build_on_disk(const ir::VerifiedGraph& given, const CompileOptions& o,
                               const Store& store) {
  const std::string key = disk_key(*given, o);
  const std::string entry = store.path_of(key);
  auto found = stored(store, key, driver::thread_count(o));
  if (found.ok()) {
    found->log.push_back(disk_decision("loaded", "found", entry));
    return found;
  }
  PYC_ASSIGN(artifact::Artifact made, compile_artifact(given, o));
  const Status written = keep(store, key, made);
  PYC_ASSIGN(Compiled compiled, from_artifact(std::move(made), driver::thread_count(o)));
  if (found.status().code() != Code::kNotFound) {
    compiled.log.push_back(
        disk_decision("compiled_again", "unusable_entry", found.status().message()));
  }
  compiled.log.push_back(
      written.ok() ? disk_decision("written", "not_found", entry)
                   : disk_decision("not_written", code_name(written.code()), written.message()));
  return compiled;
}

// Where parameters that stay in a file are put; not the folder that many systems keep in memory.
std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/var/tmp" : named;
}

Result<Compiled> build_or_load(ir::VerifiedGraph given, CompileOptions o) {
  const std::string folder = cache_folder(o);
  o.stream_folder = temporary_folder();
  PYC_ASSIGN(const backends::Backend* backend, driver::find_backend(o.device));
  if (!folder.empty() && o.target.empty() && o.policy.empty()) {
    CompileOptions named = o;
    named.target = backend->native_target();
    if (!named.target.empty()) return build_on_disk(given, named, Store(folder));
  }
  PYC_ASSIGN(Compiled compiled, driver::compile_program(std::move(given), o));
  PYC_TRY(driver::load(compiled, o.trace.get()));
  return compiled;
}

// `why` is what is to be known about the choice of the device.
Result<std::unique_ptr<runtime::Model>> compile_for(ir::VerifiedGraph given, CompileOptions o,
                                                    const DecisionLog& why, int64_t start) {
  PYC_TRY(read_tuning(o));
  const bool kept = o.cache && o.policy.empty();  // a policy's library may be another one by now
  const std::string key = kept ? cache_key(*given, o) : "";
  std::shared_ptr<const Compiled> compiled = kept ? cache_find(key) : nullptr;
  const bool hit = compiled != nullptr;
  DecisionLog log;
  if (!hit) {
    PYC_ASSIGN(Compiled fresh, build_or_load(std::move(given), o));
    if (!o.cache) log = std::exchange(fresh.log, {});
    compiled = std::make_shared<const Compiled>(std::move(fresh));
    if (kept) cache_insert(key, compiled);
  }
  if (o.cache) log = compiled->log;
  PYC_ASSIGN(std::shared_ptr<ThreadPool> pool, shared_pool(driver::thread_count(o)));
  PYC_TRY(driver::check_latency(o, log));
  log = driver::with_choices(std::move(log), o);
  const DecisionLog answers = driver::contract_answers(o, log, compiled->memory.peak_bytes);
  log.insert(log.end(), answers.begin(), answers.end());
  log.insert(log.begin(), why.begin(), why.end());
  PYC_ASSIGN(std::unique_ptr<runtime::Model> model,
             runtime::Model::create(compiled->engine, std::move(pool), std::move(log),
                                    compiled->memory, nullptr, driver::run_contract(o)));
  model->set_compile_stats(now_ns() - start, hit,
                           hit ? runtime::CompileBreakdown{} : compiled->times);
  return model;
}

}  // namespace

Result<std::unique_ptr<runtime::Model>> compile(ir::VerifiedGraph given, const CompileOptions& o) {
  const int64_t start = now_ns();
  const FpStateGuard fp_state;  // what is loaded does not depend on the caller's
  PYC_TRY(driver::check_options(o));
  if (!o.target.empty()) {
    return Status(Code::kUnsupported,
                  fmt::format("code for '{}' cannot run here: leave out the target", o.target));
  }
  return driver::with_fallback(o, [&](const CompileOptions& chosen, const DecisionLog& why) {
    return compile_for(given, chosen, why, start);
  });
}

}  // namespace pyc::session
