// The tile functions: registers over a segment, totals between segments, the epilogue at the end.

#include <algorithm>

#include "backends/cpu/llvm/matmul_emit.h"
#include "backends/cpu/llvm/tile.h"
#include "backends/cpu/llvm/tile_amx.h"
#include "loop/function.h"
#include "loop/walk.h"

namespace pyc::cpu {
namespace {

using llvm::Value;
using loop::ExprId;
using loop::kNone;

// An epilogue with more operations than this is a loop over the finished tile, not written out for
// each of its vectors.
constexpr int kInlineEpilogue = 12;
// Of bytes on x86, where results take a quarter of the stores.
constexpr int kInlineByteEpilogue = 20;

constexpr uint32_t kFetchLevel = 1;  // llvm.prefetch's locality: a little faster than 2 on x86
constexpr uint32_t kFetchNear = 3;   // of the first-level cache
// Tiles of fewer rows wait for B itself.
constexpr int kFewestRowsAhead = 4;

// Operations that the stores evaluate per element, index arithmetic left out.
int epilogue_cost(const loop::Kernel& kernel) {
  int count = 0;
  loop::Walk walk(kernel.pool);
  for (const loop::Store& s : kernel.stores) {
    walk(s.value, [&](ExprId, const loop::ExprNode& n) {
      if (n.op == loop::Op::kConst || n.op == loop::Op::kVar) return false;
      count += loop::operations_of(kernel.pool, n);
      return n.op != loop::Op::kLoad;
    });
  }
  return count;
}

// A place that the epilogue reads.
struct Place {
  uint32_t buffer;
  ExprId offset;
};

// Those that are an element's own, as what a product is added to has.
std::vector<Place> own_places(const lower::Contraction& c) {
  std::vector<Place> places;
  if (c.m_var == kNone) return places;
  const loop::Pool& pool = c.kernel->pool;
  loop::Walk walk(pool);
  for (const loop::Store& s : c.kernel->stores) {
    walk(s.value, [&](ExprId, const loop::ExprNode& n) {
      if (n.op != loop::Op::kLoad) return true;
      const bool own = n.b == kNone && loop::depends_on(pool, n.a, c.m_var) &&
                       loop::depends_on(pool, n.a, c.n_var);
      if (own) places.push_back({static_cast<uint32_t>(n.imm), n.a});
      return false;
    });
  }
  return places;
}

class TileWriter {
 public:
  TileWriter(const MatmulSource& source, llvm::Function* function, int rows)
      : s_(source),
        p_(source.plan),
        c_(source.contraction()),
        rows_(rows),
        vectors_(p_.tile_columns / p_.lanes),
        b_(function->getContext()),
        flow_(b_, source.traits.numbers),
        core_(b_, shape_of(source, rows),
              [this](Value* a, Value* turn) { fetch_ahead(a, b_.CreateAdd(chain_begin_, turn)); }),
        ex_(source.kernel(), source.traits, b_, function),
        f_(function) {}

  void run();

 private:
  using State = FlowBuilder::State;

  Value* arg(unsigned i) { return f_->getArg(i); }
  Value* a_rows() { return arg(1); }
  Value* b_panels() { return arg(2); }
  Value* row() { return arg(3); }
  Value* column_begin() { return arg(4); }
  Value* column_end() { return arg(5); }
  // Parameters by segment.
  Value* more(size_t i) { return arg(static_cast<unsigned>(6 + c_.batch_vars.size() + i)); }
  Value* segment_number() { return more(0); }
  Value* task_totals() { return more(1); }
  Value* next_segment() { return more(2); }
  llvm::Type* vector_type() { return core_.vector_type(); }
  Value* zero() { return core_.zero(); }
  Value* load_vector(Value* p, int64_t element) { return core_.load_vector(p, element); }
  void store_vector(Value* v, Value* p, int64_t element) { core_.store_vector(v, p, element); }
  static TileShape shape_of(const MatmulSource& s, int rows) {
    const MatmulPlan& p = s.plan;
    return {.rows = rows,
            .vectors = p.tile_columns / p.lanes,
            .lanes = p.lanes,
            .unroll = p.unroll,
            .a_by_lanes = p.a_by_lanes,
            .a_row_stride = s.a_row_stride(rows),
            .a_step = s.a_step(rows),
            .b_k_stride = p.b_k_stride,
            .b_streams = p.b_streams,
            .b_stream_stride = p.k * p.b_k_stride,
            .b_ahead = rows >= kFewestRowsAhead ? p.b_ahead : 0,
            .a_padded = p.a_packed(),
            .from_product = s.traits.aarch64,
            .unit = p.unit,
            .a_unsigned = p.a_form.is_unsigned,
            .b_unsigned = p.b_form.is_unsigned,
            .swapped = p.swapped};
  }

  void panel(Value* column, Value* b);
  // Fetches what the epilogue of a panel will read while its products are summed: rows lie too far
  // apart for the machine to see it coming. What it writes was tried too and gains nothing more.
  void fetch_epilogue(Value* column);
  // Adds segment `number` to the totals and, after the last one, is done with the tile.
  void add_segment(Value* number, Value* column, Value* a, Value* b);
  // The tile's accumulators after one segment, row by row.
  State segment(Value* a, Value* b, Value* steps, const State& begin = {});
  // Each vector of a tile, and the element of the totals that it begins at.
  void each_vector(const State& acc, const std::function<void(Value* x, int64_t element)>& put);

  // Where in the block of B to come this tile fetches: the task's tiles share it out.
  void plan_fetches();
  // `steps`: of `unroll` k each, those that B's panels have had before.
  void fetch_ahead(Value* a, Value* steps);
  Value* steps_until(Value* b);
  // The next tile's rows, which lie behind this one's: as much a step of k as is used of these, or
  // spread over the steps of all panels.
  void fetch_rows_beside(Value* a);
  void fetch_rows(Value* steps);
  void fetch_block(Value* steps);
  void fetch(Value* at, uint32_t locality);

  // Of bytes: what the sums of a row begin with, so that A's zero point is taken from all rows'
  // columns at once; empty where rows have zero points of their own, or tiles have no such vectors.
  State begin_of_sums(Value* column);
  // The sum of the products without the zero points. `width` columns from `j` of the
  // panel on, of row i of the tile; row and columns are bound. `columns` is what these alone take
  // from it, null for 0.
  Value* corrected(Value* sum, Value* i, Value* columns, int width);
  Value* column_terms(Value* j, int width);
  bool has_zero_by_row() const {
    return c_.a.zero != kNone && c_.m_var != kNone &&
           loop::depends_on(s_.kernel().pool, c_.a.zero, c_.m_var);
  }
  // An operand's zero point as its packed bytes have it, as i32; null for 0.
  Value* zero_point(const lower::Contraction::Operand& o, const MatmulPlan::Bytes& form, int width);

  void finish(const State& totals, Value* column);
  void store_registers(const State& totals, Value* column);
  void store_tile(Value* column, int columns);
  // The same column by column, so that what all rows have in common is made once.
  void store_by_columns(Value* column, int columns);
  // The same for as many columns as there are left.
  void store_rest(Value* column, Value* columns);
  // Columns that fill no vector, in powers of two.
  void narrower(int from, int to, const std::function<void(int from, int width)>& part);
  // What is done for each row of the tile, whose totals are given.
  void each_row(const std::function<void(Value* i, Value* totals)>& body);
  // Stores `width` columns at a time.
  void store_columns(Value* i, Value* totals, Value* column, Value* from, Value* to, int width,
                     bool nonempty);
  void evaluate_stores();

  const MatmulSource& s_;
  const MatmulPlan& p_;
  const lower::Contraction& c_;
  const int rows_;
  const int vectors_;
  llvm::IRBuilder<> b_;
  FlowBuilder flow_;
  TileCore core_;
  ExprEmitter ex_;
  llvm::Function* f_;
  Value* tile_ = nullptr;   // rows × tile_columns totals, on the stack or the caller's
  Value* panel_ = nullptr;  // of B, that is used
  bool begun_ = false;      // sums began without A's zero point
  // Where this tile's share of the block of B to come begins, the elements of a stream of it, and
  // how many lines are fetched per `unroll` steps of k: one of each stream.
  Value* fetched_ = nullptr;
  Value* chain_begin_ = nullptr;  // the steps before the chain that is written
  Value* fetch_stream_ = nullptr;
  int64_t fetch_lines_ = 0;
};

void TileWriter::run() {
  ex_.here();
  for (uint32_t i = 0; i < s_.kernel().buffers.size(); ++i) {
    Value* slot = b_.CreateConstGEP1_64(b_.getPtrTy(), arg(0), i);
    ex_.set_buffer(i, b_.CreateAlignedLoad(b_.getPtrTy(), slot, llvm::Align(8)));
  }
  for (size_t i = 0; i < c_.batch_vars.size(); ++i) {
    ex_.bind(c_.batch_vars[i], arg(static_cast<unsigned>(6 + i)));
  }
  Value* totals = p_.by_segment
                      ? task_totals()
                      : ex_.stack_slot(b_.getFloatTy(), p_.packed_rows(rows_) * p_.tile_columns);
  ex_.here();
  // Leaves the entry block to the emitter.
  llvm::BasicBlock* body = ex_.new_block("body");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  plan_fetches();
  flow_.loop(column_begin(), column_end(), p_.tile_columns, true, {b_panels(), totals},
             [&](Value* column, const State& at) {
               panel_ = at[0];
               tile_ = at[1];
               Value* next = flow_.at(at[0], p_.b_panel_stride);
               if (!p_.by_segment) {
                 panel(column, at[0]);
                 return State{next, at[1]};
               }
               add_segment(segment_number(), column, a_rows(), at[0]);
               return State{next, flow_.at(at[1], p_.tile_elements())};
             });
  b_.CreateRetVoid();
}

void TileWriter::plan_fetches() {
  if (!p_.fetch_b) return;
  const int64_t lines = p_.unroll * p_.b_k_stride / kLineElements;
  const int64_t tiles = p_.row_tiles / p_.m_blocks;
  fetch_lines_ = (lines + tiles - 1) / tiles;
  // The panels to come lie behind those of this task, or are those of the next segment. Each tile
  // fetches a share that lies together, in as many streams as there are lines to fetch at a time,
  // each line after line as the machine itself looks ahead.
  Value* columns = b_.CreateSub(column_end(), column_begin());
  Value* block = b_.CreateMul(columns, flow_.index(p_.b_panel_stride / p_.tile_columns));
  Value* tile = b_.CreateURem(b_.CreateUDiv(row(), flow_.index(p_.tile_rows)), flow_.number(tiles));
  Value* parts = b_.CreateMul(flow_.number(tiles), flow_.index(fetch_lines_ * kLineElements));
  fetch_stream_ = b_.CreateMul(b_.CreateUDiv(block, parts), flow_.index(kLineElements));
  Value* from = b_.CreateMul(b_.CreateMul(fetch_stream_, flow_.index(fetch_lines_)), tile);
  // May lie beyond B, so that it must not be called in bounds.
  fetched_ = b_.CreateGEP(b_.getFloatTy(), b_panels(),
                          b_.CreateAdd(p_.by_segment ? next_segment() : block, from));
}

void TileWriter::fetch(Value* at, uint32_t locality) {
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {at, b_.getInt32(0), b_.getInt32(locality), b_.getInt32(1)});
}

Value* TileWriter::steps_until(Value* b) {
  Value* done = b_.CreatePtrDiff(b_.getFloatTy(), b, b_panels());
  return b_.CreateUDiv(done, flow_.index(p_.unroll * p_.b_k_stride));
}

void TileWriter::fetch_ahead(Value* a, Value* steps) {
  const bool beside = s_.traits.aarch64;
  if (p_.fetch_a && beside) fetch_rows_beside(a);
  if (p_.fetch_a && !beside) fetch_rows(steps);
  if (p_.fetch_b) fetch_block(steps);
}

void TileWriter::fetch_rows_beside(Value* a) {
  Value* done = b_.CreatePtrDiff(b_.getFloatTy(), a, a_rows());
  Value* at = b_.CreateMul(b_.CreateAdd(done, flow_.index(p_.k)), flow_.index(rows_));
  for (int64_t line = 0; line < rows_ * p_.unroll; line += kLineElements) {
    fetch(b_.CreateGEP(b_.getFloatTy(), a_rows(), b_.CreateAdd(at, flow_.index(line))), kFetchNear);
  }
}

void TileWriter::fetch_rows(Value* steps) {
  const int64_t elements = rows_ * p_.k;
  const int64_t all = std::max<int64_t>(1, p_.panels / p_.n_blocks * (p_.k / p_.unroll));
  const int64_t at_once = (elements / kLineElements + all - 1) / all;
  Value* at = b_.CreateMul(steps, flow_.index(at_once * kLineElements));
  for (int64_t i = 0; i < at_once; ++i) {
    Value* line = b_.CreateAdd(at, flow_.index(elements + i * kLineElements));
    fetch(b_.CreateGEP(b_.getFloatTy(), a_rows(), line), kFetchLevel);
  }
}

void TileWriter::fetch_block(Value* steps) {
  Value* at = b_.CreateMul(steps, flow_.index(kLineElements));
  // A stream that is done asks for what comes after it.
  at = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, fetch_stream_);
  for (int64_t i = 0; i < fetch_lines_; ++i) {
    fetch(b_.CreateGEP(b_.getFloatTy(), fetched_, at), kFetchLevel);
    at = b_.CreateAdd(at, fetch_stream_);
  }
}

void TileWriter::each_vector(const State& acc,
                             const std::function<void(Value* x, int64_t element)>& put) {
  for (int i = 0; i < rows_; ++i) {
    for (int v = 0; v < vectors_; ++v) {
      put(acc[accumulator_at(i, vectors_, v)], i * p_.tile_columns + v * p_.lanes);
    }
  }
}

void TileWriter::fetch_epilogue(Value* column) {
  const std::vector<Place> places = own_places(c_);
  for (int i = 0; !places.empty() && i < rows_; ++i) {
    ex_.scoped([&] {
      ex_.bind(c_.m_var, b_.CreateAdd(row(), flow_.index(i)));
      ex_.bind(c_.n_var, column);
      for (const Place& place : places) {
        Value* at = ex_.eval(place.offset);
        ex_.here();
        const DType dtype = s_.kernel().buffers[place.buffer].dtype;
        llvm::Type* type = ex_.ops().memory_type(dtype, 1);
        // On aarch64 further lines of a row gained nothing.
        const int end = s_.traits.aarch64 ? 1 : p_.tile_columns;
        const int64_t line_elements = MatmulPlan::kLine / dtype_size(dtype);
        for (int64_t j = 0; j < end; j += line_elements) {
          Value* line = b_.CreateAdd(at, flow_.index(j));
          b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                             {b_.CreateGEP(type, ex_.buffer(place.buffer), line), b_.getInt32(0),
                              b_.getInt32(kFetchNear), b_.getInt32(1)});
        }
      }
    });
  }
}

void TileWriter::panel(Value* column, Value* b) {
  fetch_epilogue(column);
  if (p_.unit == ByteUnit::kAmx) {
    emit_amx_tile(
        b_,
        {.row_tiles = p_.packed_rows(rows_) / kAmxRows,
         .column_tiles = p_.tile_columns / kAmxColumns,
         .a_step = 4 * s_.a_step(rows_),
         .b_stride = 4 * p_.b_k_stride,
         .a_unsigned = p_.a_form.is_unsigned,
         .b_unsigned = p_.b_form.is_unsigned,
         .before_step = [this](Value* at_a, Value* at_b) { fetch_ahead(at_a, steps_until(at_b)); }},
        a_rows(), b, p_.k / p_.unroll, tile_);
    return finish({}, column);
  }
  if (p_.segments == 1) {
    State done;
    const State begin = begin_of_sums(column);
    begun_ = !begin.empty();
    each_vector(segment(a_rows(), b, flow_.index(p_.k / p_.unroll), begin),
                [&](Value* acc, int64_t) {
                  done.push_back(p_.of_bytes() ? acc : b_.CreateFAdd(acc, zero()));
                });
    finish(done, column);
    return;
  }
  flow_.loop(flow_.index(0), flow_.index(p_.segments), 1, true, {a_rows(), b},
             [&](Value* number, const State& at) {
               add_segment(number, column, at[0], at[1]);
               const int64_t steps_per_segment = kMatmulSegment / p_.unroll;
               return State{flow_.at(at[0], steps_per_segment * s_.a_step(rows_)),
                            flow_.at(at[1], kMatmulSegment * p_.b_k_stride)};
             });
}

void TileWriter::add_segment(Value* number, Value* column, Value* a, Value* b) {
  const int64_t last_k = p_.k - (p_.segments - 1) * kMatmulSegment;
  Value* is_last = b_.CreateICmpEQ(number, flow_.index(p_.segments - 1));
  Value* steps = b_.CreateSelect(is_last, flow_.index(last_k / p_.unroll),
                                 flow_.index(kMatmulSegment / p_.unroll));
  const State acc = segment(a, b, steps);
  flow_.when(
      b_.CreateICmpEQ(number, flow_.index(0)),
      [&] {
        each_vector(acc,
                    [&](Value* x, int64_t e) { store_vector(b_.CreateFAdd(x, zero()), tile_, e); });
      },
      [&] {
        const auto join = [&](Value* x, int64_t e) {
          return b_.CreateFAdd(load_vector(tile_, e), x);
        };
        flow_.when(
            is_last,
            [&] {
              State done;
              each_vector(acc, [&](Value* x, int64_t e) { done.push_back(join(x, e)); });
              finish(done, column);
            },
            [&] {
              each_vector(acc, [&](Value* x, int64_t e) { store_vector(join(x, e), tile_, e); });
            });
      });
}

TileWriter::State TileWriter::segment(Value* a, Value* b, Value* steps, const State& begin) {
  const bool has_tail = p_.k % p_.unroll != 0;
  TileSteps s;
  s.whole = steps;
  chain_begin_ = steps_until(b);
  s.fewest = (p_.k - (p_.segments - 1) * kMatmulSegment) / p_.unroll;
  s.most = p_.segments > 1 ? kMatmulSegment / p_.unroll : s.fewest;
  if (!has_tail) return core_.chain(a, b, s, begin);
  // Only the last segment has a rest; its steps are fewer than a whole segment's.
  s.rest = flow_.index(p_.k % p_.unroll);
  s.always_rest = p_.segments == 1;
  if (s.always_rest && !p_.of_bytes()) s.fixed_rest = static_cast<int>(p_.k % p_.unroll);
  if (p_.segments > 1) {
    Value* whole = b_.CreateICmpEQ(steps, flow_.index(kMatmulSegment / p_.unroll));
    s.rest = b_.CreateSelect(whole, flow_.index(0), s.rest);
  }
  return core_.chain(a, b, s, begin);
}

Value* TileWriter::zero_point(const lower::Contraction::Operand& o, const MatmulPlan::Bytes& form,
                              int width) {
  if (o.zero == kNone && !form.turned) return nullptr;
  constexpr uint32_t kHalf = 128;
  Value* zero = ex_.ops().splat(b_.getInt32(0), width);
  if (o.zero != kNone) {
    const bool is_unsigned = s_.kernel().pool.dtype(o.zero) == DType::kU8;
    llvm::Type* wide = zero->getType();
    zero = ex_.eval_wide(o.zero);
    ex_.here();
    zero = is_unsigned ? b_.CreateZExt(zero, wide) : b_.CreateSExt(zero, wide);
  }
  if (!form.turned) return zero;
  auto* half = llvm::ConstantInt::get(zero->getType(), kHalf);
  return form.is_unsigned ? b_.CreateAdd(zero, half) : b_.CreateSub(zero, half);
}

TileWriter::State TileWriter::begin_of_sums(Value* column) {
  const bool in_lanes =
      p_.unit == ByteUnit::kVnni || p_.unit == ByteUnit::kDot || p_.unit == ByteUnit::kWords;
  if (!in_lanes || has_zero_by_row()) return {};
  State out;
  for (int v = 0; v < vectors_; ++v) {
    ex_.scoped([&] {
      ex_.bind_lanes(c_.n_var, column, v * p_.lanes, p_.lanes, p_.tile_columns);
      Value* terms = column_terms(flow_.index(v * p_.lanes), p_.lanes);
      if (terms != nullptr) out.push_back(b_.CreateNeg(terms));
    });
  }
  return out;
}

Value* TileWriter::column_terms(Value* j, int width) {
  if (!p_.of_bytes() || begun_) return nullptr;
  Value* za = zero_point(c_.a, p_.a_form, width);
  if (za == nullptr) return nullptr;
  Value* at = flow_.at(panel_, b_.CreateAdd(j, flow_.index(p_.k * p_.tile_columns)));
  return b_.CreateMul(za, b_.CreateAlignedLoad(za->getType(), at, llvm::Align(4)));
}

Value* TileWriter::corrected(Value* sum, Value* i, Value* columns, int width) {
  if (!p_.of_bytes()) return sum;
  Value* za = zero_point(c_.a, p_.a_form, width);
  Value* zb = zero_point(c_.b, p_.b_form, width);
  if (columns != nullptr) sum = b_.CreateSub(sum, columns);
  if (zb != nullptr) {
    Value* at = flow_.at(a_rows(), b_.CreateAdd(i, flow_.index(p_.k * p_.packed_rows(rows_))));
    Value* row = b_.CreateAlignedLoad(b_.getInt32Ty(), at, llvm::Align(4));
    if (width > 1) row = b_.CreateVectorSplat(static_cast<unsigned>(width), row);
    if (za != nullptr) {
      auto* terms = llvm::ConstantInt::get(row->getType(), static_cast<uint64_t>(c_.k));
      row = b_.CreateSub(row, b_.CreateMul(za, terms));
    }
    sum = b_.CreateSub(sum, b_.CreateMul(zb, row));
  }
  return sum;
}

void TileWriter::finish(const State& totals, Value* column) {
  // What AMX sums it leaves in memory.
  const bool in_memory = p_.unit == ByteUnit::kAmx;
  const bool more = p_.of_bytes() && !s_.traits.aarch64;
  const int most = more ? kInlineByteEpilogue : kInlineEpilogue;
  const bool inlined = !in_memory && epilogue_cost(s_.kernel()) <= most;
  const int rest = static_cast<int>(p_.n % p_.tile_columns);
  const auto keep = [&] {
    for (int i = 0; !in_memory && i < rows_; ++i) {
      for (int v = 0; v < vectors_; ++v) {
        store_vector(totals[accumulator_at(i, vectors_, v)], tile_,
                     i * p_.tile_columns + v * p_.lanes);
      }
    }
  };
  const auto whole = [&] {
    if (inlined) {
      store_registers(totals, column);
    } else if (in_memory) {
      store_by_columns(column, p_.tile_columns);
    } else {
      keep();
      store_tile(column, p_.tile_columns);
    }
  };
  const auto part = [&] {
    keep();
    in_memory ? store_by_columns(column, rest) : store_tile(column, rest);
  };
  if (flow_.any_size() && p_.weights != MatmulPlan::Weights::kPackedAhead) {
    Value* left = b_.CreateSub(flow_.number(p_.n), column);
    return flow_.when(b_.CreateICmpSGE(left, flow_.index(p_.tile_columns)), whole, [&] {
      keep();
      store_rest(column, left);
    });
  }
  if (rest == 0) return whole();
  if (p_.panels == 1) return part();
  flow_.when(b_.CreateICmpSLE(column, flow_.index(p_.n - p_.tile_columns)), whole, part);
}

void TileWriter::evaluate_stores() {
  for (const loop::Store& s : s_.kernel().stores) {
    Value* value = ex_.eval_wide(s.value);
    ex_.store(s.buffer, s.offset, value);
  }
  ex_.here();
}

void TileWriter::store_registers(const State& totals, Value* column) {
  for (int v = 0; v < vectors_; ++v) {
    ex_.scoped([&] {
      ex_.bind_lanes(c_.n_var, column, v * p_.lanes, p_.lanes, p_.tile_columns);
      for (int i = 0; i < rows_; ++i) {
        ex_.scoped([&] {
          if (c_.m_var != kNone) ex_.bind(c_.m_var, b_.CreateAdd(row(), flow_.index(i)));
          ex_.bind(c_.result,
                   corrected(totals[accumulator_at(i, vectors_, v)], flow_.index(i),
                             column_terms(flow_.index(v * p_.lanes), p_.lanes), p_.lanes));
          evaluate_stores();
        });
      }
    });
  }
}

// The tile in memory, row by row: vectors first, on aarch64 several as one value where there are
// (a chain of operations waits less that way), then the columns that fill none.
void TileWriter::store_tile(Value* column, int columns) {
  const int wide = columns / p_.lanes * p_.lanes;
  const int together = columns % 16 == 0 ? 16 : 8;
  const int several = s_.traits.aarch64 ? std::max(together, p_.lanes) : p_.lanes;
  const int widest = wide / several * several;
  each_row([&](Value* i, Value* totals) {
    const auto part = [&](int from, int to, int width) {
      if (from == to) return;
      store_columns(i, totals, column, flow_.index(from), flow_.index(to), width, true);
    };
    part(0, widest, several);
    part(widest, wide, p_.lanes);
    narrower(wide, columns, [&](int from, int width) { part(from, from + width, width); });
  });
}

void TileWriter::store_by_columns(Value* column, int columns) {
  const bool by_row = has_zero_by_row();
  const auto part = [&](int from, int width) {
    ex_.scoped([&] {
      ex_.bind_lanes(c_.n_var, column, from, width, p_.lanes);
      Value* terms = by_row ? nullptr : column_terms(flow_.index(from), width);
      each_row([&](Value* i, Value* totals) {
        llvm::Type* type = b_.getInt32Ty();
        if (width > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(width));
        Value* total = b_.CreateAlignedLoad(type, flow_.at(totals, from), llvm::Align(4));
        Value* own = by_row ? column_terms(flow_.index(from), width) : terms;
        ex_.bind(c_.result, corrected(total, i, own, width));
        evaluate_stores();
      });
    });
  };
  const int wide = columns / p_.lanes * p_.lanes;
  for (int from = 0; from < wide; from += p_.lanes) part(from, p_.lanes);
  narrower(wide, columns, part);
}

void TileWriter::narrower(int from, int to, const std::function<void(int from, int width)>& part) {
  for (int width = p_.lanes / 2; width > 0; width /= 2) {
    if (to - from < width) continue;
    part(from, width);
    from += width;
  }
}

void TileWriter::store_rest(Value* column, Value* columns) {
  Value* wide = b_.CreateAnd(columns, flow_.index(-p_.lanes));
  each_row([&](Value* i, Value* totals) {
    store_columns(i, totals, column, flow_.index(0), wide, p_.lanes, false);
    store_columns(i, totals, column, wide, columns, 1, false);
  });
}

void TileWriter::each_row(const std::function<void(Value* i, Value* totals)>& body) {
  flow_.loop(flow_.index(0), flow_.index(rows_), 1, true, [&](Value* i) {
    Value* totals = flow_.at(tile_, b_.CreateMul(i, flow_.index(p_.tile_columns)));
    ex_.scoped([&] {
      if (c_.m_var != kNone) ex_.bind(c_.m_var, b_.CreateAdd(row(), i));
      body(i, totals);
    });
  });
}

void TileWriter::store_columns(Value* i, Value* totals, Value* column, Value* from, Value* to,
                               int width, bool nonempty) {
  flow_.loop(from, to, width, nonempty, [&](Value* j) {
    Value* base = b_.CreateAdd(column, j);
    llvm::Type* type = core_.element_type();
    if (width > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(width));
    Value* total = b_.CreateAlignedLoad(type, flow_.at(totals, j), llvm::Align(4));
    ex_.scoped([&] {
      ex_.bind_lanes(c_.n_var, base, 0, width, std::min(width, p_.lanes));
      ex_.bind(c_.result, corrected(total, i, column_terms(j, width), width));
      evaluate_stores();
    });
  });
}

}  // namespace

llvm::Function* emit_matmul_tile(const MatmulSource& source, llvm::Module& module, int rows) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  std::vector<llvm::Type*> types(3, pointer);
  types.resize(6 + source.contraction().batch_vars.size(), i64);
  if (source.plan.by_segment) types.insert(types.end(), {i64, pointer, i64});
  add_dims_type(source.traits.numbers, context, types);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                   "tile_" + std::to_string(rows), module);
  f->addFnAttr(llvm::Attribute::NoInline);
  // This model's scheduler keeps the written order of loads and fmas, which measured best on a
  // Neoverse V1 too (97 % of peak against 88 % with its own).
  if (source.traits.aarch64) f->addFnAttr("tune-cpu", "neoverse-n1");
  f->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::BasicBlock::Create(context, "entry", f);
  TileWriter(source, f, rows).run();
  return f;
}

}  // namespace pyc::cpu
