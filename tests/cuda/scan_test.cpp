// What generated kernels must not have: instructions that round otherwise than the text says, sums
// whose order nobody knows, values that fell out of registers. Planted ones are found.

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "backends/cuda/disassemble.h"
#include "cuda/device_runs.h"
#include "cuda/fake_driver.h"

namespace pyc::test {
namespace {

using cuda::KernelForm;

// The first line that `pattern` is in, or "".
std::string first_line(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, wanted)) return line;
  }
  return "";
}

// Approximations, flushed subnormals, sums of floats in any order.
std::string forbidden_in_ptx(const std::string& ptx) {
  return first_line(ptx,
                    R"(\.approx|\.ftz|\b(atom|red)\.[\w.:]*\.(f16|f16x2|bf16|bf16x2|f32|f64))");
}

std::string forbidden_in_sass(const std::string& sass) {
  return first_line(sass, R"(\b(ATOM|ATOMG|ATOMS|RED|REDG)\.[\w.]*(F16|BF16|F32|F64))");
}

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// The text whose fused operations are written as another instruction of the same meaning: those
// that are left in PTX were made by the compiler.
std::string with_own_fma(std::string text) {
  const std::pair<std::string, std::string> names[] = {{"__fmaf_rn(a, b, c)", "own_fma(a, b, c)"},
                                                       {"__fma_rn(a, b, c)", "own_fma(a, b, c)"},
                                                       {"fma.rn.sat.f32", "mad.rn.sat.f32"}};
  for (const auto& [from, to] : names) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
  }
  return R"(
static __device__ __forceinline__ float own_fma(float a, float b, float c) {
  float y;
  asm("mad.rn.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
  return y;
}
static __device__ __forceinline__ double own_fma(double a, double b, double c) {
  double y;
  asm("mad.rn.f64 %0, %1, %2, %3;" : "=d"(y) : "d"(a), "d"(b), "d"(c));
  return y;
}
)" + text;
}

class CudaScan : public testing::Test {
 protected:
  void SetUp() override {
    auto nvrtc = cuda::Nvrtc::load();
    if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
    nvrtc_ = *nvrtc;
  }
  std::string ptx_of(const std::string& text) {
    auto ptx = nvrtc_->ptx(text, "sm_90a");
    EXPECT_TRUE(ptx.ok()) << ptx.status().to_string();
    return ptx.ok() ? *ptx : "";
  }
  std::shared_ptr<const cuda::Nvrtc> nvrtc_;
};

// A case of every op in the form that is taken for it.
TEST_F(CudaScan, PtxHasTheOperationsOfTheTextAndNoOthers) {
  auto runs = interpret_cases({.folder = PYC_SOURCE_DIR "/tests/ops", .per_op = 1});
  ASSERT_TRUE(runs.ok()) << runs.status().to_string();
  auto kernels = KernelSet::make(*runs, KernelForm::kAny, 64);
  ASSERT_TRUE(kernels.ok()) << kernels.status().to_string();
  int fused = 0;
  for (size_t unit = 0; unit < kernels->unit_count(); ++unit) {
    const std::string ptx = ptx_of(with_own_fma(kernels->unit_source(unit)));
    EXPECT_EQ(forbidden_in_ptx(ptx), "");
    EXPECT_EQ(first_line(ptx, "\\bfma\\."), "");
    fused += count_of(ptx, "mad.rn");
  }
  EXPECT_GT(fused, 0);
}

TEST_F(CudaScan, NoSumOfFloatsIsLeftToChance) {
  auto runs = interpret_cases({.folder = PYC_SOURCE_DIR "/tests/ops", .per_op = 1});
  ASSERT_TRUE(runs.ok()) << runs.status().to_string();
  auto kernels = KernelSet::make(*runs, KernelForm::kAny, 64);
  ASSERT_TRUE(kernels.ok()) << kernels.status().to_string();
  ASSERT_TRUE(kernels->compile(*nvrtc_, "sm_90a", 1).ok());
  for (const std::string& image : kernels->images()) {
    const auto code = cuda::disassembled(image);
    if (!code.ok()) GTEST_SKIP() << "NOT RUN: " << code.status().message();
    EXPECT_EQ(forbidden_in_sass(*code), "");
  }
}

TEST_F(CudaScan, PlantedInstructionsAreFound) {
  const auto kernel = [](const std::string& body) {
    return "extern \"C\" __global__ void k(float* x, double* d) {" + body + "}";
  };
  EXPECT_NE(forbidden_in_ptx(ptx_of(kernel("atomicAdd(x, 1.0f);"))), "");
  EXPECT_NE(forbidden_in_ptx(ptx_of(kernel("d[0] = atomicAdd(d, 1.0);"))), "");
  EXPECT_NE(forbidden_in_ptx(ptx_of(kernel("x[0] = __expf(x[1]);"))), "");
  EXPECT_NE(forbidden_in_ptx(ptx_of(kernel("x[0] = __fdividef(x[1], x[2]);"))), "");
  EXPECT_EQ(forbidden_in_ptx(ptx_of(kernel("atomicMin((int*)x, 1);"))), "");
  EXPECT_EQ(count_of(ptx_of(kernel("x[0] = x[1] * x[2] + x[3];")), "fma.rn"), 0);
  const auto image = nvrtc_->cubin(kernel("atomicAdd(x, 1.0f);"), "sm_90a");
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  const auto code = cuda::disassembled(*image);
  if (!code.ok()) GTEST_SKIP() << "NOT RUN: " << code.status().message();
  EXPECT_NE(forbidden_in_sass(*code), "");
}

TEST(CudaDisassembled, BytesThatAreNoCodeAreRefused) {
  EXPECT_EQ(cuda::disassembled("no cubin").status().code(), Code::kUnsupported);
}

// Blocks of a row joined from the last to the first: a sum that is as good, in another order.
TEST(CudaPlanted, AKernelOfAnotherOrderHasOtherBits) {
  auto nvrtc = cuda::Nvrtc::load(kFakeNvrtc);
  auto driver = cuda::Driver::load(kFakeDriver);
  ASSERT_TRUE(nvrtc.ok() && driver.ok());
  auto device = cuda::Device::open(*driver);
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  auto run = interpret_graph("sum",
                             "graph @g(%x: f32[4,5000]) -> (%y) {\n  %s = reduce_sum(%x) "
                             "{axes=[1], keepdims=true}\n  %y = mul(%x, %s)\n}\n");
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  const std::vector<CaseRun> runs = {std::move(*run)};
  for (const bool planted : {false, true}) {
    const auto texts_of = [&](const lower::Group& group,
                              const std::string& symbol) -> Result<std::vector<cuda::KernelText>> {
      PYC_ASSIGN(cuda::KernelText text,
                 cuda::kernel_text(group.kernel, symbol, cuda::cuda_dialect()));
      const std::string forward = "for (i32 w = 0; w < 5; w += 1)";
      const size_t at = text.text.find(forward);
      if (at == std::string::npos) return Status(Code::kInternal, "no blocks are joined");
      if (planted) text.text.replace(at, forward.size(), "for (i32 w = 4; w >= 0; w -= 1)");
      return std::vector<cuda::KernelText>{std::move(text)};
    };
    auto kernels = KernelSet::make(runs, texts_of, 8);
    ASSERT_TRUE(kernels.ok()) << kernels.status().to_string();
    ASSERT_TRUE(kernels->compile(**nvrtc, "sm_90a", 1).ok());
    auto runner = CaseRunner::make(*device, *kernels);
    ASSERT_TRUE(runner.ok()) << runner.status().to_string();
    const auto found = runner->run(runs[0]);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->empty(), !planted) << *found;
  }
}

}  // namespace
}  // namespace pyc::test
