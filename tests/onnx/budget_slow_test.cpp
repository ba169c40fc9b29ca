// All drawn open models within their budgets, on both devices. scripts/budgets logs it.

#include <cstdio>

#include "onnx/budget_models.h"

namespace pyc::onnx::test {
namespace {

TEST(BudgetOfAll, IsKeptToTheByteOrRefused) {
  for (const char* device : {"reference", "cpu"}) {
    const Tally all = run_budgets(device, 0, 1);
    EXPECT_EQ(all.models, kBudgetModels);
    EXPECT_EQ(all.kept + all.refused, 3 * kBudgetModels);
    EXPECT_GT(all.refused, 20);
    std::printf("device=%s models=%lld kept=%lld refused=%lld overruns=%lld\n", device,
                static_cast<long long>(all.models), static_cast<long long>(all.kept),
                static_cast<long long>(all.refused), static_cast<long long>(all.overruns));
  }
}

}  // namespace
}  // namespace pyc::onnx::test
