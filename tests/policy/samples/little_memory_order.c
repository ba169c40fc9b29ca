/* A policy of scheduling: of the steps that can run, the one after which the fewest bytes are live.
 */

#include <stdlib.h>

#include "pyc/policy.h"

typedef struct {
  const pyc_policy_step* steps;
  size_t count;
  char* done;
  size_t* readers_left; /* per step, of its results */
} schedule;

static int can_run(const schedule* s, size_t i) {
  for (size_t k = 0; k < s->steps[i].waits_for_count; ++k) {
    if (!s->done[s->steps[i].waits_for[k]]) return 0;
  }
  return !s->done[i];
}

/* What running the step adds to the bytes that are live, negative when it frees more. */
static int64_t added_bytes(const schedule* s, size_t i) {
  int64_t bytes = s->steps[i].written_bytes;
  for (size_t k = 0; k < s->steps[i].waits_for_count; ++k) {
    const uint32_t before = s->steps[i].waits_for[k];
    if (s->readers_left[before] == 1) bytes -= s->steps[before].written_bytes;
  }
  return bytes;
}

static void run(schedule* s, size_t i) {
  s->done[i] = 1;
  for (size_t k = 0; k < s->steps[i].waits_for_count; ++k) {
    --s->readers_left[s->steps[i].waits_for[k]];
  }
}

static int32_t order_steps(void* state, const pyc_policy_step* steps, size_t count,
                           uint32_t* order) {
  (void)state;
  schedule s = {steps, count, calloc(count, 1), calloc(count, sizeof(size_t))};
  const int has_memory = s.done != NULL && s.readers_left != NULL;
  for (size_t i = 0; has_memory && i < count; ++i) {
    for (size_t k = 0; k < steps[i].waits_for_count; ++k) ++s.readers_left[steps[i].waits_for[k]];
  }
  for (size_t placed = 0; has_memory && placed < count; ++placed) {
    size_t best = count;
    for (size_t i = 0; i < count; ++i) {
      if (!can_run(&s, i)) continue;
      if (best == count || added_bytes(&s, i) < added_bytes(&s, best)) best = i;
    }
    run(&s, best);
    order[placed] = (uint32_t)best;
  }
  free(s.done);
  free(s.readers_left);
  return has_memory;
}

static const pyc_policy kPolicy = {.version = PYC_POLICY_VERSION,
                                   .struct_size = sizeof(pyc_policy),
                                   .name = "little memory order",
                                   .order_steps = order_steps};

const pyc_policy* pyc_policy_entry(void);
const pyc_policy* pyc_policy_entry(void) { return &kPolicy; }
