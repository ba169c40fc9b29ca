// Operands of bytes, evaluated from their expressions into the form that the tiles read.

#include <algorithm>

#include "backends/cpu/llvm/matmul_emit.h"
#include "backends/cpu/llvm/matmul_split.h"
#include "backends/cpu/llvm/matmul_window.h"

namespace pyc::cpu {
namespace {

using llvm::Value;
using loop::kNone;

// Columns that a panel is written in at once.
constexpr int kMostColumns = 16;
// Steps of a row that are written one after another.
constexpr int64_t kRowSteps = 4;

// What is written where the guard of a value does not hold: shorter than the value, or as it is.
loop::ExprId other_than_guarded(const loop::Pool& pool, loop::ExprId value) {
  const loop::ExprNode& n = pool.node(value);
  return n.op == loop::Op::kLoad || n.op == loop::Op::kSelect ? n.c : value;
}

// Terms of a row that may be on the stack.
constexpr int64_t kMostOnStack = 128 << 10;

// By which steps a row is split: those of a run that has whole ones, or of a k that has no runs;
// else single elements, which go over the stack.
int64_t row_step(const lower::Contraction& c, int64_t step) {
  if (c.k > kMostOnStack) return step;
  const int64_t digit = SplitOperand(c, c.a.byte).digit;
  return digit % step == 0 || digit == c.k ? step : 1;
}

// What both writers have.
class ByteWriter {
 public:
  ByteWriter(const MatmulSource& source, llvm::Function* function, SplitOperand split,
             const MatmulPlan::Bytes& form)
      : p_(source.plan),
        c_(source.contraction()),
        form_(form),
        split_(std::move(split)),
        b_(&function->getEntryBlock()),
        flow_(b_),
        ex_(split_.kernel, source.traits, b_, function),
        f_(function) {}

 protected:
  // Some bytes as they are packed: signs turned, words.
  Value* packed(Value* bytes) {
    constexpr uint64_t kSignBit = 0x80;
    if (form_.turned) {
      bytes = b_.CreateXor(bytes, llvm::ConstantInt::get(bytes->getType(), kSignBit));
    }
    return p_.unit == ByteUnit::kWords ? extended(bytes, b_.getInt16Ty()) : bytes;
  }
  // What is packed as integers of the type.
  Value* extended(Value* v, llvm::Type* element) {
    llvm::Type* type = v->getType()->getWithNewType(element);
    return form_.is_unsigned ? b_.CreateZExt(v, type) : b_.CreateSExt(v, type);
  }
  llvm::Type* packed_type() {
    return p_.unit == ByteUnit::kWords ? b_.getInt16Ty() : b_.getInt8Ty();
  }
  llvm::FixedVectorType* vector(llvm::Type* element, int64_t count) {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
  }
  void store(Value* v, Value* to) { b_.CreateAlignedStore(v, to, llvm::Align(1)); }

  const MatmulPlan& p_;
  const lower::Contraction& c_;
  const MatmulPlan::Bytes& form_;
  const SplitOperand split_;
  llvm::IRBuilder<> b_;
  FlowBuilder flow_;
  ExprEmitter ex_;
  llvm::Function* f_;
};

// Rows of A: of each, steps of `unroll` elements, as many rows further.
class ByteRowWriter : public ByteWriter {
 public:
  // The windows' questions are added to the split's kernel.
  ByteRowWriter(const MatmulSource& source, llvm::Function* function, SplitOperand split,
                WindowRows windows, int rows)
      : ByteWriter(source, function, std::move(split), source.plan.a_form),
        windows_(std::move(windows)),
        rows_(rows),
        step_(p_.group() * p_.unroll),
        stride_(int64_t{p_.packed_rows(rows)} * p_.unroll) {}

  void run() {
    const int64_t steps = (c_.k + step_ - 1) / step_;
    if (scattered()) stack_ = b_.CreateAlloca(packed_type(), flow_.index(steps * step_));
    begin_packer(c_, f_, 3, b_, ex_);
    if (scattered() && c_.k % step_ != 0) clear_step(in_row(flow_.index((steps - 1) * step_)));
    flow_.loop(flow_.index(0), flow_.index(rows_), 1, true, [&](Value* i) {
      Value* to = flow_.at(f_->getArg(1), b_.CreateMul(i, flow_.index(p_.unroll)));
      Value* number = b_.CreateAdd(f_->getArg(2), i);
      ex_.scoped([&] {
        if (c_.m_var != kNone) ex_.bind(c_.m_var, number);
        const auto one_by_one = [&] {
          row(to);
          if (scattered()) spread(to);
        };
        if (!windows_.worthwhile()) return one_by_one();
        windows_.either(
            flow_, ex_, [&] { window(to); }, one_by_one);
      });
      if (form_.sums) sum(to, i);
    });
    b_.CreateRetVoid();
  }

 private:
  // Runs end within a step, so that a row is first written to the stack, one by one.
  bool scattered() const { return split_.runs > 1 && split_.digit % step_ != 0; }
  // The element k of that row.
  Value* in_row(Value* k) { return b_.CreateInBoundsGEP(packed_type(), stack_, k); }

  void window(Value* to) {
    if (c_.k % step_ != 0) clear_step(flow_.at(to, c_.k / step_ * stride_));
    windows_.copy(b_, ex_, [&](int64_t k, Value* bytes) {
      Value* step = flow_.at(to, k / step_ * stride_);
      store(packed(bytes),
            b_.CreateConstInBoundsGEP1_64(packed_type(), step, static_cast<uint64_t>(k % step_)));
    });
  }

  void row(Value* to) {
    flow_.loop(flow_.index(0), flow_.index(split_.runs), 1, true, {to},
               [&](Value* high, const FlowBuilder::State& at) {
                 const auto write = [&](loop::ExprId value) {
                   return scattered() ? scatter(high, value) : run_of_steps(at[0], value);
                 };
                 ex_.scoped([&] {
                   ex_.bind(split_.high, high);
                   if (split_.guard == kNone) return write(split_.value);
                   Value* guard = ex_.eval(split_.guard);
                   ex_.here();
                   const auto known = [&](bool inside, loop::ExprId value) {
                     ex_.scoped([&] {
                       // Bound again, so that what follows from the guard belongs to this scope.
                       ex_.bind(split_.high, high);
                       if (inside) ex_.assume(split_.guard, true);
                       write(value);
                     });
                   };
                   flow_.when(
                       guard, [&] { known(true, split_.value); },
                       [&] { known(false, other_than_guarded(split_.kernel.pool, split_.value)); });
                 });
                 return FlowBuilder::State{flow_.at(at[0], split_.digit / step_ * stride_)};
               });
  }

  void clear_step(Value* to) {
    store(llvm::Constant::getNullValue(vector(packed_type(), step_)), to);
  }

  // One run of the row on the stack: whole steps, then what is left in powers of two.
  void scatter(Value* high, loop::ExprId value) {
    Value* first = b_.CreateMul(high, flow_.index(split_.digit));
    const auto elements = [&](Value* low, int64_t width) {
      Value* at = in_row(b_.CreateAdd(first, low));
      ex_.scoped([&] {
        ex_.bind_lanes(split_.low, low, 0, static_cast<int>(width), width);
        Value* bytes = ex_.eval_wide(value);
        ex_.here();
        store(packed(bytes), at);
      });
    };
    int64_t low = 0;
    for (int64_t width = step_; width > 0; width /= 2) {
      const int64_t end = low + (split_.digit - low) / width * width;
      if (low == end) continue;
      flow_.loop(flow_.index(low), flow_.index(end), width, true,
                 [&](Value* i) { elements(i, width); });
      low = end;
    }
  }

  // That row, step by step.
  void spread(Value* to) {
    const int64_t steps = (c_.k + step_ - 1) / step_;
    flow_.loop(flow_.index(0), flow_.index(steps), 1, true, [&](Value* number) {
      Value* from = in_row(b_.CreateMul(number, flow_.index(step_)));
      Value* v = b_.CreateAlignedLoad(vector(packed_type(), step_), from, llvm::Align(1));
      store(v, flow_.at(to, b_.CreateMul(number, flow_.index(stride_))));
    });
  }

  void run_of_steps(Value* to, loop::ExprId value) {
    const int64_t whole = split_.digit / step_ * step_;
    const int64_t many = whole / (step_ * kRowSteps) * step_ * kRowSteps;
    const auto over = [&](int64_t from, int64_t end, int64_t count) {
      if (from == end) return;
      flow_.loop(flow_.index(from), flow_.index(end), count * step_, true, [&](Value* low) {
        Value* number = b_.CreateUDiv(low, flow_.index(step_));
        Value* at = flow_.at(to, b_.CreateMul(number, flow_.index(stride_)));
        for (int64_t i = 0; i < count; ++i) {
          ex_.scoped([&] {
            ex_.bind_lanes(split_.low, low, i * step_, static_cast<int>(step_), step_);
            Value* bytes = ex_.eval_wide(value);
            ex_.here();
            store(packed(bytes), flow_.at(at, i * stride_));
          });
        }
      });
    };
    over(0, many, kRowSteps);
    over(many, whole, 1);
    if (whole == split_.digit) return;
    Value* last = flow_.at(to, whole / step_ * stride_);
    clear_step(last);
    // What is left, in powers of two.
    int64_t low = whole;
    for (int64_t width = step_ / 2; width > 0; width /= 2) {
      if (split_.digit - low < width) continue;
      Value* at =
          b_.CreateConstInBoundsGEP1_64(packed_type(), last, static_cast<uint64_t>(low - whole));
      ex_.scoped([&] {
        ex_.bind_lanes(split_.low, flow_.index(low), 0, static_cast<int>(width), width);
        Value* bytes = ex_.eval_wide(value);
        ex_.here();
        store(packed(bytes), at);
      });
      low += width;
    }
  }

  void sum(Value* row, Value* i) {
    const auto sums = flow_.loop(
        flow_.index(0), flow_.index(p_.k / p_.unroll), 1, true, {b_.getInt32(0)},
        [&](Value* number, const FlowBuilder::State& now) {
          Value* at = flow_.at(row, b_.CreateMul(number, flow_.index(stride_)));
          Value* v = b_.CreateAlignedLoad(vector(packed_type(), step_), at, llvm::Align(1));
          Value* part = b_.CreateAddReduce(extended(v, b_.getInt32Ty()));
          return FlowBuilder::State{b_.CreateAdd(now[0], part)};
        });
    const int64_t behind = p_.k * p_.packed_rows(rows_);
    b_.CreateAlignedStore(sums[0], flow_.at(f_->getArg(1), b_.CreateAdd(i, flow_.index(behind))),
                          llvm::Align(4));
  }

  const WindowRows windows_;
  const int rows_;
  const int64_t step_;    // of k
  const int64_t stride_;  // elements from one to the next
  Value* stack_ = nullptr;
};

// Panels of B: of each column, as many k as lie together, all columns further.
class BytePanelWriter : public ByteWriter {
 public:
  BytePanelWriter(const MatmulSource& source, llvm::Function* function)
      : ByteWriter(source, function,
                   SplitOperand(source.contraction(), source.contraction().b.byte,
                                source.plan.group() * source.plan.column_elements()),
                   source.plan.b_form),
        step_(p_.group() * p_.column_elements()),
        stride_(int64_t{p_.tile_columns} * p_.column_elements()) {}

  void run() {
    begin_packer(c_, f_, 4, b_, ex_);
    const int rest = static_cast<int>(p_.n % p_.tile_columns);
    flow_.loop(f_->getArg(2), f_->getArg(3), 1, false, {f_->getArg(1)},
               [&](Value* number, const FlowBuilder::State& at) {
                 Value* column = b_.CreateMul(number, flow_.index(p_.tile_columns));
                 const auto whole = [&] { panel(column, at[0], p_.tile_columns); };
                 if (rest == 0) {
                   whole();
                 } else {
                   flow_.when(
                       b_.CreateICmpEQ(number, flow_.index(p_.panels - 1)),
                       [&] { panel(column, at[0], rest); }, whole);
                 }
                 if (form_.sums) sum(at[0]);
                 return FlowBuilder::State{flow_.at(at[0], p_.b_panel_stride)};
               });
    b_.CreateRetVoid();
  }

 private:
  void panel(Value* column, Value* to, int columns) {
    const auto part = [&](int from, int end, int width) {
      if (from == end) return;
      flow_.loop(flow_.index(from), flow_.index(end), width, true, [&](Value* j) {
        Value* at = flow_.at(to, b_.CreateMul(j, flow_.index(p_.column_elements())));
        columns_at(b_.CreateAdd(column, j), at, width);
      });
    };
    if (columns < p_.tile_columns) {
      clear(to, 0);
    } else if (c_.k < p_.k * p_.group()) {
      clear(to, p_.k - p_.unroll);
    }
    int width = kMostColumns;
    while (p_.tile_columns % width != 0) width /= 2;
    const int wide = columns / width * width;
    part(0, wide, width);
    part(wide, columns, 1);
  }

  // Zeros from an element of k on.
  void clear(Value* to, int64_t k) {
    llvm::Constant* zeros = llvm::Constant::getNullValue(vector(b_.getInt32Ty(), p_.lanes));
    flow_.loop(flow_.index(k * p_.tile_columns), flow_.index(p_.k * p_.tile_columns), p_.lanes,
               true, [&](Value* i) { store(zeros, flow_.at(to, i)); });
  }

  // `width` columns from `column` on, for all k.
  void columns_at(Value* column, Value* to, int width) {
    ex_.scoped([&] {
      ex_.bind_lanes(c_.n_var, column, 0, width, width);
      flow_.loop(flow_.index(0), flow_.index(split_.runs), 1, true, {to},
                 [&](Value* high, const FlowBuilder::State& at) {
                   ex_.scoped([&] {
                     ex_.bind(split_.high, high);
                     if (split_.guard == kNone) return run_of_steps(at[0], width);
                     Value* guard = ex_.eval_wide(split_.guard);
                     ex_.here();
                     Value* all = ex_.ops().all_of(guard);
                     const auto known = [&](bool inside) {
                       ex_.scoped([&] {
                         // Bound again, so that what follows from the guard belongs to this scope.
                         ex_.bind(split_.high, high);
                         if (inside) ex_.assume(split_.guard, true);
                         run_of_steps(at[0], width);
                       });
                     };
                     flow_.when(
                         all, [&] { known(true); }, [&] { known(false); });
                   });
                   return FlowBuilder::State{flow_.at(at[0], split_.digit / step_ * stride_)};
                 });
    });
  }

  void run_of_steps(Value* to, int width) {
    const int64_t whole = split_.digit / step_ * step_;
    if (whole > 0) {
      flow_.loop(flow_.index(0), flow_.index(whole), step_, true, [&](Value* low) {
        Value* number = b_.CreateUDiv(low, flow_.index(step_));
        step(low, flow_.at(to, b_.CreateMul(number, flow_.index(stride_))), width, step_);
      });
    }
    if (whole == split_.digit) return;
    step(flow_.index(whole), flow_.at(to, whole / step_ * stride_), width, split_.digit - whole);
  }

  // The first `count` of a step's k, zeros for the others.
  void step(Value* low, Value* to, int width, int64_t count) {
    std::vector<Value*> parts;
    for (int64_t i = 0; i < step_; ++i) {
      if (i >= count) {
        llvm::Type* type = packed_type();
        if (width > 1) type = vector(type, width);
        parts.push_back(llvm::Constant::getNullValue(type));
        continue;
      }
      ex_.scoped([&] {
        ex_.here();
        ex_.bind(split_.low, i == 0 ? low : b_.CreateAdd(low, flow_.index(i)));
        Value* bytes = ex_.eval_wide(split_.value);
        ex_.here();
        parts.push_back(packed(bytes));
      });
    }
    store(width == 1 ? gathered(parts) : interleaved(parts), to);
  }

  Value* gathered(const std::vector<Value*>& parts) {
    Value* out = llvm::PoisonValue::get(vector(packed_type(), step_));
    for (size_t i = 0; i < parts.size(); ++i) out = b_.CreateInsertElement(out, parts[i], i);
    return out;
  }

  // The first elements of all, then the second ones, …; their number is a power of two.
  Value* interleaved(const std::vector<Value*>& parts) {
    if (parts.size() == 1) return parts[0];
    std::vector<Value*> even;
    std::vector<Value*> odd;
    for (size_t i = 0; i < parts.size(); ++i) (i % 2 == 0 ? even : odd).push_back(parts[i]);
    Value* a = interleaved(even);
    Value* b = interleaved(odd);
    const int count = ValueOps::width_of(a);
    std::vector<int> lanes;
    for (int i = 0; i < count; ++i) lanes.insert(lanes.end(), {i, count + i});
    return b_.CreateShuffleVector(a, b, lanes);
  }

  // The sums of a panel's columns, behind it.
  void sum(Value* panel) {
    constexpr int kColumns = 4;
    Value* zeros = llvm::Constant::getNullValue(vector(b_.getInt32Ty(), kColumns));
    flow_.loop(flow_.index(0), flow_.index(p_.tile_columns), kColumns, true, [&](Value* j) {
      Value* first = flow_.at(panel, b_.CreateMul(j, flow_.index(p_.column_elements())));
      const auto sums = flow_.loop(
          flow_.index(0), flow_.index(p_.k / p_.column_elements()), 1, true, {zeros},
          [&](Value* number, const FlowBuilder::State& now) {
            Value* at = flow_.at(first, b_.CreateMul(number, flow_.index(stride_)));
            Value* v =
                b_.CreateAlignedLoad(vector(packed_type(), kColumns * step_), at, llvm::Align(1));
            v = extended(v, b_.getInt32Ty());
            Value* total = now[0];
            for (int i = 0; i < step_; ++i) {
              const int g = static_cast<int>(step_);
              total =
                  b_.CreateAdd(total, b_.CreateShuffleVector(v, {i, i + g, i + 2 * g, i + 3 * g}));
            }
            return FlowBuilder::State{total};
          });
      Value* to = flow_.at(panel, b_.CreateAdd(j, flow_.index(p_.k * p_.tile_columns)));
      b_.CreateAlignedStore(sums[0], to, llvm::Align(4));
    });
  }

  const int64_t step_;    // of k
  const int64_t stride_;  // elements from one to the next
};

}  // namespace

llvm::Function* emit_pack_byte_rows(const MatmulSource& source, llvm::Module& module, int rows) {
  llvm::Function* f = new_packer(source, module, "pack_rows_" + std::to_string(rows),
                                 1 + source.contraction().batch_vars.size());
  const lower::Contraction& c = source.contraction();
  const int64_t step = int64_t{source.plan.group()} * source.plan.unroll;
  SplitOperand split(c, c.a.byte, row_step(c, step));
  WindowRows windows(c, c.a.byte, step, split.kernel);
  ByteRowWriter(source, f, std::move(split), std::move(windows), rows).run();
  return f;
}

llvm::Function* emit_pack_byte_panels(const MatmulSource& source, llvm::Module& module) {
  llvm::Function* f =
      new_packer(source, module, "pack_panels", 2 + source.contraction().batch_vars.size());
  BytePanelWriter(source, f).run();
  return f;
}

}  // namespace pyc::cpu
