// Objects: what the loader refuses, and that buffers really end where the tests say.

#include <elf.h>
#include <gtest/gtest.h>

#include "backends/cpu_emit_support.h"

namespace pyc::cpu_test {
namespace {

// y = table[i mod 4] / x, which has code and constants.
void build(Builder& b, int64_t n) {
  const uint32_t x = b.in(DType::kF32, n);
  const uint32_t y = b.out(DType::kF32, n);
  const VarId i = b.loop_var(n);
  const uint32_t table =
      b.pool.table(DType::kF32, {0x3F800000, 0x40000000, 0x40400000, 0x40800000});
  const Expr v = table_load(b.pool, table, floor_mod(b.var(i), b.idx(4)));
  b.k.body.push_back(b.loop(i, true, {b.store(y, b.var(i), v / b.load(x, b.var(i)))}));
}

std::string object_of(const Kernel& k) {
  auto object = cpu::emit_object(k, cpu::CodegenTarget::host());
  EXPECT_TRUE(object.ok()) << object.status().to_string();
  return object.ok() ? *object : std::string();
}

// Calls f with every entry of the section header table.
template <class F>
void each_section(std::string& object, F f) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    char* at = object.data() + header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, at, sizeof section);
    f(section);
    std::memcpy(at, &section, sizeof section);
  }
}

TEST(EmitObject, UndefinedSymbolIsRefusedByName) {
  Builder b;
  build(b, 16);
  std::string object = object_of(b.k);
  EXPECT_TRUE(runtime::undefined_symbols(object)->empty());
  each_section(object, [&](Elf64_Shdr& s) {
    if (s.sh_type != SHT_SYMTAB) return;
    for (uint64_t at = s.sh_offset; at < s.sh_offset + s.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, object.data() + at, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) symbol.st_shndx = SHN_UNDEF;
      std::memcpy(object.data() + at, &symbol, sizeof symbol);
    }
  });
  EXPECT_EQ(runtime::undefined_symbols(object).value(), std::vector<std::string>{"pyc_kernel"});
  auto module = runtime::CodeModule::load(object);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().code(), Code::kInternal);
  EXPECT_NE(module.status().message().find("'pyc_kernel'"), std::string::npos);
}

TEST(EmitObject, UnknownRelocationIsRefused) {
  Builder b;
  build(b, 16);
  std::string object = object_of(b.k);
  int changed = 0;
  each_section(object, [&](Elf64_Shdr& s) {
    if (s.sh_type != SHT_RELA) return;
    for (uint64_t at = s.sh_offset; at < s.sh_offset + s.sh_size; at += sizeof(Elf64_Rela)) {
      Elf64_Rela r;
      std::memcpy(&r, object.data() + at, sizeof r);
      r.r_info = ELF64_R_INFO(ELF64_R_SYM(r.r_info), 9999);
      std::memcpy(object.data() + at, &r, sizeof r);
      ++changed;
    }
  });
  ASSERT_GT(changed, 0);
  EXPECT_EQ(runtime::CodeModule::load(object).status().code(), Code::kInternal);
}

TEST(EmitObject, DamagedObjectsDoNotCrashTheLoader) {
  Builder b;
  build(b, 16);
  const std::string object = object_of(b.k);
  for (size_t size = 0; size < object.size(); ++size) {
    auto module = runtime::CodeModule::load(std::string_view(object).substr(0, size));
    EXPECT_FALSE(module.ok()) << size;
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = object;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    auto module = runtime::CodeModule::load(damaged);
    EXPECT_TRUE(module.ok() || !module.status().message().empty());
  }
}

// NEON's fma overwrites its addend. A body of several vectors must not copy a constant for each of
// them, in a pipe that the fmas need, but load it.
TEST(EmitObject, ConstantAddendsAreLoadedOnNeon) {
  constexpr int64_t kCount = 1024;
  Builder b;
  const uint32_t in = b.in(DType::kF32, kCount);
  const uint32_t out = b.out(DType::kF32, kCount);
  const VarId i = b.loop_var(kCount);
  const Expr x = b.load(in, b.var(i));
  Expr sum = x;
  for (const double c : {0.1, 0.2, 0.3, 0.4}) sum = fma(sum, x, like(x, c));
  b.k.body.push_back(b.loop(i, true, {b.store(out, b.var(i), sum)}));
  const auto text = cpu::emit_assembly(b.k, cpu::CodegenTarget::aarch64_neon());
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  EXPECT_NE(text->find("fmla"), std::string::npos);
  EXPECT_EQ(text->find("mov\tv"), std::string::npos) << *text;
  Harness(b.k).check();
}

TEST(EmitObject, LoadsAndUnloads) {
  Builder b;
  build(b, 16);
  const std::string object = *cpu::emit_object(b.k, cpu::CodegenTarget::host(), "my_name");
  for (int i = 0; i < 100; ++i) {
    auto module = runtime::CodeModule::load(object);
    ASSERT_TRUE(module.ok()) << module.status().to_string();
    EXPECT_NE((*module)->lookup("my_name"), nullptr);
    EXPECT_EQ((*module)->lookup("pyc_kernel"), nullptr);
    EXPECT_GT((*module)->mapped_bytes(), 0);
  }
}

void run_on_short_input(const std::string& object) {
  auto module = runtime::CodeModule::load(object);
  GuardedBuffer x(1000 * 4);  // shorter than the kernel was told
  GuardedBuffer y(1024 * 4);
  void* buffers[] = {x.data(), y.data()};
  pyc_kernel_args args{};
  args.buffers = buffers;
  (*module)->lookup(cpu::kDefaultSymbol)(&args, 0, 1);
}

TEST(EmitObjectDeathTest, GuardPageCatchesAccessOutOfBounds) {
  Builder b;
  build(b, 1024);
  const std::string object = object_of(b.k);
  EXPECT_DEATH(run_on_short_input(object), "");
}

}  // namespace
}  // namespace pyc::cpu_test
