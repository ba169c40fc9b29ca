#pragma once

// A device and what lives on it. Every object holds on to its device; calls may come from any
// thread, each object is used by one at a time. What frees or destroys cannot fail: a driver that
// refuses it has lost the context, and with it the object.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/driver.h"

namespace pyc::cuda {

class Device;
using DevicePtr = std::shared_ptr<const Device>;

// A handle of the driver that is given back once. `Give` frees it.
template <class Handle, void (*Give)(const Device&, Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(DevicePtr device, Handle handle) : device_(std::move(device)), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != Handle{}) Give(*device_, handle_);
  }
  Handle get() const { return handle_; }
  const DevicePtr& device() const { return device_; }

 private:
  DevicePtr device_;
  Handle handle_{};
};

void free_memory(const Device& device, DeviceAddress address);
void unload_module(const Device& device, ModuleHandle module);
void destroy_stream(const Device& device, StreamHandle stream);
void destroy_event(const Device& device, EventHandle event);
void destroy_graph(const Device& device, GraphExecHandle graph);
void destroy_noted_graph(const Device& device, GraphHandle graph);
void free_host_memory(const Device& device, void* address);

using DeviceMemory = Owned<DeviceAddress, free_memory>;
using PinnedMemory = Owned<void*, free_host_memory>;

// What can be known of a device without making a context.
struct DeviceFacts {
  int handle = 0;
  std::string name;
  std::string architecture;  // what NVRTC compiles for: "sm_90a"
  int multiprocessors = 0;
  size_t total_bytes = 0;
};
// kUnsupported when there is none of that number or it is older than what kernels are made for.
Result<DeviceFacts> query_device(const Driver& driver, int ordinal = 0);

class Device : public std::enable_shared_from_this<Device> {
 public:
  // Device `ordinal` with its primary context; refused as query_device refuses.
  static Result<DevicePtr> open(std::shared_ptr<const Driver> driver, int ordinal = 0);
  ~Device();

  const Driver& driver() const { return *driver_; }
  const std::string& name() const { return facts_.name; }
  const std::string& architecture() const { return facts_.architecture; }
  int multiprocessors() const { return facts_.multiprocessors; }
  size_t total_bytes() const { return facts_.total_bytes; }
  int ordinal() const { return ordinal_; }

  // At least one byte, 256-byte aligned.
  Result<DeviceMemory> allocate(size_t bytes) const;
  // Memory of the host that copies need not stage and kernels may use; at least one byte.
  Result<PinnedMemory> allocate_pinned(size_t bytes) const;
  // What all calls of allocate asked for so far, whether or not it was given back.
  int64_t allocated_bytes() const { return allocated_.load(std::memory_order_relaxed); }

  // The map of a buffer that begins there, as a kernel's parameter.
  Result<EncodedMap> encode_map(const TensorMap& map, DeviceAddress buffer) const;

  // Makes the context the calling thread's. A device that was lost is refused with the cause.
  Status enter() const;
  // Driver::status; a result that loses the context is remembered.
  Status status(int result, std::string_view call) const;
  // ok, or what lost the context.
  Status lost() const;
  // Makes the context the calling thread's for giving something back, lost or not.
  bool enter_to_give_back() const;

 private:
  std::shared_ptr<const Driver> driver_;
  int ordinal_ = 0;
  ContextHandle context_ = nullptr;
  DeviceFacts facts_;
  mutable std::atomic<int64_t> allocated_{0};
  mutable std::atomic<bool> is_lost_{false};
  mutable std::mutex lost_mutex_;
  mutable Status lost_;
};

class Module {
 public:
  // `image`: a cubin for the device's architecture.
  static Result<Module> load(const DevicePtr& device, const std::string& image);
  // A kernel that may be launched with so many bytes of shared memory besides its own.
  Result<FunctionHandle> function(const std::string& symbol, uint32_t shared_bytes = 0) const;

 private:
  Owned<ModuleHandle, unload_module> module_;
};

struct LaunchShape {
  uint32_t blocks = 1;
  uint32_t threads = 1;
  uint32_t shared_bytes = 0;
  uint32_t maps = 0;  // that its parameters end with, kMapWords each
};

// The addresses of a launch's parameters, 8 bytes each but for tensor maps. Behind them stand
// addresses of a word of zeros, as many as a launch can have: a function that takes more than it
// was given reads nothing that is not there.
class ParameterAddresses {
 public:
  static constexpr size_t kMost = 512;
  explicit ParameterAddresses(std::span<const uint64_t> parameters, uint32_t maps = 0);
  void** data() { return addresses_.data(); }

 private:
  std::array<void*, kMost> addresses_;
};

using Event = Owned<EventHandle, destroy_event>;
class Graph;
class LaunchGraph;

// Work in order. Copies from and to the host read and write its memory until synchronize().
class Stream {
 public:
  static Result<Stream> create(const DevicePtr& device);
  Status copy_in(DeviceAddress to, std::span<const std::byte> from);
  Status copy_out(std::span<std::byte> to, DeviceAddress from);
  Status copy(DeviceAddress to, DeviceAddress from, size_t bytes);
  Status fill_words(DeviceAddress to, uint32_t word, size_t count);
  // At most ParameterAddresses::kMost parameters.
  Status launch(FunctionHandle function, LaunchShape shape, std::span<const uint64_t> parameters);
  Status synchronize();

  // Between begin_capture and end_capture work is noted, not done. After a call in between failed
  // the capture must still be ended.
  Status begin_capture();
  Result<Graph> end_capture();
  Status launch(const Graph& graph);
  Status launch(const LaunchGraph& graph);

  Result<Event> record();

 private:
  const Device& device() const { return *stream_.device(); }
  Owned<StreamHandle, destroy_stream> stream_;
};

// Noted work that can be launched again and again.
class Graph {
 private:
  friend class Stream;
  Owned<GraphExecHandle, destroy_graph> graph_;
};

// Launches one after the other that are handed to the device at once, and whose parameters can be
// changed one by one. A kernel may be brought to the device before the one in front is over: it
// waits there by itself (`pyc_wait_for_earlier`, dialect.h), as every kernel of this backend does
// before anything else.
class LaunchGraph {
 public:
  static Result<LaunchGraph> create(const DevicePtr& device);
  // One more launch, before instantiate.
  Status add(FunctionHandle function, LaunchShape shape, std::span<const uint64_t> parameters);
  Status instantiate();
  // Other parameters for launch `index`, from the next Stream::launch on.
  Status update(size_t index, FunctionHandle function, LaunchShape shape,
                std::span<const uint64_t> parameters);

 private:
  friend class Stream;
  Owned<GraphHandle, destroy_noted_graph> noted_;
  std::vector<GraphNodeHandle> nodes_;
  Owned<GraphExecHandle, destroy_graph> graph_;
};

// Milliseconds on the device between two events whose stream was synchronized.
Result<float> elapsed_ms(const Event& begin, const Event& end);

}  // namespace pyc::cuda
