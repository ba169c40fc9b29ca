#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/convert.h"
#include "ir/graph.h"
#include "ir/lexer.h"
#include "ir/literal.h"
#include "ir/rules.h"

// Recursive descent without recursion: the grammar (docs/IR.md) has no nesting.

namespace pyc::ir {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const OpSet& ops, int64_t max_generated_bytes)
      : text_bytes_(text.size()), lexer_(text), ops_(ops), generated_left_(max_generated_bytes) {}

  Result<Graph> run() {
    PYC_TRY(signature());
    PYC_TRY(expect("{"));
    while (!accept("}")) PYC_TRY(statement());
    if (peek().kind != TokenKind::kEnd) return expected("end of text after the graph");
    for (const Token& name : outputs_) {
      PYC_ASSIGN(const ValueId id, use(name));
      graph_.outputs.push_back(id);
    }
    return std::move(graph_);
  }

 private:
  const Token& peek() const { return lexer_.peek(); }

  Status fail(const Token& at, std::string_view message, Code code = Code::kParseError) const {
    return {code, fmt::format("{}: {}", lexer_.position(at), message)};
  }
  Status expected(std::string_view what) const {
    return fail(peek(), fmt::format("expected {}, found {}", what, peek().found()));
  }

  bool accept(std::string_view punct_or_word) {
    if (!peek().is(punct_or_word)) return false;
    lexer_.next();
    return true;
  }
  Status expect(std::string_view punct_or_word) {
    return accept(punct_or_word) ? Status() : expected(fmt::format("'{}'", punct_or_word));
  }
  Status key(std::string_view name) {
    PYC_TRY(expect(name));
    return expect("=");
  }
  Result<Token> take(TokenKind kind, std::string_view what) {
    if (peek().kind != kind) return expected(what);
    return lexer_.next();
  }

  // The items up to `close`, with commas between them.
  template <class Item>
  Status items(std::string_view close, Item item) {
    if (accept(close)) return {};
    do {
      PYC_TRY(item());
    } while (accept(","));
    return accept(close) ? Status() : expected(fmt::format("',' or '{}'", close));
  }

  Status signature() {
    PYC_TRY(expect("graph"));
    PYC_ASSIGN(const Token name, take(TokenKind::kGlobal, "the graph's name, like @main"));
    graph_.name = name.decoded();
    PYC_TRY(expect("("));
    PYC_TRY(items(")", [this] { return input(); }));
    PYC_TRY(expect("->"));
    PYC_TRY(expect("("));
    return items(")", [this]() -> Status {
      PYC_ASSIGN(const Token output, take(TokenKind::kValue, "a value, like %y"));
      outputs_.push_back(output);
      return {};
    });
  }

  Status input() {
    PYC_ASSIGN(const Token name, take(TokenKind::kValue, "an input, like %x"));
    PYC_TRY(expect(":"));
    PYC_ASSIGN(TensorType input_type, type());
    PYC_ASSIGN(const ValueId id,
               define(name, {{}, std::move(input_type), ValueKind::kInput, kNoId, nullptr}));
    graph_.inputs.push_back(id);
    return {};
  }

  Result<DType> dtype(std::string_view what) {
    const auto found = dtype_from_name(peek().text);
    if (!found) return expected(what);
    lexer_.next();
    return *found;
  }

  Result<TensorType> type() {
    const Token first = peek();
    TensorType result;
    PYC_ASSIGN(result.dtype, dtype("a type, like f32[2,3]"));
    PYC_TRY(expect("["));
    PYC_TRY(items("]", [&]() -> Status {
      const auto dim = parse_element(peek().text, DType::kI64);
      if (peek().kind != TokenKind::kNumber || !dim || static_cast<int64_t>(*dim) < 0) {
        return expected(fmt::format("a dim from 0 to {}", kMaxElements));
      }
      result.shape.push_back(static_cast<int64_t>(*dim));
      lexer_.next();
      return {};
    }));
    const Status accepted = check_type(result);
    if (!accepted.ok()) return fail(first, accepted.message());
    return result;
  }

  // Gives the value of that name its place in the graph.
  Result<ValueId> define(const Token& token, Value value) {
    value.name = token.decoded();
    if (value.name.empty()) return fail(token, "expected a name that is not empty, found %\"\"");
    const auto id = static_cast<ValueId>(graph_.values.size());
    if (!names_.emplace(value.name, id).second) {
      return fail(token, fmt::format("%{} is defined twice", shown_name(value.name)));
    }
    graph_.values.push_back(std::move(value));
    return id;
  }

  // The value of that name, which must be defined already.
  Result<ValueId> use(const Token& token) const {
    const std::string name = token.decoded();
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    std::vector<std::string_view> known;
    known.reserve(names_.size());
    for (const auto& entry : names_) known.push_back(entry.first);
    const std::string_view close = closest_name(name, known);
    const std::string hint = close.empty() ? "" : did_you_mean("%" + format_name(close));
    return fail(token,
                fmt::format("%{} is not defined before it is used{}", shown_name(name), hint));
  }

  Status statement() {
    std::vector<Token> names;
    do {
      PYC_ASSIGN(const Token name,
                 take(TokenKind::kValue, names.empty() ? "a value, like %y, or '}'" : "a value"));
      names.push_back(name);
    } while (accept(","));
    PYC_TRY(expect("="));
    if (!accept("const")) return node(names).with_node(names[0].decoded());
    if (names.size() != 1) return fail(names[1], "expected one name for a constant, found more");
    return constant(names[0]);
  }

  Status constant(const Token& name) {
    PYC_ASSIGN(TensorType constant_type, type());
    const Token form = peek();
    std::shared_ptr<const ConstData> data;
    if (accept("dense")) {
      PYC_ASSIGN(data, dense(constant_type));
    } else if (accept("splat")) {
      PYC_TRY(expect("("));
      PYC_ASSIGN(const Word value, element(constant_type.dtype));
      PYC_TRY(expect(")"));
      PYC_TRY(reserve_generated(form, constant_type));
      data = splat_word(constant_type, value);
    } else if (accept("random")) {
      PYC_ASSIGN(data, random(form, constant_type));
    } else {
      return expected("'dense', 'splat' or 'random'");
    }
    return define(name,
                  {{}, std::move(constant_type), ValueKind::kConstant, kNoId, std::move(data)})
        .status();
  }

  // One literal of the type; words are true, false, nan and inf.
  Result<Word> element(DType dtype) {
    const bool literal = peek().kind == TokenKind::kNumber || peek().kind == TokenKind::kWord;
    const auto value = literal ? parse_element(peek().text, dtype) : std::nullopt;
    if (!value) return expected(fmt::format("a value of type {}", dtype_name(dtype)));
    lexer_.next();
    return *value;
  }

  Result<std::shared_ptr<const ConstData>> dense(const TensorType& dense_type) {
    PYC_TRY(expect("("));
    const auto size = static_cast<size_t>(dtype_size(dense_type.dtype));
    const auto elements = static_cast<uint64_t>(dense_type.elements());
    std::vector<std::byte> bytes;
    // The text may promise more than it holds: an element takes two characters.
    bytes.reserve(std::min(elements, text_bytes_ / 2 + 1) * size);
    uint64_t count = 0;
    Token last = peek();
    PYC_TRY(items(")", [&]() -> Status {
      last = peek();
      if (count == elements) {
        return fail(last, fmt::format("expected {} elements for {}, found more", elements,
                                      dense_type.to_string()));
      }
      PYC_ASSIGN(const Word value, element(dense_type.dtype));
      bytes.resize(bytes.size() + size);
      store_word(bytes.data() + count * size, dense_type.dtype, value);
      ++count;
      return {};
    }));
    if (count != elements) {
      return fail(last, fmt::format("expected {} elements for {}, found {}", elements,
                                    dense_type.to_string(), count));
    }
    return dense_data(std::move(bytes));
  }

  Result<std::shared_ptr<const ConstData>> random(const Token& form,
                                                  const TensorType& random_type) {
    PYC_TRY(expect("("));
    PYC_TRY(key("seed"));
    PYC_ASSIGN(const Word seed, element(DType::kU64));
    PYC_TRY(expect(","));
    PYC_TRY(key("lo"));
    PYC_ASSIGN(const Word lo, element(DType::kF64));
    PYC_TRY(expect(","));
    PYC_TRY(key("hi"));
    PYC_ASSIGN(const Word hi, element(DType::kF64));
    PYC_TRY(expect(")"));
    const auto from = std::bit_cast<double>(lo);
    const auto to = std::bit_cast<double>(hi);
    const Status range = check_random_range(from, to);
    if (!range.ok()) return fail(form, range.message());
    PYC_TRY(reserve_generated(form, random_type));
    return random_data(random_type, seed, from, to);
  }

  // A few characters can stand for gigabytes here.
  Status reserve_generated(const Token& form, const TensorType& type) {
    if (type.bytes() > generated_left_) {
      return fail(form,
                  fmt::format("expected at most {} more generated bytes, found {} for {}",
                              generated_left_, type.bytes(), type.to_string()),
                  Code::kBudgetExceeded);
    }
    generated_left_ -= type.bytes();
    return {};
  }

  Status node(const std::vector<Token>& names) {
    PYC_ASSIGN(const Token op, take(TokenKind::kWord, "an op or 'const'"));
    const OpDef* def = ops_.find(op.text);
    if (def == nullptr) {
      const std::string hint = did_you_mean(ops_.suggest(op.text));
      return fail(op, fmt::format("unknown op {}{}", op.found(), hint), Code::kUnknownOp);
    }
    Node node{def, {}, {}, {}, fmt::format("line {}", op.line)};
    std::vector<TensorType> input_types;
    PYC_TRY(expect("("));
    PYC_TRY(items(")", [&]() -> Status {
      PYC_ASSIGN(const Token name, take(TokenKind::kValue, "a value, like %x"));
      PYC_ASSIGN(const ValueId id, use(name));
      node.inputs.push_back(id);
      input_types.push_back(graph_.values[id].type);
      return {};
    }));
    Attrs given;
    if (accept("{")) PYC_TRY(items("}", [&] { return attr(*def, given); }));
    const Status arity = check_arity(*def, node.inputs.size());
    if (!arity.ok()) return fail(op, arity.message());
    auto complete = complete_attrs(*def, std::move(given));
    if (!complete.ok()) return fail(op, complete.status().message());
    node.attrs = std::move(*complete);
    auto types = infer_outputs(*def, input_types, node.attrs);
    if (!types.ok()) return fail(op, types.status().message(), types.status().code());
    if (names.size() != types->size()) {
      return fail(names[0], fmt::format("expected {} names for the outputs of op '{}', found {}",
                                        types->size(), def->name, names.size()));
    }
    if (accept(":")) PYC_TRY(written_types(op, names, *types));
    return add(std::move(node), names, std::move(*types));
  }

  Status add(Node node, const std::vector<Token>& names, std::vector<TensorType> types) {
    const auto producer = static_cast<NodeId>(graph_.nodes.size());
    for (size_t i = 0; i < names.size(); ++i) {
      PYC_ASSIGN(
          const ValueId id,
          define(names[i], {{}, std::move(types[i]), ValueKind::kResult, producer, nullptr}));
      node.outputs.push_back(id);
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  // The types after the colon, which must be the inferred ones.
  Status written_types(const Token& op, const std::vector<Token>& names,
                       const std::vector<TensorType>& inferred) {
    for (size_t i = 0; i < inferred.size(); ++i) {
      if (i != 0) PYC_TRY(expect(","));
      const Token first = peek();
      PYC_ASSIGN(const TensorType written, type());
      if (written == inferred[i]) continue;
      const std::string name = shown_name(names[i].decoded());
      return fail(first,
                  fmt::format("expected {} for %{}, which op '{}' gives, found {}",
                              inferred[i].to_string(), name, op.text, written.to_string()),
                  written.dtype == inferred[i].dtype ? Code::kShapeMismatch : Code::kDtypeMismatch);
    }
    return {};
  }

  Status attr(const OpDef& op, Attrs& attrs) {
    PYC_ASSIGN(const Token name, take(TokenKind::kWord, "an attribute's name"));
    const auto def = std::find_if(op.attrs.begin(), op.attrs.end(),
                                  [&](const AttrDef& a) { return a.name == name.text; });
    if (def == op.attrs.end()) return fail(name, unknown_attr(op, name.text).message());
    PYC_TRY(expect("="));
    PYC_ASSIGN(Attr value, attr_value(def->kind));
    if (!attrs.emplace(name.text, std::move(value)).second) {
      return fail(name, fmt::format("attribute {} is given twice", name.found()));
    }
    return {};
  }

  Result<Attr> attr_value(AttrKind kind) {
    switch (kind) {
      case AttrKind::kInt:
        return attr_scalar<int64_t>(DType::kI64);
      case AttrKind::kFloat:
        return attr_scalar<double>(DType::kF64);
      case AttrKind::kBool: {
        PYC_ASSIGN(const Word value, element(DType::kBool));
        return Attr(value != 0);
      }
      case AttrKind::kString: {
        PYC_ASSIGN(const Token value, take(TokenKind::kString, "a string in double quotes"));
        return Attr(value.decoded());
      }
      case AttrKind::kDType: {
        PYC_ASSIGN(Attr value, dtype("a dtype, like f32"));
        return value;
      }
      case AttrKind::kInts:
        return attr_list<int64_t>(DType::kI64);
      case AttrKind::kFloats:
        return attr_list<double>(DType::kF64);
    }
    return expected("an attribute of a known kind");
  }

  template <class T>
  Result<Attr> attr_scalar(DType dtype) {
    PYC_ASSIGN(const Word value, element(dtype));
    return Attr(std::bit_cast<T>(value));
  }

  template <class T>
  Result<Attr> attr_list(DType dtype) {
    std::vector<T> list;
    PYC_TRY(expect("["));
    PYC_TRY(items("]", [&]() -> Status {
      PYC_ASSIGN(const Word value, element(dtype));
      list.push_back(std::bit_cast<T>(value));
      return {};
    }));
    return Attr(std::move(list));
  }

  const uint64_t text_bytes_;
  Lexer lexer_;
  const OpSet& ops_;
  int64_t generated_left_;
  Graph graph_;
  std::map<std::string, ValueId, std::less<>> names_;
  std::vector<Token> outputs_;
};

}  // namespace

Result<Graph> parse(std::string_view text, const OpSet& ops, int64_t max_generated_bytes) {
  // Value ids have 32 bits, and a value takes more than one character.
  if (text.size() >= UINT32_MAX) {
    return Status(Code::kBudgetExceeded, "1:1: expected less than 4 GiB of text, found more");
  }
  return Parser(text, ops, max_generated_bytes).run();
}

}  // namespace pyc::ir
