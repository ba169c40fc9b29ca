// A libcuda that counts what passes through it: memory, copies, launches, and on request the
// device's own time of each graph. Linked with the real one, where dlsym finds all that is not
// defined here; PyC takes it by PYC_LIBCUDA (gpu_accounts.py builds and reads it).

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace {

struct Counts {
  int64_t allocated = 0;  // bytes now, as they were asked for
  int64_t most_allocated = 0;
  int64_t allocations = 0;
  int64_t sent = 0;
  int64_t fetched = 0;
  int64_t copies = 0;
  int64_t graphs = 0;    // launched
  int64_t launches = 0;  // kernels of them, and those launched alone
  int64_t waits = 0;
  int64_t device_ns = 0;  // of the last graph, from event to event; -1 if nobody asked
} counts;

std::map<uint64_t, size_t> memory;
std::map<void*, int64_t> nodes;  // kernels of a graph, and of what was made of it
bool is_timed = false;
void* events[2] = {};
void* timed_stream = nullptr;

template <class... Parameters>
int real(const char* name, Parameters... parameters) {
  static void* const library = dlopen(PYC_COUNTED, RTLD_NOW);
  return reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name))(parameters...);
}

}  // namespace

extern "C" {

void pyc_counts_read(int64_t* out, int count) {
  static_assert(sizeof(Counts) == 10 * sizeof(int64_t));
  std::copy_n(reinterpret_cast<const int64_t*>(&counts), std::min(count, 10), out);
}

void pyc_counts_time(int on) { is_timed = on != 0; }

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  const int result = real("cuMemAlloc_v2", address, bytes);
  if (result != 0) return result;
  memory[*address] = bytes;
  ++counts.allocations;
  counts.allocated += static_cast<int64_t>(bytes);
  counts.most_allocated = std::max(counts.most_allocated, counts.allocated);
  return 0;
}

int cuMemFree_v2(uint64_t address) {
  counts.allocated -= static_cast<int64_t>(memory[address]);
  memory.erase(address);
  return real("cuMemFree_v2", address);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  counts.sent += static_cast<int64_t>(bytes);
  ++counts.copies;
  return real("cuMemcpyHtoDAsync_v2", to, from, bytes, stream);
}

int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  counts.fetched += static_cast<int64_t>(bytes);
  ++counts.copies;
  return real("cuMemcpyDtoHAsync_v2", to, from, bytes, stream);
}

int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** parameters, void** extra) {
  ++counts.launches;
  return real("cuLaunchKernel", function, x, y, z, bx, by, bz, shared, stream, parameters, extra);
}

int cuGraphAddKernelNode_v2(void** node, void* graph, void* const* before, size_t count,
                            const void* params) {
  ++nodes[graph];
  return real("cuGraphAddKernelNode_v2", node, graph, before, count, params);
}

int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  const int result = real("cuGraphInstantiateWithFlags", exec, graph, flags);
  if (result == 0) nodes[*exec] = nodes[graph];
  return result;
}

int cuGraphLaunch(void* exec, void* stream) {
  ++counts.graphs;
  counts.launches += nodes[exec];
  if (!is_timed) return real("cuGraphLaunch", exec, stream);
  for (void*& event : events) {
    if (event == nullptr) real("cuEventCreate", &event, 0U);
  }
  real("cuEventRecord", events[0], stream);
  const int result = real("cuGraphLaunch", exec, stream);
  real("cuEventRecord", events[1], stream);
  timed_stream = stream;
  return result;
}

int cuStreamSynchronize(void* stream) {
  ++counts.waits;
  const int result = real("cuStreamSynchronize", stream);
  float ms = 0;
  counts.device_ns = -1;
  if (is_timed && result == 0 && stream == timed_stream &&
      real("cuEventElapsedTime", &ms, events[0], events[1]) == 0) {
    counts.device_ns = static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  }
  return result;
}

}  // extern "C"
