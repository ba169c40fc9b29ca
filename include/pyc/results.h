/* What a run gave: values whose shapes and kinds are only known afterwards. */
#ifndef PYC_RESULTS_H_
#define PYC_RESULTS_H_

#include "pyc/compiler_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The outputs of pyc_run_model_dynamic, in the order of pyc_model_output. */
PYC_API void pyc_results_destroy(pyc_results* results);
PYC_API size_t pyc_results_count(const pyc_results* results);

/* One output, or an item of a sequence; it lives as long as its results. */
typedef struct pyc_result pyc_result;
PYC_API pyc_status pyc_results_get(const pyc_results* results, size_t index,
                                   const pyc_result** result, pyc_error** error);

/* PYC_TYPE_TENSOR, _STRINGS, _SEQUENCE or _NOTHING; PYC_TYPE_UNKNOWN for NULL. */
PYC_API int32_t pyc_result_type(const pyc_result* result);
/* "f32[2,3]", "string[4]", "sequence of 3", "nothing"; "" for NULL. */
PYC_API const char* pyc_result_type_text(const pyc_result* result);
/* Dims of a tensor of numbers or strings. */
PYC_API pyc_status pyc_result_shape(const pyc_result* result, const int64_t** shape, int64_t* rank,
                                    pyc_error** error);
/* Of a tensor of numbers; the memory is not to be written to. */
PYC_API pyc_status pyc_result_tensor(const pyc_result* result, pyc_tensor_view* view,
                                     pyc_error** error);
/* The strings of a tensor of strings, or the items of a sequence; 0 for others. */
PYC_API size_t pyc_result_count(const pyc_result* result);
/* Its bytes, which may hold NULs; one NUL more stands behind them. */
PYC_API pyc_status pyc_result_string(const pyc_result* result, size_t index, const char** text,
                                     size_t* size, pyc_error** error);
PYC_API pyc_status pyc_result_item(const pyc_result* result, size_t index, const pyc_result** item,
                                   pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
