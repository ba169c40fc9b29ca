#include "faults/inject.h"

#include <execinfo.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>

#include "faults/hooks.h"

namespace pyc::faults {
namespace {

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool has(const void* address) const {
    const auto a = reinterpret_cast<uintptr_t>(address);
    return a >= begin && a < end;
  }
};

Range find_code(const char* library) {
  struct Search {
    const char* library;
    Range range;
  } search{library, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (std::strstr(info->dlpi_name, wanted.library) == nullptr) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
          const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
          wanted.range = {begin, begin + header.p_memsz};
        }
        return 1;
      },
      &search);
  return search.range;
}

// LLVM, looked for until it is there, and the loader, which runs the initialisers of LLVM and of
// what it needs.
struct Llvm {
  const Range loader = find_code("ld-linux");
  Range code;

  void find() {
    if (code.begin == 0) code = find_code("libLLVM");
  }
  bool has(const void* frame) const { return code.has(frame) || loader.has(frame); }
};

Llvm& llvm() {
  static Llvm instance;
  return instance;
}

constexpr int kMaxFrames = 64;
constexpr int kPlaceFrames = 12;  // this file, operator new and ten callers
constexpr size_t kMaxRecords = size_t{1} << 20;

struct Stack {
  uint64_t hash = 0;
  bool in_llvm = false;
};

thread_local bool inside = false;  // calls made by this file do not count

Stack stack_here() {
  std::array<void*, kMaxFrames> frames{};
  const int depth = backtrace(frames.data(), kMaxFrames);
  Stack stack;
  llvm().find();
  for (int i = 0; i < depth; ++i) {
    const void* frame = frames[static_cast<size_t>(i)];
    stack.in_llvm |= llvm().has(frame);
    if (i >= kPlaceFrames) continue;
    stack.hash = (stack.hash ^ reinterpret_cast<uintptr_t>(frame)) * 0x9E3779B97F4A7C15u;
    stack.hash ^= stack.hash >> 29;
  }
  return stack;
}

std::atomic<bool> armed{false};
std::atomic<bool> recording{false};
std::atomic<int64_t> calls{0};
std::atomic<int64_t> refuse_at{0};
std::atomic<bool> did_refuse{false};
std::atomic<Kind> refused_kind{Kind::kNew};
std::array<Stack, kMaxRecords> records;

std::atomic<bool> execution_forbidden{false};
std::atomic<int64_t> files{0};
std::atomic<int64_t> maps{0};

// The addresses of all blocks that are alive: linear probing, no tombstones. Kept inverted, so that
// a leak checker does not take them for pointers.
class Blocks {
 public:
  void add(void* block) {
    if (block == nullptr) return;
    const Lock lock(*this);
    const uintptr_t key = key_of(block);
    size_t at = home(key);
    while (slots_[at] != kEmpty) at = next(at);
    slots_[at] = key;
    ++count_;
  }

  void remove(void* block) {
    if (block == nullptr) return;
    const Lock lock(*this);
    const uintptr_t key = key_of(block);
    size_t at = home(key);
    while (slots_[at] != key) {
      if (slots_[at] == kEmpty) return;  // made by somebody else
      at = next(at);
    }
    --count_;
    // Moves up what would no longer be found behind the gap.
    size_t gap = at;
    for (at = next(gap); slots_[at] != kEmpty; at = next(at)) {
      if (distance(home(slots_[at]), at) < distance(gap, at)) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = kEmpty;
  }

  int64_t count() {
    const Lock lock(*this);
    return count_;
  }

 private:
  static constexpr uintptr_t kEmpty = 0;
  static constexpr size_t kSlots = size_t{1} << 20;

  class Lock {
   public:
    explicit Lock(Blocks& blocks) : busy_(blocks.busy_) {
      while (busy_.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Lock() { busy_.clear(std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    std::atomic_flag& busy_;
  };

  static uintptr_t key_of(const void* block) { return ~reinterpret_cast<uintptr_t>(block); }
  static size_t home(uintptr_t key) { return (key * 0x9E3779B97F4A7C15u) >> 44; }
  static size_t next(size_t at) { return (at + 1) % kSlots; }
  static size_t distance(size_t from, size_t to) { return (to + kSlots - from) % kSlots; }

  std::atomic_flag busy_;
  int64_t count_ = 0;
  std::array<uintptr_t, kSlots> slots_{};
};

constinit Blocks blocks;

}  // namespace

bool refused(Kind kind) {
  if (!armed.load(std::memory_order_relaxed) || inside) return false;
  const int64_t number = calls.fetch_add(1) + 1;
  const bool due = number == refuse_at.load();
  if (!due && !recording) return false;
  inside = true;
  const Stack stack = stack_here();
  inside = false;
  if (recording && static_cast<size_t>(number) <= kMaxRecords) {
    records[static_cast<size_t>(number) - 1] = stack;
  }
  if (!due || stack.in_llvm) return false;
  refused_kind = kind;
  did_refuse = true;
  return true;
}

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {"operator new", "malloc", "file", "mmap", "thread"};
  return kNames[static_cast<int>(kind)];
}

void arm(int64_t refuse) {
  calls = 0;
  refuse_at = refuse;
  did_refuse = false;
  armed = true;
}

Outcome disarm() {
  armed = false;
  return {calls, did_refuse, refused_kind};
}

void begin_recording() {
  stack_here();  // loads what it needs
  recording = true;
  arm(0);
}

Recorded end_recording(bool every) {
  Recorded out;
  out.calls = disarm().calls;
  recording = false;
  std::set<uint64_t> seen;
  for (int64_t number = 1; number <= out.calls; ++number) {
    const Stack& stack = records[static_cast<size_t>(number) - 1];
    out.in_llvm += stack.in_llvm ? 1 : 0;
    if (stack.in_llvm || (!every && !seen.insert(stack.hash).second)) continue;
    out.numbers.push_back(number);
    out.places.push_back(stack.hash);
  }
  return out;
}

void forbid_execution(bool forbid) { execution_forbidden = forbid; }
bool may_execute() { return !execution_forbidden; }

void add_block(void* block) { blocks.add(block); }
void remove_block(void* block) { blocks.remove(block); }
void count_file(int change) { files += change; }
void count_map(int change) { maps += change; }

Held held() { return {blocks.count(), files, maps}; }

}  // namespace pyc::faults
