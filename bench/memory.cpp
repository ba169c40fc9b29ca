// Budgets met by running steps again and by parameters in a file, as the tables that
// bench/memory.py makes a page of:
//   pyc_bench_memory [MODEL.onnx …]     in the root of the repository
//   pyc_bench_memory --write FOLDER     the graphs of the first table as text
// Graphs with long lives under half of what their peak has above their largest step: predicted and
// measured time and the bits of the reference. Then the models named under 100, 75 and 50 % of
// their peak and the smallest budget, each compiled and run with just that; what the allocator
// handed out is held against it. Exits 1 where a bit differs or a budget is not kept.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/allocation_meter.h"
#include "base/buffer_class.h"
#include "base/clock.h"
#include "driver/compile.h"
#include "driver/contract.h"
#include "driver/predict.h"
#include "driver/stages.h"
#include "model_file/load.h"
#include "plan/liveness.h"
#include "session/model.h"
#include "support/long_lives.h"
#include "tooling/seeded_run.h"

namespace pyc {
namespace {

constexpr int kThreads = 2;
constexpr int kRuns = 25;

driver::CompileOptions options_with(int64_t budget) {
  driver::CompileOptions options;
  options.threads = kThreads;
  options.memory_budget = budget;
  options.cache = false;
  return options;
}
// Met without parameters in a file.
driver::CompileOptions recomputing_with(int64_t budget) {
  driver::CompileOptions options = options_with(budget);
  options.stream_parameters = false;
  return options;
}

// The arena bytes that the largest single step names.
int64_t floor_of(const plan::ExecutionPlan& plan) {
  int64_t most = 0;
  for (const plan::Step& step : plan.steps) {
    int64_t bytes = 0;
    for (const uint32_t i : plan::named_by(step)) {
      if (plan::in_arena(plan.instances[i])) bytes += plan::arena_size(plan.instances[i]);
    }
    for (const loop::InPlacePair& p : step.in_place) {
      bytes -= plan::arena_size(plan.instances[p.written]);
    }
    most = std::max(most, bytes);
  }
  return most;
}

// A model that ran: what its outputs are, how many steps ran again, and the least time of its runs.
struct Ran {
  std::vector<Digest> outputs;
  runtime::RunStats stats;
  int64_t peak_bytes = 0;
  int64_t least_ns = INT64_MAX;
};

// The graph compiled with each of the options and run, in turn.
Result<std::vector<Ran>> run_all(const ir::Graph& graph,
                                 const std::vector<driver::CompileOptions>& settings, int runs) {
  std::vector<std::unique_ptr<runtime::Model>> models;
  std::vector<tooling::SeededRun> seeded;
  for (const driver::CompileOptions& options : settings) {
    PYC_ASSIGN(std::unique_ptr<runtime::Model> model, session::compile(graph, options));
    PYC_ASSIGN(tooling::SeededRun one, tooling::SeededRun::create(*model, 5));
    models.push_back(std::move(model));
    seeded.push_back(std::move(one));
  }
  std::vector<Ran> out(settings.size());
  for (int i = 0; i < runs; ++i) {
    for (size_t m = 0; m < models.size(); ++m) {
      PYC_TRY(models[m]->run(seeded[m].inputs(), seeded[m].outputs(), &out[m].stats));
      out[m].least_ns = std::min(out[m].least_ns, out[m].stats.wall_ns);
    }
  }
  for (size_t m = 0; m < models.size(); ++m) {
    out[m].peak_bytes = models[m]->memory().peak_bytes;
    for (size_t i = 0; i < seeded[m].outputs().size(); ++i) {
      out[m].outputs.push_back(seeded[m].digest(i));
    }
  }
  return out;
}

double more_percent(double now, double before) { return 100 * (now / before - 1); }

Status report_half(const std::string& name, const ir::VerifiedGraph& graph) {
  PYC_ASSIGN(const driver::Stages stages, driver::stages(graph, options_with(0)));
  PYC_ASSIGN(const driver::Prediction free, driver::predict(graph, options_with(0)));
  const int64_t floor = floor_of(stages.plan);
  const int64_t half = free.peak_bytes - (free.arena_bytes - floor) / 2;
  PYC_ASSIGN(const driver::Prediction tight, driver::predict(graph, recomputing_with(half)));
  PYC_ASSIGN(const driver::Prediction least, driver::predict(graph, recomputing_with(0), true));
  driver::CompileOptions reference = options_with(0);
  reference.device = "reference";
  PYC_ASSIGN(const std::vector<Ran> wanted, run_all(*graph, {reference}, 1));
  PYC_ASSIGN(
      const std::vector<Ran> ran,
      run_all(*graph, {options_with(0), recomputing_with(half), recomputing_with(least.peak_bytes)},
              kRuns));
  const bool equal =
      std::ranges::all_of(ran, [&](const Ran& r) { return r.outputs == wanted.front().outputs; });
  const Ran& after = ran[1];
  fmt::print(
      "| {} | {} | {} | {} | {} | {} | {} | {:+.1f} % | {:+.1f} % | {} | {:+.1f} % | {} |\n", name,
      free.steps, free.peak_bytes, free.arena_bytes, floor, half, after.stats.recomputed_steps,
      more_percent(tight.run_ns, free.run_ns),
      more_percent(static_cast<double>(after.least_ns), static_cast<double>(ran[0].least_ns)),
      least.peak_bytes, more_percent(least.run_ns, free.run_ns), equal ? "equal" : "DIFFER");
  if (!equal || after.peak_bytes > half) return {Code::kInternal, name + ": not kept"};
  return {};
}

// One model by itself: what the allocator had handed out at most during its runs, tensors included.
struct Alone {
  Ran ran;
  int64_t handed_out = 0;
  int64_t mapped_bytes = 0;
};

Result<Alone> run_alone(const ir::Graph& graph, const driver::CompileOptions& options) {
  constexpr int kRunsAlone = 5;
  const int64_t before = allocated_now();
  PYC_ASSIGN(const std::unique_ptr<runtime::Model> model, session::compile(graph, options));
  PYC_ASSIGN(const tooling::SeededRun seeded, tooling::SeededRun::create(*model, 5));
  take_allocated_peak();
  Alone out;
  for (int i = 0; i < kRunsAlone; ++i) {
    PYC_TRY(model->run(seeded.inputs(), seeded.outputs(), &out.ran.stats));
    out.ran.least_ns = std::min(out.ran.least_ns, out.ran.stats.wall_ns);
  }
  out.handed_out = take_allocated_peak() - before;
  const runtime::MemoryReport memory = model->memory();
  out.ran.peak_bytes = memory.peak_bytes;
  out.mapped_bytes = memory.class_bytes[static_cast<size_t>(BufferClass::kMapped)];
  for (size_t i = 0; i < seeded.outputs().size(); ++i) {
    out.ran.outputs.push_back(seeded.digest(i));
  }
  return out;
}

Status report_budgets(const std::string& path) {
  PYC_ASSIGN(const model_file::LoadedModel file, model_file::load_model_file(path));
  PYC_ASSIGN(const ir::Graph graph, model_file::graph_of(file, {}));
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(graph));
  PYC_ASSIGN(const driver::Prediction least, driver::predict(verified, options_with(0), true));
  if (driver::predict(verified, options_with(least.peak_bytes - 1)).status().code() !=
      Code::kBudgetExceeded) {
    return {Code::kInternal, path + ": less than the smallest budget is not refused"};
  }
  PYC_ASSIGN(const Alone free, run_alone(graph, options_with(0)));
  struct Row {
    std::string name;
    int64_t budget;
  };
  const int64_t peak = free.ran.peak_bytes;
  for (const Row& row : {Row{"none", 0}, Row{"100 %", peak}, Row{"75 %", peak * 3 / 4},
                         Row{"50 %", peak / 2}, Row{"smallest", least.peak_bytes}}) {
    PYC_ASSIGN(const Alone ran, run_alone(graph, options_with(row.budget)));
    const bool equal = ran.ran.outputs == free.ran.outputs;
    const bool kept =
        row.budget == 0 || (ran.ran.peak_bytes <= row.budget && ran.handed_out <= row.budget);
    fmt::print(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {:+.0f} % | {} |\n",
        path.substr(path.rfind('/') + 1), row.name, row.budget, ran.ran.peak_bytes, ran.handed_out,
        ran.mapped_bytes, ran.ran.stats.copied_bytes, ran.ran.stats.recomputed_steps,
        more_percent(static_cast<double>(ran.ran.least_ns), static_cast<double>(free.ran.least_ns)),
        equal ? "equal" : "DIFFER");
    if (!equal || !kept) return {Code::kInternal, path + ": not kept"};
  }
  return {};
}

Result<ir::VerifiedGraph> unet_step() {
  PYC_ASSIGN(const model_file::LoadedModel file,
             model_file::load_model_file("tests/models/unet.ir"));
  return test::with_gradients(*file.graph);
}
Result<ir::VerifiedGraph> dense_step() {
  PYC_ASSIGN(ir::Graph graph, driver::parse_model(test::dense_block(40, 8, 8)));
  return test::with_gradients(std::move(graph));
}
Result<ir::VerifiedGraph> residual_step() {
  PYC_ASSIGN(ir::Graph graph, driver::parse_model(test::residual_step(16, 128, 64)));
  return ir::verify_graph(std::move(graph));
}

struct Row {
  const char* name;
  const char* file;
  Result<ir::VerifiedGraph> (*make)();
};
constexpr Row kRows[] = {
    {"U-Net and its gradients", "unet_step.ir", unet_step},
    {"dense block of 40 layers and its gradients", "dense_step.ir", dense_step},
    {"16 residual layers, forward and backward in IR", "residual_step.ir", residual_step}};

Status write_graphs(const std::string& folder) {
  for (const Row& row : kRows) {
    PYC_ASSIGN(const ir::VerifiedGraph graph, row.make());
    std::ofstream(folder + "/" + row.file) << ir::print(*graph);
  }
  return {};
}

Status report(const std::vector<std::string>& models) {
  fmt::print(
      "| graph | steps | peak | arena | largest step | budget | steps again | predicted time | "
      "measured time | smallest budget | its predicted time | bits |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Row& row : kRows) {
    PYC_ASSIGN(const ir::VerifiedGraph graph, row.make());
    PYC_TRY(report_half(row.name, graph));
  }
  if (models.empty()) return {};
  fmt::print(
      "\n| model | budget | bytes | peak | handed out | parameters in the file | copied in a run | "
      "steps again | measured time | bits |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const std::string& path : models) PYC_TRY(report_budgets(path));
  return {};
}

}  // namespace
}  // namespace pyc

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  const bool write = given.size() == 2 && given[0] == "--write";
  const pyc::Status status = write ? pyc::write_graphs(given[1]) : pyc::report(given);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.to_string());
  return 1;
}
