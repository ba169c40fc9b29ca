#include "arenas.h"

namespace pyc::plan {
namespace {

TEST(PlanSuite, ArenasOfEveryTenthGraphReachTheirLowerBound) { expect_arenas_at_bound(10); }

}  // namespace
}  // namespace pyc::plan
