#include "exec/run_values.h"

#include <algorithm>

namespace pyc::exec {
namespace {

bool is_aligned(const DynValue& value) {
  const auto address = reinterpret_cast<uintptr_t>(value.bytes.data());
  return address % static_cast<uintptr_t>(dtype_size(value.dtype)) == 0;
}

Result<DynValue> aligned_copy(const DynValue& value) {
  PYC_ASSIGN(NewTensor copy, new_tensor(value.dtype, value.shape));
  std::copy(value.bytes.begin(), value.bytes.end(), copy.data);
  return std::move(copy.value);
}

// Good as long as the value is, which may be moved.
runtime::TensorView view_of(const DynValue& value) {
  return {const_cast<std::byte*>(value.bytes.data()), value.dtype, value.shape,
          static_cast<int64_t>(value.bytes.size())};
}

}  // namespace

Result<std::vector<DynValue>> run_values(runtime::Model& model,
                                         std::span<const DynValue* const> inputs,
                                         runtime::RunStats& measured) {
  std::vector<DynValue> copies;  // of values that lie at odd addresses
  std::vector<runtime::TensorView> in;
  in.reserve(inputs.size());
  for (const DynValue* value : inputs) {
    if (!is_aligned(*value)) {
      PYC_ASSIGN(DynValue copy, aligned_copy(*value));
      value = &copies.emplace_back(std::move(copy));
    }
    in.push_back(view_of(*value));
  }
  std::vector<runtime::TensorView> out;
  std::vector<DynValue> results;
  out.reserve(model.outputs().size());
  results.reserve(model.outputs().size());
  for (const runtime::IoSpec& spec : model.outputs()) {
    PYC_ASSIGN(NewTensor tensor, new_tensor(spec.dtype, spec.shape));
    out.push_back({tensor.data, spec.dtype, spec.shape, spec.bytes});
    results.push_back(std::move(tensor.value));
  }
  runtime::RunStats one;
  PYC_TRY(model.run(in, out, &one));
  measured.steps += one.steps;
  measured.copied_bytes += one.copied_bytes;
  measured.recomputed_steps += one.recomputed_steps;
  measured.sent_bytes += one.sent_bytes;
  measured.fetched_bytes += one.fetched_bytes;
  measured.allocations += one.allocations + static_cast<int64_t>(results.size());
  return results;
}

}  // namespace pyc::exec
