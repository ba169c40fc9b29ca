#include "open/close.h"

#include <fmt/format.h>

namespace pyc::open {
namespace {

std::string_view kind_name(const OpenAttr& attr) {
  constexpr std::string_view kNames[] = {"an integer", "a float",  "a string", "integers", "floats",
                                         "strings",    "a tensor", "a graph",  "a type"};
  return kNames[attr.index()];
}

}  // namespace

ir::ValueId CloseContext::take(Result<ir::ValueId> result) {
  if (result.ok()) return *result;
  if (ok()) status_ = result.status();
  return ir::kNoId;
}

void CloseContext::refuse(Code code, std::string message) {
  if (ok()) status_ = Status(code, std::move(message));
}

ir::ValueId CloseContext::input(size_t i) {
  if (has(i)) return inputs_[i];
  refuse(Code::kInvalidArgument, fmt::format("input {} is needed and was left out", i));
  return ir::kNoId;
}

std::vector<ir::ValueId> CloseContext::all_inputs() {
  std::vector<ir::ValueId> all;
  for (size_t i = 0; i < inputs(); ++i) all.push_back(input(i));
  return all;
}

const ir::TensorType& CloseContext::look_at(ir::ValueId v) const {
  static const ir::TensorType kNothing;
  return !ok() || v >= builder_.graph().values.size() ? kNothing : builder_.type(v);
}

ir::TensorType CloseContext::type(ir::ValueId v) const { return look_at(v); }

bool CloseContext::is_known(ir::ValueId v) {
  return ok() && v != ir::kNoId && folder_.known(builder_.graph(), v) != nullptr;
}

std::optional<DynValue> CloseContext::content(ir::ValueId v) {
  if (!ok() || v == ir::kNoId) return std::nullopt;
  const auto data = folder_.known(builder_.graph(), v);
  if (data == nullptr) {
    missing_ = v;
    return std::nullopt;
  }
  DynValue value;
  value.kind = DynValue::Kind::kTensor;
  value.dtype = dtype(v);
  value.shape = shape(v);
  value.bytes = data->bytes;
  return value;
}

std::vector<int64_t> CloseContext::ints(ir::ValueId v) {
  const auto known = content(v);
  return known ? to_ints(*known) : std::vector<int64_t>{};
}

std::vector<double> CloseContext::floats(ir::ValueId v) {
  const auto known = content(v);
  return known ? to_doubles(*known) : std::vector<double>{};
}

int64_t CloseContext::int_value(ir::ValueId v) {
  const std::vector<int64_t> all = ints(v);
  if (all.size() == 1) return all[0];
  refuse(Code::kShapeMismatch, fmt::format("expected one element, found {}", type(v).to_string()));
  return 0;
}

double CloseContext::float_value(ir::ValueId v) {
  const std::vector<double> all = floats(v);
  if (all.size() == 1) return all[0];
  refuse(Code::kShapeMismatch, fmt::format("expected one element, found {}", type(v).to_string()));
  return 0.0;
}

template <class T>
const T* CloseContext::find(std::string_view name) {
  const auto it = node_.attrs.find(name);
  if (it == node_.attrs.end()) return nullptr;
  const T* found = std::get_if<T>(&it->second);
  if (found == nullptr) {
    refuse(Code::kInvalidArgument, fmt::format("attribute '{}' is {}, expected {}", name,
                                               kind_name(it->second), kind_name(OpenAttr(T{}))));
  }
  return found;
}

int64_t CloseContext::attr_int(std::string_view name, int64_t fallback) {
  const auto* v = find<int64_t>(name);
  return v == nullptr ? fallback : *v;
}

int64_t CloseContext::attr_int(std::string_view name) {
  if (!has_attr(name)) {
    refuse(Code::kInvalidArgument, fmt::format("attribute '{}' is needed", name));
  }
  return attr_int(name, 0);
}

double CloseContext::attr_float(std::string_view name, double fallback) {
  const auto* v = find<double>(name);
  return v == nullptr ? fallback : *v;
}

std::string CloseContext::attr_string(std::string_view name, std::string_view fallback) {
  const auto* v = find<std::string>(name);
  return v == nullptr ? std::string(fallback) : *v;
}

std::vector<int64_t> CloseContext::attr_ints(std::string_view name,
                                             const std::vector<int64_t>& fallback) {
  const auto* v = find<std::vector<int64_t>>(name);
  return v == nullptr ? fallback : *v;
}

std::vector<double> CloseContext::attr_floats(std::string_view name,
                                              const std::vector<double>& fallback) {
  const auto* v = find<std::vector<double>>(name);
  return v == nullptr ? fallback : *v;
}

const std::vector<std::string>* CloseContext::attr_strings(std::string_view name) {
  return find<std::vector<std::string>>(name);
}

const DynValue* CloseContext::attr_tensor(std::string_view name) { return find<DynValue>(name); }

const OpenGraph* CloseContext::attr_graph(std::string_view name) {
  const auto* v = find<std::shared_ptr<const OpenGraph>>(name);
  return v == nullptr ? nullptr : v->get();
}

ir::ValueId CloseContext::op(std::string_view name, std::vector<ir::ValueId> inputs,
                             ir::Attrs attrs) {
  if (!ok()) return ir::kNoId;
  return take(builder_.op(name, std::move(inputs), std::move(attrs), "", node_.name));
}

ir::ValueId CloseContext::constant(ir::TensorType type, std::shared_ptr<const ir::ConstData> data) {
  if (!ok()) return ir::kNoId;
  return take(builder_.constant(std::move(type), std::move(data)));
}

ir::ValueId CloseContext::constant(const DynValue& tensor) {
  if (tensor.kind != DynValue::Kind::kTensor) {
    refuse(Code::kUnsupported,
           fmt::format("expected a number tensor, found {}", tensor.to_string()));
    return ir::kNoId;
  }
  return constant({tensor.dtype, tensor.shape}, ir::dense_data(tensor.bytes));
}

ir::ValueId CloseContext::scalar(DType dtype, double value) {
  if (!ok()) return ir::kNoId;
  return take(builder_.scalar(dtype, value));
}

ir::ValueId CloseContext::int_vector(const std::vector<int64_t>& values) {
  return constant(DynValue::of_ints(values));
}

ir::ValueId CloseContext::splat(ir::TensorType type, double value) {
  if (!ok()) return ir::kNoId;
  const Status accepted = check_type(type);
  if (!accepted.ok()) {
    refuse(accepted.code(), accepted.message());
    return ir::kNoId;
  }
  constexpr int64_t kMaxSplat = int64_t{1} << 20;
  if (type.bytes() <= kMaxSplat) {
    auto data = ir::splat_data(type, value);
    return constant(std::move(type), std::move(data));
  }
  return op("expand", {scalar(type.dtype, value)}, {{"shape", type.shape}});
}

ir::ValueId CloseContext::cast(ir::ValueId v, DType to) {
  return !ok() || dtype(v) == to ? v : op("cast", {v}, {{"to", to}});
}

ir::ValueId CloseContext::reshape(ir::ValueId v, ir::Shape to) {
  return !ok() || shape(v) == to ? v : op("reshape", {v}, {{"shape", std::move(to)}});
}

ir::ValueId CloseContext::transpose(ir::ValueId v, std::vector<int64_t> perm) {
  return op("transpose", {v}, {{"perm", std::move(perm)}});
}

std::vector<ir::ValueId> CloseContext::region(const OpenGraph& region,
                                              std::span<const ir::ValueId> inputs) {
  if (!ok()) return {};
  auto closed = folder_.inline_region(region, inputs);
  if (!closed.ok()) {
    refuse(closed.status().code(), closed.status().message());
    return {};
  }
  if (!closed->has_value()) {
    open_region_ = true;
    return {};
  }
  return **closed;
}

void CloseContext::set(size_t output, ir::ValueId v) {
  if (!ok() || output >= outputs_.size()) return;
  if (v >= builder_.graph().values.size()) {
    refuse(Code::kInvalidArgument, fmt::format("the op returns no output {}", output));
    return;
  }
  outputs_[output] = v;
}

}  // namespace pyc::open
