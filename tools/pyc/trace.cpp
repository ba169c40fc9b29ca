#include <fmt/format.h>

#include <fstream>

#include "command.h"
#include "say.h"

namespace pyc::tool {

void write_file(const std::string& flag, const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(PYC_STATUS_IO_ERROR, fmt::format("{}: cannot write {}", flag, path), "");
}

void TraceFlag::declare(Options& options) {
  options.text("--trace", path_, "File to write a trace to, for Perfetto (ui.perfetto.dev)");
}

void TraceFlag::declare_runs(Options& options) {
  options.flag("--trace-all", every_run_,
               "Record every run in the trace, also short ones that it then slows by over 2 %");
}

void TraceFlag::begin(CompileOptions& compile) {
  if (path_.empty()) return;
  trace_.emplace();
  if (every_run_) trace_->every_run();
  compile.trace(trace_->get());
}

void TraceFlag::stop() {
  if (trace_) trace_->stop();
}

void TraceFlag::write() const {
  if (trace_) write_file("--trace", path_, trace_->json());
}

void TraceFlag::print() const {
  if (!trace_) return;
  const Trace::Runs runs = trace_->runs();
  if (runs.passed_over == 0) return;
  say("trace   {} of {} runs recorded, so that it costs under 2 % (--trace-all: every run)\n",
      runs.recorded, runs.recorded + runs.passed_over);
}

}  // namespace pyc::tool
