// Values of any kind as inputs of models.

#include <complex>
#include <cstring>

#include "capi/calls.h"
#include "onnx/model_writer.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

namespace w = onnx::test;

constexpr int64_t kString = 8;

w::Bytes sequence_of(const w::Bytes& element) { return w::text(4, w::text(1, element)); }
w::Bytes optional_of(const w::Bytes& element) { return w::text(9, w::text(1, element)); }

w::Bytes joined_words() {
  return w::model({.inputs = {w::value("a", w::tensor_type(kString, {w::named("n")})),
                              w::value("b", w::tensor_type(kString, {w::named("n")}))},
                   .outputs = {w::unshaped("y", kString)},
                   .nodes = {w::node("StringConcat", {"a", "b"}, {"y"})}},
                  20);
}

// The sequence with `x` put at its end, and one of its items.
w::Bytes grown_sequence() {
  const w::Bytes item = w::tensor_type(w::kF32, {w::named("n")});
  return w::model(
      {.inputs = {w::value("list", sequence_of(item)), w::value("x", item)},
       .outputs = {w::value("longer", sequence_of(item)), w::unshaped("first", w::kF32)},
       .initializers = {w::raw_tensor("zero", w::kI64, {}, w::raw_of(std::vector<int64_t>{0}))},
       .nodes = {w::node("SequenceInsert", {"list", "x"}, {"longer"}, {}, "grow"),
                 w::node("SequenceAt", {"longer", "zero"}, {"first"}, {}, "pick")}});
}

w::Bytes asked_optional() {
  return w::model(
      {.inputs = {w::value("maybe", optional_of(w::tensor_type(w::kF32, {w::fixed(2)})))},
       .outputs = {w::value("there", w::kBool, {})},
       .nodes = {w::node("OptionalHasElement", {"maybe"}, {"there"})}});
}

Model compiled_from(const w::Bytes& bytes) {
  const TempFolder folder;
  const std::string path = folder.file("model.onnx");
  FILE* file = fopen(path.c_str(), "wb");
  fwrite(bytes.data(), 1, bytes.size(), file);
  fclose(file);
  return Model::load(path);
}

AnyValue floats(const std::vector<float>& elements) {
  return AnyValue(
      Tensor::of<float>(PYC_DTYPE_F32, {static_cast<int64_t>(elements.size())}, elements));
}

AnyValue words(const std::vector<std::string>& strings) {
  return AnyValue(strings, {static_cast<int64_t>(strings.size())});
}

std::vector<std::string> strings_of(const pyc_result* result) {
  std::vector<std::string> out;
  for (size_t i = 0; i < pyc_result_count(result); ++i) {
    const char* text = nullptr;
    size_t size = 0;
    check([&](pyc_error** e) { return pyc_result_string(result, i, &text, &size, e); });
    out.emplace_back(text, size);
  }
  return out;
}

std::vector<float> floats_of(const pyc_result* result) {
  auto view = sized<pyc_tensor_view>();
  check([&](pyc_error** e) { return pyc_result_tensor(result, &view, e); });
  const auto* numbers = static_cast<const float*>(view.data);
  return {numbers, numbers + view.bytes / 4};
}

const pyc_result* item(const pyc_result* sequence, size_t i) {
  const pyc_result* out = nullptr;
  check([&](pyc_error** e) { return pyc_result_item(sequence, i, &out, e); });
  return out;
}

Refusal results_refused(Model& model, const std::vector<const pyc_result*>& inputs) {
  return refusal([&](pyc_error** e) {
    pyc_results* results = nullptr;
    const pyc_status status =
        pyc_run_model_values(model.get(), inputs.data(), inputs.size(), &results, nullptr, e);
    EXPECT_EQ(results, nullptr);
    pyc_results_destroy(results);
    return status;
  });
}

TEST(Values, AreWhatTheyWereMadeOf) {
  EXPECT_STREQ(pyc_result_type_text(floats({1, 2}).get()), "f32[2]");
  EXPECT_EQ(floats_of(floats({1, 2}).get()), (std::vector<float>{1, 2}));
  const std::vector<std::string> texts = {"", std::string("a\0b", 3), "ü"};
  EXPECT_EQ(strings_of(words(texts).get()), texts);
  EXPECT_STREQ(pyc_result_type_text(words(texts).get()), "string[3]");
  EXPECT_EQ(pyc_result_type(AnyValue().get()), PYC_TYPE_NOTHING);
  const AnyValue scalar(std::vector<std::string>{"one"}, {});
  EXPECT_STREQ(pyc_result_type_text(scalar.get()), "string[]");
  const AnyValue empty(std::vector<std::string>{}, {2, 0});
  EXPECT_EQ(pyc_result_count(empty.get()), 0U);
}

TEST(Values, OfSequencesOutliveTheirItems) {
  AnyValue outer;
  {
    const std::vector<AnyValue> items = {floats({1}), words({"x"})};
    const std::vector<AnyValue> one = {AnyValue::sequence(items)};
    outer = AnyValue::sequence(one);
  }
  ASSERT_EQ(pyc_result_count(outer.get()), 1U);
  const pyc_result* inner = item(outer.get(), 0);
  ASSERT_EQ(pyc_result_count(inner), 2U);
  EXPECT_EQ(floats_of(item(inner, 0)), (std::vector<float>{1}));
  EXPECT_EQ(strings_of(item(inner, 1)), (std::vector<std::string>{"x"}));
}

TEST(Values, StringsAreInputs) {
  Model model = compiled_from(joined_words());
  const std::vector<AnyValue> in = {words({"deep", ""}), words({"er", "x"})};
  auto stats = sized<pyc_run_stats>();
  const Results results = model.run_values(in, &stats);
  EXPECT_EQ(strings_of(results[0]), (std::vector<std::string>{"deeper", "x"}));
  EXPECT_GT(stats.wall_ns, 0);
}

TEST(Values, SequencesAreInputsAndResultsAreInputsAgain) {
  Model model = compiled_from(grown_sequence());
  std::vector<AnyValue> in = {AnyValue::sequence({}), floats({1, 2})};
  for (size_t round = 1; round <= 3; ++round) {
    const Results results = model.run_values(in);
    EXPECT_EQ(pyc_result_count(results[0]), round);
    EXPECT_EQ(floats_of(results[1]), (std::vector<float>{1, 2}));
    in[0] = AnyValue(results[0]);  // outlives its results
    in[1] = floats({static_cast<float>(round)});
  }
  EXPECT_EQ(floats_of(item(in[0].get(), 2)), (std::vector<float>{2}));
}

TEST(Values, OptionalsAreAValueOrNothing) {
  Model model = compiled_from(asked_optional());
  const std::vector<AnyValue> nothing = {AnyValue()};
  EXPECT_EQ(*static_cast<const uint8_t*>(model.run_values(nothing).tensor(0).data), 0);
  const std::vector<AnyValue> something = {floats({1, 2})};
  EXPECT_EQ(*static_cast<const uint8_t*>(model.run_values(something).tensor(0).data), 1);
  const Refusal shape = results_refused(model, {floats({1, 2, 3}).get()});
  EXPECT_EQ(shape.status, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_EQ(shape.message, "input 'maybe': expected f32[2], found f32[3]");
}

TEST(Values, ComplexNumbersAreMovedAndNamed) {
  constexpr int64_t kComplex64 = 14;
  Model model = compiled_from(w::model({.inputs = {w::value("z", kComplex64, {2, 1})},
                                        .outputs = {w::unshaped("y", kComplex64)},
                                        .nodes = {w::node("Transpose", {"z"}, {"y"})}}));
  EXPECT_EQ(model.input(0).dtype, PYC_DTYPE_C64);
  EXPECT_EQ(model.input(0).type, PYC_TYPE_TENSOR);
  EXPECT_EQ(model.input(0).bytes, 16);
  EXPECT_STREQ(model.input(0).type_text, "c64[2,1]");
  const std::vector<std::complex<float>> numbers = {{1, 2}, {3, -4}};
  const Tensor z = Tensor::of<std::complex<float>>(PYC_DTYPE_C64, {2, 1}, numbers);
  const std::vector<AnyValue> in = {AnyValue(z)};
  const Results results = model.run_values(in);
  EXPECT_STREQ(pyc_result_type_text(results[0]), "c64[1,2]");
  const pyc_tensor_view y = results.tensor(0);
  EXPECT_EQ(y.dtype, PYC_DTYPE_C64);
  std::vector<double> parts(4);
  check([&](pyc_error** e) { return pyc_tensor_read_f64(&y, 0, 4, parts.data(), e); });
  EXPECT_EQ(parts, (std::vector<double>{1, 2, 3, -4}));
  EXPECT_EQ(pyc_tensor_read_f64(&y, 1, 4, parts.data(), nullptr), PYC_STATUS_INVALID_ARGUMENT);
  const Tensor real(PYC_DTYPE_F32, {2, 1});
  const Refusal r = results_refused(model, {AnyValue(real).get()});
  EXPECT_EQ(r.status, PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(r.message, "input 'z': expected c64[2,1], found f32[2,1]");
}

TEST(Values, GraphsTakeNoComplexNumbers) {
  pyc_value value = 0;
  const Graph graph("g");
  const int64_t two = 2;
  const Refusal built = refusal([&](pyc_error** e) {
    return pyc_graph_input(graph.get(), "z", PYC_DTYPE_C128, &two, 1, &value, e);
  });
  EXPECT_EQ(built.status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(built.message.find("c128[2]: graphs compute with real numbers only"), std::string::npos)
      << built.message;
  const std::string text = "graph @g(%z: c64[2]) -> (%y) {\n  %y = relu(%z)\n}\n";
  const Refusal parsed = refusal([&](pyc_error** e) {
    pyc_graph* made = nullptr;
    return pyc_graph_parse(text.data(), text.size(), &made, e);
  });
  EXPECT_NE(parsed.message.find("c64[2]: graphs compute with real numbers only"), std::string::npos)
      << parsed.message;
  Model model = small_model();
  const Refusal run = results_refused(model, {AnyValue(Tensor(PYC_DTYPE_C64, {2, 3})).get()});
  EXPECT_EQ(run.status, PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(run.message, "input 'x': expected f32[2,3], found c64[2,3]");
}

TEST(Values, TensorsRunModelsThatAreCompiledWhole) {
  Model model = small_model();
  const Tensor x = Tensor::random(PYC_DTYPE_F32, {2, 3}, 7);
  const std::vector<AnyValue> in = {AnyValue(x)};
  const Results results = model.run_values(in);
  const std::vector<Tensor> expected = model(Tensor::random(PYC_DTYPE_F32, {2, 3}, 7));
  const pyc_tensor_view y = results.tensor(0);
  ASSERT_EQ(y.bytes, expected[0].view().bytes);
  EXPECT_EQ(std::memcmp(y.data, expected[0].view().data, static_cast<size_t>(y.bytes)), 0);
  const Refusal strings = results_refused(model, {words({"x"}).get()});
  EXPECT_EQ(strings.status, PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(strings.message, "input 'x': expected f32[2,3], found string[1]");
}

TEST(Values, InputsOfTheWrongKindAreRefusedByName) {
  Model model = compiled_from(joined_words());
  const AnyValue good = words({"a"});
  const AnyValue number = floats({1});
  const AnyValue none;
  const AnyValue list = AnyValue::sequence({});
  for (const AnyValue* wrong : {&number, &none, &list}) {
    const Refusal r = results_refused(model, {good.get(), wrong->get()});
    EXPECT_EQ(r.status, PYC_STATUS_DTYPE_MISMATCH);
    EXPECT_EQ(r.node, "b");
    EXPECT_EQ(r.message, std::string("input 'b': expected string[n], found ") +
                             pyc_result_type_text(wrong->get()));
  }
  EXPECT_EQ(model.stats().guard_miss_count, 6);  // each was called twice
}

TEST(Values, InputsOfTheWrongShapeAreRefusedByName) {
  Model model = compiled_from(joined_words());
  const AnyValue flat = words({"a", "b"});
  const AnyValue square(std::vector<std::string>{"a", "b"}, {1, 2});
  const Refusal rank = results_refused(model, {flat.get(), square.get()});
  EXPECT_EQ(rank.status, PYC_STATUS_RANK_MISMATCH);
  EXPECT_EQ(rank.message, "input 'b': expected string[n], found string[1,2]");
  const Refusal size = results_refused(model, {flat.get(), words({"a"}).get()});
  EXPECT_EQ(size.status, PYC_STATUS_SHAPE_MISMATCH);
  EXPECT_NE(size.message.find("dim 'n' is 2 in input 'a' and 1 in input 'b'"), std::string::npos)
      << size.message;
  const Refusal count = results_refused(model, {flat.get()});
  EXPECT_EQ(count.status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(count.message, "expected 2 inputs, found 1: the inputs are a, b");
}

TEST(Values, ItemsOfTheWrongTypeAreRefusedByTheirPlace) {
  Model model = compiled_from(grown_sequence());
  const AnyValue x = floats({1});
  const std::vector<AnyValue> mixed = {floats({1}), words({"a"})};
  const Refusal kind = results_refused(model, {AnyValue::sequence(mixed).get(), x.get()});
  EXPECT_EQ(kind.status, PYC_STATUS_DTYPE_MISMATCH);
  EXPECT_EQ(kind.node, "list");
  EXPECT_EQ(kind.message, "input 'list': item 1: expected f32[n], found string[1]");
  const std::vector<AnyValue> flat = {AnyValue(Tensor(PYC_DTYPE_F32, {1, 1}))};
  EXPECT_EQ(results_refused(model, {AnyValue::sequence(flat).get(), x.get()}).status,
            PYC_STATUS_RANK_MISMATCH);
}

TEST(Values, NullIsRefusedByName) {
  Model model = compiled_from(joined_words());
  const AnyValue good = words({"a"});
  const Refusal r = results_refused(model, {good.get(), nullptr});
  EXPECT_EQ(r.status, PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(r.node, "b");
  EXPECT_NE(r.message.find("input 'b': expected string[n], found NULL"), std::string::npos)
      << r.message;
  pyc_results* results = nullptr;
  EXPECT_EQ(pyc_run_model_values(model.get(), nullptr, 2, &results, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_run_model_values(nullptr, nullptr, 0, &results, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  const pyc_result* in[] = {good.get(), good.get()};
  EXPECT_EQ(pyc_run_model_values(model.get(), in, 2, nullptr, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  pyc_result* made = nullptr;
  EXPECT_EQ(pyc_result_from_tensor(nullptr, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_result_nothing(nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_result_copy(nullptr, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_result_from_items(nullptr, 1, &made, nullptr), PYC_STATUS_NULL_POINTER);
  const pyc_result* gap[] = {nullptr};
  EXPECT_EQ(pyc_result_from_items(gap, 1, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(made, nullptr);
  pyc_result_destroy(nullptr);
}

TEST(Values, ThatCannotBeMadeAreRefused) {
  pyc_result* made = nullptr;
  const int64_t two = 2;
  const int64_t negative = -1;
  const pyc_string strings[] = {{"a", 1}, {nullptr, 3}};
  EXPECT_EQ(pyc_result_from_strings(strings, &two, 1, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_result_from_strings(nullptr, &two, 1, &made, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_NE(pyc_result_from_strings(strings, &negative, 1, &made, nullptr), PYC_STATUS_OK);
  EXPECT_NE(pyc_result_from_strings(strings, &two, 1000, &made, nullptr), PYC_STATUS_OK);
  float number = 0;
  auto small = sized<pyc_tensor_view>();
  small.data = &number;
  small.bytes = sizeof number;
  small.shape = &two;
  small.rank = 1;
  small.dtype = PYC_DTYPE_F32;
  EXPECT_EQ(pyc_result_from_tensor(&small, &made, nullptr), PYC_STATUS_SIZE_MISMATCH);
  EXPECT_EQ(made, nullptr);
}

TEST(Values, NestOnlySoDeep) {
  std::vector<AnyValue> value = {AnyValue()};
  pyc_status status = PYC_STATUS_OK;
  int depth = 0;
  while (status == PYC_STATUS_OK && depth < 100'000) {
    pyc_result* made = nullptr;
    // Twice the same: what is shared costs nothing.
    const pyc_result* items[] = {value[0].get(), value[0].get()};
    status = pyc_result_from_items(items, 2, &made, nullptr);
    if (status == PYC_STATUS_OK) {
      value[0] = AnyValue(made);
      ++depth;
    }
    pyc_result_destroy(made);
  }
  EXPECT_EQ(status, PYC_STATUS_BUDGET_EXCEEDED);
  EXPECT_EQ(depth, 64);
}

}  // namespace
}  // namespace pyc::test
