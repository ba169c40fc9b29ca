// A task of attention: the queries' rows go through the blocks of keys together. Per block:
// products with the keys (tiles), then row by row scores, maximum, weights and their sum, then the
// weights' products with the values (tiles).

#include "backends/cpu/llvm/attention_emit.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "backends/cpu/llvm/emitter.h"
#include "backends/cpu/llvm/flow.h"
#include "backends/cpu/llvm/step.h"
#include "backends/cpu/llvm/tile.h"
#include "base/kernel_abi.h"

namespace pyc::cpu {
namespace {

using llvm::Value;
using loop::kNone;

constexpr int64_t kLanesOfSum = loop::kTreeLanes;

// Rows whose maxima, and then sums, are found side by side on AVX-512.
constexpr int kRowsJoined = 8;
// Scores of a row that are looked at in one go there: as many chains as hide a maximum's latency.
constexpr int kWideScores = 64;

// Arguments of the function that computes a task:
//   void rows(ptr buffers, ptr q, ptr k, ptr v, i64 row, i64 first, i64 batch…)
// Its rows begin at query `row`; those from `first` on are stored, the ones before are another
// task's. `q` points at the first row, `k` and `v` at what the head's tiles read.
enum Argument : unsigned { kTable, kQ, kK, kV, kRow, kFirst, kBatch };

class RowsWriter {
 public:
  RowsWriter(const AttentionSource& source, llvm::Function* function)
      : a_(*source.group.attention),
        p_(source.plan),
        b_(function->getContext()),
        flow_(b_, source.traits.numbers),
        ex_(source.group.kernel, source.traits, b_, function),
        f_(function) {
    blocks_ = (a_.keys + a_.block - 1) / a_.block;
    rest_ = a_.keys - (blocks_ - 1) * a_.block;
    stored_columns_ = p_.values.panels() * p_.tile_columns;
    // Of any number of keys as for the most: what is filled up has no weight.
    const int64_t keys = any_size() ? kAttentionBlock : a_.block;
    row_length_ = (keys + kLanesOfSum - 1) / kLanesOfSum * kLanesOfSum;
    joins_rows_ = source.traits.avx512 && p_.rows % kRowsJoined == 0;
  }

  void run();

 private:
  using State = FlowBuilder::State;
  using Body = std::function<void()>;

  Value* arg(unsigned i) { return f_->getArg(i); }
  Value* index(int64_t v) { return flow_.index(v); }
  // What follows from the numbers of keys, queries and heads; the rest of the shape is fixed.
  Value* number(int64_t v) { return flow_.number(v); }
  bool any_size() const { return flow_.any_size(); }
  // Whether blocks lie one after another; a single one of any size does not span a number of its
  // own.
  bool moves() const { return blocks_ > 1 || !any_size(); }
  Value* real(double v) { return llvm::ConstantFP::get(b_.getFloatTy(), v); }
  llvm::Type* vector(int width) {
    if (width == 1) return b_.getFloatTy();
    return llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(width));
  }
  Value* load(Value* pointer, int width = 1) {
    return b_.CreateAlignedLoad(vector(width), pointer, llvm::Align(4));
  }
  void store(Value* v, Value* pointer) { b_.CreateAlignedStore(v, pointer, llvm::Align(4)); }
  Value* scaled(Value* v, int64_t factor) { return b_.CreateMul(v, index(factor)); }
  void bind(loop::VarId var, Value* value) {
    if (var != kNone) ex_.bind(var, value);
  }
  void each_row(Value* from, const std::function<void(Value* i)>& body) {
    flow_.loop(from, index(p_.rows), 1, true, body);
  }
  // Calls body(at, width) for the elements [0, count) of a row: `width` at a time, then one by one.
  void along(int64_t count, int width, const std::function<void(Value* at, int width)>& body);

  void start();
  void block(Value* j);
  void key_products(Value* j, Value* keys);
  void value_products(Value* j, Value* keys);
  void row_of_scores(Value* i, Value* keys);
  void factors();
  void row_of_weights(Value* i);
  // The largest score, or a vector with it in some lane where rows are joined.
  Value* scores_and_maximum(Value* i, Value* row, Value* keys);
  // The sum, or a vector of what is left to be added there.
  Value* sum_of(Value* row);
  std::pair<Value*, Value*> halves(Value* v);
  // Halves the row's vector until it has `width` lanes.
  using Binary = std::function<Value*(Value*, Value*)>;
  Value* halved(Value* v, int width, const Binary& op);
  Value* larger(Value* a, Value* b) { return ex_.ops().binary(loop::Op::kMax, DType::kF32, a, b); }
  // Keeps a row's vector; calls body(row, one number per row) for eight rows at a time.
  void keep(Value* v, Value* i) { store(v, flow_.at(parts_, scaled(i, p_.width))); }
  void join_rows(const Binary& op, const std::function<void(Value* i, Value* v)>& body);
  void finish();
  TileSteps steps_of(int64_t fewest, int64_t most, Value* count);

  const lower::Attention& a_;
  const AttentionPlan& p_;
  llvm::IRBuilder<> b_;
  FlowBuilder flow_;
  ExprEmitter ex_;
  llvm::Function* f_;
  int64_t blocks_ = 0;
  int64_t rest_ = 0;            // keys of the last block
  int64_t stored_columns_ = 0;  // of a row of results, filled up to whole tiles
  int64_t row_length_ = 0;      // of a row of scores, filled up to the lanes of a sum
  // On the stack, f32: rows of scores and of results, and a number per row.
  Value* scores_ = nullptr;
  Value* results_ = nullptr;
  Value* maxima_ = nullptr;
  Value* sums_ = nullptr;
  Value* factors_ = nullptr;
  Value* tops_ = nullptr;  // the maxima with this block's
  bool joins_rows_ = false;
  Value* parts_ = nullptr;  // of joined rows, a vector each
};

void RowsWriter::along(int64_t count, int width,
                       const std::function<void(Value* at, int width)>& body) {
  const int64_t wide = count / width * width;
  const auto part = [&](int64_t from, int64_t to, int step) {
    if (from == to) return;
    flow_.loop(index(from), index(to), step, true, [&](Value* at) { body(at, step); });
  };
  part(0, wide, width);
  part(wide, count, 1);
}

void RowsWriter::run() {
  ex_.here();
  for (uint32_t i = 0; i < ex_.kernel().buffers.size(); ++i) {
    Value* slot = b_.CreateConstGEP1_64(b_.getPtrTy(), arg(kTable), i);
    ex_.set_buffer(i, b_.CreateAlignedLoad(b_.getPtrTy(), slot, llvm::Align(8)));
  }
  for (size_t i = 0; i < a_.batch_vars.size(); ++i) {
    bind(a_.batch_vars[i], arg(static_cast<unsigned>(kBatch + i)));
  }
  const auto floats = [&](int64_t count) {
    return ex_.stack_slot(b_.getFloatTy(), static_cast<int>(count));
  };
  scores_ = floats(p_.rows * row_length_);
  results_ = floats(p_.rows * stored_columns_);
  maxima_ = floats(p_.rows);
  sums_ = floats(p_.rows);
  factors_ = floats(p_.rows);
  tops_ = floats(p_.rows);
  if (joins_rows_) parts_ = floats(p_.rows * p_.width);
  ex_.here();
  // Leaves the entry block to the emitter.
  llvm::BasicBlock* body = ex_.new_block("body");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  start();
  flow_.loop(index(0), number(blocks_), 1, true, [&](Value* j) {
    ex_.scoped([&] {
      bind(a_.block_var, j);
      block(j);
    });
  });
  finish();
  b_.CreateRetVoid();
}

void RowsWriter::start() {
  Value* nothing = llvm::ConstantFP::getInfinity(b_.getFloatTy(), true);
  each_row(index(0), [&](Value* i) {
    store(nothing, flow_.at(maxima_, i));
    store(real(0.0), flow_.at(sums_, i));
    Value* row = flow_.at(results_, scaled(i, stored_columns_));
    flow_.loop(index(0), index(stored_columns_), p_.lanes, true, [&](Value* e) {
      store(llvm::Constant::getNullValue(vector(p_.lanes)), flow_.at(row, e));
    });
  });
}

// Steps of a chain over `count` elements of k.
TileSteps RowsWriter::steps_of(int64_t fewest, int64_t most, Value* count) {
  TileSteps s;
  s.whole = b_.CreateUDiv(count, index(p_.unroll));
  s.fewest = fewest / p_.unroll;
  s.most = most / p_.unroll;
  if (any_size() && !llvm::isa<llvm::Constant>(count)) {
    // Any number of keys, at least one.
    s.fewest = 0;
    s.most = std::max<int64_t>(1, s.most);
    s.rest = b_.CreateURem(count, index(p_.unroll));
    return s;
  }
  if (fewest % p_.unroll == 0 && most % p_.unroll == 0) return s;
  s.rest = b_.CreateURem(count, index(p_.unroll));
  s.always_rest = fewest == most;
  return s;
}

void RowsWriter::block(Value* j) {
  Value* keys = number(rest_);
  if (blocks_ > 1 && (any_size() || rest_ != a_.block)) {
    Value* last = b_.CreateICmpEQ(j, number(blocks_ - 1));
    keys = b_.CreateSelect(last, keys, index(a_.block));
  }
  key_products(j, keys);
  each_row(index(0), [&](Value* i) { row_of_scores(i, keys); });
  if (joins_rows_) {
    join_rows([&](Value* a, Value* b) { return larger(a, b); },
              [&](Value* i, Value* top) {
                Value* before = load(flow_.at(maxima_, i), kRowsJoined);
                store(larger(before, top), flow_.at(tops_, i));
              });
  }
  factors();
  each_row(index(0), [&](Value* i) { row_of_weights(i); });
  if (joins_rows_) {
    join_rows([&](Value* a, Value* b) { return b_.CreateFAdd(a, b); },
              [&](Value* i, Value* sum) {
                Value* to = flow_.at(sums_, i);
                store(b_.CreateFAdd(load(to, kRowsJoined), sum), to);
              });
  }
  value_products(j, keys);
}

void RowsWriter::key_products(Value* j, Value* keys) {
  TileCore core(b_, {.rows = p_.tile_rows,
                     .vectors = p_.tile_columns / p_.lanes,
                     .lanes = p_.lanes,
                     .unroll = p_.unroll,
                     .a_by_lanes = p_.a_by_lanes,
                     .a_row_stride = p_.rows > 1 ? a_.q->row_stride : 0,
                     .a_step = p_.unroll,
                     .b_k_stride = p_.tile_columns});
  Value* panel = arg(kK);
  if (moves()) {
    panel = flow_.at(panel, scaled(j, a_.block / p_.tile_columns * p_.keys.panel_elements()));
  }
  flow_.loop(index(0), keys, p_.tile_columns, true, {panel}, [&](Value* u, const State& at) {
    flow_.loop(index(0), index(p_.rows), p_.tile_rows, true, [&](Value* i) {
      Value* q = flow_.at(arg(kQ), scaled(i, a_.q->row_stride));
      const State products = core.chain(q, at[0], steps_of(a_.depth, a_.depth, index(a_.depth)));
      Value* to = flow_.at(scores_, b_.CreateAdd(scaled(i, row_length_), u));
      const int vectors = p_.tile_columns / p_.lanes;
      for (int r = 0; r < p_.tile_rows; ++r) {
        for (int v = 0; v < vectors; ++v) {
          Value* x = b_.CreateFAdd(products[accumulator_at(r, vectors, v)], core.zero());
          core.store_vector(x, to, r * row_length_ + v * p_.lanes);
        }
      }
    });
    return State{flow_.at(at[0], p_.keys.panel_elements())};
  });
}

void RowsWriter::row_of_scores(Value* i, Value* keys) {
  Value* row = flow_.at(scores_, scaled(i, row_length_));
  Value* top = scores_and_maximum(i, row, keys);
  // Beyond a block's keys there is nothing; the last tile may have written there.
  if (any_size() || a_.block != row_length_) {
    Value* nothing = llvm::ConstantFP::getInfinity(b_.getFloatTy(), true);
    flow_.loop(number(a_.block), index(row_length_), 1, !any_size(),
               [&](Value* u) { store(nothing, flow_.at(row, u)); });
  }
  if (joins_rows_) return keep(top, i);
  store(larger(load(flow_.at(maxima_, i)), top), flow_.at(tops_, i));
}

// Each row waits for its own halves; eight of them together are as many shuffles and wait once.
void RowsWriter::join_rows(const Binary& op, const std::function<void(Value* i, Value* v)>& body) {
  for (int first = 0; first < p_.rows; first += kRowsJoined) {
    std::vector<Value*> rows;
    for (int i = 0; i < kRowsJoined; ++i) {
      rows.push_back(load(flow_.at(parts_, (first + i) * p_.width), p_.width));
    }
    // Vectors have `together` rows one after another, whose halves meet: two vectors' or, at last,
    // those of one.
    int lanes = p_.width;
    for (int together = 1; lanes > 1; lanes /= 2) {
      const int half = lanes / 2;
      const bool two = rows.size() > 1;
      std::vector<int> low;
      std::vector<int> high;
      for (int row = 0; row < (two ? 2 : 1) * together; ++row) {
        for (int lane = 0; lane < half; ++lane) {
          low.push_back(row * lanes + lane);
          high.push_back(row * lanes + half + lane);
        }
      }
      std::vector<Value*> next;
      for (size_t i = 0; i < rows.size(); i += 2) {
        Value* a = rows[i];
        Value* b = two ? rows[i + 1] : a;
        next.push_back(op(b_.CreateShuffleVector(a, b, low), b_.CreateShuffleVector(a, b, high)));
      }
      if (two) together *= 2;
      rows = std::move(next);
    }
    body(index(first), rows.front());
  }
}

// What is kept of the rows' earlier blocks, for several rows at once: it is one function of each.
void RowsWriter::factors() {
  int width = 1;
  while (2 * width <= std::min(p_.rows, p_.width)) width *= 2;
  along(p_.rows, width, [&](Value* i, int rows) {
    ex_.scoped([&] {
      ex_.bind_lanes(a_.lane_var, i, 0, rows, rows);
      Value* m = load(flow_.at(tops_, i), rows);
      ex_.bind(a_.m_before, load(flow_.at(maxima_, i), rows));
      ex_.bind(a_.m, m);
      Value* factor = ex_.eval_wide(a_.factor);
      ex_.here();
      store(b_.CreateFMul(load(flow_.at(sums_, i), rows), factor), flow_.at(sums_, i));
      store(m, flow_.at(maxima_, i));
      store(factor, flow_.at(factors_, i));
    });
  });
}

// Scores become weights, which are added to the row's sum.
void RowsWriter::row_of_weights(Value* i) {
  Value* row = flow_.at(scores_, scaled(i, row_length_));
  ex_.scoped([&] {
    bind(a_.m, load(flow_.at(maxima_, i)));
    flow_.loop(index(0), index(row_length_), p_.weights, true, [&](Value* u) {
      ex_.scoped([&] {
        ex_.bind_lanes(a_.lane_var, u, 0, p_.weights, p_.weights);
        ex_.bind(a_.s, load(flow_.at(row, u), p_.weights));
        Value* weight = ex_.eval_wide(a_.weight);
        ex_.here();
        store(weight, flow_.at(row, u));
      });
    });
    Value* sum = sum_of(row);
    if (joins_rows_) return keep(sum, i);
    store(b_.CreateFAdd(load(flow_.at(sums_, i)), sum), flow_.at(sums_, i));
  });
}

// The first and the second half of a vector, in the end two scalars.
std::pair<Value*, Value*> RowsWriter::halves(Value* v) {
  const int half = ValueOps::width_of(v) / 2;
  return {ex_.ops().slice(v, 0, half), ex_.ops().slice(v, half, half)};
}

Value* RowsWriter::halved(Value* v, int width, const Binary& op) {
  while (ValueOps::width_of(v) > width) {
    const auto [low, high] = halves(v);
    v = op(low, high);
  }
  return v;
}

// Products become scores. On AVX-512 the largest number is found without its NaNs, of which a bool
// keeps that there was one: a NaN's choice would be part of each step's latency.
Value* RowsWriter::scores_and_maximum(Value* i, Value* row, Value* keys) {
  const auto max = [&](Value* a, Value* b) {
    return joins_rows_ && a->getType()->isVectorTy() ? ex_.ops().min_max_of_numbers(true, a, b)
                                                     : larger(a, b);
  };
  const bool flags = joins_rows_;
  Value* top = nullptr;
  Value* nan = b_.getFalse();
  ex_.scoped([&] {
    bind(a_.query_var, b_.CreateAdd(arg(kRow), i));
    const auto part = [&](Value* from, Value* to, bool nonempty, bool is_inside, Value* least) {
      const int width = ValueOps::width_of(least);
      State state = {least};
      if (flags) state.push_back(nan);
      state = flow_.loop(from, to, width, nonempty, state, [&](Value* u, const State& so_far) {
        Value* s = nullptr;
        ex_.scoped([&] {
          if (a_.key_var != kNone) {
            ex_.bind_lanes(a_.key_var, u, 0, width, width);
          }
          if (is_inside) ex_.assume(a_.in_range, true);
          bind(a_.product, load(flow_.at(row, u), width));
          s = ex_.eval_wide(a_.score);
          ex_.here();
          store(s, flow_.at(row, u));
        });
        State next = {max(so_far[0], s)};
        if (flags) next.push_back(b_.CreateOr(so_far[1], ex_.ops().any_nan(s)));
        return next;
      });
      if (flags) nan = state[1];
      return state[0];
    };
    Value* nothing = llvm::ConstantFP::getInfinity(b_.getFloatTy(), true);
    const auto nothing_of = [&](int width) {
      return b_.CreateVectorSplat(static_cast<unsigned>(width), nothing);
    };
    const int64_t wide = a_.block / p_.width * p_.width;
    Value* end = number(a_.block);
    Value* middle = b_.CreateAnd(end, index(-p_.width));
    if (wide > 0 || any_size()) {
      Value* found = nothing_of(p_.width);
      Value* inside = index(0);
      // Only the last vectors of the last block need to ask for each key whether there is one.
      const bool has_inside = a_.in_range != kNone && a_.key_var != kNone;
      if (flags) {
        Value* widest = b_.CreateAnd(has_inside ? keys : middle, index(-kWideScores));
        Value* most = part(inside, widest, false, has_inside, nothing_of(kWideScores));
        found = halved(most, p_.width, max);
        inside = widest;
      }
      if (has_inside) {
        Value* from = inside;
        inside = b_.CreateAnd(keys, index(-p_.width));
        found = part(from, inside, false, true, found);
      }
      found = part(inside, middle, !flags && !has_inside && !any_size(), false, found);
      top = flags ? found : halved(found, 1, max);
    }
    if (wide != a_.block || any_size()) {
      Value* found = part(middle, end, !any_size(), false, nothing);
      if (flags) found = b_.CreateVectorSplat(static_cast<unsigned>(p_.width), found);
      top = top == nullptr ? found : max(top, found);
    }
  });
  if (!flags) return top;
  return b_.CreateSelect(nan, ex_.ops().constant(DType::kF32, canonical_nan(), p_.width), top);
}

// The canonical sum: lane l has the elements l and l + 64.
Value* RowsWriter::sum_of(Value* row) {
  Value* sum = load(row, kLanesOfSum);
  for (int64_t at = kLanesOfSum; at < row_length_; at += kLanesOfSum) {
    sum = b_.CreateFAdd(sum, load(flow_.at(row, at), kLanesOfSum));
  }
  return halved(sum, joins_rows_ ? p_.width : 1,
                [&](Value* a, Value* b) { return b_.CreateFAdd(a, b); });
}

void RowsWriter::value_products(Value* j, Value* keys) {
  const int64_t k_stride = p_.pack_values ? p_.tile_columns : a_.v->row_stride;
  Value* panel_stride =
      p_.pack_values ? number(p_.values.panel_elements()) : index(p_.tile_columns);
  const int vectors = p_.tile_columns / p_.lanes;
  TileCore core(b_, {.rows = p_.tile_rows,
                     .vectors = vectors,
                     .lanes = p_.lanes,
                     .unroll = p_.unroll,
                     .a_by_lanes = p_.a_by_lanes,
                     .a_row_stride = row_length_,
                     .a_step = p_.unroll,
                     .b_k_stride = k_stride});
  const int64_t most = blocks_ > 1 ? a_.block : rest_;
  const TileSteps steps = steps_of(std::min(rest_, most), most, keys);
  Value* first = arg(kV);
  if (moves()) first = flow_.at(first, scaled(j, a_.block * k_stride));
  flow_.loop(index(0), index(stored_columns_), p_.tile_columns, true, {first},
             [&](Value* e, const State& at) {
               flow_.loop(index(0), index(p_.rows), p_.tile_rows, true, [&](Value* i) {
                 Value* weights = flow_.at(scores_, scaled(i, row_length_));
                 const State sums = core.chain(weights, at[0], steps);
                 Value* to = flow_.at(results_, b_.CreateAdd(scaled(i, stored_columns_), e));
                 for (int r = 0; r < p_.tile_rows; ++r) {
                   Value* factor = load(flow_.at(factors_, b_.CreateAdd(i, index(r))));
                   factor = b_.CreateVectorSplat(static_cast<unsigned>(p_.lanes), factor);
                   for (int v = 0; v < vectors; ++v) {
                     const int64_t place = r * stored_columns_ + v * p_.lanes;
                     Value* kept = b_.CreateFMul(core.load_vector(to, place), factor);
                     Value* sum = b_.CreateFAdd(sums[accumulator_at(r, vectors, v)], core.zero());
                     core.store_vector(b_.CreateFAdd(kept, sum), to, place);
                   }
                 }
               });
               return State{flow_.at(at[0], panel_stride)};
             });
}

void RowsWriter::finish() {
  Value* head = index(0);
  for (size_t i = 0; i < a_.batch.size(); ++i) {
    head = b_.CreateAdd(b_.CreateMul(head, number(a_.batch[i])),
                        arg(static_cast<unsigned>(kBatch + i)));
  }
  Value* first_row = b_.CreateAdd(b_.CreateMul(head, number(a_.queries)), arg(kRow));
  each_row(arg(kFirst), [&](Value* i) {
    Value* at = b_.CreateAdd(first_row, i);
    Value* results = flow_.at(results_, scaled(i, stored_columns_));
    ex_.scoped([&] {
      bind(a_.m, load(flow_.at(maxima_, i)));
      bind(a_.l, load(flow_.at(sums_, i)));
      for (const lower::Attention::Output* out : {&a_.outputs[1], &a_.outputs[2]}) {
        if (out->buffer == kNone) continue;
        Value* x = ex_.eval(out->value);
        ex_.here();
        store(x, flow_.at(ex_.buffer(out->buffer), at));
      }
      if (a_.outputs[0].buffer != kNone) {
        Value* to = flow_.at(ex_.buffer(a_.outputs[0].buffer), scaled(at, a_.columns));
        along(a_.columns, p_.lanes, [&](Value* e, int width) {
          ex_.scoped([&] {
            ex_.bind_lanes(a_.lane_var, e, 0, width, width);
            ex_.bind(a_.o, load(flow_.at(results, e), width));
            Value* y = ex_.eval_wide(a_.outputs[0].value);
            ex_.here();
            store(y, flow_.at(to, e));
          });
        });
      }
    });
  });
}

llvm::Function* emit_rows(const AttentionSource& source, llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  std::vector<llvm::Type*> types(4, llvm::PointerType::getUnqual(context));
  types.resize(kBatch + source.group.attention->batch.size(), llvm::Type::getInt64Ty(context));
  add_dims_type(source.traits.numbers, context, types);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "rows", module);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  // As for the tiles of a matrix product.
  if (source.traits.aarch64) f->addFnAttr("tune-cpu", "neoverse-n1");
  llvm::BasicBlock::Create(context, "entry", f);
  RowsWriter(source, f).run();
  return f;
}

}  // namespace

void emit_attention(const AttentionSource& source, llvm::Module& module,
                    const std::string& symbol) {
  const lower::Attention& a = *source.group.attention;
  const AttentionPlan& p = source.plan;
  llvm::Function* rows = emit_rows(source, module);
  llvm::Function* f = new_step(module, symbol);
  llvm::IRBuilder<> b(&f->getEntryBlock());
  FlowBuilder flow(b, source.traits.numbers);
  Value* field =
      b.CreateConstGEP1_64(b.getInt8Ty(), f->getArg(0), offsetof(pyc_kernel_args, buffers));
  Value* table = b.CreateAlignedLoad(b.getPtrTy(), field, llvm::Align(8));
  const auto slot = [&](uint32_t i) {
    Value* at = b.CreateConstGEP1_64(b.getPtrTy(), table, i);
    return b.CreateAlignedLoad(b.getPtrTy(), at, llvm::Align(8));
  };
  flow.loop(f->getArg(1), f->getArg(2), 1, false, [&](Value* number) {
    Value* row_tasks = flow.number(p.row_tasks);
    Value* task = b.CreateURem(number, row_tasks);
    Value* rest = b.CreateUDiv(number, row_tasks);
    std::vector<Value*> batch(a.batch.size());
    for (size_t i = a.batch.size(); i-- > 0;) {
      Value* extent = flow.number(a.batch[i]);
      batch[i] = b.CreateURem(rest, extent);
      rest = b.CreateUDiv(rest, extent);
    }
    // The last task's rows end with the last query; what it shares with the one before is not
    // stored.
    Value* wanted = b.CreateMul(task, flow.index(p.rows));
    Value* row =
        b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, wanted, flow.number(a.queries - p.rows));
    Value* first = b.CreateSub(wanted, row);
    const auto entry = [&](Value* pointer, const std::vector<int64_t>& strides) {
      for (size_t i = 0; i < batch.size(); ++i) {
        pointer = flow.at(pointer, b.CreateMul(batch[i], flow.number(strides[i])));
      }
      return pointer;
    };
    const auto from = [&](const lower::Attention::Operand& x) {
      Value* first = slot(x.buffer);
      return entry(x.base == 0 ? first : flow.at(first, flow.number(x.base)), x.batch_strides);
    };
    Value* q = from(*a.q);
    q = flow.at(q, b.CreateMul(row, flow.index(a.q->row_stride)));
    const uint32_t keys = packed_keys_slot(source.group);
    Value* k = entry(slot(keys), p.keys.packed_strides());
    Value* v = p.pack_values ? entry(slot(keys + 1), p.values.packed_strides()) : from(*a.v);
    std::vector<Value*> args = {table, q, k, v, row, first};
    args.insert(args.end(), batch.begin(), batch.end());
    add_dims_argument(source.traits.numbers, f, args);
    b.CreateCall(rows, args);
  });
  b.CreateRetVoid();
}

}  // namespace pyc::cpu
