#include "loop/parse.h"

#include <bit>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lexer.h"
#include "loop/function.h"
#include "loop/functions.h"

namespace pyc::loop {
namespace {

constexpr std::string_view kLoopPairs[] = {"//", "<<", ">>", "==", "!=", "<=", "->"};
constexpr LexerRules kLoopText = {
    .punct = "()[]{},:=<+-*/%&|^", .pairs = kLoopPairs, .values = false, .signs = false};

template <class T>
bool read_number(std::string_view text, T& value, int base = 10) {
  std::from_chars_result r{};
  if constexpr (std::is_floating_point_v<T>) {
    r = std::from_chars(text.data(), text.data() + text.size(), value);
  } else {
    r = std::from_chars(text.data(), text.data() + text.size(), value, base);
  }
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

// The word of a literal of type `t`; none if the text is none or does not fit.
std::optional<Word> word_of(const std::string& text, DType t) {
  if (t == DType::kF64) {
    double v = 0;
    if (!read_number(text, v)) return std::nullopt;
    return std::bit_cast<Word>(v);
  }
  if (is_float(t)) {
    float v = 0;
    if (!read_number(text, v)) return std::nullopt;
    return convert_word(std::bit_cast<uint32_t>(v), DType::kF32, t);
  }
  if (t == DType::kU64) {
    uint64_t v = 0;
    if (!read_number(text, v)) return std::nullopt;
    return v;
  }
  int64_t v = 0;
  if (!read_number(text, v)) return std::nullopt;
  const auto word = static_cast<Word>(v);
  if (convert_word(word, DType::kI64, t) != word) return std::nullopt;
  return word;
}

struct BinaryLevel {
  std::vector<std::pair<std::string_view, Op>> operators;
};

// From the weakest to the strongest; all but the first group to the left.
const std::vector<BinaryLevel>& levels() {
  static const std::vector<BinaryLevel> all = {
      {{{"==", Op::kEq}, {"!=", Op::kNe}, {"<=", Op::kLe}, {"<", Op::kLt}}},
      {{{"|", Op::kOr}}},
      {{{"^", Op::kXor}}},
      {{{"&", Op::kAnd}}},
      {{{"<<", Op::kShl}, {">>", Op::kShr}}},
      {{{"+", Op::kAdd}, {"-", Op::kSub}}},
      {{{"*", Op::kMul}, {"//", Op::kFloorDiv}, {"/", Op::kDiv}, {"%", Op::kFloorMod}}},
  };
  return all;
}

const std::map<std::string_view, std::pair<Op, int>>& calls() {
  static const std::map<std::string_view, std::pair<Op, int>> all = {
      {"rem", {Op::kRem, 2}},
      {"min", {Op::kMin, 2}},
      {"max", {Op::kMax, 2}},
      {"neg", {Op::kNeg, 1}},
      {"not", {Op::kNot, 1}},
      {"abs", {Op::kAbs, 1}},
      {"sqrt", {Op::kSqrt, 1}},
      {"floor", {Op::kFloor, 1}},
      {"ceil", {Op::kCeil, 1}},
      {"trunc", {Op::kTrunc, 1}},
      {"round_even", {Op::kRoundEven, 1}},
      {"fma", {Op::kFma, 3}},
      {"select", {Op::kSelect, 3}},
  };
  return all;
}

constexpr int kMaxNesting = 250;
// Definitions are walked by recursion, and functions that call functions too.
constexpr size_t kMaxDefinition = 2048;
constexpr size_t kMaxFunctions = 512;

// Reads on after an error without effect; the first error is the result.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text, kLoopText) {}

  Result<Kernel> run() {
    expect("kernel");
    expect("{");
    while (ok()) {
      if (accept("buffer")) {
        parse_buffer();
      } else if (accept("table")) {
        parse_table();
      } else if (accept("function")) {
        parse_function();
      } else if (accept("parallel")) {
        const VarId v = parse_new_var();
        if (ok()) kernel_.parallel.push_back(v);
      } else {
        break;
      }
    }
    std::vector<Stmt> body = parse_body(nullptr);
    if (ok() && peek().kind != TokenKind::kEnd) fail("expected the end of the text");
    if (!ok()) return status_;
    kernel_.body = std::move(body);
    return std::move(kernel_);
  }

 private:
  bool ok() const { return status_.ok(); }

  ExprId fail_at(const Token& token, const std::string& message) {
    if (!ok()) return kNone;
    status_ = Status(Code::kParseError, lexer_.position(token) + ": " + message);
    lexer_.stop();
    return kNone;
  }
  ExprId fail(const std::string& message) {
    return fail_at(peek(), message + ", found " + peek().found());
  }

  const Token& peek() const { return lexer_.peek(); }
  Token take() { return lexer_.next(); }
  bool at(std::string_view text) const { return peek().is(text); }
  bool accept(std::string_view text) {
    if (!at(text)) return false;
    take();
    return true;
  }
  void expect(std::string_view text) {
    if (ok() && !accept(text)) fail("expected '" + std::string(text) + "'");
  }

  int64_t parse_count() {
    int64_t v = 0;
    if (peek().kind != TokenKind::kNumber || !read_number(peek().text, v)) {
      fail("expected a count");
      return 0;
    }
    take();
    return v;
  }

  DType parse_dtype() {
    const std::optional<DType> t = dtype_from_name(peek().text);
    if (!t) fail("expected an element type");
    take();
    return t.value_or(DType::kI64);
  }

  // The number in a name such as b12.
  static std::optional<uint32_t> numbered(const Token& t, char letter) {
    uint32_t v = 0;
    if (t.kind != TokenKind::kWord || t.text[0] != letter || t.text.size() < 2) return {};
    if (!is_digit(t.text[1]) || !read_number(t.text.substr(1), v)) return {};
    return v;
  }

  void parse_buffer() {
    if (numbered(peek(), 'b') != kernel_.buffers.size()) {
      fail("expected b" + std::to_string(kernel_.buffers.size()));
    }
    Buffer b;
    b.name = take().text;
    expect(":");
    b.dtype = parse_dtype();
    expect("[");
    b.elements = parse_count();
    expect("]");
    if (accept("write")) {
      b.access = Access::kWrite;
      if (accept("in_place")) {
        const auto read = numbered(peek(), 'b');
        if (!read || *read >= kernel_.buffers.size()) fail("expected a buffer before this one");
        b.in_place_of = static_cast<uint32_t>(read.value_or(0));
        take();
      }
    } else if (accept("scratch")) {
      b.access = Access::kScratch;
    } else {
      expect("read");
    }
    kernel_.buffers.push_back(std::move(b));
  }

  void parse_table() {
    if (numbered(peek(), 'c') != tables_.size()) {
      fail("expected c" + std::to_string(tables_.size()));
    }
    take();
    expect(":");
    const DType t = parse_dtype();
    expect("=");
    expect("[");
    std::vector<Word> words;
    while (ok() && !at("]")) {
      if (!words.empty()) expect(",");
      words.push_back(parse_word(t));
    }
    expect("]");
    if (ok()) tables_.push_back(kernel_.pool.table(t, std::move(words)));
  }

  // A definition has a pool, variables, lets and tables of its own; of the kernel it knows the
  // functions that stand before it.
  void parse_function() {
    Kernel kernel = std::exchange(kernel_, {});
    auto vars = std::exchange(vars_, {});
    auto lets = std::exchange(lets_, {});
    auto tables = std::exchange(tables_, {});
    const Token name = take();
    std::shared_ptr<const Function> function = parse_definition(name);
    kernel_ = std::move(kernel);
    vars_ = std::move(vars);
    lets_ = std::move(lets);
    tables_ = std::move(tables);
    if (!ok()) return;
    if (find_function(function->name, types_of(*function)) != nullptr) {
      fail_at(name, "the function is there already");
      return;
    }
    if (functions_.size() == kMaxFunctions) {
      fail_at(name, "more than " + std::to_string(kMaxFunctions) + " functions");
      return;
    }
    // Backends look for the elementary functions themselves.
    const auto known = elementary_function(function->name, types_of(*function)[0]);
    if (known != nullptr && same_function(*known, *function)) function = known;
    functions_.push_back(std::move(function));
  }

  std::shared_ptr<const Function> parse_definition(const Token& name) {
    if (name.kind != TokenKind::kWord) fail_at(name, "expected the name of a function");
    Definition d;
    d.name = name.text;
    expect("(");
    do {
      const Token param = take();
      expect(":");
      d.params.push_back(declare(parse_dtype(), kResult, param));
    } while (ok() && d.params.size() < kMaxParams && accept(","));
    expect(")");
    expect("->");
    const DType t = parse_dtype();
    if (accept("in")) {
      expect("[");
      d.lo = parse_bound();
      expect(",");
      d.hi = parse_bound();
      expect("]");
    }
    expect("{");
    while (accept("table")) parse_table();
    while (accept("let")) parse_let();
    expect("return");
    const Token start = peek();
    d.value = parse_expr();
    expect("}");
    if (ok() && kernel_.pool.dtype(d.value) != t) {
      fail_at(start, "a value of another type than its function's");
    }
    if (kernel_.pool.size() > kMaxDefinition) fail_at(name, "a definition that is too long");
    if (!ok()) return nullptr;
    d.pool = std::move(kernel_.pool);
    return make_function(std::move(d));
  }

  double parse_bound() { return std::bit_cast<double>(parse_word(DType::kF64)); }

  static std::vector<DType> types_of(const Function& f) {
    std::vector<DType> types;
    for (VarId v : f.params) types.push_back(f.pool.var_info(v).dtype);
    return types;
  }

  std::shared_ptr<const Function> find_function(std::string_view name,
                                                const std::vector<DType>& types) const {
    for (const auto& f : functions_) {
      if (f->name == name && types_of(*f) == types) return f;
    }
    return nullptr;
  }

  ExprId parse_function_call() {
    const Token name = take();
    expect("(");
    std::vector<ExprId> args;
    do {
      args.push_back(parse_expr());
    } while (ok() && args.size() < kMaxParams && accept(","));
    expect(")");
    if (!ok()) return kNone;
    Pool& p = kernel_.pool;
    std::vector<DType> types;
    for (ExprId a : args) types.push_back(p.dtype(a));
    const auto function = find_function(name.text, types);
    if (function == nullptr) {
      return fail_at(name, "no function '" + std::string(name.text) + "' of these types so far");
    }
    args.resize(kMaxParams, kNone);
    guardable_ = kNone;
    return p.call(p.function(function), args[0], args[1], args[2]);
  }

  VarId declare(DType t, int64_t extent, const Token& name) {
    const std::optional<uint32_t> number = numbered(name, 'v');
    if (!number || vars_.contains(*number)) fail_at(name, "expected the name of a new variable");
    if (!ok()) return kNone;
    return vars_[*number] = kernel_.pool.new_var(std::string(name.text), t, extent);
  }

  VarId parse_new_var() {
    const Token name = take();
    expect("<");
    const int64_t extent = parse_count();
    return declare(DType::kI64, extent, name);
  }

  VarId parse_var() {
    const std::optional<uint32_t> number = numbered(peek(), 'v');
    if (!number || !vars_.contains(*number)) return fail("expected a variable");
    take();
    return vars_[*number];
  }

  std::vector<Stmt> parse_body(Loop* loop) {
    std::vector<Stmt> body;
    while (ok() && !accept("}")) {
      if (accept("let")) {
        parse_let();
      } else if (accept("check")) {
        Check c;
        c.ok = parse_expr();
        expect("else");
        const bool minus = accept("-");
        const int64_t code = parse_count();
        c.code = static_cast<int32_t>(minus ? -code : code);
        body.push_back({StmtKind::kCheck, static_cast<uint32_t>(kernel_.checks.size())});
        kernel_.checks.push_back(c);
      } else if (accept("loop")) {
        body.push_back({StmtKind::kLoop, parse_loop()});
      } else if (loop != nullptr && accept("reduce")) {
        parse_reduction(*loop);
      } else if (loop != nullptr && accept("carry")) {
        parse_carry(*loop);
      } else if (loop != nullptr && accept("next")) {
        parse_next(*loop);
      } else {
        body.push_back({StmtKind::kStore, parse_store()});
      }
    }
    return body;
  }

  void parse_let() {
    const Token name = take();
    const std::optional<uint32_t> number = numbered(name, 't');
    if (!number || lets_.contains(*number)) fail_at(name, "expected the name of a new let");
    expect(":");
    const DType t = parse_dtype();
    expect("=");
    const Token start = peek();
    const ExprId e = parse_expr();
    if (!ok()) return;
    if (kernel_.pool.dtype(e) != t) fail_at(start, "a value of another type than its let's");
    lets_[*number] = e;
  }

  uint32_t parse_store() {
    const std::optional<uint32_t> buffer = numbered(peek(), 'b');
    if (!buffer || *buffer >= kernel_.buffers.size()) fail("expected a statement");
    take();
    Store s;
    s.buffer = buffer.value_or(0);
    expect("[");
    s.offset = parse_expr();
    expect("]");
    expect("=");
    s.value = parse_expr();
    kernel_.stores.push_back(s);
    return static_cast<uint32_t>(kernel_.stores.size() - 1);
  }

  uint32_t parse_loop() {
    if (++nesting_ > kMaxNesting) fail("nested too deeply");
    const size_t index = kernel_.loops.size();
    kernel_.loops.emplace_back();
    Loop l;
    l.var = parse_new_var();
    if (ok()) l.extent = kernel_.pool.var_info(l.var).extent;
    if (accept("chunk")) {
      l.chunk = parse_count();
      expect("of");
      l.chunk_var = parse_var();
    }
    l.vector = accept("vector");
    l.ordered = accept("ordered");
    expect("{");
    l.body = parse_body(&l);
    for (const Carry& c : l.carries) {
      if (c.next == kNone) fail("expected the next value of every carried variable");
    }
    kernel_.loops[index] = std::move(l);
    --nesting_;
    return static_cast<uint32_t>(index);
  }

  void parse_reduction(Loop& l) {
    Reduction r;
    const Token name = take();
    expect(":");
    const DType t = parse_dtype();
    expect("=");
    if (accept("chain")) {
      r.kind = ReduceKind::kChain;
    } else if (accept("exact")) {
      r.kind = ReduceKind::kExact;
    } else {
      expect("tree");
    }
    static const std::map<std::string_view, ReduceOp> kOps = {
        {"sum", ReduceOp::kSum}, {"prod", ReduceOp::kProd}, {"max", ReduceOp::kMax},
        {"min", ReduceOp::kMin}, {"and", ReduceOp::kAnd},   {"or", ReduceOp::kOr}};
    const auto op = kOps.find(peek().text);
    if (op == kOps.end()) {
      fail("expected the operation of a reduction");
    } else {
      r.op = op->second;
    }
    take();
    expect("(");
    r.value = parse_expr();
    if (accept(",")) r.value2 = parse_expr();
    expect(")");
    if (accept("segment")) r.segment = parse_count();
    if (accept("if")) r.guard = parse_expr();
    r.result = declare(t, kResult, name);
    l.reductions.push_back(r);
  }

  void parse_carry(Loop& l) {
    const Token name = take();
    expect(":");
    const DType t = parse_dtype();
    const int64_t extent = accept("<") ? parse_count() : kResult;
    expect("=");
    Carry c;
    c.init = parse_expr();
    c.var = declare(t, extent, name);
    l.carries.push_back(c);
  }

  void parse_next(Loop& l) {
    const Token start = peek();
    const VarId var = parse_var();
    expect("=");
    const ExprId next = parse_expr();
    expect("then");
    const Token name = take();
    if (!ok()) return;
    for (Carry& c : l.carries) {
      if (c.var != var || c.next != kNone) continue;
      const Var info = kernel_.pool.var_info(var);
      c.next = next;
      c.result = declare(info.dtype, info.extent, name);
      return;
    }
    fail_at(start, "expected a carried variable of this loop");
  }

  Word parse_word(DType t) {
    const Token start = peek();
    if (accept("bits")) {
      expect("(");
      const Token digits = take();
      uint64_t word = 0;
      if (digits.text.substr(0, 2) != "0x" || !read_number(digits.text.substr(2), word, 16)) {
        fail_at(digits, "expected a hexadecimal number");
      }
      expect(")");
      return word;
    }
    std::string text = accept("-") ? "-" : "";
    text += take().text;
    const std::optional<Word> word = word_of(text, t);
    if (!word) fail_at(start, "expected a value of type " + std::string(dtype_name(t)));
    return word.value_or(0);
  }

  // A literal: its type stands behind it, so it is read twice.
  ExprId parse_constant() {
    const Lexer start = lexer_;
    accept("-");
    if (accept("bits")) {
      expect("(");
      take();
      expect(")");
    } else {
      take();
    }
    DType t = DType::kI64;
    const bool typed = accept(":");
    if (typed) t = parse_dtype();
    if (!ok()) return kNone;
    const Lexer after = std::exchange(lexer_, start);
    const Word word = parse_word(t);
    if (!ok()) return kNone;
    lexer_ = after;
    return kernel_.pool.constant(t, word);
  }

  // expression := comparison, or load "if" comparison "else" comparison
  ExprId parse_expr() {
    if (++nesting_ > kMaxNesting) fail("nested too deeply");
    const Token start = peek();
    ExprId e = parse_level(0);
    if (ok() && guardable_ == e && last_load_at_ == start.text.data() && at("if"))
      e = parse_guard(e);
    --nesting_;
    return e;
  }

  ExprId parse_guard(ExprId load) {
    const Token start = peek();
    take();
    const ExprNode n = kernel_.pool.node(load);
    const ExprId guard = parse_level(0);
    expect("else");
    const ExprId fallback = parse_level(0);
    if (!ok()) return kNone;
    if (kernel_.pool.dtype(guard) != DType::kBool || kernel_.pool.dtype(fallback) != n.dtype) {
      return fail_at(start, "a guarded load needs a bool and a fallback of its type");
    }
    return kernel_.pool.load(static_cast<uint32_t>(n.imm), n.dtype, n.a, guard, fallback);
  }

  ExprId parse_level(size_t level) {
    if (level == levels().size()) return parse_primary();
    ExprId e = parse_level(level + 1);
    while (ok()) {
      std::optional<Op> op;
      for (const auto& [symbol, o] : levels()[level].operators) {
        if (at(symbol)) op = o;
      }
      if (!op) break;
      const Token start = peek();
      take();
      const ExprId b = parse_level(level + 1);
      e = binary(start, *op, e, b);
      if (level == 0) break;
    }
    return e;
  }

  ExprId binary(const Token& start, Op op, ExprId a, ExprId b) {
    if (!ok()) return kNone;
    Pool& p = kernel_.pool;
    if (p.dtype(a) != p.dtype(b)) return fail_at(start, "operands of different types");
    if (op == Op::kFloorDiv || op == Op::kFloorMod) {
      const ExprNode& d = p.node(b);
      if (d.dtype != DType::kI64 || d.op != Op::kConst || static_cast<int64_t>(d.word) <= 0) {
        return fail_at(start, "expected an i64 and a positive constant");
      }
    }
    guardable_ = kNone;
    return p.binary(op, a, b);
  }

  ExprId parse_primary() {
    const Token t = peek();
    if (t.kind == TokenKind::kNumber || at("-") || at("inf") || at("bits")) return parse_constant();
    if (accept("(")) {
      const ExprId e = parse_expr();
      expect(")");
      guardable_ = kNone;
      return e;
    }
    if (accept("true")) return kernel_.pool.constant(DType::kBool, 1);
    if (accept("false")) return kernel_.pool.constant(DType::kBool, 0);
    if (const auto v = numbered(t, 'v')) {
      const VarId var = parse_var();
      return ok() ? kernel_.pool.var(var) : kNone;
    }
    if (const auto let = numbered(t, 't')) {
      const auto it = lets_.find(*let);
      if (it == lets_.end()) return fail("expected a value");
      take();
      guardable_ = kNone;
      return it->second;
    }
    if (const auto buffer = numbered(t, 'b')) return parse_load(*buffer);
    if (const auto table = numbered(t, 'c')) return parse_table_load(*table);
    if (accept("call")) return parse_function_call();
    if (t.kind == TokenKind::kWord) return parse_call();
    return fail("expected a value");
  }

  ExprId parse_offset() {
    take();
    expect("[");
    const Token start = peek();
    const ExprId offset = parse_expr();
    expect("]");
    if (!ok()) return kNone;
    if (kernel_.pool.dtype(offset) != DType::kI64) return fail_at(start, "expected an i64");
    return offset;
  }

  ExprId parse_load(uint32_t buffer) {
    if (buffer >= kernel_.buffers.size()) return fail("expected a buffer");
    const Token start = peek();
    const ExprId offset = parse_offset();
    if (!ok()) return kNone;
    last_load_at_ = start.text.data();
    return guardable_ = kernel_.pool.load(buffer, kernel_.buffers[buffer].dtype, offset);
  }

  ExprId parse_table_load(uint32_t table) {
    if (table >= tables_.size()) return fail("expected a table");
    const ExprId index = parse_offset();
    return ok() ? kernel_.pool.table_load(tables_[table], index) : kNone;
  }

  ExprId parse_call() {
    const Token name = take();
    constexpr std::string_view kBitcast = "bitcast_";
    const bool bitcast = name.text.starts_with(kBitcast);
    const auto to = dtype_from_name(bitcast ? name.text.substr(kBitcast.size()) : name.text);
    const auto call = calls().find(name.text);
    if (!to && call == calls().end()) {
      return fail_at(name, "unknown function '" + std::string(name.text) + "'");
    }
    expect("(");
    ExprId args[3] = {kNone, kNone, kNone};
    const int count = to ? 1 : call->second.second;
    for (int i = 0; i < count; ++i) {
      if (i > 0) expect(",");
      args[i] = parse_expr();
    }
    expect(")");
    if (!ok()) return kNone;
    guardable_ = kNone;
    Pool& p = kernel_.pool;
    if (to) {
      if (!bitcast) return p.convert(args[0], *to);
      if (dtype_bits(p.dtype(args[0])) != dtype_bits(*to)) {
        return fail_at(name, "a bitcast between types of different size");
      }
      return p.bitcast(args[0], *to);
    }
    const Op op = call->second.first;
    if (count == 1) return p.unary(op, args[0]);
    if (count == 2) return binary(name, op, args[0], args[1]);
    const bool select = op == Op::kSelect;
    const DType first = select ? DType::kBool : p.dtype(args[1]);
    if (p.dtype(args[0]) != first || p.dtype(args[1]) != p.dtype(args[2])) {
      return fail_at(name, "operands of different types");
    }
    return select ? p.select(args[0], args[1], args[2]) : p.fma(args[0], args[1], args[2]);
  }

  Lexer lexer_;
  Status status_;
  Kernel kernel_;
  std::map<uint32_t, VarId> vars_;
  std::map<uint32_t, ExprId> lets_;
  std::vector<uint32_t> tables_;
  std::vector<std::shared_ptr<const Function>> functions_;
  ExprId guardable_ = kNone;  // the unguarded load just read
  const char* last_load_at_ = nullptr;
  int nesting_ = 0;
};

}  // namespace

Result<Kernel> parse_kernel(std::string_view text) { return Parser(text).run(); }

}  // namespace pyc::loop
