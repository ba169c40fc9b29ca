#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/test_ops.h"

namespace pyc::ir {
namespace {

using testing::test_ops;

struct Case {
  std::string text;
  std::string message;
  Code code = Code::kParseError;
};

// A graph with %x: f32[2,3] and %b: bool[] whose second line is the given statement.
Case statement(std::string text, std::string message, Code code = Code::kParseError) {
  return {"graph @g(%x: f32[2,3], %b: bool[]) -> (%x) {\n" + text + "\n}", std::move(message),
          code};
}

void expect_all(std::span<const Case> cases) {
  for (const Case& c : cases) {
    const auto result = parse(c.text, test_ops());
    EXPECT_EQ(result.status().code(), c.code) << c.text;
    EXPECT_EQ(result.status().message(), c.message) << c.text;
  }
}

TEST(ParseError, Signature) {
  const Case cases[] = {
      {"", "1:1: expected 'graph', found end of text"},
      {"  # only a comment", "1:19: expected 'graph', found end of text"},
      {"grph @g", "1:1: expected 'graph', found 'grph'"},
      {"graph g", "1:7: expected the graph's name, like @main, found 'g'"},
      {"graph @ g", "1:7: expected the graph's name, like @main, found '@'"},
      {"graph @g{", "1:9: expected '(', found '{'"},
      {"graph @g(x", "1:10: expected an input, like %x, found 'x'"},
      {"graph @g(%x f32", "1:13: expected ':', found 'f32'"},
      {"graph @g(%x: f33[1]", "1:14: expected a type, like f32[2,3], found 'f33'"},
      {"graph @g(%x: \"f32\"[1]", "1:14: expected a type, like f32[2,3], found '\"f32\"'"},
      {"graph @g(%x: f32)", "1:17: expected '[', found ')'"},
      {"graph @g(%x: f32[-1])", "1:18: expected a dim from 0 to 1099511627776, found '-1'"},
      {"graph @g(%x: f32[n])", "1:18: expected a dim from 0 to 1099511627776, found 'n'"},
      {"graph @g(%x: f32[1.5])", "1:18: expected a dim from 0 to 1099511627776, found '1.5'"},
      {"graph @g(%x: f32[2,])", "1:20: expected a dim from 0 to 1099511627776, found ']'"},
      {"graph @g(%x: f32[99999999999999999999])",
       "1:18: expected a dim from 0 to 1099511627776, found '99999999999999999999'"},
      {"graph @g(%x: f32[2 3])", "1:20: expected ',' or ']', found '3'"},
      {"graph @g(%x: f32[9999999999999])",
       "1:14: [too_large] f32[9999999999999]: over the limit of 1099511627776 bytes"},
      {"graph @g(%x: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1])",
       "1:14: [bad_rank] rank 17 is over the limit of 16"},
      {"graph @g(%x: f32[],)", "1:20: expected an input, like %x, found ')'"},
      {"graph @g(%x: f32[] %y", "1:20: expected ',' or ')', found '%y'"},
      {"graph @g(%x: f32[], %x: f32[])", "1:21: %x is defined twice"},
      {"graph @g(%\"\": f32[])", "1:10: expected a name that is not empty, found %\"\""},
      {"graph @g() (", "1:12: expected '->', found '('"},
      {"graph @g() -> %y", "1:15: expected '(', found '%y'"},
      {"graph @g() -> (y", "1:16: expected a value, like %y, found 'y'"},
      {"graph @g() -> (%y", "1:18: expected ',' or ')', found end of text"},
      {"graph @g() -> ()", "1:17: expected '{', found end of text"},
      {"graph @g() -> () {", "1:19: expected a value, like %y, or '}', found end of text"},
      {"graph @g() -> () {} x", "1:21: expected end of text after the graph, found 'x'"},
      {"graph @g() -> (%y) {}", "1:16: %y is not defined before it is used"},
      {"graph @g(%xy: f32[]) -> (%xz) {}",
       "1:26: %xz is not defined before it is used, did you mean '%xy'?"},
  };
  expect_all(cases);
}

TEST(ParseError, Tokens) {
  const Case cases[] = {
      {"graph @g() -> () {\n  ?\n}", "2:3: expected a value, like %y, or '}', found '?'"},
      {"\xc3\xbc", "1:1: expected 'graph', found '\xc3\xbc'"},
      {"graph @\"\xc3\xbc\" (%\"\xc3\xbc\": f32[] ;", "1:25: expected ',' or ')', found ';'"},
      {std::string("graph\0", 6), "1:6: expected the graph's name, like @main, found '?'"},
      {"graph @\"abc",
       "1:7: expected the graph's name, like @main, found a string without end or with a bad "
       "escape: '@\"abc'"},
      {"graph @\"a\nb\"(",
       "1:7: expected the graph's name, like @main, found a string without end or with a bad "
       "escape: '@\"a'"},
      {"graph @\"a\\q\"(",
       "1:7: expected the graph's name, like @main, found a string without end or with a bad "
       "escape: '@\"a\\q\"('"},
      {"graph @\"\\x4\"(",
       "1:7: expected the graph's name, like @main, found a string without end or with a bad "
       "escape: '@\"\\x4\"('"},
      {"graph " + std::string(100, 'a'),
       "1:7: expected the graph's name, like @main, found '" + std::string(40, 'a') + "…'"},
      {"graph % x", "1:7: expected the graph's name, like @main, found '%'"},
      {"graph @g() -> () {\r\n\t%y\r\n}", "3:1: expected '=', found '}'"},
  };
  expect_all(cases);
}

TEST(ParseError, Nodes) {
  const Case cases[] = {
      statement("y = relu(%x)", "2:1: expected a value, like %y, or '}', found 'y'"),
      statement("%y, = relu(%x)", "2:5: expected a value, found '='"),
      statement("%y relu(%x)", "2:4: expected '=', found 'relu'"),
      statement("%y = 3", "2:6: expected an op or 'const', found '3'"),
      statement("%y = matmull(%x, %x)", "2:6: unknown op 'matmull', did you mean 'matmul'?",
                Code::kUnknownOp),
      statement("%y = convolution(%x)", "2:6: unknown op 'convolution'", Code::kUnknownOp),
      statement("%y = relu %x", "2:11: expected '(', found '%x'"),
      statement("%y = relu(x)", "2:11: expected a value, like %x, found 'x'"),
      statement("%y = relu(%x,)", "2:14: expected a value, like %x, found ')'"),
      statement("%y = relu(%x", "3:1: expected ',' or ')', found '}'"),
      statement("%y = relu(%y)", "2:11: %y is not defined before it is used"),
      statement("%y = relu(%later) %later = relu(%x)",
                "2:11: %later is not defined before it is used"),
      statement("%x = relu(%x)", "2:1: %x is defined twice"),
      statement("%y, %y = split(%x)", "2:5: %y is defined twice"),
      statement("%y = split(%x)", "2:1: expected 2 names for the outputs of op 'split', found 1"),
      statement("%y, %z = relu(%x)", "2:1: expected 1 names for the outputs of op 'relu', found 2"),
      statement("%y = add(%x)", "2:6: [too_few_inputs] op 'add': expected 2 inputs, found 1"),
      statement("%y = relu(%x, %x)", "2:6: [too_many_inputs] op 'relu': expected 1 input, found 2"),
      statement("%y = stack()",
                "2:6: [too_few_inputs] op 'stack': expected at least 1 input, found 0"),
      statement("%y = matmul(%x, %x)", "2:6: op 'matmul': expected equal inner dims, found 3 and 2",
                Code::kShapeMismatch),
      statement("%y = matmul(%x, %b)", "2:6: op 'matmul': expected two matrices",
                Code::kRankMismatch),
      statement("%y = add(%x, %b)", "2:6: op 'add': expected equal dtypes, found f32 and bool",
                Code::kDtypeMismatch),
  };
  expect_all(cases);
}

TEST(ParseError, Attributes) {
  const Case cases[] = {
      statement("%y = relu(%x) {axis=1}", "2:16: [unknown_attr] op 'relu' has no attribute 'axis'"),
      statement("%y, %z = split(%x) {axs=1}",
                "2:21: [unknown_attr] op 'split' has no attribute 'axs', did you mean 'axis'?"),
      statement("%y, %z = split(%x) {=1}", "2:21: expected an attribute's name, found '='"),
      statement("%y, %z = split(%x) {axis:1}", "2:25: expected '=', found ':'"),
      statement("%y, %z = split(%x) {axis=1 keep=true}", "2:28: expected ',' or '}', found 'keep'"),
      statement("%y, %z = split(%x) {axis=1, axis=1}", "2:29: attribute 'axis' is given twice"),
      statement("%y, %z = split(%x) {axis=1.5}", "2:26: expected a value of type i64, found '1.5'"),
      statement("%y, %z = split(%x) {axis=9223372036854775808}",
                "2:26: expected a value of type i64, found '9223372036854775808'"),
      statement("%y, %z = split(%x) {axis=[1]}", "2:26: expected a value of type i64, found '['"),
      statement("%y, %z = split(%x) {keep=1}", "2:26: expected a value of type bool, found '1'"),
      statement("%y, %z = split(%x) {axis=7}", "2:10: op 'split': axis 7 is out of range",
                Code::kInvalidArgument),
      statement("%y = cast(%x)", "2:6: [missing_attr] op 'cast' needs attribute 'to' (dtype)"),
      statement("%y = cast(%x) {to=\"f32\"}", "2:19: expected a dtype, like f32, found '\"f32\"'"),
      statement("%y = tag(%x) {alpha=\"2\"}", "2:21: expected a value of type f64, found '\"2\"'"),
      statement("%y = tag(%x) {alpha=1e999}", "2:21: expected a value of type f64, found '1e999'"),
      statement("%y = tag(%x) {note=n}", "2:20: expected a string in double quotes, found 'n'"),
      statement("%y = tag(%x) {sizes=1}", "2:21: expected '[', found '1'"),
      statement("%y = tag(%x) {sizes=[1, 2.5]}", "2:25: expected a value of type i64, found '2.5'"),
      statement("%y = tag(%x) {sizes=[[1]]}", "2:22: expected a value of type i64, found '['"),
      statement("%y = tag(%x) {weights=[1 2]}", "2:26: expected ',' or ']', found '2'"),
  };
  expect_all(cases);
}

TEST(ParseError, Types) {
  const Case cases[] = {
      statement("%y = relu(%x) : f32[2,4]",
                "2:17: expected f32[2,3] for %y, which op 'relu' returns, found f32[2,4]",
                Code::kShapeMismatch),
      statement("%y = relu(%x) : f32[2]",
                "2:17: expected f32[2,3] for %y, which op 'relu' returns, found f32[2]",
                Code::kShapeMismatch),
      statement("%y = relu(%x) : f16[2,3]",
                "2:17: expected f32[2,3] for %y, which op 'relu' returns, found f16[2,3]",
                Code::kDtypeMismatch),
      statement("%y, %z = split(%x) : f32[2,2], f32[2,2]",
                "2:32: expected f32[2,1] for %z, which op 'split' returns, found f32[2,2]",
                Code::kShapeMismatch),
      statement("%y, %z = split(%x) : f32[2,2]", "3:1: expected ',', found '}'"),
      statement("%y = relu(%x) : f32[2,3], f32[2,3]",
                "2:25: expected a value, like %y, or '}', found ','"),
      statement("%y = relu(%x) :", "3:1: expected a type, like f32[2,3], found '}'"),
  };
  expect_all(cases);
}

TEST(ParseError, Constants) {
  const Case cases[] = {
      statement("%y = const 3", "2:12: expected a type, like f32[2,3], found '3'"),
      statement("%y, %z = const f32[] splat(1)",
                "2:5: expected one name for a constant, found more"),
      statement("%x = const f32[] splat(1)", "2:1: %x is defined twice"),
      statement("%y = const f32[] zeros()",
                "2:18: expected 'dense', 'splat' or 'random', found "
                "'zeros'"),
      statement("%y = const f32[2] dense(1)", "2:25: expected 2 elements for f32[2], found 1"),
      statement("%y = const f32[2] dense()", "2:25: expected 2 elements for f32[2], found 0"),
      statement("%y = const f32[2] dense(1, 2, 3)",
                "2:31: expected 2 elements for f32[2], found more"),
      statement("%y = const f32[0] dense(1)", "2:25: expected 0 elements for f32[0], found more"),
      statement("%y = const f32[99999999999] dense(1)",
                "2:35: expected 99999999999 elements for f32[99999999999], found 1"),
      statement("%y = const f32[2] dense(1 2)", "2:27: expected ',' or ')', found '2'"),
      statement("%y = const f32[2] dense([1, 2])", "2:25: expected a value of type f32, found '['"),
      statement("%y = const i8[1] dense(128)", "2:24: expected a value of type i8, found '128'"),
      statement("%y = const u8[1] dense(-1)", "2:24: expected a value of type u8, found '-1'"),
      statement("%y = const i32[1] dense(1.0)", "2:25: expected a value of type i32, found '1.0'"),
      statement("%y = const bool[1] dense(1)", "2:26: expected a value of type bool, found '1'"),
      statement("%y = const f32[1] dense(true)",
                "2:25: expected a value of type f32, found 'true'"),
      statement("%y = const f32[1] dense(\"nan\")",
                "2:25: expected a value of type f32, found '\"nan\"'"),
      statement("%y = const f32[1] dense(1e39)",
                "2:25: expected a value of type f32, found '1e39'"),
      statement("%y = const f16[1] dense(0x10000)",
                "2:25: expected a value of type f16, found '0x10000'"),
      statement("%y = const f32[1] dense(-)", "2:25: expected a value of type f32, found '-'"),
      statement("%y = const f32[] splat()", "2:24: expected a value of type f32, found ')'"),
      statement("%y = const f32[] splat(1, 2)", "2:25: expected ')', found ','"),
      statement("%y = const f32[] random(1)", "2:25: expected 'seed', found '1'"),
      statement("%y = const f32[] random(seed=-1, lo=0, hi=1)",
                "2:30: expected a value of type u64, found '-1'"),
      statement("%y = const f32[] random(seed=1)", "2:31: expected ',', found ')'"),
      statement("%y = const f32[] random(seed=1, lo=2, hi=1)",
                "2:18: [bad_constant] expected finite random bounds with lo <= hi, found 2 and 1"),
      statement("%y = const f32[] random(seed=1, lo=nan, hi=1)",
                "2:18: [bad_constant] expected finite random bounds with lo <= hi, found nan and "
                "1"),
      statement("%y = const f32[] random(seed=1, lo=-1.7e308, hi=1.7e308)",
                "2:18: [bad_constant] expected finite random bounds with lo <= hi, found -1.7e+308 "
                "and 1.7e+308"),
      statement("%y = const u8[2147483649] splat(1)",
                "2:27: expected at most 2147483648 more generated bytes, found 2147483649 for "
                "u8[2147483649]",
                Code::kBudgetExceeded),
      statement("%y = const f64[1099511627776] random(seed=1, lo=0, hi=1)",
                "2:12: [too_large] f64[1099511627776]: over the limit of 1099511627776 bytes"),
  };
  expect_all(cases);
}

TEST(ParseError, GeneratedBytesAreCountedTogether) {
  const std::string text = R"(graph @g() -> (%a) {
    %a = const f32[10] splat(1)
    %b = const f32[10] random(seed=1, lo=0, hi=1)
  })";
  EXPECT_TRUE(parse(text, test_ops(), 80).ok());
  const auto refused = parse(text, test_ops(), 79);
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_EQ(refused.status().message(),
            "3:24: expected at most 39 more generated bytes, found 40 for f32[10]");
}

}  // namespace
}  // namespace pyc::ir
