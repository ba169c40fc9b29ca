/* Values of any kind: what a run gave, whose shapes and kinds are only known afterwards, and what a
 * run takes. */
#ifndef PYC_RESULTS_H_
#define PYC_RESULTS_H_

#include "pyc/compiler_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The outputs of pyc_run_model_dynamic and _values, in the order of pyc_model_output. */
PYC_API void pyc_results_destroy(pyc_results* results);
PYC_API size_t pyc_results_count(const pyc_results* results);

/* A value of any kind; it never changes. One that is handed out as const, an output or an item of a
 * sequence, lives as long as what it came from. One that is handed out through a pyc_result** is
 * the caller's, who destroys it, and lives on its own. */
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
/* Of a tensor of numbers; fills `view`, whose struct_size is set. The memory is not to be written
 * to. */
PYC_API pyc_status pyc_result_tensor(const pyc_result* result, pyc_tensor_view* view,
                                     pyc_error** error);
/* The strings of a tensor of strings, or the items of a sequence; 0 for others. */
PYC_API size_t pyc_result_count(const pyc_result* result);
/* Its bytes, which may hold NULs; one NUL more stands behind them. */
PYC_API pyc_status pyc_result_string(const pyc_result* result, size_t index, const char** text,
                                     size_t* size, pyc_error** error);
PYC_API pyc_status pyc_result_item(const pyc_result* result, size_t index, const pyc_result** item,
                                   pyc_error** error);

/* Bytes, which may hold NULs and need no NUL behind them; text may be NULL when size is 0. Passed
 * in arrays; has its final form. */
typedef struct pyc_string {
  const char* text;
  size_t size;
} pyc_string;

/* A tensor of numbers, copied. */
PYC_API pyc_status pyc_result_from_tensor(const pyc_tensor_view* view, pyc_result** result,
                                          pyc_error** error);
/* A tensor of strings, copied; as many as the product of the dims, row-major. */
PYC_API pyc_status pyc_result_from_strings(const pyc_string* strings, const int64_t* shape,
                                           int64_t rank, pyc_result** result, pyc_error** error);
/* A sequence; its items stay the caller's, their content is shared. */
PYC_API pyc_status pyc_result_from_items(const pyc_result* const* items, size_t count,
                                         pyc_result** result, pyc_error** error);
/* An optional without a value. One with a value is the value itself. */
PYC_API pyc_status pyc_result_nothing(pyc_result** result, pyc_error** error);
/* The same value as a handle of its own, for instance of an output that is an input of the next
 * run; its content is shared. */
PYC_API pyc_status pyc_result_copy(const pyc_result* from, pyc_result** result, pyc_error** error);
PYC_API void pyc_result_destroy(pyc_result* result);

/* Runs the model on values of any kind, in the order of pyc_model_input; else as
 * pyc_run_model_dynamic. PYC_STATUS_NULL_POINTER, _DTYPE_MISMATCH (another kind of value, or of
 * element), _RANK_MISMATCH and _SHAPE_MISMATCH name the input, what was expected and found. */
PYC_API pyc_status pyc_run_model_values(pyc_model* model, const pyc_result* const* inputs,
                                        size_t input_count, pyc_results** results,
                                        pyc_run_stats* stats, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
