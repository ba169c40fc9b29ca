#pragma once

// Small models that between them use every part of the format: what damaged files are made from,
// and the seed corpus of the fuzz targets.

#include "onnx/run_model.h"

namespace pyc::onnx::test {

inline Bytes region_seed() {
  const auto branch = [](const std::string& op) {
    return graph({.outputs = {unshaped("r", kF32)}, .nodes = {node(op, {"a", "x"}, {"r"})}});
  };
  return model(
      {.inputs = {value("c", kBool, {}), value("x", kF32, {2, 3})},
       .outputs = {unshaped("y", kF32)},
       .nodes = {node("Neg", {"x"}, {"a"}), node("If", {"c"}, {"y"},
                                                 {attr_graph("then_branch", branch("Add")),
                                                  attr_graph("else_branch", branch("Sub"))})}});
}

inline Bytes loop_seed() {
  const Bytes body =
      graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), value("s", kF32, {2, 3})},
             .outputs = {unshaped("go", kBool), unshaped("t", kF32)},
             .nodes = {node("Add", {"s", "x"}, {"t"})}});
  return model({.inputs = {value("x", kF32, {2, 3})},
                .outputs = {unshaped("y", kF32)},
                .initializers = {raw_tensor("n", kI64, {}, raw_of(Ints{3}))},
                .nodes = {node("Loop", {"n", "", "x"}, {"y"}, {attr_graph("body", body)})}});
}

inline Bytes function_seed() {
  const Bytes leak =
      function("Leak", {"a"}, {"b"},
               {node("LeakyRelu", {"a"}, {"b"}, {attr_ref("alpha", "slope", 1)})}, {"slope"});
  return model({.inputs = {value("x", kF32, {2, 3})},
                .outputs = {value("y", kF32, {2, 3})},
                .nodes = {node("Leak", {"x"}, {"y"}, {attr_float("slope", 0.5F)}, "call", "f")}},
               18, with_functions({leak}));
}

// Shapes, attributes of every kind and tensors in every form.
inline Bytes mixed_seed() {
  Graph g{.inputs = {value("x", tensor_type(kF32, {named("N"), fixed(3)}))},
          .outputs = {unshaped("y", kF32)}};
  g.initializers = {
      ints("to", {3, -1}), header("k", kF32, {3, 1}) + single(4, 1) + single(4, 2) + single(4, 3),
      header("q", 6, {2}) + numbers(5, {1, 2}), raw_tensor("packed", 22, {3}, Bytes("\x21\x03")),
      header("words", 8, {2}) + text(6, "a") + text(6, "b")};
  g.nodes = {node("Constant", {}, {"c"}, {attr_tensor("value", floats("", {1}, {2}))}),
             node("Transpose", {"x"}, {"t"}, {attr_ints("perm", {1, 0})}, "transpose"),
             node("Reshape", {"t", "to"}, {"r"}, {}, "reshape"),
             node("Mul", {"r", "k"}, {"m"}, {}, "mul"),
             node("Pow", {"m", "c"}, {"p"}, {}, "pow"),
             node("ReduceSum", {"p"}, {"s"}, {attr_int("keepdims", 1)}, "sum"),
             node("Gelu", {"s"}, {"g"}, {attr_string("approximate", "tanh")}, "gelu"),
             node("Concat", {"g", "g"}, {"y"}, {attr_int("axis", 0)}, "concat")};
  g.more =
      text(15, text(1, floats("sparse", {1}, {5})) + text(2, ints("", {5})) + numbers(3, {3, 2})) +
      text(13, value("t", kF32, {3, 2}));
  return model(g, 20);
}

inline std::vector<std::pair<std::string, Bytes>> seeds() {
  return {{"small", model(small_graph())},
          {"regions", region_seed()},
          {"loop", loop_seed()},
          {"function", function_seed()},
          {"mixed", mixed_seed()}};
}

}  // namespace pyc::onnx::test
