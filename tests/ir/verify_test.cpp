#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "ir/check.h"
#include "ir/graph.h"
#include "ir/test_ops.h"

namespace pyc::ir {
namespace {

using testing::f32;
using testing::sample_graph;
using testing::test_ops;

// %x: f32[2,3] input 0, %c constant 1, %h = add(%x, %c) 2, %a, %b = split(%h) 3 4, %y = relu(%a) 5
Graph base_graph() {
  return testing::must(parse(R"(graph @g(%x: f32[2,3]) -> (%y, %x, %c) {
    %c = const f32[3] splat(1)
    %h = add(%x, %c)
    %a, %b = split(%h)
    %y = relu(%a)
  })",
                             test_ops()));
}

std::shared_ptr<const ConstData> changed(const Value& value,
                                         const std::function<void(ConstData&)>& change) {
  auto data = std::make_shared<ConstData>(*value.constant);
  change(*data);
  return data;
}

struct Case {
  const char* name;
  std::function<void(Graph&)> corrupt;
  const char* message;
  Code code = Code::kVerifyFailed;
};

const OpDef kNoRule{.name = "norule", .summary = ""};

const Case kCases[] = {
    {"no outputs", [](Graph& g) { g.outputs.clear(); },
     "[empty_graph] graph: expected at least one output, found none"},
    {"nothing at all", [](Graph& g) { g = Graph(); },
     "[empty_graph] graph: expected at least one output, found none"},
    {"no name", [](Graph& g) { g.values[3].name.clear(); }, "[bad_name] value 3: it has no name"},
    {"name used twice", [](Graph& g) { g.values[5].name = "x"; },
     "[duplicate_name] %x: two values have this name"},
    {"negative dim", [](Graph& g) { g.values[2].type.shape[0] = -2; },
     "[bad_dim] %h: f32[-2,3]: expected dims of at least 0, found -2 as dim 0"},
    {"huge dims",
     [](Graph& g) {
       g.values[0].type = f32({1 << 30, 1 << 30});
     },
     "[too_large] %x: f32[1073741824,1073741824]: over the limit of 1099511627776 bytes"},
    {"rank", [](Graph& g) { g.values[0].type.shape.assign(40, 1); },
     "[bad_rank] %x: rank 40 is over the limit of 16"},
    {"unknown dtype", [](Graph& g) { g.values[0].type.dtype = static_cast<DType>(60); },
     "[bad_dtype] %x: dtype#60 is not one of the 25 dtypes"},
    {"unknown kind", [](Graph& g) { g.values[0].kind = static_cast<ValueKind>(7); },
     "[bad_kind] %x: kind number 7 is unknown"},
    {"constant without data", [](Graph& g) { g.values[1].constant = nullptr; },
     "[bad_constant] %c: there is no data"},
    {"constant too short",
     [](Graph& g) {
       g.values[1].constant =
           changed(g.values[1], [](ConstData& d) { d.bytes = std::vector<std::byte>(11); });
     },
     "[bad_constant] %c: expected 12 bytes for f32[3], found 11"},
    {"constant of unknown form",
     [](Graph& g) {
       g.values[1].constant =
           changed(g.values[1], [](ConstData& d) { d.form = static_cast<ConstData::Form>(9); });
     },
     "[bad_constant] %c: form number 9 is unknown"},
    {"splat with unequal elements",
     [](Graph& g) {
       g.values[1].constant = changed(g.values[1], [](ConstData& d) {
         std::vector<std::byte> bytes = d.bytes.copy();
         bytes[11] = std::byte{1};
         d.bytes = std::move(bytes);
       });
     },
     "[bad_constant] %c: the elements of a splat constant differ"},
    {"random with other elements",
     [](Graph& g) {
       g.values[1].constant = changed(
           *[] {
             static Value value;
             value.constant = random_data(f32({3}), 1, 0, 1);
             return &value;
           }(),
           [](ConstData& d) { d.seed = 2; });
     },
     "[bad_constant] %c: element 0 differs from its random form"},
    {"random without a range",
     [](Graph& g) {
       g.values[1].constant = changed(g.values[1], [](ConstData& d) {
         d.form = ConstData::Form::kRandom;
         d.lo = 2;
         d.hi = 1;
       });
     },
     "[bad_constant] %c: expected finite random bounds with lo <= hi, found 2 and 1"},
    {"bool byte of 2",
     [](Graph& g) {
       g.values[1].type = {DType::kBool, {1}};
       g.values[1].constant = dense_data(std::vector{std::byte{2}});
     },
     "[bad_constant] %c: expected 0 or 1 in every byte of a bool constant"},
    {"input with data", [](Graph& g) { g.values[0].constant = g.values[1].constant; },
     "[bad_constant] %x: it has data but is no constant"},
    {"input with producer", [](Graph& g) { g.values[0].producer = 0; },
     "[bad_producer] %x: an input or constant is said to be made by node 0"},
    {"input not listed", [](Graph& g) { g.inputs.clear(); },
     "[bad_input] %x: it is an input but is not listed as one"},
    {"input listed twice", [](Graph& g) { g.inputs.push_back(0); },
     "[bad_input] %x: it is listed twice as an input"},
    {"constant listed as input", [](Graph& g) { g.inputs.push_back(1); },
     "[bad_input] %c: it is listed as an input but is not one"},
    {"input id", [](Graph& g) { g.inputs.push_back(600); },
     "[bad_id] graph inputs: expected a value id under 6, found 600"},
    {"node output id", [](Graph& g) { g.nodes[2].outputs[0] = kNoId; },
     "[bad_id] node 2 (value 4294967295 = relu, from \"line 5\"): expected a value id under 6, "
     "found 4294967295"},
    {"node input id", [](Graph& g) { g.nodes[2].inputs[0] = 6; },
     "[bad_id] node 2 (%y = relu, from \"line 5\"): expected a value id under 6, found 6"},
    {"value made twice", [](Graph& g) { g.nodes[2].outputs[0] = 2; },
     "[multiple_producers] node 2 (%h = relu, from \"line 5\"): it makes %h, which node 0 makes "
     "too"},
    {"value made twice by one node", [](Graph& g) { g.nodes[1].outputs[1] = 3; },
     "[multiple_producers] node 1 (%a = split, from \"line 4\"): it makes %a, which node 1 makes "
     "too"},
    {"input made", [](Graph& g) { g.nodes[2].outputs[0] = 0; },
     "[multiple_producers] node 2 (%x = relu, from \"line 5\"): it makes %x, an input or constant"},
    {"value made by no node", [](Graph& g) { g.nodes.pop_back(); },
     "[undefined_value] %y: no node makes it"},
    {"another producer", [](Graph& g) { g.values[5].producer = 1; },
     "[bad_producer] %y: it is made by node 2, but says node 1"},
    {"no op", [](Graph& g) { g.nodes[2].op = nullptr; },
     "[bad_op] node 2 (%y = no op, from \"line 5\"): it has no op, or one without a type rule"},
    {"op without rule", [](Graph& g) { g.nodes[2].op = &kNoRule; },
     "[bad_op] node 2 (%y = norule, from \"line 5\"): it has no op, or one without a type rule"},
    {"reads a later value", [](Graph& g) { g.nodes[0].inputs[0] = 5; },
     "[forward_reference] node 0 (%h = add, from \"line 3\"): it reads %y, which node 2 makes only "
     "then or later"},
    {"reads its own result", [](Graph& g) { g.nodes[0].inputs[0] = 2; },
     "[forward_reference] node 0 (%h = add, from \"line 3\"): it reads %h, which node 0 makes only "
     "then or later"},
    {"nodes out of order",
     [](Graph& g) {
       std::swap(g.nodes[0], g.nodes[1]);
       g.values[2].producer = 1;
       g.values[3].producer = g.values[4].producer = 0;
     },
     "[forward_reference] node 0 (%a = split, from \"line 4\"): it reads %h, which node 1 makes "
     "only then or later"},
    {"too many inputs", [](Graph& g) { g.nodes[0].inputs.push_back(0); },
     "[too_many_inputs] node 0 (%h = add, from \"line 3\"): op 'add': expected 2 inputs, found 3"},
    {"too few inputs", [](Graph& g) { g.nodes[0].inputs.clear(); },
     "[too_few_inputs] node 0 (%h = add, from \"line 3\"): op 'add': expected 2 inputs, found 0"},
    {"unknown attribute", [](Graph& g) { g.nodes[1].attrs["axes"] = int64_t{1}; },
     "[unknown_attr] node 1 (%a = split, from \"line 4\"): op 'split' has no attribute 'axes', did "
     "you mean 'axis'?"},
    {"missing attribute", [](Graph& g) { g.nodes[1].attrs.erase("keep"); },
     "[missing_attr] node 1 (%a = split, from \"line 4\"): op 'split' needs attribute 'keep' "
     "(bool)"},
    {"attribute of another kind", [](Graph& g) { g.nodes[1].attrs["axis"] = 1.0; },
     "[bad_attr_kind] node 1 (%a = split, from \"line 4\"): attribute 'axis' of op 'split': "
     "expected int, found float 1.0"},
    {"attribute that is no dtype",
     [](Graph& g) {
       g.nodes[2].op = test_ops().find("cast");
       g.nodes[2].attrs["to"] = static_cast<DType>(99);
     },
     "[bad_attr_value] node 2 (%y = cast, from \"line 5\"): attribute 'to' of op 'cast': expected "
     "a "
     "dtype, found dtype#99"},
    {"output missing",
     [](Graph& g) {
       g.nodes[1].outputs.pop_back();
       g.values[4].kind = ValueKind::kConstant;
       g.values[4].producer = kNoId;
       g.values[4].constant = splat_data(g.values[4].type, 1);
     },
     "[bad_output_count] node 1 (%a = split, from \"line 4\"): expected 2 outputs, found 1"},
    {"type rule refuses", [](Graph& g) { g.nodes[1].attrs["axis"] = int64_t{5}; },
     "[type_rule] node 1 (%a = split, from \"line 4\"): op 'split': axis 5 is out of range",
     Code::kInvalidArgument},
    {"type rule refuses shapes",
     [](Graph& g) {
       g.values[0].type = f32({2, 4});
     },
     "[type_rule] node 0 (%h = add, from \"line 3\"): op 'add': cannot broadcast [2,4] with [3]: "
     "expected equal dims or a 1, found 4 and 3 in dim -1",
     Code::kShapeMismatch},
    {"inferred type too large",
     [](Graph& g) {
       g.values[3].type = f32({1 << 30});
       g.nodes[2].op = test_ops().find("stack");
       g.nodes[2].inputs.assign(1000, 0);
       g.values[0].type = g.values[2].type = f32({1 << 29, 3});
       g.values[3].type = f32({1 << 29, 2});
       g.values[4].type = f32({1 << 29, 1});
     },
     "[too_large] node 2 (%y = stack, from \"line 5\"): op 'stack' returns: f32[1000,536870912,3]: "
     "over the limit of 1099511627776 bytes"},
    {"recorded shape",
     [](Graph& g) {
       g.values[5].type = f32({2, 5});
     },
     "[type_mismatch] node 2 (%y = relu, from \"line 5\"): expected f32[2,2] for %y, found "
     "f32[2,5]"},
    {"recorded dtype", [](Graph& g) { g.values[5].type.dtype = DType::kF16; },
     "[type_mismatch] node 2 (%y = relu, from \"line 5\"): expected f32[2,2] for %y, found "
     "f16[2,2]"},
    {"output id", [](Graph& g) { g.outputs.push_back(77); },
     "[bad_output] graph outputs: expected a value id under 6, found 77"},
};

TEST(VerifyGraph, RefusesEveryBrokenRule) {
  ASSERT_TRUE(verify_graph(base_graph()).ok());
  for (const Case& c : kCases) {
    Graph graph = base_graph();
    c.corrupt(graph);
    const auto result = verify_graph(graph);
    EXPECT_EQ(result.status().code(), c.code) << c.name;
    EXPECT_EQ(result.status().message(), c.message) << c.name;
    EXPECT_EQ(check_graph(graph).to_string(), result.status().to_string()) << c.name;
  }
}

// What a walk over the graph relies on is refused in the same words; the rest is not looked at.
TEST(VerifyGraph, StructureIsAPartOfIt) {
  constexpr std::string_view kStructural[] = {"[empty_graph]",     "[bad_id]",
                                              "[bad_kind]",        "[bad_input]",
                                              "[bad_producer]",    "[multiple_producers]",
                                              "[undefined_value]", "[bad_output]",
                                              "[bad_op]",          "[forward_reference]"};
  ASSERT_TRUE(check_structure(base_graph()).ok());
  size_t structural = 0;
  for (const Case& c : kCases) {
    Graph graph = base_graph();
    c.corrupt(graph);
    const std::string_view message = c.message;
    const Status status = check_structure(graph);
    if (message.starts_with("[bad_constant]")) continue;  // no data at all, or not the right data
    const bool expected = std::ranges::any_of(
        kStructural, [&](std::string_view reason) { return message.starts_with(reason); });
    EXPECT_EQ(status.message(), expected ? message : "") << c.name;
    structural += expected ? 1 : 0;
  }
  EXPECT_GE(structural, 10U);
  Graph graph = base_graph();
  for (Value& value : graph.values) {
    if (value.kind == ValueKind::kConstant) value.constant = nullptr;
  }
  EXPECT_TRUE(check_structure(graph).message().starts_with("[bad_constant]"));
}

TEST(VerifyGraph, AcceptsAndKeepsTheGraph) {
  const Graph graph = sample_graph();
  const auto verified = verify_graph(graph);
  ASSERT_TRUE(verified.ok()) << verified.status().to_string();
  EXPECT_EQ(print(**verified), print(graph));
  EXPECT_EQ((*verified)->nodes.size(), graph.nodes.size());
}

TEST(VerifyGraph, AcceptsGraphsWithoutNodes) {
  EXPECT_TRUE(
      verify_graph(testing::must(parse("graph @g(%x: f32[]) -> (%x, %x) {}", test_ops()))).ok());
}

TEST(VerifyGraph, CutsLongNamesInMessages) {
  Graph graph = base_graph();
  graph.values[4].name = graph.values[5].name = std::string(1 << 20, 'n');
  EXPECT_LT(verify_graph(graph).status().message().size(), 300u);
}

}  // namespace
}  // namespace pyc::ir
