#include "backends/cuda/generators/wgmma_prelude.h"

#include <fmt/format.h>

namespace pyc::cuda {
namespace {

constexpr std::string_view kFunctions =
    R"(PYC_FN void pyc_put2(PYC_NEAR float* to, float a, float b) {
  pyc_v8 both;
  both.x = pyc_f32_bits(a);
  both.y = pyc_f32_bits(b);
  *(PYC_NEAR pyc_v8*)to = both;
}
#ifndef PYC_FENCED
extern __shared__ __align__(1024) char pyc_shared[];
PYC_FN u32 pyc_shared_place(u32 at) { return (u32)__cvta_generic_to_shared(pyc_shared) + at; }
PYC_FN void pyc_copy16(u32 to, const void* from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(pyc_shared_place(to)),
               "l"(from), "r"(bytes) : "memory");
}
PYC_FN void pyc_shared_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
PYC_FN void pyc_gate_init(u32 at, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(pyc_shared_place(at)), "r"(count)
               : "memory");
}
PYC_FN void pyc_gate_arrive(u32 at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(pyc_shared_place(at)) : "memory");
}
PYC_FN void pyc_gate_arrive_copied(u32 at) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(pyc_shared_place(at))
               : "memory");
}
PYC_FN void pyc_gate_wait(u32 at, u32 parity) {
  u32 open;
  do {
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(open) : "r"(pyc_shared_place(at)), "r"(parity) : "memory");
  } while (open == 0);
}
PYC_FN void pyc_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
PYC_FN void pyc_far2(u32 rank, u32 at, float* to) {
  asm volatile("{\n.reg .b32 far;\nmapa.shared::cluster.u32 far, %2, %3;\n"
               "ld.shared::cluster.v2.f32 {%0, %1}, [far];\n}"
               : "=f"(to[0]), "=f"(to[1]) : "r"(pyc_shared_place(at)), "r"(rank) : "memory");
}
PYC_FN u64 pyc_wgmma_place(u32 at, u32 leading, u32 stride) {
  return (u64)((pyc_shared_place(at) & 0x3ffffu) >> 4) | (u64)(leading >> 4) << 16 |
         (u64)(stride >> 4) << 32 | 1ull << 62;
}
PYC_FN void pyc_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
PYC_FN void pyc_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
PYC_FN void pyc_wgmma_wait_0() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
PYC_FN void pyc_wgmma_wait_1() { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }
)";

// Quotients of moderate floats, rounded as division rounds them, by the steps that the compiler's
// own takes for such; how far any was from moderate is said in `far`: exponents of −60 to 59 are
// not.
constexpr std::string_view kNearQuotient =
    R"(#ifndef PYC_FENCED
PYC_FN float pyc_near_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
PYC_FN void pyc_prefetch(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }
PYC_FN void pyc_cluster_part() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}
#else
#define pyc_cluster_part() pyc_cluster_barrier()
#define pyc_prefetch(at)
PYC_FN float pyc_near_reciprocal(float x) { return 1.0f / x; }
#endif
PYC_FN u32 pyc_beyond_near(float x) { return pyc_f32_bits(x) * 2u - (67u << 24); }
PYC_FN bool pyc_is_far(u32 far) { return far >= 120u << 24; }
PYC_FN float pyc_near_quotient(u32* far, float a, float b) {
  *far = pyc_max_u32(*far, pyc_max_u32(pyc_beyond_near(a), pyc_beyond_near(b)));
  const float near = pyc_near_reciprocal(b);
  const float y = pyc_fma_f32(pyc_fma_f32(-b, near, 1.0f), near, near);
  const float q = pyc_mul_f32(a, y);
  const float p = pyc_fma_f32(pyc_fma_f32(-b, q, a), y, q);
  return pyc_fma_f32(pyc_fma_f32(-b, p, a), y, p);
}
)";

// "%0, %1, …" and the constraints of d's elements.
struct Accumulators {
  std::string registers;
  std::string operands;
};
Accumulators accumulators(int64_t count) {
  Accumulators out;
  for (int64_t i = 0; i < count; ++i) {
    out.registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    out.operands += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  return out;
}

std::string registers_text(std::string_view name, std::string_view way, int64_t count) {
  if (count == 0) return fmt::format("#define pyc_{}_registers()\n", name);
  return fmt::format(
      "#ifndef PYC_FENCED\nPYC_FN void pyc_{0}_registers() {{ asm volatile(\"setmaxnreg.{1}.sync."
      "aligned.u32 {2};\"); }}\n#else\n#define pyc_{0}_registers()\n#endif\n",
      name, way, count);
}

}  // namespace

std::string attention_prelude(const AttentionInstructions& instructions) {
  const std::string_view type = dtype_name(instructions.factors);
  const int64_t keys = instructions.keys;
  const int64_t columns = instructions.columns;
  const Accumulators scores = accumulators(keys / 2);
  const Accumulators values = accumulators(columns / 2);
  const int64_t s = keys / 2;
  const int64_t v = columns / 2;
  return registers_text("fewer", "dec", instructions.fewer_registers) +
         registers_text("more", "inc", instructions.more_registers) + std::string(kFunctions) +
         fmt::format(
             "PYC_FN u32 pyc_halves(float low, float high) {{\n  u32 y;\n"
             "  asm volatile(\"cvt.rn.{}x2.f32 %0, %1, %2;\" : \"=r\"(y) : \"f\"(high), "
             "\"f\"(low));\n"
             "  return y;\n}}\n",
             type) +
         fmt::format(
             "PYC_FN void pyc_wgmma_scores(float* d, u64 a, u64 b, i32 keep) {{\n"
             "  asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{4}, 0;\\n\"\n"
             "    \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {{{2}}}, %{5}, %{6}, p, "
             "1, 1, 0, 0;\\n}}\"\n"
             "    : {3} : \"l\"(a), \"l\"(b), \"r\"(keep));\n}}\n",
             keys, type, scores.registers, scores.operands, s + 2, s, s + 1) +
         fmt::format(
             "PYC_FN void pyc_wgmma_values(float* d, const u32* a, u64 b) {{\n"
             "  asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{9}, 0;\\n\"\n"
             "    \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {{{2}}}, "
             "{{%{4}, %{5}, %{6}, %{7}}}, %{8}, p, 1, 1, 1;\\n}}\"\n"
             "    : {3} : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), "
             "\"l\"(b), \"r\"(1));\n}}\n",
             columns, type, values.registers, values.operands, v, v + 1, v + 2, v + 3, v + 4,
             v + 5) +
         fmt::format(
             "PYC_FN void pyc_wgmma_scores_done(float* d) {{\n"
             "  asm volatile(\"wgmma.wait_group.sync.aligned 1;\" : {} :: \"memory\");\n}}\n"
             "PYC_FN void pyc_wgmma_values_done(float* d) {{\n"
             "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\" : {} :: \"memory\");\n}}\n",
             scores.operands, values.operands) +
         fmt::format(
             "#else\n"
             "#define pyc_wgmma_scores_done(d) pyc_wgmma_wait_1()\n"
             "#define pyc_wgmma_values_done(d) pyc_wgmma_wait_0()\n"
             "#define pyc_halves(low, high) pyc_model_halves(low, high, PYC_MODEL_{1})\n"
             "#define pyc_wgmma_scores(d, a, b, keep) "
             "pyc_model_wgmma(d, a, b, keep, {0}, PYC_MODEL_{1}, 0, 0)\n"
             "#define pyc_wgmma_values(d, a, b) "
             "pyc_model_wgmma_registers(d, a, b, {2}, PYC_MODEL_{1})\n"
             "#endif\n",
             keys, type, columns);
}

std::string wgmma_prelude(const WgmmaInstruction& instruction) {
  const int64_t count = instruction.columns / 2;
  const std::string_view type = dtype_name(instruction.factors);
  const int a = instruction.a_along_rows ? 1 : 0;
  const int b = instruction.b_along_rows ? 1 : 0;
  std::string registers;
  std::string operands;
  for (int64_t i = 0; i < count; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    operands += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  return registers_text("fewer", "dec", instruction.fewer_registers) +
         registers_text("more", "inc", instruction.more_registers) + std::string(kNearQuotient) +
         std::string(kFunctions) +
         fmt::format(
             "PYC_FN void pyc_wgmma(float* d, u64 a, u64 b, i32 keep) {{\n"
             "  asm volatile(\"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{4}, 0;\\n\"\n"
             "    \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {{{2}}}, %{5}, %{6}, p, "
             "1, 1, {7}, {8};\\n}}\"\n"
             "    : {3} : \"l\"(a), \"l\"(b), \"r\"(keep));\n}}\n"
             "#else\n"
             "#define pyc_wgmma(d, a, b, keep) "
             "pyc_model_wgmma(d, a, b, keep, {0}, PYC_MODEL_{1}, {7}, {8})\n"
             "#endif\n",
             instruction.columns, type, registers, operands, count + 2, count, count + 1, a, b);
}

}  // namespace pyc::cuda
