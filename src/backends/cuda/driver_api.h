#pragma once

// The part of libcuda that PyC calls, declared by us: nobody needs a toolkit to build PyC. Where
// one is installed, tests/cuda/api_types_test.cpp compares every line with cuda.h.

#include <cstddef>
#include <cstdint>

#include "backends/cuda/tensor_map.h"

namespace pyc::cuda {

using DeviceAddress = uint64_t;

struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
struct GraphTag;
struct GraphExecTag;
struct GraphNodeTag;
struct KernelTag;
using ContextHandle = ContextTag*;
using ModuleHandle = ModuleTag*;
using FunctionHandle = FunctionTag*;
using StreamHandle = StreamTag*;
using EventHandle = EventTag*;
using GraphHandle = GraphTag*;
using GraphExecHandle = GraphExecTag*;
using GraphNodeHandle = GraphNodeTag*;
using KernelHandle = KernelTag*;

// A kernel's launch as a node of a graph.
struct KernelNodeParams {
  FunctionHandle function = nullptr;
  unsigned grid_x = 1;
  unsigned grid_y = 1;
  unsigned grid_z = 1;
  unsigned block_x = 1;
  unsigned block_y = 1;
  unsigned block_z = 1;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  KernelHandle kernel = nullptr;    // in place of a function
  ContextHandle context = nullptr;  // null: the thread's
};

// What one node of a graph waits for in another.
struct GraphEdge {
  unsigned char from_port = 0;
  unsigned char to_port = 0;
  unsigned char type = 0;
  unsigned char reserved[5] = {};
};

// Results that mean something of their own here; all others are failures at run time.
enum DriverResult : int {
  kSuccess = 0,
  kErrorInvalidValue = 1,
  kErrorOutOfMemory = 2,
  kErrorNotInitialized = 3,
  kErrorDeinitialized = 4,
  kErrorStubLibrary = 34,
  kErrorNoDevice = 100,
  kErrorInvalidDevice = 101,
  kErrorInvalidImage = 200,
  kErrorNoBinaryForGpu = 209,
  kErrorInvalidPtx = 218,
  kErrorUnsupportedPtxVersion = 222,
  kErrorNotFound = 500,
  kErrorIllegalAddress = 700,
  kErrorLaunchOutOfResources = 701,
  kErrorLaunchTimeout = 702,
  kErrorAssert = 710,
  kErrorHardwareStackError = 714,
  kErrorIllegalInstruction = 715,
  kErrorMisalignedAddress = 716,
  kErrorInvalidAddressSpace = 717,
  kErrorInvalidPc = 718,
  kErrorLaunchFailed = 719,
  kErrorSystemNotReady = 802,
  kErrorSystemDriverMismatch = 803,
  kErrorCompatNotSupported = 804,
  kErrorUnknown = 999,
};

enum DeviceAttribute : int {
  kAttributeMultiprocessors = 16,
  kAttributeMajor = 75,
  kAttributeMinor = 76,
};

enum FunctionAttribute : int {
  kAttributeMostShared = 8,
  kAttributeWideClusters = 14,  // of more than eight blocks
};

enum : unsigned {
  kStreamNonBlocking = 1,
  kEventDefault = 0,
};
enum : int { kCaptureThreadLocal = 1 };
enum : unsigned { kHostMapped = 2 };  // of cuMemHostAlloc: kernels may use the memory
// An edge whose end may be on the device before its begin is over, and waits there by itself.
enum : unsigned char { kPortProgrammatic = 1, kDependencyProgrammatic = 1 };

// Of a tensor map.
enum : int {
  kMapHalves = 1,  // as integers of 16 bits
  kMapPlain = 0,   // no interleaving
  kMapSwizzle128 = 3,
  kMapPromote128 = 2,  // of the second-level cache
  kMapZeros = 0,       // outside
};

// PYC_ENTRY(name, parameter types…): every function returns a DriverResult.
#define PYC_DRIVER_ENTRIES(PYC_ENTRY)                                                         \
  PYC_ENTRY(cuInit, unsigned)                                                                 \
  PYC_ENTRY(cuDriverGetVersion, int*)                                                         \
  PYC_ENTRY(cuGetErrorName, int, const char**)                                                \
  PYC_ENTRY(cuGetErrorString, int, const char**)                                              \
  PYC_ENTRY(cuDeviceGetCount, int*)                                                           \
  PYC_ENTRY(cuDeviceGet, int*, int)                                                           \
  PYC_ENTRY(cuDeviceGetName, char*, int, int)                                                 \
  PYC_ENTRY(cuDeviceGetAttribute, int*, int, int)                                             \
  PYC_ENTRY(cuDeviceTotalMem_v2, size_t*, int)                                                \
  PYC_ENTRY(cuDevicePrimaryCtxRetain, ContextHandle*, int)                                    \
  PYC_ENTRY(cuDevicePrimaryCtxRelease_v2, int)                                                \
  PYC_ENTRY(cuCtxSetCurrent, ContextHandle)                                                   \
  PYC_ENTRY(cuMemGetInfo_v2, size_t*, size_t*)                                                \
  PYC_ENTRY(cuMemAlloc_v2, DeviceAddress*, size_t)                                            \
  PYC_ENTRY(cuMemFree_v2, DeviceAddress)                                                      \
  PYC_ENTRY(cuMemHostAlloc, void**, size_t, unsigned)                                         \
  PYC_ENTRY(cuMemFreeHost, void*)                                                             \
  PYC_ENTRY(cuMemcpyHtoDAsync_v2, DeviceAddress, const void*, size_t, StreamHandle)           \
  PYC_ENTRY(cuMemcpyDtoHAsync_v2, void*, DeviceAddress, size_t, StreamHandle)                 \
  PYC_ENTRY(cuMemcpyDtoDAsync_v2, DeviceAddress, DeviceAddress, size_t, StreamHandle)         \
  PYC_ENTRY(cuMemsetD32Async, DeviceAddress, unsigned, size_t, StreamHandle)                  \
  PYC_ENTRY(cuModuleLoadData, ModuleHandle*, const void*)                                     \
  PYC_ENTRY(cuModuleUnload, ModuleHandle)                                                     \
  PYC_ENTRY(cuModuleGetFunction, FunctionHandle*, ModuleHandle, const char*)                  \
  PYC_ENTRY(cuFuncSetAttribute, FunctionHandle, int, int)                                     \
  PYC_ENTRY(cuLaunchKernel, FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, \
            unsigned, unsigned, StreamHandle, void**, void**)                                 \
  PYC_ENTRY(cuTensorMapEncodeTiled, EncodedMap*, int, unsigned, void*, const uint64_t*,       \
            const uint64_t*, const unsigned*, const unsigned*, int, int, int, int)            \
  PYC_ENTRY(cuStreamCreate, StreamHandle*, unsigned)                                          \
  PYC_ENTRY(cuStreamDestroy_v2, StreamHandle)                                                 \
  PYC_ENTRY(cuStreamSynchronize, StreamHandle)                                                \
  PYC_ENTRY(cuStreamWaitEvent, StreamHandle, EventHandle, unsigned)                           \
  PYC_ENTRY(cuStreamBeginCapture_v2, StreamHandle, int)                                       \
  PYC_ENTRY(cuStreamEndCapture, StreamHandle, GraphHandle*)                                   \
  PYC_ENTRY(cuGraphInstantiateWithFlags, GraphExecHandle*, GraphHandle, unsigned long long)   \
  PYC_ENTRY(cuGraphCreate, GraphHandle*, unsigned)                                            \
  PYC_ENTRY(cuGraphAddKernelNode_v2, GraphNodeHandle*, GraphHandle, const GraphNodeHandle*,   \
            size_t, const KernelNodeParams*)                                                  \
  PYC_ENTRY(cuGraphAddDependencies_v2, GraphHandle, const GraphNodeHandle*,                   \
            const GraphNodeHandle*, const GraphEdge*, size_t)                                 \
  PYC_ENTRY(cuGraphExecKernelNodeSetParams_v2, GraphExecHandle, GraphNodeHandle,              \
            const KernelNodeParams*)                                                          \
  PYC_ENTRY(cuGraphDestroy, GraphHandle)                                                      \
  PYC_ENTRY(cuGraphExecDestroy, GraphExecHandle)                                              \
  PYC_ENTRY(cuGraphLaunch, GraphExecHandle, StreamHandle)                                     \
  PYC_ENTRY(cuEventCreate, EventHandle*, unsigned)                                            \
  PYC_ENTRY(cuEventDestroy_v2, EventHandle)                                                   \
  PYC_ENTRY(cuEventRecord, EventHandle, StreamHandle)                                         \
  PYC_ENTRY(cuEventSynchronize, EventHandle)                                                  \
  PYC_ENTRY(cuEventElapsedTime, float*, EventHandle, EventHandle)

struct DriverApi {
#define PYC_ENTRY(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  PYC_DRIVER_ENTRIES(PYC_ENTRY)
#undef PYC_ENTRY
};

}  // namespace pyc::cuda
