#include "base/target_info.h"

#include <sched.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#else
#error "PyC runs on x86-64 and AArch64: add the detection of this architecture's features here"
#endif

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/files.h"

namespace pyc {
namespace {

constexpr const char* kCacheFolder = "/sys/devices/system/cpu/cpu0/cache";

#if defined(__x86_64__)

struct Registers {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// All zero when the CPU does not know the leaf.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

constexpr bool bit(uint32_t word, int index) { return ((word >> index) & 1) != 0; }

// The register sets the operating system saves (XCR0).
uint32_t saved_state(const Registers& leaf1) {
  constexpr int kOsXsave = 27;
  if (!bit(leaf1.ecx, kOsXsave)) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Asks Linux to save tile registers: without its leave the first use of one is an illegal
// instruction. It holds for all threads and stays; it is refused where a thread handles signals on
// a stack that is too small for them.
bool tiles_allowed() {
  constexpr int kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// Bit numbers are those of Intel's manual, volume 2, CPUID.
void detect_features(TargetInfo* t) {
  constexpr uint32_t kYmmState = 0x6;
  constexpr uint32_t kZmmState = 0xE6;
  constexpr uint32_t kTileState = 0x60000;
  const Registers leaf1 = cpuid(1, 0);
  const Registers leaf7 = cpuid(7, 0);
  const Registers leaf7_1 = leaf7.eax >= 1 ? cpuid(7, 1) : Registers{};
  const Registers extended = cpuid(0x80000001, 0);
  const uint32_t saved = saved_state(leaf1);
  const bool ymm = (saved & kYmmState) == kYmmState && bit(leaf1.ecx, 28);
  const bool zmm = (saved & kZmmState) == kZmmState;
  const bool tiles = (saved & kTileState) == kTileState && bit(leaf7.edx, 24) && tiles_allowed();

  t->arch = "x86_64";
  t->has_avx2 = ymm && bit(leaf7.ebx, 5);
  t->has_fma = ymm && bit(leaf1.ecx, 12);
  t->has_f16c = ymm && bit(leaf1.ecx, 29);
  t->has_bmi = bit(leaf7.ebx, 3) && bit(leaf7.ebx, 8) && bit(extended.ecx, 5) &&
               bit(leaf1.ecx, 22) && bit(leaf1.ecx, 23);
  t->has_avx512 = zmm && t->has_avx2 && bit(leaf7.ebx, 16) && bit(leaf7.ebx, 17) &&
                  bit(leaf7.ebx, 28) && bit(leaf7.ebx, 30) && bit(leaf7.ebx, 31);
  t->has_avx512_vnni = t->has_avx512 && bit(leaf7.ecx, 11);
  t->has_avx512_bf16 = t->has_avx512 && bit(leaf7_1.eax, 5);
  t->has_avx512_fp16 = t->has_avx512 && bit(leaf7.edx, 23);
  t->has_amx_int8 = tiles && bit(leaf7.edx, 25);
  t->has_amx_bf16 = tiles && bit(leaf7.edx, 22);
  if (t->has_avx512) {
    t->vector_bytes = 64;
    t->vector_registers = 32;
  } else {
    t->vector_bytes = t->has_avx2 ? 32 : 16;
    t->vector_registers = 16;
  }
}

#else

void detect_features(TargetInfo* t) {
  const unsigned long caps = getauxval(AT_HWCAP);
  const unsigned long caps2 = getauxval(AT_HWCAP2);
  t->arch = "aarch64";
  t->has_neon = (caps & HWCAP_ASIMD) != 0;
  t->has_neon_fp16 = (caps & HWCAP_ASIMDHP) != 0;
  t->has_dotprod = (caps & HWCAP_ASIMDDP) != 0;
  t->has_i8mm = (caps2 & HWCAP2_I8MM) != 0;
  t->has_bf16 = (caps2 & HWCAP2_BF16) != 0;
  t->has_sve = (caps & HWCAP_SVE) != 0;
  t->vector_bytes = 16;
  t->vector_registers = 32;
}

#endif

// The content of a small text file without its line end; empty when it cannot be read.
std::string read_line(const std::string& path) {
  constexpr uint64_t kMaxBytes = 4096;
  Result<std::string> text = read_file(path, kMaxBytes);
  if (!text.ok()) return "";
  return text->substr(0, text->find('\n'));
}

// "48K", "2M" or "32768" in bytes; 0 when it is none of these.
int64_t parse_size(const std::string& text) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  constexpr int64_t kMaxCount = int64_t{1} << 32;
  if (error != std::errc() || count < 0 || count > kMaxCount) return 0;
  const std::string unit(rest, end);
  if (unit.empty()) return count;
  if (unit == "K") return count << 10;
  if (unit == "M") return count << 20;
  return 0;
}

int64_t first_known(int64_t a, int64_t b, int64_t c) {
  if (a > 0) return a;
  return b > 0 ? b : c;
}

void detect_caches(TargetInfo* t) {
  const CacheSizes told = read_cache_sizes(kCacheFolder);
  t->l1_bytes = first_known(told.l1, sysconf(_SC_LEVEL1_DCACHE_SIZE), t->l1_bytes);
  t->l2_bytes = first_known(told.l2, sysconf(_SC_LEVEL2_CACHE_SIZE), t->l2_bytes);
  t->l3_bytes = first_known(told.l3, sysconf(_SC_LEVEL3_CACHE_SIZE), t->l3_bytes);
}

int count_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return static_cast<int>(std::max<long>(1, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

CacheSizes read_cache_sizes(const std::string& folder) {
  constexpr int kMaxCaches = 16;
  CacheSizes sizes;
  for (int i = 0; i < kMaxCaches; ++i) {
    const std::string cache = folder + "/index" + std::to_string(i);
    const std::string level = read_line(cache + "/level");
    if (level.empty()) break;
    if (read_line(cache + "/type") == "Instruction") continue;
    const int64_t size = parse_size(read_line(cache + "/size"));
    if (level == "1") sizes.l1 = size;
    if (level == "2") sizes.l2 = size;
    if (level == "3") sizes.l3 = size;
  }
  return sizes;
}

TargetInfo host_target() {
  TargetInfo target;
  detect_features(&target);
  detect_caches(&target);
  target.cores = count_cores();
  return target;
}

std::string TargetInfo::features() const {
  const std::pair<bool, const char*> all[] = {
      {has_avx2, "avx2"},
      {has_fma, "fma"},
      {has_f16c, "f16c"},
      {has_bmi, "bmi"},
      {has_avx512, "avx512"},
      {has_avx512_vnni, "avx512_vnni"},
      {has_avx512_bf16, "avx512_bf16"},
      {has_avx512_fp16, "avx512_fp16"},
      {has_amx_int8, "amx_int8"},
      {has_amx_bf16, "amx_bf16"},
      {has_neon, "neon"},
      {has_neon_fp16, "neon_fp16"},
      {has_dotprod, "dotprod"},
      {has_i8mm, "i8mm"},
      {has_bf16, "bf16"},
      {has_sve, "sve"},
  };
  std::string text;
  for (const auto& [present, name] : all) {
    if (!present) continue;
    if (!text.empty()) text += ',';
    text += name;
  }
  return text;
}

namespace {

struct NamedTarget {
  std::string_view name;
  std::string_view arch;
  std::vector<std::pair<bool TargetInfo::*, std::string_view>> needs;
};

// Wider ones of an architecture stand behind.
const std::vector<NamedTarget>& named_targets() {
  using T = TargetInfo;
  static const std::vector<NamedTarget> targets = {
      {"aarch64_neon", "aarch64", {{&T::has_neon, "neon"}}},
      {"aarch64_i8mm",
       "aarch64",
       {{&T::has_neon, "neon"}, {&T::has_dotprod, "dotprod"}, {&T::has_i8mm, "i8mm"}}},
      {"x86_avx2",
       "x86_64",
       {{&T::has_avx2, "avx2"},
        {&T::has_fma, "fma"},
        {&T::has_f16c, "f16c"},
        {&T::has_bmi, "bmi"}}},
      {"x86_avx512",
       "x86_64",
       {{&T::has_avx512, "avx512"},
        {&T::has_avx2, "avx2"},
        {&T::has_fma, "fma"},
        {&T::has_f16c, "f16c"},
        {&T::has_bmi, "bmi"}}},
      {"x86_vnni",
       "x86_64",
       {{&T::has_avx512_vnni, "avx512_vnni"},
        {&T::has_avx512, "avx512"},
        {&T::has_avx2, "avx2"},
        {&T::has_fma, "fma"},
        {&T::has_f16c, "f16c"},
        {&T::has_bmi, "bmi"}}},
      {"x86_amx",
       "x86_64",
       {{&T::has_amx_int8, "amx_int8"},
        {&T::has_avx512_vnni, "avx512_vnni"},
        {&T::has_avx512, "avx512"},
        {&T::has_avx2, "avx2"},
        {&T::has_fma, "fma"},
        {&T::has_f16c, "f16c"},
        {&T::has_bmi, "bmi"}}},
  };
  return targets;
}

}  // namespace

std::span<const std::string_view> target_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const NamedTarget& target : named_targets()) list.push_back(target.name);
    return list;
  }();
  return names;
}

std::string_view native_target(const TargetInfo& machine) {
  std::string_view best;
  for (const std::string_view name : target_names()) {
    if (missing_for(name, machine).empty()) best = name;
  }
  return best;
}

std::string missing_for(std::string_view target, const TargetInfo& machine) {
  for (const NamedTarget& known : named_targets()) {
    if (known.name != target) continue;
    if (known.arch != machine.arch) return "it is an " + machine.arch;
    for (const auto& [feature, name] : known.needs) {
      if (!(machine.*feature)) return "it has no " + std::string(name);
    }
    return "";
  }
  return "this target is not known";
}

}  // namespace pyc
