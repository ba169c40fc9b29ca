// Products and convolutions of bytes in register tiles have the bits of the reference: signs, zero
// points, windows around every edge, groups.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

struct ByteRun {
  std::string digest;
  std::vector<std::string> kernels;
};

ByteRun run_bytes(const std::string& text, const CompileOptions& options) {
  auto graph = parse_model(text);
  if (!graph.ok()) return {graph.status().to_string(), {}};
  auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) return {model.status().to_string(), {}};
  const auto seeded = tooling::SeededRun::create(**model, 1);
  if (!seeded.ok()) return {seeded.status().to_string(), {}};
  const Status status = (*model)->run(seeded->inputs(), seeded->outputs());
  if (!status.ok()) return {status.to_string(), {}};
  ByteRun out{seeded->digest(0).hex(), {}};
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("kernel:")) out.kernels.push_back(d.chosen);
  }
  return out;
}

// Its one kernel is a tile's, and the bits are the reference's.
void expect_byte_tiles(const std::string& text, int lanes, int threads) {
  CompileOptions reference;
  reference.device = "reference";
  CompileOptions options;
  options.device = "cpu";
  options.kernels = {"loop_generic", "loop_pairs"};
  options.lanes = lanes;
  options.threads = threads;
  const ByteRun ran = run_bytes(text, options);
  ASSERT_EQ(ran.digest, run_bytes(text, reference).digest) << text;
  ASSERT_EQ(ran.kernels.size(), 1u) << text;
  ASSERT_TRUE(ran.kernels[0].starts_with("i8_matmul__")) << ran.kernels[0] << "\n" << text;
}

class Drawn {
 public:
  explicit Drawn(uint32_t seed) : random_(seed) {}
  int64_t pick(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint32_t>(hi - lo + 1));
  }
  bool flip() { return pick(0, 1) == 1; }
  const char* dtype() { return flip() ? "u8" : "i8"; }

  // A value of this name, given when it runs or constant.
  void add(const std::string& name, const std::string& type, bool constant) {
    if (constant) {
      constants +=
          fmt::format("  %{} = const {} random(seed={}, lo={}, hi={})\n", name, type,
                      constants.size() + 1, type[0] == 'u' ? 0 : -128, type[0] == 'u' ? 256 : 128);
    } else {
      inputs += fmt::format("{}%{}: {}", inputs.empty() ? "" : ", ", name, type);
    }
  }

  std::string inputs;
  std::string constants;

 private:
  std::mt19937 random_;
};

std::string drawn_conv_integer(uint32_t seed) {
  Drawn d(seed);
  const char* x = d.dtype();
  const char* w = d.dtype();
  const int64_t groups = d.pick(0, 2) == 0 ? 2 : 1;
  const int64_t in = d.flip() ? d.pick(1, 9) : 16 * d.pick(1, 2);
  const int64_t out = d.pick(2, 19);
  const int64_t kernel = d.pick(1, 3);
  const int64_t stride = d.pick(1, 2);
  const int64_t pad = d.pick(0, kernel - 1);
  const int64_t plane = kernel + stride * d.pick(1, 9);
  const bool constant = d.pick(0, 3) != 0;
  d.add("x", fmt::format("{}[{},{},{},{}]", x, d.pick(1, 2), groups * in, plane, plane + 1), false);
  d.add("w", fmt::format("{}[{},{},{},{}]", w, groups * out, in, kernel, kernel), constant);
  std::string operands = "%x, %w";
  if (d.flip()) {
    d.add("zx", fmt::format("{}[]", x), d.flip());
    operands += ", %zx";
    if (d.flip()) {
      d.add("zw", d.flip() ? fmt::format("{}[]", w) : fmt::format("{}[{}]", w, groups * out),
            d.flip());
      operands += ", %zw";
    }
  }
  return fmt::format(
      "graph @g({}) -> (%y) {{\n{}  %y = conv_integer({}) {{group={}, strides=[{}, {}], "
      "pads=[{}, {}, {}, {}]}}\n}}\n",
      d.inputs, d.constants, operands, groups, stride, stride, pad, pad, pad, pad);
}

TEST(CpuByteProducts, DrawnConvolutions) {
  constexpr int kLanes[] = {4, 8, 16};
  for (uint32_t seed = 1; seed <= 48; ++seed) {
    SCOPED_TRACE(seed);
    expect_byte_tiles(drawn_conv_integer(seed), kLanes[seed % 3], static_cast<int>(seed % 4) + 1);
  }
}

std::string drawn_matmul_integer(uint32_t seed) {
  Drawn d(seed);
  const char* a = d.dtype();
  const char* b = d.dtype();
  const int64_t m = d.pick(2, 20);
  const int64_t k = d.pick(1, 70);
  const int64_t n = d.pick(2, 40);
  const int64_t batch = d.pick(1, 3);
  const bool shared = d.flip();
  d.add("a", fmt::format("{}[{},{},{}]", a, batch, m, k), d.pick(0, 3) == 0);
  d.add("b",
        shared ? fmt::format("{}[{},{}]", b, k, n) : fmt::format("{}[{},{},{}]", b, batch, k, n),
        !d.inputs.empty() && d.flip());
  std::string operands = "%a, %b";
  std::string with;
  if (d.flip()) {
    d.add("za", d.flip() ? fmt::format("{}[]", a) : fmt::format("{}[{}]", a, m), d.flip());
    operands += ", %za";
    with = "a_zero_point";
  }
  if (d.flip()) {
    d.add("zb", d.flip() ? fmt::format("{}[]", b) : fmt::format("{}[{}]", b, n), d.flip());
    operands += ", %zb";
    with += with.empty() ? "b_zero_point" : ",b_zero_point";
  }
  return fmt::format("graph @g({}) -> (%y) {{\n{}  %y = matmul_integer({}) {{with=\"{}\"}}\n}}\n",
                     d.inputs, d.constants, operands, with);
}

TEST(CpuByteProducts, DrawnProducts) {
  constexpr int kLanes[] = {4, 8, 16};
  for (uint32_t seed = 1; seed <= 48; ++seed) {
    SCOPED_TRACE(seed);
    expect_byte_tiles(drawn_matmul_integer(seed), kLanes[seed % 3], static_cast<int>(seed % 4) + 1);
  }
}

// Zero points per channel that are all the same are no values that a kernel reads.
TEST(CpuByteProducts, EqualZeroPointsAreImmediates) {
  const auto text = [](const char* zeros) {
    return fmt::format(
        "graph @g(%x: u8[1,8,6,6]) -> (%y) {{\n"
        "  %w = const i8[12,8,3,3] random(seed=1, lo=-128, hi=128)\n"
        "  %zx = const u8[] splat(7)\n"
        "  %zw = const i8[12] {}\n"
        "  %y = conv_integer(%x, %w, %zx, %zw)\n}}\n",
        zeros);
  };
  expect_byte_tiles(text("splat(0)"), 4, 2);
  expect_byte_tiles(text("splat(-5)"), 4, 2);
  expect_byte_tiles(text("random(seed=2, lo=-128, hi=128)"), 4, 2);
}

}  // namespace
}  // namespace pyc::driver
