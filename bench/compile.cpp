// How long it takes to compile a transformer encoder of 12 layers, 768 wide, 12 heads, made with
// ModelBuilder, and how many kernels it needs. The first compile of the process is the cold one;
// further ones, with the compile cache left out, show what the machine's other users hid. Exits 1
// when a limit is not kept.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <pyc/pyc.hpp>
#include <string>
#include <vector>

namespace {

constexpr double kLimitColdMs = 1500.0;
constexpr int64_t kLimitKernels = 40;
constexpr double kLimitKernelMs = 40.0;
constexpr double kLimitCachedMs = 10.0;
constexpr int kRounds = 5;

constexpr int64_t kLayers = 12;
constexpr int64_t kWidth = 768;
constexpr int64_t kHeads = 12;
constexpr int64_t kInner = 3072;
constexpr int64_t kTokens = 128;

// BERT's encoder: post-norm, gelu, an additive mask for padded tokens.
class Encoder {
 public:
  Encoder() {
    pyc::Value x = b_.input("x", PYC_DTYPE_F32, {1, kTokens, kWidth});
    const pyc::Value mask = b_.input("mask", PYC_DTYPE_F32, {1, 1, 1, kTokens});
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      x = norm(x + attention(x, mask));
      x = norm(x + linear(b_.gelu(linear(x, kWidth, kInner)), kInner, kWidth));
    }
    b_.output(x, "y");
  }
  const pyc::ModelBuilder& builder() const { return b_; }

 private:
  pyc::Value weights(const pyc::Shape& shape, double lo, double hi) {
    const uint64_t seed = ++seed_;
    return b_.random(fmt::format("w{}", seed), PYC_DTYPE_F32, shape, seed, lo, hi);
  }
  pyc::Value linear(pyc::Value x, int64_t in, int64_t out) {
    return b_.matmul(x, weights({in, out}, -0.05, 0.05)) + weights({out}, -0.1, 0.1);
  }
  pyc::Value norm(pyc::Value x) {
    return b_.op("layer_norm", {x, weights({kWidth}, 0.5, 1.5), weights({kWidth}, -0.1, 0.1)},
                 {{"epsilon", 1e-12}});
  }
  pyc::Value heads(pyc::Value x, const std::vector<int64_t>& perm) {
    const pyc::Value projected = linear(x, kWidth, kWidth);
    return b_.transpose(b_.reshape(projected, {1, kTokens, kHeads, kWidth / kHeads}), perm);
  }
  pyc::Value attention(pyc::Value x, pyc::Value mask) {
    const pyc::Value q = heads(x, {0, 2, 1, 3});
    const pyc::Value k = heads(x, {0, 2, 3, 1});
    const pyc::Value v = heads(x, {0, 2, 1, 3});
    const pyc::Value scores = b_.matmul(q, k) / b_.scalar(PYC_DTYPE_F32, 8.0) + mask;
    const pyc::Value context = b_.transpose(b_.matmul(b_.softmax(scores), v), {0, 2, 1, 3});
    return linear(b_.reshape(context, {1, kTokens, kWidth}), kWidth, kWidth);
  }

  pyc::ModelBuilder b_{"encoder"};
  uint64_t seed_ = 0;
};

// Processor time of all threads: what others take of the machine does not show.
struct Processor {
  double user_ms;
  double system_ms;
};

Processor processor() {
  const auto milliseconds = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {milliseconds(usage.ru_utime), milliseconds(usage.ru_stime)};
}

double ms(int64_t ns) { return 1e-6 * static_cast<double>(ns); }

struct Measured {
  pyc_model_stats stats;
  Processor used;
};

Measured compile(const Encoder& encoder, bool cache) {
  pyc::CompileOptions options;
  options.set("cache", cache);
  const Processor start = processor();
  const pyc::Model model = encoder.builder().compile(options);
  const Processor end = processor();
  return {model.stats(), {end.user_ms - start.user_ms, end.system_ms - start.system_ms}};
}

void print(const char* what, const Measured& m) {
  const pyc_model_stats& s = m.stats;
  fmt::print(
      "{{\"bench\": \"compile\", \"what\": \"{}\", \"ms\": {:.1f}, \"user_ms\": {:.1f}, "
      "\"system_ms\": {:.1f}, "
      "\"passes_ms\": {:.1f}, \"lower_ms\": {:.1f}, \"select_ms\": {:.1f}, \"plan_ms\": {:.1f}, "
      "\"code_ms\": {:.1f}, \"assemble_ms\": {:.1f}, \"kernels\": {}, \"distinct_kernels\": {}, "
      "\"slowest_kernel_ms\": {:.1f}}}\n",
      what, ms(s.compile_ns), m.used.user_ms, m.used.system_ms, ms(s.passes_ns), ms(s.lower_ns),
      ms(s.select_ns), ms(s.plan_ns), ms(s.code_ns), ms(s.assemble_ns), s.kernels,
      s.distinct_kernels, ms(s.slowest_kernel_ns));
}

bool check(const char* what, double found, double limit) {
  const bool kept = found <= limit;
  fmt::print(
      "{{\"bench\": \"compile\", \"limit\": \"{}\", \"found\": {:.2f}, \"most\": {:.0f}, "
      "\"kept\": {}}}\n",
      what, found, limit, kept);
  return kept;
}

}  // namespace

int main() {
  const Encoder encoder;
  const Measured first = compile(encoder, true);
  print("first", first);
  double cold_ms = ms(first.stats.compile_ns);
  double kernel_ms = ms(first.stats.slowest_kernel_ns);
  for (int i = 1; i < kRounds; ++i) {
    const Measured again = compile(encoder, false);
    print("again", again);
    cold_ms = std::min(cold_ms, ms(again.stats.compile_ns));
    kernel_ms = std::min(kernel_ms, ms(again.stats.slowest_kernel_ns));
  }
  double cached_ms = kLimitCachedMs * 1e3;
  for (int i = 0; i < kRounds; ++i) {
    const Measured cached = compile(encoder, true);
    if (cached.stats.cache_hit == 1) cached_ms = std::min(cached_ms, ms(cached.stats.compile_ns));
  }
  bool kept = check("compile_ms", cold_ms, kLimitColdMs);
  kept &= check("distinct_kernels", static_cast<double>(first.stats.distinct_kernels),
                static_cast<double>(kLimitKernels));
  kept &= check("slowest_kernel_ms", kernel_ms, kLimitKernelMs);
  kept &= check("cached_ms", cached_ms, kLimitCachedMs);
  return kept ? 0 : 1;
}
