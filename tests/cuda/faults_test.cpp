// A fault at every call of the driver, while a model is made and while it runs: a status with its
// cause, the model usable or refusing with that cause, nothing left behind.

#include "cuda/models_on_fake.h"
#include "driver/devices.h"

namespace pyc::test {
namespace {

constexpr const char* kSmall = R"(graph @m(%x: f32[4,8]) -> (%y) {
  %w = const f32[8,8] random(seed=1, lo=-0.5, hi=0.5)
  %a = matmul(%x, %w)
  %y = softmax(%a) {axis=1}
}
)";

class CudaFaults : public testing::TestWithParam<int> {
 protected:
  Code expected_code() const {
    return GetParam() == cuda::kErrorOutOfMemory ? Code::kOutOfMemory : Code::kRuntimeFailed;
  }
  FakesChosen fakes_;
  FakeDriver fake_;
};

TEST_P(CudaFaults, WhileAModelIsMade) {
  ASSERT_TRUE(driver::check_runs("cuda").ok());  // loads the driver, once for the process
  const int64_t alive = fake_.alive();
  const int64_t before = fake_.calls();
  int64_t calls = 0;
  {
    const auto made = compile_text(kSmall, on_device("cuda"));
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    calls = fake_.calls() - before;  // without those that give it back
  }
  ASSERT_GT(calls, 20);
  for (int64_t n = 0; n < calls; ++n) {
    fake_.fail(n, GetParam());
    const auto model = compile_text(kSmall, on_device("cuda"));
    fake_.fail(-1, 0);
    const std::string where = "call " + std::to_string(n) + ", " + fake_.failed();
    ASSERT_FALSE(model.ok()) << where;
    EXPECT_EQ(model.status().code(), expected_code()) << where << model.status().to_string();
    EXPECT_NE(model.status().message().find(fake_.failed()), std::string::npos)
        << where << ": " << model.status().to_string();
    EXPECT_EQ(fake_.alive(), alive) << where;
  }
  EXPECT_TRUE(compile_text(kSmall, on_device("cuda")).ok()) << "nothing is left of the faults";
}

TEST_P(CudaFaults, WhileAModelRuns) {
  const bool loses = cuda::loses_context(GetParam());
  const int64_t alive = fake_.alive();
  TensorBytes expected;
  int64_t calls = 0;
  {
    const auto model = compile_text(kSmall, on_device("cuda"));
    const int64_t before = fake_.calls();
    ASSERT_TRUE(run_on(**model, ramp_inputs((*model)->inputs()), expected).ok());
    calls = fake_.calls() - before;
  }
  ASSERT_EQ(calls, 4);
  for (int64_t n = 0; n < calls; ++n) {
    auto model = compile_text(kSmall, on_device("cuda"));
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    const TensorBytes inputs = ramp_inputs((*model)->inputs());
    TensorBytes found;
    fake_.fail(n, GetParam());
    const Status status = run_on(**model, inputs, found);
    fake_.fail(-1, 0);
    const std::string call = fake_.failed();
    EXPECT_EQ(status.code(), expected_code()) << call;
    EXPECT_NE(status.message().find(call), std::string::npos) << status.to_string();
    const Status next = run_on(**model, inputs, found);
    if (loses) {
      EXPECT_EQ(next.code(), Code::kRuntimeFailed) << call;
      EXPECT_NE(next.message().find("lost earlier"), std::string::npos) << next.to_string();
      EXPECT_NE(next.message().find(call), std::string::npos) << next.to_string();
      EXPECT_FALSE(compile_text(kSmall, on_device("cuda")).ok()) << "as long as it is held";
    } else {
      EXPECT_TRUE(next.ok()) << call << ": " << next.to_string();
      EXPECT_EQ(found, expected) << call;
    }
    model->reset();
    EXPECT_EQ(fake_.alive(), alive) << call;
  }
  EXPECT_TRUE(compile_text(kSmall, on_device("cuda")).ok());
}

INSTANTIATE_TEST_SUITE_P(All, CudaFaults,
                         testing::Values(int{cuda::kErrorOutOfMemory},
                                         int{cuda::kErrorIllegalAddress},
                                         int{cuda::kErrorLaunchOutOfResources}));

TEST(CudaAbsent, IsRefusedWithTheTrueCause) {
  const FakesChosen fakes;
  setenv("PYC_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  const auto model = compile_text(kSmall, on_device("cuda"));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kUnsupported);
  EXPECT_NE(model.status().message().find("no NVIDIA driver: /nowhere"), std::string::npos)
      << model.status().to_string();
}

TEST(CudaAbsent, ACompilerThatIsNotThereIsNamed) {
  const FakesChosen fakes;
  setenv("PYC_NVRTC", "/nowhere/libnvrtc.so.13", 1);
  const auto model = compile_text(kSmall, on_device("cuda"));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kUnsupported);
  EXPECT_NE(model.status().message().find("NVRTC cannot be loaded: /nowhere"), std::string::npos)
      << model.status().to_string();
}

}  // namespace
}  // namespace pyc::test
