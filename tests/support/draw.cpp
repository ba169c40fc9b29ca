#include "support/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "base/convert.h"
#include "ops/registry.h"

namespace pyc::test {
namespace {

constexpr int64_t kMaxKept = 4000;  // of a value that others may read
constexpr double kTameLow = 0.25;
constexpr double kTameHigh = 1.75;

double lowest(DType t) {
  if (t == DType::kBool || is_unsigned_int(t)) return 0.0;
  return -std::ldexp(1.0, static_cast<int>(dtype_bits(t)) - 1);
}
double highest(DType t) {
  if (t == DType::kBool) return 1.0;
  return std::ldexp(1.0, static_cast<int>(dtype_bits(t)) - (is_unsigned_int(t) ? 0 : 1)) - 1;
}

}  // namespace

Draw::Draw(uint64_t seed, Values values)
    : ops::Draw(values == Values::kTame), random_(seed), builder_(ops::all_ops(), "random") {}

std::vector<std::byte> Draw::data(const ir::TensorType& type, double lo, double hi, bool wild) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kSpecial[] = {
      0.0,  -0.0,   kInf,  -kInf, std::numeric_limits<double>::quiet_NaN(),
      1.0,  -1.0,   1e-41, 0.5,   -1e-45,
      3e38, 1e-310, 6e-8,  448.0};
  const DType t = type.dtype;
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
  for (int64_t i = 0; i < type.elements(); ++i) {
    double x = real(lo, hi);
    if (wild && chance(4)) {
      x = is_float(t) ? kSpecial[pick(0, std::ssize(kSpecial) - 1)]
                      : choose({lowest(t), highest(t), 0.0, 1.0});
    }
    if (!is_float(t)) x = std::floor(std::clamp(x, lowest(t), highest(t)));
    if (t == DType::kBool) x = flip() ? 1.0 : 0.0;
    store_word(bytes.data() + i * dtype_size(t), t, word_from_double(x, t));
  }
  return bytes;
}

ValueId Draw::source(const ir::TensorType& type, std::vector<std::byte> bytes) {
  const bool constant = chance(3);
  if (!constant) inputs_.push_back(bytes);
  const auto made = constant
                        ? builder_.constant(type, ir::dense_data(SharedBytes(std::move(bytes))))
                        : builder_.input(fmt::format("x{}", inputs_.size() - 1), type);
  if (!made.ok()) throw std::runtime_error(made.status().to_string());
  note(*made, {});
  return *made;
}

// A constant of one value that passes may know about.
ValueId Draw::neutral(const ir::TensorType& type) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double x = choose({0.0, -0.0, 1.0, -1.0, 2.0, 0.5, kInf, -kInf, 3.0});
  const auto made = builder_.constant(type, ir::splat_data(type, x));
  if (!made.ok()) throw std::runtime_error(made.status().to_string());
  note(*made, {});
  return *made;
}

ValueId Draw::fresh(DType t, const Shape& shape, double lo, double hi) {
  const ir::TensorType type{t, shape};
  return source(type, data(type, lo, hi, false));
}

ValueId Draw::must(std::string_view name, std::vector<ValueId> inputs, Attrs attrs) {
  const auto made = builder_.op(name, inputs, std::move(attrs));
  if (!made.ok()) throw std::runtime_error(made.status().to_string());
  note(*made, inputs);
  return *made;
}

// `v` as another type of at most as many elements.
ValueId Draw::adapted(ValueId v, DType t, const Shape& shape) {
  const int64_t wanted = ir::TensorType{t, shape}.elements();
  const int64_t there = type(v).elements();
  if (type(v).dtype != t) v = must("cast", {v}, {{"to", t}});
  if (type(v).shape == shape) return v;
  if (there > wanted) {
    v = must("reshape", {v}, {{"shape", Ints{there}}});
    const int64_t step = pick(1, std::min<int64_t>(3, wanted == 0 ? 1 : there / wanted));
    const int64_t start = pick(0, there - (wanted == 0 ? 0 : (wanted - 1) * step + 1));
    v = must("slice", {v},
             {{"starts", Ints{start}},
              {"ends", Ints{start + wanted * step}},
              {"axes", Ints{0}},
              {"steps", Ints{step}}});
  }
  if (shape.size() < 2 || flip()) return must("reshape", {v}, {{"shape", shape}});
  // Through a transpose, so that what reads it has strides.
  const Ints perm = permutation(std::ssize(shape));
  Shape before(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) before[static_cast<size_t>(perm[i])] = shape[i];
  v = must("reshape", {v}, {{"shape", before}});
  return must("transpose", {v}, {{"perm", perm}});
}

ValueId Draw::tensor(DType t, const Shape& shape) {
  const int64_t wanted = ir::TensorType{t, shape}.elements();
  for (int tries = 0; tries < 4 && !values_there_.empty() && !chance(4); ++tries) {
    const auto last = std::ssize(values_there_) - 1;
    const ValueId v =
        values_there_[static_cast<size_t>(pick(std::max<int64_t>(0, last - 4), last))];
    const DType from = type(v).dtype;
    if (type(v).elements() < wanted) continue;
    if (tame() && op_->draw.sharp && !exact_[v]) continue;
    if (from != t && (tame() ? is_float(from) != is_float(t) || from > t : !chance(3))) continue;
    return adapted(v, t, shape);
  }
  const ir::TensorType type{t, shape};
  if (!tame() && chance(4)) return neutral(type);
  if (tame()) return fresh(t, shape, is_float(t) ? kTameLow : 0.0, is_float(t) ? kTameHigh : 6.0);
  return source(type, data(type, -3.0, 7.0, true));
}

void Draw::note(ValueId first, std::span<const ValueId> inputs) {
  const ir::Graph& g = builder_.graph();
  const bool made = g.value(first).kind == ir::ValueKind::kResult;
  const ir::OpDef* op = made ? g.nodes[g.value(first).producer].op : nullptr;
  bool kept = op == nullptr || op->traits.moves_data;
  for (const ValueId v : inputs) kept = kept && exact_[v];
  for (ValueId v = first; v < g.values.size(); ++v) {
    exact_.push_back(kept || !is_float(type(v).dtype));
    if (type(v).elements() <= kMaxKept) values_there_.push_back(v);
  }
}

// Some products of halves are left in f32.
Result<ValueId> Draw::op(std::vector<ValueId> inputs, Attrs attrs) {
  if (op_->traits.product && is_half(type(inputs[0]).dtype) && chance(3)) {
    attrs["to"] = DType::kF32;
  }
  PYC_ASSIGN(const ValueId v, builder_.op(op_->name, inputs, std::move(attrs)));
  note(v, inputs);
  return v;
}

// The default: operands that broadcast, flags and numbers near their defaults.
Result<ValueId> Draw::elementwise(DType t) {
  const ir::Drawing& how = op_->draw;
  const bool given = how.lo < how.hi;
  const bool bounded = is_float(t) && (given || how.sharp);
  const double lo = given ? how.lo : kTameLow;
  const double hi = given ? how.hi : kTameHigh;
  const Shape first = shape();
  std::vector<ValueId> inputs;
  for (int i = 0; i < op_->min_inputs; ++i) {
    const Shape mine = i == 0 ? first : broadcastable(first);
    inputs.push_back(bounded ? tensor_in(t, mine, lo, hi) : tensor(t, mine));
  }
  if (op_->min_inputs == 2 && op_->traits.commutative && flip()) std::swap(inputs[0], inputs[1]);
  Attrs attrs;
  for (const ir::AttrDef& attr : op_->attrs) {
    if (flip()) continue;
    if (attr.kind == ir::AttrKind::kBool) attrs[std::string(attr.name)] = flip();
    if (attr.kind == ir::AttrKind::kFloat) {
      attrs[std::string(attr.name)] =
          std::get<double>(attr.fallback) * choose({0.5, 1.0, 1.5}) + choose({0.0, 0.25});
    }
  }
  return op(std::move(inputs), std::move(attrs));
}

Result<ValueId> Draw::node(const Pair& pair) {
  op_ = pair.op;
  PYC_ASSIGN(const ValueId v, op_->draw.node != nullptr ? op_->draw.node(*this, pair.dtype)
                                                        : elementwise(pair.dtype));
  pairs_.push_back(pair);
  return v;
}

// What nothing reads is an output, and a few others.
DrawnGraph Draw::finish() && {
  const ir::Graph& g = builder_.graph();
  std::vector<bool> read(g.values.size(), false);
  for (const ir::Node& node : g.nodes) {
    for (const ValueId v : node.inputs) read[v] = true;
  }
  for (ValueId v = 0; v < read.size(); ++v) {
    if (g.value(v).kind != ir::ValueKind::kResult || (read[v] && !chance(8))) continue;
    if (const Status s = builder_.output(v); !s.ok()) throw std::runtime_error(s.to_string());
  }
  return {std::move(builder_).take(), std::move(inputs_), std::move(pairs_)};
}

}  // namespace pyc::test
