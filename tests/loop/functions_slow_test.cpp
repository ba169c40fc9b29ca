// Every f32 argument of every unary function, and a million f64 arguments of each.

#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

#include "loop/functions_check.h"

namespace pyc::loop {
namespace {

class Exhaustive : public testing::TestWithParam<Function> {};

Worst<float> worst_f32(const Function& f, uint64_t first, uint64_t last) {
  Compiled<float> compiled(f.build);
  return worst_error(compiled, f.oracle, (last - first) / Tape::kBatch, [&](uint64_t b, float* in) {
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      in[i] = std::bit_cast<float>(static_cast<uint32_t>(first + b * Tape::kBatch + i));
    }
  });
}

TEST_P(Exhaustive, EveryF32WithinOneUlp) {
  const Function& f = GetParam();
  const uint64_t parts = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t chunk = ((uint64_t{1} << 32) / parts + Tape::kBatch) / Tape::kBatch * Tape::kBatch;
  std::vector<Worst<float>> found(parts);
  std::vector<std::thread> threads;
  for (uint64_t p = 0; p < parts; ++p) {
    const uint64_t last = std::min(uint64_t{1} << 32, (p + 1) * chunk);
    threads.emplace_back([&, p, last] { found[p] = worst_f32(f, p * chunk, last); });
  }
  for (std::thread& t : threads) t.join();
  Worst<float> worst;
  for (const Worst<float>& w : found) worst.join(w);
  std::printf("f32 %-8s max %.4f ulp at %a, %llu arguments\n", f.name.c_str(), worst.ulp, worst.x,
              static_cast<unsigned long long>(worst.count));
  EXPECT_LE(worst.ulp, 1.0);
}

TEST_P(Exhaustive, ManyF64WithinTwoUlp) {
  const Function& f = GetParam();
  Compiled<double> compiled(f.build);
  const auto worst = worst_error(compiled, f.wide_oracle, 1 << 13, [](uint64_t b, double* in) {
    for (size_t i = 0; i < Tape::kBatch; ++i) in[i] = sample_f64(b * Tape::kBatch + i);
  });
  std::printf("f64 %-8s max %.4f ulp at %a, %llu arguments\n", f.name.c_str(), worst.ulp, worst.x,
              static_cast<unsigned long long>(worst.count));
  EXPECT_LE(worst.ulp, 2.0);
}

INSTANTIATE_TEST_SUITE_P(Functions, Exhaustive, testing::ValuesIn(unary_functions()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pyc::loop
