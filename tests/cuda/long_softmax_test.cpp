// Softmax along rows of halves by its own kernel, on the device "cuda" over the fake driver, with
// the bits of the reference; and which rows have it.

#include <string>

#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/nvrtc.h"
#include "base/convert.h"
#include "cuda/cubin_facts.h"
#include "cuda/models_on_fake.h"
#include "driver/compile.h"
#include "lower/lower.h"
#include "support/run_groups.h"

namespace pyc::cuda {
const KernelGenerator& generator_long_softmax();
}

namespace pyc::test {
namespace {

struct Rows {
  DType dtype;
  int64_t rows;
  int64_t columns;

  std::string graph() const {
    const std::string type = std::string(dtype_name(dtype)) + "[" + std::to_string(rows) + "," +
                             std::to_string(columns) + "]";
    return "graph @g(%x: " + type + ") -> (%y) {\n  %y = softmax(%x)\n}\n";
  }
};

// One row of each kind, again and again: of numbers near each other, and of such as the exp of
// normal numbers alone does not have.
float element(int64_t row, int64_t column, int64_t columns) {
  const auto near = static_cast<float>((column * 7919 + row * 31) % 1021) / 128.0F - 4.0F;
  const bool once = column == columns - 700 + row;
  switch (row % 12) {
    case 1:
      return near * 30.0F;
    case 2:
      return once ? -std::numeric_limits<float>::infinity() : near;
    case 3:
      return once ? std::numeric_limits<float>::infinity() : near;
    case 4:
      return once ? std::numeric_limits<float>::quiet_NaN() : near;
    case 5:
      return once ? -std::numeric_limits<float>::quiet_NaN() : near;
    case 6:
      return -std::numeric_limits<float>::infinity();
    case 7:
      return 2.5F;
    case 8:
      return column % 2 == 0 ? 0.0F : -0.0F;
    case 9:
      return once ? -86.0F : 0.5F;
    case 10:
      return once ? -95.0F : -0.25F;
    case 11:
      return near * 1e-6F;
    default:
      return near;
  }
}

TensorBytes input_of(const Rows& r) {
  TensorBytes bytes(1);
  bytes[0].resize(static_cast<size_t>(r.rows * r.columns) * 2);
  for (int64_t i = 0; i < r.rows * r.columns; ++i) {
    const float x = element(i / r.columns, i % r.columns, r.columns);
    const auto half = static_cast<uint16_t>(word_from_double(x, r.dtype));
    std::memcpy(bytes[0].data() + 2 * i, &half, 2);
  }
  return bytes;
}

class CudaLongSoftmax : public testing::TestWithParam<Rows> {};

TEST_P(CudaLongSoftmax, HasTheBitsOfTheReference) {
  const FakesChosen fakes;
  const TensorBytes input = input_of(GetParam());
  TensorBytes outputs[2];
  const char* devices[] = {"cuda", "reference"};
  for (int i = 0; i < 2; ++i) {
    auto model = compile_text(GetParam().graph(), on_device(devices[i]));
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    std::string kernel;
    for (const Decision& d : (*model)->decisions()) {
      if (d.what.starts_with("kernel:")) kernel = d.chosen;
    }
    EXPECT_EQ(kernel.ends_with("_long_softmax"), i == 0) << kernel;
    const Status status = run_on(**model, input, outputs[i]);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  EXPECT_TRUE(outputs[0] == outputs[1]) << "other bits";
}

// More rows than run at a time, so that some teams have a second one.
INSTANTIATE_TEST_SUITE_P(All, CudaLongSoftmax,
                         testing::Values(Rows{DType::kBF16, 25, 196608},
                                         Rows{DType::kF16, 22, 229376}));

// The candidate for a group of the graph: its name, or why it was not taken; "" if there is none.
std::string candidate_of(const std::string& text) {
  const auto graph = driver::parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  const ir::VerifiedGraph verified = canonical(*graph);
  const auto lowered = lower::lower_graph(verified, {});
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string();
  for (const lower::Group& group : lowered->groups) {
    const auto found = cuda::generator_long_softmax().candidates(*verified, group);
    if (!found.empty()) return found[0].rejected.empty() ? found[0].name : found[0].rejected;
  }
  return "";
}

TEST(CudaLongSoftmaxChoice, IsForLongRowsOfHalvesAlone) {
  const auto of = [](DType t, int64_t rows, int64_t columns) {
    return candidate_of(Rows{t, rows, columns}.graph());
  };
  EXPECT_EQ(of(DType::kBF16, 512, 262144), "bf16_long_softmax");
  EXPECT_EQ(of(DType::kF16, 22, 196608), "f16_long_softmax");
  EXPECT_EQ(of(DType::kBF16, 21, 262144), "too_few_or_many_rows");
  EXPECT_EQ(of(DType::kBF16, 512, 262142), "other_rows");
  EXPECT_EQ(of(DType::kBF16, 512, 180224), "other_rows");
  EXPECT_EQ(of(DType::kF32, 512, 262144), "");
}

TEST(CudaLongSoftmaxChoice, IsForNothingElse) {
  const std::string head = "graph @g(%x: bf16[64,262144], %z: bf16[64,262144]) -> (%y) {\n";
  EXPECT_EQ(candidate_of(head + "  %y = log_softmax(%x)\n}\n"), "");
  EXPECT_EQ(candidate_of(head + "  %s = mul(%x, %z)\n  %y = softmax(%s)\n}\n"), "");
  EXPECT_EQ(candidate_of(head + "  %s = softmax(%x)\n  %y = mul(%s, %z)\n}\n"), "");
  EXPECT_EQ(
      candidate_of("graph @g(%x: bf16[262144,64]) -> (%y) {\n  %y = softmax(%x) {axis=0}\n}\n"),
      "");
}

// A value that fell out of registers would be read and written for every row.
TEST(CudaLongSoftmaxCubins, EverythingStaysInRegisters) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
  for (const Rows& r : {Rows{DType::kBF16, 512, 262144}, Rows{DType::kBF16, 512, 196608},
                        Rows{DType::kF16, 512, 262144}}) {
    const auto graph = driver::parse_model(r.graph());
    ASSERT_TRUE(graph.ok()) << graph.status().to_string();
    const ir::VerifiedGraph verified = canonical(*graph);
    const auto lowered = lower::lower_graph(verified, {});
    ASSERT_TRUE(lowered.ok()) << lowered.status().to_string();
    ASSERT_EQ(lowered->groups.size(), 1U);
    const auto found = cuda::generator_long_softmax().candidates(*verified, lowered->groups[0]);
    ASSERT_EQ(found.size(), 1U);
    const auto& plan = dynamic_cast<const cuda::CudaPlan&>(*found[0].plan);
    const cuda::KernelText* const kernels[] = {&plan.parts[0].kernel};
    const auto image = (*nvrtc)->cubin(cuda::unit_text(cuda::cuda_dialect(), kernels), "sm_90a");
    ASSERT_TRUE(image.ok()) << image.status().to_string();
    const CubinFacts facts = facts_of(*image);
    EXPECT_GT(facts.registers, 64U) << r.graph();
    EXPECT_EQ(facts.frame_bytes, 0U) << r.graph();
  }
}

}  // namespace
}  // namespace pyc::test
