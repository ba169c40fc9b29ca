// Which results may be written over what is read: by hand, and by running kernels both ways.

#include "loop/in_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "eval/interpreter.h"
#include "loop/parse.h"
#include "loop/verify.h"

namespace pyc::loop {
namespace {

Kernel must_parse(const std::string& text) {
  auto kernel = parse_kernel("kernel {\n" + text + "\n}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string() << "\n" << text;
  return kernel.ok() ? std::move(*kernel) : Kernel{};
}

using Pairs = std::vector<InPlacePair>;

const std::string kTwoReads =
    "buffer b0: f32[24] read\n"
    "buffer b1: f32[24] read\n"
    "buffer b2: f32[24] write\n"
    "parallel v0 < 4\n";

TEST(InPlace, AnElementIsReadByThePointThatStoresIt) {
  const Kernel k = must_parse(kTwoReads + R"(loop v1 < 6 vector {
  b2[v0*6 + v1] = b0[v0*6 + v1] + b1[v0*6 + v1]
})");
  EXPECT_EQ(in_place_pairs(k), (Pairs{{0, 2}, {1, 2}}));
  EXPECT_EQ(pointwise_pairs(k), (Pairs{{0, 2}, {1, 2}}));
}

TEST(InPlace, NotIfAnotherPointReadsIt) {
  // b0 is read in another order, b1 by all points.
  const Kernel k = must_parse(kTwoReads + R"(loop v1 < 6 vector {
  b2[v0*6 + v1] = b0[v0 + v1*4] + b1[v1]
})");
  EXPECT_EQ(in_place_pairs(k), Pairs{});
}

TEST(InPlace, ARowMayBeReadBeforeItIsStored) {
  const Kernel k = must_parse(kTwoReads + R"(loop v1 < 6 {
  reduce v2: f32 = chain sum(b0[v0*6 + v1])
}
loop v3 < 6 vector {
  b2[v0*6 + v3] = b0[v0*6 + v3] * v2
})");
  EXPECT_EQ(in_place_pairs(k), (Pairs{{0, 2}, {1, 2}}));  // b1 is not read at all
  EXPECT_EQ(pointwise_pairs(k), (Pairs{{1, 2}}));
}

TEST(InPlace, NotIfTheRowIsReadAfterItIsStored) {
  const Kernel k = must_parse(
      "buffer b0: f32[24] read\n"
      "buffer b1: f32[24] write\n"
      "buffer b2: f32[4] write\n"
      "parallel v0 < 4\n"
      R"(loop v1 < 6 vector {
  b1[v0*6 + v1] = b0[v0*6 + v1]
}
loop v2 < 6 {
  reduce v3: f32 = chain sum(b0[v0*6 + v2])
}
b2[v0] = v3)");
  EXPECT_EQ(in_place_pairs(k), Pairs{});
}

TEST(InPlace, NotIfAnotherIterationReadsIt) {
  const Kernel k = must_parse(
      "buffer b0: f32[24] read\n"
      "buffer b1: f32[24] write\n"
      "parallel v0 < 4\n"
      R"(loop v1 < 6 {
  loop v2 < 6 {
    reduce v3: f32 = chain sum(b0[v0*6 + v2])
  }
  b1[v0*6 + v1] = v3
})");
  EXPECT_EQ(in_place_pairs(k), Pairs{});
}

TEST(InPlace, NotOfAnotherTypeOrSize) {
  const Kernel k = must_parse(
      "buffer b0: i32[24] read\n"
      "buffer b1: f32[25] read\n"
      "buffer b2: f32[24] write\n"
      "parallel v0 < 24\n"
      "b2[v0] = f32(b0[v0]) + b1[v0]");
  EXPECT_EQ(in_place_pairs(k), Pairs{});
  EXPECT_FALSE(may_be_in_place(k, {0, 2}));
  EXPECT_FALSE(may_be_in_place(k, {2, 2}));
  EXPECT_FALSE(may_be_in_place(k, {0, 9}));
}

TEST(InPlace, IsPartOfTheTextAndVerified) {
  const std::string body = "parallel v0 < 8\nb2[v0] = b0[v0] + b1[7 - v0]\n";
  const auto text = [&](const std::string& mark) {
    return "buffer b0: f32[8] read\nbuffer b1: f32[8] read\nbuffer b2: f32[8] write" + mark + "\n" +
           body;
  };
  const Kernel good = must_parse(text(" in_place b0"));
  EXPECT_EQ(good.buffers[2].in_place_of, 0u);
  EXPECT_TRUE(verify_kernel(good).ok());
  EXPECT_NE(print(good).find("buffer b2: f32[8] write in_place b0\n"), std::string::npos);
  const auto again = parse_kernel(print(good));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(print(*again), print(good));
  EXPECT_EQ(verify_kernel(must_parse(text(" in_place b1"))).message(),
            "loop kernel '': buffer b2: cannot be proven to leave what is read of buffer b1 alone "
            "in its memory");
  EXPECT_FALSE(parse_kernel("kernel {\n" + text(" in_place b2") + "}\n").ok());
  EXPECT_FALSE(parse_kernel("kernel {\n" + text(" in_place") + "}\n").ok());
}

// Runs the points in the given order; b1 is its own memory or that of b0.
std::vector<float> run_points(const eval::Interpreter& interpreter,
                              const std::vector<int64_t>& order, bool in_place) {
  std::vector<float> read(24);
  std::iota(read.begin(), read.end(), 1.0f);
  std::vector<float> written(24, -1.0f);
  if (in_place) written = read;
  void* buffers[] = {in_place ? written.data() : read.data(), written.data()};
  int32_t fault = 0;
  const pyc_kernel_args args{.buffers = buffers,
                             .dims = nullptr,
                             .scratch = nullptr,
                             .self = nullptr,
                             .fault = &fault,
                             .thread = 0,
                             .threads = 1};
  for (const int64_t p : order) interpreter.run(args, p, p + 1);
  EXPECT_EQ(fault, 0);
  return written;
}

// Kernels whose loads and stores take their offsets from a small list, so that many fit.
std::string random_kernel(std::mt19937& random) {
  const auto pick = [&](const std::vector<std::string>& of) { return of[random() % of.size()]; };
  const auto offset = [&](const std::string& v) {
    return pick({"v0*6 + " + v, "v0*6 + " + v, "v0 + " + v + "*4", "v0*6", "v0", v, "v0*6 + 5",
                 "v0*5 + " + v, "23 - (v0*6 + " + v + ")"});
  };
  const auto store = [&](const std::string& v) {
    return pick({"v0*6 + " + v, "v0*6 + " + v, "v0 + " + v + "*4"});
  };
  std::string text = "buffer b0: f32[24] read\nbuffer b1: f32[24] write\nparallel v0 < 4\n";
  const std::string at = store("v3");
  switch (random() % 4) {
    case 0:
      return text + "loop v3 < 6 vector {\n  b1[" + at + "] = b0[" + offset("v3") + "] + b0[" + at +
             "]\n}";
    case 1:
      return text + "loop v1 < 6 {\n  reduce v2: f32 = chain sum(b0[" + offset("v1") +
             "])\n}\nloop v3 < 6 {\n  b1[" + at + "] = v2 + b0[" + offset("v3") + "]\n}";
    case 2:
      return text + "loop v3 < 6 {\n  loop v1 < 6 {\n    reduce v2: f32 = chain sum(b0[" +
             offset(random() % 2 == 0 ? "v1" : "v3") + "])\n  }\n  b1[" + at + "] = v2\n}";
    default:
      return text + "loop v3 < 6 {\n  b1[" + at + "] = b0[" + offset("v3") +
             "]\n  reduce v4: f32 = chain sum(b0[" + offset("v3") + "])\n}\nloop v5 < 6 {\n  b1[" +
             at + "] = v4 + b0[" + offset("v5") + "]\n}";
  }
}

TEST(InPlace, AllowedPairsComputeTheSameInOneMemory) {
  std::mt19937 random(7);
  int allowed = 0;
  int differing = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = random_kernel(random);
    // A second store of the same place is written with the loop's own variable.
    if (const size_t second = text.find("loop v5"); second != std::string::npos) {
      const size_t from = text.find("b1[", second);
      const size_t to = text.find(']', from);
      for (size_t c = from; c < to; ++c) {
        if (text.compare(c, 2, "v3") == 0) text[c + 1] = '5';
      }
    }
    const Kernel kernel = must_parse(text);
    if (!verify_kernel(kernel).ok()) continue;
    auto made = eval::Interpreter::create(kernel);
    ASSERT_TRUE(made.ok());
    std::vector<int64_t> order{0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), random);
    const auto apart = run_points(**made, order, false);
    const bool equal = apart == run_points(**made, order, true);
    if (may_be_in_place(kernel, {0, 1})) {
      ++allowed;
      ASSERT_TRUE(equal) << print(kernel);
    } else if (!equal) {
      ++differing;
    }
  }
  EXPECT_GT(allowed, 200);
  EXPECT_GT(differing, 200);
}

}  // namespace
}  // namespace pyc::loop
