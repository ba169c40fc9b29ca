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

#include <deque>
#include <map>
#include <memory>
#include <utility>
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
#define PYC_KERNEL_BESIDE(blocks, ...) PYC_KERNEL(__VA_ARGS__)
#define PYC_KERNEL_CLUSTER(blocks, ...) PYC_KERNEL(__VA_ARGS__)

namespace pyc_model {

struct Index {
  unsigned x;
};

constexpr unsigned kWarp = 32;
constexpr size_t kStack = 96 * 1024;
constexpr unsigned kMostTogether = 16;  // blocks of a cluster

// Work that a thread has begun and that ends as late as it may: when the thread waits for it.
template <class Item>
struct Begun {
  std::vector<Item> open;
  std::deque<std::vector<Item>> groups;

  void clear() {
    open.clear();
    groups.clear();
  }
  void commit() {
    groups.push_back(std::move(open));
    open.clear();
  }
  template <class Finish>
  void wait(size_t left, Finish finish) {
    for (; groups.size() > left; groups.pop_front()) {
      for (const Item& item : groups.front()) finish(item);
    }
  }
};
struct Copy {
  unsigned to;
  const void* from;
  unsigned bytes;
};
// What a map brings at once: rows of 128 bytes to a place of one block.
struct Box {
  char* to;
  const unsigned long long* map;
  int column, row;
};
// Bytes that leave shared memory.
struct Send {
  void* to;
  const void* from;
  unsigned bytes;
};
struct Multiply {
  float* d;
  uint64_t a, b;
  int keep, columns, format, a_along_rows, b_along_rows;
  // Of a product whose a is in registers: this thread's, which are read when it is done, and those
  // of the four threads that share its rows, as they were when it began.
  const unsigned* own = nullptr;
  std::vector<unsigned> quad = {};
};
// What threads wait for until so many of them have arrived, again and again. Arrivals that come
// with a thread's copies happen, and the copies with them, when someone waits.
struct Gate {
  unsigned count = 0;
  unsigned missing = 0;
  unsigned turn = 0;
  std::vector<std::vector<Copy>> copied;
  int64_t bytes = 0;  // that a turn ends with and are not there yet; they may come before it
  std::vector<Box> boxes = {};

  void arrive() {
    --missing;
    end_turn();
  }
  void end_turn() {
    if (missing != 0 || bytes != 0) return;
    missing = count;
    turn ^= 1;
  }
};

struct Fiber {
  std::unique_ptr<char[]> stack;
  ucontext_t first;
  jmp_buf at;
  bool started = false;
  bool done = false;
  uint64_t waits = 0;       // barriers of the block passed
  uint64_t warp_waits = 0;  // barriers and shuffles of the warp passed
  uint64_t cluster_waits = 0;
  uint64_t team_waits = 0;
  std::vector<Copy> copies;  // that no gate knows of yet
  Begun<Multiply> products;
  Begun<Send> sends;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<uint64_t> slots;  // of shuffles, two for each thread in turn
  std::map<unsigned, Gate> gates[kMostTogether];
  unsigned current = 0;
  jmp_buf scheduler;
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
  bool stuck = false;
};

static Block block;
static unsigned threads_of_block = 0;
static void (*at_wait)(void*) = nullptr;  // until a launch's first thread waits for earlier ones
static void* at_wait_argument = nullptr;
static unsigned blocks_together = 1;

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

// Which block of the cluster runs, and its first fiber.
static unsigned rank() { return block.current / threads_of_block; }
static unsigned block_begin() { return rank() * threads_of_block; }
static unsigned warp_begin() { return block_begin() + threadIdx.x / kWarp * kWarp; }
static unsigned warp_end() {
  const unsigned end = warp_begin() + kWarp;
  const unsigned block_end = block_begin() + threads_of_block;
  return end < block_end ? end : block_end;
}
static void wait_for_warp() {
  wait(warp_begin(), warp_end(), [](Fiber& f) -> uint64_t& { return f.warp_waits; });
}

// The value that thread `from` of this warp gives, or the thread's own where there is none.
static unsigned shuffled(unsigned x, unsigned from) {
  const unsigned me = block.current;
  const size_t turn = block.fibers[block.current].warp_waits % 2;
  block.slots[2 * me + turn] = x;
  wait_for_warp();
  const unsigned source = warp_begin() + from;
  return from < kWarp && source < warp_end() ? (unsigned)block.slots[2 * source + turn] : x;
}

// Runs the fibers in turn until all are done.
static void run_fibers(unsigned first_block) {
  for (;;) {
    bool any = false;
    for (volatile unsigned i = 0; i < threads_of_block * blocks_together; i = i + 1) {
      Fiber& f = block.fibers[i];
      if (f.done) continue;
      any = true;
      block.current = i;
      threadIdx.x = i % threads_of_block;
      blockIdx.x = first_block + i / threads_of_block;
      if (_setjmp(block.scheduler) != 0) continue;
      if (f.started) _longjmp(f.at, 1);
      f.started = true;
      setcontext(&f.first);
    }
    if (!any) return;
  }
}

static void prepare(unsigned threads, unsigned together) {
  threads_of_block = threads;
  blocks_together = together;
  threads *= together;
  block.slots.assign(2 * threads, 0);
  for (auto& gates : block.gates) gates.clear();
  if (block.fibers.size() < threads) block.fibers = std::vector<Fiber>(threads);
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& f = block.fibers[i];
    if (!f.stack) f.stack.reset(new char[kStack]);
    f.started = f.done = false;
    f.waits = f.warp_waits = f.cluster_waits = f.team_waits = 0;
    f.copies.clear();
    f.products.clear();
    f.sends.clear();
    getcontext(&f.first);
    f.first.uc_stack.ss_sp = f.stack.get();
    f.first.uc_stack.ss_size = kStack;
    f.first.uc_link = nullptr;
    makecontext(&f.first, enter, 0);
  }
}

}  // namespace pyc_model

// Runs a kernel: `run(argument)` is one thread of it. `together`: of how many blocks the threads
// run together; 0: threads run one after the other.
extern "C" void pyc_model_launch(void (*run)(void*), void* argument, unsigned blocks,
                                 unsigned threads, int together) {
  using namespace pyc_model;
  gridDim.x = blocks;
  block.run = run;
  block.argument = argument;
  for (unsigned first = 0; first < blocks; first += together != 0 ? together : 1) {
    if (together != 0) {
      prepare(threads, (unsigned)together);
      run_fibers(first);
      continue;
    }
    blockIdx.x = first;
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) run(argument);
  }
}

// What the next launch does when its first thread waits for earlier launches.
extern "C" void pyc_model_at_wait(void (*call)(void*), void* argument) {
  pyc_model::at_wait = call;
  pyc_model::at_wait_argument = argument;
}
static inline void pyc_wait_for_earlier() {
  if (pyc_model::at_wait == nullptr) return;
  void (*call)(void*) = pyc_model::at_wait;
  pyc_model::at_wait = nullptr;
  call(pyc_model::at_wait_argument);
}

static inline void __syncthreads() {
  using namespace pyc_model;
  wait(block_begin(), block_begin() + threads_of_block,
       [](Fiber& f) -> uint64_t& { return f.waits; });
}
static inline void __syncwarp(unsigned) { pyc_model::wait_for_warp(); }
static inline unsigned __shfl_down_sync(unsigned, unsigned x, unsigned by) {
  return pyc_model::shuffled(x, threadIdx.x % pyc_model::kWarp + by);
}
static inline unsigned __shfl_xor_sync(unsigned, unsigned x, int by) {
  return pyc_model::shuffled(x, threadIdx.x % pyc_model::kWarp ^ (unsigned)by);
}
static inline unsigned __shfl_sync(unsigned, unsigned x, int from) {
  return pyc_model::shuffled(x, (unsigned)from);
}
static inline unsigned pyc_match_u32(unsigned x) {
  using namespace pyc_model;
  const size_t turn = block.fibers[block.current].warp_waits % 2;
  block.slots[2 * block.current + turn] = x;
  wait_for_warp();
  unsigned same = 0;
  for (unsigned i = warp_begin(); i < warp_end(); ++i) {
    if (block.slots[2 * i + turn] == x) same |= 1u << (i - warp_begin());
  }
  return same;
}
// All threads of a warp have what becomes of their words, one after the other.
template <class Join>
static inline unsigned pyc_model_of_warp(unsigned x, Join join) {
  using namespace pyc_model;
  const size_t turn = block.fibers[block.current].warp_waits % 2;
  block.slots[2 * block.current + turn] = x;
  wait_for_warp();
  unsigned y = x;
  for (unsigned i = warp_begin(); i < warp_end(); ++i)
    y = join(y, (unsigned)block.slots[2 * i + turn]);
  return y;
}
static inline int pyc_warp_max_i32(int x) {
  return (int)pyc_model_of_warp((unsigned)x,
                                [](unsigned a, unsigned b) { return (int)a < (int)b ? b : a; });
}
static inline bool pyc_warp_all(bool x) {
  return pyc_model_of_warp(x, [](unsigned a, unsigned b) { return a & b; }) != 0;
}
static inline void pyc_read_near(const void* at, unsigned& a, unsigned& b, unsigned& c,
                                 unsigned& d) {
  unsigned words[4];
  memcpy(words, at, sizeof(words));
  a = words[0], b = words[1], c = words[2], d = words[3];
}
static inline int pyc_bit_count(unsigned x) { return __builtin_popcount(x); }
static inline unsigned pyc_unknown_word(unsigned x) { return x; }
// Reads what is said to be read, so that a place outside the buffer is found.
static inline void pyc_fetch_ahead(const void* from, unsigned bytes) {
  if ((unsigned long long)from % 16 != 0 || bytes % 16 != 0) __builtin_trap();
  (void)*(const volatile char*)from;
  (void)*((const volatile char*)from + bytes - 1);
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
// A NaN becomes 0.
static inline float pyc_fma_saturated_f32(float a, float b, float c) {
  const float x = fmaf(a, b, c);
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
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
static inline unsigned pyc_pair_to_f16_raw(float a, float b) {
  return pyc_f32_to_f16_raw(a) | (unsigned)pyc_f32_to_f16_raw(b) << 16;
}
static inline unsigned pyc_pair_to_bf16_raw(float a, float b) {
  return pyc_f32_to_bf16_raw(a) | (unsigned)pyc_f32_to_bf16_raw(b) << 16;
}
static inline unsigned pyc_min_pair_i16(unsigned a, unsigned b) {
  const auto least = [](unsigned x, unsigned y) {
    return (unsigned)(unsigned short)((short)x < (short)y ? x : y);
  };
  return least(a, b) | least(a >> 16, b >> 16) << 16;
}
static inline float pyc_f16_to_f32_raw(unsigned short x) {
  const int field = x >> 10 & 31;
  const int part = x & 1023;
  double m = field == 0 ? ldexp((double)part, -24) : ldexp((double)(part + 1024), field - 25);
  if (field == 31) m = part != 0 ? (double)NAN : (double)INFINITY;
  return (float)(x & 0x8000 ? -m : m);
}

// The larger or the smaller of each half; a NaN is the canonical one.
template <class Pick>
static inline unsigned pyc_model_pairs(unsigned a, unsigned b, Pick pick) {
  return pick((unsigned short)a, (unsigned short)b) |
         (unsigned)pick((unsigned short)(a >> 16), (unsigned short)(b >> 16)) << 16;
}
static inline float pyc_model_bf16(unsigned short x) {
  return pyc_model_bits<float>((unsigned)x << 16);
}
#define PYC_MODEL_PAIRS(name, least, number)                                 \
  static inline unsigned pyc_##least##_pair_##name(unsigned a, unsigned b) { \
    return pyc_model_pairs(a, b, [](unsigned short x, unsigned short y) {    \
      const float z = pyc_##least##_f32(number(x), number(y));               \
      return z != z ? (unsigned short)0x7fff : pyc_f32_to_##name##_raw(z);   \
    });                                                                      \
  }
PYC_MODEL_PAIRS(f16, max, pyc_f16_to_f32_raw)
PYC_MODEL_PAIRS(f16, min, pyc_f16_to_f32_raw)
PYC_MODEL_PAIRS(bf16, max, pyc_model_bf16)
PYC_MODEL_PAIRS(bf16, min, pyc_model_bf16)

// What kernels with wgmma have as PTX (generators/wgmma_prelude.h).
alignas(1024) static char pyc_model_shared[pyc_model::kMostTogether][227 << 10];
#define pyc_shared (pyc_model_shared[pyc_model::rank()])

static inline void pyc_cluster_barrier() {
  using namespace pyc_model;
  wait(0, threads_of_block * blocks_together,
       [](Fiber& f) -> uint64_t& { return f.cluster_waits; });
}
static inline void pyc_together_arrive() {
  ++pyc_model::block.fibers[pyc_model::block.current].cluster_waits;
}
static inline void pyc_together_wait() {
  using namespace pyc_model;
  const auto count = [](Fiber& f) -> uint64_t& { return f.cluster_waits; };
  const uint64_t mine = count(block.fibers[block.current]);
  while (!all_there(0, threads_of_block * blocks_together, mine, count)) switch_out();
}
#define PYC_SHARED_MORE
#define PYC_SHARED_EACH(type, name, count)                 \
  static type name##_all[pyc_model::kMostTogether][count]; \
  type* const name = name##_all[pyc_model::rank()]
#define PYC_SHARED_TEAMS(type, name, count, teams, team)         \
  static type name##_of[teams][pyc_model::kMostTogether][count]; \
  type* const name = name##_of[team][pyc_model::rank()]
// A gate counts bytes; gates are two, side by side.
static inline void pyc_gate_make(unsigned long long* gate) { *gate = 0; }
static inline void pyc_gates_made() {}
static inline void pyc_gate_expect(unsigned long long*, unsigned) {}
// What a copy brings is there when its gate is passed, what lay there is lost at once.
static std::map<unsigned long long*, std::vector<pyc_model::Send>> pyc_model_brought;
static inline void pyc_bring(void* to, const void* from, unsigned bytes, unsigned long long* gate) {
  if (((unsigned long long)to | (unsigned long long)from | bytes) % 16 != 0) __builtin_trap();
  memset(to, 0xff, bytes);
  pyc_model_brought[gate].push_back({to, from, bytes});
}
static inline void pyc_gate_pass(unsigned long long* gate, unsigned bytes, unsigned turn) {
  for (;; pyc_model::switch_out()) {
    if (const auto brought = pyc_model_brought.extract(gate)) {
      for (const pyc_model::Send& s : brought.mapped()) {
        memcpy(s.to, s.from, s.bytes);
        *gate += s.bytes;
      }
    }
    if (*gate >= (turn + 1ull) * bytes) return;
  }
}
static inline void pyc_team_barrier(int team, int threads) {
  using namespace pyc_model;
  const unsigned first = block_begin() + (unsigned)(team * threads);
  wait(first, first + (unsigned)threads, [](Fiber& f) -> uint64_t& { return f.team_waits; });
}
#define PYC_MODEL_TELL(name, type)                                                           \
  static inline void pyc_tell_##name(type* own, int at, int count, unsigned long long* gate, \
                                     int rank, type x) {                                     \
    const int far = rank - (int)pyc_model::rank();                                           \
    own[far * count + at] = x;                                                               \
    gate[2 * far] += sizeof(type);                                                           \
  }
PYC_MODEL_TELL(u32, unsigned)
PYC_MODEL_TELL(u64, unsigned long long)
static inline void pyc_far2(unsigned rank, unsigned at, float* to) {
  memcpy(to, pyc_model_shared[rank] + at, 8);
}

static inline pyc_model::Fiber& pyc_model_self() {
  return pyc_model::block.fibers[pyc_model::block.current];
}
static inline void pyc_sends_ready() {}
static inline void pyc_send(void* to, const void* from, unsigned bytes) {
  if (((unsigned long long)to | (unsigned long long)from | bytes) % 16 != 0) __builtin_trap();
  pyc_model_self().sends.open.push_back({to, from, bytes});
  pyc_model_self().sends.commit();
}
static inline void pyc_model_sends_end(size_t left) {
  pyc_model_self().sends.wait(left,
                              [](const pyc_model::Send& s) { memcpy(s.to, s.from, s.bytes); });
}
static inline void pyc_sends_read_but_0() { pyc_model_sends_end(0); }
static inline void pyc_sends_read_but_1() { pyc_model_sends_end(1); }
static inline void pyc_sends_read_but_2() { pyc_model_sends_end(2); }
static inline void pyc_sent() { pyc_model_sends_end(0); }
static inline void pyc_model_copy(const pyc_model::Copy& c) {
  memset(pyc_shared + c.to, 0, 16);
  memcpy(pyc_shared + c.to, c.from, c.bytes);
}
// What lies there is lost at once, what comes is there when it is waited for.
static inline void pyc_copy16(unsigned to, const void* from, unsigned bytes) {
  memset(pyc_shared + to, 0xff, 16);
  pyc_model_self().copies.push_back({to, from, bytes});
}
static inline int pyc_and_or_i32(int a, int b, int c) { return (a & b) | c; }
static inline void pyc_gate_init(unsigned at, unsigned count) {
  pyc_model::block.gates[pyc_model::rank()][at] = {count, count, 0, {}};
}
static inline pyc_model::Gate& pyc_model_gate(unsigned at) {
  return pyc_model::block.gates[pyc_model::rank()].at(at);
}
static inline void pyc_gate_arrive(unsigned at) { pyc_model_gate(at).arrive(); }
// Copies of every other thread are done at once, so that a stage that is filled too early is seen;
// the others as late as may be, so that one that is read too early is.
static inline void pyc_gate_arrive_copied(unsigned at) {
  pyc_model::Gate& gate = pyc_model_gate(at);
  gate.copied.push_back(std::exchange(pyc_model_self().copies, {}));
  if (threadIdx.x % 2 == 0) return;
  for (const pyc_model::Copy& c : gate.copied.back()) pyc_model_copy(c);
  gate.copied.pop_back();
  gate.arrive();
}
// A map is its address, columns, rows, bytes of a row and rows of a box.
struct pyc_map {
  unsigned long long words[16];
};
#define PYC_MAP const pyc_map&
#define PYC_MAPPED(name, maps) extern "C" const int name##_maps = maps;
static inline void pyc_model_bring(const pyc_model::Box& box, pyc_model::Gate& gate) {
  const unsigned long long* map = box.map;
  for (unsigned r = 0; r < map[4]; ++r) {
    const long long row = box.row + (long long)r;
    for (unsigned c = 0; c < 64; ++c) {
      const long long column = box.column + (long long)c;
      char* to = box.to + r * 128 + ((c / 8 ^ r % 8) << 4) + c % 8 * 2;
      const bool there =
          row >= 0 && row < (long long)map[2] && column >= 0 && column < (long long)map[1];
      if (there) {
        memcpy(to, (const char*)map[0] + row * (long long)map[3] + column * 2, 2);
      } else {
        memset(to, 0, 2);
      }
    }
  }
  gate.bytes -= (int64_t)map[4] * 128;
  gate.end_turn();
}
// As copies: what lies there is lost at once, and every other box is there at once.
static inline void pyc_model_box(unsigned rank, unsigned to, const pyc_map* map, int x, int y,
                                 unsigned at) {
  pyc_model::Gate& gate = pyc_model::block.gates[rank].at(at);
  const pyc_model::Box box = {pyc_model_shared[rank] + to, map->words, x, y};
  memset(box.to, 0xff, map->words[4] * 128);
  if ((x + y) / 64 % 2 == 0) {
    gate.boxes.push_back(box);
  } else {
    pyc_model_bring(box, gate);
  }
}
static inline void pyc_map_copy(unsigned to, const pyc_map* map, int x, int y, unsigned gate) {
  pyc_model_box(pyc_model::rank(), to, map, x, y, gate);
}
static inline void pyc_gate_expect_bytes(unsigned at, unsigned bytes) {
  pyc_model_gate(at).bytes += bytes;
  pyc_model_gate(at).arrive();
}
static inline void pyc_gates_ready() {}
static inline void pyc_gate_wait(unsigned at, unsigned parity) {
  for (;;) {
    pyc_model::Gate& gate = pyc_model_gate(at);
    for (const pyc_model::Box& box : std::exchange(gate.boxes, {})) pyc_model_bring(box, gate);
    for (const auto& copies : std::exchange(gate.copied, {})) {
      for (const pyc_model::Copy& c : copies) pyc_model_copy(c);
      gate.arrive();
    }
    if (gate.turn != parity) return;
    pyc_model::switch_out();
  }
}
static inline void pyc_shared_fence() {}

static inline unsigned long long pyc_wgmma_place(unsigned at, unsigned leading, unsigned stride) {
  return (unsigned long long)(at >> 4) | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
}

#define PYC_MODEL_bf16 0
#define PYC_MODEL_f16 1

namespace pyc_model {

// Element (row, k) of a tile as the unit finds it: rows of 128 bytes, eight of them `stride` apart
// from the next eight; or 64 rows side by side for each k, 64 more `leading` further, eight of k
// `stride` further. Bits 4 … 6 of an address are swizzled with bits 7 … 9.
static unsigned short element(uint64_t place, int row, int k, bool along_rows) {
  const unsigned start = (unsigned)(place & 0x3fff) << 4;
  const unsigned leading = (unsigned)(place >> 16 & 0x3fff) << 4;
  const unsigned stride = (unsigned)(place >> 32 & 0x3fff) << 4;
  const unsigned at = along_rows
                          ? start + row / 64 * leading + row % 64 * 2 + k / 8 * stride + k % 8 * 128
                          : start + row / 8 * stride + row % 8 * 128 + k * 2;
  unsigned short x;
  memcpy(&x, pyc_shared + (at ^ (at >> 7 & 7) << 4), 2);
  return x;
}

// A half or float taken apart: ± magnitude · 2^(exponent − fraction).
struct Parts {
  int64_t magnitude;
  int exponent;
  bool negative, infinite, nan;
};
static Parts take_apart(unsigned bits, int fraction, int exponent_bits) {
  const int ones = (1 << exponent_bits) - 1;
  const int field = bits >> fraction & ones;
  const unsigned part = bits & ((1u << fraction) - 1);
  const bool high = field == ones;
  return {field == 0 ? part : part | 1u << fraction, (field == 0 ? 1 : field) - (ones >> 1),
          (bits >> (fraction + exponent_bits) & 1) != 0, high && part == 0, high && part != 0};
}

// docs/NUMERICS.md, row sm90: everything as a multiple of 2^(E − 25), truncated, added, truncated.
static float add_block(float start, const unsigned short* a, const unsigned short* b, int format) {
  const int fraction = format == PYC_MODEL_f16 ? 10 : 7;
  const Parts acc = take_apart(pyc_model_bits<unsigned>(start), 23, 8);
  bool nan = acc.nan, plus = acc.infinite && !acc.negative, minus = acc.infinite && acc.negative;
  Parts product[16];
  int largest = acc.magnitude != 0 ? acc.exponent : -4096;
  for (int i = 0; i < 16; ++i) {
    const Parts x = take_apart(a[i], fraction, 15 - fraction);
    const Parts y = take_apart(b[i], fraction, 15 - fraction);
    Parts& p = product[i];
    p = {x.magnitude * y.magnitude, x.exponent + y.exponent, x.negative != y.negative, false,
         false};
    const bool infinite = x.infinite || y.infinite;
    nan = nan || x.nan || y.nan || (x.infinite && y.magnitude == 0) ||
          (y.infinite && x.magnitude == 0);
    if (infinite) (p.negative ? minus : plus) = true;
    if (p.magnitude != 0 && p.exponent > largest) largest = p.exponent;
  }
  if (nan || (plus && minus)) return pyc_model_bits<float>(0x7fffffffu);
  if (plus || minus) return minus ? -INFINITY : INFINITY;
  if (largest < -133) largest = largest == -4096 ? largest : -133;
  const auto aligned = [&](const Parts& p, int own) -> int64_t {
    const int left = p.exponent - own - (largest - 25);
    if (left <= -64) return 0;
    const int64_t m = left >= 0 ? p.magnitude << left : p.magnitude >> -left;
    return p.negative ? -m : m;
  };
  if (largest == -4096) return 0.0f;
  int64_t sum = aligned(acc, 23);
  for (const Parts& p : product) sum += aligned(p, 2 * fraction);
  if (sum == 0) return 0.0f;
  const bool negative = sum < 0;
  uint64_t m = negative ? -(uint64_t)sum : (uint64_t)sum;
  int scale = largest - 25;
  const int leading = 63 - __builtin_clzll(m) + scale;
  const int unit = (leading < -126 ? -126 : leading) - 23;
  for (; scale < unit; ++scale) m >>= 1;
  const float x = (float)ldexp((double)m, scale);  // exact, or beyond the largest float
  return negative && m != 0 ? -x : x;
}

// Element k of the thread's row, or of the row eight further: two of k to a register, those of
// k and k + 8 with the same thread.
static unsigned short register_element(const Multiply& m, int half, int k) {
  const unsigned thread = (unsigned)(k % 8 / 2);
  const unsigned n = (unsigned)(k / 8 * 2 + half);
  const unsigned word = thread == threadIdx.x % 4 ? m.own[n] : m.quad[thread * 4 + n];
  return (unsigned short)(word >> k % 2 * 16);
}

// This thread's elements of d: two side by side in each eight columns, of a row and the row after
// eight more.
static void multiply(const Multiply& m) {
  const int in_group = (int)(threadIdx.x % 128);
  const int first_row = in_group / 32 * 16 + in_group % 32 / 4;
  const int first_column = in_group % 4 * 2;
  for (int half = 0; half < 2; ++half) {
    unsigned short a[16], b[16];
    const int row = first_row + half * 8;
    for (int k = 0; k < 16; ++k) {
      a[k] = m.own != nullptr ? register_element(m, half, k)
                              : element(m.a, row, k, m.a_along_rows != 0);
    }
    for (int i = 0; i < m.columns / 8 * 2; ++i) {
      const int column = i / 2 * 8 + first_column + i % 2;
      for (int k = 0; k < 16; ++k) b[k] = element(m.b, column, k, m.b_along_rows != 0);
      float& d = m.d[i / 2 * 4 + half * 2 + i % 2];
      d = add_block(m.keep ? d : 0.0f, a, b, m.format);
    }
  }
}

}  // namespace pyc_model

static inline void pyc_model_wgmma(float* d, unsigned long long a, unsigned long long b, int keep,
                                   int columns, int format, int a_along_rows, int b_along_rows) {
  pyc_model_self().products.open.push_back(
      {d, a, b, keep, columns, format, a_along_rows, b_along_rows});
}
static inline void pyc_model_wgmma_registers(float* d, const unsigned* a, unsigned long long b,
                                             int columns, int format) {
  using namespace pyc_model;
  Multiply m{d, 0, b, 1, columns, format, 0, 1, a, {}};
  const unsigned first = threadIdx.x % kWarp / 4 * 4;
  for (unsigned thread = 0; thread < 4; ++thread) {
    for (unsigned n = 0; n < 4; ++n) m.quad.push_back(shuffled(a[n], first + thread));
  }
  pyc_model_self().products.open.push_back(std::move(m));
}
static inline unsigned pyc_model_halves(float low, float high, int format) {
  const auto half = [&](float x) -> unsigned {
    return format == PYC_MODEL_f16 ? pyc_f32_to_f16_raw(x) : pyc_f32_to_bf16_raw(x);
  };
  return half(low) | half(high) << 16;
}
static inline void pyc_wgmma_fence() {}
static inline void pyc_wgmma_commit() { pyc_model_self().products.commit(); }
// All threads of a warp wait together.
static inline void pyc_model_wgmma_wait(size_t open) {
  pyc_model_self().products.wait(open, pyc_model::multiply);
  pyc_model::wait_for_warp();
}
static inline void pyc_wgmma_wait_0() { pyc_model_wgmma_wait(0); }
static inline void pyc_wgmma_wait_1() { pyc_model_wgmma_wait(1); }

#endif
