#include <array>
#include <limits>

#include "loop/functions.h"
#include "ops/kernel.h"
#include "ops/support/infer.h"
#include "ops/support/operands.h"

namespace pyc::ops {
namespace {

// q is [B,H,S,D], k [B,G,T,D], v [B,G,T,E]; H is a multiple of G.
constexpr size_t kTensors = 3;

Types infer_attend(const InferArgs& args) {
  PYC_TRY(require_operands(args, kTensors, {"mask", "lengths"}));
  const TensorType& q = args.inputs[0];
  const TensorType& k = args.inputs[1];
  const TensorType& v = args.inputs[2];
  for (size_t i = 0; i < kTensors; ++i) {
    PYC_TRY(require_rank(i == 0 ? "q" : i == 1 ? "k" : "v", args.inputs[i], 4));
    PYC_TRY(require_same_dtype(q, args.inputs[i]));
  }
  PYC_TRY(require_dtype("q", q, kFloats));
  const Shape keys{q.shape[0], k.shape[1], k.shape[2], q.shape[3]};
  const Shape values{q.shape[0], k.shape[1], k.shape[2], v.shape[3]};
  if (k.shape != keys || v.shape != values || k.shape[1] < 1 || q.shape[1] % k.shape[1] != 0) {
    return refuse(Code::kShapeMismatch, "q ", q, ", k ", k, " and v ", v, " do not fit");
  }
  const Shape scores{q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  if (const int at = operand_at(args.attrs, kTensors, "mask"); at >= 0) {
    const TensorType& mask = args.inputs[static_cast<size_t>(at)];
    if (mask.dtype != DType::kBool && mask.dtype != q.dtype) {
      return refuse(Code::kDtypeMismatch, "mask must have dtype bool or ", q.dtype, ", found ",
                    mask);
    }
    const auto joined = ir::broadcast_shapes(scores, mask.shape);
    if (!joined.ok() || *joined != scores) {
      return refuse(Code::kShapeMismatch, "mask ", mask, " does not broadcast to ", scores);
    }
  }
  if (const int at = operand_at(args.attrs, kTensors, "lengths"); at >= 0) {
    const TensorType& lengths = args.inputs[static_cast<size_t>(at)];
    PYC_TRY(require_dtype("lengths", lengths, kIndices));
    if (lengths.shape != Shape{q.shape[0]}) {
      return refuse(Code::kShapeMismatch, "lengths must have shape [", q.shape[0], "], found ",
                    lengths);
    }
  }
  const DType wide = compute_dtype(q.dtype);
  const Shape rows{q.shape[0], q.shape[1], q.shape[2]};
  const Shape y{q.shape[0], q.shape[1], q.shape[2], v.shape[3]};
  return std::vector<TensorType>{{wide, y}, {wide, rows}, {wide, rows}};
}

// Reads the operands of one attend node and forms its scores.
class Attend {
 public:
  explicit Attend(KernelContext& context)
      : c_(context),
        mask_(operand_at(context.node().attrs, kTensors, "mask")),
        lengths_(operand_at(context.node().attrs, kTensors, "lengths")),
        wide_(context.output_type(0).dtype) {}

  void write() {
    const Shape& q = c_.input_type(0).shape;
    const Shape& k = c_.input_type(1).shape;
    shared_ = q[1] / k[1];
    AttentionForm form;
    form.batch = {q[0], k[1], shared_};
    form.queries = q[2];
    form.keys = k[2];
    form.depth = q[3];
    form.columns = c_.input_type(2).shape[3];
    form.q = [this](std::span<const Expr> at, Expr query, Expr d) {
      return c_.input_compute(0, std::array{at[0], head(at), query, d});
    };
    form.k = [this](std::span<const Expr> at, Expr key, Expr d, Expr in_range) {
      return read(1, std::array{at[0], at[1], key, d}, in_range);
    };
    form.v = [this](std::span<const Expr> at, Expr key, Expr e, Expr in_range) {
      return read(2, std::array{at[0], at[1], key, e}, in_range);
    };
    form.score = [this](std::span<const Expr> at, Expr query, Expr key, Expr product,
                        Expr in_range) { return score(at, query, key, product, in_range); };
    c_.attention(form);
  }

 private:
  Expr head(std::span<const Expr> at) { return at[1] * c_.index(shared_) + at[2]; }

  // The element in the type of the scores; 0 where the key is not in range.
  Expr read(int i, std::span<const Expr> index, Expr in_range) {
    if (!in_range.valid()) return convert(c_.input(i, index), wide_);
    const Expr none = constant(c_.pool(), c_.input_type(i).dtype, 0.0);
    return convert(c_.input_if(i, index, in_range, none), wide_);
  }

  Expr score(std::span<const Expr> at, Expr query, Expr key, Expr product, Expr in_range) {
    Expr s = product * like(product, c_.attr_float("scale"));
    if (const double cap = c_.attr_float("softcap"); cap > 0.0) {
      s = loop::tanh(s / like(s, cap)) * like(s, cap);
    }
    Expr live;
    const auto only_where = [&](Expr condition) {
      live = live.valid() ? live & condition : condition;
    };
    if (mask_ >= 0) {
      const Shape& shape = c_.input_type(mask_).shape;
      const Expr full[] = {at[0], head(at), query, key};
      std::vector<Expr> index;
      for (size_t d = 0; d < shape.size(); ++d) {
        index.push_back(shape[d] == 1 ? c_.index(0) : full[d + 4 - shape.size()]);
      }
      if (c_.input_type(mask_).dtype == DType::kBool) {
        only_where(read_mask(index, in_range));
      } else {
        s = s + read(mask_, index, in_range);
      }
    }
    limit(at, query, key, only_where);
    if (!live.valid()) return s;
    return select(live, s, like(s, -std::numeric_limits<double>::infinity()));
  }

  Expr read_mask(std::span<const Expr> index, Expr in_range) {
    if (!in_range.valid()) return c_.input(mask_, index);
    return c_.input_if(mask_, index, in_range, constant(c_.pool(), DType::kBool, 0.0));
  }

  // Keys beyond a length, after the query, or outside its window are not attended to.
  template <class OnlyWhere>
  void limit(std::span<const Expr> at, Expr query, Expr key, const OnlyWhere& only_where) {
    Expr place = query + c_.index(c_.attr_int("past"));
    if (lengths_ >= 0) {
      const Expr length = convert(c_.input(lengths_, std::array{at[0]}), DType::kI64);
      only_where(lt(key, length));
      place = query + (length - c_.index(c_.input_type(0).shape[2]));
    }
    if (c_.attr_bool("causal")) only_where(le(key, place));
    const int64_t left = c_.attr_int("left_window");
    const int64_t right = c_.attr_int("right_window");
    if (left >= 0) only_where(le(place - c_.index(left), key));
    if (right >= 0) only_where(le(key, place + c_.index(right)));
  }

  KernelContext& c_;
  const int mask_;
  const int lengths_;
  const DType wide_;
  int64_t shared_ = 1;
};

void kernel_attend(KernelContext& context) { Attend(context).write(); }

}  // namespace

const ir::OpDef& op_attend() {
  static const ir::OpDef def{
      .name = "attend",
      .summary =
          "Attention over keys in blocks of 128 with a running maximum: the rows, their maxima and "
          "their sums, in f32 (f64 for f64).",
      .min_inputs = 3,
      .max_inputs = 5,
      .outputs = 3,
      .attrs = {with_attr(), required("scale", ir::AttrKind::kFloat), optional("softcap", 0.0),
                optional("causal", false), optional("left_window", int64_t{-1}),
                optional("right_window", int64_t{-1}), optional("past", int64_t{0})},
      .infer = infer_attend,
      .kernel = kernel_attend,
      .traits = {.reads_strided = true},
  };
  return def;
}

}  // namespace pyc::ops
