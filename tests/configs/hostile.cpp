// Part of every test program that compiles or runs models; does nothing unless PYC_TEST_CONFIG is
// set. Its words, separated by commas, make the surroundings of every compile and run of the
// program hostile in ways that must not change a result:
//
// - threads=N, lanes=N, no_reuse, no_fuse: options of every compile
// - cold: no compile cache
// - passes_off=A+B: leaves out passes
// - layouts=SEED: inner values lie in memory in any order of their dims
// - groups=SEED: any values are kept out of the groups they could join
// - tuner=SEED: takes any applicable kernel for a group, not the cheapest
// - guard: the library's buffers are filled with garbage and end at a page that faults
// - edges: so do the caller's tensors, which are aligned to their elements only
// - fp: the caller's threads flush denormals and round towards zero
// - locale: the process has the locale of its environment
//
// In any case every decision of every compile is looked at: it has a reason that is one
// (base/reasons.h).
//
// The functions are replaced by the linker (--wrap, see tests/CMakeLists.txt).

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "base/aligned_buffer.h"
#include "base/fp_state.h"
#include "base/reasons.h"
#include "driver/compile.h"
#include "driver/select.h"
#include "lower/lower.h"
#include "runtime/model.h"

#define PYC_COMPILE "_ZN3pyc7session7compileENS_2ir13VerifiedGraphERKNS_6driver14CompileOptionsE"
#define PYC_RUN                                                                           \
  "_ZN3pyc7runtime5Model3runESt4spanIKNS0_10TensorViewELm18446744073709551615EES5_PNS0_8" \
  "RunStatsE"
#define PYC_CREATE "_ZN3pyc13AlignedBuffer6createEmNS0_4ModeE"
#define PYC_LOWER "_ZN3pyc5lower11lower_graphERKNS_2ir13VerifiedGraphERKNS0_12LowerOptionsE"
#define PYC_SELECT                                                                           \
  "_ZN3pyc6driver14select_kernelsERKNS_5lower12LoweredGraphERKNS_8backends7BackendERKNS5_14" \
  "BackendOptionsESt4spanIKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEELm1844674407" \
  "3709551615EEb"

namespace pyc::hostile {
namespace {

using driver::CompileOptions;
using runtime::Model;
using runtime::TensorView;
using ModelResult = Result<std::unique_ptr<Model>>;
using Views = std::span<const TensorView>;

}  // namespace

ModelResult real_compile(ir::VerifiedGraph graph,
                         const CompileOptions& options) asm("__real_" PYC_COMPILE);
ModelResult wrap_compile(ir::VerifiedGraph graph,
                         const CompileOptions& options) asm("__wrap_" PYC_COMPILE);
Status real_run(Model* self, Views inputs, Views outputs,
                runtime::RunStats* stats) asm("__real_" PYC_RUN);
Status wrap_run(Model* self, Views inputs, Views outputs,
                runtime::RunStats* stats) asm("__wrap_" PYC_RUN);
Result<AlignedBuffer> real_create(size_t bytes, AlignedBuffer::Mode mode) asm("__real_" PYC_CREATE);
Result<AlignedBuffer> wrap_create(size_t bytes, AlignedBuffer::Mode mode) asm("__wrap_" PYC_CREATE);
using LowerResult = Result<lower::LoweredGraph>;
LowerResult real_lower(const ir::VerifiedGraph& graph,
                       const lower::LowerOptions& options) asm("__real_" PYC_LOWER);
LowerResult wrap_lower(const ir::VerifiedGraph& graph,
                       const lower::LowerOptions& options) asm("__wrap_" PYC_LOWER);
Result<driver::Selection> real_select(const lower::LoweredGraph& lowered,
                                      const backends::Backend& backend,
                                      const backends::BackendOptions& options,
                                      std::span<const std::string> excluded,
                                      bool any_order) asm("__real_" PYC_SELECT);
Result<driver::Selection> wrap_select(const lower::LoweredGraph& lowered,
                                      const backends::Backend& backend,
                                      const backends::BackendOptions& options,
                                      std::span<const std::string> excluded,
                                      bool any_order) asm("__wrap_" PYC_SELECT);

namespace {

// The words of PYC_TEST_CONFIG with their values.
class Config {
 public:
  Config() {
    const char* given = std::getenv("PYC_TEST_CONFIG");
    std::string rest = given == nullptr ? "" : given;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(','), rest.size());
      const std::string word = rest.substr(0, end);
      const size_t equals = std::min(word.find('='), word.size());
      words_[word.substr(0, equals)] = word.substr(std::min(equals + 1, word.size()));
      rest.erase(0, end + 1);
    }
    for (const auto& [word, value] : words_) {
      if (std::find(std::begin(kKnown), std::end(kKnown), word) != std::end(kKnown)) continue;
      std::fprintf(stderr, "PYC_TEST_CONFIG: '%s' is not known\n", word.c_str());
      std::exit(2);
    }
    if (has("locale") && std::setlocale(LC_ALL, "") == nullptr) {
      std::fprintf(stderr, "PYC_TEST_CONFIG: the locale of the environment is not there\n");
      std::exit(2);
    }
  }
  bool has(const char* word) const { return words_.contains(word); }
  const std::string& text(const char* word) const { return words_.at(word); }
  int number(const char* word) const { return std::atoi(text(word).c_str()); }

 private:
  static constexpr const char* kKnown[] = {"threads",    "lanes",   "no_reuse", "no_fuse", "cold",
                                           "passes_off", "tuner",   "guard",    "edges",   "fp",
                                           "locale",     "layouts", "groups"};
  std::map<std::string, std::string> words_;
};

const Config& config() {
  static const Config instance;
  return instance;
}

std::atomic<int64_t> changed_calls{0};

// Flush-to-zero, denormals-are-zero and rounding towards zero, until it goes; what it finds then
// must be what it set.
class HostileFp {
 public:
  HostileFp() : active_(config().has("fp")) {
    if (!active_) return;
    before_ = read_fp_control();
    write_fp_control(before_ | kBits);
    set_ = read_fp_control();
  }
  ~HostileFp() {
    if (!active_) return;
    EXPECT_EQ(read_fp_control() & kBits, set_ & kBits) << "the caller's floating-point state";
    write_fp_control(before_);
  }
  HostileFp(const HostileFp&) = delete;
  HostileFp& operator=(const HostileFp&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kBits = 0xE040;  // FTZ, DAZ, round towards zero
#else
  static constexpr uint64_t kBits = 0x1C00000;  // FZ, round towards zero
#endif
  const bool active_;
  uint64_t before_ = 0;
  uint64_t set_ = 0;
};

// Memory for `bytes` bytes that end right before a page that faults.
class EdgeBuffer {
 public:
  explicit EdgeBuffer(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = (bytes + page - 1) / page * page;
    size_ = usable + page;
    map_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED) std::abort();
    auto* start = static_cast<unsigned char*>(map_);
    if (mprotect(start + usable, page, PROT_NONE) != 0) std::abort();
    std::memset(start, 0xFF, usable);
    data_ = start + usable - bytes;
  }
  ~EdgeBuffer() { munmap(map_, size_); }
  EdgeBuffer(const EdgeBuffer&) = delete;
  EdgeBuffer& operator=(const EdgeBuffer&) = delete;
  void* data() const { return data_; }

 private:
  void* map_ = nullptr;
  size_t size_ = 0;
  void* data_ = nullptr;
};

// The caller's tensors, moved to the edges of pages.
class Edges {
 public:
  explicit Edges(Views views) : views_(views.begin(), views.end()) {
    for (TensorView& view : views_) {
      original_.push_back(view.data);
      buffers_.push_back(std::make_unique<EdgeBuffer>(static_cast<size_t>(view.bytes)));
      view.data = buffers_.back()->data();
    }
  }
  void copy_in() {
    for (size_t i = 0; i < views_.size(); ++i) move(views_[i].data, original_[i], i);
  }
  void copy_out() {
    for (size_t i = 0; i < views_.size(); ++i) move(original_[i], views_[i].data, i);
  }
  Views views() const { return views_; }

 private:
  void move(void* to, const void* from, size_t i) const {
    if (views_[i].bytes > 0) std::memcpy(to, from, static_cast<size_t>(views_[i].bytes));
  }
  std::vector<TensorView> views_;
  std::vector<void*> original_;
  std::vector<std::unique_ptr<EdgeBuffer>> buffers_;
};

// Tensors a test hands in wrong on purpose stay where they are.
bool sound(Views views, std::span<const runtime::IoSpec> specs) {
  if (views.size() != specs.size()) return false;
  for (size_t i = 0; i < views.size(); ++i) {
    const auto address = reinterpret_cast<uintptr_t>(views[i].data);
    const auto unit = static_cast<uintptr_t>(dtype_size(specs[i].dtype));
    if (views[i].dtype != specs[i].dtype || views[i].bytes != specs[i].bytes) return false;
    if (!std::ranges::equal(views[i].shape, specs[i].shape)) return false;
    if (!views[i].strides.empty() || views[i].byte_offset != 0) return false;
    if (address == 0 || address % unit != 0) return false;
  }
  return true;
}

bool overlapping(Views a, Views b) {
  const auto begin = [](const TensorView& v) { return reinterpret_cast<uintptr_t>(v.data); };
  const auto end = [&](const TensorView& v) { return begin(v) + static_cast<size_t>(v.bytes); };
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      if (&a[i] == &b[k]) continue;
      if (begin(a[i]) < end(b[k]) && begin(b[k]) < end(a[i])) return true;
    }
  }
  return false;
}

// Which names to leave out so that chance decides; every group keeps a kernel.
std::vector<std::string> left_out(const lower::LoweredGraph& lowered,
                                  const backends::Backend& backend,
                                  const backends::BackendOptions& options) {
  std::vector<std::vector<std::string>> groups;
  std::map<std::string, bool> names;  // left out?
  for (const lower::Group& group : lowered.groups) {
    std::vector<std::string>& applicable = groups.emplace_back();
    for (const backends::Candidate& c : backend.candidates(*lowered.graph, group, options)) {
      if (!c.rejected.empty()) continue;
      applicable.push_back(c.name);
      names[c.name] = false;
    }
  }
  std::mt19937 random(static_cast<uint32_t>(config().number("tuner")));
  for (auto& [name, out] : names) {
    out = random() % 2 == 0;
    const bool all_keep_one = std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::any_of(group.begin(), group.end(), [&](const auto& n) { return !names[n]; });
    });
    if (!all_keep_one) out = false;
  }
  std::vector<std::string> out;
  for (const auto& [name, is_out] : names) {
    if (is_out) out.push_back(name);
  }
  return out;
}

// Any order of dims for any value that may have one.
lower::Layouts any_layouts(const ir::Graph& graph) {
  std::mt19937 random(static_cast<uint32_t>(config().number("layouts")));
  lower::Layouts layouts;
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    if (!lower::may_have_layout(graph, v)) continue;
    lower::Layout order(graph.type(v).shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    layouts.set(v, std::move(order));
  }
  return layouts;
}

// One value in three, at random.
bool kept_apart(ir::ValueId v) {
  std::mt19937 random(static_cast<uint32_t>(config().number("groups")) * 8191U + v);
  return random() % 3 == 0;
}

// That the linker really led the calls here.
class Check : public testing::Environment {
 public:
  void TearDown() override {
    if (std::getenv("PYC_TEST_CONFIG") == nullptr || config().has("locale")) return;
    EXPECT_GT(changed_calls, 0) << "no compile, run or buffer of this program was changed";
  }
};
const auto* const kCheck = testing::AddGlobalTestEnvironment(new Check);
const Config& kReadEarly = config();

}  // namespace

ModelResult wrap_compile(ir::VerifiedGraph graph, const CompileOptions& options) {
  CompileOptions o = options;
  const Config& c = config();
  if (c.has("threads") && o.threads >= 0) o.threads = c.number("threads");
  if (c.has("lanes") && o.lanes == 0) o.lanes = c.number("lanes");
  if (c.has("no_reuse")) o.reuse = false;
  if (c.has("no_fuse")) o.fuse = false;
  if (c.has("cold")) o.cache = false;
  if (c.has("passes_off")) {
    std::string rest = c.text("passes_off");
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('+'), rest.size());
      o.passes_off.push_back(rest.substr(0, end));
      rest.erase(0, end + 1);
    }
  }
  ++changed_calls;
  const HostileFp fp;
  ModelResult model = real_compile(std::move(graph), o);
  if (model.ok()) {
    const Status decisions = check_decisions((*model)->decisions());
    EXPECT_TRUE(decisions.ok()) << decisions.to_string();
  }
  return model;
}

Status wrap_run(Model* self, Views inputs, Views outputs, runtime::RunStats* stats) {
  ++changed_calls;
  const bool move = config().has("edges") && sound(inputs, self->inputs()) &&
                    sound(outputs, self->outputs()) && !overlapping(inputs, outputs) &&
                    !overlapping(outputs, outputs);
  if (!move) {
    const HostileFp fp;
    return real_run(self, inputs, outputs, stats);
  }
  Edges in(inputs);
  Edges out(outputs);
  in.copy_in();
  Status status = real_run(self, in.views(), out.views(), stats);
  if (status.ok()) out.copy_out();
  return status;
}

Result<AlignedBuffer> wrap_create(size_t bytes, AlignedBuffer::Mode mode) {
  if (!config().has("guard")) return real_create(bytes, mode);
  ++changed_calls;
  return real_create(bytes, AlignedBuffer::Mode::kGuarded);
}

LowerResult wrap_lower(const ir::VerifiedGraph& graph, const lower::LowerOptions& options) {
  const bool layouts = config().has("layouts");
  const bool groups = config().has("groups");
  if (!layouts && !groups) return real_lower(graph, options);
  ++changed_calls;
  lower::LowerOptions o = options;
  if (layouts) {
    o.layout_chooser = [](const ir::Graph& g, const lower::LayoutFacts&) { return any_layouts(g); };
  }
  if (groups) {
    o.keep_apart = [](const ir::Graph&, ir::ValueId v) { return kept_apart(v); };
  }
  return real_lower(graph, o);
}

Result<driver::Selection> wrap_select(const lower::LoweredGraph& lowered,
                                      const backends::Backend& backend,
                                      const backends::BackendOptions& options,
                                      std::span<const std::string> excluded, bool any_order) {
  if (!config().has("tuner") || !excluded.empty()) {
    return real_select(lowered, backend, options, excluded, any_order);
  }
  ++changed_calls;
  return real_select(lowered, backend, options, left_out(lowered, backend, options), any_order);
}

}  // namespace pyc::hostile
