/* Policies: shared libraries that make some of the compiler's choices. The compile option `policy`
 * names the library, which exports
 *
 *   const pyc_policy* pyc_policy_entry(void);
 *
 * A policy is asked about a graph as a whole, stage after stage, and sees plain facts. It may
 * change speed and memory, never bits: what it answers is checked by the same verifiers as the
 * compiler's own choices, and nonsense refuses the compile, naming the policy. What it answers has
 * to follow from what it is asked alone: nothing that an earlier call left behind, no clock, no
 * chance.
 *
 * A library runs in the process that compiles and can do all that it can, crash included. With the
 * option `policy_isolated` it runs in a child process, which is ended when it takes too long; each
 * stage then has a child of its own. */
#ifndef PYC_POLICY_H_
#define PYC_POLICY_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of these declarations; a library of another one is refused. */
#define PYC_POLICY_VERSION 1

/* A value that some node of the graph computes. */
typedef struct pyc_policy_value {
  const char* name;
  const char* op; /* that computes it */
  int64_t bytes;
  int64_t readers; /* nodes; 0 for some outputs */
} pyc_policy_value;

/* A kernel for a group of nodes. */
typedef struct pyc_policy_candidate {
  const char* name;
  const char* rejected; /* why it cannot be chosen; "" when it can */
  double cost_ns;       /* estimated, of those that can */
} pyc_policy_candidate;

/* A step of the program: the kernel of one group. */
typedef struct pyc_policy_step {
  const char* group;
  const uint32_t* waits_for; /* steps whose results it reads, ascending */
  size_t waits_for_count;
  int64_t written_bytes; /* of its results */
  double cost_ns;
} pyc_policy_step;

/* Fusion: not 0 when the value is to be stored in memory, in a group that begins with it; 0: the
 * compiler decides. */
typedef int32_t pyc_policy_keep_apart(void* state, const pyc_policy_value* value);
/* Kernels: the number of a candidate that is not rejected, or -1: the compiler decides. */
typedef int32_t pyc_policy_choose_kernel(void* state, const char* group,
                                         const pyc_policy_candidate* candidates, size_t count);
/* Scheduling: not 0 when `order`, room for `count` numbers, became the order in which the steps
 * run, each once and behind those it waits for; 0: the compiler decides. Models that keep state are
 * not asked about. */
typedef int32_t pyc_policy_order_steps(void* state, const pyc_policy_step* steps, size_t count,
                                       uint32_t* order);
/* Budgets: the bytes all memory of a run may take, no more than `asked`, the option memory_budget,
 * when that is not 0; 0: as asked. */
typedef int64_t pyc_policy_memory_budget(void* state, int64_t asked);

/* Any callback may be NULL: the compiler decides. `state` is handed back as it is. */
typedef struct pyc_policy {
  uint32_t version;   /* PYC_POLICY_VERSION */
  size_t struct_size; /* sizeof(pyc_policy) */
  const char* name;   /* 1 to 64 characters from ' ' to '~', for the log */
  void* state;
  pyc_policy_keep_apart* keep_apart;
  pyc_policy_choose_kernel* choose_kernel;
  pyc_policy_order_steps* order_steps;
  pyc_policy_memory_budget* memory_budget;
} pyc_policy;

typedef const pyc_policy* (*pyc_policy_entry_function)(void);

#ifdef __cplusplus
}
#endif

#endif
