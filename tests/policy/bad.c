/* Policies that must be refused: PLANTED says what is wrong with this one. */

#include <stdlib.h>

#include "pyc/policy.h"

enum planted {
  NO_SUCH_KERNEL,
  REJECTED_KERNEL,
  STEP_TWICE,
  STEP_BEYOND,
  BACKWARDS,
  LARGE_BUDGET,
  NEGATIVE_BUDGET,
  TINY_BUDGET,
  CRASH,
  CRASH_LATE,
  HANG,
  EXIT,
  OTHER_VERSION,
  SHORT_STRUCT,
  NO_NAME,
  ODD_NAME,
  NOTHING
};

static int32_t keep_apart(void* state, const pyc_policy_value* value) {
  (void)state;
  (void)value;
  if (PLANTED == CRASH) abort();
  if (PLANTED == EXIT) exit(0);
  volatile int on = PLANTED == HANG;
  while (on) {
  }
  return 0;
}

static int32_t choose_kernel(void* state, const char* group, const pyc_policy_candidate* candidates,
                             size_t count) {
  (void)state;
  (void)group;
  if (PLANTED == NO_SUCH_KERNEL) return (int32_t)count;
  for (size_t i = 0; PLANTED == REJECTED_KERNEL && i < count; ++i) {
    if (candidates[i].rejected[0] != '\0') return (int32_t)i;
  }
  return -1;
}

static int32_t order_steps(void* state, const pyc_policy_step* steps, size_t count,
                           uint32_t* order) {
  (void)state;
  (void)steps;
  for (size_t i = 0; i < count; ++i) {
    order[i] = (uint32_t)(PLANTED == BACKWARDS ? count - 1 - i : i);
  }
  if (PLANTED == STEP_TWICE) order[count - 1] = 0;
  if (PLANTED == STEP_BEYOND) order[0] = (uint32_t)count;
  volatile int* nowhere = NULL;
  if (PLANTED == CRASH_LATE) *nowhere = 1;
  return PLANTED == STEP_TWICE || PLANTED == STEP_BEYOND || PLANTED == BACKWARDS;
}

static int64_t memory_budget(void* state, int64_t asked) {
  (void)state;
  if (PLANTED == LARGE_BUDGET) return asked + 1;
  if (PLANTED == NEGATIVE_BUDGET) return -5;
  return PLANTED == TINY_BUDGET ? 1 : 0;
}

static const pyc_policy kPolicy = {.version = PYC_POLICY_VERSION + (PLANTED == OTHER_VERSION),
                                   .struct_size = PLANTED == SHORT_STRUCT ? 8 : sizeof(pyc_policy),
                                   .name = PLANTED == NO_NAME    ? ""
                                           : PLANTED == ODD_NAME ? "a\033[2J"
                                                                 : "planted",
                                   .keep_apart = keep_apart,
                                   .choose_kernel = choose_kernel,
                                   .order_steps = order_steps,
                                   .memory_budget = memory_budget};

const pyc_policy* pyc_policy_entry(void);
const pyc_policy* pyc_policy_entry(void) { return PLANTED == NOTHING ? NULL : &kPolicy; }
