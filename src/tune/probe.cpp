#include "tune/probe.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "driver/compile.h"
#include "session/model.h"
#include "tune/reference.h"

namespace pyc::tune {
namespace {

constexpr int64_t kEachNs = 1'500'000'000;
constexpr int kMostRuns = 200;

constexpr std::string_view kProducts = R"(graph @products(%x: f32[384,384]) -> (%y) {
  %w = const f32[384,384] random(seed=1, lo=-1, hi=1)
  %y = matmul(%x, %w) : f32[384,384]
}
)";
constexpr double kProductFlops = 2.0 * 384 * 384 * 384;
constexpr std::string_view kCopies = R"(graph @copies(%x: f32[8388608]) -> (%y) {
  %y = relu(%x) : f32[8388608]
}
)";
constexpr double kCopyBytes = 2.0 * 4 * 8388608;
constexpr std::string_view kNothing = R"(graph @nothing(%x: f32[4]) -> (%y) {
  %y = relu(%x) : f32[4]
}
)";

// The fastest of the runs that the time allows.
Result<double> fastest_ns(std::string_view text, const driver::CompileOptions& options) {
  PYC_ASSIGN(ir::Graph graph, driver::parse_model(text));
  PYC_ASSIGN(const std::unique_ptr<runtime::Model> model,
             session::compile(std::move(graph), options));
  const runtime::IoSpec& in = model->inputs()[0];
  const runtime::IoSpec& out = model->outputs()[0];
  PYC_ASSIGN(AlignedBuffer from, AlignedBuffer::create(static_cast<size_t>(in.bytes)));
  PYC_ASSIGN(AlignedBuffer to, AlignedBuffer::create(static_cast<size_t>(out.bytes)));
  fill_seeded(in.dtype, from.bytes(), 1);
  const runtime::TensorView input{
      .data = from.data(), .dtype = in.dtype, .shape = in.shape, .bytes = in.bytes};
  const runtime::TensorView output{
      .data = to.data(), .dtype = out.dtype, .shape = out.shape, .bytes = out.bytes};
  int64_t best = INT64_MAX;
  const int64_t end = now_ns() + kEachNs;
  for (int i = 0; i < kMostRuns && (i < 3 || now_ns() < end); ++i) {
    PYC_ASSIGN(const std::vector<int64_t> steps, model->profile({&input, 1}, {&output, 1}));
    int64_t sum = 0;
    for (const int64_t ns : steps) sum += ns;
    best = std::min(best, sum);
  }
  return static_cast<double>(std::max<int64_t>(best, 1));
}

}  // namespace

Result<driver::MachineProbe> probe_machine(const driver::CompileOptions& asked) {
  driver::CompileOptions options;
  options.device = asked.device;
  options.threads = asked.threads;
  PYC_ASSIGN(const double products, fastest_ns(kProducts, options));
  PYC_ASSIGN(const double copies, fastest_ns(kCopies, options));
  PYC_ASSIGN(const double nothing, fastest_ns(kNothing, options));
  return driver::MachineProbe{.flops_per_ns = kProductFlops / products,
                              .bytes_per_ns = kCopyBytes / copies,
                              .step_ns = nothing};
}

}  // namespace pyc::tune
