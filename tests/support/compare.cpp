#include "support/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/aligned_buffer.h"
#include "session/model.h"

namespace pyc::test {
namespace {

using Bytes = std::vector<std::byte>;

// Guarded memory for tensors; inputs are copied into it.
class Tensors {
 public:
  Status add(const runtime::IoSpec& spec, const Bytes* content) {
    PYC_ASSIGN(AlignedBuffer buffer, AlignedBuffer::create(static_cast<size_t>(spec.bytes),
                                                           AlignedBuffer::Mode::kGuarded));
    memory_.push_back(std::move(buffer));
    if (content != nullptr) std::copy(content->begin(), content->end(), memory_.back().data());
    views_.push_back({memory_.back().data(), spec.dtype, spec.shape, spec.bytes});
    return {};
  }
  const std::vector<runtime::TensorView>& views() const { return views_; }
  bool intact() const {
    return std::all_of(memory_.begin(), memory_.end(),
                       [](const AlignedBuffer& b) { return b.check_canary(); });
  }
  std::vector<Bytes> contents() const {
    std::vector<Bytes> out;
    for (const AlignedBuffer& b : memory_) out.emplace_back(b.bytes().begin(), b.bytes().end());
    return out;
  }

 private:
  std::vector<AlignedBuffer> memory_;
  std::vector<runtime::TensorView> views_;
};

std::string name_of(const driver::CompileOptions& o) {
  return fmt::format("{} lanes {} threads {}{}", o.device, o.lanes, o.threads,
                     o.kernels.empty() ? "" : " without " + o.kernels[0]);
}

std::string first_difference(const DrawnGraph& drawn, const std::vector<Bytes>& expected,
                             const std::vector<Bytes>& found) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == found[i]) continue;
    const ir::Value& v = drawn.graph.value(drawn.graph.outputs[i]);
    const auto at = std::mismatch(expected[i].begin(), expected[i].end(), found[i].begin()).first -
                    expected[i].begin();
    return fmt::format("output %{} {} differs from element {} on", v.name, v.type.to_string(),
                       at / dtype_size(v.type.dtype));
  }
  return "";
}

}  // namespace

Result<std::vector<Bytes>> run_drawn(const DrawnGraph& drawn,
                                     const driver::CompileOptions& options) {
  PYC_ASSIGN(const auto model, session::compile(drawn.graph, options));
  Tensors inputs;
  Tensors outputs;
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    PYC_TRY(inputs.add(model->inputs()[i], &drawn.inputs[i]));
  }
  for (const runtime::IoSpec& spec : model->outputs()) PYC_TRY(outputs.add(spec, nullptr));
  PYC_TRY(model->run(inputs.views(), outputs.views()));
  if (!outputs.intact() || !inputs.intact()) {
    return Status(Code::kInternal, "memory around a tensor was written");
  }
  return outputs.contents();
}

driver::CompileOptions plain_reference() {
  driver::CompileOptions o;
  o.device = "reference";
  o.determinism = driver::Determinism::kStrict;
  o.fuse = false;
  o.reuse = false;
  o.threads = 1;
  o.cache = false;
  return o;
}

driver::CompileOptions cpu_options(int lanes, int threads) {
  driver::CompileOptions o;
  o.determinism = driver::Determinism::kStrict;
  o.lanes = lanes;
  o.threads = threads;
  o.cache = false;
  return o;
}

std::string difference(const DrawnGraph& drawn,
                       const std::vector<driver::CompileOptions>& settings) {
  return difference(drawn, plain_reference(), settings);
}

std::string difference(const DrawnGraph& drawn, const driver::CompileOptions& plain,
                       const std::vector<driver::CompileOptions>& settings) {
  const auto expected = run_drawn(drawn, plain);
  if (!expected.ok()) return "reference: " + expected.status().to_string();
  for (const driver::CompileOptions& o : settings) {
    const auto found = run_drawn(drawn, o);
    if (!found.ok()) return name_of(o) + ": " + found.status().to_string();
    const std::string d = first_difference(drawn, *expected, *found);
    if (!d.empty()) return name_of(o) + ": " + d;
  }
  return "";
}

}  // namespace pyc::test
