#include "driver/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/target_info.h"
#include "loop/loop.h"

namespace pyc::driver {
namespace {

constexpr std::string_view kHead = "pyc tuning 1";

// Tables of a machine do not grow without end: beyond this the keys that come last go, which is any
// of them, keys being digests.
constexpr size_t kMostGroups = 20'000;

// What the system calls the processor: two of one kind share their times.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) break;  // the second processor
    for (const std::string_view word : {"model name", "CPU implementer", "CPU part"}) {
      const size_t colon = line.find(':');
      if (line.starts_with(word) && colon != std::string::npos) out += line.substr(colon + 1);
    }
  }
  return out;
}

std::string machine_text() {
  const TargetInfo here = host_target();
  return fmt::format("{}{} [{}] caches {} {} {} cores {}", here.arch, processor(), here.features(),
                     here.l1_bytes, here.l2_bytes, here.l3_bytes, here.cores);
}

// The words of a line, separated by one space each.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

template <class T>
bool read_number(std::string_view word, T& out) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc() && end == word.data() + word.size() && out >= T{};
}

bool read_probe(const std::vector<std::string_view>& w, TuningTable& table) {
  int threads = 0;
  MachineProbe probe;
  if (w.size() != 5 || !read_number(w[1], threads)) return false;
  if (!read_number(w[2], probe.flops_per_ns) || !read_number(w[3], probe.bytes_per_ns)) {
    return false;
  }
  if (!read_number(w[4], probe.step_ns)) return false;
  return table.probes.emplace(threads, probe).second;
}

bool read_kernel(const std::vector<std::string_view>& w, TunedGroup* group) {
  MeasuredKernel kernel;
  if (group == nullptr || w.size() != 7) return false;
  kernel.name = w[1];
  kernel.wrong = w[6] == "wrong";
  if (!kernel.wrong && w[6] != "right") return false;
  if (!read_number(w[2], kernel.predicted_ns) || !read_number(w[3], kernel.best_ns)) return false;
  if (!read_number(w[4], kernel.p50_ns) || !read_number(w[5], kernel.p95_ns)) return false;
  group->kernels.push_back(std::move(kernel));
  return true;
}

}  // namespace

const MeasuredKernel* TunedGroup::find(std::string_view name) const {
  const auto it = std::ranges::find(kernels, name, &MeasuredKernel::name);
  return it == kernels.end() ? nullptr : &*it;
}

std::string TuningTable::print() const {
  std::string text = fmt::format("{}\n", kHead);
  for (const auto& [threads, p] : probes) {
    text += fmt::format("probe {} {} {} {}\n", threads, p.flops_per_ns, p.bytes_per_ns, p.step_ns);
  }
  for (const auto& [key, group] : groups) {
    text += fmt::format("group {} {} {}\n", key, group.untuned, group.chosen);
    for (const MeasuredKernel& k : group.kernels) {
      text += fmt::format("kernel {} {} {} {} {} {}\n", k.name, k.predicted_ns, k.best_ns, k.p50_ns,
                          k.p95_ns, k.wrong ? "wrong" : "right");
    }
  }
  return text;
}

Result<TuningTable> TuningTable::parse(std::string_view text) {
  TuningTable table;
  TunedGroup* group = nullptr;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::vector<std::string_view> words = words_of(line);
    const std::string_view kind = words.empty() ? "" : words[0];
    bool sound = false;
    if (number == 1) {
      sound = line == kHead;
    } else if (kind == "probe") {
      sound = read_probe(words, table);
    } else if (kind == "group" && words.size() == 4) {
      const auto [it, is_new] = table.groups.try_emplace(std::string(words[1]));
      it->second.untuned = words[2];
      it->second.chosen = words[3];
      group = &it->second;
      sound = is_new;
    } else if (kind == "kernel") {
      sound = read_kernel(words, group);
    }
    if (!sound) {
      return Status(Code::kParseError, fmt::format("tuning table, line {}: '{}'", number, line));
    }
  }
  return table;
}

std::string group_key(const ir::Graph& graph, const lower::Group& group,
                      const backends::BackendOptions& options) {
  Hasher hasher;
  hasher.update(loop::print(group.kernel)).update(std::string_view(group.order));
  hasher.update(options.threads).update(options.lanes).update(static_cast<int>(options.effort));
  for (size_t b = 0; b < group.buffer_values.size(); ++b) {
    const ir::ValueId v = group.buffer_values[b];
    const bool constant = v != ir::kNoId && graph.value(v).kind == ir::ValueKind::kConstant;
    hasher.update(constant ? 1 : 0).update(group.buffer_offset(b));
  }
  return hasher.finish().hex();
}

TuningStore::TuningStore(const Store& store, const backends::Backend& backend,
                         std::string_view compiler)
    : store_(store),
      key_(fmt::format("tuning pyc={} backend={} target={} on={} with={}", compiler, backend.name(),
                       backend.native_target(), machine_text(), backend.found_here())) {}

TuningTable TuningStore::read(std::string* problem) const {
  if (problem != nullptr) problem->clear();
  const std::optional<SharedBytes> found = store_.get(key_, problem);
  if (!found) return {};
  auto table = TuningTable::parse(
      std::string_view(reinterpret_cast<const char*>(found->data()), found->size()));
  if (table.ok()) return std::move(*table);
  if (problem != nullptr) *problem = table.status().message();
  return {};
}

Status TuningStore::add(const TuningTable& more) const {
  TuningTable table = read();
  for (const auto& [threads, probe] : more.probes) table.probes[threads] = probe;
  for (const auto& [key, group] : more.groups) table.groups[key] = group;
  while (table.groups.size() > kMostGroups) table.groups.erase(std::prev(table.groups.end()));
  const std::string text = table.print();
  const auto bytes = std::as_bytes(std::span(text));
  const SharedBytes piece(std::vector<std::byte>(bytes.begin(), bytes.end()));
  return store_.put(key_, {&piece, 1});
}

void apply_tuning(const TuningTable& table, const lower::LoweredGraph& lowered,
                  const backends::Backend& backend, const backends::BackendOptions& options,
                  Selection& selection) {
  if (table.groups.empty()) return;
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    const auto found = table.groups.find(group_key(*lowered.graph, lowered.groups[g], options));
    if (found == table.groups.end()) continue;
    const TunedGroup& tuned = found->second;
    Decision& decision = selection.decisions[g];
    for (Alternative& a : decision.alternatives) {
      const MeasuredKernel* measured = tuned.find(a.name);
      if (measured != nullptr && !measured->wrong) {
        a.measured_ns = static_cast<double>(measured->best_ns);
      }
    }
    // At the level fast a kernel of another order may have been chosen, which was not measured.
    if (selection.chosen[g].order != lowered.groups[g].order) continue;
    const auto chosen = std::ranges::find_if(decision.alternatives, [&](const Alternative& a) {
      return a.name == tuned.chosen && a.rejected.empty();
    });
    if (chosen == decision.alternatives.end()) {
      decision.reason = "tuned_kernel_missing";
      decision.detail = fmt::format("{} was measured to be the fastest", tuned.chosen);
      continue;
    }
    decision.reason = "tuned";
    if (chosen->name == decision.chosen) continue;
    decision.detail = fmt::format("in place of {}", decision.chosen);
    take_candidate(static_cast<size_t>(chosen - decision.alternatives.begin()), lowered, g, backend,
                   options, selection);
  }
}

}  // namespace pyc::driver
