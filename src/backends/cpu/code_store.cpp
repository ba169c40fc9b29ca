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
SharedObject CodeStore::keep(const std::string& source, SharedObject object) {
  const std::scoped_lock lock(mutex_);
  if (objects_.size() >= kMostObjects) {
    std::erase_if(objects_, [](const auto& entry) { return entry.second.use_count() == 1; });
  }
  return objects_.try_emplace(source, std::move(object)).first->second;
}

std::optional<runtime::Parameter> CodeStore::find_packed(const SharedBytes& constant,
                                                         const std::string& packing) const {
  const std::scoped_lock lock(mutex_);
  const auto it = packed_.find({constant.data(), packing});
  if (it == packed_.end()) return std::nullopt;
  runtime::Parameter found = it->second.made;
  found.owner = it->second.owner.lock();
  if (found.owner == nullptr) return std::nullopt;
  return found;
}

// The constant is kept too: it is by its address that it is found.
runtime::Parameter CodeStore::keep_packed(const SharedBytes& constant, const std::string& packing,
                                          runtime::Parameter made) {
  if (made.data == nullptr) return made;
  made.owner = std::make_shared<const std::pair<std::shared_ptr<const void>, SharedBytes>>(
      std::move(made.owner), constant);
  Packed entry{made.owner, made};
  entry.made.owner = nullptr;
  const std::scoped_lock lock(mutex_);
  std::erase_if(packed_, [](const auto& known) { return known.second.owner.expired(); });
  packed_.insert_or_assign({constant.data(), packing}, std::move(entry));
  return made;
}

}  // namespace pyc::cpu
