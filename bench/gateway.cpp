// What one call of pyc_run_model costs besides its kernels: models of one and of eight elements on
// one thread. Prints the median of batches; exits 1 when it is not under 5 us.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <pyc/pyc.hpp>
#include <string>
#include <vector>

namespace {

constexpr double kLimitUs = 5.0;
constexpr int kBatches = 200;
constexpr int kRuns = 500;

struct Workload {
  const char* name;
  const char* text;
};

constexpr Workload kWorkloads[] = {
    {"relu_1", "graph @g(%x: f32[1]) -> (%y) {\n  %y = relu(%x)\n}\n"},
    {"softmax_8", "graph @g(%x: f32[1,8]) -> (%y) {\n  %y = softmax(%x) {axis=1}\n}\n"},
};

double batch_us(pyc::Model& model, const std::vector<pyc_tensor_view>& in,
                const std::vector<pyc_tensor_view>& out) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) model.run(in, out);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / kRuns;
}

double median_us(const Workload& workload) {
  pyc::CompileOptions options;
  options.set("threads", 1);
  pyc::Model model(pyc::Graph::parse(workload.text), options);
  const pyc_value_info info = model.input(0);
  const pyc::Tensor x =
      pyc::Tensor::random(info.dtype, pyc::Shape(info.shape, info.shape + info.rank), 1);
  const std::vector<pyc::Tensor> outputs = model.make_outputs();
  const std::vector<pyc_tensor_view> in = {x.view()};
  const std::vector<pyc_tensor_view> out = {outputs[0].view()};
  std::vector<double> times;
  for (int b = 0; b < kBatches; ++b) times.push_back(batch_us(model, in, out));
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  return times[kBatches / 2];
}

}  // namespace

int main() {
  bool kept = true;
  for (const Workload& workload : kWorkloads) {
    const double us = median_us(workload);
    kept = kept && us < kLimitUs;
    fmt::print("{{\"bench\": \"gateway_{}\", \"us_per_run\": {:.3f}, \"limit_us\": {:.1f}}}\n",
               workload.name, us, kLimitUs);
  }
  return kept ? 0 : 1;
}
