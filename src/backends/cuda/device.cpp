#include "backends/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>

// Returns early unless the driver's function succeeds on a device.
#define PYC_ON_DEVICE(device, function, ...) \
  PYC_TRY((device).status((device).driver().api().function(__VA_ARGS__), #function))

namespace pyc::cuda {
namespace {

// Kernels use cvt to bf16 and max.NaN.
constexpr int kLeastMajor = 9;
// From this one on cubins are made with the architecture's own instructions.
constexpr int kOwnInstructions = 9;
KernelNodeParams node_params(FunctionHandle function, LaunchShape shape,
                             ParameterAddresses& addresses) {
  KernelNodeParams params;
  params.function = function;
  params.grid_x = shape.blocks;
  params.block_x = shape.threads;
  params.shared_bytes = shape.shared_bytes;
  params.parameters = addresses.data();
  return params;
}

}  // namespace

void free_memory(const Device& device, DeviceAddress address) {
  if (device.enter_to_give_back()) device.driver().api().cuMemFree_v2(address);
}
void free_host_memory(const Device& device, void* address) {
  if (device.enter_to_give_back()) device.driver().api().cuMemFreeHost(address);
}
void unload_module(const Device& device, ModuleHandle module) {
  if (device.enter_to_give_back()) device.driver().api().cuModuleUnload(module);
}
void destroy_stream(const Device& device, StreamHandle stream) {
  if (device.enter_to_give_back()) device.driver().api().cuStreamDestroy_v2(stream);
}
void destroy_event(const Device& device, EventHandle event) {
  if (device.enter_to_give_back()) device.driver().api().cuEventDestroy_v2(event);
}
void destroy_graph(const Device& device, GraphExecHandle graph) {
  if (device.enter_to_give_back()) device.driver().api().cuGraphExecDestroy(graph);
}
void destroy_noted_graph(const Device& device, GraphHandle graph) {
  if (device.enter_to_give_back()) device.driver().api().cuGraphDestroy(graph);
}

Result<DeviceFacts> query_device(const Driver& driver, int ordinal) {
  DeviceFacts facts;
  int count = 0;
  PYC_DRIVER(driver, cuDeviceGetCount, &count);
  if (ordinal < 0 || ordinal >= count) {
    return Status(Code::kUnsupported,
                  fmt::format("no CUDA device {}: the driver has {}", ordinal, count));
  }
  PYC_DRIVER(driver, cuDeviceGet, &facts.handle, ordinal);
  char name[256] = {};
  PYC_DRIVER(driver, cuDeviceGetName, name, sizeof(name) - 1, facts.handle);
  facts.name = name;
  int major = 0;
  int minor = 0;
  PYC_DRIVER(driver, cuDeviceGetAttribute, &major, kAttributeMajor, facts.handle);
  PYC_DRIVER(driver, cuDeviceGetAttribute, &minor, kAttributeMinor, facts.handle);
  PYC_DRIVER(driver, cuDeviceGetAttribute, &facts.multiprocessors, kAttributeMultiprocessors,
             facts.handle);
  PYC_DRIVER(driver, cuDeviceTotalMem_v2, &facts.total_bytes, facts.handle);
  facts.architecture = fmt::format("sm_{}{}{}", major, minor, major >= kOwnInstructions ? "a" : "");
  if (major < kLeastMajor) {
    return Status(Code::kUnsupported,
                  fmt::format("CUDA device {} ({}) is {}; sm_{}0 is the least", ordinal, facts.name,
                              facts.architecture, kLeastMajor));
  }
  return facts;
}

Result<DevicePtr> Device::open(std::shared_ptr<const Driver> driver, int ordinal) {
  auto device = std::make_shared<Device>();
  PYC_ASSIGN(device->facts_, query_device(*driver, ordinal));
  device->driver_ = std::move(driver);
  device->ordinal_ = ordinal;
  PYC_ON_DEVICE(*device, cuDevicePrimaryCtxRetain, &device->context_, device->facts_.handle);
  PYC_TRY(device->enter());
  return DevicePtr(std::move(device));
}

Device::~Device() {
  if (context_ != nullptr) driver_->api().cuDevicePrimaryCtxRelease_v2(facts_.handle);
}

Status Device::status(int result, std::string_view call) const {
  Status status = driver_->status(result, call);
  if (!loses_context(result)) return status;
  const std::lock_guard lock(lost_mutex_);
  if (lost_.ok()) lost_ = status;
  is_lost_.store(true, std::memory_order_release);
  return status;
}

Status Device::lost() const {
  if (!is_lost_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(lost_mutex_);
  Status status = lost_;
  return std::move(status).with_context("the CUDA device was lost earlier");
}

Status Device::enter() const {
  PYC_TRY(lost());
  PYC_ON_DEVICE(*this, cuCtxSetCurrent, context_);
  return {};
}

bool Device::enter_to_give_back() const {
  return driver_->api().cuCtxSetCurrent(context_) == kSuccess;
}

Result<DeviceMemory> Device::allocate(size_t bytes) const {
  PYC_TRY(enter());
  DeviceAddress address = 0;
  Status made =
      status(driver_->api().cuMemAlloc_v2(&address, std::max<size_t>(bytes, 1)), "cuMemAlloc_v2");
  if (!made.ok()) return std::move(made).with_context(fmt::format("{} bytes", bytes));
  allocated_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return DeviceMemory(shared_from_this(), address);
}

Result<PinnedMemory> Device::allocate_pinned(size_t bytes) const {
  PYC_TRY(enter());
  void* address = nullptr;
  Status made =
      status(driver_->api().cuMemHostAlloc(&address, std::max<size_t>(bytes, 1), kHostMapped),
             "cuMemHostAlloc");
  if (!made.ok()) return std::move(made).with_context(fmt::format("{} bytes", bytes));
  return PinnedMemory(shared_from_this(), address);
}

Result<Module> Module::load(const DevicePtr& device, const std::string& image) {
  PYC_TRY(device->enter());
  ModuleHandle handle = nullptr;
  PYC_ON_DEVICE(*device, cuModuleLoadData, &handle, image.data());
  Module module;
  module.module_ = {device, handle};
  return module;
}

Result<FunctionHandle> Module::function(const std::string& symbol, uint32_t shared_bytes) const {
  const Device& device = *module_.device();
  PYC_TRY(device.enter());
  FunctionHandle function = nullptr;
  PYC_ON_DEVICE(device, cuModuleGetFunction, &function, module_.get(), symbol.c_str());
  // Unasked a launch has 48 KiB less what the kernel declares itself.
  if (shared_bytes > 0) {
    PYC_ON_DEVICE(device, cuFuncSetAttribute, function, kAttributeMostShared,
                  static_cast<int>(shared_bytes));
  }
  // Whether the kernel has such clusters is in its image alone.
  PYC_ON_DEVICE(device, cuFuncSetAttribute, function, kAttributeWideClusters, 1);
  return function;
}

Result<EncodedMap> Device::encode_map(const TensorMap& map, DeviceAddress buffer) const {
  PYC_TRY(enter());
  EncodedMap out;
  const uint64_t extents[] = {map.columns, map.rows};
  const auto step = static_cast<uint64_t>(map.row_bytes);
  const unsigned box[] = {kBoxColumns, map.box_rows};
  const unsigned strides[] = {1, 1};
  const uint64_t begin = buffer + static_cast<uint64_t>(map.offset_bytes);
  PYC_ON_DEVICE(*this, cuTensorMapEncodeTiled, &out, kMapHalves, 2, reinterpret_cast<void*>(begin),
                extents, &step, box, strides, kMapPlain, kMapSwizzle128, kMapPromote128, kMapZeros);
  return out;
}

ParameterAddresses::ParameterAddresses(std::span<const uint64_t> parameters, uint32_t maps) {
  static const EncodedMap kZeros;
  const size_t plain = parameters.size() - maps * kMapWords;
  for (size_t i = 0; i < kMost; ++i) {
    const size_t word = i < plain ? i : plain + (i - plain) * kMapWords;
    const uint64_t* at = word < parameters.size() ? &parameters[word] : kZeros.words.data();
    addresses_[i] = const_cast<uint64_t*>(at);  // the driver only reads them
  }
}

Result<Stream> Stream::create(const DevicePtr& device) {
  PYC_TRY(device->enter());
  StreamHandle handle = nullptr;
  PYC_ON_DEVICE(*device, cuStreamCreate, &handle, kStreamNonBlocking);
  Stream stream;
  stream.stream_ = {device, handle};
  return stream;
}

Status Stream::copy_in(DeviceAddress to, std::span<const std::byte> from) {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuMemcpyHtoDAsync_v2, to, from.data(), from.size(), stream_.get());
  return {};
}

Status Stream::copy_out(std::span<std::byte> to, DeviceAddress from) {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuMemcpyDtoHAsync_v2, to.data(), from, to.size(), stream_.get());
  return {};
}

Status Stream::copy(DeviceAddress to, DeviceAddress from, size_t bytes) {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuMemcpyDtoDAsync_v2, to, from, bytes, stream_.get());
  return {};
}

Status Stream::fill_words(DeviceAddress to, uint32_t word, size_t count) {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuMemsetD32Async, to, word, count, stream_.get());
  return {};
}

Status Stream::launch(FunctionHandle function, LaunchShape shape,
                      std::span<const uint64_t> parameters) {
  PYC_TRY(device().enter());
  ParameterAddresses addresses(parameters, shape.maps);
  PYC_ON_DEVICE(device(), cuLaunchKernel, function, shape.blocks, 1, 1, shape.threads, 1, 1,
                shape.shared_bytes, stream_.get(), addresses.data(), nullptr);
  return {};
}

Status Stream::synchronize() {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuStreamSynchronize, stream_.get());
  return {};
}

Status Stream::begin_capture() {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuStreamBeginCapture_v2, stream_.get(), kCaptureThreadLocal);
  return {};
}

Result<Graph> Stream::end_capture() {
  PYC_TRY(device().enter());
  GraphHandle handle = nullptr;
  PYC_ON_DEVICE(device(), cuStreamEndCapture, stream_.get(), &handle);
  const Owned<GraphHandle, destroy_noted_graph> noted(stream_.device(), handle);
  GraphExecHandle made = nullptr;
  PYC_ON_DEVICE(device(), cuGraphInstantiateWithFlags, &made, handle, 0);
  Graph graph;
  graph.graph_ = {stream_.device(), made};
  return graph;
}

Status Stream::launch(const Graph& graph) {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuGraphLaunch, graph.graph_.get(), stream_.get());
  return {};
}

Status Stream::launch(const LaunchGraph& graph) {
  PYC_TRY(device().enter());
  PYC_ON_DEVICE(device(), cuGraphLaunch, graph.graph_.get(), stream_.get());
  return {};
}

Result<Event> Stream::record() {
  PYC_TRY(device().enter());
  EventHandle handle = nullptr;
  PYC_ON_DEVICE(device(), cuEventCreate, &handle, kEventDefault);
  Event event(stream_.device(), handle);
  PYC_ON_DEVICE(device(), cuEventRecord, handle, stream_.get());
  return event;
}

Result<LaunchGraph> LaunchGraph::create(const DevicePtr& device) {
  PYC_TRY(device->enter());
  GraphHandle handle = nullptr;
  PYC_ON_DEVICE(*device, cuGraphCreate, &handle, 0);
  LaunchGraph graph;
  graph.noted_ = {device, handle};
  return graph;
}

Status LaunchGraph::add(FunctionHandle function, LaunchShape shape,
                        std::span<const uint64_t> parameters) {
  const Device& device = *noted_.device();
  PYC_TRY(device.enter());
  ParameterAddresses addresses(parameters, shape.maps);
  const KernelNodeParams params = node_params(function, shape, addresses);
  GraphNodeHandle node = nullptr;
  PYC_ON_DEVICE(device, cuGraphAddKernelNode_v2, &node, noted_.get(), nullptr, 0, &params);
  if (!nodes_.empty()) {
    const GraphEdge edge{.from_port = kPortProgrammatic, .type = kDependencyProgrammatic};
    PYC_ON_DEVICE(device, cuGraphAddDependencies_v2, noted_.get(), &nodes_.back(), &node, &edge, 1);
  }
  nodes_.push_back(node);
  return {};
}

Status LaunchGraph::instantiate() {
  const Device& device = *noted_.device();
  PYC_TRY(device.enter());
  GraphExecHandle handle = nullptr;
  PYC_ON_DEVICE(device, cuGraphInstantiateWithFlags, &handle, noted_.get(), 0);
  graph_ = {noted_.device(), handle};
  return {};
}

Status LaunchGraph::update(size_t index, FunctionHandle function, LaunchShape shape,
                           std::span<const uint64_t> parameters) {
  const Device& device = *noted_.device();
  PYC_TRY(device.enter());
  ParameterAddresses addresses(parameters, shape.maps);
  const KernelNodeParams params = node_params(function, shape, addresses);
  PYC_ON_DEVICE(device, cuGraphExecKernelNodeSetParams_v2, graph_.get(), nodes_[index], &params);
  return {};
}

Result<float> elapsed_ms(const Event& begin, const Event& end) {
  const Device& device = *begin.device();
  PYC_TRY(device.enter());
  float ms = 0.0F;
  PYC_ON_DEVICE(device, cuEventElapsedTime, &ms, begin.get(), end.get());
  return ms;
}

}  // namespace pyc::cuda
