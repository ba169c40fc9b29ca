#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/all_cores.h"
#include "base/hash.h"
#include "ir/graph.h"

// Values are numbered in the order in which they are met: inputs, then the operands and results of
// one node after another. So neither inner names nor the order of `Graph::values` matter, and
// constants that nothing reads do not count.

namespace pyc::ir {
namespace {

// Part of every key: a new encoding never meets an old one.
constexpr std::string_view kEncoding = "pyc-graph-1";

// Digests of large constants, each computed once: the weights of a model are hashed by its first
// compile and not again as long as anything keeps them.
class Digests {
 public:
  Digest of(const std::shared_ptr<const ConstData>& data) {
    if (data->bytes.size() < kLarge) return hash128(data->bytes);
    if (const auto found = find(data)) return *found;
    const Digest digest = hash128(data->bytes);  // meanwhile others may look
    keep(data, digest);
    return digest;
  }

  // Computes those of the graph that are worth several cores, the longest first, so that none is
  // left alone at the end.
  void prepare(const Graph& graph) {
    std::set<const ConstData*> met;
    std::vector<std::shared_ptr<const ConstData>> shared;
    for (const Node& node : graph.nodes) {
      for (const ValueId id : node.inputs) {
        if (id >= graph.values.size()) continue;
        const auto& data = graph.values[id].constant;
        if (data == nullptr || data->bytes.size() < kShared || !met.insert(data.get()).second) {
          continue;
        }
        if (!find(data)) shared.push_back(data);
      }
    }
    std::stable_sort(shared.begin(), shared.end(), [](const auto& a, const auto& b) {
      return a->bytes.size() > b->bytes.size();
    });
    const Status done = on_all_cores(shared.size(), [&](size_t i) {
      keep(shared[i], hash128(shared[i]->bytes));
      return Status();
    });
    // What was not computed for want of memory is when it is asked for.
    static_cast<void>(done);
  }

 private:
  static constexpr size_t kLarge = 4096;
  static constexpr size_t kShared = size_t{1} << 20;
  static constexpr size_t kFirstSweep = 1024;

  void keep(const std::shared_ptr<const ConstData>& data, const Digest& digest) {
    const std::lock_guard lock(mutex_);
    if (known_.size() >= next_sweep_) sweep();
    known_.emplace(data, digest);
  }

  std::optional<Digest> find(const std::shared_ptr<const ConstData>& data) {
    const std::lock_guard lock(mutex_);
    const auto it = known_.find(data);
    return it != known_.end() ? std::optional(it->second) : std::nullopt;
  }

  void sweep() {
    std::erase_if(known_, [](const auto& entry) { return entry.first.expired(); });
    next_sweep_ = std::max(kFirstSweep, 2 * known_.size());
  }

  std::mutex mutex_;
  // By owner: an address that is used again is another owner as long as its entry is here.
  std::map<std::weak_ptr<const ConstData>, Digest, std::owner_less<>> known_;
  size_t next_sweep_ = kFirstSweep;
};

Digests& digests() {
  static Digests instance;
  return instance;
}

class KeyWriter {
 public:
  explicit KeyWriter(const Graph& graph) : graph_(graph), numbers_(graph.values.size(), kNoId) {}

  std::string write() {
    key_ += kEncoding;
    word(graph_.inputs.size());
    for (const ValueId id : graph_.inputs) io(id);
    word(graph_.nodes.size());
    for (const Node& node : graph_.nodes) write_node(node);
    word(graph_.outputs.size());
    for (const ValueId id : graph_.outputs) io(id);
    return std::move(key_);
  }

 private:
  void word(uint64_t value) {
    for (int i = 0; i < 8; ++i) key_ += static_cast<char>(value >> (8 * i));
  }

  void text(std::string_view value) {
    word(value.size());
    key_ += value;
  }

  void type(const TensorType& type) {
    word(static_cast<uint64_t>(type.dtype));
    word(type.shape.size());
    for (const int64_t dim : type.shape) word(static_cast<uint64_t>(dim));
  }

  // The number of the value; what it is follows where it is met for the first time.
  void value(ValueId id) {
    if (id >= graph_.values.size()) {
      word(kNoId);
      return;
    }
    const bool first = numbers_[id] == kNoId;
    if (first) numbers_[id] = next_number_++;
    word(numbers_[id]);
    if (!first) return;
    const Value& value = graph_.values[id];
    type(value.type);
    word(value.constant != nullptr ? 1 : 0);
    if (value.constant != nullptr) {
      const Digest digest = digests().of(value.constant);
      word(digest.hi);
      word(digest.lo);
    }
  }

  void io(ValueId id) {
    value(id);
    text(id < graph_.values.size() ? std::string_view(graph_.values[id].name) : "");
  }

  void write_node(const Node& node) {
    text(node.op != nullptr ? node.op->name : "");
    word(node.inputs.size());
    for (const ValueId id : node.inputs) value(id);
    word(node.attrs.size());
    for (const auto& [name, attr] : node.attrs) {
      text(name);
      write_attr(attr);
    }
    word(node.outputs.size());
    for (const ValueId id : node.outputs) value(id);
  }

  void write_attr(const Attr& attr) {
    word(attr.index());
    std::visit([this](const auto& v) { payload(v); }, attr);
  }

  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void payload(T v) {
    word(static_cast<uint64_t>(v));
  }
  void payload(double v) { word(std::bit_cast<uint64_t>(v)); }
  void payload(const std::string& v) { text(v); }
  void payload(const NeverHeld& /*v*/) {}
  template <class T>
  void payload(const std::vector<T>& v) {
    word(v.size());
    for (const T item : v) payload(item);
  }

  const Graph& graph_;
  std::vector<uint32_t> numbers_;
  uint32_t next_number_ = 0;
  std::string key_;
};

}  // namespace

std::string fingerprint_key(const Graph& graph) {
  digests().prepare(graph);
  return KeyWriter(graph).write();
}

Digest fingerprint(const Graph& graph) {
  const std::string key = fingerprint_key(graph);
  return hash128(std::as_bytes(std::span(key)));
}

}  // namespace pyc::ir
