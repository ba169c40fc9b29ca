// Sizes as arguments of code: a session of an open graph generates code for few of the sizes it
// meets, and what runs at the others gives the bits of code made for them alone, and the
// reference's.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/convert.h"
#include "driver/devices.h"
#include "driver/folded.h"
#include "model_file/load.h"
#include "session/evaluate.h"
#include "session/session.h"
#include "support/temp_folder.h"

namespace pyc::session {
namespace {

using Sizes = std::map<std::string, int64_t>;

model_file::LoadedModel load(const std::string& text) {
  auto model = model_file::load_model(text);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

std::unique_ptr<Session> session_on(const std::string& text, const std::string& device) {
  driver::CompileOptions options;
  options.device = device;
  options.cache = false;
  options.threads = 2;  // which kernels are chosen depends on it
  auto made = model_file::make_session(load(text), {}, options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

// Numbers that depend on their place alone, some of them special.
DynValue filled(const open::OpenValue& input, const Sizes& sizes) {
  DynValue value;
  value.kind = DynValue::Kind::kTensor;
  value.dtype = *input.type.dtype;
  int64_t elements = 1;
  for (const auto& d : *input.type.shape) {
    value.shape.push_back(d.value >= 0 ? d.value : sizes.at(d.symbol));
    elements *= value.shape.back();
  }
  const int64_t size = dtype_size(value.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(elements * size));
  for (int64_t i = 0; i < elements; ++i) {
    const double x = i % 37 == 36 ? -0.0 : static_cast<double>((i * 7919 + 13) % 2003 - 1001) / 613;
    store_word(bytes.data() + i * size, value.dtype,
               is_float(value.dtype) ? word_from_double(x, value.dtype)
                                     : word_from_int(i % 3, value.dtype));
  }
  value.bytes = std::move(bytes);
  return value;
}

std::vector<DynValue> run(Session& session, const Sizes& sizes) {
  std::vector<DynValue> inputs;
  for (const open::OpenValue& input : session.inputs()) inputs.push_back(filled(input, sizes));
  auto outputs = session.run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
  return outputs.ok() ? std::move(*outputs) : std::vector<DynValue>{};
}

void expect_same(const std::vector<DynValue>& found, const std::vector<DynValue>& expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].shape, expected[i].shape) << what;
    EXPECT_TRUE(found[i].bytes == expected[i].bytes) << what << ", output " << i;
  }
}

std::string name_of(const Sizes& sizes) {
  std::string text;
  for (const auto& [symbol, size] : sizes) text += symbol + "=" + std::to_string(size) + " ";
  return text;
}

// Runs all sizes in one session; at most `rounds` of them may generate code, and none of the last
// `quiet` ones.
void expect_sizes(const std::string& text, const std::vector<Sizes>& all, int64_t rounds,
                  size_t quiet) {
  const auto shared = session_on(text, "cpu");
  const auto reference = session_on(text, "reference");
  int64_t found = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t before = shared->stats().generated_kernels;
    const std::vector<DynValue> outputs = run(*shared, all[i]);
    const int64_t generated = shared->stats().generated_kernels - before;
    found += generated > 0 ? 1 : 0;
    if (i + quiet >= all.size()) {
      EXPECT_EQ(generated, 0) << name_of(all[i]);
    }
    expect_same(outputs, run(*reference, all[i]), "reference, " + name_of(all[i]));
    const auto alone = session_on(text, "cpu");
    expect_same(outputs, run(*alone, all[i]), "alone, " + name_of(all[i]));
  }
  EXPECT_LE(found, rounds);
}

std::vector<Sizes> along(const std::string& symbol, const std::vector<int64_t>& sizes) {
  std::vector<Sizes> out;
  for (const int64_t size : sizes) out.push_back({{symbol, size}});
  return out;
}

std::vector<Sizes> across(const std::string& first, const std::string& second,
                          const std::vector<std::pair<int64_t, int64_t>>& sizes) {
  std::vector<Sizes> out;
  for (const auto& [n, m] : sizes) out.push_back({{first, n}, {second, m}});
  return out;
}

TEST(Sizes, RowsAndColumnsOfLoops) {
  const std::string text = R"(open graph @rows(%x: f32[N,M]) -> (%a, %b, %c, %d, %e) {
  %s = onnx.Softmax[13](%x) {axis=-1}
  %a = onnx.Add[14](%s, %x)
  %b = onnx.ReduceMean[13](%x) {axes=[0], keepdims=0}
  %c = onnx.ReduceMax[13](%x) {axes=[1], keepdims=0}
  %t = onnx.Transpose[13](%x) {perm=[1,0]}
  %d = onnx.Exp[13](%t)
  %e = onnx.Concat[13](%x, %s) {axis=1}
})";
  // Where vectors are widest, eight rows of 128 have a kernel that no size before them has.
  const std::vector<Sizes> all = across("N", "M",
                                        {{3, 5},
                                         {1, 1},
                                         {7, 11},
                                         {2, 70},
                                         {70, 2},
                                         {1, 33},
                                         {33, 1},
                                         {5, 200},
                                         {6, 129},
                                         {8, 128},
                                         {17, 16},
                                         {16, 17},
                                         {4, 4},
                                         {9, 64},
                                         {65, 63},
                                         {13, 31}});
  expect_sizes(text, all, 7, 5);
}

TEST(Sizes, RowsOfHalves) {
  const std::string text = R"(open graph @halves(%x: f16[N,40], %y: bf16[N]) -> (%a, %b) {
  %w = onnx.Cast[13](%x) {to=1}
  %s = onnx.Softmax[13](%w) {axis=0}
  %a = onnx.Cast[13](%s) {to=10}
  %v = onnx.Cast[13](%y) {to=1}
  %m = onnx.ReduceSum[11](%v) {axes=[0]}
  %d = onnx.Sub[14](%v, %m)
  %b = onnx.Cast[13](%d) {to=16}
})";
  expect_sizes(text, along("N", {3, 1, 4, 8, 128, 9, 16, 17, 200, 31, 64, 65, 100}), 5, 4);
}

TEST(Sizes, LongRowsPassTheBordersOfTrees) {
  const std::string text = R"(open graph @long(%x: f32[N]) -> (%a, %b) {
  %a = onnx.ReduceSum[11](%x) {axes=[0]}
  %m = onnx.ReduceMax[13](%x) {axes=[0]}
  %d = onnx.Sub[14](%x, %m)
  %b = onnx.ReduceProd[13](%d) {axes=[0]}
})";
  expect_sizes(text, along("N", {5, 1023, 1024, 7, 1025, 2048, 3000, 64, 1000, 2049, 1500}), 6, 4);
}

// Layers over any number of rows: what remains of it in the code is the shape of the tiles.
const std::string kLayers = R"(open graph @layers(%x: f32[B,N,40]) -> (%a) {
  %w = const f32[40,24] random(seed=1, lo=-0.5, hi=0.5)
  %u = const f32[24,300] random(seed=2, lo=-0.5, hi=0.5)
  %c = const f32[24] random(seed=3, lo=-0.5, hi=0.5)
  %p = onnx.MatMul[13](%x, %w)
  %q = onnx.Add[14](%p, %c)
  %h = onnx.Relu[14](%q)
  %a = onnx.MatMul[13](%h, %u)
})";

std::vector<Sizes> sizes_of_layers() {
  std::vector<Sizes> all;
  for (const int64_t n : {64, 96, 98, 54, 124, 50, 128, 200, 333, 127}) {
    all.push_back({{"B", n % 2 == 0 ? 2 : 1}, {"N", n % 2 == 0 ? n / 2 : n}});
  }
  return all;
}

TEST(Sizes, RowsOfProducts) { expect_sizes(kLayers, sizes_of_layers(), 6, 3); }

// Columns likewise where they are not a constant's.
TEST(Sizes, ColumnsOfProducts) {
  const std::string text = R"(open graph @columns(%x: f32[16,40], %y: f32[2,40,M]) -> (%a) {
  %p = onnx.MatMul[13](%x, %y)
  %a = onnx.Relu[14](%p)
})";
  expect_sizes(text, along("M", {64, 48, 65, 130, 70, 33, 95, 101, 77, 201}), 6, 4);
}

// A product of m rows, any of them; of a constant and of another input.
TEST(Sizes, Products) {
  const std::string text = R"(open graph @products(%x: f32[N,19], %y: f32[19,M]) -> (%a, %b) {
  %w = const f32[19,24] random(seed=1, lo=-0.5, hi=0.5)
  %h = onnx.MatMul[13](%x, %w)
  %a = onnx.Relu[14](%h)
  %b = onnx.MatMul[13](%x, %y)
})";
  std::vector<Sizes> all;
  for (const int64_t n : {3, 1, 4, 8, 9, 30, 16, 17, 64, 5})
    all.push_back({{"N", n}, {"M", n + 2}});
  expect_sizes(text, all, 10, 0);
}

std::string attention(const std::string& queries) {
  return "open graph @attention(%q: f32[1,3," + queries + ",16], " +
         R"(%k: f32[1,3,P,16], %v: f32[1,3,P,16]) -> (%a) {
  %t = onnx.Transpose[13](%k) {perm=[0,1,3,2]}
  %p = onnx.MatMul[13](%q, %t)
  %scale = const f32[] splat(0.25)
  %c = onnx.Mul[14](%p, %scale)
  %s = onnx.Softmax[13](%c) {axis=-1}
  %a = onnx.MatMul[13](%s, %v)
})";
}

TEST(Sizes, KeysOfAttention) {
  expect_sizes(
      attention("1"),
      along("P", {5, 1, 7, 8, 64, 65, 127, 128, 129, 256, 300, 200, 384, 2, 31, 63, 100, 201, 512}),
      6, 6);
}

TEST(Sizes, KeysAndQueriesOfAttention) {
  expect_sizes(attention("11"), along("P", {5, 1, 7, 64, 128, 129, 256, 300, 31, 130, 384}), 6, 3);
  std::vector<Sizes> all;
  for (const int64_t n : {9, 1, 12, 8, 17, 33, 40, 30}) all.push_back({{"T", n}, {"P", 2 * n + 1}});
  expect_sizes(attention("T"), all, 5, 3);
}

// Which of the sizes generate code for a target that need not be this machine's; nothing is run.
std::vector<bool> rounds_for(const std::string& target, int threads, const std::string& text,
                             const std::vector<Sizes>& all) {
  driver::CompileOptions options;
  options.target = target;
  options.threads = threads;
  const auto backend = driver::find_backend(options.device);
  EXPECT_TRUE(backend.ok()) << backend.status().to_string();
  options.store = (*backend)->make_store();
  std::vector<bool> generated;
  for (const Sizes& sizes : all) {
    auto graph = model_file::graph_of(load(text), {.dims = sizes});
    EXPECT_TRUE(graph.ok()) << graph.status().to_string();
    auto verified = ir::verify_graph(std::move(*graph));
    EXPECT_TRUE(verified.ok()) << verified.status().to_string();
    auto compiled = driver::compile_program(std::move(*verified), options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().to_string();
    generated.push_back(compiled->times.generated_kernels > 0);
  }
  return generated;
}

// Which kernel costs least changes with the size, at another one for another number of threads: so
// many more rounds, and each of them once.
TEST(Sizes, KeysAndQueriesOnEveryTarget) {
  std::vector<Sizes> all;
  for (const int64_t n : {9, 1, 12, 8, 17, 33, 40, 30}) all.push_back({{"T", n}, {"P", 2 * n + 1}});
  for (const std::string target : {"aarch64_neon", "x86_avx2", "x86_avx512"}) {
    const std::vector<bool> few = rounds_for(target, 2, attention("T"), all);
    EXPECT_LE(std::count(few.begin(), few.end(), true), 4) << target;
    EXPECT_EQ(std::count(few.end() - 3, few.end(), true), 0) << target;
    const std::vector<bool> many = rounds_for(target, 16, attention("T"), all);
    EXPECT_LE(std::count(many.begin(), many.end(), true), 5) << target;
    EXPECT_EQ(std::count(many.end() - 2, many.end(), true), 0) << target;
  }
}

TEST(Sizes, RowsOfProductsOnEveryTarget) {
  for (const std::string target : {"aarch64_neon", "x86_avx2", "x86_avx512"}) {
    for (const int threads : {2, 16}) {
      const std::vector<bool> made = rounds_for(target, threads, kLayers, sizes_of_layers());
      EXPECT_LE(std::count(made.begin(), made.end(), true), 6) << target;
      EXPECT_EQ(std::count(made.end() - 3, made.end(), true), 0) << target;
    }
  }
}

// Windows that are copied in runs, products of bytes and rows that are written side by side.
TEST(Sizes, WindowsOfOpenPictures) {
  const std::string text =
      R"(open graph @pictures(%x: f32[N,3,H,W], %q: u8[N,3,H,W]) -> (%a, %b, %c) {
  %w = const f32[8,3,5,5] random(seed=1, lo=-1.0, hi=1.0)
  %v = const i8[12,3,3,3] random(seed=2, lo=-128.0, hi=128.0)
  %z = const u8[] splat(7)
  %a = onnx.Conv[11](%x, %w) {pads=[2, 2, 2, 2], strides=[2, 2]}
  %b = onnx.ConvInteger[10](%q, %v, %z) {pads=[1, 1, 1, 1]}
  %t = onnx.Transpose[13](%a) {perm=[0, 2, 3, 1]}
  %c = onnx.Relu[14](%t)
})";
  std::vector<Sizes> all;
  for (const int64_t n : {9, 12, 31, 8, 40})
    all.push_back({{"N", n % 3 + 1}, {"H", n}, {"W", n + 3}});
  expect_sizes(text, all, 5, 0);
}

// Channels last: rows of products are windows, whose lines are as far apart as the picture is wide.
TEST(Sizes, WindowsWithChannelsLast) {
  const std::string text = R"(open graph @pictures(%x: f32[1,H,W,8], %q: u8[1,H,W,16]) -> (%a, %b) {
  %w = const f32[64,8,3,3] random(seed=1, lo=-1.0, hi=1.0)
  %v = const i8[64,16,3,3] random(seed=2, lo=-128.0, hi=128.0)
  %z = const u8[] splat(7)
  %s = onnx.Transpose[13](%x) {perm=[0, 3, 1, 2]}
  %t = onnx.Transpose[13](%q) {perm=[0, 3, 1, 2]}
  %c = onnx.Conv[11](%s, %w) {pads=[1, 1, 1, 1]}
  %d = onnx.ConvInteger[10](%t, %v, %z) {pads=[1, 1, 1, 1]}
  %a = onnx.Transpose[13](%c) {perm=[0, 2, 3, 1]}
  %b = onnx.Transpose[13](%d) {perm=[0, 2, 3, 1]}
})";
  // Mostly as many rows as fill tiles of any height.
  const std::vector<Sizes> all = across(
      "H", "W",
      {{20, 24}, {24, 40}, {13, 17}, {12, 40}, {30, 16}, {36, 20}, {15, 48}, {48, 25}, {40, 18}});
  expect_sizes(text, all, 5, 4);
}

// The parts of a decoder: a cache that grows, and what reads it.
TEST(Sizes, AGrowingCache) {
  const std::string text = R"(open graph @cache(%past: f32[4,P,8], %new: f32[4,1,8]) -> (%all, %y) {
  %all = onnx.Concat[13](%past, %new) {axis=1}
  %y = onnx.ReduceSum[11](%all) {axes=[1], keepdims=0}
})";
  std::vector<int64_t> sizes;
  for (int64_t p = 1; p <= 70; ++p) sizes.push_back(p);
  expect_sizes(text, along("P", sizes), 5, 30);
}

// What programs with sizes as arguments are when they were written to files and read back.
TEST(Sizes, ProgramsInFilesHaveTheirSizes) {
  const TempFolder folder;
  const std::string text = attention("1");
  driver::CompileOptions options;
  options.cache = false;
  options.cache_dir = folder.path();
  for (const std::string_view expected : {"written", "loaded"}) {
    auto made = model_file::make_session(load(text), {}, options);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    for (const int64_t p : {5, 9, 30, 130}) {
      const auto alone = session_on(text, "cpu");
      expect_same(run(**made, {{"P", p}}), run(*alone, {{"P", p}}), std::to_string(p));
    }
    int64_t found = 0;
    for (const Decision& d : (*made)->decisions()) {
      found += d.what == "disk_cache" && d.chosen == expected ? 1 : 0;
    }
    EXPECT_EQ(found, 4) << expected;
  }
}

// Closing asks again at every size for what follows from constants alone.
TEST(Sizes, WhatFollowsFromNoSizeIsComputedOnce) {
  const open::Evaluate evaluate = keeping_evaluate();
  const auto computed = [&](const std::string& constant) {
    auto graph = driver::parse_model("graph @known() -> (%y) {\n  %a = const i64[2] dense(" +
                                     constant + ")\n  %y = add(%a, %a) : i64[2]\n}\n");
    EXPECT_TRUE(graph.ok()) << graph.status().to_string();
    auto results = evaluate(std::move(*graph));
    EXPECT_TRUE(results.ok()) << results.status().to_string();
    return results->at(0);
  };
  const SharedBytes first = computed("1, 2");
  EXPECT_EQ(first.data(), computed("1, 2").data());
  const SharedBytes other = computed("1, 3");
  EXPECT_FALSE(first == other);
  EXPECT_EQ(other.data(), computed("1, 3").data());
}

// Integers that follow from constants need no program; floats and what an input decides do.
TEST(Sizes, IntegersOfShapesAreFolded) {
  const auto folded = [](const std::string& text) {
    auto graph = driver::parse_model(text);
    EXPECT_TRUE(graph.ok()) << graph.status().to_string();
    auto verified = ir::verify_graph(std::move(*graph));
    EXPECT_TRUE(verified.ok()) << verified.status().to_string();
    auto found = driver::folded_outputs(*verified);
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return std::move(*found);
  };
  const auto sums = folded(R"(graph @known() -> (%y, %a) {
  %a = const i64[2] dense(3, 4)
  %y = mul(%a, %a) : i64[2]
})");
  ASSERT_TRUE(sums.has_value());
  ASSERT_EQ(sums->size(), 2U);
  const auto number = [&](size_t output, size_t i) {
    int64_t value = 0;
    std::memcpy(&value, (*sums)[output].data() + i * sizeof(value), sizeof(value));
    return value;
  };
  EXPECT_EQ(number(0, 0), 9);
  EXPECT_EQ(number(0, 1), 16);
  EXPECT_EQ(number(1, 1), 4);
  EXPECT_FALSE(folded("graph @floats() -> (%y) {\n  %a = const f32[2] dense(3, 4)\n"
                      "  %y = mul(%a, %a) : f32[2]\n}\n")
                   .has_value());
  EXPECT_FALSE(
      folded("graph @open(%x: i64[2]) -> (%y) {\n  %y = mul(%x, %x) : i64[2]\n}\n").has_value());
}

// An output named twice is there twice, and an input that is an output stays the caller's.
TEST(Sizes, OutputsNamedTwice) {
  const auto session = session_on(R"(open graph @twice(%x: f32[N,4]) -> (%y, %x, %y, %y) {
  %y = onnx.Neg[13](%x)
})",
                                  "cpu");
  for (const int64_t n : {3, 5, 3}) {
    const std::vector<DynValue> outputs = run(*session, {{"N", n}});
    ASSERT_EQ(outputs.size(), 4U);
    const DynValue x = filled(session->inputs()[0], {{"N", n}});
    EXPECT_TRUE(outputs[1].bytes == x.bytes);
    EXPECT_FALSE(outputs[0].bytes == x.bytes);
    for (const size_t same : {2, 3}) {
      EXPECT_EQ(outputs[same].shape, outputs[0].shape);
      EXPECT_TRUE(outputs[same].bytes == outputs[0].bytes);
    }
  }
}

// Dims of one name have one size, at every size anew.
TEST(Sizes, DimsOfOneNameAgree) {
  const auto session = session_on(R"(open graph @two(%x: f32[N,4], %y: f32[M,N]) -> (%a, %b) {
  %a = onnx.Neg[13](%x)
  %b = onnx.Neg[13](%y)
})",
                                  "cpu");
  run(*session, {{"N", 3}, {"M", 2}});
  std::vector<DynValue> inputs{filled(session->inputs()[0], {{"N", 3}}),
                               filled(session->inputs()[1], {{"N", 4}, {"M", 2}})};
  const auto refused = session->run(inputs);
  EXPECT_EQ(refused.status().code(), Code::kShapeMismatch);
  EXPECT_NE(refused.status().message().find("dim 'N' is 3 in input 'x' and 4 in input 'y'"),
            std::string::npos)
      << refused.status().to_string();
  EXPECT_EQ(session->stats().guard_misses, 1);
  run(*session, {{"N", 4}, {"M", 3}});
}

// Of 200 sizes none is refused code, and none is forgotten.
TEST(Sizes, ManySizesAreNoStorm) {
  const std::string text = R"(open graph @negate(%x: f32[N,4]) -> (%y) {
  %y = onnx.Neg[13](%x)
})";
  const auto session = session_on(text, "cpu");
  constexpr int64_t kSizes = 200;
  for (int64_t n = 1; n <= kSizes; ++n) run(*session, {{"N", n}});
  const SessionStats before = session->stats();
  EXPECT_EQ(before.segments_compiled, kSizes);
  EXPECT_LE(before.generated_kernels, 4);
  for (int64_t n = 1; n <= kSizes; ++n) run(*session, {{"N", n}});
  EXPECT_EQ(session->stats().segments_compiled, kSizes);
  for (const Decision& d : session->decisions()) EXPECT_NE(d.reason, "storm");
}

}  // namespace
}  // namespace pyc::session
