/* ONNX conformance cases: folders with model.onnx and test_data_set_*. */
#ifndef PYC_CONFORMANCE_H_
#define PYC_CONFORMANCE_H_

#include "pyc/compiler_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How near an output must be: |found - expected| <= atol + rtol * |expected|, or, with a scale over
 * 0, <= scale * the largest expected magnitude. For bf16 rtol is at least 2^-6, two steps. */
typedef struct pyc_tolerance {
  size_t struct_size;
  double rtol;
  double atol;
  double scale;
} pyc_tolerance;

/* Runs one case and compares. `json` has verdict (passed, failed, refused), reason, detail and the
 * counts that docs/cli.md names. Refused models are a verdict, not an error. */
PYC_API pyc_status pyc_conformance_case(const char* folder, const pyc_compile_options* options,
                                        const pyc_tolerance* tolerance, char** json,
                                        pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
