#include <fmt/format.h>

#include <iterator>

#include "plan/liveness.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

void print_list(std::string& text, std::string_view title, const std::vector<uint32_t>& buffers) {
  if (buffers.empty()) return;
  fmt::format_to(std::back_inserter(text), " {}", title);
  for (const uint32_t b : buffers) fmt::format_to(std::back_inserter(text), " b{}", b);
}

void print_buffer(std::string& text, size_t index, const PlannedBuffer& buffer) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "  b{} {}", index, buffer_class_name(buffer.cls));
  if (!in_arena(buffer)) fmt::format_to(out, "[{}]", buffer.io_index);
  fmt::format_to(out, " {}: {} bytes", buffer.name, buffer.bytes);
  if (in_arena(buffer)) fmt::format_to(out, " at {}", buffer.offset);
  fmt::format_to(out, ", steps {}-{}\n", buffer.first_step, buffer.last_step);
}

void print_metrics(std::string& text, const PlanMetrics& m) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "metrics:\n");
  for (size_t c = 0; c < kBufferClasses; ++c) {
    fmt::format_to(out, "  {} {}\n", buffer_class_name(static_cast<BufferClass>(c)),
                   m.class_bytes[c]);
  }
  fmt::format_to(out, "  arena {} (requested {}, lower bound {} at step {})\n", m.arena_bytes,
                 m.requested_bytes, m.lower_bound_bytes, m.peak_step);
  fmt::format_to(out, "  arena buffers {} (reused {}, largest {}, overlapping pairs {})\n",
                 m.buffers, m.reused, m.largest_bytes, m.overlap_pairs);
  fmt::format_to(out, "  scratch {} per thread\n  peak {}\n", m.scratch_bytes, m.peak_bytes);
}

}  // namespace

std::string print(const ExecutionPlan& plan) {
  std::string text = "buffers:\n";
  for (size_t b = 0; b < plan.buffers.size(); ++b) print_buffer(text, b, plan.buffers[b]);
  text += "steps:\n";
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlannedStep& step = plan.steps[s];
    fmt::format_to(std::back_inserter(text), "  {} g{}", s, step.group);
    print_list(text, "reads", step.reads);
    print_list(text, "writes", step.writes);
    if (step.workspace != ir::kNoId) print_list(text, "workspace", {step.workspace});
    text += '\n';
  }
  print_metrics(text, plan.metrics);
  return text;
}

}  // namespace pyc::plan
