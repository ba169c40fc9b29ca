#include "backends/cpu/llvm/tile.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

namespace pyc::cpu {

using llvm::Value;

namespace {

// What a tile takes of the registers that has B's vectors so many times.
int registers_of(const TileShape& s, int times) {
  return s.rows * s.columns() / 4 + s.rows + times * s.columns() / 4;
}

}  // namespace

TileCore::TileCore(llvm::IRBuilder<>& builder, const TileShape& shape,
                   std::function<void(Value* a, Value* turn)> before_steps)
    : b_(builder),
      flow_(builder),
      s_(shape),
      two_columns_(registers_of(shape, 2) <= 30),
      pipelined_(shape.a_by_lanes &&
                 (two_columns_ || (shape.rows > 2 && registers_of(shape, 1) <= 31))),
      before_steps_(std::move(before_steps)) {}

llvm::Type* TileCore::element_type() {
  return s_.unit == ByteUnit::kNone ? b_.getFloatTy() : b_.getInt32Ty();
}

llvm::Type* TileCore::vector_type() {
  return llvm::FixedVectorType::get(element_type(), static_cast<unsigned>(s_.lanes));
}

Value* TileCore::load_vector(Value* pointer, int64_t element) {
  return b_.CreateAlignedLoad(vector_type(), flow_.at(pointer, element), llvm::Align(4));
}

Value* TileCore::load_a(Value* a, int row) {
  auto* type = llvm::FixedVectorType::get(element_type(), static_cast<unsigned>(s_.unroll));
  auto* load = b_.CreateAlignedLoad(type, flow_.at(a, row * s_.a_row_stride), llvm::Align(4));
  // Or LLVM would load two rows at once, away from where the order below has them.
  load->setVolatile(pipelined_ && packed_rows());
  return load;
}

int64_t TileCore::columns_at(int64_t step, int vector) const {
  const int together = s_.vectors / s_.b_streams;
  return step * s_.b_k_stride + vector / together * s_.b_stream_stride +
         vector % together * s_.lanes;
}

Value* TileCore::load_columns(Value* b, int64_t step, int vector) {
  return load_vector(b, columns_at(step, vector));
}

void TileCore::fetch_columns(Value* b, int64_t step, int vector) {
  constexpr uint32_t kRead = 0;
  constexpr uint32_t kNear = 3;
  constexpr uint32_t kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {flow_.at(b, columns_at(step, vector)), b_.getInt32(kRead), b_.getInt32(kNear),
                      b_.getInt32(kData)});
}

void TileCore::store_vector(Value* v, Value* pointer, int64_t element) {
  b_.CreateAlignedStore(v, flow_.at(pointer, element), llvm::Align(4));
}

Value* TileCore::call(unsigned intrinsic, std::initializer_list<llvm::Type*> types,
                      std::initializer_list<Value*> args) {
  return b_.CreateIntrinsic(static_cast<llvm::Intrinsic::ID>(intrinsic), types, args);
}

Value* TileCore::fma(Value* a, Value* b, Value* c) {
  namespace intrinsic = llvm::Intrinsic;
  constexpr int kZmmLanes = 16;
  const auto as = [&](Value* v, unsigned bits) {
    const auto count = static_cast<unsigned>(s_.lanes) * 32 / bits;
    return b_.CreateBitCast(v, llvm::FixedVectorType::get(b_.getIntNTy(bits), count));
  };
  switch (s_.unit) {
    case ByteUnit::kDot: {
      Value* x = as(a, 8);
      const auto id = s_.a_unsigned ? intrinsic::aarch64_neon_udot : intrinsic::aarch64_neon_sdot;
      return call(id, {c->getType(), x->getType()}, {c, x, as(b, 8)});
    }
    case ByteUnit::kVnni:
      if (s_.swapped) std::swap(a, b);
      return call(s_.lanes == kZmmLanes ? intrinsic::x86_avx512_vpdpbusd_512
                                        : intrinsic::x86_avx512_vpdpbusd_256,
                  {}, {c, a, b});
    case ByteUnit::kWords: {
      const auto id =
          s_.lanes == kZmmLanes ? intrinsic::x86_avx512_pmaddw_d_512 : intrinsic::x86_avx2_pmadd_wd;
      return b_.CreateAdd(c, call(id, {}, {as(a, 16), as(b, 16)}));
    }
    default:
      if (s_.from_product && c == zero()) return b_.CreateFMul(a, b);
      return b_.CreateIntrinsic(intrinsic::fma, {c->getType()}, {a, b, c});
  }
}

// An accumulator has two rows of two columns. Each step takes 8 k: A's rows and B's columns lie in
// twos, 16 bytes each.
TileCore::State TileCore::chain_in_twos(Value* a, Value* b, const TileSteps& steps) {
  namespace intrinsic = llvm::Intrinsic;
  constexpr int kTwo = 4;  // elements of two rows or columns
  const int rows = (s_.rows + 1) / 2;
  const int columns = s_.columns() / 2;
  auto* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), 16);
  const auto id = s_.a_unsigned && s_.b_unsigned   ? intrinsic::aarch64_neon_ummla
                  : s_.a_unsigned == s_.b_unsigned ? intrinsic::aarch64_neon_smmla
                                                   : intrinsic::aarch64_neon_usmmla;
  const auto load = [&](Value* p, int i) {
    return b_.CreateAlignedLoad(bytes, flow_.at(p, i * kTwo), llvm::Align(4));
  };
  State state(static_cast<size_t>(rows * columns), zero());
  state.push_back(a);
  state.push_back(b);
  state = flow_.loop(flow_.index(0), steps.whole, 1, steps.fewest > 0, state,
                     [&](Value*, const State& now) {
                       State next = now;
                       std::vector<Value*> x;
                       for (int i = 0; i < rows; ++i) x.push_back(load(now.end()[-2], i));
                       for (int j = 0; j < columns; ++j) {
                         Value* y = load(now.back(), j);
                         for (int i = 0; i < rows; ++i) {
                           Value*& sum = next[accumulator_at(i, columns, j)];
                           Value* first = s_.swapped ? y : x[static_cast<size_t>(i)];
                           Value* second = s_.swapped ? x[static_cast<size_t>(i)] : y;
                           sum = call(id, {sum->getType(), bytes}, {sum, first, second});
                         }
                       }
                       next.end()[-2] = flow_.at(now.end()[-2], s_.a_step);
                       next.back() = flow_.at(now.back(), s_.unroll * s_.b_k_stride);
                       return next;
                     });
  State out;
  for (int i = 0; i < s_.rows; ++i) {
    // Which lanes of two accumulators side by side are the row.
    const int first = s_.swapped ? i % 2 : i % 2 * 2;
    const std::vector<int> lanes = s_.swapped
                                       ? std::vector<int>{first, first + 2, first + 4, first + 6}
                                       : std::vector<int>{first, first + 1, first + 4, first + 5};
    for (int v = 0; v < s_.vectors; ++v) {
      const auto at = accumulator_at(i / 2, columns, v * 2);
      out.push_back(b_.CreateShuffleVector(state[at], state[at + 1], lanes));
    }
  }
  return out;
}

TileCore::State TileCore::chain(Value* a, Value* b, const TileSteps& steps, const State& start) {
  if (s_.unit == ByteUnit::kMmla) return chain_in_twos(a, b, steps);
  State state(static_cast<size_t>(s_.rows * s_.vectors), zero());
  for (size_t i = 0; i < state.size() && !start.empty(); ++i) state[i] = start[i % start.size()];
  state.push_back(a);
  state.push_back(b);
  if (pipelined_ && steps.fewest > 0) {
    state = k_loop_ahead(steps, state);
  } else if (pipelined_ && steps.most > 0) {
    Value* any = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, steps.whole, flow_.index(1));
    state = flow_.loop(flow_.index(0), any, 1, false, state,
                       [&](Value*, const State& now) { return k_loop_ahead(steps, now); });
  } else if (steps.most > 0) {
    state = flow_.loop(flow_.index(0), steps.whole, 1, steps.fewest > 0, state,
                       [&](Value* i, const State& now) { return k_steps(now, i); });
  }
  if (steps.fixed_rest > 0 && s_.a_by_lanes) {
    state = rest_steps(std::move(state), steps.fixed_rest, steps.fewest > 0);
  } else if (steps.rest != nullptr) {
    state = flow_.loop(flow_.index(0), steps.rest, 1, steps.always_rest, state,
                       [&](Value*, const State& now) {
                         State next = now;
                         k_step(now.end()[-2], now.back(), next);
                         next.end()[-2] = flow_.at(now.end()[-2], 1);
                         next.back() = flow_.at(now.back(), s_.b_k_stride);
                         return next;
                       });
  }
  state.resize(state.size() - 2);
  return state;
}

TileCore::State TileCore::rest_steps(State state, int rest, bool begun) {
  Value* a = state.end()[-2];
  Value* b = state.back();
  // In place nothing beyond the row is read: what was read before is again, or two at a time.
  const bool again = !s_.a_padded && begun;
  const int together = s_.a_padded || begun ? s_.unroll : 2;
  const int first = again ? s_.unroll - rest : 0;
  auto* type = llvm::FixedVectorType::get(element_type(), static_cast<unsigned>(together));
  std::vector<Value*> rows;
  for (int i = 0; i < s_.rows && rest > 1; ++i) {
    Value* at = flow_.at(a, i * s_.a_row_stride - first);
    rows.push_back(b_.CreateAlignedLoad(type, at, llvm::Align(4)));
  }
  for (int k = 0; k < rest; ++k) {
    if (rest == 1 || first + k >= together) {
      k_step(flow_.at(a, k), flow_.at(b, k * s_.b_k_stride), state);
      continue;
    }
    const std::vector<int> lane(static_cast<size_t>(s_.lanes), first + k);
    std::vector<Value*> columns;
    for (int v = 0; v < s_.vectors; ++v) {
      columns.push_back(load_columns(b, k, v));
    }
    for (int i = 0; i < s_.rows; ++i) {
      Value* x = b_.CreateShuffleVector(rows[static_cast<size_t>(i)], lane);
      for (int v = 0; v < s_.vectors; ++v) {
        Value*& sum = state[accumulator_at(i, s_.vectors, v)];
        sum = fma(x, columns[static_cast<size_t>(v)], sum);
      }
    }
  }
  return state;
}

TileCore::State TileCore::k_loop_ahead(const TileSteps& steps, State state) {
  Value* b = state.back();
  state.pop_back();
  Value* a = state.back();
  state.pop_back();
  for (int i = 0; i < s_.rows; ++i) state.push_back(load_a(a, i));
  for (int v = 0; v < s_.vectors; ++v) state.push_back(load_columns(b, 0, v));
  // An integer, so that LLVM's strength reduction leaves the rows' offsets in the instructions; a
  // pointer of its own for some rows cost 5 %.
  state.push_back(b_.CreatePtrToInt(a, b_.getInt64Ty()));
  state.push_back(b);
  if (steps.fewest == 2 && steps.most == 2) {
    state = k_steps_ahead(state, flow_.index(0));
  } else if (steps.most > 1) {
    Value* ahead = b_.CreateSub(steps.whole, flow_.index(1));
    state = flow_.loop(flow_.index(0), ahead, 1, steps.fewest > 1, state,
                       [&](Value* i, const State& now) { return k_steps_ahead(now, i); });
  }
  state = k_steps_ahead(state, nullptr);
  state.erase(state.begin() + s_.rows * s_.vectors, state.end() - 2);
  state.end()[-2] = b_.CreateIntToPtr(state.end()[-2], b_.getPtrTy());
  return state;
}

// The order of loads between the fmas is the one that measured best (98 % of peak in the
// first-level cache; all loads first: 88 %).
TileCore::State TileCore::k_steps_ahead(State state, Value* turn) {
  const bool load_next = turn != nullptr;
  const auto sums = state.begin();
  const auto rows = sums + s_.rows * s_.vectors;
  const auto columns = rows + s_.rows;
  if (before_steps_ && load_next) {
    before_steps_(b_.CreateIntToPtr(state.end()[-2], b_.getPtrTy()), turn);
  }
  Value* next_a = b_.CreateAdd(state.end()[-2], flow_.index(s_.a_step * 4));
  // Where A and B go on by the same step, LLVM would keep one register for both, and every address
  // would wait for an addition.
  if (load_next && packed_rows()) next_a = flow_.unknown(next_a);
  Value* a = b_.CreateIntToPtr(next_a, b_.getPtrTy());
  Value* b = state.back();
  for (int k = 0; k < s_.unroll; ++k) {
    const bool load_b = load_next || k + 1 < s_.unroll;
    const bool load_rows = load_next && k + 1 == s_.unroll;
    const std::vector<int> lane(static_cast<size_t>(s_.lanes), k);
    // Column by column, a vector of B is done with before the next is loaded in its place.
    for (int v = 0; !two_columns_ && v < s_.vectors; ++v) {
      for (int i = 0; i < s_.rows; ++i) {
        Value* x = b_.CreateShuffleVector(rows[i], lane);
        sums[i * s_.vectors + v] = fma(x, columns[v], sums[i * s_.vectors + v]);
        if (load_rows && v + 1 == s_.vectors) rows[i] = load_a(a, i);
      }
      if (load_b) columns[v] = load_vector(b, (k + 1) * s_.b_k_stride + v * s_.lanes);
    }
    if (!two_columns_) continue;
    const State now(columns, columns + s_.vectors);
    for (int i = 0; i < s_.rows; ++i) {
      for (int j = 0; load_b && i < std::min(s_.rows, s_.vectors) && j < s_.vectors; ++j) {
        if (j * std::min(s_.rows, s_.vectors) / s_.vectors != i) continue;
        columns[j] = load_columns(b, k + 1, j);
      }
      Value* x = b_.CreateShuffleVector(rows[i], lane);
      for (int v = 0; v < s_.vectors; ++v) {
        sums[i * s_.vectors + v] = fma(x, now[static_cast<size_t>(v)], sums[i * s_.vectors + v]);
      }
      if (load_rows) rows[i] = load_a(a, i);
    }
  }
  state.end()[-2] = next_a;
  state.back() = flow_.at(b, s_.unroll * s_.b_k_stride);
  return state;
}

TileCore::State TileCore::k_steps(State state, Value* turn) {
  Value* a = state.end()[-2];
  Value* b = state.back();
  if (before_steps_) before_steps_(a, turn);
  std::vector<Value*> rows;
  for (int i = 0; s_.a_by_lanes && i < s_.rows; ++i) rows.push_back(load_a(a, i));
  for (int k = 0; k < s_.unroll; ++k) {
    if (!s_.a_by_lanes) {
      k_step(flow_.at(a, k), flow_.at(b, k * s_.b_k_stride), state);
      continue;
    }
    std::vector<Value*> columns;
    for (int v = 0; v < s_.vectors; ++v) {
      columns.push_back(load_columns(b, k, v));
    }
    const std::vector<int> lane(static_cast<size_t>(s_.lanes), k);
    for (int i = 0; i < s_.rows; ++i) {
      Value* x = b_.CreateShuffleVector(rows[static_cast<size_t>(i)], lane);
      for (int v = 0; v < s_.vectors; ++v) {
        Value*& sum = state[accumulator_at(i, s_.vectors, v)];
        sum = fma(x, columns[static_cast<size_t>(v)], sum);
      }
    }
  }
  state.end()[-2] = flow_.at(a, s_.a_step);
  state.back() = flow_.at(b, s_.unroll * s_.b_k_stride);
  return state;
}

// What is fetched is spread among the rows: at once, the requests would fill the cache's queue and
// the loads behind them wait.
void TileCore::k_step(Value* a, Value* b, State& acc) {
  std::vector<Value*> columns;
  for (int v = 0; v < s_.vectors; ++v) columns.push_back(load_columns(b, 0, v));
  for (int i = 0; i < s_.rows; ++i) {
    Value* x =
        b_.CreateAlignedLoad(element_type(), flow_.at(a, i * s_.a_row_stride), llvm::Align(4));
    x = b_.CreateVectorSplat(static_cast<unsigned>(s_.lanes), x);
    for (int v = 0; v < s_.vectors; ++v) {
      Value*& sum = acc[accumulator_at(i, s_.vectors, v)];
      sum = fma(x, columns[static_cast<size_t>(v)], sum);
    }
    for (int v = 0; s_.b_ahead > 0 && v < s_.vectors; ++v) {
      const bool begins_line = v * s_.lanes % kLineElements == 0;
      if (begins_line && v * s_.rows / s_.vectors == i) fetch_columns(b, s_.b_ahead, v);
    }
  }
}

}  // namespace pyc::cpu
