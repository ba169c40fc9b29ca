// Op cases in the forms that their size alone would not give them.

#include <gtest/gtest.h>

#include "cuda/device_runs.h"
#include "cuda/fake_driver.h"

namespace pyc::test {
namespace {

class CudaForm : public testing::TestWithParam<cuda::KernelForm> {};

TEST_P(CudaForm, OpCases) {
  const auto nvrtc = cuda::Nvrtc::load(kFakeNvrtc);
  const auto driver = cuda::Driver::load(kFakeDriver);
  ASSERT_TRUE(nvrtc.ok() && driver.ok());
  const auto device = cuda::Device::open(*driver);
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  const auto runs = interpret_cases({.folder = PYC_SOURCE_DIR "/tests/ops"});
  ASSERT_TRUE(runs.ok()) << runs.status().to_string();
  auto kernels = KernelSet::make(*runs, GetParam(), 200);
  ASSERT_TRUE(kernels.ok()) << kernels.status().to_string();
  const Status compiled = kernels->compile(**nvrtc, "sm_90a", 2);
  ASSERT_TRUE(compiled.ok()) << compiled.to_string();
  auto runner = CaseRunner::make(*device, *kernels);
  ASSERT_TRUE(runner.ok()) << runner.status().to_string();
  for (const CaseRun& run : *runs) {
    const auto found = runner->run(run);
    ASSERT_TRUE(found.ok()) << run.name << ": " << found.status().to_string();
    EXPECT_EQ(*found, "") << run.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaForm,
                         testing::Values(cuda::KernelForm::kTeam, cuda::KernelForm::kSerial));

}  // namespace
}  // namespace pyc::test
