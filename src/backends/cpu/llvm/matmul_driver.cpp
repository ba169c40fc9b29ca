// The step's function: which tiles a task computes, and the copy of A's rows where one is made.

#include <algorithm>
#include <cstddef>

#include "backends/cpu/llvm/matmul_emit.h"
#include "backends/cpu/llvm/step.h"
#include "backends/cpu/llvm/tile_amx.h"
#include "base/kernel_abi.h"

namespace pyc::cpu {
namespace {

using llvm::Value;

class DriverWriter {
 public:
  DriverWriter(const MatmulSource& source, llvm::Function* function, const MatmulParts& parts,
               bool backwards)
      : s_(source),
        p_(source.plan),
        c_(source.contraction()),
        b_(&function->getEntryBlock()),
        flow_(b_, source.traits.numbers),
        f_(function),
        parts_(parts),
        backwards_(backwards) {}

  void run();

 private:
  struct Task {
    std::vector<Value*> batch;
    Value* a = nullptr;     // the batch entry's first row
    Value* b = nullptr;     // the task's first panel
    Value* tile = nullptr;  // tiles [tile, tile_end)
    Value* tile_end = nullptr;
    Value* column = nullptr;  // columns [column, column_end), padded
    Value* column_end = nullptr;
    Value* segment = nullptr;  // elements from B's segments to the next ones'
  };

  Value* field(size_t offset);
  Value* slot(uint32_t i);
  Value* scaled(Value* v, int64_t factor) { return b_.CreateMul(v, flow_.index(factor)); }
  // By what the number of rows or the batch decides.
  Value* sized(Value* v, int64_t factor) { return b_.CreateMul(v, flow_.number(factor)); }
  Value* based(Value* pointer, int64_t elements) {
    return flow_.any_size() ? flow_.at(pointer, flow_.number(elements))
                            : flow_.at(pointer, elements);
  }
  Value* share(Value* i, int64_t items, int64_t parts);
  // Calls body(rows, tile number) for the tiles of a task, tall ones first.
  void each_tile(const Task& task, const std::function<void(int rows, Value* tile)>& body);
  Value* first_row(Value* tile);
  Task task(Value* number);
  void tiles(const Task& task);
  // The panels of a tile one after the other, from either end.
  void panel_by_panel(const Task& task, int rows, Value* row, Value* a);
  // The same by segments: scratch has the tile's part of the rows, where they are copied, then the
  // task's totals.
  void segments(const Task& task);
  void call_tile(const Task& task, int rows, Value* row, Value* a, Value* b,
                 std::vector<Value*> more = {});
  // The task's first panel as the tiles read it.
  Value* panels(const Task& task, Value* panel, Value* panel_end);
  // By segment: where those of a tile are evaluated to.
  Value* task_rows(const Task& task, Value* tile);
  // The tile's rows likewise.
  Value* rows_of(const Task& task, int rows, Value* tile, Value* row);

  const MatmulSource& s_;
  const MatmulPlan& p_;
  const lower::Contraction& c_;
  llvm::IRBuilder<> b_;
  FlowBuilder flow_;
  llvm::Function* f_;
  const MatmulParts& parts_;
  const bool backwards_;
  Value* table_ = nullptr;
  Value* scratch_ = nullptr;
  Value* totals_ = nullptr;  // of the task's tiles, a tile's panels side by side
};

Value* DriverWriter::field(size_t offset) {
  Value* p = b_.CreateConstGEP1_64(b_.getInt8Ty(), f_->getArg(0), offset);
  return b_.CreateAlignedLoad(b_.getPtrTy(), p, llvm::Align(8));
}

Value* DriverWriter::slot(uint32_t i) {
  Value* p = b_.CreateConstGEP1_64(b_.getPtrTy(), table_, i);
  return b_.CreateAlignedLoad(b_.getPtrTy(), p, llvm::Align(8));
}

// Where part i of `parts` even parts of `items` begins.
Value* DriverWriter::share(Value* i, int64_t items, int64_t parts) {
  return b_.CreateUDiv(sized(i, items), flow_.number(parts));
}

Value* DriverWriter::first_row(Value* tile) {
  Value* row = scaled(tile, p_.tile_rows);
  if (!s_.has_low_tiles()) return row;
  Value* low = b_.CreateSub(tile, flow_.number(p_.tall_tiles));
  return b_.CreateSub(row, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, low, flow_.index(0)));
}

void DriverWriter::run() {
  table_ = field(offsetof(pyc_kernel_args, buffers));
  if (p_.scratch_bytes > 0) scratch_ = field(offsetof(pyc_kernel_args, scratch));
  if (p_.by_segment) totals_ = flow_.at(scratch_, flow_.number(p_.totals_scratch()));
  const bool in_tiles = p_.unit == ByteUnit::kAmx;
  if (in_tiles) emit_amx_begin(b_, *f_->getParent());
  Value* begin = f_->getArg(1);
  Value* end = f_->getArg(2);
  const auto mirrored = [&](Value* i) {
    return b_.CreateSub(b_.CreateAdd(begin, end), b_.CreateAdd(i, flow_.index(1)));
  };
  flow_.loop(begin, end, 1, false, [&](Value* i) {
    Value* number = backwards_ ? mirrored(i) : i;
    p_.by_segment ? segments(task(number)) : tiles(task(number));
  });
  if (in_tiles) emit_amx_end(b_);
  b_.CreateRetVoid();
}

DriverWriter::Task DriverWriter::task(Value* number) {
  Task t;
  Value* rest = number;
  const auto digit = [&](int64_t extent) {
    Value* of = flow_.number(extent);
    Value* at = b_.CreateURem(rest, of);
    rest = b_.CreateUDiv(rest, of);
    return at;
  };
  Value* block = digit(p_.m_blocks * p_.n_blocks);
  const auto part = [&](int64_t apart, int64_t extent) {
    return b_.CreateURem(b_.CreateUDiv(block, flow_.number(apart)), flow_.number(extent));
  };
  Value* m_block = part(p_.rows_first() ? 1 : p_.n_blocks, p_.m_blocks);
  Value* n_block = part(p_.rows_first() ? p_.m_blocks : 1, p_.n_blocks);
  t.batch.resize(c_.batch.size());
  for (size_t i = c_.batch.size(); i-- > 0;) t.batch[i] = digit(c_.batch[i]);
  t.tile = share(m_block, p_.row_tiles, p_.m_blocks);
  t.tile_end = share(b_.CreateAdd(m_block, flow_.index(1)), p_.row_tiles, p_.m_blocks);
  Value* panel = share(n_block, p_.panels, p_.n_blocks);
  Value* panel_end = share(b_.CreateAdd(n_block, flow_.index(1)), p_.panels, p_.n_blocks);
  t.column = scaled(panel, p_.tile_columns);
  t.column_end = scaled(panel_end, p_.tile_columns);
  t.b = panels(t, panel, panel_end);
  if (p_.by_segment) {
    // B begins with its group, and there with its place in the first segment.
    Value* group = b_.CreateUDiv(n_block, flow_.number(p_.n_blocks / p_.b_groups));
    const auto begin = [&](Value* g) {
      return b_.CreateUDiv(scaled(g, p_.panels), flow_.index(p_.b_groups));
    };
    Value* first = begin(group);
    Value* others = b_.CreateSub(begin(b_.CreateAdd(group, flow_.index(1))), first);
    t.segment = scaled(others, p_.b_panel_stride);
    t.b = flow_.at(t.b, scaled(first, (p_.segments - 1) * p_.b_panel_stride));
  }
  using Rows = MatmulPlan::Rows;
  if (p_.rows == Rows::kComputed) return t;
  t.a = p_.a_placed() ? slot(p_.a_slot) : based(slot(c_.a.buffer), c_.a.base);
  const std::vector<int64_t>& strides = p_.a_placed() ? p_.a_batch_strides : c_.a.batch_strides;
  for (size_t i = 0; i < t.batch.size(); ++i) {
    t.a = flow_.at(t.a, sized(t.batch[i], strides[i]));
  }
  return t;
}

Value* DriverWriter::panels(const Task& task, Value* panel, Value* panel_end) {
  if (p_.weights == MatmulPlan::Weights::kPackedByTask) {
    Value* block = flow_.at(scratch_, p_.b_scratch / 4);
    std::vector<Value*> args = {table_, block, panel, panel_end};
    args.insert(args.end(), task.batch.begin(), task.batch.end());
    add_dims_argument(s_.traits.numbers, f_, args);
    b_.CreateCall(parts_.pack_panels, args);
    return block;
  }
  const bool in_place = p_.weights == MatmulPlan::Weights::kInPlace;
  Value* at = based(slot(p_.b_slot), in_place ? c_.b.base : 0);
  at = flow_.at(at, scaled(panel, p_.b_panel_stride));
  for (size_t i = 0; i < task.batch.size(); ++i) {
    at = flow_.at(at, sized(task.batch[i], p_.b_batch_strides[i]));
  }
  return at;
}

Value* DriverWriter::rows_of(const Task& task, int rows, Value* tile, Value* row) {
  switch (p_.rows) {
    case MatmulPlan::Rows::kPackedAhead:
    case MatmulPlan::Rows::kPackedAtRun:
      if (p_.of_bytes()) return flow_.at(task.a, scaled(tile, p_.a_tile_elements()));
      return flow_.at(task.a, scaled(row, p_.row_room()));
    case MatmulPlan::Rows::kInPlace:
      return flow_.at(task.a, scaled(row, c_.a.row_stride));
    case MatmulPlan::Rows::kCopied:
      emit_row_copy(s_, b_, rows, flow_.at(task.a, scaled(row, c_.a.row_stride)), scratch_);
      return scratch_;
    case MatmulPlan::Rows::kComputed:
    case MatmulPlan::Rows::kSegmentCopied:
      break;
  }
  Value* to = p_.by_segment ? task_rows(task, tile) : scratch_;
  std::vector<Value*> args = {table_, to, row};
  args.insert(args.end(), task.batch.begin(), task.batch.end());
  if (!p_.of_bytes()) args.insert(args.end(), {flow_.index(0), flow_.index(1)});
  add_dims_argument(s_.traits.numbers, f_, args);
  b_.CreateCall(parts_.pack_rows[rows == p_.tile_rows ? 0 : 1], args);
  return to;
}

Value* DriverWriter::task_rows(const Task& task, Value* tile) {
  return flow_.at(scratch_, scaled(b_.CreateSub(tile, task.tile), p_.a_tile_elements()));
}

void DriverWriter::each_tile(const Task& task,
                             const std::function<void(int rows, Value* tile)>& body) {
  Value* tall = flow_.number(p_.tall_tiles);
  const auto over = [&](Value* begin, Value* end, int rows) {
    flow_.loop(begin, end, 1, false, [&](Value* tile) { body(rows, tile); });
  };
  if (!s_.has_low_tiles()) return over(task.tile, task.tile_end, p_.tile_rows);
  over(task.tile, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, task.tile_end, tall),
       p_.tile_rows);
  over(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, task.tile, tall), task.tile_end,
       p_.tile_rows - 1);
}

void DriverWriter::tiles(const Task& task) {
  each_tile(task, [&](int rows, Value* tile) {
    Value* row = first_row(tile);
    Value* a = rows_of(task, rows, tile, row);
    p_.both_ways ? panel_by_panel(task, rows, row, a) : call_tile(task, rows, row, a, task.b);
  });
}

void DriverWriter::panel_by_panel(const Task& task, int rows, Value* row, Value* a) {
  Value* columns = b_.CreateSub(task.column_end, task.column);
  Value* count = b_.CreateUDiv(columns, flow_.index(p_.tile_columns));
  flow_.loop(flow_.index(0), count, 1, true, [&](Value* i) {
    Value* at = backwards_ ? b_.CreateSub(b_.CreateSub(count, flow_.index(1)), i) : i;
    Task panel = task;
    panel.column = b_.CreateAdd(task.column, scaled(at, p_.tile_columns));
    panel.column_end = b_.CreateAdd(panel.column, flow_.index(p_.tile_columns));
    call_tile(panel, rows, row, a, flow_.at(task.b, scaled(at, p_.b_panel_stride)));
  });
}

void DriverWriter::call_tile(const Task& task, int rows, Value* row, Value* a, Value* b,
                             std::vector<Value*> more) {
  std::vector<Value*> args = {table_, a, b, row, task.column, task.column_end};
  args.insert(args.end(), task.batch.begin(), task.batch.end());
  args.insert(args.end(), more.begin(), more.end());
  add_dims_argument(s_.traits.numbers, f_, args);
  b_.CreateCall(parts_.tiles[rows == p_.tile_rows ? 0 : 1], args);
}

void DriverWriter::segments(const Task& task) {
  Value* tile_panels = flow_.number(p_.task_panels() * p_.tile_elements());
  const bool computed = p_.rows == MatmulPlan::Rows::kComputed;
  if (computed) {
    each_tile(task, [&](int rows, Value* tile) { rows_of(task, rows, tile, first_row(tile)); });
  }
  flow_.loop(flow_.index(0), flow_.index(p_.segments), 1, true, [&](Value* segment) {
    Value* b = flow_.at(task.b, b_.CreateMul(segment, task.segment));
    each_tile(task, [&](int rows, Value* tile) {
      Value* row = first_row(tile);
      const int64_t apart = p_.a_placed() ? p_.row_room() : c_.a.row_stride;
      Value* a = computed ? task_rows(task, tile) : flow_.at(task.a, scaled(row, apart));
      a = flow_.at(a, scaled(segment, kMatmulSegment));
      if (p_.rows == MatmulPlan::Rows::kSegmentCopied) {
        emit_segment_copy(s_, b_, rows, a, scratch_);
        a = scratch_;
      }
      Value* totals = flow_.at(totals_, b_.CreateMul(b_.CreateSub(tile, task.tile), tile_panels));
      call_tile(task, rows, row, a, b, {segment, totals, task.segment});
    });
  });
}

}  // namespace

void emit_matmul_driver(const MatmulSource& source, llvm::Module& module, const std::string& symbol,
                        const MatmulParts& parts, bool backwards) {
  DriverWriter(source, new_step(module, symbol), parts, backwards).run();
}

}  // namespace pyc::cpu
