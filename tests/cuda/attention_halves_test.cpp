// Attention of halves on the matrix unit: whole models on the device "cuda" over the fake driver,
// whose model of the unit reads shared memory and registers as late as the unit may, against the
// order sm90 as the CPU computes it. And with NVRTC, where it is installed, what becomes of the
// texts.

#include <fmt/format.h>

#include <random>

#include "backends/cuda/nvrtc.h"
#include "base/convert.h"
#include "base/files.h"
#include "cuda/models_on_fake.h"
#include "driver/compile.h"
#include "support/printed_by.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

// Numbers of like magnitude; or any bits, NaN and infinities among them.
enum class Drawn : uint8_t { kNumbers, kBits };

TensorBytes drawn(const std::vector<runtime::IoSpec>& specs, Drawn content) {
  std::mt19937 random(11);
  TensorBytes bytes = room_for(specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto size = static_cast<size_t>(dtype_size(specs[i].dtype));
    for (size_t at = 0; at + size <= bytes[i].size(); at += size) {
      const uint32_t number = random();
      const double x = (static_cast<double>(number % 4001) - 2000.0) / 700.0;
      const bool any = content == Drawn::kBits && is_half(specs[i].dtype);
      Word word = any ? number & 0xFFFF : word_from_double(x, specs[i].dtype);
      if (specs[i].dtype == DType::kBool) word = number % 4 != 0 ? 1 : 0;
      if (specs[i].dtype == DType::kI64) word = 90 + number % 60;
      store_word(bytes[i].data() + at, specs[i].dtype, word);
    }
  }
  return bytes;
}

struct HalvesRun {
  std::vector<std::string> kernels;
  TensorBytes outputs;
};

HalvesRun run_halves(const std::string& text, const std::string& device, Drawn content,
                     const std::vector<std::string>& excluded = {}) {
  const FakesChosen fakes;
  driver::CompileOptions options = on_device(device);
  options.matrix_unit = device == "cuda" ? "" : "sm90";
  if (device == "cuda") options.kernels = excluded;
  HalvesRun out;
  auto model = compile_text(text, options);
  EXPECT_TRUE(model.ok()) << model.status().to_string() << text;
  if (!model.ok()) return out;
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("kernel:")) out.kernels.push_back(d.chosen);
  }
  const Status ran = run_on(**model, drawn((*model)->inputs(), content), out.outputs);
  EXPECT_TRUE(ran.ok()) << ran.to_string();
  return out;
}

bool has_kernel(const HalvesRun& ran, const std::string& begin) {
  return std::any_of(ran.kernels.begin(), ran.kernels.end(),
                     [&](const std::string& k) { return k.starts_with(begin); });
}

void expect_half_bits(const std::string& text, const std::string& kernel,
                      Drawn content = Drawn::kNumbers, const char* oracle = "cpu") {
  const HalvesRun found = run_halves(text, "cuda", content);
  EXPECT_TRUE(has_kernel(found, kernel)) << text;
  EXPECT_TRUE(found.outputs == run_halves(text, oracle, content).outputs) << "other bits\n" << text;
}

struct HeadsOfHalves {
  const char* type;
  int64_t batch;
  int64_t heads;
  int64_t groups;  // of heads that share keys
  int64_t queries;
  int64_t keys;
  int64_t depth;
  int64_t columns;
  const char* attributes;
};

std::string halves_text(const HeadsOfHalves& s) {
  return fmt::format(
      "graph @g(%q: {0}[{1},{2},{4},{6}], %k: {0}[{1},{3},{5},{6}], %v: {0}[{1},{3},{5},{7}]) -> "
      "(%y, %m, %l) {{\n  %y, %m, %l = attend(%q, %k, %v) {{scale=0.125{8}}}\n}}\n",
      s.type, s.batch, s.heads, s.groups, s.queries, s.keys, s.depth, s.columns, s.attributes);
}

// Queries, keys, depths and columns around the borders of groups, blocks and the unit's blocks;
// what lies past them is zero and nothing of it may be seen.
TEST(CudaAttentionHalves, ShapesAroundTheBorders) {
  constexpr HeadsOfHalves kShapes[] = {
      {"bf16", 1, 2, 2, 70, 200, 64, 64, ""},   {"f16", 2, 1, 1, 1, 128, 64, 64, ""},
      {"bf16", 1, 4, 2, 33, 129, 128, 128, ""}, {"bf16", 1, 1, 1, 64, 5, 8, 8, ""},
      {"f16", 1, 1, 1, 65, 37, 40, 72, ""},     {"bf16", 1, 1, 1, 3, 300, 72, 120, ", softcap=1.5"},
  };
  for (const HeadsOfHalves& s : kShapes) {
    expect_half_bits(halves_text(s), std::string(s.type) + "_attention__");
  }
}

// Blocks of keys that no query of a tile attends to are left out, others are masked in part.
TEST(CudaAttentionHalves, LimitsOfKeys) {
  constexpr HeadsOfHalves kShapes[] = {
      {"bf16", 1, 1, 1, 330, 330, 64, 64, ", causal=true"},
      {"f16", 1, 1, 1, 40, 300, 64, 64, ", causal=true, past=260"},
      {"bf16", 1, 1, 1, 300, 520, 32, 64, ", left_window=20, right_window=3, past=130"},
      {"bf16", 1, 1, 1, 20, 300, 16, 64, ", causal=true, past=-10"},
  };
  for (const HeadsOfHalves& s : kShapes) {
    expect_half_bits(halves_text(s), std::string(s.type) + "_attention__");
  }
}

constexpr const char* kCuts[] = {"bf16_attention__64x128",        "bf16_attention__128x128",
                                 "bf16_attention__128x128_turns", "bf16_attention__192x128",
                                 "bf16_attention__192x128_turns", "bf16_attention__64x128_apart"};

void expect_bits_of_cuts(const std::string& text, std::initializer_list<size_t> cuts) {
  const TensorBytes expected = run_halves(text, "cpu", Drawn::kNumbers).outputs;
  for (const size_t kept : cuts) {
    std::vector<std::string> others{"loop"};
    for (const char* cut : kCuts) {
      if (cut != kCuts[kept]) others.emplace_back(cut);
    }
    const HalvesRun found = run_halves(text, "cuda", Drawn::kNumbers, others);
    EXPECT_TRUE(has_kernel(found, kCuts[kept])) << kCuts[kept];
    EXPECT_TRUE(found.outputs == expected) << "other bits: " << kCuts[kept] << "\n" << text;
  }
}

// Every number of queries a block of threads can have, at once and in turns; of the latter the last
// have none, and others no key.
TEST(CudaAttentionHalves, EveryCutHasTheSameBits) {
  const auto check = [&](const HeadsOfHalves& s, std::initializer_list<size_t> cuts) {
    expect_bits_of_cuts(halves_text(s), cuts);
  };
  check({"bf16", 1, 2, 1, 200, 400, 64, 64, ", causal=true, past=200"}, {0, 1, 3, 5});
  check({"bf16", 1, 1, 1, 450, 450, 128, 128, ", causal=true, past=-140"}, {1, 2});
  check({"bf16", 1, 1, 1, 580, 300, 16, 16, ""}, {0, 2, 4});
  // Whole blocks of keys come by tensor maps.
  check({"bf16", 2, 2, 1, 300, 384, 64, 64, ", causal=true, past=84"}, {0, 1, 2, 3, 5});
  check({"bf16", 1, 1, 1, 580, 256, 64, 64, ""}, {4});
  check({"bf16", 1, 1, 1, 450, 512, 128, 128, ", causal=true, past=-140"}, {2});
}

// Three groups in turns have tiles of two heads; the last have none. Where keys have limits, heads
// are taken by threes, and two or one are left; a tile may have one block of keys, or none.
TEST(CudaAttentionHalves, TilesOfTwoHeads) {
  constexpr HeadsOfHalves kShapes[] = {
      {"bf16", 1, 5, 5, 256, 384, 64, 64, ""},
      {"bf16", 2, 2, 1, 290, 200, 40, 64, ""},
      {"bf16", 1, 5, 5, 300, 384, 64, 64, ", causal=true, past=60"},
      {"bf16", 2, 2, 1, 320, 256, 64, 64, ", causal=true, past=-140"},
      {"bf16", 1, 4, 4, 512, 256, 64, 64, ", causal=true, past=-256"},
      {"bf16", 1, 3, 3, 390, 512, 64, 64, ", left_window=20, right_window=3, past=100"},
  };
  for (const HeadsOfHalves& s : kShapes) expect_bits_of_cuts(halves_text(s), {4});
}

TEST(CudaAttentionHalves, MasksAndLengths) {
  expect_half_bits(
      R"(graph @g(%q: bf16[2,2,70,64], %k: bf16[2,2,150,64], %v: bf16[2,2,150,64], %m: bf16[2,1,1,150]) -> (%y) {
  %y, %a, %b = attend(%q, %k, %v, %m) {scale=0.3, with="mask"}
}
)",
      "bf16_attention__");
  expect_half_bits(
      R"(graph @g(%q: f16[1,2,20,64], %k: f16[1,2,150,64], %v: f16[1,2,150,64], %m: bool[20,150], %n: i64[1]) -> (%y) {
  %y, %a, %b = attend(%q, %k, %v, %m, %n) {scale=0.125, causal=true, with="mask,lengths"}
}
)",
      "f16_attention__");
}

// A score function: what is added to the scores is computed where they are, from a number for each
// query, key and head, and stored nowhere.
TEST(CudaAttentionHalves, ScoreFunctionsAreComputedInPlace) {
  const std::string text =
      R"(graph @g(%q: bf16[1,4,150,64], %k: bf16[1,4,300,64], %v: bf16[1,4,300,64], %slope: f32[4,1,1], %i: f32[1,150,1], %j: f32[1,1,300]) -> (%y) {
  %distance = sub(%j, %i)
  %bias = mul(%distance, %slope)
  %y, %m, %l = attend(%q, %k, %v, %bias) {scale=0.125, causal=true, past=100, with="mask"}
}
)";
  EXPECT_EQ(run_halves(text, "cuda", Drawn::kNumbers).kernels.size(), 1);
  expect_half_bits(text, "bf16_attention__");
}

// Numbers that count are computed from indices.
TEST(CudaAttentionHalves, ScoreFunctionsOfIndices) {
  const std::string text =
      R"(graph @g(%q: bf16[1,3,150,64], %k: bf16[1,3,300,64], %v: bf16[1,3,300,64], %slope: f32[3,1,1]) -> (%y) {
  %i = iota() {shape=[1,150,1], axis=1, dtype=f32}
  %j = iota() {shape=[1,1,300], axis=2, dtype=f32}
  %hundred = const f32[1] splat(100.0)
  %past = sub(%i, %hundred)
  %distance = sub(%j, %i)
  %before = sub(%j, %past)
  %b0 = mul(%distance, %slope)
  %bias = add(%b0, %before)
  %y, %m, %l = attend(%q, %k, %v, %bias) {scale=0.125, causal=true, past=100, with="mask", stored_as=bf16}
}
)";
  expect_half_bits(text, "bf16_attention__");
}

// Rows that are stored as halves, whole and where columns or rows end before a tile does.
TEST(CudaAttentionHalves, RowsStoredAsHalves) {
  constexpr HeadsOfHalves kShapes[] = {
      {"bf16", 1, 2, 2, 70, 130, 64, 64, ", stored_as=bf16"},
      {"f16", 1, 1, 1, 3, 200, 64, 72, ", causal=true, past=190, stored_as=f16"},
      {"bf16", 2, 1, 1, 129, 40, 40, 128, ", stored_as=bf16"},
  };
  for (const HeadsOfHalves& s : kShapes) {
    expect_half_bits(halves_text(s), std::string(s.type) + "_attention__");
  }
}

// Operands as the products of a model leave them: heads side by side in a row.
TEST(CudaAttentionHalves, OperandsAreReadWhereTheyLie) {
  for (const int rows : {40, 128}) {
    expect_half_bits(fmt::format(R"(graph @g(%x: bf16[2,{0},3,2,64]) -> (%y) {{
  %t = transpose(%x) {{perm=[2,0,3,1,4]}}
  %a, %b, %c = split(%t) {{axis=0, sizes=[1,1,1]}}
  %q = reshape(%a) {{shape=[2,2,{0},64]}}
  %k = reshape(%b) {{shape=[2,2,{0},64]}}
  %v = reshape(%c) {{shape=[2,2,{0},64]}}
  %y, %m, %l = attend(%q, %k, %v) {{scale=0.3, causal=true}}
}}
)",
                                 rows),
                     "bf16_attention__");
  }
}

TEST(CudaAttentionHalves, NumbersOfAnyBits) {
  for (const char* type : {"bf16", "f16"}) {
    expect_half_bits(halves_text({type, 1, 1, 1, 20, 140, 16, 16, ""}),
                     std::string(type) + "_attention__", Drawn::kBits, "reference");
  }
}

// What it cannot do keeps the order in the generic forms, and the log says why.
TEST(CudaAttentionHalves, OthersHaveTheGenericForm) {
  expect_half_bits(halves_text({"bf16", 1, 1, 1, 3, 20, 12, 16, ""}), "loop_");
  expect_half_bits(halves_text({"bf16", 1, 1, 1, 3, 20, 16, 136, ""}), "loop_");
}

TEST(CudaAttentionHalves, AnF32ModelNarrowedRunsOnTheUnit) {
  const std::string text = R"(graph @g(%x: f32[1,50,128], %w: f32[128,128]) -> (%y) {
  %p = matmul(%x, %w)
  %r = reshape(%p) {shape=[1,50,2,64]}
  %q = transpose(%r) {perm=[0,2,1,3]}
  %a, %k, %v, %s = attention(%q, %q, %q)
  %t = transpose(%a) {perm=[0,2,1,3]}
  %y = reshape(%t) {shape=[1,50,128]}
}
)";
  const FakesChosen fakes;
  TensorBytes outputs[2];
  for (const char* device : {"cuda", "cpu"}) {
    driver::CompileOptions options = on_device(device);
    options.precision = DType::kBF16;
    const bool on_gpu = options.device == "cuda";
    if (!on_gpu) options.matrix_unit = "sm90";
    auto model = compile_text(text, options);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    const Status ran =
        run_on(**model, drawn((*model)->inputs(), Drawn::kNumbers), outputs[on_gpu ? 0 : 1]);
    ASSERT_TRUE(ran.ok()) << ran.to_string();
    if (!on_gpu) continue;
    const auto& log = (*model)->decisions();
    EXPECT_TRUE(std::any_of(log.begin(), log.end(), [](const Decision& d) {
      return d.what.starts_with("kernel:") && d.chosen.starts_with("bf16_attention__");
    }));
  }
  EXPECT_TRUE(outputs[0] == outputs[1]) << "other bits";
}

// How many weights begin between the wait for all products and the next products with values.
size_t weights_behind_sums(const std::string& code) {
  const size_t products = code.find(".tnspB");
  size_t weights = 0;
  for (size_t at = code.rfind("DEPBAR.LE gsb0, 0x0", products);
       (at = code.find("FFMA.SAT", at)) < products; ++at) {
    ++weights;
  }
  return weights;
}

// Scores, weights and sums stay in registers.
TEST(CudaAttentionHalves, BecomesCubinsForHopper) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
  const TempFolder folder;
  bool disassembled = false;
  driver::CompileOptions options = on_device("cuda");
  options.target = "sm_90a";
  const std::string biased =
      R"(graph @g(%q: bf16[1,64,4096,64], %k: bf16[1,64,4096,64], %v: bf16[1,64,4096,64], %slope: f32[64,1,1], %i: f32[1,4096,1], %j: f32[1,1,4096]) -> (%y) {
  %distance = sub(%j, %i)
  %bias = mul(%distance, %slope)
  %y, %m, %l = attend(%q, %k, %v, %bias) {scale=0.125, causal=true, with="mask"}
}
)";
  for (const std::string& text :
       {halves_text({"bf16", 1, 12, 12, 128, 128, 64, 64, ""}),
        halves_text({"bf16", 4, 16, 16, 4096, 4096, 64, 64, ", causal=true"}),
        halves_text({"f16", 4, 16, 16, 4096, 4096, 128, 128, ""}),
        halves_text({"bf16", 4, 16, 16, 300, 4096, 128, 128, ", causal=true, past=3796"}),
        biased}) {
    auto graph = driver::parse_model(text);
    ASSERT_TRUE(graph.ok());
    auto verified = ir::verify_graph(std::move(*graph));
    ASSERT_TRUE(verified.ok());
    const auto compiled = driver::compile_program(std::move(*verified), options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
    const std::string file = folder.path() + "/kernel.cubin";
    const std::string& image = *compiled->program->steps[0].kernel().object;
    ASSERT_TRUE(write_file_atomic(file, std::string_view(image)).ok());
    const auto code = printed_by("nvdisasm -c " + file);
    if (!code) continue;
    disassembled = true;
    EXPECT_NE(code->find("HGMMA"), std::string::npos);
    for (const char* spill : {"LDL", "STL"}) EXPECT_EQ(code->find(spill), std::string::npos);
    EXPECT_LE(weights_behind_sums(*code), 4) << "the sums are waited for before the weights";
  }
  if (!disassembled) GTEST_SKIP() << "NOT RUN: no nvdisasm to look at the code with";
}

}  // namespace
}  // namespace pyc::test
