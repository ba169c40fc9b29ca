// Kernel text of every form against the interpreter, on the fake driver: shapes at the borders of a
// tree's lanes, blocks and super-blocks, and op cases.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "cuda/case_runs.h"
#include "cuda/cubin_facts.h"
#include "cuda/device_runs.h"
#include "cuda/fake_driver.h"
#include "cuda/shape_runs.h"

namespace pyc::test {
namespace {

using cuda::KernelForm;

class CudaForms : public testing::Test {
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

  // All runs, equal bit by bit; returns how many kernels each form had.
  std::map<std::string, int> expect_equal(const std::vector<CaseRun>& runs, KernelForm form) {
    auto kernels = KernelSet::make(runs, form, 200);
    EXPECT_TRUE(kernels.ok()) << kernels.status().to_string();
    if (!kernels.ok()) return {};
    const Status compiled = kernels->compile(*nvrtc_, "sm_90a", 2);
    EXPECT_TRUE(compiled.ok()) << compiled.to_string();
    if (!compiled.ok()) return {};
    auto runner = CaseRunner::make(device_, *kernels);
    EXPECT_TRUE(runner.ok()) << runner.status().to_string();
    if (!runner.ok()) return {};
    for (const CaseRun& run : runs) {
      auto found = runner->run(run);
      EXPECT_TRUE(found.ok()) << run.name << ": " << found.status().to_string();
      if (found.ok()) {
        EXPECT_EQ(*found, "") << run.name;
      }
    }
    return kernels->count_by_form();
  }

  std::shared_ptr<const cuda::Nvrtc> nvrtc_;
  cuda::DevicePtr device_;
};

// A row is read by all three passes, and weights by the first one, which has them before the row.
const std::string kNormOfWeighted =
    "  %p = mul(%w, %x)\n"
    "  %m = reduce_mean(%p) {axes=[1], keepdims=true}\n"
    "  %d = sub(%x, %m)\n"
    "  %q = mul(%d, %d)\n"
    "  %v = reduce_mean(%q) {axes=[1], keepdims=true}\n"
    "  %y = div(%d, %v)\n";

std::string graph_of(const std::string& inputs, const std::string& body) {
  return "graph @g(" + inputs + ") -> (%y) {\n" + body + "}\n";
}

std::vector<CaseRun> taken(Result<std::vector<CaseRun>> runs) {
  EXPECT_TRUE(runs.ok()) << runs.status().to_string();
  return runs.ok() ? std::move(*runs) : std::vector<CaseRun>();
}

TEST_F(CudaForms, TreesAtTheBordersOfLanesAndBlocks) {
  const auto runs = taken(tree_runs());
  const auto any = expect_equal(runs, KernelForm::kAny);
  const auto team = expect_equal(runs, KernelForm::kTeam);
  expect_equal(runs, KernelForm::kSerial);
  EXPECT_TRUE(any.contains("flat")) << "thread by thread";
  EXPECT_TRUE(team.contains("team of 32")) << "a warp a row";
}

TEST_F(CudaForms, SumsOfSeveralSuperBlocks) {
  const auto forms = expect_equal(taken(super_block_runs()), KernelForm::kAny);
  EXPECT_TRUE(forms.contains("team of 512")) << "a block a row";
}

TEST_F(CudaForms, RowsOfAWarpAndOfABlock) {
  const auto forms = expect_equal(taken(row_runs()), KernelForm::kAny);
  EXPECT_TRUE(forms.contains("rows of 32")) << "a warp a row";
  EXPECT_TRUE(forms.contains("rows of 160")) << "a warp for 1024";
  EXPECT_TRUE(forms.contains("rows of 672")) << "of three blocks, whose last warp has nothing";
  EXPECT_TRUE(forms.contains("rows of 1280")) << "of five";
  EXPECT_TRUE(forms.contains("rows of 6656")) << "of sixteen, that two may be on a multiprocessor";
  EXPECT_TRUE(forms.contains("rows of 4608")) << "of sixteen, read ahead";
  EXPECT_TRUE(forms.contains("rows of 5632 in turns by 2")) << "two at a time";
  EXPECT_TRUE(forms.contains("team of 512")) << "a row too long for registers";
}

TEST_F(CudaForms, NormsKeepTheirRows) {
  const auto forms = expect_equal(taken(norm_runs()), KernelForm::kAny);
  EXPECT_TRUE(forms.contains("rows of 32"));
  EXPECT_TRUE(forms.contains("rows of 64"));
  EXPECT_TRUE(forms.contains("rows of 4608 in turns"));
  EXPECT_TRUE(forms.contains("rows of 8192 in turns by 2"));
  EXPECT_TRUE(forms.contains("rows of 3072 in turns by 4"));
}

// Halves that one pass reads are floats in registers: as many of them at a time as floats, or a
// block has its multiprocessor to itself.
TEST_F(CudaForms, HalvesAreReadInBatchesOfFloats) {
  auto run = interpret_graph("halves",
                             "graph @g(%x: bf16[3,16384], %r: bf16[3,16384]) -> (%y) {\n"
                             "  %n = softmax(%x)\n  %y = mul(%n, %r)\n}\n");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  const auto kernels = KernelSet::make({*run}, KernelForm::kAny, 8);
  ASSERT_TRUE(kernels.ok()) << kernels.status().to_string();
  ASSERT_EQ(kernels->unit_count(), 1U);
  EXPECT_NE(kernels->unit_source(0).find("u16 z0[8][2]"), std::string::npos);
  expect_equal({*run}, KernelForm::kAny);
}

// A row that arrives in shared memory is taken from there, and so are the weights that are there.
TEST_F(CudaForms, BroughtRowsAreTaken) {
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  const auto expect_taken = [&](const Result<CaseRun>& run) {
    ASSERT_TRUE(run.ok()) << run.status().to_string();
    const auto kernels = KernelSet::make({*run}, KernelForm::kAny, 8);
    ASSERT_TRUE(kernels.ok()) << kernels.status().to_string();
    ASSERT_EQ(kernels->unit_count(), 1U);
    const std::string text = kernels->unit_source(0);
    EXPECT_EQ(count(text, "pyc_gate_pass(arrived"), 1) << run->name;
    EXPECT_EQ(count(text, "PYC_GLOBAL const pyc_v"), 1) << run->name << ": fills shared memory";
  };
  expect_taken(lower_text("softmax", graph_of("%x: bf16[15,262144], %w: bf16[262144]",
                                              "  %s = softmax(%x)\n  %y = mul(%s, %w)\n")));
  std::vector<CaseRun> runs;
  for (const std::string inputs :
       {"%x: f32[15,180224], %w: f32[180224]", "%x: bf16[15,180224], %w: bf16[180224]"}) {
    const auto run = interpret_graph(inputs, graph_of(inputs, kNormOfWeighted));
    expect_taken(run);
    if (run.ok()) runs.push_back(*run);
  }
  const auto forms = expect_equal(runs, KernelForm::kAny);
  EXPECT_EQ(forms.size(), 1U);
  EXPECT_TRUE(forms.contains("rows of 5632 in turns by 2"));
}

// A thread has as many registers as there can be, and about all are used: what a pass before made
// of halves in their place would not fit (a frame of 224 bytes, 0.35 of a copy's speed for 0.84).
TEST(CudaFormCubins, RowsOfTeamsStayInRegisters) {
  constexpr uint32_t kMostFrame = 16;
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
  const auto expect_small_frame = [&](const std::string& inputs, const std::string& body,
                                      const std::string& form) {
    const std::string name = body + " of " + inputs;
    const auto run = lower_text(name, graph_of(inputs, body));
    ASSERT_TRUE(run.ok()) << run.status().to_string();
    ASSERT_EQ(run->lowered.groups.size(), 1U) << name;
    const auto text =
        cuda::kernel_text(run->lowered.groups[0].kernel, "pyc_kernel", cuda::cuda_dialect());
    ASSERT_TRUE(text.ok()) << text.status().to_string();
    EXPECT_EQ(text->form, form) << name;
    const cuda::KernelText* const kernels[] = {&*text};
    const auto image = (*nvrtc)->cubin(cuda::unit_text(cuda::cuda_dialect(), kernels), "sm_90a");
    ASSERT_TRUE(image.ok()) << image.status().to_string();
    const CubinFacts facts = facts_of(*image);
    EXPECT_GT(facts.registers, 16U) << name;
    EXPECT_LE(facts.frame_bytes, kMostFrame) << name;
  };
  const std::string alone = "  %y = mean_variance_normalization(%x) {axes=[1]}\n";
  const std::string by_two = "rows of 8192 in turns by 2";
  const std::string by_four = "rows of 4096 in turns by 4";
  expect_small_frame("%x: bf16[512,262144]", alone, by_four);
  expect_small_frame("%x: f16[512,262144]", alone, by_four);
  expect_small_frame("%x: bf16[512,262144]", "  %y = softmax(%x)\n", by_two);
  expect_small_frame("%x: f32[256,262144]", "  %y = softmax(%x)\n", by_two);
  expect_small_frame("%x: f32[256,262144], %g: f32[262144], %b: f32[262144]",
                     "  %y = layer_norm(%x, %g, %b)\n", by_two);
  // No division stands between two of their passes.
  expect_small_frame("%x: bf16[512,262144]", "  %y = log_softmax(%x)\n", by_two);
  expect_small_frame("%x: bf16[512,262144]", "  %y = reduce_log_sum_exp(%x) {axes=[1]}\n", by_two);
  expect_small_frame("%x: bf16[512,262144]",
                     "  %m = reduce_mean(%x) {axes=[1], keepdims=true}\n"
                     "  %d = sub(%x, %m)\n"
                     "  %a = abs(%d)\n"
                     "  %s = reduce_sum(%a) {axes=[1], keepdims=true}\n"
                     "  %y = mul(%d, %s)\n",
                     by_two);
  expect_small_frame("%x: f32[64,262144], %w: f32[262144]", kNormOfWeighted, by_two);
  expect_small_frame("%x: bf16[20,262144], %w: bf16[262144]", kNormOfWeighted, by_two);
}

TEST_F(CudaForms, NeighboursOfAThreadAreReadAtOnce) {
  const auto forms = expect_equal(taken(neighbour_runs()), KernelForm::kAny);
  EXPECT_TRUE(forms.contains("flat x8"));
  EXPECT_TRUE(forms.contains("flat x4"));
  EXPECT_TRUE(forms.contains("flat x2"));
}

// Three cases of every op; a twentieth of the rest, another one with every round.
TEST_F(CudaForms, OpCases) {
  const char* round = std::getenv("PYC_HOSTILE_ROUND");
  const auto runs = interpret_cases({.folder = PYC_SOURCE_DIR "/tests/ops",
                                     .rest = 20,
                                     .rest_from = round == nullptr ? 0 : std::atoi(round)});
  ASSERT_TRUE(runs.ok()) << runs.status().to_string();
  EXPECT_GT(runs->size(), 500U);
  expect_equal(*runs, KernelForm::kAny);
}

}  // namespace
}  // namespace pyc::test
