#include "driver/artifacts.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "driver/cache.h"

namespace pyc::driver {
namespace {

// What a plan for one thread says of a run on several.
runtime::MemoryReport on_threads(runtime::MemoryReport memory, int64_t scratch, int threads) {
  memory.scratch_bytes = scratch * threads;
  memory.peak_bytes += scratch * (threads - 1);
  return memory;
}

Result<Determinism> determinism_of(const std::string& name) {
  for (const Determinism level :
       {Determinism::kStrict, Determinism::kBalanced, Determinism::kFast}) {
    if (determinism_name(level) == name) return level;
  }
  return Status(Code::kParseError,
                fmt::format("the artefact's determinism level '{}' is not known", name));
}

// What the compile decided must be left alone, but for a level that promises less than the program
// keeps.
Status check_decided(CompileOptions o, Determinism level) {
  std::vector<std::string_view> decided;
  if (o.determinism < level) decided.push_back("determinism");
  o.determinism = CompileOptions().determinism;
  const std::vector<std::string_view> others = decided_options(o);
  decided.insert(decided.end(), others.begin(), others.end());
  if (decided.empty()) return {};
  return {Code::kInvalidArgument,
          fmt::format("{}: an artefact is compiled already, with determinism {} for the device "
                      "{}; compile the model again with other options",
                      decided.front(), determinism_name(level), CompileOptions().device)};
}

Status check_budget(const CompileOptions& o, const runtime::MemoryReport& memory) {
  if (o.memory_budget == 0 || memory.peak_bytes <= o.memory_budget) return {};
  return {Code::kBudgetExceeded, fmt::format("the artefact's runs need {} bytes, the budget is {}",
                                             memory.peak_bytes, o.memory_budget)};
}

}  // namespace

Result<artifact::Artifact> compile_artifact(ir::Graph graph, CompileOptions options) {
  if (options.target.empty()) options.target = native_target(host_target());
  if (options.target.empty()) {
    return Status(Code::kUnsupported, "this machine runs none of the named targets: name one");
  }
  artifact::Artifact out;
  PYC_TRY(ir::verify_graph(graph).status());
  out.fingerprint = ir::fingerprint(graph).hex();
  out.target = options.target;
  out.determinism = determinism_name(options.determinism);
  PYC_ASSIGN(Compiled compiled, compile_ahead(std::move(graph), options));
  out.program = *compiled.program;
  out.log = std::move(compiled.log);
  out.memory = compiled.memory;
  const int64_t scratch = out.program.scratch_bytes;
  out.memory.scratch_bytes = scratch;
  out.memory.peak_bytes -= scratch * (thread_count(options) - 1);
  return out;
}

Status write_artifact(const artifact::Artifact& artifact, const std::string& path) {
  PYC_ASSIGN(const std::vector<SharedBytes> pieces, artifact::encode(artifact));
  const std::vector<std::span<const std::byte>> spans(pieces.begin(), pieces.end());
  return write_file_atomic(path, spans);
}

Result<Compiled> from_artifact(artifact::Artifact artifact, int threads) {
  PYC_TRY(artifact::check_machine(artifact, host_target()));
  PYC_TRY(artifact::load_code(artifact.program));
  Compiled out;
  out.memory = on_threads(artifact.memory, artifact.program.scratch_bytes, threads);
  out.log = std::move(artifact.log);
  out.program = std::make_shared<const runtime::Program>(std::move(artifact.program));
  return out;
}

Result<LoadedArtifact> load_artifact(artifact::Artifact artifact, const CompileOptions& options) {
  const int64_t start = now_ns();
  LoadedArtifact out;
  PYC_ASSIGN(out.determinism, determinism_of(artifact.determinism));
  out.fingerprint = artifact.fingerprint;
  PYC_TRY(check_options(options));
  PYC_TRY(check_decided(options, out.determinism));
  artifact.log.push_back({.what = "artefact",
                          .chosen = artifact.target,
                          .reason = "compiled_ahead",
                          .detail = "by PyC " + artifact.version,
                          .alternatives = {}});
  PYC_ASSIGN(std::shared_ptr<ThreadPool> pool, shared_pool(thread_count(options)));
  PYC_ASSIGN(Compiled compiled, from_artifact(std::move(artifact), pool->threads()));
  PYC_TRY(check_budget(options, compiled.memory));
  PYC_ASSIGN(out.model, runtime::Model::create(std::move(compiled.program), std::move(pool),
                                               std::move(compiled.log), compiled.memory, nullptr,
                                               run_contract(options)));
  out.model->set_compile_stats(now_ns() - start, false);
  return out;
}

Result<LoadedArtifact> load_artifact(SharedBytes file, const CompileOptions& options) {
  PYC_ASSIGN(artifact::Artifact artifact, artifact::decode(std::move(file)));
  return load_artifact(std::move(artifact), options);
}

}  // namespace pyc::driver
