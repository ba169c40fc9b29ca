/* Tensors: memory PyC allocates, memory the caller owns, and tensor files. */
#ifndef PYC_RUNTIME_ALLOCATOR_H_
#define PYC_RUNTIME_ALLOCATOR_H_

#include "pyc/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row-major elements in anybody's memory. `bytes` is exactly what dtype and shape say. This struct
 * is passed in arrays and has its final form. */
typedef struct pyc_tensor_view {
  void* data; /* aligned to the element's size; may be NULL when bytes is 0 */
  const int64_t* shape;
  int64_t rank;
  int64_t bytes;
  pyc_dtype dtype;
  int32_t reserved; /* 0 */
} pyc_tensor_view;

/* A tensor with memory of its own, aligned to 64 bytes. */
typedef struct pyc_tensor pyc_tensor;
/* All elements are zero. */
PYC_API pyc_status pyc_tensor_create(pyc_dtype dtype, const int64_t* shape, int64_t rank,
                                     pyc_tensor** tensor, pyc_error** error);
PYC_API void pyc_tensor_destroy(pyc_tensor* tensor);
/* The view's pointers are good as long as the tensor lives. */
PYC_API pyc_status pyc_tensor_get_view(const pyc_tensor* tensor, pyc_tensor_view* view,
                                       pyc_error** error);

/* Reads a .npy file or an ONNX TensorProto (.pb); the content says which. With a dtype other than
 * PYC_DTYPE_ANY the file must hold that dtype. numpy writes bf16 and fp8 as bytes without a name
 * (descr V2, V1): these are read only with their dtype given. */
PYC_API pyc_status pyc_tensor_load_file(const char* path, pyc_dtype dtype, pyc_tensor** tensor,
                                        pyc_error** error);
PYC_API pyc_status pyc_tensor_load_bytes(const void* data, size_t size, pyc_dtype dtype,
                                         pyc_tensor** tensor, pyc_error** error);
/* Writes a .npy file, all or nothing. */
PYC_API pyc_status pyc_tensor_save_npy(const pyc_tensor_view* view, const char* path,
                                       pyc_error** error);

/* Fills the memory from a seed, the same bytes everywhere: floats uniform in [-1, 1), integers in
 * [0, 10). */
PYC_API pyc_status pyc_tensor_fill_random(const pyc_tensor_view* view, uint64_t seed,
                                          pyc_error** error);
/* 32 hexadecimal digits: the XXH3-128 of the bytes. */
PYC_API pyc_status pyc_tensor_digest(const pyc_tensor_view* view, char** text, pyc_error** error);
/* Numbers [first, first + count) as doubles. A real element is one number, a complex one two: its
 * real and its imaginary part. */
PYC_API pyc_status pyc_tensor_read_f64(const pyc_tensor_view* view, int64_t first, int64_t count,
                                       double* numbers, pyc_error** error);

typedef struct pyc_allocator_stats {
  size_t struct_size;
  int64_t live_tensors; /* pyc_tensor handles not yet destroyed */
  int64_t live_bytes;   /* their memory */
  int64_t peak_bytes;   /* the most live_bytes has been in this process */
  int64_t allocations;  /* blocks of tensor and model memory made in this process so far */
} pyc_allocator_stats;
PYC_API pyc_status pyc_allocator_get_stats(pyc_allocator_stats* stats, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
