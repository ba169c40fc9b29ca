/* What a compile would come to, without making code and without a run. */
#ifndef PYC_PREDICT_H_
#define PYC_PREDICT_H_

#include "pyc/compiler_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pyc_prediction {
  size_t struct_size;
  int64_t peak_bytes;       /* as pyc_memory_report has it: exact */
  int64_t arena_bytes;      /* as there */
  int64_t steps;            /* of a run, each a group of nodes or a copy */
  int64_t recomputed_steps; /* of `steps`: run again so that the memory budget is kept */
  double run_ns;            /* one run, by the costs of its kernels; -1: the device has none */
  int64_t copied_bytes;     /* in a run, as pyc_run_stats has it */
} pyc_prediction;

/* Refuses as pyc_compile does, but for what making code refuses. `smallest` not 0: for the smallest
 * memory budget that works, whatever the option memory_budget says; it is then peak_bytes. */
PYC_API pyc_status pyc_predict(const pyc_graph* graph, const pyc_compile_options* options,
                               int32_t smallest, pyc_prediction* prediction, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
