/* A report on a model: what the compiler made of it, what a run of it took, and why. */
#ifndef PYC_REPORT_H_
#define PYC_REPORT_H_

#include "pyc/compiler_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the caller knows; everything may be left out, and the report then says that it is not known.
 */
typedef struct pyc_report_facts {
  size_t struct_size;
  const char* title;      /* for people: the model's file, say */
  const int64_t* step_ns; /* of runs, one after the other, as pyc_profile_model gives them */
  size_t step_ns_count;   /* a multiple of pyc_model_step_count; 0: nothing was measured */
  double flops_per_ns;    /* what the machine reaches at best; 0: not probed */
  double bytes_per_ns;
} pyc_report_facts;

enum {
  PYC_REPORT_JSON = 0, /* the data: docs/report.md has its schema */
  PYC_REPORT_HTML = 1  /* one page that holds the data and needs no other file and no network */
};

/* `graph` is the one that the model was compiled from, whose stages are computed again;
 * PYC_STATUS_INVALID_ARGUMENT where it is another. NULL: the report has no graphs and no map of
 * memory, as for a model that is open or was compiled ahead of time. `facts` may be NULL. */
PYC_API pyc_status pyc_model_report(const pyc_model* model, const pyc_graph* graph,
                                    const pyc_report_facts* facts, int32_t format, char** text,
                                    pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
