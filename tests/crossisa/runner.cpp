// Runs one exported model on the machine it was compiled for: no PyC, no LLVM, only its kernels.
// Built with -DMODEL_INC="<model>.inc"; arguments: the data file and the file for the outputs.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/kernel_abi.h"

struct ref {
  int where;
  int index;
  int64_t offset;
};
struct step {
  pyc_kernel_fn fn;
  const ref* refs;
  int count;
  int64_t parallel;
};

#include MODEL_INC

namespace {

enum Where { kInput, kOutput, kParameter, kArena, kScratch };
constexpr int kThreads = 3;  // parts a step is cut into; they run one after another here
constexpr int kMaxBuffers = 64;
constexpr int kMaxTensors = 1024;

char* take(int64_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, static_cast<size_t>(bytes + 64)) != 0) std::exit(2);
  std::memset(p, 0xCB, static_cast<size_t>(bytes + 64));
  return static_cast<char*>(p);
}

int read_all(FILE* f, const int64_t* sizes, char** out) {
  int n = 0;
  for (; sizes[n] >= 0; ++n) {
    const int64_t padded = (sizes[n] + 63) / 64 * 64;
    out[n] = take(padded);
    if (std::fread(out[n], 1, static_cast<size_t>(padded), f) != static_cast<size_t>(padded)) {
      std::exit(3);
    }
  }
  return n;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  static char* inputs[kMaxTensors];
  static char* parameters[kMaxTensors];
  static char* outputs[kMaxTensors];
  FILE* f = std::fopen(argv[1], "rb");
  if (f == nullptr) return 1;
  read_all(f, input_bytes, inputs);
  read_all(f, parameter_bytes, parameters);
  std::fclose(f);
  int count = 0;
  for (; output_bytes[count] >= 0; ++count) outputs[count] = take(output_bytes[count]);
  char* arena = take(kArenaBytes);
  char* scratch[kThreads];
  for (char*& s : scratch) s = take(kScratchBytes);

  for (const step& s : steps) {
    void* buffers[kMaxBuffers] = {};
    for (int i = 0; i < s.count; ++i) {
      const ref& r = s.refs[i];
      if (r.where == kInput) buffers[i] = inputs[r.index] + r.offset;
      if (r.where == kOutput) buffers[i] = outputs[r.index] + r.offset;
      if (r.where == kParameter) buffers[i] = parameters[r.index] + r.offset;
      if (r.where == kArena) buffers[i] = arena + r.offset;
    }
    int32_t fault = 0;
    for (int t = 0; t < kThreads; ++t) {
      const pyc_kernel_args args = {buffers, nullptr, scratch[t], nullptr, &fault, t, kThreads};
      const int64_t begin = s.parallel * t / kThreads;
      const int64_t end = s.parallel * (t + 1) / kThreads;
      if (begin < end) s.fn(&args, begin, end);
    }
    if (fault != 0) return 4;
  }
  f = std::fopen(argv[2], "wb");
  if (f == nullptr) return 5;
  for (int i = 0; i < count; ++i) {
    std::fwrite(outputs[i], 1, static_cast<size_t>(output_bytes[i]), f);
  }
  return std::fclose(f);
}
