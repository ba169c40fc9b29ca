// The driver layer on the fake driver: what it does, and that a fault at any call is a status with
// its cause and leaves nothing behind.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/dialect.h"
#include "backends/cuda/nvrtc.h"
#include "cuda/fake_driver.h"

namespace pyc::test {
namespace {

using cuda::Device;
using cuda::DevicePtr;
using cuda::Driver;
using cuda::Module;
using cuda::Nvrtc;
using cuda::Stream;

// y[i] = x[i] + step, in blocks of 32 threads; it waits before it reads, behind or never.
constexpr std::string_view kWaitsFirst = "  pyc_wait_for_earlier();\n  const i32 v = x[i];\n";
constexpr std::string_view kWaitsLate = "  const i32 v = x[i];\n  pyc_wait_for_earlier();\n";
constexpr std::string_view kNeverWaits = "  const i32 v = x[i];\n";

std::string image_of_add(std::string_view read = kWaitsFirst) {
  const auto nvrtc = Nvrtc::load(kFakeNvrtc);
  EXPECT_TRUE(nvrtc.ok()) << nvrtc.status().to_string();
  const std::string text =
      std::string(cuda::cuda_dialect().header) + std::string(cuda::prelude()) +
      "PYC_KERNEL(add, 3, 32, 0, PYC_GLOBAL const i32* x, PYC_GLOBAL i32* y, u64 step) {\n"
      "  const i32 i = pyc_block() * 32 + pyc_thread();\n" +
      std::string(read) + "  y[i] = v + (i32)step;\n}\n";
  auto image = (*nvrtc)->cubin(text, "sm_90a");
  EXPECT_TRUE(image.ok()) << image.status().to_string();
  return image.ok() ? *image : "";
}

constexpr size_t kElements = 64;

// Everything there is, once: memory, a module, launches, capture, replay, events.
Status use_everything(const std::string& image, std::vector<int32_t>& result, float& ms) {
  PYC_ASSIGN(const auto driver, Driver::load(kFakeDriver));
  PYC_ASSIGN(const DevicePtr device, Device::open(driver));
  PYC_ASSIGN(Stream stream, Stream::create(device));
  PYC_ASSIGN(const auto x, device->allocate(kElements * 4));
  PYC_ASSIGN(const auto y, device->allocate(kElements * 4));
  PYC_ASSIGN(const Module module, Module::load(device, image));
  PYC_ASSIGN(const auto add, module.function("add"));
  std::vector<int32_t> from(kElements);
  std::iota(from.begin(), from.end(), 0);
  PYC_TRY(stream.copy_in(x.get(), std::as_bytes(std::span(from))));
  PYC_TRY(stream.fill_words(y.get(), 0, kElements));
  PYC_ASSIGN(const cuda::Event before, stream.record());
  const std::array<uint64_t, 3> first{x.get(), y.get(), 1};
  PYC_TRY(stream.launch(add, {2, 32}, first));
  // y = x + 1, then twice x = y, y = x + 1.
  PYC_TRY(stream.begin_capture());
  const Status noted = [&]() -> Status {
    PYC_TRY(stream.copy(x.get(), y.get(), kElements * 4));
    return stream.launch(add, {2, 32}, first);
  }();
  auto graph = stream.end_capture();
  PYC_TRY(noted);
  if (!graph.ok()) return graph.status();
  PYC_TRY(stream.launch(*graph));
  PYC_TRY(stream.launch(*graph));
  PYC_ASSIGN(const cuda::Event after, stream.record());
  result.resize(kElements);
  PYC_TRY(stream.copy_out(std::as_writable_bytes(std::span(result)), y.get()));
  PYC_TRY(stream.synchronize());
  PYC_ASSIGN(ms, elapsed_ms(before, after));
  return {};
}

TEST(CudaDriver, RunsCapturesAndReplays) {
  FakeDriver fake;
  std::vector<int32_t> result;
  float ms = 0;
  const int64_t launches = fake.launches();
  const Status status = use_everything(image_of_add(), result, ms);
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (size_t i = 0; i < kElements; ++i) ASSERT_EQ(result[i], static_cast<int32_t>(i) + 3);
  EXPECT_EQ(fake.launches() - launches, 3);
  EXPECT_GT(ms, 0.0F);
  EXPECT_EQ(fake.alive(), 0);
}

TEST(CudaDriver, AFaultAtAnyCallIsAStatusWithItsCause) {
  FakeDriver fake;
  const std::string image = image_of_add();
  std::vector<int32_t> result;
  float ms = 0;
  const int64_t before = fake.calls();
  ASSERT_TRUE(use_everything(image, result, ms).ok());
  const int64_t calls = fake.calls() - before;
  ASSERT_GT(calls, 20);
  for (int64_t n = 0; n < calls; ++n) {
    for (const int code : {cuda::kErrorOutOfMemory, cuda::kErrorIllegalAddress}) {
      fake.fail(n, code);
      const Status status = use_everything(image, result, ms);
      fake.fail(-1, 0);
      const std::string where = "call " + std::to_string(n) + ", " + fake.failed();
      ASSERT_FALSE(status.ok()) << where;
      EXPECT_EQ(status.code(),
                code == cuda::kErrorOutOfMemory ? Code::kOutOfMemory : Code::kRuntimeFailed)
          << where;
      EXPECT_NE(status.message().find(fake.failed()), std::string::npos)
          << where << ": " << status.to_string();
      EXPECT_EQ(fake.alive(), 0) << where;
    }
  }
  EXPECT_TRUE(use_everything(image, result, ms).ok()) << "nothing is left of the faults";
}

// x = 0 … 63 through a graph of y = x + 1, x = y + 1, y = x + 1.
Status run_chain(const std::string& image, std::vector<int32_t>& result) {
  PYC_ASSIGN(const auto driver, Driver::load(kFakeDriver));
  PYC_ASSIGN(const DevicePtr device, Device::open(driver));
  PYC_ASSIGN(Stream stream, Stream::create(device));
  PYC_ASSIGN(const auto x, device->allocate(kElements * 4));
  PYC_ASSIGN(const auto y, device->allocate(kElements * 4));
  PYC_ASSIGN(const Module module, Module::load(device, image));
  PYC_ASSIGN(const auto add, module.function("add"));
  PYC_ASSIGN(cuda::LaunchGraph graph, cuda::LaunchGraph::create(device));
  const std::array<uint64_t, 3> forth{x.get(), y.get(), 1};
  const std::array<uint64_t, 3> back{y.get(), x.get(), 1};
  for (const auto& parameters : {forth, back, forth}) {
    PYC_TRY(graph.add(add, {2, 32}, parameters));
  }
  PYC_TRY(graph.instantiate());
  std::vector<int32_t> from(kElements);
  std::iota(from.begin(), from.end(), 0);
  PYC_TRY(stream.copy_in(x.get(), std::as_bytes(std::span(from))));
  PYC_TRY(stream.launch(graph));
  result.resize(kElements);
  PYC_TRY(stream.copy_out(std::as_writable_bytes(std::span(result)), y.get()));
  return stream.synchronize();
}

TEST(CudaDriver, ALaunchThatReadsBeforeItsWaitHasOtherBits) {
  std::vector<int32_t> expected(kElements);
  std::iota(expected.begin(), expected.end(), 3);
  for (const std::string_view read : {kWaitsFirst, kWaitsLate, kNeverWaits}) {
    std::vector<int32_t> result;
    const Status status = run_chain(image_of_add(read), result);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(result == expected, read == kWaitsFirst) << read;
  }
}

TEST(CudaDriver, ResultsNobodyWaitedForAreNotThere) {
  const auto driver = Driver::load(kFakeDriver);
  const auto device = Device::open(*driver);
  auto stream = Stream::create(*device);
  const auto memory = (*device)->allocate(4);
  uint32_t word = 7;
  ASSERT_TRUE(stream->fill_words(memory->get(), 5, 1).ok());
  ASSERT_TRUE(stream->copy_out(std::as_writable_bytes(std::span(&word, 1)), memory->get()).ok());
  EXPECT_EQ(word, 7U);
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(word, 5U);
}

TEST(CudaDriver, CopiesOutsideOfAnAllocationAreRefused) {
  const auto driver = Driver::load(kFakeDriver);
  const auto device = Device::open(*driver);
  auto stream = Stream::create(*device);
  const auto memory = (*device)->allocate(8);
  std::array<std::byte, 9> bytes{};
  EXPECT_EQ(stream->copy_in(memory->get(), bytes).code(), Code::kRuntimeFailed);
}

TEST(CudaDriver, AMissingLibraryIsNamed) {
  const auto driver = Driver::load("/nowhere/libcuda.so.1");
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), Code::kUnsupported);
  EXPECT_NE(driver.status().message().find("/nowhere/libcuda.so.1"), std::string::npos)
      << driver.status().to_string();
}

TEST(CudaDriver, ALibraryWithoutTheEntryPointsIsTooOld) {
  const auto driver = Driver::load(kFakeNvrtc);
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), Code::kUnsupported);
  EXPECT_NE(driver.status().message().find("cuMemAlloc_v2"), std::string::npos)
      << driver.status().to_string();
}

TEST(CudaDriver, ADeviceThatIsNotThereIsUnsupported) {
  const auto driver = Driver::load(kFakeDriver);
  ASSERT_TRUE(driver.ok());
  const auto device = Device::open(*driver, 3);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.status().code(), Code::kUnsupported);
  EXPECT_NE(device.status().message().find("the driver has 1"), std::string::npos);
}

TEST(CudaDriver, SaysWhichResultsLoseTheContext) {
  EXPECT_TRUE(cuda::loses_context(cuda::kErrorIllegalAddress));
  EXPECT_TRUE(cuda::loses_context(cuda::kErrorLaunchFailed));
  EXPECT_FALSE(cuda::loses_context(cuda::kErrorOutOfMemory));
  EXPECT_FALSE(cuda::loses_context(cuda::kErrorLaunchOutOfResources));
  EXPECT_FALSE(cuda::loses_context(cuda::kSuccess));
}

}  // namespace
}  // namespace pyc::test
