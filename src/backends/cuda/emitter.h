#pragma once

// Text of statements and expressions, scope by scope. A value is computed in the outermost scope
// that has all it depends on; one that reads memory which stores may change is computed anew in
// each statement that uses it.

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/dialect.h"
#include "loop/loop.h"

namespace pyc::cuda {

class Emitter {
 public:
  Emitter(const loop::Kernel& kernel, const Dialect& dialect, std::string symbol);
  virtual ~Emitter() = default;

  // The kernel's statements, one thread alone.
  void serial_body(const std::vector<loop::Stmt>& body);
  std::string finished(const std::string& head);  // closes the outermost scope

  void open_scope() { scopes_.emplace_back(); }
  std::string close_scope();
  void line(const std::string& text);
  size_t depth() const { return scopes_.size() - 1; }
  // A variable of the kernel, or one that was added to its pool, known by this name as long as the
  // current scope is open.
  void declare(loop::VarId v, const std::string& name);
  std::string var_type(loop::VarId v);

  // The value in its node_type, or as i64 where a short index would not do.
  std::string value(loop::ExprId e);
  std::string wide(loop::ExprId e);
  void end_statement();

  // `condition` goes in front of the assignment, after all that it needs was computed.
  void store(const loop::Store& s, const std::string& condition = "");
  void check(const loop::Check& c, const std::string& condition = "");
  // A float that is rounded to a half only to be stored, and the function that does so for a pair:
  // one instruction, where two roundings and their joining are four.
  struct Rounded {
    loop::ExprId from = loop::kNone;
    std::string pair;
  };
  std::optional<Rounded> rounded(loop::ExprId e);
  // "first" and "end" of the loop's iterations here.
  std::pair<std::string, std::string> bounds(const loop::Loop& l);
  // Runs the loop on the spot; `inner` emits its body.
  template <class Inner>
  void run_loop(const loop::Loop& l, Inner inner);
  void serial_loop(const loop::Loop& l);
  // A loop without iterations: its results are what they start with.
  void empty_loop(const loop::Loop& l);
  // Names of a reduction's variables begin with this.
  std::string name_of(const loop::Reduction& r) const;
  // Whether a loop is short enough for its trees to lie in registers: then it is unrolled.
  static bool is_unrolled(const loop::Loop& l);

  // One element of a reduction whose variables are declared by their names, in a loop that is at
  // `var` and ends before `end`.
  void step_reduction(const loop::Reduction& r, const std::string& var, const std::string& end);

  std::string tables() const;

  loop::Kernel kernel_;  // a copy: parts of sums become values of their own
  loop::Pool& pool_;
  const Dialect& dialect_;
  std::string symbol_;
  // Halves may be widened with whatever bits their NaNs have: nothing that is stored shows them.
  bool any_nan_ = false;
  // Loads whose value is in an array already: its text.
  std::unordered_map<loop::ExprId, std::string> loaded_;
  // Of them, halves whose array is aligned by pairs: the word of the pair, and which one it is.
  std::unordered_map<loop::ExprId, std::string> paired_;

 private:
  struct Scope {
    std::string code;
    std::vector<loop::ExprId> values;
  };
  struct Info {
    int depth = -1;
    bool at_use = false;
  };

  const Info& info(loop::ExprId e);
  std::string define(loop::ExprId e, const std::string& text);
  std::string node_text(loop::ExprId e, const loop::ExprNode& n);
  std::string saturated_fma(const loop::ExprNode& n);
  std::string masked_or(const loop::ExprNode& n);
  std::string binary(const loop::ExprNode& n);
  // A value that arithmetic takes, where a NaN's bits do not matter: signs are part of its
  // instruction then.
  std::string operand(loop::ExprId e);
  std::string index_operation(const loop::ExprNode& n);
  std::string load(const loop::ExprNode& n);
  std::string table_load(const loop::ExprNode& n);

  void start_reduction(const loop::Reduction& r);
  void finish_reduction(const loop::Reduction& r);
  void start_carries(const loop::Loop& l);
  void step_carries(const loop::Loop& l);
  std::string carry_name(const loop::Carry& c) const;

  std::vector<Scope> scopes_;
  std::vector<Info> info_;
  std::vector<std::string> held_;  // the name of the value now
  std::vector<loop::ExprId> statement_values_;
  std::vector<std::string> var_name_;
  std::vector<int> var_depth_;
  int fresh_ = 0;
};

std::string buffer_name(uint32_t buffer);

template <class Inner>
void Emitter::run_loop(const loop::Loop& l, Inner inner) {
  if (l.extent <= 0) return empty_loop(l);
  const std::string var = "j" + std::to_string(l.var);
  const std::string type = var_type(l.var);
  start_carries(l);
  for (const loop::Reduction& r : l.reductions) start_reduction(r);
  end_statement();
  const auto [first, end] = bounds(l);
  open_scope();
  declare(l.var, var);
  for (const loop::Carry& c : l.carries) declare(c.var, carry_name(c));
  inner(l.body);
  for (const loop::Reduction& r : l.reductions) step_reduction(r, var, end);
  step_carries(l);
  end_statement();
  const std::string body = close_scope();
  line(std::string(is_unrolled(l) ? "PYC_UNROLL " : "") + "for (" + type + " " + var + " = " +
       first + "; " + var + " < " + end + "; ++" + var + ") {\n" + body + "}");
  for (const loop::Reduction& r : l.reductions) finish_reduction(r);
  for (const loop::Carry& c : l.carries) declare(c.result, carry_name(c));
}

}  // namespace pyc::cuda
