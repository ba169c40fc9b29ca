#include "loop/parse.h"

#include <bit>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pyc::loop {
namespace {

enum class TokenKind : uint8_t { kName, kNumber, kSymbol, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  size_t at = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

Token next_token(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t')) ++at;
  if (at == text.size()) return {TokenKind::kEnd, "", at};
  size_t end = at + 1;
  if (is_digit(text[at])) {
    auto more = [&] {
      if (is_word(text[end]) || text[end] == '.') return true;
      const bool sign = text[end] == '+' || text[end] == '-';
      const bool hex = text.substr(at, 2) == "0x";
      return sign && !hex && (text[end - 1] == 'e' || text[end - 1] == 'E');
    };
    while (end < text.size() && more()) ++end;
    return {TokenKind::kNumber, text.substr(at, end - at), at};
  }
  if (is_word(text[at])) {
    while (end < text.size() && is_word(text[end])) ++end;
    return {TokenKind::kName, text.substr(at, end - at), at};
  }
  for (std::string_view pair : {"//", "<<", ">>", "==", "!=", "<="}) {
    if (text.substr(at, 2) == pair) return {TokenKind::kSymbol, pair, at};
  }
  return {TokenKind::kSymbol, text.substr(at, 1), at};
}

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

// Reads on after an error without effect; the first error is the result.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), token_(next_token(text, 0)) {}

  Result<Kernel> run() {
    expect("kernel");
    expect("{");
    while (ok()) {
      if (accept("buffer")) {
        parse_buffer();
      } else if (accept("table")) {
        parse_table();
      } else if (accept("parallel")) {
        const VarId v = parse_new_var();
        if (ok()) kernel_.parallel.push_back(v);
      } else {
        break;
      }
    }
    std::vector<Stmt> body = parse_body(nullptr);
    if (ok() && token_.kind != TokenKind::kEnd) fail("expected the end of the text");
    if (!ok()) return status_;
    kernel_.body = std::move(body);
    return std::move(kernel_);
  }

 private:
  bool ok() const { return status_.ok(); }

  ExprId fail_at(size_t at, const std::string& message) {
    if (!ok()) return kNone;
    size_t line = 1;
    size_t column = 1;
    for (char c : text_.substr(0, at)) {
      column = c == '\n' ? 1 : column + 1;
      line += c == '\n' ? 1 : 0;
    }
    status_ = Status(Code::kParseError,
                     std::to_string(line) + ":" + std::to_string(column) + ": " + message);
    token_ = {TokenKind::kEnd, "", text_.size()};
    return kNone;
  }
  ExprId fail(const std::string& message) {
    const bool end = token_.kind == TokenKind::kEnd;
    return fail_at(token_.at,
                   message + ", found " + (end ? "the end" : "'" + std::string(token_.text) + "'"));
  }

  Token take() {
    const Token t = token_;
    if (ok()) token_ = next_token(text_, token_.at + token_.text.size());
    return t;
  }
  bool at(std::string_view text) const {
    return token_.kind != TokenKind::kEnd && token_.text == text;
  }
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
    if (token_.kind != TokenKind::kNumber || !read_number(token_.text, v)) {
      fail("expected a count");
      return 0;
    }
    take();
    return v;
  }

  DType parse_dtype() {
    const std::optional<DType> t = dtype_from_name(token_.text);
    if (!t) fail("expected an element type");
    take();
    return t.value_or(DType::kI64);
  }

  // The number in a name such as b12.
  static std::optional<uint32_t> numbered(const Token& t, char letter) {
    uint32_t v = 0;
    if (t.kind != TokenKind::kName || t.text[0] != letter || t.text.size() < 2) return {};
    if (!is_digit(t.text[1]) || !read_number(t.text.substr(1), v)) return {};
    return v;
  }

  void parse_buffer() {
    if (numbered(token_, 'b') != kernel_.buffers.size()) {
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
    } else if (accept("scratch")) {
      b.access = Access::kScratch;
    } else {
      expect("read");
    }
    kernel_.buffers.push_back(std::move(b));
  }

  void parse_table() {
    if (numbered(token_, 'c') != tables_.size()) {
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

  VarId declare(DType t, int64_t extent, const Token& name) {
    const std::optional<uint32_t> number = numbered(name, 'v');
    if (!number || vars_.contains(*number)) fail_at(name.at, "expected the name of a new variable");
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
    const std::optional<uint32_t> number = numbered(token_, 'v');
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
    if (!number || lets_.contains(*number)) fail_at(name.at, "expected the name of a new let");
    expect(":");
    const DType t = parse_dtype();
    expect("=");
    const size_t start = token_.at;
    const ExprId e = parse_expr();
    if (!ok()) return;
    if (kernel_.pool.dtype(e) != t) fail_at(start, "a value of another type than its let's");
    lets_[*number] = e;
  }

  uint32_t parse_store() {
    const std::optional<uint32_t> buffer = numbered(token_, 'b');
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
    const auto op = kOps.find(token_.text);
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
    const size_t start = token_.at;
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
    const Token start = token_;
    if (accept("bits")) {
      expect("(");
      const Token digits = take();
      uint64_t word = 0;
      if (digits.text.substr(0, 2) != "0x" || !read_number(digits.text.substr(2), word, 16)) {
        fail_at(digits.at, "expected a hexadecimal number");
      }
      expect(")");
      return word;
    }
    std::string text = accept("-") ? "-" : "";
    text += take().text;
    const std::optional<Word> word = word_of(text, t);
    if (!word) fail_at(start.at, "expected a value of type " + std::string(dtype_name(t)));
    return word.value_or(0);
  }

  // A literal: its type stands behind it, so it is read twice.
  ExprId parse_constant() {
    const Token start = token_;
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
    const Token after = token_;
    token_ = start;
    const Word word = parse_word(t);
    if (!ok()) return kNone;
    token_ = after;
    return kernel_.pool.constant(t, word);
  }

  // expression := comparison, or load "if" comparison "else" comparison
  ExprId parse_expr() {
    if (++nesting_ > kMaxNesting) fail("nested too deeply");
    const size_t start = token_.at;
    ExprId e = parse_level(0);
    if (ok() && guardable_ == e && last_load_at_ == start && at("if")) e = parse_guard(e);
    --nesting_;
    return e;
  }

  ExprId parse_guard(ExprId load) {
    const size_t start = token_.at;
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
      const size_t start = token_.at;
      take();
      const ExprId b = parse_level(level + 1);
      e = binary(start, *op, e, b);
      if (level == 0) break;
    }
    return e;
  }

  ExprId binary(size_t start, Op op, ExprId a, ExprId b) {
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
    const Token t = token_;
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
    if (t.kind == TokenKind::kName) return parse_call();
    return fail("expected a value");
  }

  ExprId parse_offset() {
    take();
    expect("[");
    const size_t start = token_.at;
    const ExprId offset = parse_expr();
    expect("]");
    if (!ok()) return kNone;
    if (kernel_.pool.dtype(offset) != DType::kI64) return fail_at(start, "expected an i64");
    return offset;
  }

  ExprId parse_load(uint32_t buffer) {
    if (buffer >= kernel_.buffers.size()) return fail("expected a buffer");
    const size_t start = token_.at;
    const ExprId offset = parse_offset();
    if (!ok()) return kNone;
    last_load_at_ = start;
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
      return fail_at(name.at, "unknown function '" + std::string(name.text) + "'");
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
        return fail_at(name.at, "a bitcast between types of different size");
      }
      return p.bitcast(args[0], *to);
    }
    const Op op = call->second.first;
    if (count == 1) return p.unary(op, args[0]);
    if (count == 2) return binary(name.at, op, args[0], args[1]);
    const bool select = op == Op::kSelect;
    const DType first = select ? DType::kBool : p.dtype(args[1]);
    if (p.dtype(args[0]) != first || p.dtype(args[1]) != p.dtype(args[2])) {
      return fail_at(name.at, "operands of different types");
    }
    return select ? p.select(args[0], args[1], args[2]) : p.fma(args[0], args[1], args[2]);
  }

  std::string_view text_;
  Token token_;
  Status status_;
  Kernel kernel_;
  std::map<uint32_t, VarId> vars_;
  std::map<uint32_t, ExprId> lets_;
  std::vector<uint32_t> tables_;
  ExprId guardable_ = kNone;  // the unguarded load just read
  size_t last_load_at_ = 0;
  int nesting_ = 0;
};

}  // namespace

Result<Kernel> parse_kernel(std::string_view text) { return Parser(text).run(); }

}  // namespace pyc::loop
