#include "host/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/convert.h"

namespace pyc::host {
namespace {

std::vector<bool> truths(const DynValue& value) {
  std::vector<bool> out;
  if (!value.is_tensor()) {
    for (const std::string& s : *value.strings) out.push_back(!s.empty());
    return out;
  }
  const auto size = static_cast<size_t>(dtype_size(value.dtype));
  for (size_t at = 0; at < value.bytes.size(); at += size) {
    const Word word = load_word(value.bytes.data() + at, value.dtype);
    out.push_back(convert_word(word, value.dtype, DType::kBool) != 0);
  }
  return out;
}

// -1, 0 or 1 as element a is below, equal to or above b. A NaN is above everything else and equal
// to any other NaN.
using Compare = std::function<int(int64_t, int64_t)>;

template <class T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int order_floats(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return order<bool>(std::isnan(a), std::isnan(b));
  return order(a, b);
}

Compare comparison(const DynValue& value) {
  if (!value.is_tensor()) {
    return [strings = value.strings](int64_t a, int64_t b) {
      return order((*strings)[static_cast<size_t>(a)], (*strings)[static_cast<size_t>(b)]);
    };
  }
  if (is_float(value.dtype)) {
    return [all = to_doubles(value)](int64_t a, int64_t b) {
      return order_floats(all[static_cast<size_t>(a)], all[static_cast<size_t>(b)]);
    };
  }
  const bool is_signed = is_signed_int(value.dtype);
  return [all = to_ints(value), is_signed](int64_t a, int64_t b) {
    const int64_t x = all[static_cast<size_t>(a)];
    const int64_t y = all[static_cast<size_t>(b)];
    return is_signed ? order(x, y) : order(static_cast<uint64_t>(x), static_cast<uint64_t>(y));
  };
}

// Compares whole entries of an axis, element by element.
Compare entry_comparison(const DynValue& value, const AxisView& view) {
  return [compare = comparison(value), view](int64_t a, int64_t b) {
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t k = 0; k < view.inner; ++k) {
        const int c =
            compare((o * view.dim + a) * view.inner + k, (o * view.dim + b) * view.inner + k);
        if (c != 0) return c;
      }
    }
    return 0;
  };
}

// Entries that are equal, in the order of their values.
struct Groups {
  Ints first;    // by group
  Ints counts;   // by group
  Ints inverse;  // by entry
};

Groups group(int64_t entries, const Compare& compare) {
  Ints by_value(static_cast<size_t>(entries));
  std::iota(by_value.begin(), by_value.end(), 0);
  std::stable_sort(by_value.begin(), by_value.end(),
                   [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  Groups g{.first = {}, .counts = {}, .inverse = Ints(by_value.size())};
  for (size_t i = 0; i < by_value.size(); ++i) {
    if (i == 0 || compare(by_value[i - 1], by_value[i]) != 0) {
      g.first.push_back(by_value[i]);  // the sort is stable: the smallest index
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.inverse[static_cast<size_t>(by_value[i])] = static_cast<int64_t>(g.first.size()) - 1;
  }
  return g;
}

Groups by_first(const Groups& g) {
  Ints order(g.first.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return g.first[static_cast<size_t>(a)] < g.first[static_cast<size_t>(b)];
  });
  Groups out{.first = {}, .counts = {}, .inverse = g.inverse};
  Ints place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<size_t>(order[i]);
    out.first.push_back(g.first[from]);
    out.counts.push_back(g.counts[from]);
    place[from] = static_cast<int64_t>(i);
  }
  for (int64_t& i : out.inverse) i = place[static_cast<size_t>(i)];
  return out;
}

}  // namespace

Result<DynValue> nonzero(const DynValue& input) {
  PYC_TRY(check_array(input, "input"));
  const std::vector<bool> there = truths(input);
  const size_t rank = input.shape.size();
  Ints at;
  for (size_t i = 0; i < there.size(); ++i) {
    if (there[i]) at.push_back(static_cast<int64_t>(i));
  }
  Ints indices(rank * at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    int64_t rest = at[i];
    for (size_t d = rank; d-- > 0;) {
      indices[d * at.size() + i] = rest % input.shape[d];
      rest /= input.shape[d];
    }
  }
  return tensor_of(DType::kI64, {static_cast<int64_t>(rank), static_cast<int64_t>(at.size())},
                   indices);
}

Result<DynValue> compress(const DynValue& input, const DynValue& condition,
                          std::optional<int64_t> axis) {
  PYC_TRY(check_array(input, "input"));
  PYC_TRY(check_numbers(condition, "condition"));
  PYC_TRY(check_rank(condition, 1, "condition"));
  DynValue from = input;
  if (!axis) from.shape = {input.elements()};
  PYC_ASSIGN(const size_t along, axis_in(axis.value_or(0), from.shape.size()));
  const std::vector<bool> wanted = truths(condition);
  Ints at;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) at.push_back(static_cast<int64_t>(i));
  }
  return take(from, along, at);
}

Result<UniqueResult> unique(const DynValue& input, std::optional<int64_t> axis, bool sorted) {
  PYC_TRY(check_array(input, "input"));
  DynValue from = input;
  if (!axis) from.shape = {input.elements()};
  PYC_ASSIGN(const size_t along, axis_in(axis.value_or(0), from.shape.size()));
  PYC_ASSIGN([[maybe_unused]] const int64_t entries, element_count({from.shape[along]}));
  const AxisView view = view_axis(from.shape, along);
  const bool empty = from.elements() == 0;
  Groups groups = group(
      view.dim, empty ? Compare([](int64_t, int64_t) { return 0; }) : entry_comparison(from, view));
  if (!sorted) groups = by_first(groups);
  UniqueResult result;
  PYC_ASSIGN(result.values, take(from, along, groups.first));
  result.first = DynValue::of_ints(groups.first);
  result.inverse = DynValue::of_ints(groups.inverse);
  result.counts = DynValue::of_ints(groups.counts);
  return result;
}

}  // namespace pyc::host
