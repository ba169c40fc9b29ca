// Files that contradict themselves or ask for what cannot be: each is refused with a code and a
// message that names the node or value.

#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

constexpr int64_t kHuge = INT64_MAX;
const DynValue kMatrix = f32({2, 3}, {1, 2, 3, 4, 5, 6});

// What reading or running the model with x says.
void expect_run_refused(const Bytes& bytes, Code code, const std::string& part) {
  expect_refused(run(bytes, {kMatrix}), code, part);
}

TEST(OnnxRefused, NothingThere) {
  expect_read_refused("", Code::kParseError, "no graph");
  expect_read_refused(text(8, opset(18)), Code::kParseError, "no graph");
}

TEST(OnnxRefused, NoOpset) {
  const Bytes bare = number(1, 8) + text(7, graph(small_graph()));
  expect_read_refused(bare, Code::kVerifyFailed, "imports no opset");
  expect_read_refused(bare + text(8, opset(1, "other")), Code::kVerifyFailed, "node 'product'");
  expect_read_refused(model(small_graph(), 0), Code::kVerifyFailed, "opset 0");
  expect_read_refused(model(small_graph(), -3), Code::kVerifyFailed, "opset -3");
  expect_read_refused(model(small_graph(), int64_t{1} << 40), Code::kVerifyFailed, "opset");
  expect_read_refused(model(small_graph(), 18, text(8, opset(9))), Code::kVerifyFailed,
                      "two versions");
}

TEST(OnnxRefused, UnknownOpsAreAllNamed) {
  Graph g = small_graph();
  g.nodes[0] = node("MatMull", {"x", "w"}, {"p"}, {}, "first");
  g.nodes[2] = node("Relux", {"s"}, {"y"}, {}, "second");
  expect_read_refused(model(g), Code::kUnknownOp,
                      "unknown operator MatMull (opset 18), did you mean 'MatMul'?: node 'first'; "
                      "unknown operator Relux (opset 18), did you mean 'Relu'?: node 'second'");
}

TEST(OnnxRefused, NodesOfOneUnknownOpStandTogether) {
  Graph g{.inputs = {value("x", kF32, {2})}, .outputs = {unshaped("v65", kF32)}};
  for (int i = 0; i < 66; ++i) {
    const std::string in = i == 0 ? "x" : "v" + std::to_string(i - 1);
    g.nodes.push_back(node("Qqqqqqq", {in}, {"v" + std::to_string(i)}, {}, "n" + std::to_string(i),
                           "own.domain"));
  }
  const Bytes bytes = model(g, 18, text(8, opset(2, "own.domain")));
  expect_read_refused(bytes, Code::kUnknownOp,
                      "unknown operator own.domain.Qqqqqqq (opset 2): nodes 'n0', 'n1', 'n2', ");
  expect_read_refused(bytes, Code::kUnknownOp, ", 'n63' and 2 more");
}

TEST(OnnxRefused, AnOpOfALaterOpsetIsNotUnknown) {
  Graph g = small_graph();
  g.nodes[2] = node("Scan", {"s"}, {"y"}, {}, "scan");
  expect_read_refused(model(g, 7), Code::kUnknownOp,
                      "operator Scan is known from opset 8 on, the model imports 7: node 'scan'");
}

TEST(OnnxRefused, AnOpsetNewerThanTheNewestKnown) {
  expect_read_refused(model(small_graph(), 999), Code::kUnsupported,
                      "opset 999 of domain ai.onnx is newer than the newest known, 28");
  expect_read_refused(model(small_graph(), 29), Code::kUnsupported, "opset 29");
  EXPECT_TRUE(read(model(small_graph(), 28)).ok());
  // A domain that is listed and not used is no matter.
  EXPECT_TRUE(read(model(small_graph(), 18, text(8, opset(999, "ai.onnx.ml")))).ok());
}

TEST(OnnxRefused, Cycles) {
  Graph g{.inputs = {value("x", kF32, {2, 3})}, .outputs = {unshaped("b", kF32)}};
  g.nodes = {node("Add", {"x", "b"}, {"a"}, {}, "forth"), node("Neg", {"a"}, {"b"}, {}, "back")};
  expect_read_refused(model(g), Code::kVerifyFailed, "'forth'");
  g.nodes = {node("Add", {"x", "b"}, {"b"}, {}, "self")};
  expect_read_refused(model(g), Code::kVerifyFailed, "'self'");
}

TEST(OnnxRefused, DuplicateNames) {
  Graph g = small_graph();
  g.nodes[1] = node("Add", {"p", "b"}, {"p"}, {}, "again");
  expect_read_refused(model(g), Code::kVerifyFailed, "'again'");
  g = small_graph();
  g.initializers.push_back(g.initializers[0]);
  expect_read_refused(model(g), Code::kVerifyFailed, "'w' is defined twice");
  g = small_graph();
  g.inputs.push_back(g.inputs[0]);
  expect_read_refused(model(g), Code::kVerifyFailed, "'x' is defined twice");
  g = small_graph();
  g.nodes[0] =
      node("LeakyRelu", {"x"}, {"p"}, {attr_float("alpha", 1), attr_float("alpha", 2)}, "k");
  expect_read_refused(model(g), Code::kVerifyFailed, "'alpha' is given twice");
  const Bytes f = function("F", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})});
  expect_read_refused(model(small_graph(), 18, with_functions({f, f})), Code::kVerifyFailed,
                      "'F' is defined twice");
}

TEST(OnnxRefused, OutputsAndInputsThatAreNot) {
  Graph g = small_graph();
  g.outputs.push_back(value("nowhere", kF32, {1}));
  expect_read_refused(model(g), Code::kVerifyFailed, "'nowhere'");
  g = small_graph();
  g.inputs.push_back(value("", kF32, {1}));
  expect_read_refused(model(g), Code::kVerifyFailed, "no name");
  g = small_graph();
  g.initializers.push_back(floats("", {1}, {1}));
  expect_read_refused(model(g), Code::kVerifyFailed, "no name");
}

TEST(OnnxRefused, TypesThatContradict) {
  Graph g = small_graph();
  g.inputs.push_back(value("w", kI64, {3, 2}));  // an f32 initializer
  expect_read_refused(model(g), Code::kDtypeMismatch, "'w'");
  g.inputs.back() = value("w", kF32, {2, 3});
  expect_read_refused(model(g), Code::kShapeMismatch, "'w'");
  g = small_graph();
  g.outputs = {value("y", kI64, {2, 2})};
  expect_run_refused(model(g), Code::kDtypeMismatch, "output 'y'");
  g = small_graph();
  g.initializers[1] = ints("b", {1, 2});  // added to f32
  expect_run_refused(model(g), Code::kDtypeMismatch, "'sum'");
  g = small_graph();
  g.initializers[0] = floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  expect_run_refused(model(g), Code::kShapeMismatch, "'product'");
}

TEST(OnnxRefused, DimsThatCannotBe) {
  Graph g = small_graph();
  g.inputs = {value("x", kF32, {2, -7})};
  expect_read_refused(model(g), Code::kInvalidArgument, "input 'x'");
  g.inputs = {value("x", kF32, {2, kHuge})};
  expect_read_refused(model(g), Code::kInvalidArgument, "input 'x'");
  g = small_graph();
  g.outputs = {value("y", kF32, {2, kHuge})};
  expect_read_refused(model(g), Code::kInvalidArgument, "output 'y'");
  g = small_graph();
  g.initializers[0] = floats("w", {-3, -2}, {1, 2, 3, 4, 5, 6});
  expect_read_refused(model(g), Code::kInvalidArgument, "tensor 'w'");
  for (const Ints& dims :
       {Ints{kHuge, kHuge}, Ints{int64_t{1} << 32, int64_t{1} << 32}, Ints{0, kHuge, kHuge}}) {
    g.initializers[0] = floats("w", dims, {});
    expect_read_refused(model(g), Code::kBudgetExceeded, "tensor 'w'");
    g.initializers[0] = header("w", 8, dims);  // strings
    expect_read_refused(model(g), Code::kBudgetExceeded, "tensor 'w'");
  }
}

TEST(OnnxRefused, InitializersWithoutOrWithWrongData) {
  Graph g = small_graph();
  const auto with = [&](const Bytes& tensor) {
    g.initializers[0] = tensor;
    return model(g);
  };
  expect_read_refused(with(header("w", kF32, {3, 2})), Code::kSizeMismatch, "tensor 'w'");
  expect_read_refused(with(floats("w", {3, 2}, {1, 2, 3, 4, 5})), Code::kSizeMismatch,
                      "tensor 'w'");
  expect_read_refused(with(floats("w", {3, 2}, {1, 2, 3, 4, 5, 6, 7})), Code::kSizeMismatch, "'w'");
  expect_read_refused(with(floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}) + single(4, 1)),
                      Code::kParseError, "given twice");
  expect_read_refused(with(header("w", kF32, {3, 2}) + numbers(7, {1, 2, 3, 4, 5, 6})),
                      Code::kSizeMismatch, "tensor 'w'");
  expect_read_refused(with(raw_tensor("w", 14, {3}, Bytes(23, 'x'))), Code::kSizeMismatch, "'w'");
  expect_read_refused(with(raw_tensor("w", 99, {3}, Bytes(24, 'x'))), Code::kUnsupported, "'w'");
  expect_read_refused(with(raw_tensor("w", -1, {3}, Bytes(24, 'x'))), Code::kUnsupported, "'w'");
  expect_read_refused(with(raw_tensor("w", 22, {7}, Bytes(3, 'x'))), Code::kSizeMismatch, "'w'");
}

TEST(OnnxRefused, SparseTensors) {
  const auto sparse = [&](const Bytes& values, const Bytes& indices, const Ints& dims) {
    Graph g = small_graph();
    g.initializers.erase(g.initializers.begin());
    g.more = text(15, text(1, values) + text(2, indices) + numbers(3, dims));
    return model(g);
  };
  const Bytes one = floats("w", {1}, {5});
  const auto good = run(sparse(one, ints("", {5}), {3, 2}), {kMatrix});
  ASSERT_TRUE(good.ok()) << good.status().to_string();
  EXPECT_EQ(numbers_of(good), (std::vector<double>{0, 16, 0, 31}));
  expect_read_refused(sparse(one, ints("", {6}), {3, 2}), Code::kInvalidArgument, "'w'");
  expect_read_refused(sparse(one, ints("", {-1}), {3, 2}), Code::kInvalidArgument, "'w'");
  expect_read_refused(sparse(one, ints("", {1, 2}), {3, 2}), Code::kSizeMismatch, "'w'");
  expect_read_refused(sparse(one, raw_tensor("", kI64, {1, 2}, raw_of(Ints{kHuge, kHuge})), {3, 2}),
                      Code::kInvalidArgument, "'w'");
  // 4 GiB of zeros out of a hundred bytes.
  expect_read_refused(sparse(one, ints("", {0}), {1 << 15, 1 << 15}), Code::kBudgetExceeded, "'w'");
  expect_read_refused(sparse(one, ints("", {0}), {kHuge, kHuge}), Code::kBudgetExceeded, "'w'");
}

TEST(OnnxRefused, AttributesOfTheWrongKind) {
  expect_run_refused(one_node("LeakyRelu", {}, {attr_int("alpha", 1)}), Code::kInvalidArgument,
                     "'bad_node'");
  expect_run_refused(one_node("Concat", {}, {attr_string("axis", "1")}), Code::kInvalidArgument,
                     "attribute 'axis' is a string");
  expect_run_refused(one_node("Transpose", {}, {attr_int("perm", 1)}), Code::kInvalidArgument,
                     "'bad_node'");
  expect_read_refused(one_node("Relu", {}, {text(1, "a") + number(20, 77)}), Code::kUnsupported,
                      "node 'bad_node'");
  expect_read_refused(one_node("Relu", {}, {text(1, "a") + number(20, 4)}), Code::kUnsupported,
                      "attribute 'a'");
  expect_read_refused(one_node("Relu", {}, {attr_ref("a", "b", 2)}), Code::kVerifyFailed,
                      "outside of a function");
  expect_read_refused(one_node("Relu", {}, {attr_tensor("a", header("t", kF32, {4}))}),
                      Code::kSizeMismatch, "node 'bad_node'");
}

TEST(OnnxRefused, NumbersThatOverflow) {
  const auto shape = [](const std::string& op, const Ints& v) { return one_node(op, {{"s", v}}); };
  for (const Bytes& bytes : {shape("Reshape", {kHuge, kHuge}),
                             shape("Reshape", {-1, kHuge, kHuge, 4}),
                             shape("Reshape", {-2, -3}),
                             shape("Reshape", {-1, -1}),
                             shape("Expand", {kHuge, 2, 3}),
                             shape("Expand", {-4, 2, 3}),
                             shape("Tile", {kHuge, kHuge}),
                             shape("Tile", {-1, 1}),
                             shape("Tile", {1}),
                             shape("Pad", {kHuge, kHuge, kHuge, kHuge}),
                             shape("Pad", {INT64_MIN, 0, INT64_MIN, 0}),
                             shape("Pad", {1, 2, 3}),
                             shape("CenterCropPad", {kHuge, INT64_MIN}),
                             shape("CenterCropPad", {1, 1, 1}),
                             shape("Unsqueeze", Ints(100, 0)),
                             shape("Unsqueeze", {kHuge}),
                             shape("Squeeze", {INT64_MIN}),
                             one_node("Slice", {{"a", {kHuge}}, {"b", {1, 2}}}),
                             one_node("Slice", {{"a", {0}}, {"b", {1}}, {"c", {9}}}),
                             one_node("Slice", {{"a", {0}}, {"b", {1}}, {"c", {0}}, {"d", {0}}}),
                             one_node("Pad", {{"p", {1, 1}}, {"v", {0}}, {"axes", {5}}}),
                             one_node("Split", {}, {attr_int("num_outputs", kHuge)}),
                             one_node("Split", {}, {attr_int("num_outputs", -5)}),
                             one_node("Split", {{"s", {kHuge, kHuge}}}),
                             one_node("Transpose", {}, {attr_ints("perm", {7, 7, 7})}),
                             one_node("Flatten", {}, {attr_int("axis", INT64_MIN)}),
                             one_node("Softmax", {}, {attr_int("axis", kHuge)}),
                             one_node("Softmax", {}, {attr_int("axis", kHuge)}, 9),
                             one_node("TopK", {{"k", {kHuge}}}),
                             one_node("DepthToSpace", {}, {attr_int("blocksize", kHuge)}),
                             one_node("SpaceToDepth", {}, {attr_int("blocksize", 0)}),
                             one_node("MaxPool", {}, {attr_ints("kernel_shape", {kHuge, kHuge})}),
                             one_node("GatherND", {{"i", {5}}}, {attr_int("batch_dims", kHuge)}),
                             one_node("Cast", {}, {attr_int("to", kHuge)}),
                             one_node("BatchNormalization", {})}) {
    const auto out = run(bytes, {kMatrix});
    ASSERT_FALSE(out.ok()) << bytes;
    EXPECT_TRUE(out.status().message().find("bad_node") != std::string::npos)
        << out.status().to_string();
  }
}

TEST(OnnxRefused, AttributesThatContradictOrAreLeftOut) {
  Graph g{.inputs = {value("x", kF32, {2, 3})}, .outputs = {unshaped("y", kF32)}};
  g.initializers = {ints("planes", {1, 1, 2, 3}), floats("w", {1, 1, 2, 2}, {1, 2, 3, 4})};
  for (const char* op : {"Conv", "ConvTranspose"}) {
    g.nodes = {node("Reshape", {"x", "planes"}, {"image"}),
               node(op, {"image", "w"}, {"y"}, {attr_ints("kernel_shape", {1, 2})}, "bad_node")};
    expect_run_refused(
        model(g), Code::kShapeMismatch,
        "'bad_node': attribute 'kernel_shape' is [1,2], the weights have a window of [2,2]");
    g.nodes[1] = node(op, {"image", "w"}, {"y"}, {attr_ints("kernel_shape", {2, 2})});
    EXPECT_TRUE(run(model(g), {kMatrix}).ok());
  }
  expect_run_refused(one_node("Concat", {}), Code::kInvalidArgument,
                     "'bad_node': attribute 'axis' is needed");
  EXPECT_TRUE(run(one_node("Concat", {}, {}, 3), {kMatrix}).ok());
  expect_run_refused(one_node("LRN", {}), Code::kInvalidArgument,
                     "'bad_node': attribute 'size' is needed");
  expect_run_refused(one_node("Swish", {}), Code::kUnknownOp,
                     "known from opset 24 on, the model imports 18");
}

TEST(OnnxRefused, ScalarsWhereDimsAreExpected) {
  Graph g{.inputs = {value("x", kF32, {})}, .outputs = {unshaped("y", kF32)}};
  g.initializers = {ints("two", {1, 1}), ints("zero", {0}), floats("half", {1}, {0.5F}),
                    ints("none", {})};
  for (const Bytes& bad :
       {node("Pad", {"x", "two", "", "zero"}, {"y"}, {}, "bad_node"),
        node("CenterCropPad", {"x", "zero"}, {"y"}, {attr_ints("axes", {0})}, "bad_node"),
        node("Concat", {"x"}, {"y"}, {attr_int("axis", 0)}, "bad_node"),
        node("Split", {"x"}, {"y"}, {}, "bad_node"),
        node("Conv", {"x", "x"}, {"y"}, {}, "bad_node"),
        node("MaxPool", {"x"}, {"y"}, {attr_ints("kernel_shape", {2})}, "bad_node"),
        node("Resize", {"x", "", "half"}, {"y"}, {attr_ints("axes", {0})}, "bad_node"),
        node("Gather", {"x", "zero"}, {"y"}, {}, "bad_node"),
        node("LSTM", {"x", "x", "x"}, {"y"}, {}, "bad_node"),
        node("BatchNormalization", {}, {"y"}, {}, "bad_node"),
        node("Max", {}, {"y"}, {}, "bad_node"), node("Identity", {}, {"y"}, {}, "bad_node"),
        node("Relu", {"x", "x"}, {"y"}, {}, "bad_node"),
        node("TopK", {"x", "zero"}, {"y", "z"}, {}, "bad_node"),
        node("Relu", {"x"}, {"z", "y"}, {}, "bad_node"),
        node("Upsample", {"x", "half"}, {"y"}, {attr_ints("axes", {0})}, "bad_node")}) {
    g.nodes = {bad};
    const auto out = run(model(g), {f32({}, {1})});
    ASSERT_FALSE(out.ok()) << bad;
    const std::string& message = out.status().message();
    EXPECT_NE(message.find("bad_node"), std::string::npos) << out.status().to_string();
    (void)run(model(g, 9), {f32({}, {1})});  // some have a meaning there; none may crash
  }
}

TEST(OnnxRefused, RangesWithoutEnd) {
  for (const float step : {0.0F, 1e-38F, std::numeric_limits<float>::quiet_NaN()}) {
    Graph g{.inputs = {value("x", kF32, {2, 3})}, .outputs = {unshaped("y", kF32)}};
    g.initializers = {floats("a", {}, {0}), floats("b", {}, {3e38F}), floats("c", {}, {step})};
    g.nodes = {node("Range", {"a", "b", "c"}, {"y"}, {}, "bad_node")};
    expect_run_refused(model(g), Code::kInvalidArgument, "'bad_node'");
  }
}

// A large constant that a shape is asked from is neither folded nor made.
TEST(OnnxRefused, FoldingBombs) {
  Graph g{.inputs = {value("x", kF32, {2, 3})}, .outputs = {unshaped("y", kF32)}};
  g.initializers = {ints("dims", {int64_t{1} << 50})};
  g.nodes = {node("ConstantOfShape", {"dims"}, {"s"}, {}, "bomb"),
             node("Reshape", {"x", "s"}, {"y"}, {}, "reshape")};
  expect_run_refused(model(g), Code::kInvalidArgument, "'bomb'");
  g.initializers = {ints("dims", {1 << 20, 1 << 20, 1 << 20})};
  expect_run_refused(model(g), Code::kInvalidArgument, "'bomb'");
}

TEST(OnnxRefused, FunctionsThatCallThemselves) {
  const Graph g{.inputs = {value("x", kF32, {2, 3})},
                .outputs = {value("y", kF32, {2, 3})},
                .nodes = {node("F", {"x"}, {"y"}, {}, "call", "f")}};
  const Bytes self = function("F", {"a"}, {"b"}, {node("F", {"a"}, {"b"}, {}, "inner", "f")});
  expect_read_refused(model(g, 18, with_functions({self})), Code::kVerifyFailed, "'call'");
  // Each level calls the next twice: 2^31 nodes.
  std::vector<Bytes> levels;
  for (int i = 0; i < 31; ++i) {
    const std::string next = i == 30 ? "F" : "F" + std::to_string(i + 1);
    const std::string name = i == 0 ? "F" : "F" + std::to_string(i);
    levels.push_back(i == 30 ? function(name, {"a"}, {"c"}, {node("Neg", {"a"}, {"c"})})
                             : function(name, {"a"}, {"c"},
                                        {node(next, {"a"}, {"b"}, {}, "one", "f"),
                                         node(next, {"b"}, {"c"}, {}, "two", "f")}));
  }
  expect_read_refused(model(g, 18, with_functions(levels)), Code::kBudgetExceeded, "'call'");
}

TEST(OnnxRefused, FunctionsThatDoNotGiveWhatIsAsked) {
  const Graph g{.inputs = {value("x", kF32, {2, 3})},
                .outputs = {value("y", kF32, {2, 3})},
                .nodes = {node("F", {"x"}, {"z", "y"}, {}, "call", "f")}};
  const Bytes f = function("F", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"}, {}, "inner")});
  expect_read_refused(model(g, 18, with_functions({f})), Code::kVerifyFailed, "'call'");
  const Bytes lost = function("F", {"a"}, {"b"}, {node("Neg", {"x"}, {"b"}, {}, "inner")});
  expect_read_refused(model(g, 18, with_functions({lost})), Code::kVerifyFailed, "'inner'");
}

Bytes nested(int depth) {
  Bytes inner = graph({.outputs = {unshaped("x", kF32)}});
  for (int i = 0; i < depth; ++i) {
    inner = graph({.outputs = {unshaped("r", kF32)},
                   .nodes = {node("If", {"c"}, {"r"}, {attr_graph("then_branch", inner)})}});
  }
  return model({.inputs = {value("c", kBool, {}), value("x", kF32, {2, 3})},
                .outputs = {unshaped("y", kF32)},
                .nodes = {node("If", {"c"}, {"y"}, {attr_graph("then_branch", inner)})}});
}

TEST(OnnxRefused, AbsurdNesting) {
  EXPECT_TRUE(read(nested(20)).ok());
  expect_read_refused(nested(70), Code::kParseError, "nest too deep");
  expect_read_refused(nested(3000), Code::kParseError, "nest too deep");
  Bytes type = text(1, number(1, kF32));
  for (int i = 0; i < 3000; ++i) type = text(4, text(1, type));
  Graph g = small_graph();
  g.inputs.push_back(value("q", type));
  expect_read_refused(model(g), Code::kParseError, "nest too deep");
}

// Each loop is short enough to be written out; all together would multiply, so the host runs some.
TEST(OnnxRefused, LoopsInLoopsAreNotWrittenOut) {
  Bytes body =
      graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), value("s", kF32, {2, 3})},
             .outputs = {unshaped("go", kBool), unshaped("t", kF32)},
             .nodes = {node("Neg", {"s"}, {"t"})}});
  for (int depth = 0; depth < 3; ++depth) {
    body =
        graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), value("s", kF32, {2, 3})},
               .outputs = {unshaped("go", kBool), unshaped("t", kF32)},
               .nodes = {node("Loop", {"n", "", "s"}, {"t"}, {attr_graph("body", body)})}});
  }
  const Bytes bytes =
      model({.inputs = {value("x", kF32, {2, 3})},
             .outputs = {unshaped("y", kF32)},
             .initializers = {raw_tensor("n", kI64, {}, raw_of(Ints{4}))},
             .nodes = {node("Loop", {"n", "", "x"}, {"y"}, {attr_graph("body", body)})}});
  const auto made = session(bytes);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto out = (*made)->run(std::vector<DynValue>{kMatrix});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(numbers_of(out), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_GT((*made)->stats().host_calls, 0);
}

TEST(OnnxRefused, RegionsThatDoNotFit) {
  const Bytes body =
      graph({.inputs = {value("i", kI64, {})}, .outputs = {unshaped("x", kF32)}, .nodes = {}});
  Graph g{.inputs = {value("x", kF32, {2, 3})}, .outputs = {unshaped("y", kF32)}};
  g.initializers = {raw_tensor("n", kI64, {}, raw_of(Ints{3}))};
  for (const auto& attrs :
       {std::vector<Bytes>{}, {attr_graph("body", body)}, {attr_int("body", 3)}}) {
    for (const std::string op : {"Loop", "Scan", "If", "SequenceMap"}) {
      g.nodes = {node(op, {"n", "", "x"}, {"y"}, attrs, "bad_node")};
      const auto out = run(model(g), {kMatrix});
      ASSERT_FALSE(out.ok()) << op;
      EXPECT_NE(out.status().message().find("bad_node"), std::string::npos)
          << out.status().to_string();
    }
  }
}

}  // namespace
}  // namespace pyc::onnx::test
