#pragma once

// The GPU as this process shares it: one driver, one device, one set of parameters on it.

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/nvrtc.h"
#include "base/hash.h"
#include "runtime/program.h"

namespace pyc::cuda {

using SharedMemory = std::shared_ptr<const DeviceMemory>;

// Constant bytes on the device, by what they are: equal parameters of any number of programs are
// there once, as long as one of these programs is. Equal parameters of one program are apart, as
// its plan counts them.
class ParameterStore {
 public:
  explicit ParameterStore(DevicePtr device) : device_(std::move(device)) {}
  // All of them, uploaded where they were not there yet. Null for one of no bytes.
  Result<std::vector<SharedMemory>> upload(std::span<const runtime::Parameter> parameters);

 private:
  // Of what bytes, how many, and the how many-th of its program that has them.
  using Key = std::tuple<Digest, int64_t, int>;
  Result<SharedMemory> upload_one(const Key& key, std::span<const std::byte> bytes, Stream& stream);

  DevicePtr device_;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<const DeviceMemory>> known_;
};

struct Gpu {
  explicit Gpu(DevicePtr d) : device(d), parameters(std::move(d)) {}
  DevicePtr device;
  ParameterStore parameters;
};

// The driver: libcuda.so.1, or what PYC_LIBCUDA names. Looked for again after a refusal.
Result<std::shared_ptr<const Driver>> shared_driver();
// The compiler (nvrtc_places), in the same way.
Result<std::shared_ptr<const Nvrtc>> shared_nvrtc();
// The device kernels are made for, without a context.
Result<DeviceFacts> shared_facts();
// The device, opened by the first who asks and closed with the last who holds it. A lost one is
// refused with its cause.
Result<std::shared_ptr<Gpu>> shared_gpu();

}  // namespace pyc::cuda
