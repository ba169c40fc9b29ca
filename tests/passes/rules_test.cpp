// Every rule of every op's `simplify`, proven: the graph of the rule runs on the reference with the
// optional passes and without, on all pairs of elements for 8-bit dtypes, on all elements of 16-bit
// ones (against edge values as second operand), on all pairs of edge values for wider ones. Every
// bit of every output must be the same, and the rule must have been applied. A rule in src/ops/
// that no row proves fails EveryRule.IsProven.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/convert.h"
#include "base/files.h"
#include "base/sanitizers.h"
#include "ir/patch.h"
#include "ops/registry.h"
#include "passes/run_text.h"
#include "tooling/optimize.h"

namespace pyc::passes {
namespace {

// Elements of a wide type that rules go wrong on.
std::vector<Word> edge_values(DType t) {
  std::vector<Word> words;
  const int bits = static_cast<int>(8 * dtype_size(t));
  const Word mask = bits == 64 ? ~Word{0} : (Word{1} << bits) - 1;
  if (t == DType::kBool) return {0, 1};
  if (is_float(t)) {
    for (const double x : {0.0, 1.0, 1.5, 3.0, 1e-3, 7e37, 2.5e-39, 1e300, 65504.0, 0.1}) {
      for (const double sign : {1.0, -1.0}) words.push_back(word_from_double(sign * x, t));
    }
    const Word sign = Word{1} << (bits - 1);
    const Word inf = word_from_double(HUGE_VAL, t);
    for (const Word w : {Word{1}, Word{2}, inf, inf - 1, inf + 1, inf | 3}) {
      words.push_back(w & mask);
      words.push_back((w | sign) & mask);
    }
    return words;
  }
  for (const int64_t x : {0, 1, 2, 3, 5, 127, 128, 255, 256, 32767, 32768, 65535}) {
    words.push_back(static_cast<Word>(x));
    words.push_back(static_cast<Word>(-x));
  }
  for (int b = 0; b < bits; ++b) {
    words.push_back(Word{1} << b);
    words.push_back((Word{1} << b) - 1);
    words.push_back(~(Word{1} << b));
  }
  return words;
}

std::vector<Word> all_values(DType t) {
  if (t == DType::kBool || dtype_size(t) > 2) return edge_values(t);
  std::vector<Word> words(size_t{1} << (8 * dtype_size(t)));
  for (size_t i = 0; i < words.size(); ++i) words[i] = i;
  return words;
}

// Two operands as tensors of one length: all pairs.
std::pair<Bytes, Bytes> pairs(DType t, bool second) {
  const std::vector<Word> first_values = all_values(t);
  std::vector<Word> second_values = dtype_size(t) == 2 ? edge_values(t) : first_values;
  if (dtype_size(t) == 2) second_values.resize(24);
  if (!second) second_values.resize(1);
  Bytes x;
  Bytes y;
  const auto size = static_cast<size_t>(dtype_size(t));
  const auto put = [&](Bytes& bytes, Word w) {
    bytes.resize(bytes.size() + size);
    store_word(bytes.data() + bytes.size() - size, t, w);
  };
  for (const Word a : first_values) {
    for (const Word b : second_values) {
      put(x, a);
      put(y, b);
    }
  }
  return {x, y};
}

struct Rule {
  std::string name;
  std::string fires;  // the rule of `simplify` it is about; "": an order that cse finds equal
  std::string body;   // with T for the dtype; makes %z of %x and %y
  std::vector<DType> types;
};

const std::vector<DType> kFloatTypes = {DType::kF8E4M3FN, DType::kF8E5M2, DType::kF16,
                                        DType::kBF16,     DType::kF32,    DType::kF64};
const std::vector<DType> kIntTypes = {DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                      DType::kI32, DType::kU32, DType::kI64, DType::kU64};
const std::vector<DType> kSignedTypes = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};

const std::vector<DType> kUnsignedTypes = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};

std::vector<DType> joined(const std::vector<DType>& a, const std::vector<DType>& b) {
  std::vector<DType> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

std::vector<Rule> rules() {
  const auto numbers = joined(kFloatTypes, kIntTypes);
  const auto with_sign = joined(kFloatTypes, kSignedTypes);
  const std::vector<DType> infinite = {DType::kF8E5M2, DType::kF16, DType::kBF16, DType::kF32,
                                       DType::kF64};
  const auto constant = [](std::string value, std::string rest) {
    return "%k = const T[] splat(" + value + ")\n" + rest;
  };
  return {
      {"mul_one", "mul_one", constant("1", "%z = mul(%x, %k)"), numbers},
      {"mul_zero", "mul_zero", constant("0", "%z = mul(%x, %k)"), kIntTypes},
      {"div_one", "div_one", constant("1", "%z = div(%x, %k)"), numbers},
      {"div_four", "div_power_of_two", constant("4.0", "%z = div(%x, %k)"), kFloatTypes},
      {"div_minus_half", "div_power_of_two", constant("-0.5", "%z = div(%x, %k)"), kFloatTypes},
      {"div_large", "div_power_of_two", constant("256.0", "%z = div(%x, %k)"), kFloatTypes},
      {"div_tiny", "div_power_of_two", constant("0.015625", "%z = div(%x, %k)"), kFloatTypes},
      {"add_negative_zero", "add_zero", constant("-0.0", "%z = add(%k, %x)"), kFloatTypes},
      {"add_zero", "add_zero", constant("0", "%z = add(%x, %k)"), kIntTypes},
      {"sub_zero", "sub_zero", constant("0", "%z = sub(%x, %k)"), numbers},
      {"sub_itself", "sub_itself", "%z = sub(%x, %x)", kIntTypes},
      {"add_negated", "add_neg", "%n = neg(%y)\n%z = add(%x, %n)", with_sign},
      {"negated_add", "add_neg", "%n = neg(%x)\n%z = add(%n, %y)", with_sign},
      {"sub_negated", "sub_neg", "%n = neg(%y)\n%z = sub(%x, %n)", with_sign},
      {"neg_neg", "neg_neg", "%n = neg(%x)\n%z = neg(%n)", with_sign},
      {"abs_abs", "abs_abs", "%n = abs(%x)\n%z = abs(%n)", with_sign},
      {"abs_unsigned", "abs_unsigned", "%z = abs(%x)", kUnsignedTypes},
      {"abs_neg", "abs_neg", "%n = neg(%x)\n%z = abs(%n)", with_sign},
      {"abs_relu", "abs_relu", "%n = relu(%x)\n%z = abs(%n)", with_sign},
      {"relu_relu", "relu_relu", "%n = relu(%x)\n%z = relu(%n)", with_sign},
      {"relu_abs", "relu_abs", "%n = abs(%x)\n%z = relu(%n)", kFloatTypes},
      {"max_itself", "idempotent_itself", "%z = max(%x, %x)", numbers},
      {"min_itself", "idempotent_itself", "%z = min(%x, %x)", numbers},
      {"max_again", "idempotent_again", "%n = max(%x, %y)\n%z = max(%n, %y)", numbers},
      {"min_again", "idempotent_again", "%n = min(%x, %y)\n%z = min(%x, %n)", numbers},
      {"max_infinity", "max_neutral", constant("-inf", "%z = max(%x, %k)"), infinite},
      {"min_infinity", "min_neutral", constant("inf", "%z = min(%x, %k)"), infinite},
      {"max_lowest", "max_neutral", constant("-128", "%z = max(%x, %k)"), {DType::kI8}},
      {"min_highest", "min_neutral", constant("255", "%z = min(%x, %k)"), {DType::kU8}},
      {"add_order", "", "%a = add(%x, %y)\n%b = add(%y, %x)\n%z = sub(%a, %b)", numbers},
      {"mul_order", "", "%a = mul(%x, %y)\n%b = mul(%y, %x)\n%z = max(%a, %b)", numbers},
      {"max_order", "", "%a = max(%x, %y)\n%b = max(%y, %x)\n%z = add(%a, %b)", numbers},
      {"where_same", "where_same", "%c = less(%x, %y)\n%z = where(%c, %x, %x)", numbers},
      {"where_true", "where_constant", "%c = const bool[] splat(true)\n%z = where(%c, %x, %y)",
       numbers},
      {"where_false", "where_constant", "%c = const bool[] splat(false)\n%z = where(%c, %x, %y)",
       numbers},
  };
}

// How often each rule is applied by one pass, by name.
std::map<std::string, int64_t> applied(const std::string& text, const char* pass) {
  const std::vector<std::string> names{pass};
  const auto result = tooling::run_passes(driver::parse_model(text).value(), names);
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? result->reports.at(0).rewrites : std::map<std::string, int64_t>{};
}

class Rules : public testing::TestWithParam<Rule> {};

TEST_P(Rules, KeepEveryBit) {
  const bool binary = GetParam().body.find("%y") != std::string::npos;
  for (const DType t : GetParam().types) {
    const auto [x, y] = pairs(t, binary);
    const int64_t n = static_cast<int64_t>(x.size()) / dtype_size(t);
    std::string body = GetParam().body;
    for (size_t at = 0; (at = body.find("T[", at)) != std::string::npos;) {
      body.replace(at, 1, dtype_name(t));
    }
    const std::string text = fmt::format("graph @r(%x: {0}[{1}], %y: {0}[{1}]) -> (%z) {{\n{2}\n}}",
                                         dtype_name(t), n, body);
    const Outcome plain = run_text(text, optional_passes(), {x, y});
    const Outcome optimized = run_text(text, value_changing_passes(), {x, y});
    ASSERT_EQ(plain.error + optimized.error, "") << text;
    EXPECT_EQ(plain.outputs, optimized.outputs) << text;
    if (!GetParam().fires.empty()) {
      EXPECT_TRUE(applied(text, "simplify").contains(GetParam().fires)) << text;
    }
    EXPECT_NE(plain.canonical, optimized.canonical) << "the rule did nothing\n" << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rules, testing::ValuesIn(rules()),
                         [](const auto& info) { return info.param.name; });

// The rules of ops that move data, on every 8-bit element.
struct Movement {
  std::string fires;
  std::string body;  // makes %z of %x: u8[4,1,64]
};

std::vector<Movement> movements() {
  return {
      {"identity", "%z = identity(%x)"},
      {"concat_one", "%z = concat(%x) {axis=0}"},
      {"expand_same", "%z = expand(%x) {shape=[4, 1, 64]}"},
      {"expand_expand",
       "%e = expand(%x) {shape=[4, 2, 64]}\n%z = expand(%e) {shape=[3, 4, 2, 64]}"},
      {"pad_nothing", "%z = pad(%x) {pads=[0, 0, 0, 0, 0, 0], value=1.0}"},
      {"reshape_same", "%z = reshape(%x) {shape=[4, 1, 64]}"},
      {"reshape_reshape", "%r = reshape(%x) {shape=[256]}\n%z = reshape(%r) {shape=[2, 128]}"},
      {"reshape_constant",
       "%k = const u8[4] dense(1, 0, 255, 128)\n%r = reshape(%k) {shape=[4, 1, 1]}\n"
       "%z = add(%x, %r)"},
      {"slice_all", "%z = slice(%x) {axes=[2], starts=[0], ends=[64], steps=[1]}"},
      {"transpose_nothing", "%z = transpose(%x) {perm=[0, 1, 2]}"},
      {"transpose_uniform",
       "%k = const u8[64,1] splat(7)\n%r = transpose(%k) {perm=[1, 0]}\n%z = add(%x, %r)"},
      {"transpose_of_ones", "%z = transpose(%x) {perm=[1, 0, 2]}"},
      {"transpose_back",
       "%t = transpose(%x) {perm=[2, 0, 1]}\n%z = transpose(%t) {perm=[1, 2, 0]}"},
      {"transpose_transpose",
       "%r = reshape(%x) {shape=[4, 8, 8]}\n%t = transpose(%r) {perm=[2, 0, 1]}\n"
       "%z = transpose(%t) {perm=[2, 0, 1]}"},
  };
}

class Movements : public testing::TestWithParam<Movement> {};

TEST_P(Movements, KeepEveryBit) {
  Bytes all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
  const std::string text =
      fmt::format("graph @m(%x: u8[4,1,64]) -> (%z) {{\n{}\n}}", GetParam().body);
  const Outcome plain = run_text(text, optional_passes(), {all});
  const Outcome optimized = run_text(text, value_changing_passes(), {all});
  ASSERT_EQ(plain.error + optimized.error, "") << text;
  EXPECT_EQ(plain.outputs, optimized.outputs) << text;
  EXPECT_TRUE(applied(text, "canonicalize").contains(GetParam().fires)) << text;
}

INSTANTIATE_TEST_SUITE_P(All, Movements, testing::ValuesIn(movements()),
                         [](const auto& info) { return info.param.fires; });

// Transposed convolutions by constants, as convolutions for each place modulo the strides.
struct Transposed {
  std::string name;
  std::string x;
  std::string w;
  std::string attrs;
  int64_t channels;  // of the bias; 0: none
};

std::vector<Transposed> transposed() {
  return {
      {"same_size", "1,8,6,5", "8,4,3,3", "output_shape=[12,10], strides=[2,2]", 4},
      {"padded", "2,8,6,5", "8,4,3,3", "output_shape=[12,10], strides=[2,2], pads=[1,1]", 0},
      {"cut_short", "1,3,6,5", "3,2,4,4", "output_shape=[9,7], strides=[2,2], pads=[1,2]", 2},
      {"beyond_the_last_tap", "1,3,2,2", "3,2,2,2", "output_shape=[9,6], strides=[2,2]", 2},
      {"one_phase", "1,4,5,5", "4,3,3,3", "output_shape=[7,7]", 3},
      {"other_strides", "1,4,5,4", "4,2,3,5", "output_shape=[15,20], strides=[3,4]", 2},
      {"dilated", "1,4,5,5", "4,2,3,3", "output_shape=[15,16], strides=[2,3], dilations=[3,2]", 2},
      {"groups", "1,6,5,5", "6,2,3,3", "output_shape=[10,10], strides=[2,2], group=3", 6},
      {"one_dim", "2,4,9", "4,2,5", "output_shape=[20], strides=[2], pads=[1]", 2},
      {"several_segments", "1,200,3,3", "200,4,3,3", "output_shape=[6,6], strides=[2,2]", 4},
      {"far_pads", "1,2,9,9", "2,2,3,3", "output_shape=[4,3], strides=[2,2], pads=[5,7]", 0},
  };
}

class TransposedConvolutions : public testing::TestWithParam<Transposed> {};

TEST_P(TransposedConvolutions, KeepEveryBit) {
  const Transposed& t = GetParam();
  std::string text = fmt::format(
      "graph @t(%x: f32[{}]) -> (%z) {{\n%w = const f32[{}] random(seed=3, lo=-1, hi=1)\n", t.x,
      t.w);
  if (t.channels > 0) {
    text += fmt::format("%b = const f32[{}] random(seed=4, lo=-1, hi=1)\n", t.channels);
  }
  text += fmt::format("%z = conv_transpose(%x, %w{}) {{{}}}\n}}", t.channels > 0 ? ", %b" : "",
                      t.attrs);
  const auto graph = driver::parse_model(text).value();
  const std::vector<Word> edges = edge_values(DType::kF32);
  for (const size_t apart : {size_t{1} << 30, size_t{23}}) {
    Bytes x(static_cast<size_t>(graph.type(graph.inputs[0]).elements()) * 4);
    uint32_t drawn = 7;
    for (size_t i = 0; i < x.size() / 4; ++i) {
      drawn = drawn * 1664525U + 1013904223U;
      const bool edge = i % apart == apart - 1;
      const auto number = static_cast<float>(static_cast<int32_t>(drawn)) * 0x1p-31F;
      store_word(x.data() + 4 * i, DType::kF32,
                 edge ? edges[i / apart % edges.size()] : std::bit_cast<uint32_t>(number));
    }
    const Outcome plain = run_text(text, optional_passes(), {x});
    const Outcome optimized = run_text(text, value_changing_passes(), {x});
    ASSERT_EQ(plain.error + optimized.error, "") << text;
    EXPECT_EQ(plain.outputs, optimized.outputs) << text;
  }
  EXPECT_TRUE(applied(text, "simplify").contains("conv_transpose_phases")) << text;
}

INSTANTIATE_TEST_SUITE_P(All, TransposedConvolutions, testing::ValuesIn(transposed()),
                         [](const auto& info) { return info.param.name; });

// Too many phases, one that meets no tap, weights that are no constant, other elements.
TEST(TransposedConvolution, StaysWhole) {
  for (const char* text : {
           "graph @t(%x: f32[1,2,3,3]) -> (%z) {\n%w = const f32[2,2,5,5] splat(1)\n"
           "%z = conv_transpose(%x, %w) {output_shape=[15,15], strides=[5,5]}\n}",
           "graph @t(%x: f32[1,2,3,3]) -> (%z) {\n%w = const f32[2,2,1,1] splat(1)\n"
           "%z = conv_transpose(%x, %w) {output_shape=[6,6], strides=[2,2]}\n}",
           "graph @t(%x: f32[1,2,3,3], %w: f32[2,2,3,3]) -> (%z) {\n"
           "%z = conv_transpose(%x, %w) {output_shape=[6,6], strides=[2,2]}\n}",
           "graph @t(%x: f16[1,2,3,3]) -> (%z) {\n%w = const f16[2,2,3,3] splat(1)\n"
           "%z = conv_transpose(%x, %w) {output_shape=[6,6], strides=[2,2]}\n}",
       }) {
    EXPECT_TRUE(applied(text, "simplify").empty()) << text;
  }
}

const std::set<std::string> kCastRules = {"cast_back", "cast_cast", "cast_same"};

// Every name given to Patch::by in src/ops has a row above (CastChains, for those of cast), and
// every row names a rule there is.
TEST(EveryRule, IsProven) {
  std::set<std::string> proven = kCastRules;
  proven.insert("conv_transpose_phases");
  for (const Rule& rule : rules()) {
    if (!rule.fires.empty()) proven.insert(rule.fires);
  }
  for (const Movement& movement : movements()) proven.insert(movement.fires);
  std::set<std::string> written;
  const std::regex name("\\.by\\(\\s*\"([a-z_]+)\"");
  const std::string ops = std::string(PYC_SOURCE_DIR) + "/src/ops";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ops)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read_file(entry.path().string(), 1 << 20).value();
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
      written.insert((*it)[1]);
    }
  }
  EXPECT_EQ(written, proven);
}

// A rule that does not say its name is refused where it is applied first.
TEST(EveryRule, SaysItsName) {
  ir::OpDef nameless = *ops::all_ops().find("neg");
  nameless.simplify = [](ir::Patch&, const ir::NodeView& node) { return node.input(0); };
  const ir::OpSet set({&nameless});
  ir::GraphBuilder builder(set, "g");
  const ir::ValueId x = builder.input("x", {DType::kF32, {2}}).value();
  ASSERT_TRUE(builder.output(builder.op("neg", {x}).value()).ok());
  DecisionLog log;
  const std::vector<std::string> names{"simplify"};
  const auto result =
      run_passes(ir::verify_graph(std::move(builder).take()).value(), set, names, {}, &log);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "pass simplify: a rule of op 'neg' does not say its name");
}

// A graph that the passes leave with a wrong type is refused in the name of the pass that made it,
// whoever ran after it.
TEST(BrokenGraph, NamesThePassThatMadeIt) {
  // Its rule gives another type once it was simplified.
  static bool simplified = false;
  ir::OpDef fickle = *ops::all_ops().find("neg");
  fickle.infer = [](const ir::InferArgs& args) -> Result<std::vector<ir::TensorType>> {
    return std::vector{
        ir::TensorType{simplified ? DType::kF64 : args.inputs[0].dtype, args.inputs[0].shape}};
  };
  fickle.simplify = [](ir::Patch& patch, const ir::NodeView& node) {
    simplified = true;
    return patch.producer(node.input(0)) ? patch.by("neg_neg", node.input(0)) : ir::kNoId;
  };
  const ir::OpSet set({&fickle});
  ir::GraphBuilder builder(set, "g");
  const ir::ValueId x = builder.input("x", {DType::kF32, {2}}).value();
  const ir::ValueId y = builder.op("neg", {x}, {}, "y").value();
  ASSERT_TRUE(builder.output(builder.op("neg", {y}, {}, "z").value()).ok());
  DecisionLog log;
  const std::vector<std::string> names{"simplify", "cse", "eliminate_dead"};
  const auto result =
      run_passes(ir::verify_graph(std::move(builder).take()).value(), set, names, {}, &log);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(),
            "pass simplify: [type_mismatch] node 0 (%y = neg): expected f64[2] for %y, found "
            "f32[2]");
}

// All chains of two casts, whether or not a rule takes out the middle.
TEST(CastChains, KeepEveryBit) {
  int shortened = 0;
  std::set<std::string> fired;
  for (int a = 0; a < kDTypeCount; a += kSanitized ? 4 : 1) {
    const auto from = static_cast<DType>(a);
    const auto [x, y] = pairs(from, false);
    const int64_t n = static_cast<int64_t>(x.size()) / dtype_size(from);
    std::string outputs;
    std::string body;
    for (int b = 0; b < kDTypeCount; ++b) {
      body += fmt::format("%m{} = cast(%x) {{to={}}}\n", b, dtype_name(static_cast<DType>(b)));
      for (int c = 0; c < kDTypeCount; ++c) {
        outputs += fmt::format("{}%z{}_{}", outputs.empty() ? "" : ", ", b, c);
        body += fmt::format("%z{0}_{1} = cast(%m{0}) {{to={2}}}\n", b, c,
                            dtype_name(static_cast<DType>(c)));
      }
    }
    const std::string text =
        fmt::format("graph @c(%x: {}[{}]) -> ({}) {{\n{}}}", dtype_name(from), n, outputs, body);
    const Outcome plain = run_text(text, optional_passes(), {x});
    const Outcome optimized = run_text(text, value_changing_passes(), {x});
    ASSERT_EQ(plain.error + optimized.error, "");
    for (const auto& [rule, count] : applied(text, "simplify")) fired.insert(rule);
    for (size_t i = 0; i < plain.outputs.size(); ++i) {
      EXPECT_EQ(plain.outputs[i], optimized.outputs[i])
          << dtype_name(from) << " to " << dtype_name(static_cast<DType>(i / kDTypeCount)) << " to "
          << dtype_name(static_cast<DType>(i % kDTypeCount));
    }
    shortened +=
        static_cast<int>(std::count(plain.canonical.begin(), plain.canonical.end(), '\n') -
                         std::count(optimized.canonical.begin(), optimized.canonical.end(), '\n'));
  }
  EXPECT_GT(shortened, kSanitized ? 50 : 200);
  EXPECT_EQ(fired, kCastRules);
}

}  // namespace
}  // namespace pyc::passes
