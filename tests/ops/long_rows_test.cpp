// Sums and scans of more than 2^20 elements, against plain transcriptions of docs/NUMERICS.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/convert.h"
#include "ir/graph.h"
#include "ops/registry.h"
#include "session/model.h"
#include "support/round.h"

namespace pyc::test {
namespace {

constexpr size_t kBlock = 1024;
constexpr size_t kSuperBlock = 1024 * kBlock;
// Two super-blocks of which the second has some blocks and one element, and four.
constexpr size_t kLengths[] = {kSuperBlock + 64 * kBlock + 1, 3 * kSuperBlock + 5};

template <class T>
using Join = std::function<T(T, T)>;

template <class T>
T identity_of(bool product) {
  return product ? T(1) : T(0);
}

template <class T>
Join<T> join_of(bool product) {
  if (product) return [](T a, T b) { return a * b; };
  return [](T a, T b) { return a + b; };
}

// Sums: of very different size. Products: around 1, so that they stay finite.
template <class T>
std::vector<T> numbers(size_t n, bool product, uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::vector<T> v(n);
  for (T& x : v) {
    const double u = static_cast<double>(random()) / 4294967296.0 - 0.5;
    x = static_cast<T>(product ? 1.0 + u * 0x1p-8
                               : std::ldexp(u, static_cast<int>(random() % 24) - 12));
  }
  return v;
}

// Elements [begin, end), at most a block.
template <class T>
T block_total(const std::vector<T>& x, size_t begin, size_t end, bool product) {
  const Join<T> join = join_of<T>(product);
  std::vector<T> lanes(64, identity_of<T>(product));
  for (size_t i = begin; i < end; ++i) lanes[i % 64] = join(lanes[i % 64], x[i]);
  for (size_t h = 32; h > 0; h /= 2) {
    for (size_t l = 0; l < h; ++l) lanes[l] = join(lanes[l], lanes[l + h]);
  }
  return lanes[0];
}

// With super-blocks of `group` elements; more than there are elements: without them.
template <class T>
T total(const std::vector<T>& x, size_t group, bool product) {
  const Join<T> join = join_of<T>(product);
  T all = identity_of<T>(product);
  for (size_t s = 0; s < x.size(); s += std::min(group, x.size())) {
    const size_t end = std::min(x.size(), s + std::min(group, x.size()));
    T inner = identity_of<T>(product);
    for (size_t b = s; b < end; b += kBlock) {
      inner = join(inner, block_total(x, b, std::min(end, b + kBlock), product));
    }
    all = join(all, inner);
  }
  return all;
}

// Numbers whose sum would have other bits without super-blocks.
template <class T>
std::vector<T> telling_numbers(size_t n, bool product) {
  for (uint32_t seed = 1; seed < 64; ++seed) {
    std::vector<T> x = numbers<T>(n, product, seed);
    if (total(x, kSuperBlock, product) != total(x, n, product)) return x;
  }
  ADD_FAILURE() << "no data tells the orders apart";
  return numbers<T>(n, product);
}

template <class T>
std::vector<T> scanned(const std::vector<T>& x, size_t group, bool product) {
  const Join<T> join = join_of<T>(product);
  const T one = identity_of<T>(product);
  std::vector<T> y(x.size());
  T base = one;
  T carry = one;
  T local = one;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i != 0 && i % group == 0) {
      base = join(base, join(carry, local));
      carry = local = one;
    } else if (i != 0 && i % kBlock == 0) {
      carry = join(carry, local);
      local = one;
    }
    local = join(local, x[i]);
    y[i] = join(base, join(carry, local));
  }
  return y;
}

template <class T>
std::vector<T> run(const std::string& text, const std::vector<T>& x,
                   const driver::CompileOptions& options) {
  auto graph = ir::parse(text, ops::all_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  if (!graph.ok()) return {};
  auto model = session::compile(std::move(*graph), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!model.ok()) return {};
  const auto view = [](const runtime::IoSpec& spec, const T* data) {
    return runtime::TensorView{const_cast<T*>(data), spec.dtype, spec.shape, spec.bytes};
  };
  const runtime::IoSpec& spec = (*model)->outputs()[0];
  std::vector<T> y(static_cast<size_t>(spec.bytes) / sizeof(T));
  const std::vector<runtime::TensorView> inputs{view((*model)->inputs()[0], x.data())};
  const std::vector<runtime::TensorView> outputs{view(spec, y.data())};
  const Status status = (*model)->run(inputs, outputs);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return y;
}

// Compares bits, so that -0 is not +0.
template <class T>
size_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return i;
  }
  return a.size();
}

// On the reference and on generated code of all widths.
template <class T>
void expect_result(const std::string& text, const std::vector<T>& x,
                   const std::vector<T>& expected) {
  for (const int lanes : {0, 4, 8, 16}) {
    driver::CompileOptions options;
    options.device = lanes == 0 ? "reference" : "cpu";
    options.lanes = lanes;
    const std::vector<T> found = run(text, x, options);
    EXPECT_EQ(first_difference(found, expected), expected.size()) << "lanes " << lanes;
  }
}

template <class T>
std::string type_text(const std::vector<size_t>& shape) {
  std::string text = sizeof(T) == 4 ? "f32[" : "f64[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

template <class T>
class LongRows : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LongRows, Types);

TYPED_TEST(LongRows, Sums) {
  using T = TypeParam;
  for (const size_t n : kLengths) {
    for (const bool product : {false, true}) {
      SCOPED_TRACE(std::to_string(n) + (product ? " product" : " sum"));
      const std::vector<T> x = telling_numbers<T>(n, product);
      const T expected = total(x, kSuperBlock, product);
      expect_result<T>("graph @g(%x: " + type_text<T>({n}) + ") -> (%y) {\n  %y = reduce_" +
                           (product ? "prod" : "sum") + "(%x)\n}\n",
                       x, {expected});
    }
  }
}

// Along the first axis, so that lanes of a vector have sums of their own; beside a maximum.
TYPED_TEST(LongRows, SumsOfColumns) {
  using T = TypeParam;
  const size_t n = kLengths[0];
  std::vector<T> x(2 * n);
  std::vector<T> expected;
  const std::vector<T> columns[] = {telling_numbers<T>(n, false), numbers<T>(n, false, 99)};
  for (size_t c = 0; c < 2; ++c) {
    for (size_t i = 0; i < n; ++i) x[2 * i + c] = columns[c][i];
    const T largest = *std::max_element(columns[c].begin(), columns[c].end());
    expected.push_back(total(columns[c], kSuperBlock, false) - largest);
  }
  expect_result<T>("graph @g(%x: " + type_text<T>({n, 2}) +
                       ") -> (%y) {\n  %s = reduce_sum(%x) {axes=[0]}\n"
                       "  %m = reduce_max(%x) {axes=[0]}\n  %y = sub(%s, %m)\n}\n",
                   x, expected);
}

TYPED_TEST(LongRows, Scans) {
  using T = TypeParam;
  size_t number = 0;
  for (const size_t n : kLengths) {
    for (const bool product : {false, true}) {
      const std::vector<T> x = numbers<T>(n, product);
      std::vector<T> backwards(x.rbegin(), x.rend());
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true}) {
          if (n != kLengths[0] && exclusive != reverse) continue;
          if (!has_its_turn(number++, 4)) continue;
          SCOPED_TRACE(std::to_string(n) + (product ? " product" : " sum") +
                       (exclusive ? " exclusive" : "") + (reverse ? " reverse" : ""));
          std::vector<T> y = scanned(reverse ? backwards : x, kSuperBlock, product);
          EXPECT_LT(first_difference(y, scanned(reverse ? backwards : x, n, product)), n)
              << "data that tells no orders apart";
          if (exclusive) {
            y.insert(y.begin(), identity_of<T>(product));
            y.pop_back();
          }
          if (reverse) std::reverse(y.begin(), y.end());
          expect_result<T>("graph @g(%x: " + type_text<T>({n}) + ") -> (%y) {\n  %y = cum" +
                               (product ? "prod" : "sum") +
                               "(%x) {exclusive=" + (exclusive ? "true" : "false") +
                               ", reverse=" + (reverse ? "true" : "false") + "}\n}\n",
                           x, y);
        }
      }
    }
  }
}

// Up to 2^20 elements there is one super-block, and its join changes no bit.
TYPED_TEST(LongRows, OneSuperBlockIsNone) {
  using T = TypeParam;
  const std::vector<T> x = numbers<T>(kSuperBlock, false);
  EXPECT_EQ(total(x, kSuperBlock, false), total(x, kBlock * kSuperBlock, false));
  const std::string type = type_text<T>({kSuperBlock});
  expect_result<T>("graph @g(%x: " + type + ") -> (%y) {\n  %y = reduce_sum(%x)\n}\n", x,
                   {total(x, kSuperBlock, false)});
  const std::vector<T> zeros(kSuperBlock + 1, T(-0.0));
  expect_result<T>(
      "graph @g(%x: " + type_text<T>({kSuperBlock + 1}) + ") -> (%y) {\n  %y = reduce_sum(%x)\n}\n",
      zeros, {T(0.0)});
}

}  // namespace
}  // namespace pyc::test
