// A libcuda on the host, loaded by path in place of the driver. Device memory is the host's, filled
// with a pattern; work waits in its stream until someone synchronizes, so that a result nobody
// waited for is not there; modules are shared objects that fake_nvrtc.cpp made. Copies must lie
// within one allocation. A launch behind a programmatic edge finds memory as it was before the
// launch in front of it, until it waits. Any call can be made to fail: pyc_fake_fail.

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/driver_api.h"

namespace {

using namespace pyc::cuda;

using Work = std::function<int()>;

struct FakeModule {
  void* library;
};
struct FakeFunction {
  void (*run)();
  int parameters;
  int threads;
  int barriers;
  void (*launch)(void (*)(void*), void*, unsigned, unsigned, int);
  void (*at_wait)(void (*)(void*), void*);  // what its first wait is to do
  int maps = 0;                             // of the parameters, the last ones
  unsigned most_shared = 0;  // unasked; of a GPU 48 KiB less what the kernel declares itself
};
struct FakeNode {
  Work work;
  bool follows = false;   // the node in front of it
  bool is_early = false;  // by a programmatic edge
};
struct FakeGraph {
  std::vector<FakeNode> nodes;
};
using Contents = std::map<uint64_t, std::vector<char>>;  // of device memory, by address
struct FakeStream {
  std::vector<Work> waiting;
  bool capturing = false;
  FakeGraph noted;
};
struct FakeEvent {
  bool recorded = false;
  FakeStream* stream = nullptr;
};

struct State {
  std::recursive_mutex mutex;
  int64_t calls = 0;
  int64_t fail_at = -1;
  int fail_with = kErrorUnknown;
  int retained = 0;
  std::map<uint64_t, size_t> memory;  // by address
  std::set<void*> host;
  std::set<FakeModule*> modules;
  std::vector<std::unique_ptr<FakeFunction>> functions;  // for ever: their handles have no owner
  std::set<FakeStream*> streams;
  std::set<FakeEvent*> events;
  std::set<FakeGraph*> graphs;
  std::set<FakeGraph*> execs;
  int64_t launches = 0;
  int64_t early_launches = 0;     // before the one in front of them was over
  const Contents* due = nullptr;  // what such a launch finds from its wait on
  int64_t allocated = 0;          // bytes of device memory now
  int64_t allocations = 0;
  int64_t sent = 0;  // bytes from the host, and to it
  int64_t fetched = 0;
  int64_t waits = 0;
  std::string failed;
  pid_t process = 0;  // that initialised it
};

State& state() {
  static State s;
  return s;
}

// Counts the call and says whether it is the one that fails. As with the real driver, a process
// that was forked after cuInit has no device.
int begin_call(const char* name) {
  State& s = state();
  if (s.process == 0) s.process = getpid();
  if (s.process != getpid()) return kErrorNotInitialized;
  if (s.calls++ != s.fail_at) return kSuccess;
  s.failed = name;
  return s.fail_with;
}

bool is_allocated(uint64_t address, size_t bytes) {
  const auto& memory = state().memory;
  auto it = memory.upper_bound(address);
  if (it == memory.begin()) return false;
  --it;
  return address + bytes <= it->first + it->second;
}

int enqueue(StreamHandle handle, Work work) {
  auto* stream = reinterpret_cast<FakeStream*>(handle);
  if (!state().streams.contains(stream)) return kErrorInvalidValue;
  if (stream->capturing) {
    stream->noted.nodes.push_back({std::move(work), !stream->noted.nodes.empty(), false});
  } else {
    stream->waiting.push_back(std::move(work));
  }
  return kSuccess;
}

int drain(FakeStream* stream) {
  std::vector<Work> work = std::move(stream->waiting);
  stream->waiting.clear();
  for (const Work& w : work) {
    if (const int result = w(); result != kSuccess) return result;
  }
  return kSuccess;
}

// The bytes of an ELF file, which ends with its section headers.
size_t elf_size(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return header->e_shoff + size_t{header->e_shentsize} * header->e_shnum;
}

// One thread of a kernel: all parameters have 8 bytes and go where the ABI puts pointers. A callee
// that takes fewer does not look at the rest.
constexpr int kMostFakeParameters = 96;
struct Call {
  void (*run)();
  uint64_t p[kMostFakeParameters];
};

template <size_t... I>
void call_with(const Call& c, std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype(uint64_t(I))...)>(c.run)(c.p[I]...);
}
void run_thread(void* argument) {
  call_with(*static_cast<const Call*>(argument), std::make_index_sequence<kMostFakeParameters>());
}

Contents contents_now() {
  Contents out;
  for (const auto& [address, bytes] : state().memory) {
    const auto* begin = reinterpret_cast<const char*>(address);
    out[address].assign(begin, begin + bytes);
  }
  return out;
}
void put(const Contents& contents) {
  for (const auto& [address, bytes] : contents) {
    memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
  }
}
// Earlier launches are over: what they wrote is there.
void end_of_wait(void*) {
  if (state().due != nullptr) put(*state().due);
  state().due = nullptr;
}

int run_nodes(const std::vector<FakeNode>& nodes) {
  Contents before;  // the launch in front
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool remember = nodes[i].is_early || (i + 1 < nodes.size() && nodes[i + 1].is_early);
    Contents now = remember ? contents_now() : Contents{};
    if (nodes[i].is_early) {
      ++state().early_launches;
      put(before);
      state().due = &now;
    }
    const int result = nodes[i].work();
    state().due = nullptr;
    if (result != kSuccess) return result;
    before = std::move(now);
  }
  return kSuccess;
}

// A kernel's launch as work; its parameters are read now.
int launch_of(const KernelNodeParams& params, Work& work) {
  const auto* function = reinterpret_cast<const FakeFunction*>(params.function);
  const unsigned blocks = params.grid_x;
  const unsigned threads = params.block_x;
  if (blocks == 0 || threads == 0) return kErrorInvalidValue;
  if (threads > static_cast<unsigned>(function->threads)) return kErrorLaunchOutOfResources;
  if (params.shared_bytes > function->most_shared) return kErrorInvalidValue;
  Call call{function->run, {}};
  for (int i = 0; i < function->parameters; ++i) memcpy(&call.p[i], params.parameters[i], 8);
  std::vector<EncodedMap> maps(static_cast<size_t>(function->maps));
  const int first_map = function->parameters - function->maps;
  for (size_t i = 0; i < maps.size(); ++i) {
    memcpy(&maps[i], params.parameters[static_cast<size_t>(first_map) + i], sizeof(EncodedMap));
  }
  work = [=]() mutable {
    for (size_t i = 0; i < maps.size(); ++i) {
      call.p[static_cast<size_t>(first_map) + i] = reinterpret_cast<uint64_t>(&maps[i]);
    }
    ++state().launches;
    function->at_wait(end_of_wait, nullptr);
    function->launch(run_thread, &call, blocks, threads, function->barriers);
    return int{kSuccess};
  };
  return kSuccess;
}

}  // namespace

#define FAKE_BEGIN(name)                                                   \
  const std::lock_guard lock(state().mutex);                               \
  if (const int fault = begin_call(name); fault != kSuccess) return fault; \
  State& s = state();                                                      \
  (void)s;

extern "C" {

// The call with this number, from now 0, returns `result`; -1: none.
void pyc_fake_fail(int64_t number, int result) {
  State& s = state();
  s.fail_at = number < 0 ? -1 : s.calls + number;
  s.fail_with = result;
  s.failed.clear();
}
int64_t pyc_fake_calls() { return state().calls; }
// The call that was made to fail; "" if none has been yet.
const char* pyc_fake_failed() { return state().failed.c_str(); }
int64_t pyc_fake_launches() { return state().launches; }
int64_t pyc_fake_early_launches() { return state().early_launches; }
int64_t pyc_fake_allocated() { return state().allocated; }
int64_t pyc_fake_allocations() { return state().allocations; }
int64_t pyc_fake_sent() { return state().sent; }
int64_t pyc_fake_fetched() { return state().fetched; }
int64_t pyc_fake_waits() { return state().waits; }
// What was made and not given back.
int64_t pyc_fake_alive() {
  const State& s = state();
  return static_cast<int64_t>(s.memory.size() + s.host.size() + s.modules.size() +
                              s.streams.size() + s.events.size() + s.graphs.size() +
                              s.execs.size()) +
         s.retained;
}

int cuInit(unsigned) {
  FAKE_BEGIN("cuInit");
  return kSuccess;
}
int cuDriverGetVersion(int* version) {
  FAKE_BEGIN("cuDriverGetVersion");
  *version = 13000;
  return kSuccess;
}
int cuGetErrorName(int result, const char** name) {
  *name = result == kErrorOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "made to fail";
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  FAKE_BEGIN("cuDeviceGetCount");
  *count = 1;
  return kSuccess;
}
int cuDeviceGet(int* device, int) {
  FAKE_BEGIN("cuDeviceGet");
  *device = 0;
  return kSuccess;
}
int cuDeviceGetName(char* name, int size, int) {
  FAKE_BEGIN("cuDeviceGetName");
  strncpy(name, "fake", static_cast<size_t>(size));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  FAKE_BEGIN("cuDeviceGetAttribute");
  *value = attribute == kAttributeMajor ? 9 : attribute == kAttributeMinor ? 0 : 2;
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  FAKE_BEGIN("cuDeviceTotalMem_v2");
  *bytes = size_t{1} << 30;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(ContextHandle* context, int) {
  FAKE_BEGIN("cuDevicePrimaryCtxRetain");
  ++s.retained;
  *context = reinterpret_cast<ContextHandle>(&s);
  return kSuccess;
}
// What gives back never fails: the real one does only when the context is lost.
int cuDevicePrimaryCtxRelease_v2(int) {
  --state().retained;
  return kSuccess;
}
int cuCtxSetCurrent(ContextHandle context) {
  return context == nullptr ? kErrorInvalidValue : kSuccess;
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  FAKE_BEGIN("cuMemGetInfo_v2");
  *free_bytes = *total = size_t{1} << 30;
  return kSuccess;
}
int cuMemAlloc_v2(DeviceAddress* address, size_t bytes) {
  FAKE_BEGIN("cuMemAlloc_v2");
  if (bytes == 0) return kErrorInvalidValue;
  void* p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (p == nullptr) return kErrorOutOfMemory;
  memset(p, 0xCD, bytes);
  *address = reinterpret_cast<uint64_t>(p);
  s.memory[*address] = bytes;
  s.allocated += static_cast<int64_t>(bytes);
  ++s.allocations;
  return kSuccess;
}
int cuMemFree_v2(DeviceAddress address) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().memory.find(address);
  if (found == state().memory.end()) return kErrorInvalidValue;
  state().allocated -= static_cast<int64_t>(found->second);
  state().memory.erase(found);
  free(reinterpret_cast<void*>(address));
  return kSuccess;
}
int cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  FAKE_BEGIN("cuMemHostAlloc");
  *address = malloc(bytes);
  s.host.insert(*address);
  ++s.allocations;
  return kSuccess;
}
int cuMemFreeHost(void* address) {
  const std::lock_guard lock(state().mutex);
  if (state().host.erase(address) == 0) return kErrorInvalidValue;
  free(address);
  return kSuccess;
}
int cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, size_t bytes, StreamHandle stream) {
  FAKE_BEGIN("cuMemcpyHtoDAsync_v2");
  if (!is_allocated(to, bytes)) return kErrorInvalidValue;
  s.sent += static_cast<int64_t>(bytes);
  return enqueue(stream, [=] {
    if (bytes > 0) memcpy(reinterpret_cast<void*>(to), from, bytes);
    return int{kSuccess};
  });
}
int cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  FAKE_BEGIN("cuMemcpyDtoHAsync_v2");
  if (!is_allocated(from, bytes)) return kErrorInvalidValue;
  s.fetched += static_cast<int64_t>(bytes);
  return enqueue(stream, [=] {
    memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return int{kSuccess};
  });
}
int cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  FAKE_BEGIN("cuMemcpyDtoDAsync_v2");
  if (!is_allocated(from, bytes) || !is_allocated(to, bytes)) return kErrorInvalidValue;
  return enqueue(stream, [=] {
    memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return int{kSuccess};
  });
}
int cuMemsetD32Async(DeviceAddress to, unsigned word, size_t count, StreamHandle stream) {
  FAKE_BEGIN("cuMemsetD32Async");
  if (!is_allocated(to, count * 4)) return kErrorInvalidValue;
  return enqueue(stream, [=] {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned*>(to)[i] = word;
    return int{kSuccess};
  });
}
int cuModuleLoadData(ModuleHandle* module, const void* image) {
  FAKE_BEGIN("cuModuleLoadData");
  const size_t size = elf_size(image);
  if (size == 0) return kErrorInvalidImage;
  // A name of its own: the loader takes equal names for one library.
  char path[] = "/tmp/pyc_module_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) return kErrorOutOfMemory;
  const bool whole = write(file, image, size) == static_cast<ssize_t>(size);
  close(file);
  void* library = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  if (library == nullptr) return kErrorInvalidImage;
  auto* made = new FakeModule{library};
  s.modules.insert(made);
  *module = reinterpret_cast<ModuleHandle>(made);
  return kSuccess;
}
int cuModuleUnload(ModuleHandle handle) {
  const std::lock_guard lock(state().mutex);
  auto* module = reinterpret_cast<FakeModule*>(handle);
  if (state().modules.erase(module) == 0) return kErrorInvalidValue;
  dlclose(module->library);
  delete module;
  return kSuccess;
}
int cuModuleGetFunction(FunctionHandle* function, ModuleHandle handle, const char* name) {
  FAKE_BEGIN("cuModuleGetFunction");
  auto* module = reinterpret_cast<FakeModule*>(handle);
  const std::string shape_name = std::string(name) + "_shape";
  void* run = dlsym(module->library, name);
  const auto* shape = static_cast<const int*>(dlsym(module->library, shape_name.c_str()));
  const std::string maps_name = std::string(name) + "_maps";
  const auto* maps = static_cast<const int*>(dlsym(module->library, maps_name.c_str()));
  void* launch = dlsym(module->library, "pyc_model_launch");
  void* at_wait = dlsym(module->library, "pyc_model_at_wait");
  if (run == nullptr || shape == nullptr || launch == nullptr || at_wait == nullptr) {
    return kErrorNotFound;
  }
  if (shape[0] > kMostFakeParameters) return kErrorInvalidValue;
  s.functions.push_back(std::make_unique<FakeFunction>(FakeFunction{
      reinterpret_cast<void (*)()>(run), shape[0], shape[1], shape[2],
      reinterpret_cast<decltype(FakeFunction::launch)>(launch),
      reinterpret_cast<decltype(FakeFunction::at_wait)>(at_wait), maps == nullptr ? 0 : *maps}));
  *function = reinterpret_cast<FunctionHandle>(s.functions.back().get());
  return kSuccess;
}
int cuFuncSetAttribute(FunctionHandle handle, int attribute, int value) {
  FAKE_BEGIN("cuFuncSetAttribute");
  if (attribute == kAttributeWideClusters) return value == 1 ? kSuccess : kErrorInvalidValue;
  if (attribute != kAttributeMostShared || value < 0 || value > 227 << 10) {
    return kErrorInvalidValue;
  }
  reinterpret_cast<FakeFunction*>(handle)->most_shared = static_cast<unsigned>(value);
  return kSuccess;
}
int cuLaunchKernel(FunctionHandle handle, unsigned blocks, unsigned, unsigned, unsigned threads,
                   unsigned, unsigned, unsigned shared, StreamHandle stream, void** parameters,
                   void**) {
  FAKE_BEGIN("cuLaunchKernel");
  KernelNodeParams params;
  params.function = handle;
  params.grid_x = blocks;
  params.block_x = threads;
  params.shared_bytes = shared;
  params.parameters = parameters;
  Work work;
  if (const int result = launch_of(params, work); result != kSuccess) return result;
  return enqueue(stream, std::move(work));
}
// The model's own form of a map (host_model.h).
int cuTensorMapEncodeTiled(EncodedMap* map, int type, unsigned rank, void* begin,
                           const uint64_t* extents, const uint64_t* steps, const unsigned* box,
                           const unsigned* strides, int interleaved, int swizzle, int, int fill) {
  FAKE_BEGIN("cuTensorMapEncodeTiled");
  const auto address = reinterpret_cast<uint64_t>(begin);
  if (type != kMapHalves || rank != 2 || address % 16 != 0 || steps[0] % 16 != 0 ||
      steps[0] >> 40 != 0 || box[0] != 64 || box[1] == 0 || box[1] > 256 || strides[0] != 1 ||
      strides[1] != 1 || interleaved != kMapPlain || swizzle != kMapSwizzle128 ||
      fill != kMapZeros || !is_allocated(address, (extents[1] - 1) * steps[0] + extents[0] * 2)) {
    return kErrorInvalidValue;
  }
  *map = {{address, extents[0], extents[1], steps[0], box[1]}};
  return kSuccess;
}
int cuStreamCreate(StreamHandle* stream, unsigned) {
  FAKE_BEGIN("cuStreamCreate");
  auto* made = new FakeStream;
  s.streams.insert(made);
  *stream = reinterpret_cast<StreamHandle>(made);
  return kSuccess;
}
int cuStreamDestroy_v2(StreamHandle handle) {
  const std::lock_guard lock(state().mutex);
  auto* stream = reinterpret_cast<FakeStream*>(handle);
  if (state().streams.erase(stream) == 0) return kErrorInvalidValue;
  delete stream;  // what waits in it is never done
  return kSuccess;
}
int cuStreamSynchronize(StreamHandle handle) {
  FAKE_BEGIN("cuStreamSynchronize");
  ++s.waits;
  return drain(reinterpret_cast<FakeStream*>(handle));
}
int cuStreamWaitEvent(StreamHandle, EventHandle event, unsigned) {
  FAKE_BEGIN("cuStreamWaitEvent");
  auto* e = reinterpret_cast<FakeEvent*>(event);
  return e->stream == nullptr ? int{kSuccess} : drain(e->stream);
}
int cuStreamBeginCapture_v2(StreamHandle handle, int) {
  FAKE_BEGIN("cuStreamBeginCapture_v2");
  auto* stream = reinterpret_cast<FakeStream*>(handle);
  if (stream->capturing) return kErrorInvalidValue;
  stream->capturing = true;
  return kSuccess;
}
int cuStreamEndCapture(StreamHandle handle, GraphHandle* graph) {
  auto* stream = reinterpret_cast<FakeStream*>(handle);
  const bool was = stream->capturing;
  stream->capturing = false;
  FakeGraph noted = std::move(stream->noted);
  stream->noted = {};
  FAKE_BEGIN("cuStreamEndCapture");
  if (!was) return kErrorInvalidValue;
  auto* made = new FakeGraph(std::move(noted));
  s.graphs.insert(made);
  *graph = reinterpret_cast<GraphHandle>(made);
  return kSuccess;
}
int cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, unsigned long long) {
  FAKE_BEGIN("cuGraphInstantiateWithFlags");
  const auto& nodes = reinterpret_cast<const FakeGraph*>(graph)->nodes;
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (!nodes[i].follows) return kErrorInvalidValue;  // launches here have an order
  }
  auto* made = new FakeGraph{nodes};
  s.execs.insert(made);
  *exec = reinterpret_cast<GraphExecHandle>(made);
  return kSuccess;
}
int cuGraphCreate(GraphHandle* graph, unsigned) {
  FAKE_BEGIN("cuGraphCreate");
  auto* made = new FakeGraph;
  s.graphs.insert(made);
  *graph = reinterpret_cast<GraphHandle>(made);
  return kSuccess;
}
// A node is its number, from 1. Nodes become a chain: each depends on the last one.
int cuGraphAddKernelNode_v2(GraphNodeHandle* node, GraphHandle handle,
                            const GraphNodeHandle* before, size_t count,
                            const KernelNodeParams* params) {
  FAKE_BEGIN("cuGraphAddKernelNode_v2");
  auto* graph = reinterpret_cast<FakeGraph*>(handle);
  if (!s.graphs.contains(graph)) return kErrorInvalidValue;
  const size_t last = count == 0 ? 0 : reinterpret_cast<size_t>(before[0]);
  if (count > 1 || (count == 1 && last != graph->nodes.size())) return kErrorInvalidValue;
  Work work;
  if (const int result = launch_of(*params, work); result != kSuccess) return result;
  graph->nodes.push_back({std::move(work), count == 1, false});
  *node = reinterpret_cast<GraphNodeHandle>(graph->nodes.size());
  return kSuccess;
}
int cuGraphAddDependencies_v2(GraphHandle handle, const GraphNodeHandle* from,
                              const GraphNodeHandle* to, const GraphEdge* edges, size_t count) {
  FAKE_BEGIN("cuGraphAddDependencies_v2");
  auto* graph = reinterpret_cast<FakeGraph*>(handle);
  if (!s.graphs.contains(graph)) return kErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = reinterpret_cast<size_t>(from[i]);
    const auto end = reinterpret_cast<size_t>(to[i]);
    const bool is_early = edges != nullptr && edges[i].type == kDependencyProgrammatic;
    if (is_early != (edges != nullptr && edges[i].from_port == kPortProgrammatic)) {
      return kErrorInvalidValue;
    }
    if (begin < 1 || end != begin + 1 || end > graph->nodes.size()) return kErrorInvalidValue;
    graph->nodes[end - 1].follows = true;
    graph->nodes[end - 1].is_early = is_early;
  }
  return kSuccess;
}
int cuGraphExecKernelNodeSetParams_v2(GraphExecHandle handle, GraphNodeHandle node,
                                      const KernelNodeParams* params) {
  FAKE_BEGIN("cuGraphExecKernelNodeSetParams_v2");
  auto* graph = reinterpret_cast<FakeGraph*>(handle);
  const auto number = reinterpret_cast<size_t>(node);
  if (!s.execs.contains(graph) || number < 1 || number > graph->nodes.size()) {
    return kErrorInvalidValue;
  }
  return launch_of(*params, graph->nodes[number - 1].work);
}
int cuGraphDestroy(GraphHandle handle) {
  const std::lock_guard lock(state().mutex);
  auto* graph = reinterpret_cast<FakeGraph*>(handle);
  if (state().graphs.erase(graph) == 0) return kErrorInvalidValue;
  delete graph;
  return kSuccess;
}
int cuGraphExecDestroy(GraphExecHandle handle) {
  const std::lock_guard lock(state().mutex);
  auto* graph = reinterpret_cast<FakeGraph*>(handle);
  if (state().execs.erase(graph) == 0) return kErrorInvalidValue;
  delete graph;
  return kSuccess;
}
int cuGraphLaunch(GraphExecHandle handle, StreamHandle stream) {
  FAKE_BEGIN("cuGraphLaunch");
  return enqueue(stream, [nodes = reinterpret_cast<const FakeGraph*>(handle)->nodes] {
    return run_nodes(nodes);
  });
}
int cuEventCreate(EventHandle* event, unsigned) {
  FAKE_BEGIN("cuEventCreate");
  auto* made = new FakeEvent;
  s.events.insert(made);
  *event = reinterpret_cast<EventHandle>(made);
  return kSuccess;
}
int cuEventDestroy_v2(EventHandle handle) {
  const std::lock_guard lock(state().mutex);
  auto* event = reinterpret_cast<FakeEvent*>(handle);
  if (state().events.erase(event) == 0) return kErrorInvalidValue;
  delete event;
  return kSuccess;
}
int cuEventRecord(EventHandle handle, StreamHandle stream) {
  FAKE_BEGIN("cuEventRecord");
  auto* event = reinterpret_cast<FakeEvent*>(handle);
  event->recorded = true;
  event->stream = reinterpret_cast<FakeStream*>(stream);
  return kSuccess;
}
int cuEventSynchronize(EventHandle handle) {
  FAKE_BEGIN("cuEventSynchronize");
  return drain(reinterpret_cast<FakeEvent*>(handle)->stream);
}
int cuEventElapsedTime(float* ms, EventHandle begin, EventHandle end) {
  FAKE_BEGIN("cuEventElapsedTime");
  const bool both =
      reinterpret_cast<FakeEvent*>(begin)->recorded && reinterpret_cast<FakeEvent*>(end)->recorded;
  *ms = 1.0F;
  return both ? int{kSuccess} : int{kErrorInvalidValue};
}

}  // extern "C"
