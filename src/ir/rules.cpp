#include "ir/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace pyc::ir {
namespace {

// Making all elements of a random constant again would cost as much as making it did.
constexpr int64_t kRandomSamples = 16;

std::string inputs_text(int count) {
  return fmt::format("{} input{}", count, count == 1 ? "" : "s");
}

Status bad_constant(std::string detail) {
  return {Code::kInvalidArgument, "[bad_constant] " + std::move(detail)};
}

Status check_random_samples(const TensorType& type, const ConstData& data) {
  const int64_t elements = type.elements();
  const int64_t size = dtype_size(type.dtype);
  const int64_t samples = std::min(elements, kRandomSamples);
  for (int64_t k = 0; k < samples; ++k) {
    // From the first element to the last. No overflow: elements are at most 2^40.
    const int64_t i = samples == 1 ? 0 : k * (elements - 1) / (samples - 1);
    const Word expected =
        random_word(type.dtype, data.seed, data.lo, data.hi, static_cast<uint64_t>(i));
    if (load_word(data.bytes.data() + i * size, type.dtype) != expected) {
      return bad_constant(fmt::format("element {} differs from its random form", i));
    }
  }
  return {};
}

bool same_attr(const Attr& a, const Attr& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  };
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a)) return same(*x, std::get<double>(b));
  if (const auto* all = std::get_if<std::vector<double>>(&a)) {
    const auto& others = std::get<std::vector<double>>(b);
    return std::equal(all->begin(), all->end(), others.begin(), others.end(), same);
  }
  return a == b;
}

}  // namespace

bool same_attrs(const Attrs& a, const Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_attr(x.second, y.second);
  });
}

Status placed(const Status& status, Code code, std::string_view where) {
  const std::string_view message = status.message();
  const size_t end = message.starts_with('[') ? message.find("] ") : std::string_view::npos;
  const size_t reason = end == std::string_view::npos ? 0 : end + 2;
  return {code, fmt::format("{}{}: {}", message.substr(0, reason), where, message.substr(reason))};
}

Status check_arity(const OpDef& op, size_t inputs) {
  if (inputs < static_cast<size_t>(op.min_inputs)) {
    return {Code::kInvalidArgument,
            fmt::format("[too_few_inputs] op '{}': expected {}{}, found {}", op.name,
                        op.min_inputs == op.max_inputs ? "" : "at least ",
                        inputs_text(op.min_inputs), inputs)};
  }
  if (op.max_inputs < kVariadic && inputs > static_cast<size_t>(op.max_inputs)) {
    return {Code::kInvalidArgument,
            fmt::format("[too_many_inputs] op '{}': expected {}{}, found {}", op.name,
                        op.min_inputs == op.max_inputs ? "" : "at most ",
                        inputs_text(op.max_inputs), inputs)};
  }
  return {};
}

Result<std::vector<TensorType>> infer_outputs(const OpDef& op, std::span<const TensorType> inputs,
                                              const Attrs& attrs) {
  const auto where = [&] { return fmt::format("op '{}'", op.name); };
  PYC_CHECK(op.infer != nullptr, where() + " has no type rule");
  auto types = op.infer({inputs, attrs});
  if (!types.ok()) return std::move(types).status().with_context(where());
  PYC_CHECK(op.outputs == kVariadic || types->size() == static_cast<size_t>(op.outputs),
            where() + ": its type rule returns another number of outputs than it has");
  for (const TensorType& type : *types) {
    const Status accepted = check_type(type);
    if (!accepted.ok()) return placed(accepted, accepted.code(), where() + " returns");
  }
  return types;
}

Status check_constant(const TensorType& type, const ConstData* data) {
  if (data == nullptr) return bad_constant("there is no data");
  if (data->bytes.size() != static_cast<uint64_t>(type.bytes())) {
    return bad_constant(fmt::format("expected {} bytes for {}, found {}", type.bytes(),
                                    type.to_string(), data->bytes.size()));
  }
  if (type.dtype == DType::kBool && std::any_of(data->bytes.begin(), data->bytes.end(),
                                                [](std::byte b) { return b > std::byte{1}; })) {
    return bad_constant("expected 0 or 1 in every byte of a bool constant");
  }
  const auto extended = [&](std::byte b) {
    std::byte again{};
    store_word(&again, type.dtype, load_word(&b, type.dtype));
    return again == b;
  };
  if (dtype_bits(type.dtype) < 8 &&
      !std::all_of(data->bytes.begin(), data->bytes.end(), extended)) {
    return bad_constant(
        fmt::format("expected one extended element in every byte of {}", type.to_string()));
  }
  const auto size = static_cast<size_t>(dtype_size(type.dtype));
  switch (data->form) {
    case ConstData::Form::kDense:
      return {};
    case ConstData::Form::kSplat:
      // All elements are equal when each equals the one before it.
      if (data->bytes.size() > size && std::memcmp(data->bytes.data(), data->bytes.data() + size,
                                                   data->bytes.size() - size) != 0) {
        return bad_constant("the elements of a splat constant differ");
      }
      return {};
    case ConstData::Form::kRandom:
      PYC_TRY(check_random_range(data->lo, data->hi));
      return check_random_samples(type, *data);
  }
  return bad_constant(fmt::format("form number {} is unknown", static_cast<int>(data->form)));
}

Status check_random_range(double lo, double hi) {
  // Also false for NaN; the difference of two far apart is infinite.
  if (lo <= hi && std::isfinite(hi - lo)) return {};
  return bad_constant(
      fmt::format("expected finite random bounds with lo <= hi, found {} and {}", lo, hi));
}

}  // namespace pyc::ir
