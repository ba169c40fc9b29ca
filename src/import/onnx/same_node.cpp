// Nodes that are one node of Graph IR, as its op says (ir::OnnxNode).

#include <algorithm>

#include "import/onnx/rules.h"

namespace pyc::onnx {

Operands operands_of(CloseContext& c, size_t required, std::string_view names) {
  Operands o;
  for (size_t i = 0; i < required; ++i) o.inputs.push_back(c.input(i));
  size_t i = required;
  for (const ir::OnnxWord& name : ir::onnx_words(names)) {
    if (c.has(i)) {
      o.inputs.push_back(c.input(i));
      o.with += (o.with.empty() ? "" : ",") + std::string(name.own);
    }
    ++i;
  }
  return o;
}

namespace {

// Optional inputs at the end may be left out, by an empty name too.
std::vector<ValueId> inputs_given(CloseContext& c) {
  size_t count = c.inputs();
  while (count > 0 && !c.has(count - 1)) --count;
  std::vector<ValueId> given;
  for (size_t i = 0; i < count; ++i) given.push_back(c.input(i));
  return given;
}

ir::Attr attr_as(CloseContext& c, const std::string& name, ir::AttrKind kind) {
  switch (kind) {
    case ir::AttrKind::kInt:
      return c.attr_int(name, 0);
    case ir::AttrKind::kFloat:
      return c.attr_float(name, 0.0);
    case ir::AttrKind::kBool:
      return c.attr_int(name, 0) != 0;
    case ir::AttrKind::kDType:
      return dtype_attr(c, name, DType::kF32);
    case ir::AttrKind::kString:
      return c.attr_string(name, "");
    case ir::AttrKind::kInts:
      return c.attr_ints(name);
    case ir::AttrKind::kFloats:
      return c.attr_floats(name);
  }
  return int64_t{0};
}

}  // namespace

Status close_same(CloseContext& c) {
  const ir::OpDef& op = *c.node().op->same;
  Attrs attrs;
  for (const ir::OnnxWord& word : ir::onnx_words(op.onnx.attrs)) {
    const auto def = std::find_if(op.attrs.begin(), op.attrs.end(),
                                  [&](const ir::AttrDef& a) { return a.name == word.own; });
    PYC_CHECK(def != op.attrs.end(), "OnnxNode names an attribute that the op does not have");
    if (c.has_attr(word.onnx)) {
      attrs[std::string(word.own)] = attr_as(c, std::string(word.onnx), def->kind);
    } else if (def->required) {
      return c.refused(Code::kInvalidArgument,
                       "attribute '" + std::string(word.onnx) + "' is needed");
    }
  }
  std::vector<ValueId> inputs;
  if (op.onnx.optional.empty()) {
    inputs = inputs_given(c);
  } else {
    Operands o = operands_of(c, static_cast<size_t>(op.min_inputs), op.onnx.optional);
    attrs["with"] = std::move(o.with);
    inputs = std::move(o.inputs);
  }
  const ValueId first = c.op(op.name, std::move(inputs), std::move(attrs));
  for (size_t i = 0; i < c.outputs() && c.ok(); ++i) {
    if (c.wants(i)) c.set(i, c.result(first, i));
  }
  return c.status();
}

}  // namespace pyc::onnx
