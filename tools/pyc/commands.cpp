#include "commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/convert.h"
#include "base/files.h"
#include "driver/seeded_run.h"

namespace pyc::tool {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{1} << 30;
constexpr int kShownElements = 4;

std::string first_values(const runtime::TensorView& t) {
  std::string text;
  const int64_t size = dtype_size(t.dtype);
  const int64_t count = t.bytes / size;
  for (int64_t i = 0; i < std::min<int64_t>(count, kShownElements); ++i) {
    const Word w = load_word(static_cast<const std::byte*>(t.data) + i * size, t.dtype);
    text += fmt::format("{}{:.6g}", i > 0 ? " " : "", word_to_double(w, t.dtype));
  }
  return count > kShownElements ? text + " …" : text;
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 10000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024.0);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0);
}

void print_memory(const runtime::MemoryReport& m) {
  std::string parts;
  for (int c = 0; c < kBufferClasses; ++c) {
    parts +=
        fmt::format("{}{} {}", c > 0 ? ", " : "", buffer_class_name(static_cast<BufferClass>(c)),
                    bytes_text(m.class_bytes[static_cast<size_t>(c)]));
  }
  fmt::print("memory  peak {} ({})\n        arena planned {} B, measured {} B with scratch {} B\n",
             bytes_text(m.peak_bytes), parts, m.arena_bytes, m.measured_arena_bytes,
             m.scratch_bytes);
}

nlohmann::json decision_json(const Decision& d) {
  nlohmann::json alternatives = nlohmann::json::array();
  for (const Alternative& a : d.alternatives) {
    alternatives.push_back({{"name", a.name}, {"cost_ns", a.cost_ns}, {"rejected", a.rejected}});
  }
  return {{"what", d.what},
          {"chosen", d.chosen},
          {"reason", d.reason},
          {"detail", d.detail},
          {"alternatives", alternatives}};
}

// The main decisions: what was fused with what, and which kernel each group got.
void print_main_decisions(const DecisionLog& log) {
  for (const Decision& d : log) {
    if (d.what.starts_with("kernel:") || d.what.starts_with("fusion:") ||
        d.what.starts_with("compile")) {
      fmt::print("  {}\n", d.to_string());
    }
  }
}

}  // namespace

Result<ir::Graph> load_model(const std::string& path) {
  PYC_ASSIGN(const std::string text, read_file(path, kMaxModelBytes));
  auto graph = driver::parse_model(text);
  if (!graph.ok()) return std::move(graph).status().with_context(path);
  return graph;
}

Status run_model(const RunCommand& command) {
  PYC_ASSIGN(ir::Graph graph, load_model(command.common.model));
  PYC_ASSIGN(std::unique_ptr<runtime::Model> model,
             driver::compile(std::move(graph), command.common.compile));

  PYC_ASSIGN(driver::SeededRun data, driver::SeededRun::create(*model, command.seed));
  std::vector<int64_t> times;
  for (int i = 0; i < std::max(1, command.repeat); ++i) {
    runtime::RunStats stats;
    PYC_TRY(model->run(data.inputs(), data.outputs(), &stats));
    times.push_back(stats.wall_ns);
  }
  std::sort(times.begin(), times.end());

  const double run_us = static_cast<double>(times[times.size() / 2]) / 1e3;
  const double compile_ms = static_cast<double>(model->stats().compile_ns) / 1e6;
  if (command.common.json) {
    nlohmann::json report;
    for (size_t i = 0; i < model->outputs().size(); ++i) {
      const runtime::IoSpec& spec = model->outputs()[i];
      report["outputs"].push_back({{"name", spec.name},
                                   {"dtype", dtype_name(spec.dtype)},
                                   {"shape", spec.shape},
                                   {"digest", data.digest(i).hex()}});
    }
    report["compile_ms"] = compile_ms;
    report["run_us"] = run_us;
    report["peak_bytes"] = model->memory().peak_bytes;
    report["arena_bytes"] = model->memory().arena_bytes;
    for (const Decision& d : model->decisions()) report["decisions"].push_back(decision_json(d));
    fmt::print("{}\n", report.dump(2));
    return {};
  }
  for (size_t i = 0; i < model->outputs().size(); ++i) {
    const runtime::IoSpec& spec = model->outputs()[i];
    fmt::print("output  {}: {}{} digest {}\n        {}\n", spec.name, dtype_name(spec.dtype),
               ir::shape_to_string(spec.shape), data.digest(i).hex(),
               first_values(data.outputs()[i]));
  }
  fmt::print("time    compile {:.1f} ms, run {:.1f} us (median of {})\n", compile_ms, run_us,
             times.size());
  print_memory(model->memory());
  if (command.explain) {
    fmt::print("decisions\n");
    print_main_decisions(model->decisions());
  }
  return {};
}

Status explain_model(const Common& common) {
  PYC_ASSIGN(ir::Graph graph, load_model(common.model));
  PYC_ASSIGN(const std::string groups, driver::dump(graph, common.compile, "groups"));
  PYC_ASSIGN(std::unique_ptr<runtime::Model> model,
             driver::compile(std::move(graph), common.compile));
  if (common.json) {
    nlohmann::json report = nlohmann::json::array();
    for (const Decision& d : model->decisions()) report.push_back(decision_json(d));
    fmt::print("{}\n", report.dump(2));
    return {};
  }
  fmt::print("{}", groups);
  for (const Decision& d : model->decisions()) fmt::print("{}\n", d.to_string());
  return {};
}

Status dump_model(const Common& common, const std::string& stage) {
  PYC_ASSIGN(ir::Graph graph, load_model(common.model));
  PYC_ASSIGN(const std::string text, driver::dump(std::move(graph), common.compile, stage));
  fmt::print("{}", text);
  return {};
}

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return 0;
    case Code::kInvalidArgument:
    case Code::kUnknownOption:
    case Code::kNullPointer:
      return 2;
    case Code::kParseError:
    case Code::kUnknownOp:
      return 3;
    case Code::kVerifyFailed:
    case Code::kShapeMismatch:
    case Code::kDtypeMismatch:
    case Code::kRankMismatch:
    case Code::kSizeMismatch:
    case Code::kMisaligned:
      return 4;
    case Code::kUnsupported:
      return 5;
    case Code::kBudgetExceeded:
    case Code::kOutOfMemory:
      return 6;
    case Code::kCompileFailed:
      return 7;
    case Code::kRuntimeFailed:
      return 8;
    case Code::kIoError:
    case Code::kNotFound:
      return 9;
    case Code::kInternal:
      return 10;
  }
  return 10;
}

}  // namespace pyc::tool
