// Products in tiles against the interpreter, on the fake driver: every tile at its borders, every
// kind of operand, and the op cases that have a product.

#include <gtest/gtest.h>

#include <string>

#include "backends/cuda/backend.h"
#include "backends/cuda/generators/product.h"
#include "cuda/cubin_facts.h"
#include "cuda/device_runs.h"
#include "cuda/fake_driver.h"
#include "cuda/models_on_fake.h"
#include "support/round.h"

namespace pyc::test {
namespace {

using cuda::ProductTile;

class CudaProduct : public testing::Test {
 protected:
  void SetUp() override {
    auto nvrtc = cuda::Nvrtc::load(kFakeNvrtc);
    ASSERT_TRUE(nvrtc.ok()) << nvrtc.status().to_string();
    nvrtc_ = *nvrtc;
    auto driver = cuda::Driver::load(kFakeDriver);
    ASSERT_TRUE(driver.ok()) << driver.status().to_string();
    auto device = cuda::Device::open(*driver);
    ASSERT_TRUE(device.ok()) << device.status().to_string();
    device_ = *device;
  }

  static Result<std::vector<cuda::KernelText>> generic(const lower::Group& group,
                                                       const std::string& symbol) {
    PYC_ASSIGN(cuda::KernelText text,
               cuda::kernel_text(group.kernel, symbol, cuda::cuda_dialect()));
    return std::vector{std::move(text)};
  }

  // Runs everything, products in the tile, and returns how many kernels were tiles.
  int expect_equal(const std::vector<CaseRun>& runs, const ProductTile& tile) {
    int tiles = 0;
    const auto texts_of = [&](const lower::Group& group,
                              const std::string& symbol) -> Result<std::vector<cuda::KernelText>> {
      if (!cuda::product_rejected(group).empty()) {
        return generic(group, symbol);
      }
      ++tiles;
      std::vector texts = {cuda::product_text(group, tile, symbol, cuda::cuda_dialect(), {})};
      if (tile.split) {
        texts.push_back(cuda::product_join_text(group, symbol + "_join", cuda::cuda_dialect(), {}));
      }
      return texts;
    };
    expect_equal(runs, texts_of);
    return tiles;
  }

  // The same with products of few rows column by column.
  int expect_equal_rows(const std::vector<CaseRun>& runs) {
    int streams = 0;
    const auto texts_of = [&](const lower::Group& group,
                              const std::string& symbol) -> Result<std::vector<cuda::KernelText>> {
      if (!cuda::stream_rejected(group).empty()) {
        return generic(group, symbol);
      }
      ++streams;
      double cost = 0.0;
      const cuda::ProductStream stream = cuda::choose_stream(group, &cost);
      return std::vector{cuda::stream_text(group, stream, symbol, cuda::cuda_dialect(), {})};
    };
    expect_equal(runs, texts_of);
    return streams;
  }

  void expect_equal(const std::vector<CaseRun>& runs, const KernelSet::TextsOf& texts_of) {
    auto kernels = KernelSet::make(runs, texts_of, 50);
    EXPECT_TRUE(kernels.ok()) << kernels.status().to_string();
    if (!kernels.ok()) return;
    const Status compiled = kernels->compile(*nvrtc_, "sm_90a", 2);
    EXPECT_TRUE(compiled.ok()) << compiled.to_string();
    if (!compiled.ok()) return;
    auto runner = CaseRunner::make(device_, *kernels);
    EXPECT_TRUE(runner.ok()) << runner.status().to_string();
    if (!runner.ok()) return;
    for (const CaseRun& run : runs) {
      auto found = runner->run(run);
      EXPECT_TRUE(found.ok()) << run.name << ": " << found.status().to_string();
      if (found.ok()) {
        EXPECT_EQ(*found, "") << run.name;
      }
    }
  }

  std::shared_ptr<const cuda::Nvrtc> nvrtc_;
  cuda::DevicePtr device_;
};

void add(std::vector<CaseRun>& runs, const std::string& name, const std::string& text) {
  auto run = interpret_graph(name, text);
  ASSERT_TRUE(run.ok()) << name << ": " << run.status().to_string();
  runs.push_back(std::move(*run));
}

void add_matmul(std::vector<CaseRun>& runs, int64_t m, int64_t n, int64_t k) {
  const std::string rows = std::to_string(m);
  const std::string columns = std::to_string(n);
  const std::string terms = std::to_string(k);
  add(runs, rows + "x" + columns + "x" + terms,
      "graph @g(%x: f32[" + rows + "," + terms + "], %w: f32[" + terms + "," + columns +
          "], %b: f32[" + columns + "]) -> (%y) {\n  %p = matmul(%x, %w)\n  %s = add(%p, %b)\n" +
          "  %y = relu(%s)\n}\n");
}

// One tile more or less a row, a column or a term, and all the numbers of segments that its teams
// share out evenly or not.
TEST_F(CudaProduct, EveryTileAtItsBorders) {
  size_t number = 0;
  for (const ProductTile& tile : cuda::product_tiles()) {
    if (!has_its_turn(number++, 4)) continue;
    std::vector<CaseRun> runs;
    add_matmul(runs, tile.rows + 1, tile.columns - 1, 256 * tile.teams + 1);
    add_matmul(runs, tile.rows, tile.columns, tile.split ? 768 : 256 * tile.teams);
    EXPECT_EQ(expect_equal(runs, tile), 2) << tile.name();
  }
}

TEST_F(CudaProduct, TermsAtTheBordersOfSegments) {
  std::vector<CaseRun> runs;
  const std::vector<int64_t> terms = {1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 769, 1024};
  for (const int64_t k : terms) add_matmul(runs, 20, 36, k);
  for (const ProductTile& tile :
       {ProductTile{32, 32, 4, 4, 16, 1}, ProductTile{32, 32, 4, 4, 16, 3},
        ProductTile{32, 32, 8, 4, 16, 1, true}}) {
    EXPECT_EQ(expect_equal(runs, tile), static_cast<int>(terms.size()));
  }
}

std::vector<CaseRun> operand_runs() {
  std::vector<CaseRun> runs;
  const auto einsum = [&](const std::string& a, const std::string& b, const std::string& equation) {
    add(runs, equation + " of " + a + " and " + b,
        "graph @g(%x: f32" + a + ", %w: f32" + b +
            ") -> (%y) {\n  %y = einsum(%x, %w) {equation=\"" + equation + "\"}\n}\n");
  };
  einsum("[300,36]", "[300,40]", "km,kn->mn");
  einsum("[36,300]", "[40,300]", "mk,nk->mn");
  einsum("[35,301]", "[41,301]", "mk,nk->nm");
  einsum("[3,20,64]", "[3,64,24]", "bmk,bkn->bmn");
  einsum("[2,20,3,16]", "[2,24,3,16]", "bqhd,bkhd->bhqk");
  einsum("[6,20,16]", "[2,16,24]", "gqd,hdk->ghqk");
  const auto conv = [&](const std::string& x, const std::string& w, const std::string& attributes) {
    add(runs, "conv of " + x + " and " + w + " " + attributes,
        "graph @g(%x: f32" + x + ", %b: f32[1,1,1,1]) -> (%y) {\n  %w = const f32" + w +
            " random(seed=1, lo=-1.0, hi=1.0)\n  %c = conv(%x, %w) {" + attributes +
            "}\n  %s = add(%c, %b)\n  %y = relu(%s)\n}\n");
  };
  conv("[2,3,11,13]", "[20,3,3,3]", "pads=[1, 1, 1, 1]");
  conv("[1,30,9,8]", "[24,30,3,3]", "pads=[1, 0, 2, 1], strides=[2, 1]");
  conv("[1,16,14,14]", "[36,16,3,3]", "pads=[2, 2, 2, 2], dilations=[2, 2]");
  conv("[2,24,7,7]", "[36,6,3,3]", "pads=[1, 1, 1, 1], group=4");
  conv("[1,64,8,8]", "[40,64,1,1]", "strides=[1, 1]");
  conv("[1,12,10,10]", "[12,1,3,3]", "pads=[1, 1, 1, 1], group=12");
  // Channels last, in runs of four or not.
  const auto last = [&](const std::string& x, const std::string& w, const std::string& attributes) {
    add(runs, "conv of channels last " + x + " and " + w + " " + attributes,
        "graph @g(%x: f32" + x + ") -> (%y) {\n  %w = const f32" + w +
            " random(seed=1, lo=-1.0, hi=1.0)\n  %t = transpose(%x) {perm=[0,3,1,2]}\n" +
            "  %c = conv(%t, %w) {" + attributes + "}\n  %y = transpose(%c) {perm=[0,2,3,1]}\n}\n");
  };
  last("[2,9,8,32]", "[24,32,3,3]", "pads=[1, 1, 1, 1]");
  last("[1,9,8,20]", "[24,20,3,2]", "pads=[1, 0, 2, 1], strides=[2, 1]");
  last("[1,7,7,18]", "[20,18,3,3]", "pads=[1, 1, 1, 1], dilations=[2, 1]");
  last("[1,6,6,48]", "[32,24,3,3]", "pads=[1, 1, 1, 1], group=2");
  last("[1,9,9,64]", "[40,64,1,1]", "strides=[2, 2]");
  add(runs, "converted operands",
      "graph @g(%x: bf16[20,300], %w: f16[300,36]) -> (%y) {\n  %a = cast(%x) {to=f32}\n"
      "  %b = cast(%w) {to=f32}\n  %y = matmul(%a, %b)\n}\n");
  add(runs, "an epilogue with a residual",
      "graph @g(%x: f32[20,300], %w: f32[300,36], %r: f32[20,36]) -> (%y) {\n"
      "  %p = matmul(%x, %w)\n  %g = gelu(%p)\n  %y = add(%g, %r)\n}\n");
  return runs;
}

TEST_F(CudaProduct, EveryKindOfOperand) {
  const auto runs = operand_runs();
  for (const ProductTile& tile :
       {ProductTile{32, 32, 4, 4, 16, 2}, ProductTile{16, 64, 4, 4, 16, 1},
        ProductTile{128, 128, 8, 8, 16, 1}, ProductTile{32, 32, 8, 4, 8, 1, true}}) {
    EXPECT_GE(expect_equal(runs, tile), static_cast<int>(runs.size()) - 1) << tile.name();
  }
}

TEST_F(CudaProduct, FewRows) {
  std::vector<CaseRun> runs;
  for (const int64_t m : {1, 2, 7, 16}) {
    for (const int64_t k : {1, 40, 256, 257, 2048, 2500}) add_matmul(runs, m, 35, k);
  }
  const size_t all = runs.size();
  add(runs, "columns of terms",
      "graph @g(%x: f32[3,640], %w: f32[70,640]) -> (%y) {\n"
      "  %y = einsum(%x, %w) {equation=\"mk,nk->mn\"}\n}\n");
  add(runs, "a batch",
      "graph @g(%x: f32[4,2,300], %w: f32[4,300,33]) -> (%y) {\n  %y = matmul(%x, %w)\n}\n");
  EXPECT_EQ(expect_equal_rows(runs), static_cast<int>(all) + 2);
  EXPECT_GT(expect_equal_rows(operand_runs()), 0) << "the depthwise convolution";
}

TEST_F(CudaProduct, OpCases) {
  int tiles = 0;
  for (const char* op : {"matmul", "gemm", "conv", "einsum", "conv_transpose"}) {
    const auto runs =
        interpret_cases({.folder = PYC_SOURCE_DIR "/tests/ops", .only = op, .per_op = 16});
    ASSERT_TRUE(runs.ok()) << runs.status().to_string();
    tiles += expect_equal(*runs, {32, 32, 4, 4, 16, 2});
    tiles += expect_equal_rows(*runs);
  }
  EXPECT_GT(tiles, 25);
}

// Whole models, so that weights are packed and read packed, against the reference.
TEST(CudaProductModels, GiveTheBitsOfTheReference) {
  const FakesChosen fakes;
  const auto conv = [](const std::string& x, const std::string& w, const std::string& attributes) {
    return "graph @g(%x: f32" + x + ") -> (%y) {\n  %w = const f32" + w +
           " random(seed=1, lo=-1.0, hi=1.0)\n  %c = conv(%x, %w) {" + attributes +
           "}\n  %y = relu(%c)\n}\n";
  };
  for (const std::string& text :
       {conv("[1,32,14,14]", "[40,32,3,3]", "pads=[1, 1, 1, 1]"),
        conv("[2,30,12,12]", "[42,30,3,3]", "pads=[1, 0, 2, 1], strides=[2, 1]"),
        conv("[1,64,10,10]", "[64,32,3,3]", "pads=[1, 1, 1, 1], group=2")}) {
    auto run = interpret_graph("conv", text);
    ASSERT_TRUE(run.ok()) << run.status().to_string();
    const auto backend = backends::make_cuda_backend();
    const auto candidates =
        backend->candidates(*run->lowered.graph, run->lowered.groups[0], {.target = "sm_90a"});
    ASSERT_GE(candidates.size(), 2U);
    EXPECT_EQ(candidates[0].rejected, "");
    EXPECT_EQ(candidates[0].needs.packed.size(), 1U);
    EXPECT_LT(candidates[0].cost_ns, candidates.back().cost_ns) << candidates.back().name;
    TensorBytes outputs[2];
    for (const int i : {0, 1}) {
      auto model = compile_text(text, on_device(i == 0 ? "reference" : "cuda"));
      ASSERT_TRUE(model.ok()) << model.status().to_string();
      const Status ran = run_on(**model, ramp_inputs((*model)->inputs()), outputs[i]);
      ASSERT_TRUE(ran.ok()) << ran.to_string();
    }
    EXPECT_TRUE(outputs[0] == outputs[1]) << text;
  }
}

// Convolutions and pools behind one another, whose values lie channels last: what each kernel
// computes for several channels at a time, against the reference.
TEST(CudaProductModels, WindowsOfChannelsThatAreLast) {
  const FakesChosen fakes;
  for (const char* type : {"f32", "bf16"}) {
    const std::string t = type;
    // Enough elements for eight halves, or four floats, and as many threads as that needs.
    const std::string text = "graph @g(%x: " + t + "[1,64,96,88]) -> (%y) {\n  %w = const " + t +
                             R"([64,1,3,3] random(seed=1, lo=-1.0, hi=1.0)
  %v = const )" + t + R"([8,64,1,1] random(seed=2, lo=-1.0, hi=1.0)
  %a = relu(%x)
  %c = conv(%a, %w) {pads=[1,1,1,1], group=64}
  %r = relu(%c)
  %m = max_pool(%r) {kernel=[2,2], pads=[1,0,0,1]}
  %p = avg_pool(%m) {kernel=[3,2], strides=[2,2]}
  %y = conv(%p, %v)
}
)";
    TensorBytes outputs[2];
    for (const int i : {0, 1}) {
      driver::CompileOptions options = on_device(i == 0 ? "reference" : "cuda");
      options.determinism = driver::Determinism::kStrict;
      auto model = compile_text(text, options);
      ASSERT_TRUE(model.ok()) << model.status().to_string();
      TensorBytes inputs = room_for((*model)->inputs());
      for (size_t b = 0; b < inputs[0].size(); ++b) {
        // Numbers of either sign and like magnitude, as halves and as floats.
        inputs[0][b] = static_cast<std::byte>(b % 2 == 0 ? b * 7919 >> 3 : 0x3F + b / 2 % 2 * 0x80);
      }
      const Status ran = run_on(**model, std::move(inputs), outputs[i]);
      ASSERT_TRUE(ran.ok()) << ran.to_string();
      if (i == 0) continue;
      int wide = 0;
      for (const Decision& d : (*model)->decisions()) {
        const bool is_wide = d.chosen == "loop_flat__4" || d.chosen == "loop_flat__8";
        wide += d.what.starts_with("kernel:") && is_wide ? 1 : 0;
      }
      EXPECT_GE(wide, 3) << type;
    }
    EXPECT_TRUE(outputs[0] == outputs[1]) << type;
  }
}

// A spilled accumulator costs more than all else that a tile can win.
TEST(CudaProductCubins, NoTileNeedsMoreRegistersThanThereAre) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
  std::vector<CaseRun> runs;
  add_matmul(runs, 8, 8, 512);
  const lower::Group& group = runs[0].lowered.groups[0];
  const auto expect_no_stack = [&](const cuda::KernelText& text, const std::string& name) {
    const cuda::KernelText* const kernels[] = {&text};
    const auto image = (*nvrtc)->cubin(cuda::unit_text(cuda::cuda_dialect(), kernels), "sm_90a");
    ASSERT_TRUE(image.ok()) << name << ": " << image.status().to_string();
    const CubinFacts facts = facts_of(*image);
    EXPECT_GT(facts.registers, 16U) << name;
    EXPECT_LE(facts.registers * text.threads, 65536U) << name;
    EXPECT_EQ(facts.frame_bytes, 0U) << name;
  };
  size_t number = 0;
  for (const ProductTile& tile : cuda::product_tiles()) {
    if (!has_its_turn(number++, 4)) continue;
    expect_no_stack(cuda::product_text(group, tile, "k", cuda::cuda_dialect(), {}), tile.name());
  }
  double cost = 0.0;
  const cuda::ProductStream stream = cuda::choose_stream(group, &cost);
  expect_no_stack(cuda::stream_text(group, stream, "k", cuda::cuda_dialect(), {}), stream.name());
}

}  // namespace
}  // namespace pyc::test
