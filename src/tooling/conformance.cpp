#include "tooling/conformance.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "import/onnx/import.h"
#include "import/onnx/tensor.h"
#include "session/session.h"

namespace pyc::tooling {
namespace {

double largest_magnitude(const std::vector<double>& values) {
  double most = 0.0;
  for (const double v : values) {
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  }
  return most;
}

bool close_enough(double found, double expected, double allowed) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (found == expected) return true;
  return std::isfinite(found) && std::isfinite(expected) && std::abs(found - expected) <= allowed;
}

// "" when equal within the tolerance, else what differs.
std::string difference(const DynValue& found, const DynValue& expected, const Tolerance& tol) {
  if (found.kind != expected.kind ||
      (found.kind != DynValue::Kind::kSequence && found.to_string() != expected.to_string())) {
    return fmt::format("expected {}, found {}", expected.to_string(), found.to_string());
  }
  if (found.kind == DynValue::Kind::kStrings) {
    return *found.strings == *expected.strings ? "" : "strings differ";
  }
  if (found.kind == DynValue::Kind::kSequence) {
    if (found.items->size() != expected.items->size()) {
      return fmt::format("expected {} items, found {}", expected.items->size(),
                         found.items->size());
    }
    for (size_t i = 0; i < found.items->size(); ++i) {
      const std::string d = difference((*found.items)[i], (*expected.items)[i], tol);
      if (!d.empty()) return fmt::format("item {}: {}", i, d);
    }
    return "";
  }
  if (found.absent()) return "";
  if (found.bytes == expected.bytes) return "";
  const std::vector<double> a = to_doubles(found);
  const std::vector<double> b = to_doubles(expected);
  // ONNX's own runner allows bf16 two steps.
  const double rtol = found.dtype == DType::kBF16 ? std::max(tol.rtol, 0x1p-6) : tol.rtol;
  const double scale = tol.scale > 0 ? tol.scale * largest_magnitude(b) : 0.0;
  size_t wrong = 0;
  size_t first = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double allowed = tol.scale > 0 ? scale : tol.atol + rtol * std::abs(b[i]);
    if (close_enough(a[i], b[i], allowed)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return fmt::format("{} of {} elements differ, the first at {}: expected {}, found {}", wrong,
                     a.size(), first, b[first], a[first]);
}

CaseResult ended(Verdict verdict, const Status& status, const std::string& where) {
  CaseResult r;
  r.verdict = verdict;
  r.reason = std::string(code_name(status.code()));
  r.detail = where + status.message();
  return r;
}

CaseResult ended(const Status& status, const std::string& where) {
  return ended(verdict_of(status.code()), status, where);
}

// A case that cannot be read says nothing about PyC, and must not look as if it did.
CaseResult unreadable(const Status& status) {
  const bool refused = status.code() == Code::kUnsupported || status.code() == Code::kOutOfMemory;
  return ended(refused ? Verdict::kRefused : Verdict::kFailed, status, "data: ");
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Result<std::vector<DynValue>> read_inputs(const std::string& set, const open::OpenGraph& graph) {
  std::vector<DynValue> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string file = fmt::format("{}/input_{}.pb", set, i);
    const open::OpenType& type = graph.values[graph.inputs[i]].type;
    if (!is_there(file)) {
      if (type.kind != open::OpenType::Kind::kOptional) {
        return Status(Code::kNotFound, fmt::format("there is no {}", file));
      }
      inputs.emplace_back();
      continue;
    }
    PYC_ASSIGN(SharedBytes bytes, map_file(file));
    PYC_ASSIGN(DynValue value, onnx::decode_value(bytes, type));
    inputs.push_back(std::move(value));
  }
  return inputs;
}

// Compares the outputs of one data set; fills `result` and says whether to go on.
Status compare_set(const std::string& set, const open::OpenGraph& graph,
                   const std::vector<DynValue>& outputs, const Tolerance& tol, CaseResult* result) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string file = fmt::format("{}/output_{}.pb", set, i);
    if (!is_there(file)) {
      ++result->not_compared;
      continue;
    }
    PYC_ASSIGN(SharedBytes bytes, map_file(file));
    PYC_ASSIGN(const DynValue expected,
               onnx::decode_value(bytes, graph.values[graph.outputs[i]].type));
    const std::string d = difference(outputs[i], expected, tol);
    ++result->compared;
    if (d.empty()) continue;
    result->verdict = Verdict::kFailed;
    result->reason = "mismatch";
    result->detail = fmt::format("{} output {}: {}", set.substr(set.rfind('/') + 1), i, d);
    return {};
  }
  return {};
}

}  // namespace

Verdict verdict_of(Code code) {
  switch (code) {
    case Code::kOk:
      return Verdict::kPassed;
    case Code::kInternal:
    case Code::kCompileFailed:
    case Code::kRuntimeFailed:
      return Verdict::kFailed;
    default:
      return Verdict::kRefused;
  }
}

CaseResult run_case(const std::string& folder, const driver::CompileOptions& options,
                    const Tolerance& tolerance) {
  auto imported = onnx::import_file(folder + "/model.onnx");
  if (!imported.ok()) return ended(imported.status(), "import: ");
  auto session = session::Session::create(imported->graph, options);
  if (!session.ok()) return ended(session.status(), "");
  const auto names = list_folder(folder);
  if (!names.ok()) return unreadable(names.status());
  CaseResult result;
  const open::OpenGraph& graph = *imported->graph;
  for (const std::string& name : *names) {
    if (!name.starts_with("test_data_set_")) continue;
    const std::string set = folder + "/" + name;
    auto inputs = read_inputs(set, graph);
    if (!inputs.ok()) return unreadable(inputs.status());
    auto outputs = (*session)->run(*inputs);
    if (!outputs.ok()) return ended(outputs.status(), "run: ");
    const Status compared = compare_set(set, graph, *outputs, tolerance, &result);
    if (!compared.ok()) return unreadable(compared);
    ++result.data_sets;
    if (result.verdict != Verdict::kPassed) break;
  }
  if (result.verdict == Verdict::kPassed && result.compared == 0) {
    result.verdict = Verdict::kFailed;
    result.reason = "nothing_compared";
    result.detail =
        fmt::format("{} data sets, none of them with an expected output", result.data_sets);
  }
  // The standard does not fix the generator: what one drew says nothing about another.
  if (result.reason == "mismatch" && imported->info.draws_numbers) {
    result.verdict = Verdict::kRefused;
    result.reason = "random_draws";
    result.detail = "compares what one random generator drew, which the standard does not fix: " +
                    result.detail;
  }
  result.segments = static_cast<int>((*session)->stats().segments_compiled);
  result.host_calls = static_cast<int>((*session)->stats().host_calls);
  return result;
}

}  // namespace pyc::tooling
