#include <fmt/format.h>

#include <fstream>

#include "command.h"

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

void TraceFlag::begin(CompileOptions& compile) {
  if (path_.empty()) return;
  trace_.emplace();
  compile.trace(trace_->get());
}

void TraceFlag::stop() {
  if (trace_) trace_->stop();
}

void TraceFlag::write() const {
  if (trace_) write_file("--trace", path_, trace_->json());
}

}  // namespace pyc::tool
