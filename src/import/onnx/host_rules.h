#pragma once

// What host meanings of ONNX ops share.

#include <optional>
#include <string_view>
#include <vector>

#include "import/onnx/rules.h"

namespace pyc::onnx {

// Input i; nothing when it was left out or is beyond the last one.
inline const DynValue& input_of(const HostCall& call, size_t i) {
  static const DynValue nothing;
  return i < call.inputs() ? call.input(i) : nothing;
}

inline std::vector<DynValue> inputs_from(const HostCall& call, size_t first) {
  std::vector<DynValue> values;
  for (size_t i = first; i < call.inputs(); ++i) values.push_back(call.input(i));
  return values;
}

// One output.
inline Status give(HostCall& call, Result<DynValue> value) {
  if (!value.ok()) return std::move(value).status();
  call.set_output(0, std::move(*value));
  return {};
}

// All outputs, of which there may be more than the node wants.
inline Status give_all(HostCall& call, Result<std::vector<DynValue>> values) {
  if (!values.ok()) return std::move(values).status();
  for (size_t i = 0; i < values->size(); ++i) call.set_output(i, std::move((*values)[i]));
  return {};
}

inline std::optional<int64_t> attr_if(const HostCall& call, std::string_view name) {
  const auto* v = call.attr<int64_t>(name);
  return v == nullptr ? std::nullopt : std::optional(*v);
}

inline Ints attr_ints(const HostCall& call, std::string_view name) {
  const auto* v = call.attr<Ints>(name);
  return v == nullptr ? Ints{} : *v;
}

inline std::vector<double> attr_floats(const HostCall& call, std::string_view name) {
  const auto* v = call.attr<std::vector<double>>(name);
  return v == nullptr ? std::vector<double>{} : *v;
}

inline std::vector<std::string> attr_strings(const HostCall& call, std::string_view name) {
  const auto* v = call.attr<std::vector<std::string>>(name);
  return v == nullptr ? std::vector<std::string>{} : *v;
}

inline const open::OpenGraph* attr_graph(const HostCall& call, std::string_view name) {
  const auto* v = call.attr<std::shared_ptr<const open::OpenGraph>>(name);
  return v == nullptr ? nullptr : v->get();
}

}  // namespace pyc::onnx
