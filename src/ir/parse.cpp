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

#include "ir/graph.h"
#include "ir/literal.h"
#include "ir/rules.h"
#include "ir/text_parser.h"

// Recursive descent without recursion: the grammar (docs/IR.md) has no nesting.

namespace pyc::ir {
namespace {

class Parser : private TextParser {
 public:
  Parser(std::string_view text, const OpSet& ops, int64_t max_generated_bytes)
      : TextParser(text, max_generated_bytes), ops_(ops) {}

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
    PYC_ASSIGN(std::shared_ptr<const ConstData> data, const_data(constant_type));
    return define(name,
                  {{}, std::move(constant_type), ValueKind::kConstant, kNoId, std::move(data)})
        .status();
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
    streams_.number(*def, given);
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
                  fmt::format("expected {} for %{}, which op '{}' returns, found {}",
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

  const OpSet& ops_;
  StreamNumbers streams_;
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
