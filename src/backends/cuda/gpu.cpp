#include "backends/cuda/gpu.h"

#include <cstdlib>
#include <string>

namespace pyc::cuda {
namespace {

std::string path_in(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

// Never destroyed: at the end of a process libcuda may be gone before it.
struct Shared {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Driver>> drivers;  // by path
  std::map<std::string, std::shared_ptr<const Nvrtc>> compilers;
  std::weak_ptr<Gpu> gpu;
};

Shared& shared() {
  static auto* const instance = new Shared;
  return *instance;
}

}  // namespace

Result<SharedMemory> ParameterStore::upload_one(const Key& key, std::span<const std::byte> bytes,
                                                Stream& stream) {
  if (bytes.empty()) return SharedMemory();
  if (SharedMemory there = known_[key].lock()) return there;
  PYC_ASSIGN(DeviceMemory made, device_->allocate(bytes.size()));
  PYC_TRY(stream.copy_in(made.get(), bytes));
  auto kept = std::make_shared<const DeviceMemory>(std::move(made));
  known_[key] = kept;
  return SharedMemory(std::move(kept));
}

Result<std::vector<SharedMemory>> ParameterStore::upload(
    std::span<const runtime::Parameter> parameters) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  PYC_ASSIGN(Stream stream, Stream::create(device_));
  std::vector<SharedMemory> out;
  std::map<Digest, int> alike;
  Status status;
  for (const runtime::Parameter& parameter : parameters) {
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(parameter.data),
                                           static_cast<size_t>(parameter.bytes));
    const Digest digest = hash128(bytes);
    auto one = upload_one({digest, parameter.bytes, alike[digest]++}, bytes, stream);
    if (!one.ok()) {
      status = std::move(one).status();
      break;
    }
    out.push_back(std::move(*one));
  }
  // Copies must be over before anybody reads, frees or finds what they fill.
  const Status done = stream.synchronize();
  PYC_TRY(status);
  PYC_TRY(done);
  return out;
}

Result<std::shared_ptr<const Driver>> shared_driver() {
  Shared& all = shared();
  const std::string path = path_in("PYC_LIBCUDA");
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<const Driver>& driver = all.drivers[path];
  if (driver == nullptr) {
    PYC_ASSIGN(driver, Driver::load(path));
  }
  return driver;
}

Result<std::shared_ptr<const Nvrtc>> shared_nvrtc() {
  Shared& all = shared();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<const Nvrtc>& nvrtc = all.compilers[path_in("PYC_NVRTC")];
  if (nvrtc == nullptr) {
    PYC_ASSIGN(nvrtc, Nvrtc::load());
  }
  return nvrtc;
}

Result<DeviceFacts> shared_facts() {
  PYC_ASSIGN(const std::shared_ptr<const Driver> driver, shared_driver());
  return query_device(*driver);
}

Result<std::shared_ptr<Gpu>> shared_gpu() {
  PYC_ASSIGN(std::shared_ptr<const Driver> driver, shared_driver());
  Shared& all = shared();
  const std::lock_guard lock(all.mutex);
  if (std::shared_ptr<Gpu> there = all.gpu.lock()) {
    PYC_TRY(there->device->lost());
    if (&there->device->driver() == driver.get()) return there;
  }
  PYC_ASSIGN(DevicePtr device, Device::open(std::move(driver)));
  auto made = std::make_shared<Gpu>(std::move(device));
  all.gpu = made;
  return made;
}

}  // namespace pyc::cuda
