#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "commands.h"
#include "conformance.h"

namespace pyc::tool {
namespace {

void add_common(CLI::App& app, Common& c) {
  app.add_option("model", c.model, "Model file (text IR, .ir)")->required();
  app.add_option("--device", c.compile.device, "cpu, reference or null")->capture_default_str();
  app.add_option("--threads", c.compile.threads, "Threads; 0: one per core")->capture_default_str();
  app.add_option("--lanes", c.compile.lanes,
                 "Vector width of generated code in f32 lanes: 4, 8, 16; 0: the CPU's own")
      ->capture_default_str();
  const std::map<std::string, driver::Determinism> levels{
      {"strict", driver::Determinism::kStrict},
      {"balanced", driver::Determinism::kBalanced},
      {"fast", driver::Determinism::kFast}};
  app.add_option("--determinism", c.compile.determinism, "strict, balanced or fast")
      ->transform(CLI::CheckedTransformer(levels, CLI::ignore_case));
  app.add_option("--memory-budget", c.compile.memory_budget,
                 "Bytes all memory of a run may take; the compile is refused beyond");
  app.add_option("--exclude", c.compile.kernels, "Kernel candidates to leave out, by name");
  app.add_flag("--no-fuse{false}", c.compile.fuse, "One group per node");
  app.add_flag("--no-reuse{false}", c.compile.reuse, "No two buffers share memory");
  app.add_flag("--json", c.json, "Print JSON");
}

int main_checked(int argc, char** argv) {
  CLI::App app{"PyC: compiles and runs machine-learning models"};
  app.require_subcommand(1);

  RunCommand run;
  CLI::App* run_app = app.add_subcommand("run", "Compile a model, run it on seeded random inputs");
  add_common(*run_app, run.common);
  run_app->add_option("--seed", run.seed, "Seed of the inputs")->capture_default_str();
  run_app->add_option("--repeat", run.repeat, "Runs; the median time is shown")
      ->check(CLI::Range(1, 1000000));
  run_app->add_flag("--explain", run.explain, "Print the main decisions too");

  Common explain;
  CLI::App* explain_app = app.add_subcommand("explain", "Groups, candidates and every decision");
  add_common(*explain_app, explain);

  Common dump;
  std::string stage;
  CLI::App* dump_app = app.add_subcommand("dump", "The text of one stage of the compile");
  add_common(*dump_app, dump);
  dump_app->add_option("--stage", stage, "graph, passes, groups, loop, plan, llvm or asm")
      ->required();
  dump_app->add_option("--target", dump.compile.target, "Code for another machine")
      ->check(CLI::IsMember({"aarch64_neon", "x86_avx2", "x86_avx512"}));

  ConformanceCommand conformance;
  CLI::App* conformance_app = app.add_subcommand(
      "conformance", "Run every folder with model.onnx and test_data_set_* and compare");
  conformance_app->add_option("folder", conformance.folder, "Searched for cases")->required();
  conformance_app->add_option("--device", conformance.compile.device, "cpu or reference");
  conformance_app->add_option("--threads", conformance.compile.threads, "Threads per case");
  conformance_app->add_option("--rtol", conformance.tolerance.rtol);
  conformance_app->add_option("--atol", conformance.tolerance.atol);
  conformance_app->add_option("--scale-tol", conformance.tolerance.scale,
                              "Allowed difference as a part of the largest magnitude");
  conformance_app->add_option("--filter", conformance.filter, "Only cases with this in their path");
  conformance_app->add_option("--jobs", conformance.jobs, "Cases at a time");
  conformance_app->add_option("--time-limit", conformance.time_limit, "Seconds per case");
  conformance_app->add_flag("--json", conformance.json, "Print JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int shown = app.exit(e);
    return shown == 0 ? 0 : exit_code(Status(Code::kUnknownOption, ""));
  }
  if (conformance_app->parsed()) return run_conformance(conformance);
  Status status;
  if (run_app->parsed()) status = run_model(run);
  if (explain_app->parsed()) status = explain_model(explain);
  if (dump_app->parsed()) status = dump_model(dump, stage);
  if (!status.ok()) fmt::print(stderr, "error: {}\n", status.to_string());
  return exit_code(status);
}

}  // namespace
}  // namespace pyc::tool

int main(int argc, char** argv) {
  try {
    return pyc::tool::main_checked(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: internal: {}\n", e.what());
    return pyc::tool::exit_code(pyc::Status(pyc::Code::kInternal, ""));
  }
}
