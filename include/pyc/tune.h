/* Measuring a model's kernels on this machine, so that compiles choose by times in place of
 * estimates. What is found lies in the folder that compiled programs are kept in (the option
 * cache_dir, or PYC_CACHE_DIR): compiles with that folder use it from then on. Results never
 * change: only kernels with the same bits compete. */
#ifndef PYC_TUNE_H_
#define PYC_TUNE_H_

#include "pyc/compiler_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group of nodes whose kernels were measured. */
typedef struct pyc_tuned_group {
  size_t struct_size;
  int64_t done; /* groups so far, this one included */
  int64_t all;
  const char* group;
  const char* untuned; /* the kernel that estimates choose */
  const char* chosen;
  double untuned_ns; /* the fastest run of each; 0: its results were wrong */
  double chosen_ns;
  double predicted_ns; /* the estimate for the chosen one */
  double flops;        /* arithmetic of the group, roughly */
  int32_t known;       /* 1: it had been measured before */
  int32_t candidates;  /* that were measured */
} pyc_tuned_group;

typedef struct pyc_tune_report {
  size_t struct_size;
  int64_t groups;      /* with several kernels to choose from, equal ones once */
  int64_t measured;    /* of those: now */
  int64_t known;       /* measured before */
  int64_t left;        /* not measured: the time was over, or the caller ended it */
  int64_t changed;     /* another kernel than that of the estimates is faster */
  int64_t near_best;   /* the estimates' kernel takes at most 3 % more than the fastest */
  int64_t wrong;       /* kernels that were left out because their results were wrong */
  double flops_per_ns; /* the machine, with the options' threads */
  double bytes_per_ns;
  double step_ns; /* of a step that has nothing to do */
} pyc_tune_report;

/* Measures what the folder does not know yet; each group is kept when it is done, so that a call
 * that was ended, by whatever, is gone on with by the next. `budget_ms` > 0: after so long no
 * further group is begun. `after_group` may be NULL; it is called by this thread after each group,
 * and no further one is begun when it returns anything but 0. The machine should have nothing else
 * to do. */
PYC_API pyc_status pyc_tune(const pyc_graph* graph, const pyc_compile_options* options,
                            int64_t budget_ms,
                            int32_t (*after_group)(void* user, const pyc_tuned_group* group),
                            void* user, pyc_tune_report* report, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
