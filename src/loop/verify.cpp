#include "loop/verify.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "loop/apart.h"
#include "loop/in_place.h"
#include "loop/verify_value.h"

namespace pyc::loop {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel),
        pool_(kernel.pool),
        live_(pool_.var_count()),
        made_(pool_.var_count()),
        checked_(pool_.size()),
        reads_own_(pool_.size()) {}

  Status run() {
    Status status = verify();
    return std::move(status).with_context("loop kernel '" + kernel_.name + "'");
  }

 private:
  // A store to a written buffer, or a load of one.
  struct Placed : Place {
    std::string name;
  };

  Status verify() {
    PYC_TRY(verify_functions(pool_));
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (kernel_.buffers[i].elements < 0) {
        return refuse("buffer b" + std::to_string(i), "a negative number of elements");
      }
    }
    int64_t points = 1;
    for (VarId v : kernel_.parallel) {
      PYC_TRY(declare("parallel", v));
      const Var& info = pool_.var_info(v);
      if (info.dtype != DType::kI64 || info.extent < 0) {
        return refuse("parallel", "its variables are i64 with an extent");
      }
      if (__builtin_mul_overflow(points, info.extent, &points)) {
        return refuse("parallel", "more iterations than an i64 can count");
      }
    }
    dead_ = points == 0;
    scopes_.emplace_back();
    store_seen_.resize(kernel_.stores.size());
    loop_seen_.resize(kernel_.loops.size());
    check_seen_.resize(kernel_.checks.size());
    PYC_TRY(verify_body(kernel_.body));
    PYC_TRY(verify_disjoint());
    for (const auto& [buffer, stores] : placed_) {
      for (const Placed& store : stores) PYC_TRY(verify_iterations(store));
    }
    return verify_in_place();
  }

  // Written buffers that take the memory of read ones may do so, each of another one.
  Status verify_in_place() const {
    std::vector<bool> taken(kernel_.buffers.size());
    for (uint32_t w = 0; w < kernel_.buffers.size(); ++w) {
      const uint32_t r = kernel_.buffers[w].in_place_of;
      if (r == kNone) continue;
      const std::string where = "buffer b" + std::to_string(w);
      if (!may_be_in_place(kernel_, {r, w})) {
        return refuse(where, "cannot be proven to leave what is read of buffer b" +
                                 std::to_string(r) + " alone in its memory");
      }
      if (taken[r]) return refuse(where, "another one is in place of b" + std::to_string(r));
      taken[r] = true;
    }
    return {};
  }

  // Each variable is made once.
  Status declare(const std::string& where, VarId v) {
    if (v >= made_.size()) return refuse(where, "a variable that does not exist");
    if (made_[v]) return refuse(where, "its variable already belongs to another statement");
    made_[v] = true;
    live_[v] = true;
    return {};
  }

  static Status first_time(std::vector<bool>& seen, uint32_t index, const std::string& where) {
    if (index >= seen.size()) return refuse(where, "there is no such statement");
    if (seen[index]) return refuse(where, "the statement is in two places");
    seen[index] = true;
    return {};
  }

  Status verify_body(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      const std::string number = std::to_string(s.index);
      switch (s.kind) {
        case StmtKind::kStore:
          PYC_TRY(first_time(store_seen_, s.index, "store " + number));
          PYC_TRY(verify_store("store " + number, s.index));
          break;
        case StmtKind::kLoop:
          PYC_TRY(first_time(loop_seen_, s.index, "loop " + number));
          PYC_TRY(verify_loop("loop " + number, s.index));
          break;
        case StmtKind::kCheck: {
          const std::string where = "check " + number;
          PYC_TRY(first_time(check_seen_, s.index, where));
          const Check& c = kernel_.checks[s.index];
          PYC_TRY(verify_value(where, c.ok));
          if (pool_.dtype(c.ok) != DType::kBool) return refuse(where, "its condition is no bool");
          if (c.code == 0) return refuse(where, "its code is 0, which means no fault");
          break;
        }
      }
    }
    return {};
  }

  Status verify_store(const std::string& where, uint32_t index) {
    const Store& s = kernel_.stores[index];
    if (s.buffer >= kernel_.buffers.size()) return refuse(where, "a buffer that does not exist");
    const Buffer& b = kernel_.buffers[s.buffer];
    const std::string name = "b" + std::to_string(s.buffer);
    if (b.access == Access::kRead) return refuse(where, "buffer " + name + " is only read");
    PYC_TRY(verify_value(where, s.offset));
    PYC_TRY(verify_value(where, s.value));
    if (pool_.dtype(s.offset) != DType::kI64) return refuse(where, "its offset is no i64");
    if (pool_.dtype(s.value) != b.dtype) {
      return refuse(where, "a value of type " + name_of(pool_.dtype(s.value)) + " for buffer " +
                               name + " of type " + name_of(b.dtype));
    }
    PYC_TRY(verify_bounds(where, "buffer " + name, s.offset, b.elements));
    if (b.access == Access::kWrite && !dead_) {
      placed_[s.buffer].push_back({{s.offset, open_loops_}, where});
    }
    return {};
  }

  // That iterations of the loops around a store do not meet, except in ordered loops.
  Status verify_iterations(const Placed& store) const {
    std::vector<VarId> fixed = kernel_.parallel;
    for (uint32_t i : store.loops) {
      const Loop& l = kernel_.loops[i];
      const bool apart_or_in_order =
          l.ordered || l.extent <= 1 || apart(kernel_, store, store, {l.var}, fixed);
      fixed.push_back(l.var);
      if (apart_or_in_order) continue;
      return refuse(store.name, "iterations of loop " + std::to_string(i) +
                                    ", which is not ordered, may store to one element");
    }
    return {};
  }

  Status verify_bounds(const std::string& where, const std::string& what, ExprId offset,
                       int64_t elements) const {
    return dead_ ? Status{} : verify_offset(where, what, pool_.node(offset), elements);
  }

  Status verify_loop(const std::string& where, uint32_t index) {
    const Loop& l = kernel_.loops[index];
    PYC_TRY(verify_carried(where, l));
    PYC_TRY(declare(where, l.var));
    const Var& var = pool_.var_info(l.var);
    if (var.dtype != DType::kI64 || l.extent < 0 || var.extent != l.extent) {
      return refuse(where, "its variable is not an i64 of its extent");
    }
    if (l.chunk_var != kNone) PYC_TRY(verify_chunk(where, l));
    if (l.ordered && (l.vector || in_vector_loop())) {
      return refuse(where, "an ordered loop is not a vector loop and not inside of one");
    }
    if (!l.carries.empty() && (l.vector || l.chunk_var != kNone)) {
      return refuse(where, "a vector or chunked loop carries nothing");
    }
    for (const Reduction& r : l.reductions) {
      if (r.value == kNone || r.result >= pool_.var_count()) {
        return refuse(where, "a reduction without value or result");
      }
      if (made_[r.result] || pool_.var_info(r.result).extent != kResult) {
        return refuse(where, "the result of a reduction is a variable of its own");
      }
    }
    const bool dead_outside = dead_;
    dead_ = dead_ || l.extent == 0;
    // Whether a load of a written buffer is allowed depends on the loop.
    for (ExprId e : own_values_) checked_[e] = false;
    own_values_.clear();
    scopes_.emplace_back();
    open_loops_.push_back(index);
    for (const Carry& c : l.carries) PYC_TRY(declare(where, c.var));
    PYC_TRY(verify_body(l.body));
    for (size_t i = 0; i < l.reductions.size(); ++i) {
      PYC_TRY(verify_reduction(where + ", reduction " + std::to_string(i), l, l.reductions[i]));
    }
    for (const Carry& c : l.carries) PYC_TRY(verify_carried_value(where, c, c.next));
    open_loops_.pop_back();
    for (ExprId e : scopes_.back()) checked_[e] = false;
    scopes_.pop_back();
    for (VarId v : results_of(l.body)) live_[v] = false;
    live_[l.var] = false;
    for (const Carry& c : l.carries) live_[c.var] = false;
    dead_ = dead_outside;
    for (const Reduction& r : l.reductions) PYC_TRY(declare(where, r.result));
    for (const Carry& c : l.carries) PYC_TRY(declare(where, c.result));
    return {};
  }

  bool in_vector_loop() const {
    return std::any_of(open_loops_.begin(), open_loops_.end(),
                       [&](uint32_t i) { return kernel_.loops[i].vector; });
  }

  // The variables a loop carries, and what they start with.
  Status verify_carried(const std::string& where, const Loop& l) {
    for (const Carry& c : l.carries) {
      if (c.var >= pool_.var_count() || c.result >= pool_.var_count() || made_[c.result]) {
        return refuse(where, "a carried value has a variable and a result of its own");
      }
      const Var& var = pool_.var_info(c.var);
      const Var& result = pool_.var_info(c.result);
      const bool counts = var.extent > 0 && var.dtype == DType::kI64;
      if (var.dtype != result.dtype || var.extent != result.extent ||
          (var.extent != kResult && !counts)) {
        return refuse(where, "a carried variable and its result differ, or have a bad extent");
      }
      PYC_TRY(verify_carried_value(where, c, c.init));
    }
    return {};
  }

  Status verify_carried_value(const std::string& where, const Carry& c, ExprId e) {
    PYC_TRY(verify_value(where, e));
    const Var& var = pool_.var_info(c.var);
    const ExprNode& n = pool_.node(e);
    if (n.dtype != var.dtype) {
      return refuse(where, "a carried value of type " + name_of(n.dtype) + ", expected " +
                               name_of(var.dtype));
    }
    if (var.extent == kResult || dead_ || (n.lo >= 0 && n.hi < var.extent)) return {};
    return refuse(where, "a carried value in [" + std::to_string(n.lo) + ", " +
                             std::to_string(n.hi) + "], which is not below " +
                             std::to_string(var.extent));
  }

  std::vector<VarId> results_of(const std::vector<Stmt>& body) const {
    std::vector<VarId> results;
    for (const Stmt& s : body) {
      if (s.kind != StmtKind::kLoop) continue;
      for (const Reduction& r : kernel_.loops[s.index].reductions) results.push_back(r.result);
      for (const Carry& c : kernel_.loops[s.index].carries) results.push_back(c.result);
    }
    return results;
  }

  Status verify_chunk(const std::string& where, const Loop& l) const {
    const auto& parallel = kernel_.parallel;
    if (std::find(parallel.begin(), parallel.end(), l.chunk_var) == parallel.end()) {
      return refuse(where, "its chunks are not counted by a parallel variable");
    }
    if (l.chunk <= 0) return refuse(where, "its chunks are empty");
    int64_t covered = 0;
    const int64_t parts = pool_.var_info(l.chunk_var).extent;
    const bool all = __builtin_mul_overflow(parts, l.chunk, &covered) || covered >= l.extent;
    if (!all && !dead_) return refuse(where, "its chunks do not cover its extent");
    return {};
  }

  Status verify_reduction(const std::string& where, const Loop& l, const Reduction& r) {
    const DType t = pool_.var_info(r.result).dtype;
    for (ExprId e : {r.value, r.value2, r.guard}) {
      if (e == kNone) continue;
      PYC_TRY(verify_value(where, e));
      const DType expected = e == r.guard ? DType::kBool : t;
      if (pool_.dtype(e) != expected) {
        return refuse(where, "an operand of type " + name_of(pool_.dtype(e)) + ", expected " +
                                 name_of(expected));
      }
    }
    const bool sum_or_product = r.op == ReduceOp::kSum || r.op == ReduceOp::kProd;
    switch (r.kind) {
      case ReduceKind::kChain:
        if (l.vector) return refuse(where, "a chain in a vector loop");
        if (r.op != ReduceOp::kSum || !(is_real(t) || is_whole(t))) {
          return refuse(where, "a chain is a sum of f32, f64 or integers");
        }
        if (r.segment < 0) return refuse(where, "a negative segment");
        if (l.chunk_var != kNone && r.segment != 0 && l.chunk % r.segment != 0) {
          return refuse(where, "chunks that cut a segment");
        }
        return {};
      case ReduceKind::kTree:
        if (l.chunk_var != kNone) return refuse(where, "a tree in a chunked loop");
        if (!sum_or_product || !(is_real(t) || is_whole(t))) {
          return refuse(where, "a tree is a sum or product of f32, f64 or integers");
        }
        break;
      case ReduceKind::kExact: {
        const bool order = r.op == ReduceOp::kMax || r.op == ReduceOp::kMin;
        const bool fits = sum_or_product ? is_whole(t)
                          : order        ? is_real(t) || is_whole(t) || t == DType::kBool
                                         : is_whole(t) || t == DType::kBool;
        if (!fits) return refuse(where, "an exact reduction whose order could change the result");
        break;
      }
    }
    if (r.value2 != kNone || r.segment != 0) {
      return refuse(where, "only a chain has a second value or segments");
    }
    return {};
  }

  // The value and all it is made of, once as long as the scope is open.
  Status verify_value(const std::string& where, ExprId e) {
    if (e >= pool_.size()) return refuse(where, "a value that does not exist");
    if (checked_[e]) return {};
    const ExprNode& n = pool_.node(e);
    for (ExprId o : {n.a, n.b, n.c}) {
      if (o != kNone) PYC_TRY(verify_value(where, o));
    }
    PYC_TRY(verify_node(where, n));
    reads_own_[e] = is_own_load(n);
    for (ExprId o : {n.a, n.b, n.c}) reads_own_[e] = reads_own_[e] || (o != kNone && reads_own_[o]);
    if (reads_own_[e]) own_values_.push_back(e);
    checked_[e] = true;
    scopes_.back().push_back(e);
    return {};
  }

  bool is_own_load(const ExprNode& n) const {
    return n.op == Op::kLoad &&
           kernel_.buffers[static_cast<size_t>(n.imm)].access == Access::kWrite;
  }

  Status verify_node(const std::string& where, const ExprNode& n) {
    switch (n.op) {
      case Op::kVar:
        if (static_cast<size_t>(n.imm) < live_.size() && live_[static_cast<size_t>(n.imm)]) {
          return {};
        }
        return refuse(where, "a variable is used outside its scope");
      case Op::kLoad:
        return verify_load(where, n);
      case Op::kTable:
        if (dead_ && static_cast<size_t>(n.imm) < pool_.tables().size()) return {};
        break;
      default:
        break;
    }
    return verify_operation(where, pool_, n);
  }

  Status verify_load(const std::string& where, const ExprNode& n) {
    if (static_cast<size_t>(n.imm) >= kernel_.buffers.size()) {
      return refuse(where, "a load of a buffer that does not exist");
    }
    const Buffer& b = kernel_.buffers[static_cast<size_t>(n.imm)];
    const std::string name = "buffer b" + std::to_string(n.imm);
    if (b.access == Access::kWrite) {
      if (open_loops_.empty() || !kernel_.loops[open_loops_.back()].ordered) {
        return refuse(where, "a load of " + name + ", which is written, in no ordered loop");
      }
      if (!dead_) own_loads_[static_cast<uint32_t>(n.imm)].push_back({{n.a, open_loops_}, where});
    }
    if (b.dtype != n.dtype || pool_.dtype(n.a) != DType::kI64) {
      return refuse(where, "a load of type " + name_of(n.dtype) + " from " + name + " of type " +
                               name_of(b.dtype) + " needs equal types and an i64 offset");
    }
    if (n.b == kNone) return verify_bounds(where, name, n.a, b.elements);
    if (n.c == kNone || pool_.dtype(n.b) != DType::kBool || pool_.dtype(n.c) != n.dtype) {
      return refuse(where, "a guarded load needs a bool and a fallback of its type");
    }
    return {};
  }

  Status verify_disjoint() const {
    std::vector<VarId> points;
    for (VarId v : kernel_.parallel) {
      if (pool_.var_info(v).extent > 1) points.push_back(v);
    }
    for (const auto& [buffer, stores] : placed_) {
      for (size_t i = 0; i < stores.size(); ++i) {
        for (size_t j = 0; j <= i; ++j) {
          if (apart(kernel_, stores[i], stores[j], points)) continue;
          const std::string other = i == j ? "itself" : stores[j].name;
          return refuse(stores[i].name, "cannot be proven apart from " + other +
                                            " at another parallel point, both to buffer b" +
                                            std::to_string(buffer));
        }
      }
    }
    for (const auto& [buffer, loads] : own_loads_) {
      const auto stores = placed_.find(buffer);
      if (stores == placed_.end()) continue;
      for (const Placed& load : loads) {
        for (const Placed& store : stores->second) {
          if (apart(kernel_, load, store, points)) continue;
          return refuse(load.name, "a load of buffer b" + std::to_string(buffer) +
                                       " cannot be proven apart from " + store.name +
                                       " at another parallel point");
        }
      }
    }
    return {};
  }

  const Kernel& kernel_;
  const Pool& pool_;
  std::vector<bool> live_;
  std::vector<bool> made_;
  std::vector<bool> checked_;
  std::vector<bool> reads_own_;              // of checked values: reads a written buffer
  std::vector<ExprId> own_values_;           // such values checked in the innermost loop
  std::vector<std::vector<ExprId>> scopes_;  // values checked in each open scope
  std::vector<uint32_t> open_loops_;
  std::map<uint32_t, std::vector<Placed>> placed_;     // stores, by written buffer
  std::map<uint32_t, std::vector<Placed>> own_loads_;  // of written buffers
  std::vector<bool> store_seen_;
  std::vector<bool> loop_seen_;
  std::vector<bool> check_seen_;
  bool dead_ = false;  // no iteration ever gets here
};

}  // namespace

Status verify_kernel(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace pyc::loop
