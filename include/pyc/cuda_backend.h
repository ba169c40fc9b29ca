/* Whether models run on an NVIDIA GPU here. */
#ifndef PYC_CUDA_BACKEND_H_
#define PYC_CUDA_BACKEND_H_

#include "pyc/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pyc_cuda_info {
  size_t struct_size;
  int32_t available;
  int32_t device_count;
  const char* reason; /* why it is not available; "" when it is */
  const char* found;  /* for people: GPU, driver and NVRTC, or what is missing */
} pyc_cuda_info;
PYC_API pyc_status pyc_cuda_get_info(pyc_cuda_info* info, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif
