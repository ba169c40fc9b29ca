#include "backends/cuda/dialect.h"

namespace pyc::cuda {
namespace {

// NVRTC finds no header by itself, so the text brings its own types. Every operation is written as
// the intrinsic with its rounding: no option of the compiler decides about bits.
constexpr std::string_view kHeader = R"(typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u16 pyc_v2;
typedef u32 pyc_v4;
struct alignas(8) pyc_v8 { u32 x, y; };
struct alignas(16) pyc_v16 { u32 x, y, z, w; };
#define PYC_FN static __device__ __forceinline__
#define PYC_GLOBAL
#define PYC_NEAR
#define PYC_ALIGN16 __align__(16)
#define PYC_SHARED __shared__
#define PYC_TABLE static __device__ const
#define PYC_UNROLL _Pragma("unroll")
#define PYC_UNROLL2 _Pragma("unroll 2")
#define PYC_UNROLL4 _Pragma("unroll 4")
#define PYC_ROLLED _Pragma("unroll 1")
#ifndef PYC_KERNEL
#define PYC_KERNEL(name, parameters, threads, barriers, ...) \
  extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define PYC_KERNEL_BESIDE(blocks, name, parameters, threads, barriers, ...) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(__VA_ARGS__)
#define PYC_KERNEL_CLUSTER(blocks, name, parameters, threads, cluster, ...) \
  extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(threads, blocks) \
      name(__VA_ARGS__)
#endif
PYC_FN i32 pyc_thread() { return (i32)threadIdx.x; }
PYC_FN i32 pyc_block() { return (i32)blockIdx.x; }
PYC_FN i32 pyc_blocks() { return (i32)gridDim.x; }
PYC_FN void pyc_barrier() { __syncthreads(); }
PYC_FN void pyc_warp_barrier() { __syncwarp(0xffffffffu); }
PYC_FN u32 pyc_shuffle_down_u32(u32 x, u32 by) { return __shfl_down_sync(0xffffffffu, x, by); }
PYC_FN u32 pyc_shuffle_xor_u32(u32 x, u32 by) { return __shfl_xor_sync(0xffffffffu, x, by); }
PYC_FN u32 pyc_shuffle_first_u32(u32 x) { return __shfl_sync(0xffffffffu, x, 0); }
PYC_FN u64 pyc_shuffle_down_u64(u64 x, u32 by) {
  const u32 low = pyc_shuffle_down_u32((u32)x, by);
  return (u64)pyc_shuffle_down_u32((u32)(x >> 32), by) << 32 | low;
}
PYC_FN u64 pyc_shuffle_xor_u64(u64 x, u32 by) {
  const u32 low = pyc_shuffle_xor_u32((u32)x, by);
  return (u64)pyc_shuffle_xor_u32((u32)(x >> 32), by) << 32 | low;
}
PYC_FN u64 pyc_shuffle_first_u64(u64 x) {
  const u32 low = pyc_shuffle_first_u32((u32)x);
  return (u64)pyc_shuffle_first_u32((u32)(x >> 32)) << 32 | low;
}
PYC_FN void pyc_fault(u32* word, u32 value) { atomicMin(word, value); }
PYC_FN u32 pyc_f32_bits(float x) { return __float_as_uint(x); }
PYC_FN u64 pyc_f64_bits(double x) { return (u64)__double_as_longlong(x); }
PYC_FN float pyc_bits_f32(u32 x) { return __uint_as_float(x); }
PYC_FN double pyc_bits_f64(u64 x) { return __longlong_as_double((i64)x); }
PYC_FN float pyc_add_f32(float a, float b) { return __fadd_rn(a, b); }
PYC_FN float pyc_sub_f32(float a, float b) { return __fsub_rn(a, b); }
PYC_FN float pyc_mul_f32(float a, float b) { return __fmul_rn(a, b); }
PYC_FN float pyc_div_f32(float a, float b) { return __fdiv_rn(a, b); }
PYC_FN float pyc_sqrt_f32(float a) { return __fsqrt_rn(a); }
PYC_FN float pyc_fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PYC_FN float pyc_neg_any_f32(float a) { return -a; }
PYC_FN float pyc_abs_any_f32(float a) { return fabsf(a); }
PYC_FN float pyc_floor_f32(float a) { return floorf(a); }
PYC_FN float pyc_ceil_f32(float a) { return ceilf(a); }
PYC_FN float pyc_trunc_f32(float a) { return truncf(a); }
PYC_FN float pyc_rint_f32(float a) { return rintf(a); }
PYC_FN double pyc_add_f64(double a, double b) { return __dadd_rn(a, b); }
PYC_FN double pyc_sub_f64(double a, double b) { return __dsub_rn(a, b); }
PYC_FN double pyc_mul_f64(double a, double b) { return __dmul_rn(a, b); }
PYC_FN double pyc_div_f64(double a, double b) { return __ddiv_rn(a, b); }
PYC_FN double pyc_sqrt_f64(double a) { return __dsqrt_rn(a); }
PYC_FN double pyc_fma_f64(double a, double b, double c) { return __fma_rn(a, b, c); }
PYC_FN double pyc_floor_f64(double a) { return floor(a); }
PYC_FN double pyc_ceil_f64(double a) { return ceil(a); }
PYC_FN double pyc_trunc_f64(double a) { return trunc(a); }
PYC_FN double pyc_rint_f64(double a) { return rint(a); }
PYC_FN float pyc_i32_to_f32(i32 x) { return __int2float_rn(x); }
PYC_FN float pyc_i64_to_f32(i64 x) { return __ll2float_rn(x); }
PYC_FN float pyc_u64_to_f32(u64 x) { return __ull2float_rn(x); }
PYC_FN double pyc_i32_to_f64(i32 x) { return __int2double_rn(x); }
PYC_FN double pyc_i64_to_f64(i64 x) { return __ll2double_rn(x); }
PYC_FN double pyc_u64_to_f64(u64 x) { return __ull2double_rn(x); }
PYC_FN float pyc_f64_to_f32(double x) { return __double2float_rn(x); }
PYC_FN double pyc_min_f64(double a, double b) {
  if (a != a || b != b) return __dadd_rn(a, b);
  if (a == b) return __double_as_longlong(a) < 0 ? a : b;
  return a < b ? a : b;
}
PYC_FN double pyc_max_f64(double a, double b) {
  if (a != a || b != b) return __dadd_rn(a, b);
  if (a == b) return __double_as_longlong(a) < 0 ? b : a;
  return a < b ? b : a;
}
#ifndef PYC_FENCED
PYC_FN void pyc_wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
PYC_FN float pyc_min_f32(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
PYC_FN float pyc_max_f32(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
PYC_FN float pyc_fma_saturated_f32(float a, float b, float c) {
  float y;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
  return y;
}
// Two at a time go through a faster unit than one, even if one of them is of no use.
PYC_FN u16 pyc_f32_to_f16_raw(float x) {
  u32 y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(0.0f), "f"(x));
  return (u16)y;
}
PYC_FN u16 pyc_f32_to_bf16_raw(float x) {
  u32 y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(0.0f), "f"(x));
  return (u16)y;
}
PYC_FN float pyc_f16_to_f32_raw(u16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
PYC_FN i32 pyc_and_or_i32(i32 a, i32 b, i32 c) {
  i32 y;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}
PYC_FN u32 pyc_match_u32(u32 x) { return __match_any_sync(0xffffffffu, x); }
PYC_FN i32 pyc_bit_count(u32 x) { return __popc(x); }
PYC_FN u32 pyc_unknown_word(u32 x) {
  asm volatile("" : "+r"(x));
  return x;
}
PYC_FN u32 pyc_pair_to_f16_raw(float a, float b) {
  u32 y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a));
  return y;
}
PYC_FN u32 pyc_pair_to_bf16_raw(float a, float b) {
  u32 y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a));
  return y;
}
PYC_FN u32 pyc_min_pair_i16(u32 a, u32 b) {
  u32 y;
  asm("min.s16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
#define PYC_PAIRS(T) \
  PYC_FN u32 pyc_max_pair_##T(u32 a, u32 b) { \
    u32 y; \
    asm("max.NaN." #T "x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b)); \
    return y; \
  } \
  PYC_FN u32 pyc_min_pair_##T(u32 a, u32 b) { \
    u32 y; \
    asm("min.NaN." #T "x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b)); \
    return y; \
  }
PYC_PAIRS(f16)
PYC_PAIRS(bf16)
PYC_FN i32 pyc_warp_max_i32(i32 x) { return __reduce_max_sync(0xffffffffu, x); }
PYC_FN bool pyc_warp_all(bool x) { return __all_sync(0xffffffffu, x); }
PYC_FN void pyc_read_near(const void* at, u32& a, u32& b, u32& c, u32& d) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"((u32)__cvta_generic_to_shared(at)) : "memory");
}
PYC_FN void pyc_fetch_ahead(const void* from, u32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
               ::"l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
}
PYC_FN void pyc_together_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
PYC_FN void pyc_together_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
PYC_FN u32 pyc_near_place(const void* at) { return (u32)__cvta_generic_to_shared(at); }
PYC_FN void pyc_gate_make(u64* gate) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(pyc_near_place(gate)) : "memory");
}
PYC_FN void pyc_gates_made() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
PYC_FN void pyc_gate_expect(u64* gate, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(pyc_near_place(gate)), "r"(bytes) : "memory");
}
PYC_FN void pyc_gate_pass(u64* gate, u32 bytes, u32 turn) {
  u32 open;
  do {
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(open) : "r"(pyc_near_place(gate)), "r"(turn & 1) : "memory");
  } while (open == 0);
}
PYC_FN void pyc_team_barrier(i32 team, i32 threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory");
}
PYC_FN void pyc_bring(void* to, const void* from, u32 bytes, u64* gate) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               " [%0], [%1], %2, [%3];"
               ::"r"(pyc_near_place(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
               "r"(pyc_near_place(gate)) : "memory");
}
PYC_FN void pyc_sends_ready() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
PYC_FN void pyc_send(void* to, const void* from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
               "cp.async.bulk.commit_group;"
               ::"l"(__cvta_generic_to_global(to)), "r"(pyc_near_place(from)), "r"(bytes)
               : "memory");
}
#define PYC_SENDS_READ(N) \
  PYC_FN void pyc_sends_read_but_##N() { \
    asm volatile("cp.async.bulk.wait_group.read " #N ";" ::: "memory"); \
  }
PYC_SENDS_READ(0)
PYC_SENDS_READ(1)
PYC_SENDS_READ(2)
PYC_FN void pyc_sent() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
#define PYC_TELL(T, REGISTER) \
  PYC_FN void pyc_tell_##T(T* own, i32 at, i32 count, u64* gate, i32 rank, T x) { \
    asm volatile("{\n.reg .b32 far, its;\nmapa.shared::cluster.u32 far, %0, %2;\n" \
                 "mapa.shared::cluster.u32 its, %1, %2;\n" \
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes." #T \
                 " [far], %3, [its];\n}" \
                 ::"r"(pyc_near_place(own + at)), "r"(pyc_near_place(gate)), "r"(rank), \
                 REGISTER(x) : "memory"); \
  }
PYC_TELL(u32, "r")
PYC_TELL(u64, "l")
#define PYC_SHARED_MORE extern __shared__ __align__(1024) char pyc_shared[];
#define PYC_SHARED_EACH(type, name, count) __shared__ __align__(16) type name[count]
#define PYC_SHARED_TEAMS(type, name, count, teams, team) \
  __shared__ __align__(16) type name##_of[teams][count]; \
  type* const name = name##_of[team]
#endif
)";

}  // namespace

const Dialect& cuda_dialect() {
  static constexpr Dialect kCuda{.name = "cuda", .warp = 32, .header = kHeader};
  return kCuda;
}

}  // namespace pyc::cuda
