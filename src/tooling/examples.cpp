// Small graphs of one op each, found by asking the op's type rule. Dims are all 2; what varies is
// the ranks of the inputs, which of them have another dtype than the main one, and the attributes.

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "driver/compile.h"
#include "tooling/tables.h"

namespace pyc::tooling {
namespace {

constexpr int64_t kDim = 2;
constexpr int kMaxAttempts = 50'000;
constexpr int64_t kRanks[] = {2, 1, 4, 3, 5, 0};
constexpr DType kOtherDTypes[] = {DType::kI64, DType::kBool, DType::kF32, DType::kU8};

// One way to use the op, whatever the main dtype is.
struct Use {
  std::vector<int64_t> ranks;                // per input
  std::vector<std::optional<DType>> dtypes;  // per input; none: the main one
  std::vector<size_t> attrs;                 // per required attribute: which of its values
};

std::vector<ir::Attr> attr_values(ir::AttrKind kind, int64_t rank, DType dtype) {
  const auto n = static_cast<size_t>(rank);
  switch (kind) {
    case ir::AttrKind::kInt:
      return {int64_t{0}, int64_t{1}, int64_t{2}};
    case ir::AttrKind::kFloat:
      return {0.0, 1.0};
    case ir::AttrKind::kBool:
      return {false, true};
    case ir::AttrKind::kString:
      return {std::string()};
    case ir::AttrKind::kDType:
      return {dtype, DType::kF32, DType::kI64};
    case ir::AttrKind::kFloats:
      return {std::vector<double>(n, 1.0), std::vector<double>{}};
    case ir::AttrKind::kInts: {
      using Ints = std::vector<int64_t>;
      Ints order(n);
      std::iota(order.begin(), order.end(), 0);
      return {order,      Ints(n, kDim), Ints{0}, Ints{1},    Ints(2 * n, 0),
              Ints(n, 1), Ints(n, 0),    Ints{2}, Ints{2, 2}, Ints{}};
    }
  }
  return {};
}

std::vector<std::vector<int64_t>> rank_choices(size_t inputs) {
  std::vector<std::vector<int64_t>> out;
  for (const int64_t rank : kRanks) out.emplace_back(inputs, rank);
  if (inputs < 2) return out;
  for (const int64_t first : kRanks) {
    for (const int64_t others : kRanks) {
      if (first == others) continue;
      out.emplace_back(inputs, others).front() = first;
    }
  }
  return out;
}

// At least one input has the main dtype.
std::vector<std::vector<std::optional<DType>>> dtype_choices(size_t inputs) {
  const std::vector<std::optional<DType>> plain(inputs);
  std::vector<std::vector<std::optional<DType>>> out = {plain};
  if (inputs < 2) return out;
  for (const DType other : kOtherDTypes) {
    for (size_t i = 0; i < inputs; ++i) {
      out.push_back(plain);
      out.back()[i] = other;
    }
  }
  return out;
}

class Search {
 public:
  explicit Search(const ir::OpDef& op) : op_(op), inputs_(static_cast<size_t>(op.min_inputs)) {
    for (const ir::AttrDef& attr : op.attrs) {
      if (attr.required) required_.push_back(&attr);
    }
  }

  // A use whose graph the type rule takes with this dtype.
  std::optional<Use> find(DType dtype) const {
    int attempts = 0;
    for (const auto& dtypes : dtype_choices(inputs_)) {
      for (const auto& ranks : rank_choices(inputs_)) {
        Use use{ranks, dtypes, std::vector<size_t>(required_.size(), 0)};
        do {
          if (++attempts > kMaxAttempts) return std::nullopt;
          if (graph(use, dtype).ok()) return use;
        } while (next_attrs(use, dtype));
      }
    }
    return std::nullopt;
  }

  Result<ir::Graph> graph(const Use& use, DType dtype) const {
    ir::GraphBuilder builder(known_ops(), "example");
    std::vector<ir::ValueId> inputs;
    for (size_t i = 0; i < inputs_; ++i) {
      ir::TensorType type{use.dtypes[i].value_or(dtype),
                          ir::Shape(static_cast<size_t>(use.ranks[i]), kDim)};
      PYC_ASSIGN(const ir::ValueId id, builder.input(fmt::format("x{}", i), std::move(type)));
      inputs.push_back(id);
    }
    ir::Attrs attrs;
    for (size_t i = 0; i < required_.size(); ++i) {
      attrs.emplace(required_[i]->name, values(i, use, dtype)[use.attrs[i]]);
    }
    PYC_TRY(builder.op(op_.name, inputs, std::move(attrs), "y").status());
    const std::vector<ir::ValueId> outputs = builder.graph().nodes.back().outputs;
    for (const ir::ValueId output : outputs) PYC_TRY(builder.output(output));
    return std::move(builder).take();
  }

 private:
  std::vector<ir::Attr> values(size_t attr, const Use& use, DType dtype) const {
    return attr_values(required_[attr]->kind, use.ranks.empty() ? 0 : use.ranks[0], dtype);
  }

  // Counts through all combinations of values; false after the last.
  bool next_attrs(Use& use, DType dtype) const {
    for (size_t i = 0; i < use.attrs.size(); ++i) {
      if (++use.attrs[i] < values(i, use, dtype).size()) return true;
      use.attrs[i] = 0;
    }
    return false;
  }

  const ir::OpDef& op_;
  const size_t inputs_;
  std::vector<const ir::AttrDef*> required_;
};

// Uses found with one dtype of each kind serve the others too, so that the long search is rare.
std::vector<Use> typical_uses(const Search& search) {
  std::vector<Use> uses;
  for (const DType dtype : {DType::kF32, DType::kI64, DType::kBool}) {
    if (auto use = search.find(dtype)) uses.push_back(std::move(*use));
  }
  return uses;
}

Result<ir::Graph> example(const ir::OpDef& op, const Search& search, std::span<const Use> uses,
                          DType dtype) {
  for (const Use& use : uses) {
    auto graph = search.graph(use, dtype);
    if (graph.ok()) return graph;
  }
  return Status(Code::kUnsupported,
                fmt::format("no use of op '{}' with {} was found", op.name, dtype_name(dtype)));
}

}  // namespace

Result<ir::Graph> example_graph(const ir::OpDef& op, DType dtype) {
  const Search search(op);
  return example(op, search, typical_uses(search), dtype);
}

Result<uint64_t> device_dtypes(const std::string& device, const ir::OpDef& op) {
  const Search search(op);
  const std::vector<Use> uses = typical_uses(search);
  driver::CompileOptions options;
  options.device = device;
  options.threads = 1;
  uint64_t bits = 0;
  for (int d = 0; d < kDTypeCount; ++d) {
    auto graph = example(op, search, uses, static_cast<DType>(d));
    if (!graph.ok()) continue;
    PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(*graph)));
    const auto plan = driver::dump(std::move(given), options, "plan");
    if (plan.ok()) bits |= uint64_t{1} << d;
    // The device itself is not known: no graph will do.
    if (!plan.ok() && plan.status().code() == Code::kUnknownOption) return plan.status();
  }
  return bits;
}

}  // namespace pyc::tooling
