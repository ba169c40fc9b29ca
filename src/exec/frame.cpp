#include "exec/frame.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyc::exec {

using open::OpenGraph;

GraphTable::GraphTable(const OpenGraph& graph)
    : start_(open::initial_state(graph)), uses_(graph.values.size()) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    begin_.push_back(reads_.size());
    for (const OpenId v : open::reads_of(graph.nodes[n])) {
      reads_.push_back(v);
      if (!start_.done[n]) ++uses_[v];
    }
  }
  begin_.push_back(reads_.size());
  for (const OpenId v : graph.outputs) ++uses_[v];
}

Frame::Slot* Frame::slot(OpenId value) {
  const auto it = std::lower_bound(slots_.begin(), slots_.end(), value,
                                   [](const Slot& s, OpenId v) { return s.value < v; });
  return it == slots_.end() || it->value != value ? nullptr : &*it;
}

const DynValue* Frame::find(OpenId value) const {
  const Slot* const found = const_cast<Frame*>(this)->slot(value);
  if (found != nullptr) return &found->content;
  const auto& constant = table_.start().values[value];
  return constant ? &*constant : nullptr;
}

void Frame::set(OpenId value, DynValue content, bool constant) {
  if (uses()[value] == 0) return;
  const auto it = std::lower_bound(slots_.begin(), slots_.end(), value,
                                   [](const Slot& s, OpenId v) { return s.value < v; });
  Slot made{.value = value, .constant = constant, .content = std::move(content)};
  if (it != slots_.end() && it->value == value) {
    *it = std::move(made);
  } else {
    slots_.insert(it, std::move(made));
  }
}

void Frame::finish(uint32_t node) {
  if (is_done(node)) return;
  if (!counts_) {
    done_ = table_.start().done;
    uses_ = table_.uses();
    counts_ = true;
  }
  done_[node] = true;
  for (const OpenId v : table_.reads(node)) {
    if (--uses_[v] > 0) continue;
    if (const Slot* const found = slot(v)) slots_.erase(slots_.begin() + (found - slots_.data()));
  }
}

bool Frame::complete() const {
  const auto& outputs = graph().outputs;
  return std::all_of(outputs.begin(), outputs.end(), [&](OpenId v) { return find(v) != nullptr; });
}

DynValue Frame::give(size_t output) {
  const auto& outputs = graph().outputs;
  const OpenId value = outputs[output];
  Slot* const own = slot(value);
  const auto after = outputs.begin() + static_cast<std::ptrdiff_t>(output) + 1;
  if (own == nullptr || std::find(after, outputs.end(), value) != outputs.end()) {
    return *find(value);
  }
  return std::move(own->content);
}

bool Frame::reads_present(uint32_t node) const {
  const std::span<const OpenId> reads = table_.reads(node);
  return std::all_of(reads.begin(), reads.end(), [&](OpenId v) { return find(v) != nullptr; });
}

// Per value: its id, its kind and dtype, its rank, its dims.
Signature Frame::signature() const {
  size_t words = 0;
  for (const Slot& s : slots_) words += 3 + s.content.shape.size();
  Signature out;
  out.reserve(words);
  for (const Slot& s : slots_) {
    if (s.constant) continue;
    out.push_back(s.value);
    if (!s.content.is_tensor()) {
      out.insert(out.end(), {-1, 0});
      continue;
    }
    out.push_back(static_cast<int64_t>(s.content.dtype));
    out.push_back(static_cast<int64_t>(s.content.shape.size()));
    out.insert(out.end(), s.content.shape.begin(), s.content.shape.end());
  }
  return out;
}

open::State Frame::state() const {
  open::State state = table_.start();
  state.done = done();
  state.type_only.resize(state.values.size());
  for (const Slot& s : slots_) {
    state.values[s.value] = s.content;
    state.constant[s.value] = s.constant;
    state.type_only[s.value] = is_type(s.content);
  }
  return state;
}

std::string describe(const OpenGraph& graph, const Signature& signature) {
  std::string text;
  for (size_t i = 0; i + 2 < signature.size();) {
    const auto value = static_cast<OpenId>(signature[i]);
    const int64_t dtype = signature[i + 1];
    const auto rank = static_cast<size_t>(signature[i + 2]);
    const auto dims = std::span(signature).subspan(i + 3, rank);
    i += 3 + rank;
    const std::string& name = graph.values[value].name;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name.empty() ? "?" : name,
                        dtype < 0 ? "no tensor"
                                  : fmt::format("{}[{}]", dtype_name(static_cast<DType>(dtype)),
                                                fmt::join(dims, ",")));
  }
  return text;
}

}  // namespace pyc::exec
