/* Traces: what compiles and runs did, when, and on which thread, for Perfetto (ui.perfetto.dev) and
 * what else reads the Trace Event Format. */
#ifndef PYC_TRACE_H_
#define PYC_TRACE_H_

#include "pyc/common.h"
#include "pyc/compile_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any number of threads may write to one at once. */
typedef struct pyc_trace pyc_trace;
PYC_API pyc_status pyc_trace_create(pyc_trace** trace, pyc_error** error);
/* Models that were compiled with it live on; what they record is lost with the last of them. */
PYC_API void pyc_trace_destroy(pyc_trace* trace);

/* What is compiled with the options from now on is recorded, and so are the runs of the models it
 * becomes. NULL: nothing is. No option by name, since it decides nothing. */
PYC_API pyc_status pyc_compile_options_trace(pyc_compile_options* options, pyc_trace* trace,
                                             pyc_error** error);
/* From here on nothing is recorded, also of models that were compiled with it. */
PYC_API pyc_status pyc_trace_stop(pyc_trace* trace, pyc_error** error);
/* Of runs that are short beside what their records cost some are recorded and the others passed
 * over, so that a trace costs less than 2 % of the time of runs; the first 32 runs of a model
 * always are. From here on every run is recorded, whatever that costs. */
PYC_API pyc_status pyc_trace_every_run(pyc_trace* trace, pyc_error** error);
/* How many runs were recorded so far, and how many passed over. */
PYC_API pyc_status pyc_trace_runs(const pyc_trace* trace, int64_t* recorded, int64_t* passed_over,
                                  pyc_error** error);
/* What was recorded as one JSON document (docs/trace.md). */
PYC_API pyc_status pyc_trace_json(const pyc_trace* trace, char** json, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
