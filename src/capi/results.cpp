// Values of any kind: made by the caller or by a run, and read.

#include "pyc/results.h"

#include <algorithm>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/views.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

// No model nests its sequences deeper; destroying them nests as deep.
constexpr int kMaxDepth = 64;

Status require_kind(const pyc_result* result, bool right, std::string_view wanted) {
  PYC_TRY(require(result, "result"));
  if (right) return {};
  return {Code::kInvalidArgument, fmt::format("expected {}, found {}", wanted, result->type_text)};
}

// A sequence of what the caller has made already: nothing is copied.
Result<pyc_result> join(std::span<const pyc_result* const> items) {
  std::vector<DynValue> values;
  std::vector<pyc_result> results;
  int depth = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    PYC_TRY(require(items[i], fmt::format("item {}", i)));
    depth = std::max(depth, items[i]->depth + 1);
    values.push_back(items[i]->value);
    results.push_back(*items[i]);
  }
  if (depth > kMaxDepth) {
    return Status(
        Code::kBudgetExceeded,
        fmt::format("expected at most {} sequences in one another, found {}", kMaxDepth, depth));
  }
  pyc_result out;
  out.value = DynValue::of_items(std::move(values));
  out.type_text = out.value.to_string();
  out.items = std::make_shared<const std::vector<pyc_result>>(std::move(results));
  out.depth = depth;
  return out;
}

void give(pyc_result value, pyc_result** out) {
  *out = std::make_unique<pyc_result>(std::move(value)).release();
}

}  // namespace

namespace pyc::capi {

pyc_result to_result(DynValue value) {
  pyc_result out;
  out.type_text = value.to_string();
  if (value.kind == DynValue::Kind::kSequence) {
    std::vector<pyc_result> items;
    for (const DynValue& item : *value.items) {
      items.push_back(to_result(item));
      out.depth = std::max(out.depth, items.back().depth + 1);
    }
    out.items = std::make_shared<const std::vector<pyc_result>>(std::move(items));
  }
  out.value = std::move(value);
  return out;
}

void give_results(std::vector<DynValue> values, pyc_results** out) {
  auto made = std::make_unique<pyc_results>();
  for (DynValue& value : values) made->values.push_back(to_result(std::move(value)));
  *out = made.release();
}

}  // namespace pyc::capi

void pyc_results_destroy(pyc_results* results) { delete results; }

size_t pyc_results_count(const pyc_results* results) {
  return results == nullptr ? 0 : results->values.size();
}

pyc_status pyc_results_get(const pyc_results* results, size_t index, const pyc_result** result,
                           pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(results, "results"));
    PYC_TRY(require(result, "result"));
    PYC_TRY(require_index(index, results->values.size(), "result"));
    *result = &results->values[index];
    return {};
  });
}

pyc_status pyc_result_from_tensor(const pyc_tensor_view* view, pyc_result** result,
                                  pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(result, "result"));
    PYC_ASSIGN(const runtime::TensorView given, to_view(view));
    PYC_ASSIGN(ir::TensorType type, check_view(given, false));
    PYC_ASSIGN(NewTensor tensor, new_tensor(type.dtype, std::move(type.shape)));
    runtime::gather(given, tensor.data);
    give(to_result(std::move(tensor.value)), result);
    return {};
  });
}

pyc_status pyc_result_from_strings(const pyc_string* strings, const int64_t* shape, int64_t rank,
                                   pyc_result** result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(result, "result"));
    PYC_ASSIGN(ir::TensorType type, to_type(PYC_DTYPE_U8, shape, rank));
    const auto count = static_cast<size_t>(type.elements());
    PYC_TRY(require_list(strings, count, "strings"));
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) {
      PYC_TRY(require_list(strings[i].text, strings[i].size, fmt::format("string {}", i)));
      texts.emplace_back(strings[i].size == 0 ? "" : strings[i].text, strings[i].size);
    }
    give(to_result(DynValue::of_strings(std::move(type.shape), std::move(texts))), result);
    return {};
  });
}

pyc_status pyc_result_from_items(const pyc_result* const* items, size_t count, pyc_result** result,
                                 pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(result, "result"));
    PYC_TRY(require_list(items, count, "items"));
    PYC_ASSIGN(pyc_result made, join({items, count}));
    give(std::move(made), result);
    return {};
  });
}

pyc_status pyc_result_nothing(pyc_result** result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(result, "result"));
    give(to_result({}), result);
    return {};
  });
}

pyc_status pyc_result_copy(const pyc_result* from, pyc_result** result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(from, "from"));
    PYC_TRY(require(result, "result"));
    give(*from, result);
    return {};
  });
}

void pyc_result_destroy(pyc_result* result) { delete result; }

int32_t pyc_result_type(const pyc_result* result) {
  if (result == nullptr) return PYC_TYPE_UNKNOWN;
  switch (result->value.kind) {
    case DynValue::Kind::kTensor:
      return PYC_TYPE_TENSOR;
    case DynValue::Kind::kStrings:
      return PYC_TYPE_STRINGS;
    case DynValue::Kind::kSequence:
      return PYC_TYPE_SEQUENCE;
    case DynValue::Kind::kAbsent:
      return PYC_TYPE_NOTHING;
  }
  return PYC_TYPE_UNKNOWN;
}

const char* pyc_result_type_text(const pyc_result* result) {
  return result == nullptr ? "" : result->type_text.c_str();
}

pyc_status pyc_result_shape(const pyc_result* result, const int64_t** shape, int64_t* rank,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    const int32_t type = pyc_result_type(result);
    PYC_TRY(require_kind(result, type == PYC_TYPE_TENSOR || type == PYC_TYPE_STRINGS, "a tensor"));
    PYC_TRY(require(shape, "shape"));
    PYC_TRY(require(rank, "rank"));
    *shape = result->value.shape.data();
    *rank = static_cast<int64_t>(result->value.shape.size());
    return {};
  });
}

pyc_status pyc_result_tensor(const pyc_result* result, pyc_tensor_view* view, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(
        require_kind(result, pyc_result_type(result) == PYC_TYPE_TENSOR, "a tensor of numbers"));
    const DynValue& value = result->value;
    return write_view(value.bytes, value.shape, value.dtype, view);
  });
}

size_t pyc_result_count(const pyc_result* result) {
  const int32_t type = pyc_result_type(result);
  if (type == PYC_TYPE_STRINGS) return result->value.strings->size();
  return type == PYC_TYPE_SEQUENCE ? result->items->size() : 0;
}

pyc_status pyc_result_string(const pyc_result* result, size_t index, const char** text,
                             size_t* size, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_kind(result, pyc_result_type(result) == PYC_TYPE_STRINGS, "strings"));
    PYC_TRY(require(text, "text"));
    PYC_TRY(require_index(index, result->value.strings->size(), "string"));
    const std::string& string = (*result->value.strings)[index];
    *text = string.c_str();
    if (size != nullptr) *size = string.size();
    return {};
  });
}

pyc_status pyc_result_item(const pyc_result* result, size_t index, const pyc_result** item,
                           pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_kind(result, pyc_result_type(result) == PYC_TYPE_SEQUENCE, "a sequence"));
    PYC_TRY(require(item, "item"));
    PYC_TRY(require_index(index, result->items->size(), "item"));
    *item = &(*result->items)[index];
    return {};
  });
}
