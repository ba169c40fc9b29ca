// The caller's floating-point state changes no bit of what the C ABI gives, and is left as it was.

#include "base/fp_state.h"
#include "capi/calls.h"

namespace pyc::test {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kHostile = 0xE040;  // FTZ, DAZ, round towards zero
#else
constexpr uint64_t kHostile = 0x1C00000;  // FZ, round towards zero
#endif

// Numbers from text, from a seed, folded by the compiler and computed by a run; some are denormal.
constexpr std::string_view kText =
    "graph @g(%x: f32[4]) -> (%y) {\n"
    "  %a = const f32[4] dense(0.1, 1e-40, 3.4028234e38, 0.333333343)\n"
    "  %b = const f32[4] random(seed=1, lo=-0.1, hi=0.3)\n"
    "  %c = mul(%a, %b)\n"
    "  %d = add(%c, %x)\n"
    "  %y = div(%d, %b)\n"
    "}\n";

std::string digest_on(const char* device) {
  CompileOptions options;
  options.set("device", device);
  options.set("cache", false);
  Model model(Graph::parse(kText), options);
  return model(Tensor::random(PYC_DTYPE_F32, {4}, 3))[0].digest();
}

TEST(FpState, OfTheCallerChangesNothing) {
  for (const char* device : {"reference", "cpu"}) {
    const std::string expected = digest_on(device);
    const uint64_t before = read_fp_control();
    write_fp_control(before | kHostile);
    const std::string found = digest_on(device);
    const uint64_t after = read_fp_control();
    write_fp_control(before);
    EXPECT_EQ(found, expected) << device;
    EXPECT_EQ(after & kHostile, kHostile) << device;
  }
}

}  // namespace
}  // namespace pyc::test
