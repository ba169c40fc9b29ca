#include "backends/cpu/code_store.h"

#include <fmt/format.h>

namespace pyc::cpu {

bool CodeStore::meet(const ir::Graph& graph) {
  std::string inputs;
  for (const ir::ValueId v : graph.inputs) {
    const ir::Value& value = graph.value(v);
    inputs += fmt::format("{} {} {}\n", value.name, dtype_name(value.type.dtype),
                          value.type.shape.size());
  }
  const std::scoped_lock lock(mutex_);
  return !met_.insert(std::move(inputs)).second;
}

SharedObject CodeStore::find(const std::string& source) const {
  const std::scoped_lock lock(mutex_);
  const auto it = objects_.find(source);
  return it == objects_.end() ? nullptr : it->second;
}

// Where there are very many, those that no program uses go.
SharedObject CodeStore::keep(const std::string& source, const SharedObject& object) {
  const std::scoped_lock lock(mutex_);
  if (objects_.size() >= kMostObjects) {
    std::erase_if(objects_, [](const auto& entry) { return entry.second.use_count() == 1; });
  }
  return objects_.try_emplace(source, object).first->second;
}

std::shared_ptr<const loop::KernelTexts> CodeStore::texts() const {
  const std::scoped_lock lock(mutex_);
  return texts_;
}

void CodeStore::keep_texts(std::shared_ptr<const loop::KernelTexts> texts) {
  const std::scoped_lock lock(mutex_);
  texts_.swap(texts);  // what was kept goes without the lock
}

}  // namespace pyc::cpu
