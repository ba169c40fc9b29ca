#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/emitter.h"

namespace pyc::cuda {

using loop::ReduceKind;

void Emitter::serial_body(const std::vector<loop::Stmt>& body) {
  for (const loop::Stmt& s : body) {
    if (s.kind == loop::StmtKind::kStore) store(kernel_.stores[s.index]);
    if (s.kind == loop::StmtKind::kCheck) check(kernel_.checks[s.index]);
    if (s.kind == loop::StmtKind::kLoop) serial_loop(kernel_.loops[s.index]);
    end_statement();
  }
}

void Emitter::serial_loop(const loop::Loop& l) {
  run_loop(l, [&](const std::vector<loop::Stmt>& body) { serial_body(body); });
}

void Emitter::empty_loop(const loop::Loop& l) {
  for (const loop::Reduction& r : l.reductions) {
    declare(r.result, identity_text(r.op, pool_.var_info(r.result).dtype));
  }
  start_carries(l);
  for (const loop::Carry& c : l.carries) declare(c.result, carry_name(c));
}

std::pair<std::string, std::string> Emitter::bounds(const loop::Loop& l) {
  const bool is_short = var_type(l.var) == "i32";
  const auto constant = [&](int64_t v) {
    return literal(DType::kI64, static_cast<Word>(v), is_short);
  };
  if (l.chunk_var == loop::kNone) return {constant(0), constant(l.extent)};
  const std::string part = value(pool_.var(l.chunk_var));
  const std::string name = fmt::format("c{}", l.var);
  line(fmt::format("const i64 {0}_first = (i64){1} * {2}ll;", name, part, l.chunk));
  line(fmt::format("const i64 {0}_end = {0}_first + {1}ll < {2}ll ? {0}_first + {1}ll : {2}ll;",
                   name, l.chunk, l.extent));
  const std::string cast = is_short ? "(i32)" : "";
  return {cast + name + "_first", cast + name + "_end"};
}

std::string Emitter::name_of(const loop::Reduction& r) const {
  return fmt::format("r{}", r.result);
}

bool Emitter::is_unrolled(const loop::Loop& l) {
  return l.extent <= loop::kTreeLanes && l.body.empty() &&
         std::any_of(l.reductions.begin(), l.reductions.end(),
                     [](const loop::Reduction& r) { return r.kind == ReduceKind::kTree; });
}

void Emitter::start_reduction(const loop::Reduction& r) {
  const DType t = pool_.var_info(r.result).dtype;
  const std::string type = value_type(t);
  const std::string name = name_of(r);
  const std::string identity = identity_text(r.op, t);
  line(fmt::format("{} {} = {};", type, name, identity));
  if (r.kind == ReduceKind::kChain) line(fmt::format("{} {}_acc = {};", type, name, identity));
  if (r.kind != ReduceKind::kTree) return;
  line(fmt::format("{0} {1}_block = {2};\n{0} {1}_lanes[{3}];", type, name, identity,
                   loop::kTreeLanes));
  line(fmt::format("PYC_UNROLL for (i32 l = 0; l < {}; ++l) {}_lanes[l] = {};", loop::kTreeLanes,
                   name, identity));
}

void Emitter::step_reduction(const loop::Reduction& r, const std::string& var,
                             const std::string& end) {
  const DType t = pool_.var_info(r.result).dtype;
  const std::string name = name_of(r);
  const auto operand = [&](loop::ExprId e) { return t == DType::kI64 ? wide(e) : value(e); };
  const std::string guard = r.guard == loop::kNone ? "" : fmt::format("if ({}) ", value(r.guard));
  const std::string x = operand(r.value);
  const auto joined = [&](const std::string& a, const std::string& b) {
    return join_text(r.op, t, a, b);
  };
  if (r.kind == ReduceKind::kExact) {
    line(fmt::format("{}{} = {};", guard, name, joined(name, x)));
    return;
  }
  const std::string last = fmt::format("{} + 1 == {}", var, end);
  if (r.kind == ReduceKind::kChain) {
    const std::string acc = name + "_acc";
    std::string next = joined(acc, x);
    if (r.value2 != loop::kNone) {
      const std::string y = operand(r.value2);
      next = is_float(t) ? fmt::format("pyc_fma_{}({}, {}, {})", dtype_name(t), x, y, acc)
                         : joined(acc, fmt::format("pyc_mul_{}({}, {})", dtype_name(t), x, y));
    }
    line(fmt::format("{}{} = {};", guard, acc, next));
    if (r.segment == 0) return;
    line(fmt::format("if (({} + 1) % {} == 0 || {}) {{ {} = {}; {} = {}; }}", var, r.segment, last,
                     name, joined(name, acc), acc, identity_text(r.op, t)));
    return;
  }
  const std::string lane = fmt::format("{}_lanes[{} % {}]", name, var, loop::kTreeLanes);
  line(fmt::format("{}{} = {};", guard, lane, joined(lane, x)));
  const std::string identity = identity_text(r.op, t);
  const std::string low = name + "_lanes[l]";
  line(
      fmt::format("if ({0} % {1} == {2} || {3}) {{\n"
                  "PYC_UNROLL for (i32 h = {4}; h > 0; h >>= 1) "
                  "PYC_UNROLL for (i32 l = 0; l < h; ++l) {5} = {6};\n"
                  "{7}_block = {8};\nPYC_UNROLL for (i32 l = 0; l < {9}; ++l) {5} = {10};\n}}",
                  var, loop::kTreeBlock, loop::kTreeBlock - 1, last, loop::kTreeLanes / 2, low,
                  joined(low, name + "_lanes[l + h]"), name,
                  joined(name + "_block", name + "_lanes[0]"), loop::kTreeLanes, identity));
  line(fmt::format("if ({} % {} == {} || {}) {{ {} = {}; {}_block = {}; }}", var,
                   loop::kTreeSuperBlock, loop::kTreeSuperBlock - 1, last, name,
                   joined(name, name + "_block"), name, identity));
}

void Emitter::finish_reduction(const loop::Reduction& r) {
  const std::string name = name_of(r);
  if (r.kind == ReduceKind::kChain && r.segment == 0) {
    const DType t = pool_.var_info(r.result).dtype;
    line(fmt::format("{} = {};", name, join_text(r.op, t, name, name + "_acc")));
  }
  declare(r.result, name);
}

std::string Emitter::carry_name(const loop::Carry& c) const { return fmt::format("k{}", c.var); }

void Emitter::start_carries(const loop::Loop& l) {
  for (const loop::Carry& c : l.carries) {
    const std::string type = var_type(c.var);
    const std::string init = type == "i64" ? wide(c.init) : value(c.init);
    line(fmt::format("{} {} = {};", type, carry_name(c), init));
  }
}

// All next values are there before the first variable changes.
void Emitter::step_carries(const loop::Loop& l) {
  std::string moves;
  for (const loop::Carry& c : l.carries) {
    const std::string type = var_type(c.var);
    const std::string next = type == "i64" ? wide(c.next) : value(c.next);
    line(fmt::format("const {} {}_next = {};", type, carry_name(c), next));
    moves += fmt::format("{0} = {0}_next;\n", carry_name(c));
  }
  if (!moves.empty()) line(moves);
}

}  // namespace pyc::cuda
