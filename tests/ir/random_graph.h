#pragma once

// Valid random graphs over the ops of test_ops.h, a function of the seed alone.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/convert.h"
#include "ir/test_ops.h"

namespace pyc::ir::testing {

// splitmix64: the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // 0 … n-1
  size_t below(size_t n) { return static_cast<size_t>(bits() % n); }
  bool chance(size_t one_in) { return below(one_in) == 0; }
  template <class T>
  T pick(std::initializer_list<T> items) {
    return items.begin()[below(items.size())];
  }

 private:
  uint64_t state_;
};

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed), builder_(test_ops(), random_name()) {}

  Graph make() {
    const size_t inputs = 1 + random_.below(3);
    for (size_t i = 0; i < inputs; ++i) {
      values_.push_back(must(builder_.input(random_name(), random_type())));
    }
    const size_t constants = 1 + random_.below(4);
    for (size_t i = 0; i < constants; ++i) add_constant();
    const size_t nodes = 2 + random_.below(10);
    for (size_t i = 0; i < nodes; ++i) add_node();
    const size_t outputs = 1 + random_.below(3);
    for (size_t i = 0; i < outputs; ++i) (void)builder_.output(any());
    return std::move(builder_).take();
  }

 private:
  std::string random_name() {
    std::string name = random_.pick<std::string>(
        {"x", "layer.1.w", "in/0:0", "a b", "ü", "\"\\", "9", "\n\t\x01", "%", "graph", "const"});
    return name + std::to_string(count_++);
  }

  TensorType random_type() {
    TensorType type;
    type.dtype = static_cast<DType>(random_.below(kDTypeCount));
    const size_t rank = random_.below(4);
    for (size_t i = 0; i < rank; ++i) {
      type.shape.push_back(random_.chance(12) ? 0 : static_cast<int64_t>(1 + random_.below(5)));
    }
    return type;
  }

  ValueId any() { return values_[random_.below(values_.size())]; }

  ValueId keep(ValueId first, int count = 1) {
    for (int i = 0; i < count; ++i) values_.push_back(first + static_cast<ValueId>(i));
    return first;
  }

  ValueId add_constant(TensorType type) {
    std::shared_ptr<const ConstData> data;
    switch (random_.below(3)) {
      case 0:
        data = splat_data(type, random_.pick({0.5, -3.0, 1e30, 0.1}));
        break;
      case 1:
        data = random_data(type, random_.bits(), -2.5, 7.25);
        break;
      default: {
        std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
        for (std::byte& b : bytes) {
          b = static_cast<std::byte>(random_.bits() & (type.dtype == DType::kBool ? 1 : 0xff));
          if (dtype_size(type.dtype) == 1) store_word(&b, type.dtype, load_word(&b, type.dtype));
        }
        data = dense_data(std::move(bytes));
      }
    }
    return keep(must(builder_.constant(std::move(type), std::move(data), random_name())));
  }
  ValueId add_constant() { return add_constant(random_type()); }

  ValueId add(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}, int outputs = 1) {
    std::string name = random_.chance(2) ? "" : random_name();
    return keep(must(builder_.op(op, std::move(inputs), std::move(attrs), std::move(name))),
                outputs);
  }

  // A type that broadcasts with the given one.
  TensorType partner(TensorType type) {
    if (!type.shape.empty() && random_.chance(3)) type.shape.erase(type.shape.begin());
    for (int64_t& dim : type.shape) {
      if (random_.chance(3)) dim = 1;
    }
    return type;
  }

  void add_node() {
    const ValueId x = any();
    const TensorType type = builder_.type(x);
    switch (random_.below(7)) {
      case 0:
        add("relu", {x});
        break;
      case 1:
        add(random_.chance(2) ? "add" : "mul", {x, add_constant(partner(type))});
        break;
      case 2:
        add("cast", {x}, {{"to", static_cast<DType>(random_.below(kDTypeCount))}});
        break;
      case 3: {
        if (type.rank() != 2) break;
        const auto columns = static_cast<int64_t>(random_.below(4));
        add("matmul", {x, add_constant({type.dtype, {type.shape[1], columns}})});
        break;
      }
      case 4: {
        if (type.rank() == 0) break;
        const auto axis = static_cast<int64_t>(random_.below(type.shape.size()));
        Attrs attrs;
        if (random_.chance(2)) attrs["axis"] = axis;
        if (random_.chance(2)) attrs["keep"] = random_.chance(2);
        add("split", {x}, std::move(attrs), 2);
        break;
      }
      case 5: {
        if (type.rank() > 6) break;
        add("stack", std::vector<ValueId>(1 + random_.below(3), x));
        break;
      }
      default: {
        Attrs attrs;
        if (random_.chance(2)) attrs["alpha"] = std::bit_cast<double>(random_.bits());
        if (random_.chance(2)) attrs["note"] = random_name();
        if (random_.chance(2)) attrs["sizes"] = std::vector<int64_t>(random_.below(3), -7);
        if (random_.chance(2)) attrs["weights"] = std::vector<double>(random_.below(3), 0.1);
        add("tag", {x}, std::move(attrs));
      }
    }
  }

  int count_ = 0;
  Random random_;
  GraphBuilder builder_;
  std::vector<ValueId> values_;
};

inline Graph random_graph(uint64_t seed) { return RandomGraph(seed).make(); }

}  // namespace pyc::ir::testing
