#include "roofs.h"

#include <algorithm>

namespace pyc::tool {
namespace {

int64_t fastest_run(Model& model, int runs) {
  const std::vector<AnyValue> inputs = InputOptions{}.make(model);
  const std::vector<Tensor> outputs = model.make_outputs();
  const auto in = views_of(inputs);
  const auto out = views_of(outputs);
  int64_t best = INT64_MAX;
  for (int i = 0; i < runs; ++i) best = std::min(best, model.run(in, out).wall_ns);
  return std::max<int64_t>(best, 1);
}

}  // namespace

Roofs probe_roofs(const CompileOptions& asked) {
  CompileOptions options = asked;
  // Of the model, not of the probe.
  options.reset("memory_budget");
  options.reset("state");
  const bool generated = options.text("device") == "cpu";
  const int64_t n = generated ? 384 : 48;
  const int64_t elements = generated ? int64_t{8} << 20 : int64_t{1} << 15;
  constexpr int kRuns = 5;
  Roofs out;
  {
    ModelBuilder b("flops");
    b.output(b.matmul(b.input("x", PYC_DTYPE_F32, {n, n}),
                      b.random("w", PYC_DTYPE_F32, {n, n}, 1, -1.0, 1.0)));
    Model model = b.compile(options);
    out.flops_per_ns =
        2.0 * static_cast<double>(n * n * n) / static_cast<double>(fastest_run(model, kRuns));
  }
  ModelBuilder b("bytes");
  b.output(b.relu(b.input("x", PYC_DTYPE_F32, {elements})));
  Model model = b.compile(options);
  out.bytes_per_ns =
      8.0 * static_cast<double>(elements) / static_cast<double>(fastest_run(model, kRuns));
  return out;
}

}  // namespace pyc::tool
