#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "loop/function.h"
#include "loop/loop.h"

namespace pyc::loop {
namespace {

// Binding strength of a printed expression; an operand that binds less gets parentheses.
enum Strength : int { kIf, kCompare, kBitOr, kBitXor, kBitAnd, kShift, kSum, kProduct, kPrimary };

struct Infix {
  const char* symbol;
  Strength strength;
};

// Null symbol: written as a call.
Infix infix_of(Op op) {
  switch (op) {
    case Op::kAdd:
      return {"+", kSum};
    case Op::kSub:
      return {"-", kSum};
    case Op::kMul:
      return {"*", kProduct};
    case Op::kDiv:
      return {"/", kProduct};
    case Op::kFloorDiv:
      return {"//", kProduct};
    case Op::kFloorMod:
      return {"%", kProduct};
    case Op::kAnd:
      return {"&", kBitAnd};
    case Op::kOr:
      return {"|", kBitOr};
    case Op::kXor:
      return {"^", kBitXor};
    case Op::kShl:
      return {"<<", kShift};
    case Op::kShr:
      return {">>", kShift};
    case Op::kEq:
      return {"==", kCompare};
    case Op::kNe:
      return {"!=", kCompare};
    case Op::kLt:
      return {"<", kCompare};
    case Op::kLe:
      return {"<=", kCompare};
    default:
      return {nullptr, kPrimary};
  }
}

std::string call_name(Op op) {
  switch (op) {
    case Op::kRem:
      return "rem";
    case Op::kMin:
      return "min";
    case Op::kMax:
      return "max";
    case Op::kNeg:
      return "neg";
    case Op::kNot:
      return "not";
    case Op::kAbs:
      return "abs";
    case Op::kSqrt:
      return "sqrt";
    case Op::kFloor:
      return "floor";
    case Op::kCeil:
      return "ceil";
    case Op::kTrunc:
      return "trunc";
    case Op::kRoundEven:
      return "round_even";
    case Op::kFma:
      return "fma";
    case Op::kSelect:
      return "select";
    default:
      break;
  }
  PYC_CHECK(false, "an operation without a name");
  return "";
}

template <class T>
std::string shortest(T v) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  return std::string(text, end);
}

std::string bits_text(Word word) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof text, word, 16).ptr;
  return "bits(0x" + std::string(text, end) + ")";
}

// Exact: a decimal that reads back as the same word, else the word itself.
std::string constant_digits(DType t, Word word) {
  if (t == DType::kF64) {
    const auto v = std::bit_cast<double>(word);
    return v != v ? bits_text(word) : shortest(v);
  }
  if (is_float(t)) {
    if (word >> dtype_bits(t) != 0) return bits_text(word);
    const auto v = std::bit_cast<float>(static_cast<uint32_t>(convert_word(word, t, DType::kF32)));
    return v != v ? bits_text(word) : shortest(v);
  }
  if (t == DType::kU64) return shortest(word);
  const auto v = static_cast<int64_t>(word);
  return convert_word(word, DType::kI64, t) == word ? shortest(v) : bits_text(word);
}

std::string constant_text(DType t, Word word) {
  if (t == DType::kBool && word <= 1) return word != 0 ? "true" : "false";
  std::string text = constant_digits(t, word);
  if (t != DType::kI64) text += ":" + std::string(dtype_name(t));
  return text;
}

const char* access_name(Access a) {
  switch (a) {
    case Access::kRead:
      return "read";
    case Access::kWrite:
      return "write";
    case Access::kScratch:
      return "scratch";
  }
  return "";
}

const char* kind_name(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kChain:
      return "chain";
    case ReduceKind::kTree:
      return "tree";
    case ReduceKind::kExact:
      return "exact";
  }
  return "";
}

const char* reduce_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProd:
      return "prod";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kAnd:
      return "and";
    case ReduceOp::kOr:
      return "or";
  }
  return "";
}

// A let's name while the text is being put together: lets of outer scopes are found while inner
// ones are printed, so their numbers are given at the end, in the order of the text.
constexpr char kLetMark = '\x01';
// An operand longer than this gets a line of its own.
constexpr size_t kLongOperand = 72;
// Index arithmetic up to this length is repeated rather than named.
constexpr size_t kShortIndex = 24;

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : Printer(kernel, kernel.pool) {}
  // Of values of a pool other than the kernel's.
  Printer(const Kernel& kernel, const Pool& pool)
      : kernel_(kernel),
        pool_(pool),
        uses_(pool_.size(), 0),
        depth_(pool_.size(), -1),
        at_use_(pool_.size(), false),
        hash_(pool_.size(), 0),
        let_(pool_.size(), kNone),
        var_number_(pool_.var_count(), kNone),
        var_depth_(pool_.var_count(), 0),
        table_number_(pool_.tables().size(), kNone) {}

  std::string run() {
    for (VarId v : kernel_.parallel) number(v, 0);
    survey(kernel_.body, 0);
    scopes_.emplace_back();
    print_body(kernel_.body);
    std::string head = "kernel {\n";
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer& b = kernel_.buffers[i];
      head += "buffer b" + std::to_string(i) + ": " + std::string(dtype_name(b.dtype)) + "[" +
              std::to_string(b.elements) + "] " + access_name(b.access);
      if (b.in_place_of != kNone) head += " in_place b" + std::to_string(b.in_place_of);
      head += "\n";
    }
    for (size_t i = 0; i < tables_.size(); ++i) head += table_line(i);
    for (const std::string& definition : definitions()) head += definition;
    for (VarId v : kernel_.parallel) {
      head += "parallel " + var_name(v) + " < " + std::to_string(pool_.var_info(v).extent) + "\n";
    }
    return with_numbered_lets(head + scopes_[0].text + "}\n");
  }

  FunctionText run(const Function& f) {
    std::string head = "function " + f.name + "(";
    for (size_t i = 0; i < f.params.size(); ++i) {
      number(f.params[i], 0);
      head += (i == 0 ? "" : ", ") + var_name(f.params[i]) + ": " +
              std::string(dtype_name(pool_.var_info(f.params[i]).dtype));
    }
    const DType t = pool_.dtype(f.value);
    head += ") -> " + std::string(dtype_name(t));
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (is_float(t) && (f.lo != -kInf || f.hi != kInf)) {
      head += " in [" + shortest(f.lo) + ", " + shortest(f.hi) + "]";
    }
    head += " {\n";
    use(f.value);
    outer_ = 1;
    scopes_.emplace_back();
    line("return " + root(f.value));
    for (size_t i = 0; i < tables_.size(); ++i) head += indent(0) + table_line(i);
    return {with_numbered_lets(head + scopes_[0].text + "}\n"), functions_};
  }

 private:
  struct Text {
    std::string text;
    Strength strength = kPrimary;
  };
  struct Scope {
    std::string text;
    std::vector<ExprId> lets;
  };

  // The text of each function that is called, after those it calls itself.
  std::vector<std::string> definitions() const {
    std::vector<const Function*> done;
    std::vector<std::string> texts;
    const auto add = [&](const auto& self, const Function& f) -> void {
      for (const Function* g : done) {
        if (same_function(*g, f)) return;
      }
      for (const auto& inner : f.calls) self(self, *inner);
      done.push_back(&f);
      texts.push_back(f.text);
    };
    for (const auto& f : functions_) add(add, *f);
    return texts;
  }

  void number(VarId v, int depth) {
    if (v >= var_number_.size() || var_number_[v] != kNone) return;
    var_number_[v] = var_count_++;
    var_depth_[v] = depth;
  }

  std::string var_name(VarId v) {
    number(v, 0);  // a variable no scope declares; the verifier refuses it
    return "v" + std::to_string(var_number_[v]);
  }

  // An i64 sum or constant multiple: printed as one list of terms, since the pool orders the terms
  // by ids, which the text must not depend on.
  bool is_sum(const ExprNode& n) const {
    if (n.dtype != DType::kI64) return false;
    return n.op == Op::kAdd || n.op == Op::kSub ||
           (n.op == Op::kMul && pool_.node(n.b).op == Op::kConst);
  }

  template <class F>
  void each_operand(ExprId e, F f) const {
    const ExprNode& n = pool_.node(e);
    if (is_sum(n)) {
      for (const auto& [atom, c] : affine_of(pool_, e).terms) f(atom);
      return;
    }
    for (ExprId o : {n.a, n.b, n.c}) {
      if (o != kNone) f(o);
    }
  }

  // Numbers the variables in the order of the text and counts how often each value is used.
  void survey(const std::vector<Stmt>& body, int depth) {
    for (const Stmt& s : body) {
      if (s.kind == StmtKind::kStore) {
        use(kernel_.stores[s.index].offset);
        use(kernel_.stores[s.index].value);
      } else if (s.kind == StmtKind::kCheck) {
        use(kernel_.checks[s.index].ok);
      } else {
        const Loop& l = kernel_.loops[s.index];
        for (const Carry& c : l.carries) use(c.init);
        number(l.var, depth + 1);
        for (const Carry& c : l.carries) number(c.var, depth + 1);
        survey(l.body, depth + 1);
        for (const Reduction& r : l.reductions) {
          for (ExprId e : {r.value, r.value2, r.guard}) use(e);
        }
        for (const Carry& c : l.carries) use(c.next);
        for (const Reduction& r : l.reductions) number(r.result, depth);
        for (const Carry& c : l.carries) number(c.result, depth);
      }
    }
  }

  void use(ExprId e) {
    if (e == kNone || uses_[e]++ > 0) return;
    const ExprNode& n = pool_.node(e);
    int depth = n.op == Op::kVar ? var_depth_[static_cast<VarId>(n.imm)] : 0;
    bool at_use =
        n.op == Op::kLoad && kernel_.buffers[static_cast<size_t>(n.imm)].access != Access::kRead;
    each_operand(e, [&](ExprId o) {
      use(o);
      depth = std::max(depth, depth_[o]);
      at_use = at_use || at_use_[o];
    });
    depth_[e] = depth;
    at_use_[e] = at_use;
  }

  // A hash of the value's structure, free of ids; it orders the terms of a sum.
  uint64_t hash(ExprId e) {
    if (hash_[e] != 0) return hash_[e];
    const ExprNode& n = pool_.node(e);
    uint64_t h = mix(static_cast<uint64_t>(n.op), static_cast<uint64_t>(n.dtype));
    if (is_sum(n)) {
      const Affine sum = affine_of(pool_, e);
      h = mix(h, static_cast<uint64_t>(sum.constant));
      for (const auto& [atom, c] : sum.terms) h += mix(hash(atom), static_cast<uint64_t>(c));
    } else {
      if (n.op == Op::kVar) {
        h = mix(h, var_number_[static_cast<VarId>(n.imm)]);
      } else if (n.op == Op::kTable) {
        for (Word w : pool_.tables()[static_cast<size_t>(n.imm)].words) h = mix(h, w);
      } else if (n.op == Op::kCall) {
        h = mix(h, hash128(std::as_bytes(std::span(callee(pool_, n).text))).lo);
      } else {
        h = mix(mix(h, static_cast<uint64_t>(n.imm)), n.word);
      }
      for (ExprId o : {n.a, n.b, n.c}) h = mix(h, o == kNone ? 1 : hash(o));
    }
    return hash_[e] = h | 1;
  }

  std::string indent(size_t depth) const { return std::string(2 * (depth + outer_), ' '); }

  void line(const std::string& text) {
    scopes_.back().text += indent(scopes_.size() - 1) + text + "\n";
  }

  void end_statement() {
    for (ExprId e : statement_lets_) let_[e] = kNone;
    statement_lets_.clear();
  }

  void print_body(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (s.kind == StmtKind::kStore) {
        const Store& st = kernel_.stores[s.index];
        const std::string offset = root(st.offset);
        const std::string value = root(st.value);
        line("b" + std::to_string(st.buffer) + "[" + offset + "] = " + value);
      } else if (s.kind == StmtKind::kCheck) {
        const Check& c = kernel_.checks[s.index];
        const std::string ok = root(c.ok);
        line("check " + ok + " else " + std::to_string(c.code));
      } else {
        print_loop(kernel_.loops[s.index]);
      }
      end_statement();
    }
  }

  void print_loop(const Loop& l) {
    std::string head = "loop " + var_name(l.var) + " < " + std::to_string(l.extent);
    if (l.chunk_var != kNone) {
      head += " chunk " + std::to_string(l.chunk) + " of " + var_name(l.chunk_var);
    }
    if (l.vector) head += " vector";
    if (l.ordered) head += " ordered";
    std::vector<std::string> starts;
    for (const Carry& c : l.carries) starts.push_back(carry_start(c));
    end_statement();
    scopes_.emplace_back();
    for (const std::string& start : starts) line(start);
    print_body(l.body);
    for (const Reduction& r : l.reductions) {
      std::string text = "reduce " + var_name(r.result) + ": " +
                         std::string(dtype_name(pool_.var_info(r.result).dtype)) + " = " +
                         kind_name(r.kind) + " " + reduce_name(r.op) + "(" + root(r.value);
      if (r.value2 != kNone) text += ", " + root(r.value2);
      text += ")";
      if (r.segment != 0) text += " segment " + std::to_string(r.segment);
      if (r.guard != kNone) text += " if " + root(r.guard);
      line(text);
    }
    for (const Carry& c : l.carries) {
      const std::string next = root(c.next);
      line("next " + var_name(c.var) + " = " + next + " then " + var_name(c.result));
    }
    end_statement();
    Scope inner = std::move(scopes_.back());
    scopes_.pop_back();
    for (ExprId e : inner.lets) let_[e] = kNone;
    line(head + " {");
    scopes_.back().text += inner.text;
    line("}");
  }

  // What stands before the loop in time is written inside it, with the variable's scope.
  std::string carry_start(const Carry& c) {
    const Var& var = pool_.var_info(c.var);
    std::string text = "carry " + var_name(c.var) + ": " + std::string(dtype_name(var.dtype));
    if (var.extent != kResult) text += " < " + std::to_string(var.extent);
    return text + " = " + root(c.init);
  }

  std::string root(ExprId e) {
    const ExprNode& n = pool_.node(e);
    if (let_[e] != kNone || (uses_[e] > 1 && n.op != Op::kConst && n.op != Op::kVar)) {
      return operand(e, kIf);
    }
    return spell(e).text;
  }

  // The value as an operand of something that binds with `strength`.
  std::string operand(ExprId e, Strength strength) {
    if (let_[e] != kNone) return let_name(let_[e]);
    Text t = spell(e);
    const ExprNode& n = pool_.node(e);
    const bool plain = n.op == Op::kConst || n.op == Op::kVar;
    const bool short_index = n.dtype == DType::kI64 && n.op != Op::kLoad && n.op != Op::kTable &&
                             t.text.size() <= kShortIndex;
    const bool shared = uses_[e] > 1 && !short_index;
    if (!plain && (shared || t.text.size() > kLongOperand)) return bind(e, t.text);
    return t.strength < strength ? "(" + t.text + ")" : t.text;
  }

  // Gives the value a line in the outermost scope that has all it depends on.
  std::string bind(ExprId e, const std::string& text) {
    const bool here = at_use_[e];
    const size_t depth = here ? scopes_.size() - 1 : static_cast<size_t>(depth_[e]);
    let_[e] = let_count_++;
    std::string name = let_name(let_[e]);
    Scope& scope = scopes_[depth];
    scope.text += indent(depth) + "let " + name + ": " + std::string(dtype_name(pool_.dtype(e))) +
                  " = " + text + "\n";
    (here ? statement_lets_ : scope.lets).push_back(e);
    return name;
  }

  static std::string let_name(uint32_t id) { return kLetMark + std::to_string(id) + kLetMark; }

  Text spell(ExprId e) {
    const ExprNode& n = pool_.node(e);
    if (is_sum(n)) return spell_sum(e);
    switch (n.op) {
      case Op::kConst:
        return {constant_text(n.dtype, n.word)};
      case Op::kVar:
        return {var_name(static_cast<VarId>(n.imm))};
      case Op::kTable: {
        const std::string index = operand(n.a, kIf);
        return {"c" + std::to_string(table_of(static_cast<size_t>(n.imm))) + "[" + index + "]"};
      }
      case Op::kLoad: {
        std::string text = "b" + std::to_string(n.imm) + "[" + operand(n.a, kIf) + "]";
        if (n.b == kNone) return {text};
        text += " if " + operand(n.b, kCompare);
        return {text + " else " + operand(n.c, kCompare), kIf};
      }
      case Op::kConvert:
        return {std::string(dtype_name(n.dtype)) + "(" + operand(n.a, kIf) + ")"};
      case Op::kBitcast:
        return {"bitcast_" + std::string(dtype_name(n.dtype)) + "(" + operand(n.a, kIf) + ")"};
      case Op::kCall:
        return spell_call(n);
      default:
        break;
    }
    const Infix infix = infix_of(n.op);
    if (infix.symbol != nullptr) {
      const auto right = static_cast<Strength>(infix.strength + 1);
      // Comparisons do not chain.
      const std::string a = operand(n.a, infix.strength == kCompare ? right : infix.strength);
      return {a + " " + infix.symbol + " " + operand(n.b, right), infix.strength};
    }
    std::string text = call_name(n.op) + "(" + operand(n.a, kIf);
    if (n.b != kNone) text += ", " + operand(n.b, kIf);
    if (n.c != kNone) text += ", " + operand(n.c, kIf);
    return {text + ")"};
  }

  Text spell_call(const ExprNode& n) {
    const auto& function = pool_.functions()[static_cast<size_t>(n.imm)];
    std::string text = "call " + function->name + "(";
    text += operand(n.a, kIf);
    if (n.b != kNone) text += ", " + operand(n.b, kIf);
    if (n.c != kNone) text += ", " + operand(n.c, kIf);
    if (std::find(functions_.begin(), functions_.end(), function) == functions_.end()) {
      functions_.push_back(function);
    }
    return {text + ")"};
  }

  Text spell_sum(ExprId e) {
    Affine sum = affine_of(pool_, e);
    auto key = [&](ExprId atom) {
      const ExprNode& n = pool_.node(atom);
      const bool var = n.op == Op::kVar;
      return std::pair(!var, var ? var_number_[static_cast<VarId>(n.imm)] : hash(atom));
    };
    std::stable_sort(sum.terms.begin(), sum.terms.end(),
                     [&](const auto& x, const auto& y) { return key(x.first) < key(y.first); });
    std::string text;
    for (const auto& [atom, c] : sum.terms) {
      const bool minus = !text.empty() && c < 0 && c != INT64_MIN;
      const int64_t factor = minus ? -c : c;
      if (!text.empty()) text += minus ? " - " : " + ";
      text += operand(atom, kProduct);
      if (factor != 1) text += "*" + std::to_string(factor);
    }
    const bool product = sum.terms.size() == 1 && sum.constant == 0;
    if (sum.constant < 0 && sum.constant != INT64_MIN) {
      text += " - " + std::to_string(-sum.constant);
    } else if (sum.constant != 0) {
      text += " + " + std::to_string(sum.constant);
    }
    return {text, product ? kProduct : kSum};
  }

  uint32_t table_of(size_t table) {
    if (table_number_[table] == kNone) {
      table_number_[table] = static_cast<uint32_t>(tables_.size());
      tables_.push_back(table);
    }
    return table_number_[table];
  }

  std::string table_line(size_t number) const {
    const Table& t = pool_.tables()[tables_[number]];
    std::string text =
        "table c" + std::to_string(number) + ": " + std::string(dtype_name(t.dtype)) + " = [";
    for (size_t i = 0; i < t.words.size(); ++i) {
      text += (i == 0 ? "" : ", ") + constant_digits(t.dtype, t.words[i]);
    }
    return text + "]\n";
  }

  // A let's definition is its first appearance.
  std::string with_numbered_lets(const std::string& text) const {
    std::vector<uint32_t> numbers(let_count_, kNone);
    uint32_t count = 0;
    std::string out;
    out.reserve(text.size());
    size_t at = 0;
    while (true) {
      const size_t mark = text.find(kLetMark, at);
      if (mark == std::string::npos) break;
      const size_t end = text.find(kLetMark, mark + 1);
      uint32_t id = 0;
      std::from_chars(text.data() + mark + 1, text.data() + end, id);
      if (numbers[id] == kNone) numbers[id] = count++;
      out.append(text, at, mark - at);
      out += "t" + std::to_string(numbers[id]);
      at = end + 1;
    }
    return out.append(text, at);
  }

  const Kernel& kernel_;
  const Pool& pool_;
  std::vector<uint32_t> uses_;
  std::vector<int> depth_;    // loops around the outermost place where a value can be computed
  std::vector<bool> at_use_;  // reads memory that stores may change: named within one statement
  std::vector<uint64_t> hash_;
  std::vector<uint32_t> let_;  // the let that holds a value now
  std::vector<uint32_t> var_number_;
  std::vector<int> var_depth_;
  std::vector<uint32_t> table_number_;
  std::vector<size_t> tables_;
  std::vector<std::shared_ptr<const Function>> functions_;
  std::vector<Scope> scopes_;
  std::vector<ExprId> statement_lets_;
  uint32_t var_count_ = 0;
  uint32_t let_count_ = 0;
  size_t outer_ = 0;  // scopes around the outermost one printed here
};

}  // namespace

FunctionText print_function(const Function& function) {
  return Printer(Kernel{}, function.pool).run(function);
}

std::string print(const Kernel& kernel) { return Printer(kernel).run(); }

}  // namespace pyc::loop
