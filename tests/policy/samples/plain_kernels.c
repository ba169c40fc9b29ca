/* A policy of kernels and budgets: generic loops unless they are estimated to take more than twice
 * as long, since they need no packed weights; and at most a gigabyte of memory. */

#include <string.h>

#include "pyc/policy.h"

static const int64_t kMostBytes = (int64_t)1 << 30;

static int is_generic(const pyc_policy_candidate* c) {
  return strncmp(c->name, "loop_generic", strlen("loop_generic")) == 0;
}

static int32_t choose_kernel(void* state, const char* group, const pyc_policy_candidate* candidates,
                             size_t count) {
  (void)state;
  (void)group;
  int32_t best = -1;
  for (size_t i = 0; i < count; ++i) {
    if (candidates[i].rejected[0] != '\0') continue;
    if (best < 0 || candidates[i].cost_ns < candidates[best].cost_ns) best = (int32_t)i;
  }
  if (best < 0) return best;
  for (size_t i = 0; i < count; ++i) {
    if (candidates[i].rejected[0] != '\0' || !is_generic(&candidates[i])) continue;
    if (candidates[i].cost_ns <= 2.0 * candidates[best].cost_ns) return (int32_t)i;
  }
  return best;
}

static int64_t memory_budget(void* state, int64_t asked) {
  (void)state;
  return asked != 0 && asked < kMostBytes ? asked : kMostBytes;
}

static const pyc_policy kPolicy = {.version = PYC_POLICY_VERSION,
                                   .struct_size = sizeof(pyc_policy),
                                   .name = "plain kernels",
                                   .choose_kernel = choose_kernel,
                                   .memory_budget = memory_budget};

const pyc_policy* pyc_policy_entry(void);
const pyc_policy* pyc_policy_entry(void) { return &kPolicy; }
