// Every f32 argument of every unary function and short power, and two million f64 arguments of
// each. Where MPFR is installed, it measures the worst f32 arguments again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "loop/functions_check.h"
#ifdef PYC_HAVE_MPFR
#include "loop/functions_mpfr.h"
#endif

namespace pyc::loop {
namespace {

std::vector<CheckedFunction> all_functions() {
  std::vector<CheckedFunction> all = unary_functions();
  all.insert(all.end(), short_powers().begin(), short_powers().end());
  return all;
}

// The worst error, and the arguments that come nearest to it.
struct Hardest {
  static constexpr size_t kKept = 4096;
  static constexpr double kNear = 0.02;  // ulp

  struct Argument {
    double ulp;
    float x;
  };

  Worst<float> worst;
  std::vector<Argument> arguments;
  double least = 0.5;  // what is as good as correctly rounded is not kept

  void take(double error, float x) {
    worst.take(error, x);
    if (error <= least) return;
    arguments.push_back({error, x});
    if (arguments.size() == 2 * kKept) prune();
  }
  void join(const Hardest& other) {
    worst.join(other.worst);
    arguments.insert(arguments.end(), other.arguments.begin(), other.arguments.end());
  }
  // Keeps the worst, and of these what is near the worst error.
  void finish() {
    if (arguments.size() > kKept) prune();
    std::erase_if(arguments, [&](const Argument& a) { return a.ulp < worst.ulp - kNear; });
  }

 private:
  void prune() {
    const auto last = arguments.begin() + kKept - 1;
    std::nth_element(arguments.begin(), last, arguments.end(),
                     [](const Argument& a, const Argument& b) { return a.ulp > b.ulp; });
    least = last->ulp;
    arguments.resize(kKept);
  }
};

Hardest hardest_f32(const CheckedFunction& f, uint64_t first, uint64_t last) {
  Compiled<float> compiled(f.build);
  Hardest found;
  measure(
      compiled, f.oracle, (last - first) / Tape::kBatch,
      [&](uint64_t b, float* in) {
        for (size_t i = 0; i < Tape::kBatch; ++i) {
          in[i] = std::bit_cast<float>(static_cast<uint32_t>(first + b * Tape::kBatch + i));
        }
      },
      found);
  return found;
}

// The worst error of `arguments` by MPFR.
Worst<float> rechecked([[maybe_unused]] const CheckedFunction& f,
                       [[maybe_unused]] const std::vector<Hardest::Argument>& arguments) {
  Worst<float> worst;
#ifdef PYC_HAVE_MPFR
  const MpfrFunction exact = mpfr_function(f.name);
  EXPECT_NE(exact, nullptr) << f.name;
  if (exact == nullptr) return worst;
  Compiled<float> compiled(f.build);
  for (const Hardest::Argument& a : arguments) {
    const float y = compiled(a.x);
    if (std::isinf(y)) continue;
    const double error = mpfr_ulp_error(exact, a.x, y);
    EXPECT_NEAR(error, a.ulp, 1e-4) << f.name << " of " << a.x << ": the f64 oracle is wrong";
    worst.take(error, a.x);
  }
#endif
  return worst;
}

class Exhaustive : public testing::TestWithParam<CheckedFunction> {};

TEST_P(Exhaustive, EveryF32WithinItsBound) {
  const CheckedFunction& f = GetParam();
  const uint64_t parts = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t chunk = ((uint64_t{1} << 32) / parts + Tape::kBatch) / Tape::kBatch * Tape::kBatch;
  std::vector<Hardest> found(parts);
  std::vector<std::thread> threads;
  for (uint64_t p = 0; p < parts; ++p) {
    const uint64_t last = std::min(uint64_t{1} << 32, (p + 1) * chunk);
    threads.emplace_back([&, p, last] { found[p] = hardest_f32(f, p * chunk, last); });
  }
  for (std::thread& t : threads) t.join();
  Hardest all;
  for (const Hardest& h : found) all.join(h);
  all.finish();
  const Worst<float> again = rechecked(f, all.arguments);
  std::printf("f32 %-14s max %.4f ulp at %a, %llu arguments; MPFR: %.4f of the worst %llu\n",
              f.name.c_str(), all.worst.ulp, all.worst.x,
              static_cast<unsigned long long>(all.worst.count), again.ulp,
              static_cast<unsigned long long>(again.count));
  EXPECT_LE(all.worst.ulp, f.bound);
  EXPECT_LE(again.ulp, f.bound);
}

TEST_P(Exhaustive, ManyF64WithinItsBound) {
  const CheckedFunction& f = GetParam();
  Compiled<double> compiled(f.build);
  const auto worst = worst_error(compiled, f.wide_oracle, 1 << 13, [](uint64_t b, double* in) {
    for (size_t i = 0; i < Tape::kBatch; ++i) in[i] = sample_f64(b * Tape::kBatch + i);
  });
  std::printf("f64 %-14s max %.4f ulp at %a, %llu arguments\n", f.name.c_str(), worst.ulp, worst.x,
              static_cast<unsigned long long>(worst.count));
  EXPECT_LE(worst.ulp, f.wide_bound);
}

using Build = Expr (*)(Expr);

// How many f32 whose bits are in [first, last) the two have other results for. In place of positive
// ones stands 0; all NaNs are equal.
uint64_t words_unlike(Build f, Build g, uint64_t first, uint64_t last) {
  Compiled<float> one(f);
  Compiled<float> other(g);
  float in[Tape::kBatch];
  float y[Tape::kBatch];
  float z[Tape::kBatch];
  uint64_t unlike = 0;
  for (uint64_t at = first; at < last; at += Tape::kBatch) {
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      in[i] = std::bit_cast<float>(static_cast<uint32_t>(std::min(at + i, last - 1)));
      if (in[i] > 0) in[i] = 0.0f;
    }
    one.run(in, y);
    other.run(in, z);
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      const bool both_nan = std::isnan(y[i]) && std::isnan(z[i]);
      if (!both_nan && std::bit_cast<uint32_t>(y[i]) != std::bit_cast<uint32_t>(z[i])) ++unlike;
    }
  }
  return unlike;
}

void expect_alike(Build f, Build g, uint64_t first, uint64_t end) {
  const uint64_t parts = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t chunk = ((end - first) / parts / Tape::kBatch + 1) * Tape::kBatch;
  std::vector<uint64_t> unlike(parts);
  std::vector<std::thread> threads;
  for (uint64_t p = 0; p < parts; ++p) {
    const uint64_t begin = std::min(first + p * chunk, end);
    threads.emplace_back([=, &unlike, last = std::min(end, first + (p + 1) * chunk)] {
      unlike[p] = words_unlike(f, g, begin, last);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const uint64_t u : unlike) EXPECT_EQ(u, 0U);
}

// Of every f32 that is not positive, and of every NaN.
TEST(ExpNonpositive, HasTheBitsOfExpForEveryF32) {
  constexpr uint64_t kPositiveNaNs = 0x7F800000;
  expect_alike(exp_nonpositive, exp, kPositiveNaNs, uint64_t{1} << 32);
}

TEST(ExpNormal, HasTheBitsOfExpNonpositiveForEveryF32OfItsRange) {
  const auto least = std::bit_cast<uint32_t>(static_cast<float>(kLeastNormalExp));
  expect_alike(exp_normal, exp_nonpositive, uint64_t{1} << 31, uint64_t{least} + 1);
}

INSTANTIATE_TEST_SUITE_P(Functions, Exhaustive, testing::ValuesIn(all_functions()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pyc::loop
