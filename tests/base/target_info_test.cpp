#include "base/target_info.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "support/temp_folder.h"

namespace pyc {
namespace {

TEST(TargetInfo, HostIsPlausible) {
  const TargetInfo host = host_target();
#if defined(__x86_64__)
  EXPECT_EQ(host.arch, "x86_64");
  EXPECT_FALSE(host.has_neon);
  EXPECT_EQ(host.vector_bytes, host.has_avx512 ? 64 : host.has_avx2 ? 32 : 16);
  EXPECT_EQ(host.vector_registers, host.has_avx512 ? 32 : 16);
  EXPECT_EQ(host.has_avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(host.has_fma, __builtin_cpu_supports("fma") != 0);
#else
  EXPECT_EQ(host.arch, "aarch64");
  EXPECT_TRUE(host.has_neon);
  EXPECT_FALSE(host.has_avx2);
  EXPECT_EQ(host.vector_bytes, 16);
  EXPECT_EQ(host.vector_registers, 32);
#endif
  EXPECT_GE(host.cores, 1);
  EXPECT_GE(host.l1_bytes, 4 << 10);
  EXPECT_GT(host.l2_bytes, host.l1_bytes);
  EXPECT_GT(host.l3_bytes, 0);
}

TEST(TargetInfo, FeaturesAreListedInAFixedOrder) {
  TargetInfo target;
  EXPECT_EQ(target.features(), "");
  target.has_fma = true;
  target.has_avx2 = true;
  target.has_sve = true;
  EXPECT_EQ(target.features(), "avx2,fma,sve");
}

TEST(TargetInfo, NamedTargetsSayWhatTheyNeed) {
  EXPECT_EQ(target_names().size(), 6U);
  TargetInfo machine;
  machine.arch = "x86_64";
  EXPECT_EQ(native_target(machine), "");
  EXPECT_EQ(missing_for("x86_avx2", machine), "it has no avx2");
  EXPECT_EQ(missing_for("aarch64_neon", machine), "it is an x86_64");
  EXPECT_NE(missing_for("z80", machine), "");
  machine.has_avx2 = machine.has_fma = machine.has_f16c = true;
  EXPECT_EQ(missing_for("x86_avx2", machine), "it has no bmi");
  machine.has_bmi = true;
  EXPECT_EQ(native_target(machine), "x86_avx2");
  machine.has_avx512 = true;
  EXPECT_EQ(native_target(machine), "x86_avx512");
  machine.has_avx512_vnni = true;
  EXPECT_EQ(native_target(machine), "x86_vnni");
  machine.has_amx_int8 = true;
  EXPECT_EQ(native_target(machine), "x86_amx");
  EXPECT_NE(native_target(host_target()), "");
}

class CacheFolder {
 public:
  void add(const std::string& index, const std::string& level, const std::string& type,
           const std::string& size) {
    std::filesystem::create_directory(folder_.file(index));
    EXPECT_TRUE(write_file_atomic(folder_.file(index + "/level"), level + "\n").ok());
    EXPECT_TRUE(write_file_atomic(folder_.file(index + "/type"), type + "\n").ok());
    EXPECT_TRUE(write_file_atomic(folder_.file(index + "/size"), size + "\n").ok());
  }
  CacheSizes read() const { return read_cache_sizes(folder_.path()); }

 private:
  TempFolder folder_;
};

TEST(TargetInfo, CacheSizesAreReadByLevelAndType) {
  CacheFolder folder;
  folder.add("index0", "1", "Data", "48K");
  folder.add("index1", "1", "Instruction", "32K");
  folder.add("index2", "2", "Unified", "2M");
  folder.add("index3", "3", "Unified", "33554432");
  const CacheSizes sizes = folder.read();
  EXPECT_EQ(sizes.l1, 48 << 10);
  EXPECT_EQ(sizes.l2, 2 << 20);
  EXPECT_EQ(sizes.l3, 32 << 20);
}

TEST(TargetInfo, UnreadableSizesAreUnknown) {
  CacheFolder folder;
  folder.add("index0", "1", "Data", "big");
  folder.add("index1", "2", "Unified", "-5K");
  folder.add("index2", "3", "Unified", "7G");
  const CacheSizes sizes = folder.read();
  EXPECT_EQ(sizes.l1, 0);
  EXPECT_EQ(sizes.l2, 0);
  EXPECT_EQ(sizes.l3, 0);
  EXPECT_EQ(read_cache_sizes("/nonexistent").l1, 0);
}

}  // namespace
}  // namespace pyc
