// What a run does besides its kernels. Its time is measured by bench/gateway.cpp.

#include "base/aligned_buffer.h"
#include "capi/calls.h"

namespace pyc::test {
namespace {

TEST(Gateway, RunsAllocateNothing) {
  CompileOptions options;
  options.set("threads", 1);
  Model model(Graph::parse("graph @tiny(%x: f32[1]) -> (%y) {\n  %y = relu(%x)\n}\n"), options);
  const Tensor x = Tensor::random(PYC_DTYPE_F32, {1}, 1);
  const Tensor y(PYC_DTYPE_F32, {1});
  const pyc_tensor_view in = x.view();
  const pyc_tensor_view out = y.view();
  pyc_run_model(model.get(), &in, 1, &out, 1, nullptr, nullptr);
  const uint64_t allocations = AlignedBuffer::allocation_count();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(pyc_run_model(model.get(), &in, 1, &out, 1, nullptr, nullptr), PYC_STATUS_OK);
  }
  EXPECT_EQ(AlignedBuffer::allocation_count(), allocations);
}

}  // namespace
}  // namespace pyc::test
