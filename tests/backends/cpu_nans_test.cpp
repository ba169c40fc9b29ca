// Stored NaNs are the canonical one, whatever NaN went in and however the code makes them so; the
// mode of the processor is afterwards what it was.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "backends/cpu_emit_support.h"

namespace pyc::cpu_test {
namespace {

constexpr uint32_t kCanonical = 0x7fc00000;

uint64_t processor_mode() {
#ifdef __aarch64__
  uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

// Every value of the kernel below, made canonical and stored.
std::vector<Expr> results(Builder& b, Expr x, Expr y, Expr at) {
  const auto number = [&](double c) { return like(x, c); };
  const Expr first = lt(at, loop::index(b.pool, 1));
  std::vector<Expr> all = {x + y, x - y, x * y, fma(x, y, x), x * number(2.0)};
  // What LLVM leaves out or makes a change of sign.
  for (const double c : {1.0, -1.0, 0.0, -0.0}) {
    all.push_back(x * number(c));
    all.push_back(x + number(c));
    all.push_back(x - number(c));
    all.push_back(number(c) - x);
    all.push_back(fma(x, number(c), number(-0.0)));
    all.push_back(x * select(first, number(c), number(-c)));
  }
  all.push_back(x);
  all.push_back(max(x, y));
  return all;
}

TEST(Nans, StoredOnesAreCanonical) {
  constexpr int64_t kCount = 67;  // bodies of several widths and a rest
  Builder b;
  const uint32_t in = b.in(DType::kF32, kCount);
  const uint32_t other = b.in(DType::kF32, kCount);
  const VarId i = b.loop_var(kCount);
  const Expr at = b.var(i);
  std::vector<loop::Stmt> body;
  std::vector<uint32_t> outputs;
  for (const Expr& v : results(b, b.load(in, at), b.load(other, at), at)) {
    outputs.push_back(b.out(DType::kF32, kCount));
    body.push_back(b.store(outputs.back(), at, canonical_nan(v)));
  }
  b.k.body.push_back(b.loop(i, true, body));
  constexpr std::array<uint32_t, 5> kNans = {0x7fc12345, 0xffc00000, 0x7f800001, 0xff812345,
                                             0x7fffffff};
  std::vector<std::vector<float>> buffers(b.k.buffers.size(), std::vector<float>(kCount, 0.75F));
  for (size_t k = 0; k < kCount; k += 2) buffers[in][k] = std::bit_cast<float>(kNans[k / 2 % 5]);
  for (size_t k = 0; k < kCount; k += 3) buffers[other][k] = std::bit_cast<float>(kNans[k / 3 % 5]);
  std::vector<void*> pointers;
  for (std::vector<float>& buffer : buffers) pointers.push_back(buffer.data());
  cpu::CodegenTarget target = cpu::CodegenTarget::host();
  for (const int lanes : {4, 8, 16}) {
    target.lanes = lanes;
    auto object = cpu::emit_object(b.k, target);
    ASSERT_TRUE(object.ok()) << object.status().to_string();
    auto module = runtime::CodeModule::load(*object);
    ASSERT_TRUE(module.ok()) << module.status().to_string();
    pyc_kernel_args args{};
    args.buffers = pointers.data();
    args.threads = 1;
    const uint64_t mode = processor_mode();
    (*module)->lookup(cpu::kDefaultSymbol)(&args, 0, 1);
    EXPECT_EQ(processor_mode(), mode);
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (size_t k = 0; k < kCount; ++k) {
        const float found = buffers[outputs[o]][k];
        if (k % 2 == 0) {
          ASSERT_TRUE(std::isnan(found)) << "result " << o << " element " << k;
        }
        if (!std::isnan(found)) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(found), kCanonical)
            << "result " << o << " element " << k << " lanes " << lanes;
      }
    }
  }
}

}  // namespace
}  // namespace pyc::cpu_test
