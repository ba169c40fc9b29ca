// A block of CUDA threads on the host: what text for a GPU is compiled with where there is none.
// Threads of a block are fibers that switch at barriers and shuffles only, in the order of their
// numbers; a kernel that says it has none runs as a loop. Whole blocks run one after the other.
//
// Included in front of the text (g++ -include); everything is in one unit, which becomes a shared
// object that fake_cuda.cpp loads as a module.

#ifndef PYC_HOST_MODEL_H_
#define PYC_HOST_MODEL_H_

#ifdef _FORTIFY_SOURCE
#undef _FORTIFY_SOURCE  // its longjmp takes another stack for a broken one
#endif

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <memory>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define PYC_FENCED 1
#define PYC_KERNEL(name, parameters, threads, barriers, ...)              \
  extern "C" const int name##_shape[3] = {parameters, threads, barriers}; \
  extern "C" void name(__VA_ARGS__)

namespace pyc_model {

struct Index {
  unsigned x;
};

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 96 * 1024;

struct Fiber {
  std::unique_ptr<char[]> stack;
  ucontext_t first;
  jmp_buf at;
  bool started = false;
  bool done = false;
  uint64_t waits = 0;       // barriers of the block passed
  uint64_t warp_waits = 0;  // barriers and shuffles of the warp passed
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<uint64_t> slots;  // of shuffles, two for each thread in turn
  unsigned current = 0;
  jmp_buf scheduler;
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
  bool stuck = false;
};

static Block block;
static unsigned threads_of_block = 0;

}  // namespace pyc_model

static pyc_model::Index threadIdx, blockIdx, gridDim;

namespace pyc_model {

static void switch_out() {
  Fiber& self = block.fibers[block.current];
  if (_setjmp(self.at) == 0) _longjmp(block.scheduler, 1);
}

static void enter() {
  block.run(block.argument);
  block.fibers[block.current].done = true;
  _longjmp(block.scheduler, 1);
}

// Whether all threads from `first` to `end` have passed as many waits as this one.
template <class Count>
static bool all_there(unsigned first, unsigned end, uint64_t mine, Count count) {
  for (unsigned i = first; i < end; ++i) {
    if (!block.fibers[i].done && count(block.fibers[i]) < mine) return false;
  }
  return true;
}

template <class Count>
static void wait(unsigned first, unsigned end, Count count) {
  const uint64_t mine = ++count(block.fibers[block.current]);
  while (!all_there(first, end, mine, count)) switch_out();
}

static unsigned warp_begin() { return threadIdx.x / kWarp * kWarp; }
static unsigned warp_end() {
  const unsigned end = warp_begin() + kWarp;
  return end < threads_of_block ? end : threads_of_block;
}
static void wait_for_warp() {
  wait(warp_begin(), warp_end(), [](Fiber& f) -> uint64_t& { return f.warp_waits; });
}

// The value that thread `from` of this warp gives, or the thread's own where there is none.
static unsigned shuffled(unsigned x, unsigned from) {
  const unsigned me = threadIdx.x;
  const size_t turn = block.fibers[block.current].warp_waits % 2;
  block.slots[2 * me + turn] = x;
  wait_for_warp();
  const unsigned source = warp_begin() + from;
  return from < kWarp && source < warp_end() ? (unsigned)block.slots[2 * source + turn] : x;
}

// Runs the fibers in turn until all are done.
static void run_fibers() {
  for (;;) {
    bool any = false;
    for (volatile unsigned i = 0; i < threads_of_block; i = i + 1) {
      Fiber& f = block.fibers[i];
      if (f.done) continue;
      any = true;
      block.current = i;
      threadIdx.x = i;
      if (_setjmp(block.scheduler) != 0) continue;
      if (f.started) _longjmp(f.at, 1);
      f.started = true;
      setcontext(&f.first);
    }
    if (!any) return;
  }
}

static void prepare(unsigned threads) {
  threads_of_block = threads;
  block.slots.assign(2 * threads, 0);
  if (block.fibers.size() < threads) block.fibers = std::vector<Fiber>(threads);
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& f = block.fibers[i];
    if (!f.stack) f.stack.reset(new char[kStack]);
    f.started = f.done = false;
    f.waits = f.warp_waits = 0;
    getcontext(&f.first);
    f.first.uc_stack.ss_sp = f.stack.get();
    f.first.uc_stack.ss_size = kStack;
    f.first.uc_link = nullptr;
    makecontext(&f.first, enter, 0);
  }
}

}  // namespace pyc_model

// Runs a kernel: `run(argument)` is one thread of it.
extern "C" void pyc_model_launch(void (*run)(void*), void* argument, unsigned blocks,
                                 unsigned threads, int barriers) {
  using namespace pyc_model;
  gridDim.x = blocks;
  block.run = run;
  block.argument = argument;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    if (barriers != 0) {
      prepare(threads);
      run_fibers();
      continue;
    }
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) run(argument);
  }
}

static inline void __syncthreads() {
  using namespace pyc_model;
  wait(0, threads_of_block, [](Fiber& f) -> uint64_t& { return f.waits; });
}
static inline void __syncwarp(unsigned) { pyc_model::wait_for_warp(); }
static inline unsigned __shfl_down_sync(unsigned, unsigned x, unsigned by) {
  return pyc_model::shuffled(x, threadIdx.x % pyc_model::kWarp + by);
}
static inline unsigned __shfl_sync(unsigned, unsigned x, int from) {
  return pyc_model::shuffled(x, (unsigned)from);
}
static inline void atomicMin(unsigned* word, unsigned value) {
  if (value < *word) *word = value;
}

template <class To, class From>
static inline To pyc_model_bits(From x) {
  To y;
  static_assert(sizeof(To) == sizeof(From));
  memcpy(&y, &x, sizeof(To));
  return y;
}
static inline unsigned __float_as_uint(float x) { return pyc_model_bits<unsigned>(x); }
static inline long long __double_as_longlong(double x) { return pyc_model_bits<long long>(x); }
static inline float __uint_as_float(unsigned x) { return pyc_model_bits<float>(x); }
static inline double __longlong_as_double(long long x) { return pyc_model_bits<double>(x); }

// Compiled with -ffp-contract=off: one rounding each.
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double a) { return sqrt(a); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return (double)x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

// What the text has as PTX.
static inline float pyc_min_f32(float a, float b) {
  if (a != a || b != b) return pyc_model_bits<float>(0x7fffffffu);
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}
static inline float pyc_max_f32(float a, float b) {
  if (a != a || b != b) return pyc_model_bits<float>(0x7fffffffu);
  if (a == b) return signbit(a) ? b : a;
  return a < b ? b : a;
}
// Rounds a float to a format of 16 bits with so many bits of fraction.
static inline unsigned short pyc_model_half(float x, int fraction, int least, unsigned infinity) {
  const unsigned sign = signbit(x) ? 0x8000u : 0;
  if (x != x) return 0x7fff;
  const double m = fabs((double)x);
  if (isinf(m)) return (unsigned short)(sign | infinity);
  int exponent = 0;
  frexp(m, &exponent);
  const int leading = m == 0 || exponent - 1 < least ? least : exponent - 1;
  const double units = nearbyint(ldexp(m, fraction - leading));
  const double rounded = ldexp(units, leading - fraction);
  const double beyond = ldexp(1.0, (int)(infinity >> fraction) - 1 + least);
  if (rounded >= beyond) return (unsigned short)(sign | infinity);
  const unsigned code = (unsigned)units + ((unsigned)(leading - least) << fraction);
  return (unsigned short)(sign | code);
}
static inline unsigned short pyc_f32_to_f16_raw(float x) {
  return pyc_model_half(x, 10, -14, 0x7c00);
}
static inline unsigned short pyc_f32_to_bf16_raw(float x) {
  return pyc_model_half(x, 7, -126, 0x7f80);
}
static inline float pyc_f16_to_f32_raw(unsigned short x) {
  const int field = x >> 10 & 31;
  const int part = x & 1023;
  double m = field == 0 ? ldexp((double)part, -24) : ldexp((double)(part + 1024), field - 25);
  if (field == 31) m = part != 0 ? (double)NAN : (double)INFINITY;
  return (float)(x & 0x8000 ? -m : m);
}

#endif
