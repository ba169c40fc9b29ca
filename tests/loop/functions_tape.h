#pragma once

// Evaluates one expression of a Pool over many inputs at once, for the tests of the elementary
// functions: the graph is flattened to a tape once, and every instruction runs over a batch.
// Independent of the interpreter and of every backend.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "loop/function.h"
#include "loop/loop.h"

namespace pyc::loop {

class Tape {
 public:
  static constexpr size_t kBatch = 256;

  // Of the types f32, f64, i32, i64, u32, u64 and bool; the inputs are the variables that are used.
  Tape(const Pool& with_calls, ExprId with_call, std::vector<VarId> inputs)
      : pool_(with_calls), whole_(inline_calls(pool_)), inputs_(std::move(inputs)) {
    const Pool& pool = pool_;
    const ExprId root = whole_[with_call];
    slots_.assign(pool.size(), kNoSlot);
    std::vector<ExprId> order;
    std::vector<uint8_t> seen(pool.size(), 0);
    visit(root, seen, order);
    std::vector<size_t> last(pool.size(), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      for (ExprId a : operands(order[i])) last[a] = i;
    }
    last[root] = order.size();
    std::vector<uint32_t> free;
    uint32_t count = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const ExprNode& n = pool.node(order[i]);
      const bool fixed = n.op == Op::kConst || n.op == Op::kVar;
      if (!fixed && !free.empty()) {
        slots_[order[i]] = free.back();
        free.pop_back();
      } else {
        slots_[order[i]] = count++;
      }
      // Constants and inputs keep their slots, and an operand's slot is free only afterwards: no
      // instruction overwrites what it reads.
      for (ExprId a : unique_operands(order[i])) {
        const Op op = pool.node(a).op;
        if (last[a] == i && op != Op::kConst && op != Op::kVar) free.push_back(slots_[a]);
      }
      if (n.op == Op::kConst) constants_.push_back(order[i]);
      if (!fixed) code_.push_back(order[i]);
    }
    memory_.resize((static_cast<size_t>(count) + 1) * kBatch);
    for (ExprId c : constants_) fill(c);
    root_ = root;
  }

  // Instructions that are not constants or inputs: the cost of one evaluation in operations.
  size_t op_count() const { return code_.size(); }

  // Evaluates kBatch elements: in[i] points at kBatch elements of the i-th input.
  void run(std::initializer_list<const void*> in, void* out) {
    size_t k = 0;
    for (const void* p : in) {
      const VarId v = inputs_[k++];
      for (ExprId id = 0; id < pool_.size(); ++id) {
        const ExprNode& n = pool_.node(id);
        if (n.op != Op::kVar || static_cast<VarId>(n.imm) != v || slots_[id] == kNoSlot) continue;
        std::memcpy(at<char>(id), p, kBatch * bytes(n.dtype));
        break;
      }
    }
    for (ExprId id : code_) execute(id);
    std::memcpy(out, at<char>(root_), kBatch * bytes(pool_.dtype(root_)));
  }

 private:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  static size_t bytes(DType t) { return static_cast<size_t>(dtype_size(t)); }

  std::vector<ExprId> operands(ExprId id) const {
    const ExprNode& n = pool_.node(id);
    std::vector<ExprId> result;
    for (ExprId a : {n.a, n.b, n.c}) {
      if (a != kNone) result.push_back(whole_[a]);
    }
    return result;
  }

  std::vector<ExprId> unique_operands(ExprId id) const {
    std::vector<ExprId> result = operands(id);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  void visit(ExprId id, std::vector<uint8_t>& seen, std::vector<ExprId>& order) const {
    if (seen[id] != 0) return;
    seen[id] = 1;
    for (ExprId a : operands(id)) visit(a, seen, order);
    order.push_back(id);
  }

  template <class T>
  T* at(ExprId id) {
    return reinterpret_cast<T*>(memory_.data() + static_cast<size_t>(slots_[whole_[id]]) * kBatch);
  }

  void fill(ExprId id) {
    const ExprNode& n = pool_.node(id);
    for (size_t i = 0; i < kBatch; ++i) {
      store_word(at<char>(id) + i * bytes(n.dtype), n.dtype, n.word);
    }
  }

  // Not inlined: the promise of __restrict holds for one instruction, not for the whole tape.
  template <class R, class A, class F>
  [[gnu::noinline]] static void apply(F f, R* __restrict r, const A* a) {
    for (size_t i = 0; i < kBatch; ++i) r[i] = f(a[i]);
  }
  template <class R, class A, class B, class F>
  [[gnu::noinline]] static void apply(F f, R* __restrict r, const A* a, const B* b) {
    for (size_t i = 0; i < kBatch; ++i) r[i] = f(a[i], b[i]);
  }
  template <class R, class A, class B, class F>
  [[gnu::noinline]] static void apply(F f, R* __restrict r, const A* a, const B* b, const B* c) {
    for (size_t i = 0; i < kBatch; ++i) r[i] = f(a[i], b[i], c[i]);
  }

  template <class R, class A, class F>
  void map(ExprId id, F f) {
    apply(f, at<R>(id), static_cast<const A*>(at<A>(pool_.node(id).a)));
  }

  template <class R, class A, class F>
  void map2(ExprId id, F f) {
    const ExprNode& n = pool_.node(id);
    const A* a = at<A>(n.a);
    const A* b = at<A>(n.b);
    apply(f, at<R>(id), a, b);
  }

  // A is the type of the first operand; the others are of the result's.
  template <class R, class A, class F>
  void map3(ExprId id, F f) {
    const ExprNode& n = pool_.node(id);
    const A* a = at<A>(n.a);
    const R* b = at<R>(n.b);
    const R* c = at<R>(n.c);
    apply(f, at<R>(id), a, b, c);
  }

  template <class F>
  void with_type(DType t, F f) {
    switch (t) {
      case DType::kF32:
        return f(float{});
      case DType::kF64:
        return f(double{});
      case DType::kI32:
        return f(int32_t{});
      case DType::kI64:
        return f(int64_t{});
      case DType::kU32:
        return f(uint32_t{});
      case DType::kU64:
        return f(uint64_t{});
      case DType::kBool:
        return f(uint8_t{});
      default:
        fail_check(__FILE__, __LINE__, "dtype", "a dtype the tape does not know");
    }
  }

  void execute(ExprId id) {
    const ExprNode& n = pool_.node(id);
    if (n.op == Op::kSelect) {
      with_type(n.dtype, [&](auto z) {
        using T = decltype(z);
        map3<T, uint8_t>(id, [](uint8_t c, T a, T b) { return c != 0 ? a : b; });
      });
    } else if (n.op == Op::kConvert) {
      with_type(n.dtype, [&](auto z) {
        with_type(pool_.dtype(n.a), [&](auto y) { convert_op<decltype(z), decltype(y)>(id); });
      });
    } else if (n.op == Op::kBitcast) {
      std::memcpy(at<char>(id), at<char>(n.a), kBatch * bytes(n.dtype));
    } else if (n.op == Op::kTable) {
      with_type(n.dtype, [&](auto z) { table_op<decltype(z)>(id); });
    } else {
      with_type(pool_.dtype(n.a), [&](auto z) { arithmetic<decltype(z)>(id); });
    }
  }

  template <class T>
  void table_op(ExprId id) {
    const ExprNode& n = pool_.node(id);
    const Table& table = pool_.tables()[static_cast<size_t>(n.imm)];
    const int64_t* index = at<int64_t>(n.a);
    for (size_t i = 0; i < kBatch; ++i) {
      const auto k = static_cast<size_t>(index[i]);
      if (k >= table.words.size()) fail_check(__FILE__, __LINE__, "index", "table index");
      store_word(at<T>(id) + i, n.dtype, table.words[k]);
    }
  }

  template <class R, class A>
  void convert_op(ExprId id) {
    map<R, A>(id, [](A x) -> R {
      if constexpr (std::is_floating_point_v<A> && std::is_integral_v<R>) {
        if (x != x) return 0;
        if (x <= static_cast<A>(std::numeric_limits<R>::min()))
          return std::numeric_limits<R>::min();
        if (x >= static_cast<A>(std::numeric_limits<R>::max()))
          return std::numeric_limits<R>::max();
      }
      return static_cast<R>(x);
    });
  }

  template <class T>
  static T minimum(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a + b;
      if (a == b) return std::signbit(a) ? a : b;
    }
    return a < b ? a : b;
  }

  template <class T>
  static T maximum(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a + b;
      if (a == b) return std::signbit(a) ? b : a;
    }
    return a < b ? b : a;
  }

  template <class T>
  void arithmetic(ExprId id) {
    switch (pool_.node(id).op) {
      case Op::kEq:
        return map2<uint8_t, T>(id, [](T a, T b) { return a == b; });
      case Op::kNe:
        return map2<uint8_t, T>(id, [](T a, T b) { return a != b; });
      case Op::kLt:
        return map2<uint8_t, T>(id, [](T a, T b) { return a < b; });
      case Op::kLe:
        return map2<uint8_t, T>(id, [](T a, T b) { return a <= b; });
      case Op::kMin:
        return map2<T, T>(id, minimum<T>);
      case Op::kMax:
        return map2<T, T>(id, maximum<T>);
      default:
        break;
    }
    if constexpr (std::is_floating_point_v<T>) {
      float_op<T>(id);
    } else {
      int_op<T>(id);
    }
  }

  template <class T>
  void float_op(ExprId id) {
    switch (pool_.node(id).op) {
      case Op::kAdd:
        return map2<T, T>(id, [](T a, T b) { return a + b; });
      case Op::kSub:
        return map2<T, T>(id, [](T a, T b) { return a - b; });
      case Op::kMul:
        return map2<T, T>(id, [](T a, T b) { return a * b; });
      case Op::kDiv:
        return map2<T, T>(id, [](T a, T b) { return a / b; });
      case Op::kNeg:
        return map<T, T>(id, [](T a) { return -a; });
      case Op::kAbs:
        return map<T, T>(id, [](T a) { return std::fabs(a); });
      case Op::kSqrt:
        return map<T, T>(id, [](T a) { return std::sqrt(a); });
      case Op::kFloor:
        return map<T, T>(id, [](T a) { return std::floor(a); });
      case Op::kCeil:
        return map<T, T>(id, [](T a) { return std::ceil(a); });
      case Op::kTrunc:
        return map<T, T>(id, [](T a) { return std::trunc(a); });
      case Op::kRoundEven:
        return map<T, T>(id, [](T a) { return std::nearbyint(a); });
      case Op::kFma:
        return map3<T, T>(id, [](T a, T b, T c) { return std::fma(a, b, c); });
      default:
        fail_check(__FILE__, __LINE__, "op", "an op the tape does not know");
    }
  }

  template <class T>
  void int_op(ExprId id) {
    using U = std::make_unsigned_t<T>;
    constexpr U width = sizeof(T) * 8;
    const auto wrap = [](U v) { return static_cast<T>(v); };
    switch (pool_.node(id).op) {
      case Op::kAdd:
        return map2<T, T>(id, [=](T a, T b) { return wrap(U(U(a) + U(b))); });
      case Op::kSub:
        return map2<T, T>(id, [=](T a, T b) { return wrap(U(U(a) - U(b))); });
      case Op::kMul:
        return map2<T, T>(id, [=](T a, T b) { return wrap(U(U(a) * U(b))); });
      case Op::kAnd:
        return map2<T, T>(id, [](T a, T b) { return T(a & b); });
      case Op::kOr:
        return map2<T, T>(id, [](T a, T b) { return T(a | b); });
      case Op::kXor:
        return map2<T, T>(id, [](T a, T b) { return T(a ^ b); });
      case Op::kNeg:
        return map<T, T>(id, [=](T a) { return wrap(U(U(0) - U(a))); });
      case Op::kNot: {
        if (pool_.dtype(id) == DType::kBool) return map<T, T>(id, [](T a) { return T(a ^ 1); });
        return map<T, T>(id, [](T a) { return T(~a); });
      }
      case Op::kShl:
        return map2<T, T>(id,
                          [=](T a, T b) { return U(b) < width ? wrap(U(U(a) << U(b))) : T(0); });
      case Op::kShr:
        return map2<T, T>(id, [=](T a, T b) {
          if (U(b) < width) return T(a >> U(b));
          return T(a < 0 ? -1 : 0);
        });
      default:
        fail_check(__FILE__, __LINE__, "op", "an op the tape does not know");
    }
  }

  Pool pool_;                  // with the calls written out
  std::vector<ExprId> whole_;  // per node: the one that computes it
  std::vector<VarId> inputs_;
  std::vector<uint32_t> slots_;
  std::vector<ExprId> constants_;
  std::vector<ExprId> code_;
  std::vector<uint64_t> memory_;
  ExprId root_ = kNone;
};

}  // namespace pyc::loop
