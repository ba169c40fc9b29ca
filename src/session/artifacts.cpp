#include "session/artifacts.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "driver/contract.h"
#include "driver/devices.h"
#include "driver/fallback.h"
#include "session/cache.h"
#include "session/cache_folder.h"

namespace pyc::session {
namespace {

// What a plan for one thread says of a run on several.
runtime::MemoryReport on_threads(runtime::MemoryReport memory, int64_t scratch, int threads) {
  memory.scratch_bytes = scratch * threads;
  memory.peak_bytes += scratch * (threads - 1);
  return memory;
}

Result<driver::Determinism> determinism_of(const std::string& name) {
  for (const driver::Determinism level :
       {driver::Determinism::kStrict, driver::Determinism::kBalanced, driver::Determinism::kFast}) {
    if (driver::determinism_name(level) == name) return level;
  }
  return Status(Code::kParseError,
                fmt::format("the artefact's determinism level '{}' is not known", name));
}

// What the compile decided must be left alone, but for the device it was and a level that promises
// less than the program keeps.
Status check_decided(driver::CompileOptions o, std::string_view device, driver::Determinism level) {
  if (o.device == device) o.device = driver::CompileOptions().device;
  std::vector<std::string_view> decided;
  if (o.determinism < level) decided.push_back("determinism");
  o.determinism = driver::CompileOptions().determinism;
  const std::vector<std::string_view> others = driver::decided_options(o);
  decided.insert(decided.end(), others.begin(), others.end());
  if (decided.empty()) return {};
  return {Code::kInvalidArgument,
          fmt::format("{}: an artefact is compiled already, with determinism {} for the device "
                      "{}; compile the model again with other options",
                      decided.front(), driver::determinism_name(level), device)};
}

Status check_budget(const driver::CompileOptions& o, const runtime::MemoryReport& memory) {
  if (o.memory_budget == 0 || memory.peak_bytes <= o.memory_budget) return {};
  return {Code::kBudgetExceeded,
          fmt::format("memory_budget: the artefact's runs need {} bytes, the budget is {}; the "
                      "smallest that would do is {}",
                      memory.peak_bytes, o.memory_budget, memory.peak_bytes)};
}

}  // namespace

namespace {

Result<artifact::Artifact> make_artifact(ir::VerifiedGraph given, driver::CompileOptions options,
                                         const DecisionLog& log) {
  PYC_ASSIGN(const backends::Backend* backend, driver::find_backend(options.device));
  if (!backend->capabilities().targets.empty() && options.target.empty()) {
    options.target = backend->native_target();
    if (options.target.empty()) {
      return Status(Code::kUnsupported, "this machine runs none of the named targets: name one");
    }
  }
  PYC_TRY(read_tuning(options));
  artifact::Artifact out;
  out.fingerprint = ir::fingerprint(*given).hex();
  out.determinism = driver::determinism_name(options.determinism);
  PYC_ASSIGN(driver::Compiled compiled, driver::compile_program(std::move(given), options));
  out.program = *compiled.program;
  out.log = std::move(compiled.log);
  const DecisionLog answers =
      driver::contract_answers(options, out.log, compiled.memory.peak_bytes);
  out.log.insert(out.log.end(), answers.begin(), answers.end());
  out.log.insert(out.log.begin(), log.begin(), log.end());
  out.memory = compiled.memory;
  const int64_t scratch = out.program.scratch_bytes;
  out.memory.scratch_bytes = scratch;
  out.memory.peak_bytes -= scratch * (driver::thread_count(options) - 1);
  return out;
}

}  // namespace

Result<artifact::Artifact> compile_artifact(const ir::VerifiedGraph& given,
                                            const driver::CompileOptions& options) {
  PYC_TRY(driver::check_options(options));
  PYC_ASSIGN(const backends::Backend* backend, driver::find_backend(options.device));
  // Code for a named machine is made on any other.
  if (!options.target.empty() && !backend->capabilities().targets.empty()) {
    return make_artifact(given, options, {});
  }
  return driver::with_fallback(options,
                               [&](const driver::CompileOptions& o, const DecisionLog& log) {
                                 return make_artifact(given, o, log);
                               });
}

Status write_artifact(const artifact::Artifact& artifact, const std::string& path) {
  PYC_ASSIGN(const std::vector<SharedBytes> pieces, artifact::encode(artifact));
  const std::vector<std::span<const std::byte>> spans(pieces.begin(), pieces.end());
  return write_file_atomic(path, spans);
}

Result<driver::Compiled> from_artifact(artifact::Artifact artifact, int threads) {
  driver::Compiled out;
  out.memory = on_threads(artifact.memory, artifact.program.scratch_bytes, threads);
  out.log = std::move(artifact.log);
  out.program = std::make_shared<const runtime::Program>(std::move(artifact.program));
  PYC_TRY(driver::load(out));
  return out;
}

Result<driver::Determinism> check_loading(const artifact::Artifact& artifact,
                                          const driver::CompileOptions& options) {
  PYC_ASSIGN(const driver::Determinism level, determinism_of(artifact.determinism));
  PYC_TRY(driver::check_options(options));
  PYC_TRY(check_decided(options, artifact.program.places[0].backend, level));
  if (options.rails != driver::kRailsOff) {
    return Status(Code::kUnsupported,
                  "rails: a compiled file has one program; load the model itself, or leave it out");
  }
  return level;
}

Result<LoadedArtifact> load_artifact(artifact::Artifact artifact,
                                     const driver::CompileOptions& options) {
  const int64_t start = now_ns();
  LoadedArtifact out;
  PYC_ASSIGN(out.determinism, check_loading(artifact, options));
  out.fingerprint = artifact.fingerprint;
  const runtime::Place& place = artifact.program.places[0];
  artifact.log.push_back({.what = "artefact",
                          .chosen = place.target.empty() ? place.backend : place.target,
                          .reason = "compiled_ahead",
                          .detail = "by PyC " + artifact.version,
                          .alternatives = {}});
  PYC_ASSIGN(std::shared_ptr<ThreadPool> pool, shared_pool(driver::thread_count(options)));
  PYC_ASSIGN(driver::Compiled compiled, from_artifact(std::move(artifact), pool->threads()));
  PYC_TRY(check_budget(options, compiled.memory));
  PYC_TRY(driver::check_latency(options, compiled.log));
  std::erase_if(compiled.log, [](const Decision& d) { return d.what.starts_with("contract:"); });
  const DecisionLog answers =
      driver::contract_answers(options, compiled.log, compiled.memory.peak_bytes);
  compiled.log.insert(compiled.log.end(), answers.begin(), answers.end());
  PYC_ASSIGN(out.model, runtime::Model::create(std::move(compiled.engine), std::move(pool),
                                               std::move(compiled.log), compiled.memory, nullptr,
                                               driver::run_contract(options)));
  out.model->set_compile_stats(now_ns() - start, false);
  return out;
}

Result<LoadedArtifact> load_artifact(SharedBytes file, const driver::CompileOptions& options) {
  PYC_ASSIGN(artifact::Artifact artifact, artifact::decode(std::move(file)));
  return load_artifact(std::move(artifact), options);
}

}  // namespace pyc::session
