// Operands that are evaluated from their expressions into the form that the tiles read.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

#include "backends/cpu/llvm/matmul_emit.h"
#include "backends/cpu/llvm/matmul_split.h"
#include "backends/cpu/llvm/matmul_window.h"
#include "backends/cpu/llvm/step.h"
#include "base/kernel_abi.h"
#include "base/status.h"

namespace pyc::cpu {
namespace {

using llvm::Value;
using loop::kNone;

// Runs of k that are longer gain nothing by being copied with those behind them.
constexpr int64_t kJoinedRun = 32;

// Steps of the low part that are written one after another.
constexpr int kStepsAtOnce = 4;

// Runs of k one after the other, each `stride` elements on from the one before: whether a run is
// inside for all lanes is asked once, and known in `body`.
void each_guarded_run(FlowBuilder& flow, ExprEmitter& ex, const SplitOperand& split, Value* to,
                      int64_t stride, const std::function<void(Value* at)>& body) {
  flow.loop(flow.index(0), flow.index(split.runs), 1, true, {to},
            [&](Value* high, const FlowBuilder::State& at) {
              ex.scoped([&] {
                ex.bind(split.high, high);
                if (split.guard == kNone) return body(at[0]);
                Value* guard = ex.eval_wide(split.guard);
                ex.here();
                Value* all = ex.ops().all_of(guard);
                const auto known = [&](bool inside) {
                  ex.scoped([&] {
                    // Bound again, so that what follows from the guard belongs to this scope. LLVM
                    // would keep the addresses of each lane up to date for the rare case (x86;
                    // aarch64 has registers for them).
                    const bool hide = !inside && !ex.ops().traits().aarch64;
                    ex.bind(split.high, hide ? flow.unknown(high) : high);
                    if (inside) ex.assume(split.guard, true);
                    body(at[0]);
                  });
                };
                flow.when(
                    all, [&] { known(true); }, [&] { known(false); });
              });
              return FlowBuilder::State{flow.at(at[0], stride)};
            });
}

class PanelWriter {
 public:
  PanelWriter(const MatmulSource& source, llvm::Function* function)
      : p_(source.plan),
        c_(source.contraction()),
        split_(c_, c_.b.value),
        b_(&function->getEntryBlock()),
        flow_(b_),
        ex_(split_.kernel, source.traits, b_, function),
        f_(function) {}

  void run();

 private:
  void panel(Value* column, Value* to, int columns);
  // `lanes` columns from `column` on, for all k.
  void columns_at(Value* column, Value* to, int lanes);
  void run_of_steps(Value* to);
  void step(Value* low, int64_t add, Value* to);

  const MatmulPlan& p_;
  const lower::Contraction& c_;
  const SplitOperand split_;
  llvm::IRBuilder<> b_;
  FlowBuilder flow_;
  ExprEmitter ex_;
  llvm::Function* f_;
};

void PanelWriter::run() {
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
               return FlowBuilder::State{flow_.at(at[0], p_.b_panel_stride)};
             });
  b_.CreateRetVoid();
}

void PanelWriter::panel(Value* column, Value* to, int columns) {
  const int wide = columns / p_.lanes * p_.lanes;
  const auto part = [&](int from, int end, int lanes) {
    if (from == end) return;
    flow_.loop(flow_.index(from), flow_.index(end), lanes, true,
               [&](Value* j) { columns_at(b_.CreateAdd(column, j), flow_.at(to, j), lanes); });
  };
  part(0, wide, p_.lanes);
  part(wide, columns, 1);
  if (columns == p_.tile_columns) return;
  Value* zero = llvm::ConstantFP::get(b_.getFloatTy(), 0.0);
  flow_.loop(flow_.index(0), flow_.index(p_.k), 1, true, [&](Value* k) {
    Value* row = flow_.at(to, b_.CreateMul(k, flow_.index(p_.tile_columns)));
    for (int j = columns; j < p_.tile_columns; ++j) {
      b_.CreateAlignedStore(zero, flow_.at(row, j), llvm::Align(4));
    }
  });
}

void PanelWriter::columns_at(Value* column, Value* to, int lanes) {
  ex_.scoped([&] {
    ex_.bind_lanes(c_.n_var, column, 0, lanes, lanes);
    each_guarded_run(flow_, ex_, split_, to, split_.digit * p_.tile_columns,
                     [&](Value* at) { run_of_steps(at); });
  });
}

void PanelWriter::run_of_steps(Value* to) {
  const int64_t whole = split_.digit / kStepsAtOnce * kStepsAtOnce;
  const auto over = [&](int64_t from, int64_t end, int count) {
    if (from == end) return;
    flow_.loop(flow_.index(from), flow_.index(end), count, true, [&](Value* low) {
      Value* at = flow_.at(to, b_.CreateMul(low, flow_.index(p_.tile_columns)));
      for (int i = 0; i < count; ++i) step(low, i, flow_.at(at, i * p_.tile_columns));
    });
  };
  over(0, whole, kStepsAtOnce);
  over(whole, split_.digit, 1);
}

void PanelWriter::step(Value* low, int64_t add, Value* to) {
  ex_.scoped([&] {
    ex_.here();
    ex_.bind(split_.low, add == 0 ? low : b_.CreateAdd(low, flow_.index(add)));
    Value* x = ex_.eval_wide(split_.value);
    ex_.here();
    b_.CreateAlignedStore(x, to, llvm::Align(4));
  });
}

// The pointers that a step is given.
struct StepTable {
  Value* pointer;

  StepTable(llvm::IRBuilder<>& b, llvm::Function* step) {
    Value* at =
        b.CreateConstGEP1_64(b.getInt8Ty(), step->getArg(0), offsetof(pyc_kernel_args, buffers));
    pointer = b.CreateAlignedLoad(b.getPtrTy(), at, llvm::Align(8));
  }
  Value* slot(llvm::IRBuilder<>& b, size_t i) const {
    Value* at = b.CreateConstGEP1_64(b.getPtrTy(), pointer, i);
    return b.CreateAlignedLoad(b.getPtrTy(), at, llvm::Align(8));
  }
};

}  // namespace

llvm::Function* emit_pack_panels(const MatmulSource& source, llvm::Module& module) {
  llvm::Function* f =
      new_packer(source, module, "pack_panels", 2 + source.contraction().batch_vars.size());
  PanelWriter(source, f).run();
  return f;
}

namespace {

// Vectors of one element for each row, one for each k, as [row][k]; their number is a power of two.
Value* turned(llvm::IRBuilder<>& b, std::vector<Value*> columns, int rows) {
  for (int group = 1; columns.size() > 1; group *= 2) {
    std::vector<int> mask;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < group; ++j) mask.push_back(i * group + j);
      for (int j = 0; j < group; ++j) mask.push_back((rows + i) * group + j);
    }
    std::vector<Value*> joined;
    for (size_t i = 0; i < columns.size(); i += 2) {
      joined.push_back(b.CreateShuffleVector(columns[i], columns[i + 1], mask));
    }
    columns = std::move(joined);
  }
  return columns[0];
}

// `count` elements of each row, [row][k], as a packed tile has them; `unroll` where rows are not
// apart.
void store_turned(llvm::IRBuilder<>& b, const MatmulPlan& p, Value* step, int rows, int count,
                  Value* to) {
  if (!p.rows_apart()) {
    b.CreateAlignedStore(step, to, llvm::Align(4));
    return;
  }
  FlowBuilder flow(b);
  for (int i = 0; i < rows; ++i) {
    std::vector<int> lanes(static_cast<size_t>(count));
    std::iota(lanes.begin(), lanes.end(), i * count);
    Value* row = b.CreateShuffleVector(step, lanes);
    b.CreateAlignedStore(row, flow.at(to, i * p.a_row_stride()), llvm::Align(4));
  }
}

// Rows that are not cut into parts are all packed with the first.
void only_first_part(const lower::Contraction& c, llvm::Function* f, llvm::IRBuilder<>& b,
                     ExprEmitter& ex) {
  llvm::BasicBlock* first = ex.new_block("first");
  llvm::BasicBlock* others = ex.new_block("others");
  Value* part = f->getArg(3 + static_cast<unsigned>(c.batch_vars.size()));
  b.CreateCondBr(b.CreateIsNull(part), first, others);
  b.SetInsertPoint(others);
  b.CreateRetVoid();
  b.SetInsertPoint(first);
}

// Rows of A in runs of k: a run lies together more often than not, and whether it is inside of a
// window's input is asked once. Runs that fill no whole steps of `unroll` (three colours, each in a
// plane of its own) are written to a row on the stack first, where rows do not lie apart.
class RunWriter {
 public:
  // The windows' questions are in the split's kernel.
  RunWriter(const MatmulSource& source, llvm::Function* function, SplitOperand split,
            WindowRows windows, int rows)
      : p_(source.plan),
        c_(source.contraction()),
        split_(std::move(split)),
        windows_(std::move(windows)),
        rows_(rows),
        row_stride_(p_.a_row_stride()),
        k_stride_(p_.a_k_stride(rows)),
        in_steps_(split_.digit % p_.unroll == 0),
        aarch64_(source.traits.aarch64),
        alike_(!source.has_low_tiles()),
        b_(&function->getEntryBlock()),
        flow_(b_),
        ex_(split_.kernel, source.traits, b_, function),
        f_(function) {}

  // Whether it is worth it for the split.
  static bool takes(const SplitOperand& split, const MatmulPlan& p) {
    if (split.digit % p.unroll == 0) return true;
    return split.digit > 1 && split.digit <= kShortRun && split.runs > 1 && p.k <= kLongestRow;
  }

  void run();

 private:
  static constexpr int64_t kShortRun = 8;
  static constexpr int64_t kLongestRow = 4096;  // 16 KB of stack
  static constexpr int64_t kMostTogether = 4096;

  // Whether the rows of a tile lie a fixed distance apart, so that elements of all of them are
  // evaluated as one vector.
  bool go_together();
  // Elements between those of neighbours along a variable, where that is one number.
  std::optional<int64_t> stride_along(loop::VarId var, int width);
  void rows_together();
  // All elements of one run, for all rows.
  void together(Value* to);
  void turn(Value* to);

  // Run by run, so that what lies between the rows of one stays in the first-level cache.
  void by_runs();
  // Whether the elements of a run are f32 that lie together in memory.
  bool run_lies_together();
  // Such a run for all rows, inside of which it is, step by step: what is written lies together.
  void run_of_rows(Value* high, Value* to);
  // Binds row i and calls body.
  void at_row(int i, const std::function<void()>& body);
  // Binds each row; `at` is where its first element lies in the tile.
  void each_row(const std::function<void(Value* at)>& body);
  // The row that is bound, its elements side by side; of a window that is inside, in copies.
  void row(Value* to);
  void window(Value* to);
  void run_at(Value* high, Value* to);
  // One run at `to`: its elements, or +0 where the guard is known to be false.
  void steps(Value* to, bool inside);
  void elements(Value* to, bool inside);
  // The row on the stack as the tiles read it.
  void spread(Value* to);

  const MatmulPlan& p_;
  const lower::Contraction& c_;
  const SplitOperand split_;
  const WindowRows windows_;
  const int rows_;
  const int64_t row_stride_;  // in the packed tile
  const int64_t k_stride_;
  const bool in_steps_;
  const bool aarch64_;
  const bool alike_;  // all tiles have the same number of rows
  llvm::IRBuilder<> b_;
  FlowBuilder flow_;
  ExprEmitter ex_;
  llvm::Function* f_;
  Value* stack_ = nullptr;
};

void RunWriter::run() {
  llvm::AllocaInst* stack = nullptr;
  if (!in_steps_) {
    stack = b_.CreateAlloca(b_.getFloatTy(), flow_.index(p_.k));
    stack->setAlignment(llvm::Align(MatmulPlan::kLine));
    stack_ = stack;
  }
  begin_packer(c_, f_, 3, b_, ex_);
  const bool by_rows = !in_steps_ || windows_.worthwhile();
  if (by_rows) only_first_part(c_, f_, b_, ex_);
  if (go_together()) {
    stack->setOperand(0, flow_.index(p_.k * rows_));
    rows_together();
    b_.CreateRetVoid();
    return;
  }
  if (!by_rows) {
    by_runs();
  } else {
    each_row([&](Value* i) {
      Value* to = flow_.at(f_->getArg(1), i);
      Value* elements = p_.rows_apart() ? to : stack_;
      if (windows_.worthwhile()) {
        windows_.either(
            flow_, ex_, [&] { window(elements); }, [&] { row(elements); });
      } else {
        row(elements);
      }
      if (!p_.rows_apart()) spread(to);
    });
  }
  b_.CreateRetVoid();
}

void RunWriter::each_row(const std::function<void(Value* at)>& body) {
  flow_.loop(flow_.index(0), flow_.index(rows_), 1, true, [&](Value* i) {
    ex_.scoped([&] {
      if (c_.m_var != kNone) ex_.bind(c_.m_var, b_.CreateAdd(f_->getArg(2), i));
      body(b_.CreateMul(i, flow_.index(row_stride_)));
    });
  });
}

void RunWriter::by_runs() {
  Value* part = f_->getArg(3 + static_cast<unsigned>(c_.batch_vars.size()));
  Value* parts = f_->getArg(4 + static_cast<unsigned>(c_.batch_vars.size()));
  const auto share = [&](Value* i) {
    return b_.CreateUDiv(b_.CreateMul(i, flow_.index(split_.runs)), parts);
  };
  Value* end = share(b_.CreateAdd(part, flow_.index(1)));
  // Measured on aarch64, where registers hold the addresses of all rows.
  const bool beside = aarch64_ && rows_ > 1 && run_lies_together();
  flow_.loop(share(part), end, 1, false, [&](Value* high) {
    Value* run = b_.CreateMul(high, flow_.index(split_.digit * k_stride_));
    ex_.scoped([&] {
      ex_.bind(split_.high, high);
      const auto one_by_one = [&] {
        each_row([&](Value* i) { run_at(high, flow_.at(f_->getArg(1), b_.CreateAdd(run, i))); });
      };
      const auto together = [&] { run_of_rows(high, flow_.at(f_->getArg(1), run)); };
      if (!beside) return one_by_one();
      if (split_.guard == kNone) return together();
      Value* all = b_.getTrue();
      for (int i = 0; i < rows_; ++i) {
        at_row(i, [&] {
          Value* inside = ex_.eval(split_.guard);
          ex_.here();
          all = b_.CreateAnd(all, inside);
        });
      }
      flow_.when(all, together, one_by_one);
    });
  });
}

void RunWriter::at_row(int i, const std::function<void()>& body) {
  ex_.scoped([&] {
    if (c_.m_var != kNone) ex_.bind(c_.m_var, b_.CreateAdd(f_->getArg(2), flow_.index(i)));
    body();
  });
}

bool RunWriter::run_lies_together() {
  const loop::ExprNode& value = split_.kernel.pool.node(split_.value);
  if (value.op != loop::Op::kLoad || split_.kernel.pool.dtype(split_.value) != DType::kF32) {
    return false;
  }
  // A guard that depends on the low part is none of the run's.
  if (value.b != kNone && value.b != split_.guard) return false;
  return stride_along(split_.low, static_cast<int>(split_.digit)) == 1;
}

void RunWriter::run_of_rows(Value* high, Value* to) {
  // Where each row's run begins: the address that its first step is loaded from.
  std::vector<Value*> rows;
  for (int i = 0; i < rows_; ++i) {
    at_row(i, [&] {
      // Bound again, so that what follows from the guard belongs to this scope.
      ex_.bind(split_.high, high);
      if (split_.guard != kNone) ex_.assume(split_.guard, true);
      ex_.bind_lanes(split_.low, flow_.index(0), 0, p_.unroll, p_.unroll);
      auto* first = llvm::dyn_cast<llvm::LoadInst>(ex_.eval_wide(split_.value));
      PYC_CHECK(first != nullptr, "a run that lies in memory is not loaded");
      rows.push_back(first->getPointerOperand());
      ex_.here();
    });
  }
  auto* type = llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(p_.unroll));
  flow_.loop(flow_.index(0), flow_.index(split_.digit), p_.unroll, true, [&](Value* low) {
    Value* at = flow_.at(to, b_.CreateMul(low, flow_.index(rows_)));
    std::vector<Value*> elements;
    for (Value* row : rows) {
      elements.push_back(b_.CreateAlignedLoad(type, flow_.at(row, low), llvm::Align(4)));
    }
    for (Value* x : elements) {
      b_.CreateAlignedStore(x, at, llvm::Align(4));
      at = flow_.at(at, p_.unroll);
    }
  });
}

bool RunWriter::go_together() {
  const bool even = rows_ >= 4 && (rows_ & (rows_ - 1)) == 0;
  if (in_steps_ || !alike_ || !even || c_.m_var == kNone || p_.k * rows_ > kMostTogether) {
    return false;
  }
  // Elements that lie together are as fast one row after another.
  const std::optional<int64_t> along = stride_along(split_.low, static_cast<int>(split_.digit));
  return along && *along != 1 && stride_along(c_.m_var, rows_).value_or(0) > 0;
}

std::optional<int64_t> RunWriter::stride_along(loop::VarId var, int width) {
  std::optional<int64_t> stride;
  ex_.scoped([&] {
    for (const loop::VarId other : {split_.high, split_.low, c_.m_var}) {
      if (other != var && other != kNone) ex_.bind(other, flow_.index(0));
    }
    ex_.bind_lanes(var, flow_.index(0), 0, width, width);
    stride = ex_.stride_of_load(split_.value);
  });
  return stride;
}

void RunWriter::rows_together() {
  ex_.scoped([&] {
    ex_.bind_lanes(c_.m_var, f_->getArg(2), 0, rows_, rows_);
    each_guarded_run(flow_, ex_, split_, stack_, split_.digit * rows_,
                     [&](Value* at) { together(at); });
  });
  turn(f_->getArg(1));
}

void RunWriter::together(Value* to) {
  for (int64_t low = 0; low < split_.digit; ++low) {
    ex_.scoped([&] {
      ex_.bind(split_.low, flow_.index(low));
      Value* x = ex_.eval_wide(split_.value);
      ex_.here();
      b_.CreateAlignedStore(x, flow_.at(to, low * rows_), llvm::Align(4));
    });
  }
}

void RunWriter::turn(Value* to) {
  constexpr int kEight = 8;  // a row of them is one store
  const int at_once = p_.rows_apart() ? kEight : p_.unroll;
  const int64_t whole = p_.k / at_once * at_once;
  auto* type = llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(rows_));
  const auto load = [&](Value* k, int64_t add) {
    Value* at = flow_.at(stack_, b_.CreateMul(k, flow_.index(rows_)));
    return b_.CreateAlignedLoad(type, flow_.at(at, add * rows_), llvm::Align(4));
  };
  if (whole > 0) {
    flow_.loop(flow_.index(0), flow_.index(whole), at_once, true, [&](Value* k) {
      std::vector<Value*> columns;
      for (int i = 0; i < at_once; ++i) columns.push_back(load(k, i));
      Value* at = flow_.at(to, b_.CreateMul(k, flow_.index(k_stride_)));
      store_turned(b_, p_, turned(b_, std::move(columns), rows_), rows_, at_once, at);
    });
  }
  for (int64_t k = whole; k < p_.k; ++k) {
    Value* x = load(flow_.index(k), 0);
    for (int i = 0; i < rows_; ++i) {
      Value* at = flow_.at(to, whole * k_stride_ + i * row_stride_ + k - whole);
      b_.CreateAlignedStore(b_.CreateExtractElement(x, static_cast<uint64_t>(i)), at,
                            llvm::Align(4));
    }
  }
}

void RunWriter::window(Value* to) {
  windows_.copy(b_, ex_, [&](int64_t k, Value* elements) {
    b_.CreateAlignedStore(elements, flow_.at(to, k), llvm::Align(4));
  });
}

void RunWriter::row(Value* to) {
  flow_.loop(flow_.index(0), flow_.index(split_.runs), 1, true, {to},
             [&](Value* high, const FlowBuilder::State& at) {
               ex_.scoped([&] {
                 ex_.bind(split_.high, high);
                 run_at(high, at[0]);
               });
               return FlowBuilder::State{flow_.at(at[0], split_.digit)};
             });
}

void RunWriter::run_at(Value* high, Value* to) {
  const auto write = [&](bool inside) { in_steps_ ? steps(to, inside) : elements(to, inside); };
  if (split_.guard == kNone) return write(true);
  Value* guard = ex_.eval(split_.guard);
  ex_.here();
  const auto known = [&](bool inside) {
    ex_.scoped([&] {
      // Bound again, so that what follows from the guard belongs to this scope.
      ex_.bind(split_.high, high);
      if (inside) ex_.assume(split_.guard, true);
      write(inside);
    });
  };
  flow_.when(
      guard, [&] { known(true); }, [&] { known(false); });
}

void RunWriter::elements(Value* to, bool inside) {
  for (int64_t low = 0; low < split_.digit; ++low) {
    ex_.scoped([&] {
      ex_.bind(split_.low, flow_.index(low));
      Value* x = inside ? ex_.eval(split_.value) : llvm::ConstantFP::get(b_.getFloatTy(), 0.0);
      ex_.here();
      b_.CreateAlignedStore(x, flow_.at(to, low), llvm::Align(4));
    });
  }
}

void RunWriter::spread(Value* to) {
  const int64_t whole = p_.k / p_.unroll * p_.unroll;
  const auto over = [&](int64_t from, int64_t end, int width, int64_t stride) {
    if (from == end) return;
    llvm::Type* type = b_.getFloatTy();
    if (width > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(width));
    flow_.loop(flow_.index(from), flow_.index(end), width, true, [&](Value* k) {
      Value* x = b_.CreateAlignedLoad(type, flow_.at(stack_, k), llvm::Align(4));
      Value* past = b_.CreateMul(b_.CreateSub(k, flow_.index(from)), flow_.index(stride));
      b_.CreateAlignedStore(x, flow_.at(flow_.at(to, from * rows_), past), llvm::Align(4));
    });
  };
  over(0, whole, p_.unroll, rows_);
  over(whole, p_.k, 1, 1);
}

void RunWriter::steps(Value* to, bool inside) {
  const bool wide = p_.rows_apart() && split_.digit % p_.lanes == 0;
  const int width = wide ? p_.lanes : p_.unroll;
  const int64_t at_once = int64_t{width} * kStepsAtOnce;
  const int64_t whole = split_.digit / at_once * at_once;
  llvm::Type* type = llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(width));
  const auto over = [&](int64_t from, int64_t end, int64_t step) {
    if (from == end) return;
    flow_.loop(flow_.index(from), flow_.index(end), step, true, [&](Value* low) {
      Value* at = flow_.at(to, b_.CreateMul(low, flow_.index(k_stride_)));
      for (int64_t add = 0; add < step; add += width) {
        ex_.scoped([&] {
          ex_.bind_lanes(split_.low, low, add, width, width);
          Value* x = inside ? ex_.eval_wide(split_.value) : llvm::Constant::getNullValue(type);
          ex_.here();
          b_.CreateAlignedStore(x, flow_.at(at, add * k_stride_), llvm::Align(4));
        });
      }
    });
  };
  over(0, whole, at_once);
  over(whole, split_.digit, width);
}

}  // namespace

llvm::Function* emit_pack_rows(const MatmulSource& source, llvm::Module& module, int rows) {
  const lower::Contraction& c = source.contraction();
  const MatmulPlan& p = source.plan;
  llvm::Function* f =
      new_packer(source, module, "pack_rows_" + std::to_string(rows), 3 + c.batch_vars.size());
  if (SplitOperand split(c, c.a.value); RunWriter::takes(split, p)) {
    // Of rows whose runs fill steps only short runs are better joined, where rows lie together.
    const bool in_steps = split.digit % p.unroll == 0;
    const bool joins = p.rows_apart() && p.a_parts == 1 && split.digit <= kJoinedRun;
    WindowRows windows(c, in_steps && !joins ? kNone : c.a.value, c.k, split.kernel);
    RunWriter(source, f, std::move(split), std::move(windows), rows).run();
    return f;
  }
  llvm::IRBuilder<> b(&f->getEntryBlock());
  FlowBuilder flow(b);
  ExprEmitter ex(source.kernel(), source.traits, b, f);
  begin_packer(c, f, 3, b, ex);
  only_first_part(c, f, b, ex);
  const int64_t whole = p.k / p.unroll * p.unroll;
  const int64_t k_stride = p.a_k_stride(rows);
  flow.loop(flow.index(0), flow.index(rows), 1, true, [&](Value* i) {
    Value* row = b.CreateAdd(f->getArg(2), i);
    Value* to = flow.at(f->getArg(1), b.CreateMul(i, flow.index(p.a_row_stride())));
    ex.scoped([&] {
      if (c.m_var != kNone) ex.bind(c.m_var, row);
      // Elements [k, k + width) of the row.
      const auto over = [&](int64_t from, int64_t end, int width, Value* target, int64_t stride) {
        if (from == end) return;
        flow.loop(flow.index(from), flow.index(end), width, true, [&](Value* k) {
          Value* at = b.CreateMul(b.CreateSub(k, flow.index(from)), flow.index(stride));
          at = flow.at(target, at);
          ex.scoped([&] {
            ex.bind_lanes(c.k_var, k, 0, width, width);
            Value* x = ex.eval_wide(c.a.value);
            ex.here();
            b.CreateAlignedStore(x, at, llvm::Align(4));
          });
        });
      };
      over(0, whole, p.unroll, to, k_stride);
      over(whole, p.k, 1, flow.at(to, whole * k_stride), 1);
    });
  });
  b.CreateRetVoid();
  return f;
}

void emit_row_copy(const MatmulSource& source, llvm::IRBuilder<>& b, int rows, Value* from,
                   Value* to) {
  const lower::Contraction::Operand& a = source.contraction().a;
  const MatmulPlan& p = source.plan;
  FlowBuilder flow(b);
  const auto load = [&](int elements, Value* at) {
    auto* type = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(elements));
    return b.CreateAlignedLoad(type, at, llvm::Align(4));
  };
  const auto step = [&](Value* source_at, Value* target) {
    if (a.row_stride == 1 && rows > 1) {
      std::vector<Value*> columns;
      for (int k = 0; k < p.unroll; ++k) {
        columns.push_back(load(rows, flow.at(source_at, k * a.k_stride)));
      }
      store_turned(b, p, turned(b, std::move(columns), rows), rows, p.unroll, target);
      return;
    }
    for (int i = 0; i < rows; ++i) {
      Value* row = flow.at(source_at, i * a.row_stride);
      const int together = a.k_stride == 1 ? p.unroll : 1;
      for (int k = 0; k < p.unroll; k += together) {
        b.CreateAlignedStore(load(together, flow.at(row, k * a.k_stride)),
                             flow.at(target, i * p.a_row_stride() + k), llvm::Align(4));
      }
    }
  };
  const auto ends =
      flow.loop(flow.index(0), flow.index(p.k / p.unroll), 1, false, {from, to},
                [&](Value*, const FlowBuilder::State& at) {
                  step(at[0], at[1]);
                  return FlowBuilder::State{flow.at(at[0], p.unroll * a.k_stride),
                                            flow.at(at[1], p.unroll * p.a_k_stride(rows))};
                });
  if (p.k % p.unroll == 0) return;
  flow.loop(flow.index(0), flow.index(p.k % p.unroll), 1, true, [&](Value* k) {
    for (int i = 0; i < rows; ++i) {
      Value* along = b.CreateMul(k, flow.index(a.k_stride));
      Value* at = flow.at(ends[0], b.CreateAdd(along, flow.index(i * a.row_stride)));
      Value* to_k = b.CreateAdd(k, flow.index(i * p.a_row_stride()));
      b.CreateAlignedStore(load(1, at), flow.at(ends[1], to_k), llvm::Align(4));
    }
  });
}

// Row by row, so that the lines of rows that fall into one set are not there at once.
void emit_segment_copy(const MatmulSource& source, llvm::IRBuilder<>& b, int rows, Value* from,
                       Value* to) {
  constexpr int kAtOnce = 4;
  const MatmulPlan& p = source.plan;
  FlowBuilder flow(b);
  // Rows that each stand by themselves are copied in lines.
  const int64_t part = p.rows_apart() ? MatmulPlan::kLine / 4 : p.unroll;
  const int64_t step = part * p.a_k_stride(rows);
  auto* type = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(part));
  flow.loop(flow.index(0), flow.index(rows), 1, true, [&](Value* i) {
    Value* row = flow.at(from, b.CreateMul(i, flow.index(source.contraction().a.row_stride)));
    Value* target = flow.at(to, b.CreateMul(i, flow.index(p.a_row_stride())));
    flow.loop(
        flow.index(0), flow.index(kMatmulSegment / part), kAtOnce, true, {row, target},
        [&](Value*, const FlowBuilder::State& at) {
          for (int j = 0; j < kAtOnce; ++j) {
            Value* x = b.CreateAlignedLoad(type, flow.at(at[0], j * part), llvm::Align(4));
            b.CreateAlignedStore(x, flow.at(at[1], j * step), llvm::Align(4));
          }
          return FlowBuilder::State{flow.at(at[0], kAtOnce * part), flow.at(at[1], kAtOnce * step)};
        });
  });
}

void emit_rows_step(const MatmulSource& source, llvm::Module& module, const std::string& symbol,
                    const MatmulParts& functions) {
  const lower::Contraction& c = source.contraction();
  const MatmulPlan& p = source.plan;
  llvm::Function* f = new_step(module, symbol);
  llvm::IRBuilder<> b(&f->getEntryBlock());
  FlowBuilder flow(b, source.traits.numbers);
  const StepTable table(b, f);
  const bool linear = source.linear_rows();
  Value* workspace = table.slot(b, linear ? 1 : source.kernel().buffers.size());
  Value* a = linear ? table.slot(b, 0) : nullptr;
  if (linear) a = flow.any_size() ? flow.at(a, flow.number(c.a.base)) : flow.at(a, c.a.base);
  flow.loop(f->getArg(1), f->getArg(2), 1, false, [&](Value* number) {
    Value* tiles = flow.number(p.row_tiles);
    Value* parts = flow.number(p.a_parts);
    Value* part = b.CreateURem(number, parts);
    number = b.CreateUDiv(number, parts);
    Value* tile = b.CreateURem(number, tiles);
    Value* matrix = b.CreateUDiv(number, tiles);
    Value* low = b.CreateSub(tile, flow.number(p.tall_tiles));
    Value* row = b.CreateSub(b.CreateMul(tile, flow.index(p.tile_rows)),
                             b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, low, flow.index(0)));
    // Of f32 rows lie as close as they can, of bytes all tiles have the same room.
    Value* place = b.CreateAdd(b.CreateMul(matrix, flow.number(p.m)), row);
    if (p.of_bytes()) place = b.CreateAdd(b.CreateMul(matrix, tiles), tile);
    const int64_t room = p.of_bytes() ? p.a_tile_elements() : p.row_room();
    Value* to = flow.at(workspace, b.CreateMul(place, flow.index(room)));
    std::vector<Value*> batch(c.batch.size(), flow.index(0));
    for (size_t i = c.batch.size(); i-- > 0;) {
      if (p.a_batch_strides[i] == 0) continue;
      Value* extent = flow.number(c.batch[i]);
      batch[i] = b.CreateURem(matrix, extent);
      matrix = b.CreateUDiv(matrix, extent);
    }
    const auto fill = [&](int rows) {
      if (!linear) {
        std::vector<Value*> args = {table.pointer, to, row};
        args.insert(args.end(), batch.begin(), batch.end());
        if (!p.of_bytes()) args.insert(args.end(), {part, parts});
        add_dims_argument(source.traits.numbers, f, args);
        b.CreateCall(functions.pack_rows[rows == p.tile_rows ? 0 : 1], args);
        return;
      }
      Value* from = flow.at(a, b.CreateMul(row, flow.index(c.a.row_stride)));
      for (size_t i = c.batch.size(); i-- > 0;) {
        if (p.a_batch_strides[i] == 0) continue;
        from = flow.at(from, b.CreateMul(batch[i], flow.number(c.a.batch_strides[i])));
      }
      emit_row_copy(source, b, rows, from, to);
    };
    if (!source.has_low_tiles()) return fill(p.tile_rows);
    flow.when(
        b.CreateICmpSLT(low, flow.index(0)), [&] { fill(p.tile_rows); },
        [&] { fill(p.tile_rows - 1); });
  });
  b.CreateRetVoid();
}

void emit_pack_step(const MatmulSource& source, llvm::Module& module, const std::string& symbol,
                    llvm::Function* pack_panels) {
  const lower::Contraction& c = source.contraction();
  const MatmulPlan& p = source.plan;
  llvm::Function* f = new_step(module, symbol);
  llvm::IRBuilder<> b(&f->getEntryBlock());
  FlowBuilder flow(b);
  const StepTable table(b, f);
  Value* workspace = table.slot(b, source.kernel().buffers.size());
  flow.loop(f->getArg(1), f->getArg(2), 1, false, [&](Value* number) {
    Value* panel = b.CreateURem(number, flow.index(p.panels));
    Value* matrix = b.CreateUDiv(number, flow.index(p.panels));
    Value* to = flow.at(workspace, b.CreateMul(number, flow.index(p.b_panel_stride)));
    std::vector<Value*> args(4 + c.batch.size(), flow.index(0));
    args[0] = table.pointer;
    args[1] = to;
    args[2] = panel;
    args[3] = b.CreateAdd(panel, flow.index(1));
    for (size_t i = c.batch.size(); i-- > 0;) {
      if (p.b_batch_strides[i] == 0) continue;
      args[4 + i] = b.CreateURem(matrix, flow.index(c.batch[i]));
      matrix = b.CreateUDiv(matrix, flow.index(c.batch[i]));
    }
    add_dims_argument(source.traits.numbers, f, args);
    b.CreateCall(pack_panels, args);
  });
  b.CreateRetVoid();
}

}  // namespace pyc::cpu
