/* The rewrites of a graph that compiling starts with. They give the canonical graph, which decides
 * every bit. */
#ifndef PYC_PASS_MANAGER_H_
#define PYC_PASS_MANAGER_H_

#include "pyc/common.h"
#include "pyc/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pyc_pass_info {
  size_t struct_size;
  const char* name;
  int32_t value_changing; /* 1: may change bits of results */
  int32_t reserved;
} pyc_pass_info;
/* The passes in the order compiling runs them. */
PYC_API size_t pyc_pass_count(void);
PYC_API pyc_status pyc_pass(size_t index, pyc_pass_info* info, pyc_error** error);

/* Verifies the graph and runs the named passes on a copy, each result verified; `names` NULL with
 * `count` 0 runs all of them. Names must stand in the order of the passes, which is fixed; those
 * that run in turn until nothing changes (canonicalize … cse) may stand in any. */
PYC_API pyc_status pyc_run_passes(const pyc_graph* graph, const char* const* names, size_t count,
                                  pyc_graph** result, pyc_error** error);

/* The same, and what each pass did as one JSON document (docs/cli.md: pyc.pass_report.v1).
 * `result` may be NULL. */
PYC_API pyc_status pyc_report_passes(const pyc_graph* graph, const char* const* names, size_t count,
                                     pyc_graph** result, char** json, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
