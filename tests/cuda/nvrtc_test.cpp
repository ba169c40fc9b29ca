// Where NVRTC is looked for, and what its failures become. With NVRTC itself, where it is
// installed, generated kernels become cubins.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "backends/cuda/nvrtc.h"
#include "cuda/device_runs.h"
#include "cuda/fake_driver.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

// An environment variable for one scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    had_ = before != nullptr;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

size_t place_of(const std::vector<std::string>& places, const std::string& part) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].find(part) != std::string::npos) return i;
  }
  return places.size();
}

TEST(Nvrtc, ThePlacesStandInTheirOrder) {
  const Variable none("PYC_NVRTC", "");
  const Variable home("CUDA_HOME", "/opt/cuda-home");
  const Variable environment("VIRTUAL_ENV", "/nowhere");
  const auto places = cuda::nvrtc_places();
  const size_t loader = static_cast<size_t>(
      std::find(places.begin(), places.end(), "libnvrtc.so.13") - places.begin());
  ASSERT_LT(loader, places.size());
  EXPECT_GT(loader, 0U) << "beside the program comes first";
  EXPECT_NE(places.front().find(PYC_BINARY_DIR), std::string::npos) << places.front();
  const size_t toolkit = place_of(places, "/opt/cuda-home/lib64/");
  EXPECT_LT(loader, toolkit);
  EXPECT_LT(toolkit, place_of(places, "/usr/local/cuda/lib64/"));
}

TEST(Nvrtc, AVirtualEnvironmentComesLast) {
  const TempFolder folder;
  const std::string lib =
      folder.path() + "/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13";
  std::filesystem::create_directories(std::filesystem::path(lib).parent_path());
  const Variable none("PYC_NVRTC", "");
  const Variable environment("VIRTUAL_ENV", folder.path());
  const auto places = cuda::nvrtc_places();
  const size_t found = place_of(places, lib);
  ASSERT_LT(found, places.size());
  EXPECT_GT(found, place_of(places, "/usr/local/cuda/lib64/"));
}

TEST(Nvrtc, TheVariableAloneDecides) {
  const Variable given("PYC_NVRTC", "/nowhere/libnvrtc.so");
  EXPECT_EQ(cuda::nvrtc_places(), std::vector<std::string>{"/nowhere/libnvrtc.so"});
  const auto nvrtc = cuda::Nvrtc::load();
  ASSERT_FALSE(nvrtc.ok());
  EXPECT_EQ(nvrtc.status().code(), Code::kUnsupported);
  EXPECT_NE(nvrtc.status().message().find("/nowhere/libnvrtc.so"), std::string::npos);
}

TEST(Nvrtc, AnotherLibraryIsNone) {
  const auto nvrtc = cuda::Nvrtc::load(kFakeDriver);
  ASSERT_FALSE(nvrtc.ok());
  EXPECT_NE(nvrtc.status().message().find("not an NVRTC"), std::string::npos)
      << nvrtc.status().to_string();
}

TEST(Nvrtc, BadTextFailsWithTheCompilersLog) {
  const auto nvrtc = cuda::Nvrtc::load(kFakeNvrtc);
  ASSERT_TRUE(nvrtc.ok());
  const auto image = (*nvrtc)->cubin("this is no text", "sm_90a");
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.status().code(), Code::kCompileFailed);
  EXPECT_NE(image.status().message().find("error"), std::string::npos)
      << image.status().to_string();
}

// One op of each form; all of them are compiled by scripts/gpu-verify.
TEST(Nvrtc, KernelsBecomeCubinsForHopper) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
  for (const char* op : {"softmax", "cast", "top_k"}) {
    CaseChoice choice{.folder = PYC_SOURCE_DIR "/tests/ops", .only = op, .per_op = 2};
    auto runs = interpret_cases(choice);
    ASSERT_TRUE(runs.ok()) << runs.status().to_string();
    for (const auto form : {cuda::KernelForm::kAny, cuda::KernelForm::kTeam}) {
      auto kernels = KernelSet::make(*runs, form, 64);
      ASSERT_TRUE(kernels.ok()) << kernels.status().to_string();
      const Status status = kernels->compile(**nvrtc, "sm_90a", 1);
      EXPECT_TRUE(status.ok()) << op << ": " << status.to_string();
    }
  }
}

}  // namespace
}  // namespace pyc::test
