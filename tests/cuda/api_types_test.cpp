// PyC's own declarations of libcuda's functions against cuda.h, where a toolkit is installed.

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "backends/cuda/driver_api.h"

#ifdef PYC_HAVE_CUDA_H
#define __CUDA_API_VERSION_INTERNAL  // declares the functions without a version as well
#include <cuda.h>
#endif

namespace pyc::cuda {
namespace {

#ifdef PYC_HAVE_CUDA_H

// As the ABI sees them: pointers are pointers, integers and enumerations are what they measure.
template <class Mine, class Theirs>
constexpr bool same_parameter() {
  return sizeof(Mine) == sizeof(Theirs) && std::is_pointer_v<Mine> == std::is_pointer_v<Theirs>;
}

template <class Mine, class Theirs>
struct SameCall : std::false_type {};
template <class... Mine, class Result, class... Theirs>
struct SameCall<int (*)(Mine...), Result (*)(Theirs...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(Mine) == sizeof...(Theirs)) {
      return (same_parameter<Mine, Theirs>() && ...) && sizeof(Result) == sizeof(int);
    }
    return false;
  }
  static constexpr bool value = check();
};

TEST(CudaApi, FunctionsAreTheToolkits) {
#define PYC_ENTRY(name, ...) \
  EXPECT_TRUE((SameCall<decltype(DriverApi::name), decltype(&::name)>::value)) << #name;
  PYC_DRIVER_ENTRIES(PYC_ENTRY)
#undef PYC_ENTRY
}

TEST(CudaApi, StructsAreTheToolkits) {
  using Theirs = CUDA_KERNEL_NODE_PARAMS_v2;
  EXPECT_EQ(sizeof(KernelNodeParams), sizeof(Theirs));
  EXPECT_EQ(offsetof(KernelNodeParams, function), offsetof(Theirs, func));
  EXPECT_EQ(offsetof(KernelNodeParams, grid_x), offsetof(Theirs, gridDimX));
  EXPECT_EQ(offsetof(KernelNodeParams, block_x), offsetof(Theirs, blockDimX));
  EXPECT_EQ(offsetof(KernelNodeParams, shared_bytes), offsetof(Theirs, sharedMemBytes));
  EXPECT_EQ(offsetof(KernelNodeParams, parameters), offsetof(Theirs, kernelParams));
  EXPECT_EQ(offsetof(KernelNodeParams, extra), offsetof(Theirs, extra));
  EXPECT_EQ(offsetof(KernelNodeParams, kernel), offsetof(Theirs, kern));
  EXPECT_EQ(offsetof(KernelNodeParams, context), offsetof(Theirs, ctx));
  EXPECT_EQ(sizeof(EncodedMap), sizeof(CUtensorMap));
  EXPECT_EQ(alignof(EncodedMap) % alignof(CUtensorMap), 0U);  // 64 or 128, by the toolkit
  EXPECT_EQ(sizeof(GraphEdge), sizeof(CUgraphEdgeData));
  EXPECT_EQ(offsetof(GraphEdge, from_port), offsetof(CUgraphEdgeData, from_port));
  EXPECT_EQ(offsetof(GraphEdge, to_port), offsetof(CUgraphEdgeData, to_port));
  EXPECT_EQ(offsetof(GraphEdge, type), offsetof(CUgraphEdgeData, type));
}

TEST(CudaApi, NumbersAreTheToolkits) {
  EXPECT_EQ(int{kErrorInvalidValue}, int{CUDA_ERROR_INVALID_VALUE});
  EXPECT_EQ(int{kErrorOutOfMemory}, int{CUDA_ERROR_OUT_OF_MEMORY});
  EXPECT_EQ(int{kErrorNotInitialized}, int{CUDA_ERROR_NOT_INITIALIZED});
  EXPECT_EQ(int{kErrorDeinitialized}, int{CUDA_ERROR_DEINITIALIZED});
  EXPECT_EQ(int{kErrorStubLibrary}, int{CUDA_ERROR_STUB_LIBRARY});
  EXPECT_EQ(int{kErrorNoDevice}, int{CUDA_ERROR_NO_DEVICE});
  EXPECT_EQ(int{kErrorInvalidDevice}, int{CUDA_ERROR_INVALID_DEVICE});
  EXPECT_EQ(int{kErrorInvalidImage}, int{CUDA_ERROR_INVALID_IMAGE});
  EXPECT_EQ(int{kErrorNoBinaryForGpu}, int{CUDA_ERROR_NO_BINARY_FOR_GPU});
  EXPECT_EQ(int{kErrorInvalidPtx}, int{CUDA_ERROR_INVALID_PTX});
  EXPECT_EQ(int{kErrorUnsupportedPtxVersion}, int{CUDA_ERROR_UNSUPPORTED_PTX_VERSION});
  EXPECT_EQ(int{kErrorNotFound}, int{CUDA_ERROR_NOT_FOUND});
  EXPECT_EQ(int{kErrorIllegalAddress}, int{CUDA_ERROR_ILLEGAL_ADDRESS});
  EXPECT_EQ(int{kErrorLaunchOutOfResources}, int{CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES});
  EXPECT_EQ(int{kErrorLaunchTimeout}, int{CUDA_ERROR_LAUNCH_TIMEOUT});
  EXPECT_EQ(int{kErrorAssert}, int{CUDA_ERROR_ASSERT});
  EXPECT_EQ(int{kErrorHardwareStackError}, int{CUDA_ERROR_HARDWARE_STACK_ERROR});
  EXPECT_EQ(int{kErrorIllegalInstruction}, int{CUDA_ERROR_ILLEGAL_INSTRUCTION});
  EXPECT_EQ(int{kErrorMisalignedAddress}, int{CUDA_ERROR_MISALIGNED_ADDRESS});
  EXPECT_EQ(int{kErrorInvalidAddressSpace}, int{CUDA_ERROR_INVALID_ADDRESS_SPACE});
  EXPECT_EQ(int{kErrorInvalidPc}, int{CUDA_ERROR_INVALID_PC});
  EXPECT_EQ(int{kErrorLaunchFailed}, int{CUDA_ERROR_LAUNCH_FAILED});
  EXPECT_EQ(int{kErrorSystemNotReady}, int{CUDA_ERROR_SYSTEM_NOT_READY});
  EXPECT_EQ(int{kErrorSystemDriverMismatch}, int{CUDA_ERROR_SYSTEM_DRIVER_MISMATCH});
  EXPECT_EQ(int{kErrorCompatNotSupported}, int{CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE});
  EXPECT_EQ(int{kErrorUnknown}, int{CUDA_ERROR_UNKNOWN});
  EXPECT_EQ(int{kAttributeMultiprocessors}, int{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT});
  EXPECT_EQ(int{kAttributeMajor}, int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR});
  EXPECT_EQ(int{kAttributeMinor}, int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR});
  EXPECT_EQ(int{kAttributeMostShared}, int{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES});
  EXPECT_EQ(int{kAttributeWideClusters}, int{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED});
  EXPECT_EQ(unsigned{kStreamNonBlocking}, unsigned{CU_STREAM_NON_BLOCKING});
  EXPECT_EQ(unsigned{kEventDefault}, unsigned{CU_EVENT_DEFAULT});
  EXPECT_EQ(unsigned{kHostMapped}, unsigned{CU_MEMHOSTALLOC_DEVICEMAP});
  EXPECT_EQ(int{kPortProgrammatic}, int{CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC});
  EXPECT_EQ(int{kDependencyProgrammatic}, int{CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC});
  EXPECT_EQ(int{kMapHalves}, int{CU_TENSOR_MAP_DATA_TYPE_UINT16});
  EXPECT_EQ(int{kMapPlain}, int{CU_TENSOR_MAP_INTERLEAVE_NONE});
  EXPECT_EQ(int{kMapSwizzle128}, int{CU_TENSOR_MAP_SWIZZLE_128B});
  EXPECT_EQ(int{kMapPromote128}, int{CU_TENSOR_MAP_L2_PROMOTION_L2_128B});
  EXPECT_EQ(int{kMapZeros}, int{CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE});
  EXPECT_EQ(int{kCaptureThreadLocal}, int{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL});
}

#else

TEST(CudaApi, FunctionsAreTheToolkits) { GTEST_SKIP() << "NOT RUN: no cuda.h on this machine"; }

#endif

}  // namespace
}  // namespace pyc::cuda
