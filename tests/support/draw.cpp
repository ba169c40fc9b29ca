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

constexpr int64_t kMaxDrawn = 700;  // elements of a drawn operand
constexpr int64_t kMaxKept = 4000;  // of a value that others may read
constexpr int64_t kBlock = 1024;    // of the canonical sum
constexpr double kTameLow = 0.25;
constexpr double kTameHigh = 1.75;

// The default: operands that broadcast, flags and numbers near their defaults.
Result<ValueId> draw_elementwise(Draw& d, const ir::OpDef& op, const Recipe* recipe, DType t) {
  const Shape shape = d.shape();
  std::vector<ValueId> inputs;
  for (int i = 0; i < op.min_inputs; ++i) {
    const Shape mine = i == 0 ? shape : d.broadcastable(shape);
    const bool bounded = recipe != nullptr && is_float(t);
    inputs.push_back(bounded ? d.tensor_in(t, mine, recipe->lo, recipe->hi) : d.tensor(t, mine));
  }
  if (op.min_inputs == 2 && op.traits.commutative && d.flip()) std::swap(inputs[0], inputs[1]);
  Attrs attrs;
  for (const ir::AttrDef& attr : op.attrs) {
    if (d.flip()) continue;
    if (attr.kind == ir::AttrKind::kBool) attrs[std::string(attr.name)] = d.flip();
    if (attr.kind == ir::AttrKind::kFloat) {
      attrs[std::string(attr.name)] =
          std::get<double>(attr.fallback) * d.choose({0.5, 1.0, 1.5}) + d.choose({0.0, 0.25});
    }
  }
  return d.op(op.name, std::move(inputs), std::move(attrs));
}

double lowest(DType t) {
  if (t == DType::kBool || is_unsigned_int(t)) return 0.0;
  return -std::ldexp(1.0, static_cast<int>(dtype_bits(t)) - 1);
}
double highest(DType t) {
  if (t == DType::kBool) return 1.0;
  return std::ldexp(1.0, static_cast<int>(dtype_bits(t)) - (is_unsigned_int(t) ? 0 : 1)) - 1;
}

}  // namespace

const Recipe* find_recipe(std::string_view op) {
  for (const Recipes& family : {elementwise_recipes(), shape_recipes(), index_recipes(),
                                window_recipes(), reduce_recipes(), model_recipes()}) {
    for (const Recipe& recipe : family) {
      if (recipe.op == op) return &recipe;
    }
  }
  return nullptr;
}

Draw::Draw(uint64_t seed, Values values)
    : values_(values), random_(seed), builder_(ops::all_ops(), "random") {}

// Not std::uniform_int_distribution, which differs between libraries.
int64_t Draw::pick(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
}

double Draw::real(double lo, double hi) {
  return lo + (hi - lo) * static_cast<double>(random_() >> 11) * 0x1p-53;
}

int64_t Draw::dim(int64_t least) {
  if (least == 0 && chance(25)) return 0;
  static constexpr int64_t kDims[] = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 67};
  const int64_t n = kDims[pick(0, std::ssize(kDims) - 1)];
  return std::max(n, least);
}

Shape Draw::shape(int64_t min_rank, int64_t max_rank, int64_t least) {
  const int64_t usual = std::min<int64_t>(max_rank, 4);
  const int64_t rank =
      chance(6) ? pick(min_rank, max_rank) : pick(min_rank, std::max(usual, min_rank));
  Shape out;
  if (rank == 1 && chance(10)) return {kBlock + pick(1, kBlock)};
  int64_t elements = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t n = rank > 5 ? pick(1, 3) : dim(least);
    if (elements * n > kMaxDrawn) n = std::max<int64_t>(least, pick(1, 2));
    elements *= std::max<int64_t>(n, 1);
    out.push_back(n);
  }
  std::shuffle(out.begin(), out.end(), random_);
  return out;
}

Shape Draw::broadcastable(const Shape& shape) {
  const int64_t drop = flip() ? 0 : pick(0, std::ssize(shape));
  Shape out(shape.begin() + drop, shape.end());
  for (int64_t& n : out) {
    if (chance(4)) n = 1;
  }
  return out;
}

int64_t Draw::axis(int64_t rank) { return pick(-rank, rank - 1); }

Ints Draw::axes(int64_t rank) {
  Ints out;
  for (int64_t i = 0; i < rank; ++i) {
    if (flip()) out.push_back(chance(4) ? i - rank : i);
  }
  return out;
}

Ints Draw::permutation(int64_t rank) {
  Ints out(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) out[static_cast<size_t>(i)] = i;
  for (int64_t i = rank - 1; i > 0; --i) {
    std::swap(out[static_cast<size_t>(i)], out[static_cast<size_t>(pick(0, i))]);
  }
  return out;
}

// Tame ones are those that every numpy has.
DType Draw::float_dtype() {
  if (tame()) return choose({DType::kF32, DType::kF16, DType::kF64});
  return choose({DType::kF32, DType::kF16, DType::kBF16, DType::kF64});
}
DType Draw::any_dtype() {
  const auto t = static_cast<DType>(pick(0, kDTypeCount - 1));
  const bool usual = !is_narrow_int(t) && (!is_narrow_float(t) || t == DType::kF16);
  return usual || !tame() ? t : DType::kF32;
}

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

ValueId Draw::tensor_in(DType t, const Shape& shape, double lo, double hi) {
  return tame() ? fresh(t, shape, lo, hi) : tensor(t, shape);
}

ValueId Draw::indices(const Shape& shape, int64_t lo, int64_t hi) {
  return fresh(flip() ? DType::kI64 : DType::kI32, shape, static_cast<double>(lo),
               static_cast<double>(hi) + 0.5);
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
    if (tame() && sharp_ && !exact_[v]) continue;
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
Result<ValueId> Draw::op(std::string_view name, std::vector<ValueId> inputs, Attrs attrs) {
  const ir::OpDef* def = ops::all_ops().find(name);
  if (def != nullptr && def->traits.product && is_half(type(inputs[0]).dtype) && chance(3)) {
    attrs["to"] = DType::kF32;
  }
  PYC_ASSIGN(const ValueId v, builder_.op(name, inputs, std::move(attrs)));
  note(v, inputs);
  return v;
}

Result<ValueId> Draw::node(const Pair& pair) {
  const Recipe* recipe = find_recipe(pair.op->name);
  sharp_ = recipe != nullptr && recipe->sharp;
  const bool own = recipe != nullptr && recipe->draw != nullptr;
  PYC_ASSIGN(const ValueId v, own ? recipe->draw(*this, pair.dtype)
                                  : draw_elementwise(*this, *pair.op, recipe, pair.dtype));
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
