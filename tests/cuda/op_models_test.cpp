// Op cases as whole models on the device "cuda" over the fake driver, against the reference: equal
// bits, or the same refusal. Three cases of every op; under a sanitizer one case of every fourth
// op; with PYC_CUDA_ALL_CASES all of them.

#include <filesystem>

#include "base/sanitizers.h"
#include "cuda/models_on_fake.h"
#include "ops/case_graph.h"
#include "support/round.h"

namespace pyc::test {
namespace {

constexpr size_t kShards = 12;

struct OpCase {
  std::string op;
  Case c;
};

// The first so many of each op that compile; 0: all.
std::vector<OpCase> chosen_cases(size_t per_op) {
  std::vector<std::string> ops;
  for (const auto& entry : std::filesystem::directory_iterator(PYC_SOURCE_DIR "/tests/ops")) {
    if (entry.path().extension() == ".cases") ops.push_back(entry.path().stem().string());
  }
  std::sort(ops.begin(), ops.end());
  std::vector<OpCase> out;
  for (const std::string& op : ops) {
    size_t taken = 0;
    for (Case& c : read_cases(PYC_SOURCE_DIR "/tests/ops/" + op + ".cases")) {
      if (c.refusal && !c.refusal->at_run) continue;
      if (per_op > 0 && taken++ >= per_op) break;
      out.push_back({op, std::move(c)});
    }
  }
  return out;
}

struct CaseOutcome {
  Status status;
  TensorBytes outputs;
};

CaseOutcome run_case_on(const std::string& device, const Case& c) {
  CaseOutcome out;
  driver::CompileOptions options = on_device(device);
  options.matrix_unit = "sm90";
  auto model = compile_text(graph_text(c, false), options);
  if (!model.ok()) {
    out.status = model.status();
    return out;
  }
  TensorBytes inputs;
  for (Tensor& tensor : parse_tensors(c.inputs)) inputs.push_back(std::move(tensor.bytes));
  out.status = run_on(**model, std::move(inputs), out.outputs);
  return out;
}

class CudaOpModels : public testing::TestWithParam<size_t> {};

TEST_P(CudaOpModels, GiveTheBitsOfTheReference) {
  const FakesChosen fakes;
  const size_t per_op = std::getenv("PYC_CUDA_ALL_CASES") != nullptr ? 0 : kSanitized ? 1 : 3;
  const std::vector<OpCase> cases = chosen_cases(per_op);
  ASSERT_GT(cases.size(), per_op == 1 ? 170U : 500U);
  for (size_t i = GetParam(); i < cases.size(); i += kShards) {
    if (!has_its_turn(i / kShards, 4)) continue;
    SCOPED_TRACE(cases[i].op + ":" + cases[i].c.name);
    const CaseOutcome expected = run_case_on("reference", cases[i].c);
    const CaseOutcome found = run_case_on("cuda", cases[i].c);
    EXPECT_EQ(found.status.to_string(), expected.status.to_string());
    if (expected.status.ok()) {
      EXPECT_TRUE(found.outputs == expected.outputs) << "other bits";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaOpModels, testing::Range(size_t{0}, kShards));

}  // namespace
}  // namespace pyc::test
