/* A policy of fusion: what several nodes read, and every large result, is stored in a group of its
 * own, so that it can be looked at after its step. */

#include "pyc/policy.h"

static const int64_t kLarge = 64 * 1024;

static int32_t keep_apart(void* state, const pyc_policy_value* value) {
  (void)state;
  return value->readers > 1 || value->bytes >= kLarge;
}

static const pyc_policy kPolicy = {.version = PYC_POLICY_VERSION,
                                   .struct_size = sizeof(pyc_policy),
                                   .name = "store shared values",
                                   .keep_apart = keep_apart};

const pyc_policy* pyc_policy_entry(void);
const pyc_policy* pyc_policy_entry(void) { return &kPolicy; }
