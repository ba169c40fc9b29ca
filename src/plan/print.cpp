#include <fmt/format.h>

#include <iterator>

#include "base/escape.h"
#include "plan/liveness.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

void print_list(std::string& text, std::string_view title, const std::vector<uint32_t>& buffers) {
  if (buffers.empty()) return;
  text += fmt::format(" {}", title);
  for (const uint32_t b : buffers) text += fmt::format(" b{}", b);
}

void print_buffer(std::string& text, size_t index, const PlannedBuffer& buffer) {
  text += fmt::format("  b{} {}", index, buffer_class_name(buffer.cls));
  if (!in_arena(buffer)) text += fmt::format("[{}]", buffer.io_index);
  text += fmt::format(" {}: {} bytes", printable(buffer.name), buffer.bytes);
  if (in_arena(buffer)) text += fmt::format(" at {}", buffer.offset);
  text += fmt::format(", steps {}-{}\n", buffer.first_step, buffer.last_step);
}

void print_metrics(std::string& text, const PlanMetrics& m) {
  text += "metrics:\n";
  for (size_t c = 0; c < kBufferClasses; ++c) {
    text +=
        fmt::format("  {} {}\n", buffer_class_name(static_cast<BufferClass>(c)), m.class_bytes[c]);
  }
  text += fmt::format("  arena {} (requested {}, lower bound {} at step {})\n", m.arena_bytes,
                      m.requested_bytes, m.lower_bound_bytes, m.peak_step);
  text += fmt::format("  arena buffers {} (reused {}, largest {}, overlapping pairs {})\n",
                      m.buffers, m.reused, m.largest_bytes, m.overlap_pairs);
  text += fmt::format("  scratch {} per thread\n  peak {}\n", m.scratch_bytes, m.peak_bytes);
}

}  // namespace

std::string print(const ExecutionPlan& plan) {
  std::string text = "buffers:\n";
  for (size_t b = 0; b < plan.buffers.size(); ++b) print_buffer(text, b, plan.buffers[b]);
  text += "steps:\n";
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlannedStep& step = plan.steps[s];
    text += fmt::format("  {} g{}", s, step.group);
    print_list(text, "reads", step.reads);
    print_list(text, "writes", step.writes);
    if (step.workspace != ir::kNoId) print_list(text, "workspace", {step.workspace});
    text += '\n';
  }
  print_metrics(text, plan.metrics);
  return text;
}

}  // namespace pyc::plan
