#include "pyc/artifact.h"

#include <algorithm>
#include <cstddef>

#include "base/mapped_file.h"
#include "base/store.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/options.h"
#include "driver/devices.h"
#include "driver/targets.h"
#include "session/artifacts.h"
#include "session/cache.h"
#include "session/cache_folder.h"

using namespace pyc;
using namespace pyc::capi;

struct pyc_artifact {
  artifact::Artifact artifact;
  std::string missing;
  int64_t file_bytes = 0;
};

struct pyc_cache_files {
  std::vector<Store::Entry> entries;
};

namespace {

Result<Store> cache_in(const char* folder) {
  const std::string named = folder == nullptr ? session::default_cache_folder() : folder;
  if (!named.empty()) return Store(named);
  return Status(Code::kInvalidArgument, "no cache folder is named: give one or set PYC_CACHE_DIR");
}

// Why programs of the place do not run here; "" when they do.
std::string missing_here(const runtime::Place& place) {
  const Status runs = driver::check_place(place);
  return runs.ok() ? "" : runs.message();
}

void count_program(const artifact::Artifact& a, pyc_artifact_info& out) {
  out.code_bytes += session::code_bytes(a.program);
  for (const runtime::Parameter& p : a.program.parameters) out.parameter_bytes += p.bytes;
  out.peak_bytes = std::max(out.peak_bytes, a.memory.peak_bytes);
  out.step_count += a.program.steps.size();
}

}  // namespace

size_t pyc_target_count(void) { return target_names().size(); }

const char* pyc_target_name(size_t index) {
  return index < target_names().size() ? target_names()[index].data() : nullptr;
}

pyc_status pyc_compile_to_file(const pyc_graph* graph, const pyc_compile_options* options,
                               const char* path, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(path, "path"));
    PYC_ASSIGN(const ir::VerifiedGraph given, ir::verify_graph(graph->graph()));
    PYC_ASSIGN(const artifact::Artifact made,
               session::compile_artifact(given, to_options(options)));
    return session::write_artifact(made, path);
  });
}

pyc_status pyc_artifact_open(const char* path, pyc_artifact** artifact, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(path, "path"));
    PYC_TRY(require(artifact, "artifact"));
    PYC_ASSIGN(SharedBytes file, map_file(path));
    auto handle = std::make_unique<pyc_artifact>();
    handle->file_bytes = static_cast<int64_t>(file.size());
    auto read = artifact::decode(std::move(file));
    if (!read.ok()) return std::move(read).status().with_context(path);
    handle->artifact = std::move(*read);
    handle->missing = missing_here(handle->artifact.program.places[0]);
    *artifact = handle.release();
    return {};
  });
}

void pyc_artifact_destroy(pyc_artifact* artifact) { delete artifact; }

pyc_status pyc_artifact_get_info(const pyc_artifact* artifact, pyc_artifact_info* info,
                                 pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(artifact, "artifact"));
    PYC_TRY(check_out_struct(info, "pyc_artifact_info", offsetof(pyc_artifact_info, device)));
    const artifact::Artifact& a = artifact->artifact;
    pyc_artifact_info out{};
    out.version = a.version.c_str();
    out.target = a.program.places[0].target.c_str();
    out.device = a.program.places[0].backend.c_str();
    out.determinism = a.determinism.c_str();
    out.fingerprint = a.fingerprint.c_str();
    out.missing = artifact->missing.c_str();
    out.file_bytes = artifact->file_bytes;
    out.program_count = a.is_open() ? a.parts.size() : 1;
    count_program(a, out);
    for (const artifact::Artifact& part : a.parts) count_program(part, out);
    out.decision_count = a.log.size();
    out.input_count = a.program.inputs.size();
    out.output_count = a.program.outputs.size();
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_artifact_input(const pyc_artifact* artifact, size_t index, pyc_value_info* info,
                              pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(artifact, "artifact"));
    return describe(artifact->artifact.program.inputs, index, PYC_VALUE_INPUT, info);
  });
}

pyc_status pyc_artifact_output(const pyc_artifact* artifact, size_t index, pyc_value_info* info,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(artifact, "artifact"));
    return describe(artifact->artifact.program.outputs, index, PYC_VALUE_RESULT, info);
  });
}

pyc_status pyc_cache_files_read(const char* folder, int32_t verify, pyc_cache_files** files,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(files, "files"));
    PYC_ASSIGN(const Store cache, cache_in(folder));
    auto out = std::make_unique<pyc_cache_files>();
    PYC_ASSIGN(out->entries, verify != 0 ? cache.verify() : cache.list());
    *files = out.release();
    return {};
  });
}

size_t pyc_cache_files_count(const pyc_cache_files* files) {
  return files == nullptr ? 0 : files->entries.size();
}

pyc_status pyc_cache_files_get(const pyc_cache_files* files, size_t index, pyc_cache_file* file,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(files, "files"));
    PYC_TRY(check_out_struct(file, "pyc_cache_file", sizeof(pyc_cache_file)));
    PYC_TRY(require_index(index, files->entries.size(), "cache file"));
    const Store::Entry& entry = files->entries[index];
    pyc_cache_file out{};
    out.name = entry.file.c_str();
    out.bytes = entry.bytes;
    out.used_ns = entry.used_ns;
    out.problem = entry.problem.c_str();
    write_struct(file, out);
    return {};
  });
}

void pyc_cache_files_destroy(pyc_cache_files* files) { delete files; }

pyc_status pyc_cache_files_clear(const char* folder, int64_t* removed, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const Store cache, cache_in(folder));
    PYC_ASSIGN(const int64_t count, cache.clear());
    if (removed != nullptr) *removed = count;
    return {};
  });
}
