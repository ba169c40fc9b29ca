/* Tensors: memory PyC allocates, memory the caller owns, and tensor files. */
#ifndef PYC_RUNTIME_ALLOCATOR_H_
#define PYC_RUNTIME_ALLOCATOR_H_

#include "pyc/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements in anybody's memory, as DLPack describes them. Element (i, j, …) is at
 * data + byte_offset + (i * strides[0] + j * strides[1] + …) * the size of an element, and must be
 * inside [data, data + bytes). In arrays all entries have the struct_size of the first.
 *
 * Memory that is row-major, aligned to the element's size and the host's is used in place. Other
 * strides and alignments are copied to such memory and back, which pyc_run_stats counts; the option
 * strict_views refuses them instead. Strides may be 0 or negative; those of memory that is written
 * to keep all elements apart: sorted by size, each is larger than what the smaller ones reach. */
typedef struct pyc_tensor_view {
  size_t struct_size;
  void* data;             /* may be NULL when there is no element */
  int64_t byte_offset;    /* of the first element; 0 or more */
  int64_t bytes;          /* of the memory at data */
  const int64_t* shape;   /* `rank` dims, outermost first */
  const int64_t* strides; /* `rank` of them, in elements; NULL: row-major */
  int64_t rank;
  pyc_dtype dtype;
  int32_t device_type; /* PYC_DEVICE_*, or another number of DLPack; 0: the host */
  int32_t device_id;
  int32_t reserved; /* 0 */
} pyc_tensor_view;
/* Where memory is, with DLPack's numbers. Models run on the host: memory elsewhere is
 * PYC_STATUS_UNSUPPORTED. */
enum {
  PYC_DEVICE_HOST = 1,
  PYC_DEVICE_CUDA = 2,
  PYC_DEVICE_PINNED_HOST = 3 /* the host's, known to a GPU */
};

/* A tensor with memory of its own, aligned to 64 bytes. */
typedef struct pyc_tensor pyc_tensor;
/* All elements are zero. */
PYC_API pyc_status pyc_tensor_create(pyc_dtype dtype, const int64_t* shape, int64_t rank,
                                     pyc_tensor** tensor, pyc_error** error);
PYC_API void pyc_tensor_destroy(pyc_tensor* tensor);
/* Fills `view`, whose struct_size is set; its pointers are good as long as the tensor lives. */
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
