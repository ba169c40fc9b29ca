// A case that compares nothing, or breaks PyC, must not look well.

#include "tooling/conformance.h"

#include <filesystem>
#include <fstream>

#include "onnx/run_model.h"
#include "support/temp_folder.h"

namespace pyc::onnx::test {
namespace {

void write(const std::string& path, const Bytes& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// y = Relu(x) with one data set: its input, and where asked its output.
tooling::CaseResult run_relu(bool with_set, bool with_input, const std::vector<float>& expected) {
  const TempFolder folder;
  write(folder.file("model.onnx"), model({.inputs = {value("x", kF32, {2})},
                                          .outputs = {value("y", kF32, {2})},
                                          .nodes = {node("Relu", {"x"}, {"y"})}}));
  if (with_set) std::filesystem::create_directories(folder.file("test_data_set_0"));
  if (with_input) write(folder.file("test_data_set_0/input_0.pb"), floats("x", {2}, {-1, 2}));
  if (!expected.empty()) {
    write(folder.file("test_data_set_0/output_0.pb"), floats("y", {2}, expected));
  }
  return tooling::run_case(folder.path(), {.device = "reference"}, {});
}

TEST(Conformance, ComparesWhatIsThere) {
  const tooling::CaseResult good = run_relu(true, true, {0, 2});
  EXPECT_EQ(good.verdict, tooling::Verdict::kPassed) << good.detail;
  EXPECT_EQ(good.compared, 1);
  const tooling::CaseResult bad = run_relu(true, true, {0, 3});
  EXPECT_EQ(bad.verdict, tooling::Verdict::kFailed);
  EXPECT_EQ(bad.reason, "mismatch");
}

TEST(Conformance, ACaseThatComparesNothingFails) {
  for (const tooling::CaseResult& r : {run_relu(false, false, {}), run_relu(true, true, {})}) {
    EXPECT_EQ(r.verdict, tooling::Verdict::kFailed);
    EXPECT_EQ(r.reason, "nothing_compared");
    EXPECT_EQ(r.compared, 0);
  }
}

TEST(Conformance, ACaseWithoutItsInputsFails) {
  const tooling::CaseResult r = run_relu(true, false, {0, 2});
  EXPECT_EQ(r.verdict, tooling::Verdict::kFailed);
  EXPECT_EQ(r.reason, "not_found");
}

TEST(Conformance, WhatBreaksInsideIsAFailureAndNoRefusal) {
  using tooling::Verdict;
  EXPECT_EQ(tooling::verdict_of(Code::kInternal), Verdict::kFailed);
  EXPECT_EQ(tooling::verdict_of(Code::kCompileFailed), Verdict::kFailed);
  EXPECT_EQ(tooling::verdict_of(Code::kRuntimeFailed), Verdict::kFailed);
  EXPECT_EQ(tooling::verdict_of(Code::kUnsupported), Verdict::kRefused);
  EXPECT_EQ(tooling::verdict_of(Code::kUnknownOp), Verdict::kRefused);
}

}  // namespace
}  // namespace pyc::onnx::test
