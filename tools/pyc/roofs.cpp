#include "roofs.h"

#include <algorithm>

namespace pyc::tool {
namespace {

constexpr int kRuns = 5;
// Of a product: a core's own cache holds the small ones, the large ones are work for all cores.
struct Square {
  int64_t n;
  int runs;
};
constexpr Square kSquares[] = {{256, 8 * kRuns}, {768, kRuns}};
constexpr Square kInterpreted = {48, kRuns};

int64_t fastest_run(Model& model, int runs) {
  const std::vector<AnyValue> inputs = InputOptions{}.make(model);
  const std::vector<Tensor> outputs = model.make_outputs();
  const auto in = views_of(inputs);
  const auto out = views_of(outputs);
  int64_t best = INT64_MAX;
  for (int i = 0; i < runs; ++i) best = std::min(best, model.run(in, out).wall_ns);
  return std::max<int64_t>(best, 1);
}

// Flops a nanosecond of a product of two squares.
double rate_of(const CompileOptions& options, Square square, pyc_dtype a, pyc_dtype b,
               const std::string& op, double most) {
  const int64_t n = square.n;
  ModelBuilder builder("flops");
  builder.output(builder.op(
      op, {builder.input("x", a, {n, n}), builder.random("w", b, {n, n}, 1, -most, most)}));
  Model model = builder.compile(options);
  return 2.0 * static_cast<double>(n * n * n) /
         static_cast<double>(fastest_run(model, square.runs));
}

double product_rate(const CompileOptions& options, bool generated, pyc_dtype a, pyc_dtype b,
                    const std::string& op, double most) {
  if (!generated) return rate_of(options, kInterpreted, a, b, op, most);
  double best = 0.0;
  for (const Square& s : kSquares) best = std::max(best, rate_of(options, s, a, b, op, most));
  return best;
}

}  // namespace

Roofs probe_roofs(const CompileOptions& asked, bool byte_products) {
  CompileOptions options = asked;
  // Of the model, not of the probe.
  options.reset("memory_budget");
  options.reset("state");
  const bool generated = options.text("device") == "cpu";
  const int64_t elements = generated ? int64_t{8} << 20 : int64_t{1} << 15;
  Roofs out;
  out.flops_per_ns = product_rate(options, generated, PYC_DTYPE_F32, PYC_DTYPE_F32, "matmul", 1.0);
  if (byte_products) {
    constexpr double kMostByte = 127.0;
    out.byte_products_per_ns =
        product_rate(options, generated, PYC_DTYPE_U8, PYC_DTYPE_I8, "matmul_integer", kMostByte);
  }
  ModelBuilder b("bytes");
  b.output(b.relu(b.input("x", PYC_DTYPE_F32, {elements})));
  Model model = b.compile(options);
  out.bytes_per_ns =
      8.0 * static_cast<double>(elements) / static_cast<double>(fastest_run(model, kRuns));
  return out;
}

}  // namespace pyc::tool
