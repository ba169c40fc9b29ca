// What bench/results/memory_plan.md says of the graphs that are committed or drawn.

#include "arenas.h"

namespace pyc::plan {
namespace {

TEST(PlanSuite, ArenasOfAllGraphsReachTheirLowerBound) { expect_arenas_at_bound(1); }

}  // namespace
}  // namespace pyc::plan
