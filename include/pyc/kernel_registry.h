/* What can be computed, where, and by which kernels: the tables of ops and devices, and a model's
 * candidates. These are tables to read. Nothing is registered through them: ops, devices and kernel
 * generators are compiled into PyC. */
#ifndef PYC_KERNEL_REGISTRY_H_
#define PYC_KERNEL_REGISTRY_H_

#include "pyc/common.h"
#include "pyc/compiler_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pyc_op_info {
  size_t struct_size;
  const char* name;
  const char* summary;
  int32_t min_inputs;
  int32_t max_inputs; /* -1: no limit */
  int32_t outputs;
  int32_t composite; /* 1: it stands for a graph of other ops */
  size_t attribute_count;
  const char* no_gradient; /* why it has none; NULL when it can be differentiated */
} pyc_op_info;
typedef struct pyc_attribute_info {
  size_t struct_size;
  const char* name;
  const char* kind; /* int, float, bool, string, dtype, ints or floats */
  /* Its default as text IR; "none" when it has no value unless given; NULL when it must be. */
  const char* fallback;
} pyc_attribute_info;
/* The ops, sorted by name. */
PYC_API size_t pyc_op_count(void);
PYC_API pyc_status pyc_op(size_t index, pyc_op_info* info, pyc_error** error);
PYC_API pyc_status pyc_op_attribute(size_t op, size_t index, pyc_attribute_info* info,
                                    pyc_error** error);
/* PYC_STATUS_UNKNOWN_OP, with a suggestion, for a name that is none. */
PYC_API pyc_status pyc_op_find(const char* name, size_t* index, pyc_error** error);

typedef struct pyc_device_info {
  size_t struct_size;
  const char* name;
  int32_t runs;   /* 0: compiles only */
  int32_t strict; /* keeps the strict determinism level */
  int32_t reserved;
} pyc_device_info;
PYC_API size_t pyc_device_count(void);
PYC_API pyc_status pyc_device(size_t index, pyc_device_info* info, pyc_error** error);
/* The dtypes a device computes an op for, as bits 1 << dtype: those the op's type rule takes and
 * the device has an applicable kernel for, found by compiling a small graph of the op up to its
 * plan. */
PYC_API pyc_status pyc_device_op_dtypes(const char* device, const char* op, uint64_t* dtypes,
                                        pyc_error** error);

/* The CPU of this process. */
typedef struct pyc_cpu_info {
  size_t struct_size;
  const char* arch;     /* "aarch64" or "x86_64" */
  const char* features; /* instruction sets found, joined by commas */
  int32_t cores;        /* that this process may run on */
  int32_t vector_bytes;
  int64_t l1_bytes;
  int64_t l2_bytes;
  int64_t l3_bytes;
} pyc_cpu_info;
PYC_API pyc_status pyc_get_cpu(pyc_cpu_info* info, pyc_error** error);

/* A kernel that was weighed for a group of a compiled model. */
typedef struct pyc_kernel_info {
  size_t struct_size;
  const char* group;
  const char* name;     /* "f32_matmul__neon_8x8"; its family is the part before "__" */
  const char* rejected; /* why it was not applicable; "" when it was */
  double cost_ns;       /* estimated; of applicable ones only */
  int32_t chosen;
  int32_t reserved;
  double measured_ns; /* of one run, by pyc_tune; 0: nobody measured it */
} pyc_kernel_info;
PYC_API size_t pyc_model_kernel_count(const pyc_model* model);
PYC_API pyc_status pyc_model_kernel(const pyc_model* model, size_t index, pyc_kernel_info* info,
                                    pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
