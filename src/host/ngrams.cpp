#include "host/ngrams.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace pyc::host {
namespace {

constexpr int64_t kMaxLength = 64;
constexpr int64_t kMaxColumns = int64_t{1} << 24;

// Tokens as numbers: those of the pool in order, -1 for any other.
class Tokens {
 public:
  explicit Tokens(const NgramSpec& spec) {
    for (const std::string& s : spec.pool_strings) {
      pool_.push_back(strings_.emplace(s, strings_.size()).first->second);
    }
    for (const int64_t i : spec.pool_ints) {
      pool_.push_back(ints_.emplace(i, ints_.size()).first->second);
    }
  }
  const Ints& pool() const { return pool_; }

  Result<Ints> read(const DynValue& tokens) const {
    PYC_TRY(check_array(tokens, "input"));
    Ints out;
    if (!tokens.is_tensor() && ints_.empty()) {
      for (const std::string& s : *tokens.strings) {
        const auto it = strings_.find(s);
        out.push_back(it == strings_.end() ? -1 : it->second);
      }
      return out;
    }
    if (!tokens.is_tensor() || is_float(tokens.dtype) || !strings_.empty()) {
      return Status(Code::kDtypeMismatch,
                    fmt::format("{} does not fit the pool of n-grams", tokens.to_string()));
    }
    for (const int64_t i : to_ints(tokens)) {
      const auto it = ints_.find(i);
      out.push_back(it == ints_.end() ? -1 : it->second);
    }
    return out;
  }

 private:
  std::unordered_map<std::string, int64_t> strings_;
  std::unordered_map<int64_t, int64_t> ints_;
  Ints pool_;
};

// From an n-gram to its number in the pool.
using Pool = std::map<Ints, size_t>;

Result<Pool> read_pool(const NgramSpec& spec, const Ints& tokens) {
  Pool pool;
  size_t number = 0;
  const auto end_of_all = static_cast<int64_t>(tokens.size());
  for (size_t n = 1; n <= spec.starts.size(); ++n) {
    const int64_t begin = spec.starts[n - 1];
    const int64_t end = n < spec.starts.size() ? spec.starts[n] : end_of_all;
    const auto length = static_cast<int64_t>(n);
    if (begin < 0 || end < begin || end > end_of_all || (end - begin) % length != 0) {
      return Status(Code::kInvalidArgument,
                    fmt::format("{}-grams from {} to {} do not fit a pool of {} tokens", n, begin,
                                end, end_of_all));
    }
    for (int64_t at = begin; at < end; at += length, ++number) {
      if (length < spec.shortest || length > spec.longest) continue;
      pool.emplace(Ints(tokens.begin() + at, tokens.begin() + at + length), number);
    }
  }
  if (number != spec.places.size() || (!spec.weights.empty() && number != spec.weights.size())) {
    return Status(Code::kSizeMismatch,
                  fmt::format("{} n-grams have {} columns and {} weights", number,
                              spec.places.size(), spec.weights.size()));
  }
  return pool;
}

// How often each n-gram of the pool is in the row.
void count_row(std::span<const int64_t> row, const NgramSpec& spec, const Pool& pool,
               std::vector<int64_t>& counts) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t length = spec.shortest; length <= spec.longest; ++length) {
    // 1-grams are the same however many tokens are left out.
    const int64_t steps = length == 1 ? 1 : std::min(spec.most_skips, size) + 1;
    for (int64_t step = 1; step <= steps; ++step) {
      for (int64_t at = 0; at + (length - 1) * step < size; ++at) {
        Ints gram;
        for (int64_t k = 0; k < length; ++k) {
          gram.push_back(row[static_cast<size_t>(at + k * step)]);
        }
        const auto it = pool.find(gram);
        if (it != pool.end()) ++counts[it->second];
      }
    }
  }
}

Result<int64_t> columns_of(const Ints& places) {
  int64_t columns = 0;
  for (const int64_t p : places) {
    if (p < 0 || p >= kMaxColumns) {
      return Status(Code::kInvalidArgument, fmt::format("column {} is out of range", p));
    }
    columns = std::max(columns, p + 1);
  }
  return columns;
}

}  // namespace

Result<DynValue> count_ngrams(const DynValue& tokens, const NgramSpec& spec) {
  if (spec.shortest < 1 || spec.longest < spec.shortest || spec.longest > kMaxLength ||
      spec.most_skips < 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("n-grams of {} to {} tokens with {} skips cannot be counted",
                              spec.shortest, spec.longest, spec.most_skips));
  }
  const Tokens reader(spec);
  PYC_ASSIGN(const Ints numbers, reader.read(tokens));
  PYC_ASSIGN(const Pool pool, read_pool(spec, reader.pool()));
  PYC_ASSIGN(const int64_t columns, columns_of(spec.places));
  const size_t rank = tokens.shape.size();
  if (rank > 2) {
    return Status(Code::kRankMismatch,
                  fmt::format("expected rank 1 or 2, found {}", tokens.to_string()));
  }
  const int64_t width = rank == 0 ? 1 : tokens.shape.back();
  const int64_t rows = rank == 2 ? tokens.shape[0] : 1;
  const Ints shape = rank == 2 ? Ints{rows, columns} : Ints{columns};
  PYC_ASSIGN([[maybe_unused]] const int64_t count,
             element_count({rows, std::max<int64_t>(columns, 1)}));
  std::vector<double> out(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<int64_t> counts(spec.places.size());
    count_row(
        std::span(numbers).subspan(static_cast<size_t>(r * width), static_cast<size_t>(width)),
        spec, pool, counts);
    for (size_t i = 0; i < counts.size(); ++i) {
      double value = static_cast<double>(counts[i]);
      if (spec.mode == NgramMode::kIdf) value = std::min(value, 1.0);
      if (spec.mode != NgramMode::kTf && !spec.weights.empty()) value *= spec.weights[i];
      out[static_cast<size_t>(r * columns + spec.places[i])] += value;
    }
  }
  return tensor_of(DType::kF32, shape, out);
}

}  // namespace pyc::host
