#include <fmt/format.h>

#include "base/escape.h"
#include "plan/liveness.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

void print_list(std::string& text, std::string_view title, const std::vector<uint32_t>& instances) {
  if (instances.empty()) return;
  text += fmt::format(" {}", title);
  for (const uint32_t i : instances) text += fmt::format(" i{}", i);
}

void print_instance(std::string& text, const ExecutionPlan& plan, size_t index) {
  const Instance& instance = plan.instances[index];
  text += fmt::format("  i{} {}", index, buffer_class_name(instance.cls));
  if (!in_arena(instance)) text += fmt::format("[{}]", instance.io_index);
  text += fmt::format(" {}: {} bytes, {}", printable(instance.name), instance.bytes,
                      plan.places[instance.place].name);
  if (in_arena(instance)) text += fmt::format(" at {}", instance.offset);
  const Lifetime life = lifetime(plan, instance);
  text += fmt::format(", steps {}-{}\n", life.first, life.last);
}

void print_step(std::string& text, const ExecutionPlan& plan, size_t index) {
  const Step& step = plan.steps[index];
  text += fmt::format("  {} ", index);
  switch (step.kind) {
    case StepKind::kRun:
      text += fmt::format("run g{} on {}", step.group, plan.places[step.place].name);
      break;
    case StepKind::kCopy:
      text += "copy";
      break;
    case StepKind::kRecord:
      text += fmt::format("record e{}", step.event);
      break;
    case StepKind::kWait:
      text += fmt::format("wait e{}", step.event);
      break;
  }
  print_list(text, "reads", step.reads);
  print_list(text, "writes", step.writes);
  if (step.workspace != ir::kNoId) print_list(text, "workspace", {step.workspace});
  for (const loop::InPlacePair& p : step.in_place) {
    text += fmt::format(" i{} in place of i{}", p.written, p.read);
  }
  if (step.queue != 0) text += fmt::format(" queue {}", step.queue);
  text += '\n';
}

void print_metrics(std::string& text, const ExecutionPlan& plan, uint32_t index) {
  const bool states = !plan.states.empty();
  const Place& place = plan.places[index];
  const PlanMetrics& m = place.metrics;
  int64_t packed = 0;
  for (const Instance& instance : plan.instances) {
    if (instance.place == index && instance.cls == BufferClass::kParameter &&
        !instance.packing.empty()) {
      packed += instance.bytes;
    }
  }
  text += fmt::format("metrics of {}:\n", place.name);
  for (size_t c = 0; c < kBufferClasses; ++c) {
    if (static_cast<BufferClass>(c) == BufferClass::kState && !states) continue;
    if (static_cast<BufferClass>(c) == BufferClass::kMapped && m.class_bytes[c] == 0) continue;
    text +=
        fmt::format("  {} {}", buffer_class_name(static_cast<BufferClass>(c)), m.class_bytes[c]);
    if (static_cast<BufferClass>(c) == BufferClass::kParameter) {
      text += fmt::format(" (packed {})", packed);
    }
    text += '\n';
  }
  if (states || m.copied_bytes > 0) text += fmt::format("  copied {} a run\n", m.copied_bytes);
  text += fmt::format("  arena {} (requested {}, lower bound {} at step {})\n", m.arena_bytes,
                      m.requested_bytes, m.lower_bound_bytes, m.peak_step);
  text += fmt::format(
      "  arena instances {} (reused {}, in place {}, largest {}, overlapping pairs {})\n",
      m.buffers, m.reused, m.in_place, m.largest_bytes, m.overlap_pairs);
  text += fmt::format("  scratch {} per thread\n  peak {}\n", m.scratch_bytes, m.peak_bytes);
}

}  // namespace

std::string print(const ExecutionPlan& plan) {
  std::string text = "instances:\n";
  for (size_t i = 0; i < plan.instances.size(); ++i) print_instance(text, plan, i);
  text += "steps:\n";
  for (size_t s = 0; s < plan.steps.size(); ++s) print_step(text, plan, s);
  for (uint32_t p = 0; p < plan.places.size(); ++p) print_metrics(text, plan, p);
  return text;
}

}  // namespace pyc::plan
