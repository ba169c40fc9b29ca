// Moves the coefficients of an f32 polynomial by units in the last place towards the smallest error
// that the rounded arithmetic of src/loop/functions_*.cpp shows on samples; the exhaustive check of
// tests/loop/functions_slow_test.cpp decides.
//
//   g++ -std=c++20 -O3 -ffp-contract=off search.cpp -o search && ./search NAME SECONDS

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

namespace {

using Coefficients = std::vector<float>;

int32_t bits(float x) { return std::bit_cast<int32_t>(x); }
float number(int32_t b) { return std::bit_cast<float>(b); }

// As estrin() of functions_detail.h.
float estrin(const float* c, size_t n, float x) {
  if (n == 1) return c[0];
  const size_t low = std::bit_ceil(n - std::bit_ceil(n) / 2);
  float power = x;
  for (size_t i = low; i > 1; i /= 2) power *= power;
  return std::fma(estrin(c + low, n - low, x), power, estrin(c, low, x));
}
// The same, the first coefficient added last.
float first_last(const Coefficients& c, float x) {
  return std::fma(estrin(&c[1], c.size() - 1, x), x, c[0]);
}

float tanh_small(const Coefficients& c, float a) {
  const float z = a * a;
  return std::fma(a * z, first_last(c, z), a);
}
float tanh_large(const Coefficients& c, float a) {
  constexpr float kRound = 0x1.8p23f + 127;
  const float t = std::fma(std::fmin(a, 9.1f), 0x1.715476p1f, kRound);
  const float n = t - kRound;
  const float r = std::fma(n, 0x1.05c61p-30f, std::fma(n, -0x1.62e43p-2f, std::fmin(a, 9.1f)));
  const float u = std::fma(r * r, estrin(c.data(), c.size(), r), r);
  const float s = number(static_cast<int32_t>(static_cast<uint32_t>(bits(t)) << 23));
  return 1.0f - 1.0f / std::fma(s, u, std::fma(s, 0.5f, 0.5f));
}
float erf_small(const Coefficients& c, float x) {
  return std::fma(x, estrin(c.data(), c.size(), x * x), x);
}
float erf_large(const Coefficients& c, float a) {
  const float p = first_last(c, std::fmin(a, 3.925f) - 1.25f);
  return std::fma(-p, p, 1.0f);
}
float log_f32(const Coefficients& c, float x) {
  constexpr int32_t kTwoThirds = 0x3f2aaaab;
  const int32_t offset = bits(x) - kTwoThirds;
  const auto k = static_cast<float>(offset >> 23);
  const float f = number((offset & 0x7fffff) + kTwoThirds) - 1.0f;
  const float low = std::fma(k, 0x1.7f7d1cp-20f, f * f * estrin(c.data(), c.size(), f));
  const float high = k * 0x1.62e4p-1f;
  const float sum = high + f;
  return sum + ((f - (sum - high)) + low);
}

struct Search {
  std::string_view name;
  float (*evaluate)(const Coefficients&, float);
  double (*exact)(double);
  float lo;
  float hi;
  Coefficients start;
};

const Search kSearches[] = {
    {"tanh_small",
     tanh_small,
     std::tanh,
     0.3f,
     0.9f,
     {-0x1.55554ep-2f, 0x1.110f38p-3f, -0x1.b9ca5p-5f, 0x1.62f1e8p-6f, -0x1.0ed84cp-7f,
      0x1.52a05p-9f, -0x1.dde288p-12f}},
    {"tanh_large",
     tanh_large,
     std::tanh,
     0.9f,
     9.2f,
     {0x1.000002p0f, 0x1.55548ep-1f, 0x1.5551d8p-2f, 0x1.123c0cp-3f, 0x1.6f76ap-5f}},
    {"erf_small",
     erf_small,
     std::erf,
     0.1f,
     1.0f,
     {0x1.06eba8p-3f, -0x1.81274p-2f, 0x1.ce2d5p-4f, -0x1.b7fe9p-6f, 0x1.542e0ep-8f,
      -0x1.a50aeap-11f, 0x1.4c33a8p-14f}},
    {"erf_large",
     erf_large,
     std::erf,
     1.0f,
     4.1f,
     {0x1.1c552ap-2f, -0x1.b420ap-2f, 0x1.a55c5cp-3f, 0x1.c7d7p-7f, -0x1.6748dep-5f, 0x1.e240bep-8f,
      0x1.75516ap-8f, -0x1.5eb90cp-9f, 0x1.0ac93ap-12f, 0x1.1382fap-14f, -0x1.9d98ep-17f}},
    {"log",
     log_f32,
     std::log,
     0.3f,
     3.0f,
     {-0x1p-1f, 0x1.555502p-2f, -0x1.ffff14p-3f, 0x1.99d1c6p-3f, -0x1.559802p-3f, 0x1.1ec0dp-3f,
      -0x1.f3a7dep-4f, 0x1.1ec6e2p-3f, -0x1.06cdfap-3f}},
};

struct Sample {
  float x;
  double exact;
  double per_ulp;
};

std::vector<Sample> samples_of(const Search& s) {
  constexpr int64_t kCount = 3'000'000;
  std::vector<Sample> samples;
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t step = (int64_t{bits(s.hi)} - bits(s.lo)) * i / kCount;
    const float x = number(static_cast<int32_t>(bits(s.lo) + step));
    const double y = s.exact(x);
    samples.push_back({x, y, std::ldexp(1.0, 23 - std::ilogb(y))});
  }
  return samples;
}

// The worst error in ulp; stops at the first above `enough`.
double worst(const Search& s, const Coefficients& c, const std::vector<Sample>& all,
             double enough) {
  double most = 0;
  for (const Sample& p : all) {
    most = std::fmax(most, std::fabs(s.evaluate(c, p.x) - p.exact) * p.per_ulp);
    if (most > enough) break;
  }
  return most;
}

uint64_t random_word() {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// One to three coefficients moved; the later ones, which count less, farther.
Coefficients moved(Coefficients c) {
  for (uint64_t left = 1 + random_word() % 3; left > 0; --left) {
    const size_t i = random_word() % c.size();
    const int64_t reach = int64_t{1} << (random_word() % (2 * i + 2));
    const auto units = static_cast<int64_t>(random_word() % (2 * reach + 1)) - reach;
    c[i] = number(static_cast<int32_t>(bits(c[i]) + units));
  }
  return c;
}

void search(const Search& s, double seconds) {
  const std::vector<Sample> samples = samples_of(s);
  Coefficients best = s.start;
  double error = worst(s, best, samples, HUGE_VAL);
  std::printf("start: %.4f ulp\n", error);
  for (const std::time_t end = std::time(nullptr) + static_cast<std::time_t>(seconds);
       std::time(nullptr) < end;) {
    const Coefficients next = moved(best);
    const double found = worst(s, next, samples, error);
    if (found >= error) continue;
    error = found;
    best = next;
  }
  std::printf("found: %.4f ulp with", error);
  for (float c : best) std::printf(" %a", c);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  for (const Search& s : kSearches) {
    if (argc == 3 && s.name == argv[1]) {
      search(s, std::atof(argv[2]));
      return 0;
    }
  }
  std::fprintf(stderr, "usage: search tanh_small|tanh_large|erf_small|erf_large|log SECONDS\n");
  return 2;
}
