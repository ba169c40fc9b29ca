#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/literal.h"
#include "ir/rules.h"
#include "ir/text_parser.h"
#include "open/text.h"

// Recursive descent. Regions, types and sequences nest, each at most kMaxDepth deep.

namespace pyc::open {
namespace {

constexpr int kMaxDepth = 128;  // importers stop at 64 regions

bool is_integer(const Token& token) {
  const std::string_view digits = token.text.substr(token.text.starts_with('-') ? 1 : 0);
  return token.kind == TokenKind::kNumber && !digits.empty() &&
         digits.find_first_not_of("0123456789") == std::string_view::npos;
}

class OpenParser : private ir::TextParser {
 public:
  OpenParser(std::string_view text, const OpenOps& ops, int64_t max_generated_bytes,
             std::span<const SharedBytes> stored)
      : ir::TextParser(text, max_generated_bytes), ops_(ops), stored_(stored) {}

  Result<std::shared_ptr<const OpenGraph>> run() {
    PYC_TRY(expect("open"));
    PYC_TRY(expect("graph"));
    PYC_ASSIGN(std::shared_ptr<const OpenGraph> graph, graph_text(nullptr));
    if (peek().kind != TokenKind::kEnd) return expected("end of text after the graph");
    return graph;
  }

 private:
  struct Scope {
    Scope* outer = nullptr;
    OpenGraph graph = {};
    std::map<std::string, OpenId, std::less<>> names = {};
  };

  // Runs `parse` one level deeper.
  template <class Parse>
  auto nested(Parse parse) -> decltype(parse()) {
    if (depth_ == kMaxDepth) {
      return fail(peek(), fmt::format("expected at most {} levels of nesting, found more", depth_));
    }
    ++depth_;
    auto result = parse();
    --depth_;
    return result;
  }

  // From the name on, which "open graph" or "region" stands before.
  Result<std::shared_ptr<const OpenGraph>> graph_text(Scope* outer) {
    Scope scope{.outer = outer};
    PYC_ASSIGN(const Token name, take(TokenKind::kGlobal, "the graph's name, like @main"));
    scope.graph.name = name.decoded();
    PYC_TRY(expect("("));
    PYC_TRY(items(")", [&] { return input(scope); }));
    if (outer != nullptr && accept("captures")) {
      PYC_TRY(expect("("));
      PYC_TRY(items(")", [&] { return capture(scope); }));
    }
    PYC_TRY(expect("->"));
    PYC_TRY(expect("("));
    std::vector<Token> outputs;
    PYC_TRY(items(")", [&]() -> Status {
      PYC_ASSIGN(const Token output, take(TokenKind::kValue, "a value, like %y"));
      outputs.push_back(output);
      return {};
    }));
    PYC_TRY(expect("{"));
    while (!accept("}")) PYC_TRY(statement(scope));
    for (const Token& output : outputs) {
      PYC_ASSIGN(const OpenId id, use(scope, output));
      scope.graph.outputs.push_back(id);
    }
    return std::make_shared<const OpenGraph>(std::move(scope.graph));
  }

  Status input(Scope& scope) {
    PYC_ASSIGN(const Token name, take(TokenKind::kValue, "an input, like %x"));
    PYC_TRY(expect(":"));
    PYC_ASSIGN(const OpenId id, define(scope, name));
    scope.graph.inputs.push_back(id);
    return open_type(scope.graph.values[id].type);
  }

  Status capture(Scope& scope) {
    PYC_ASSIGN(const Token inner, take(TokenKind::kValue, "a captured value, like %x = %x"));
    PYC_TRY(expect("="));
    PYC_ASSIGN(const Token outer, take(TokenKind::kValue, "a value of the graph around this one"));
    PYC_ASSIGN(const OpenId from, use(*scope.outer, outer));
    PYC_ASSIGN(const OpenId id, define(scope, inner));
    scope.graph.captures.push_back({from, id});
    return declared(scope, {id});
  }

  Result<OpenId> define(Scope& scope, const Token& token) {
    std::string name = token.decoded();
    if (name.empty()) return fail(token, "expected a name that is not empty, found %\"\"");
    const auto id = static_cast<OpenId>(scope.graph.values.size());
    if (!scope.names.emplace(name, id).second) {
      return fail(token, fmt::format("%{} is defined twice", ir::shown_name(name)));
    }
    scope.graph.values.push_back({.name = std::move(name), .type = {}, .constant = {}});
    return id;
  }

  // The value of that name, which must be defined already.
  Result<OpenId> use(const Scope& scope, const Token& token) const {
    const std::string name = token.decoded();
    const auto found = scope.names.find(name);
    if (found != scope.names.end()) return found->second;
    std::vector<std::string_view> known;
    known.reserve(scope.names.size());
    for (const auto& entry : scope.names) known.push_back(entry.first);
    const std::string_view close = ir::closest_name(name, known);
    const bool around = scope.outer != nullptr && scope.outer->names.contains(name);
    const std::string hint = around          ? "; it is one to capture"
                             : close.empty() ? ""
                                             : ir::did_you_mean("%" + ir::format_name(close));
    return fail(token,
                fmt::format("%{} is not defined before it is used{}", ir::shown_name(name), hint));
  }

  // A value, or nothing for "_".
  Result<std::optional<Token>> value_or_none(std::string_view what) {
    if (accept("_")) return std::optional<Token>();
    PYC_ASSIGN(const Token token, take(TokenKind::kValue, what));
    return std::optional(token);
  }

  Status statement(Scope& scope) {
    std::vector<std::optional<Token>> names;
    if (accept("(")) {
      PYC_TRY(expect(")"));
    } else {
      do {
        PYC_ASSIGN(const std::optional<Token> name,
                   value_or_none(names.empty() ? "a value, like %y, or '}'" : "a value"));
        names.push_back(name);
      } while (accept(","));
    }
    PYC_TRY(expect("="));
    const bool outer = peek().is("outer");
    if (!outer && !peek().is("const")) return node(scope, names);
    if (names.size() != 1 || !names[0]) {
      return fail(peek(), "expected one name for a constant, found another number");
    }
    next();
    PYC_ASSIGN(DynValue content, outer ? outer_constant(scope) : literal());
    PYC_ASSIGN(const OpenId id, define(scope, *names[0]));
    scope.graph.values[id].constant = std::move(content);
    return declared(scope, {id});
  }

  Result<DynValue> outer_constant(const Scope& scope) {
    PYC_ASSIGN(const Token name,
               take(TokenKind::kValue, "a constant of the graph around this one"));
    if (scope.outer == nullptr) return fail(name, "there is no graph around this one");
    PYC_ASSIGN(const OpenId id, use(*scope.outer, name));
    const auto& constant = scope.outer->graph.values[id].constant;
    if (!constant) return fail(name, fmt::format("{} is no constant", name.found()));
    return *constant;
  }

  Status node(Scope& scope, const std::vector<std::optional<Token>>& names) {
    OpenNode made;
    PYC_ASSIGN(made.op, op(made.version));
    PYC_TRY(expect("("));
    PYC_TRY(items(")", [&]() -> Status {
      PYC_ASSIGN(const std::optional<Token> name, value_or_none("a value, like %x, or '_'"));
      OpenId id = kAbsentId;
      if (name) {
        PYC_ASSIGN(id, use(scope, *name));
      }
      made.inputs.push_back(id);
      return {};
    }));
    if (accept("{")) PYC_TRY(items("}", [&] { return attr(scope, made.attrs); }));
    if (!names.empty() && names[0]) made.name = names[0]->decoded();
    if (peek().kind == TokenKind::kGlobal) made.name = next().decoded();
    for (const std::optional<Token>& name : names) {
      OpenId id = kAbsentId;
      if (name) {
        PYC_ASSIGN(id, define(scope, *name));
      }
      made.outputs.push_back(id);
    }
    PYC_TRY(declared(scope, made.outputs));
    scope.graph.nodes.push_back(std::move(made));
    return {};
  }

  // onnx.Relu[14]
  Result<const OpenOp*> op(int& version) {
    PYC_ASSIGN(const Token name, take(TokenKind::kWord, "an op, like onnx.Relu[14], or 'const'"));
    PYC_TRY(expect("["));
    const auto number = ir::parse_element(peek().text, DType::kI32);
    if (!is_integer(peek()) || !number || static_cast<int64_t>(*number) < 0) {
      return expected("the version of the op's set, like 14");
    }
    version = static_cast<int>(*number);
    next();
    PYC_TRY(expect("]"));
    const OpenOp* found = ops_.find(name.text, version);
    if (found != nullptr) return found;
    const std::string close = ops_.suggest(name.text);
    return fail(name,
                close == name.text
                    ? fmt::format("op {} is not known in version {}", name.found(), version)
                    : fmt::format("unknown op {}{}", name.found(), ir::did_you_mean(close)),
                Code::kUnknownOp);
  }

  // The types after a colon, one for each value; they may be left out.
  Status declared(Scope& scope, const std::vector<OpenId>& ids) {
    if (!accept(":")) return {};
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i != 0) PYC_TRY(expect(","));
      OpenType unused;
      PYC_TRY(open_type(ids[i] == kAbsentId ? unused : scope.graph.values[ids[i]].type));
    }
    return {};
  }

  // Into a type that is still unknown.
  Status open_type(OpenType& type) {
    for (const auto& [word, kind] : {std::pair("sequence", OpenType::Kind::kSequence),
                                     std::pair("optional", OpenType::Kind::kOptional)}) {
      if (!accept(word)) continue;
      type.kind = kind;
      PYC_TRY(expect("("));
      auto element = std::make_shared<OpenType>();
      PYC_TRY(nested([&] { return open_type(*element); }));
      type.element = std::move(element);
      return expect(")");
    }
    if (accept("?")) {
      if (!peek().is("[")) return {};
      type.kind = OpenType::Kind::kTensor;
    } else if (accept("string")) {
      type.kind = OpenType::Kind::kStrings;
    } else {
      type.kind = OpenType::Kind::kTensor;
      PYC_ASSIGN(type.dtype, dtype("a type, like f32[N,3]"));
    }
    PYC_TRY(expect("["));
    if (accept("*")) return expect("]");
    type.shape.emplace();
    return items("]", [&]() -> Status {
      PYC_ASSIGN(OpenType::Dim one, open_dim());
      type.shape->push_back(std::move(one));
      return {};
    });
  }

  // 3, ?, N or N=3.
  Result<OpenType::Dim> open_dim() {
    OpenType::Dim out;
    if (accept("?")) return out;
    const bool named = peek().kind == TokenKind::kWord || peek().kind == TokenKind::kString;
    if (named) {
      const Token name = next();
      out.symbol = name.decoded();
      if (out.symbol.empty()) return fail(name, "expected a name that is not empty, found \"\"");
      if (!accept("=")) return out;
    } else if (peek().kind != TokenKind::kNumber) {
      return expected("a dim, like 3, N or ?");
    }
    const Token number = peek();
    PYC_ASSIGN(out.value, dim());
    if (out.value <= ir::kMaxElements) return out;
    return fail(number, fmt::format("expected a dim from 0 to {}, found more", ir::kMaxElements));
  }

  // What stands after "const".
  Result<DynValue> literal() {
    if (accept("nothing")) return DynValue();
    if (accept("sequence")) {
      PYC_TRY(expect("("));
      std::vector<DynValue> all;
      PYC_TRY(items(")", [&]() -> Status {
        PYC_ASSIGN(DynValue item, nested([&] { return literal(); }));
        all.push_back(std::move(item));
        return {};
      }));
      return DynValue::of_items(std::move(all));
    }
    if (accept("string")) return strings();
    PYC_ASSIGN(ir::TensorType tensor, type());
    DynValue value;
    value.kind = DynValue::Kind::kTensor;
    value.dtype = tensor.dtype;
    value.shape = tensor.shape;
    if (accept("stored")) {
      PYC_ASSIGN(value.bytes, stored_bytes(tensor));
      return value;
    }
    PYC_ASSIGN(const std::shared_ptr<const ir::ConstData> data, const_data(tensor));
    value.bytes = data->bytes;
    return value;
  }

  Result<SharedBytes> stored_bytes(const ir::TensorType& tensor) {
    PYC_TRY(expect("("));
    const Token token = peek();
    PYC_ASSIGN(const Word index, element(DType::kU64));
    PYC_TRY(expect(")"));
    if (index >= stored_.size()) {
      return fail(token, fmt::format("{} tensors are stored beside the text", stored_.size()));
    }
    if (stored_[index].size() != static_cast<size_t>(tensor.bytes())) {
      return fail(token, fmt::format("expected {} stored bytes for {}, found {}", tensor.bytes(),
                                     tensor.to_string(), stored_[index].size()));
    }
    return stored_[index];
  }

  Result<DynValue> strings() {
    const Token first = peek();
    ir::TensorType shape{DType::kU8, {}};
    PYC_TRY(expect("["));
    PYC_TRY(items("]", [&]() -> Status {
      PYC_ASSIGN(const int64_t size, dim());
      shape.shape.push_back(size);
      return {};
    }));
    const Status accepted = check_type(shape);
    if (!accepted.ok()) return fail(first, accepted.message());
    PYC_TRY(expect("dense"));
    PYC_TRY(expect("("));
    PYC_ASSIGN(std::vector<std::string> all, string_items(")"));
    if (static_cast<int64_t>(all.size()) != shape.elements()) {
      return fail(first, fmt::format("expected {} strings for string{}, found {}", shape.elements(),
                                     ir::shape_to_string(shape.shape), all.size()));
    }
    return DynValue::of_strings(std::move(shape.shape), std::move(all));
  }

  Result<std::vector<std::string>> string_items(std::string_view close) {
    std::vector<std::string> all;
    PYC_TRY(items(close, [&]() -> Status {
      PYC_ASSIGN(const Token text, take(TokenKind::kString, "a string in double quotes"));
      all.push_back(text.decoded());
      return {};
    }));
    return all;
  }

  Status attr(Scope& scope, OpenAttrs& attrs) {
    const bool named = peek().kind == TokenKind::kWord || peek().kind == TokenKind::kString;
    if (!named) return expected("an attribute's name");
    const Token name = next();
    PYC_TRY(expect("="));
    PYC_ASSIGN(OpenAttr value, attr_value(scope));
    if (attrs.emplace(name.decoded(), std::move(value)).second) return {};
    return fail(name, fmt::format("attribute {} is given twice", name.found()));
  }

  Result<OpenAttr> attr_value(Scope& scope) {
    if (peek().kind == TokenKind::kString) return OpenAttr(next().decoded());
    if (accept("[")) return list();
    if (accept("const")) return as_attr(literal());
    if (accept("type")) {
      OpenType type;
      PYC_TRY(open_type(type));
      return OpenAttr(std::move(type));
    }
    if (accept("region")) return as_attr(nested([&] { return graph_text(&scope); }));
    if (accept("floats")) return empty<double>();
    if (accept("strings")) return empty<std::string>();
    return number();
  }

  template <class T>
  static Result<OpenAttr> as_attr(Result<T> value) {
    if (!value.ok()) return std::move(value).status();
    return OpenAttr(std::move(*value));
  }

  template <class T>
  Result<OpenAttr> empty() {
    PYC_TRY(expect("["));
    PYC_TRY(expect("]"));
    return OpenAttr(std::vector<T>());
  }

  Result<OpenAttr> number() {
    const bool literal = peek().kind == TokenKind::kNumber || peek().kind == TokenKind::kWord;
    if (!literal) return expected("an attribute's value");
    if (is_integer(peek())) {
      PYC_ASSIGN(const Word value, element(DType::kI64));
      return OpenAttr(static_cast<int64_t>(value));
    }
    PYC_ASSIGN(const Word value, element(DType::kF64));
    return OpenAttr(std::bit_cast<double>(value));
  }

  // After "[": what the first element is, all are.
  Result<OpenAttr> list() {
    if (peek().kind == TokenKind::kString) return as_attr(string_items("]"));
    if (peek().is("]") || is_integer(peek())) return numbers<int64_t>(DType::kI64);
    return numbers<double>(DType::kF64);
  }

  template <class T>
  Result<OpenAttr> numbers(DType dtype) {
    std::vector<T> all;
    PYC_TRY(items("]", [&]() -> Status {
      PYC_ASSIGN(const Word value, element(dtype));
      all.push_back(std::bit_cast<T>(value));
      return {};
    }));
    return OpenAttr(std::move(all));
  }

  const OpenOps& ops_;
  std::span<const SharedBytes> stored_;
  int depth_ = 0;
};

}  // namespace

bool is_open_text(std::string_view text) { return Lexer(text, ir::kGraphText).peek().is("open"); }

Result<std::shared_ptr<const OpenGraph>> parse_open(std::string_view text, const OpenOps& ops,
                                                    int64_t max_generated_bytes,
                                                    std::span<const SharedBytes> stored) {
  // Value ids have 32 bits, and a value takes more than one character.
  if (text.size() >= UINT32_MAX) {
    return Status(Code::kBudgetExceeded, "1:1: expected less than 4 GiB of text, found more");
  }
  return OpenParser(text, ops, max_generated_bytes, stored).run();
}

}  // namespace pyc::open
