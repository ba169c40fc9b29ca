// Models with open shapes as a user of the program meets them.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/json_output.h"
#include "cli/program.h"
#include "onnx/model_writer.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

namespace w = onnx::test;
std::string written(const TempFolder& folder, const std::string& name, const w::Bytes& bytes) {
  std::ofstream(folder.file(name), std::ios::binary) << bytes;
  return folder.file(name);
}

// A head of an exported transformer: reshapes by shapes that are computed from the input's.
w::Bytes exported() {
  return w::model(
      {.inputs = {w::value("ids", w::tensor_type(w::kI64, {w::named("batch"), w::named("seq")}))},
       .outputs = {w::unshaped("y", w::kF32)},
       .initializers = {w::floats("table", {10, 4}, std::vector<float>(40, 0.5F)),
                        w::raw_tensor("zero", w::kI64, {}, w::raw_of(std::vector<int64_t>{0})),
                        w::raw_tensor("one", w::kI64, {}, w::raw_of(std::vector<int64_t>{1})),
                        w::ints("heads", {2}), w::ints("rest", {-1}), w::ints("axis", {0})},
       .nodes = {w::node("Gather", {"table", "ids"}, {"x"}, {}, "embed"),
                 w::node("Shape", {"ids"}, {"shape"}, {}, "shape"),
                 w::node("Gather", {"shape", "zero"}, {"b"}, {}, "batch"),
                 w::node("Gather", {"shape", "one"}, {"s"}, {}, "seq"),
                 w::node("Unsqueeze", {"b", "axis"}, {"b1"}, {}, "b1"),
                 w::node("Unsqueeze", {"s", "axis"}, {"s1"}, {}, "s1"),
                 w::node("Concat", {"b1", "s1", "heads", "rest"}, {"to"}, {w::attr_int("axis", 0)},
                         "join"),
                 w::node("Reshape", {"x", "to"}, {"r"}, {}, "split"),
                 w::node("Transpose", {"r"}, {"t"}, {w::attr_ints("perm", {0, 2, 1, 3})}, "turn"),
                 w::node("Softmax", {"t"}, {"y"}, {w::attr_int("axis", -1)}, "soft")}});
}

// Takes no image under 4 by 4.
w::Bytes windowed() {
  return w::model(
      {.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n"), w::fixed(1), w::named("h"),
                                                         w::named("w")}))},
       .outputs = {w::unshaped("y", w::kF32)},
       .nodes = {w::node("MaxPool", {"x"}, {"y"}, {w::attr_ints("kernel_shape", {4, 4})})}});
}

TEST(OpenModels, RunWithoutOptionsTakesDimsOfOneAndSaysSo) {
  const TempFolder folder;
  const std::string path = written(folder, "exported.onnx", exported());
  const Outcome o = pyc("run " + path + " --threads 1");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "note: open dims are taken as batch = 1, seq = 1")) << o.text;
  EXPECT_TRUE(has(o, "y: f32[1,2,1,2] digest ")) << o.text;
}

TEST(OpenModels, ShapeArithmeticVanishesIntoOneSegment) {
  const TempFolder folder;
  const std::string path = written(folder, "exported.onnx", exported());
  const Outcome o = pyc_out("run " + path + " --dim batch=3 --dim seq=5 --json");
  ASSERT_EQ(o.exit, 0) << o.text;
  const Json report = Json::parse(o.text);
  EXPECT_EQ(report["outputs"][0]["shape"], Json({3, 2, 5, 2}));
  EXPECT_EQ(report["log"]["breaks"]["count"], 0);
  EXPECT_EQ(report["log"]["breaks"]["compilability_score"], 1.0);
  const Outcome again = pyc_out("run " + path + " --shape ids=3x5 --json --threads 1");
  EXPECT_EQ(Json::parse(again.text)["outputs"], report["outputs"]);
}

TEST(OpenModels, SizesThatAModelCannotTakeAreNotGuessed) {
  const TempFolder folder;
  const std::string path = written(folder, "windowed.onnx", windowed());
  const Outcome o = pyc("run " + path);
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "taken as h = 8, n = 1, w = 8")) << o.text;
  const Outcome chosen = pyc("run " + path + " --dim h=2 --dim w=2 --dim n=1");
  EXPECT_EQ(chosen.exit, 4) << "what the user chose is not changed\n" << chosen.text;
}

TEST(OpenModels, WrongChoicesGetASuggestion) {
  const TempFolder folder;
  const std::string path = written(folder, "exported.onnx", exported());
  const Outcome dim = pyc("run " + path + " --dim bacth=2");
  EXPECT_EQ(dim.exit, 2) << dim.text;
  EXPECT_TRUE(has(dim, "did you mean 'batch'?")) << dim.text;
  EXPECT_EQ(pyc("run " + path + " --dim batch").exit, 2);
  EXPECT_EQ(pyc("run " + path + " --dim batch=two").exit, 2);
  EXPECT_EQ(pyc("run " + path + " --shape ids=1,2,3").exit, 4);
  EXPECT_EQ(pyc("run " + path + " --dim batch=2 --shape ids=3,4").exit, 4);
}

TEST(OpenModels, FilesFixTheShapes) {
  const TempFolder folder;
  const std::string path = written(folder, "windowed.onnx", windowed());
  const std::string tensor =
      written(folder, "x.pb", w::floats("x", {2, 1, 4, 5}, std::vector<float>(2 * 4 * 5, 1.5F)));
  const Outcome o = pyc("run " + path + " --input x=" + tensor);
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "y: f32[2,1,1,2]")) << o.text;
  EXPECT_FALSE(has(o, "note:")) << o.text;
}

TEST(OpenModels, OutputsOfEveryKindArePrinted) {
  const TempFolder folder;
  const std::string path = written(
      folder, "kinds.onnx",
      w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
                .outputs = {w::value("seq", w::text(4, w::text(1, w::text(1, w::number(1, 1))))),
                            w::unshaped("words", 8)},
                .nodes = {w::node("SequenceConstruct", {"x", "x"}, {"seq"}),
                          w::node("Cast", {"x"}, {"words"}, {w::attr_int("to", 8)})}}));
  const Outcome o = pyc("run " + path + " --dim n=2");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "seq: sequence of 2")) << o.text;
  EXPECT_TRUE(has(o, "1: f32[2] digest")) << o.text;
  EXPECT_TRUE(has(o, "words: string[2]")) << o.text;
  const Json report = Json::parse(pyc_out("run " + path + " --dim n=2 --json").text);
  EXPECT_EQ(report["outputs"][0]["items"].size(), 2U);
  EXPECT_EQ(report["outputs"][1]["strings"].size(), 2U);
  EXPECT_EQ(pyc("compare " + path + " --dim n=2").exit, 0);
}

// Words joined, a sequence grown by `x`, and whether an optional is there.
w::Bytes inputs_of_every_kind() {
  const w::Bytes item = w::tensor_type(w::kF32, {w::named("n")});
  const w::Bytes list = w::text(4, w::text(1, item));
  return w::model(
      {.inputs = {w::value("words", w::tensor_type(8, {w::named("k")})), w::value("list", list),
                  w::value("maybe", w::text(9, w::text(1, item))), w::value("x", item)},
       .outputs = {w::unshaped("twice", 8), w::value("longer", list),
                   w::value("there", w::kBool, {})},
       .nodes = {w::node("StringConcat", {"words", "words"}, {"twice"}),
                 w::node("SequenceInsert", {"list", "x"}, {"longer"}),
                 w::node("OptionalHasElement", {"maybe"}, {"there"})}},
      20);
}

TEST(OpenModels, InputsThatAreNoNumbersHaveStandIns) {
  const TempFolder folder;
  const std::string path = written(folder, "kinds.onnx", inputs_of_every_kind());
  const Outcome o = pyc("run " + path + " --dim n=2 --dim k=3 --seed 4");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "note: input 'words', string[k], is taken as small numbers as text"))
      << o.text;
  EXPECT_TRUE(has(o, "note: input 'list', sequence(f32[n]), is taken as an empty sequence"))
      << o.text;
  EXPECT_TRUE(has(o, "note: input 'maybe', optional(f32[n]), is taken as nothing")) << o.text;
  const Json report = Json::parse(pyc_out("run " + path + " --seed 4 --dim k=3 --json").text);
  const Json& twice = report["outputs"][0]["strings"];
  ASSERT_EQ(twice.size(), 3U);
  for (const auto& text : twice) {
    const std::string digits = text;
    EXPECT_EQ(digits.size(), 2U);
    EXPECT_EQ(digits[0], digits[1]);
    EXPECT_TRUE(digits[0] >= '0' && digits[0] <= '9') << digits;
  }
  EXPECT_EQ(report["outputs"][1]["items"].size(), 1U);
  EXPECT_EQ(report["outputs"][0],
            Json::parse(pyc_out("run " + path + " --seed 4 --dim k=3 --json").text)["outputs"][0]);
  EXPECT_EQ(pyc("bench " + path + " --runs 2").exit, 0);
  EXPECT_EQ(pyc("compare " + path).exit, 0);
  EXPECT_EQ(pyc("explain " + path).exit, 0);
}

TEST(OpenModels, FilesGiveInputsOfEveryKind) {
  const TempFolder folder;
  const std::string path = written(folder, "kinds.onnx", inputs_of_every_kind());
  const w::Bytes tensor = w::floats("t", {2}, {1, 2});
  const std::string words =
      written(folder, "words.pb", w::header("w", 8, {2}) + w::text(6, "a") + w::text(6, "bc"));
  const std::string list =
      written(folder, "list.pb", w::number(2, 1) + w::text(3, tensor) + w::text(3, tensor));
  const std::string maybe = written(folder, "maybe.pb", w::number(2, 1) + w::text(3, tensor));
  const std::string x = written(folder, "x.pb", tensor);
  const std::string inputs =
      " --input words=" + words + " --input list=" + list + " --input x=" + x + " --json";
  const Outcome o = pyc("run " + path + inputs + " --input maybe=" + maybe);
  ASSERT_EQ(o.exit, 0) << o.text;
  EXPECT_FALSE(has(o, "note:")) << o.text;
  const Json outputs = Json::parse(o.text)["outputs"];
  EXPECT_EQ(outputs[0]["strings"], Json({"aa", "bcbc"}));
  EXPECT_EQ(outputs[1]["items"].size(), 3U);
  // The file of a tensor is an optional's value, too.
  const Outcome plain = pyc_out("run " + path + inputs + " --input maybe=" + x);
  ASSERT_EQ(plain.exit, 0) << plain.text;
  EXPECT_EQ(Json::parse(plain.text)["outputs"][2], outputs[2]);
  const Outcome absent = pyc_out("run " + path + inputs);
  EXPECT_NE(Json::parse(absent.text)["outputs"][2], outputs[2]);
}

TEST(OpenModels, FilesOfTheWrongKindAreRefused) {
  const TempFolder folder;
  const std::string path = written(folder, "kinds.onnx", inputs_of_every_kind());
  const std::string tensor = written(folder, "x.pb", w::floats("t", {2}, {1, 2}));
  const Outcome list = pyc("run " + path + " --input list=" + tensor);
  EXPECT_EQ(list.exit, 4) << list.text;
  EXPECT_TRUE(has(list, "expected sequence(f32[n]), found f32[2]")) << list.text;
  const Outcome words = pyc("run " + path + " --input words=" + tensor);
  EXPECT_EQ(words.exit, 4) << words.text;
  EXPECT_TRUE(has(words, "expected string[k], found f32[2]")) << words.text;
  const std::string broken = written(folder, "broken.pb", w::number(2, 1) + w::text(3, "\xff\xff"));
  EXPECT_EQ(pyc("run " + path + " --input list=" + broken).exit, 3);
  const std::string ints =
      written(folder, "ints.pb", w::number(2, 1) + w::text(3, w::ints("t", {1, 2})));
  const Outcome items = pyc("run " + path + " --input list=" + ints);
  EXPECT_EQ(items.exit, 4) << items.text;
  EXPECT_TRUE(has(items, "input 'list': item 0: expected f32[n], found i64[2]")) << items.text;
}

TEST(OpenModels, ComplexNumbersAreNamedEverywhere) {
  const TempFolder folder;
  const std::string path =
      written(folder, "complex.onnx",
              w::model({.inputs = {w::value("z", w::tensor_type(15, {w::named("n"), w::fixed(2)}))},
                        .outputs = {w::unshaped("y", 15)},
                        .nodes = {w::node("Transpose", {"z"}, {"y"}, {}, "turn")}}));
  const Outcome shown = pyc("inspect " + path);
  EXPECT_TRUE(has(shown, "input   z: c128[n,2]")) << shown.text;
  const Outcome o = pyc("run " + path + " --dim n=3 --output-dir " + folder.path());
  ASSERT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "y: c128[2,3] digest")) << o.text;
  EXPECT_TRUE(has(o, "complex_numbers")) << o.text;
  const Outcome file = pyc("inspect " + folder.file("y.npy"));
  EXPECT_TRUE(has(file, "tensor  c128[2,3] digest")) << file.text;
  EXPECT_EQ(pyc("compare " + path).exit, 0);
  const std::string sum =
      written(folder, "sum.onnx",
              w::model({.inputs = {w::value("z", 14, {2})},
                        .outputs = {w::unshaped("y", 14)},
                        .nodes = {w::node("Add", {"z", "z"}, {"y"}, {}, "sum")}}));
  const Outcome refused = pyc("run " + sum);
  EXPECT_EQ(refused.exit, 5) << refused.text;
  EXPECT_TRUE(has(refused, "onnx.Add 'sum': expected real numbers, found c64[2]")) << refused.text;
}

TEST(OpenModels, EveryCommandTakesThem) {
  const TempFolder folder;
  const std::string path = written(folder, "exported.onnx", exported());
  const std::string sizes = path + " --dim batch=2 --dim seq=3";
  EXPECT_EQ(pyc("bench " + sizes + " --runs 2").exit, 0);
  const Outcome explained = pyc("explain " + sizes);
  EXPECT_TRUE(has(explained, "breaks  all 10 nodes compile as one segment")) << explained.text;
  EXPECT_EQ(pyc("dump --stage plan " + sizes).exit, 0);
  EXPECT_EQ(pyc("opt " + sizes).exit, 0);
  EXPECT_EQ(pyc("compare " + sizes).exit, 0);
  const Outcome out = pyc("export " + sizes + " -o " + folder.file("out.onnx"));
  EXPECT_EQ(out.exit, 0) << out.text;
}

TEST(OpenModels, AreDumpedAsTextThatRuns) {
  const TempFolder folder;
  const std::string path = written(folder, "exported.onnx", exported());
  const Outcome dumped = pyc_out("dump " + path + " --stage open");
  ASSERT_EQ(dumped.exit, 0) << dumped.text;
  EXPECT_TRUE(has(dumped, "open graph @g(%ids: i64[batch,seq]) -> (%y) {")) << dumped.text;
  EXPECT_TRUE(has(dumped, "  %table = const f32[10,4] splat(0.5)")) << dumped.text;
  EXPECT_TRUE(has(dumped, "  %t = onnx.Transpose[18](%r) {perm=[0,2,1,3]} @turn")) << dumped.text;
  const std::string text = written(folder, "exported.ir", dumped.text);
  EXPECT_EQ(pyc_out("dump " + text + " --stage open").text, dumped.text);
  const std::string shape = " --dim batch=3 --dim seq=5 --json";
  const Json from_onnx = Json::parse(pyc_out("run " + path + shape).text);
  const Json from_text = Json::parse(pyc_out("run " + text + shape).text);
  EXPECT_EQ(from_text["outputs"], from_onnx["outputs"]);
  const Outcome chosen = pyc_out("dump " + text + " --stage open --dim batch=3");
  EXPECT_TRUE(has(chosen, "%ids: i64[batch=3,seq]")) << chosen.text;
  const Json report = Json::parse(pyc_out("inspect " + text + " --json").text);
  EXPECT_EQ(report["format"], "text");
  EXPECT_EQ(report["ops"]["Gather"], 3);
  EXPECT_EQ(pyc_out("dump " + kModels + "mlp.ir --stage open").text,
            pyc_out("dump " + kModels + "mlp.ir --stage graph").text);
  const std::string broken = written(folder, "broken.ir", "open graph @g(%x: f32[N]) -> (%z) {}");
  const Outcome refused = pyc("run " + broken);
  EXPECT_EQ(refused.exit, 3) << refused.text;
  EXPECT_TRUE(has(refused, "1:31: %z is not defined before it is used")) << refused.text;
}

TEST(OpenModels, ValuesAreCountedAndLimited) {
  const TempFolder folder;
  const std::string path =
      written(folder, "places.onnx",
              w::model({.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
                        .outputs = {w::unshaped("y", w::kI64)},
                        .nodes = {w::node("NonZero", {"x"}, {"places"}, {}, "find"),
                                  w::node("Add", {"places", "places"}, {"y"}, {}, "twice")}}));
  // 8 numbers that are not 0: two i64[1,8].
  const Json report = Json::parse(pyc_out("run " + path + " --dim n=8 --json").text);
  EXPECT_EQ(report["values"]["peak_bytes"], 128);
  EXPECT_EQ(report["values"]["bytes"], 64);
  const Outcome text = pyc("run " + path + " --dim n=8 --value-limit 128");
  EXPECT_EQ(text.exit, 0) << text.text;
  EXPECT_TRUE(has(text, "values  peak 128 B, 64 B at the end")) << text.text;
  const Outcome over = pyc("run " + path + " --dim n=8 --value-limit 127");
  EXPECT_EQ(over.exit, 6) << over.text;
  EXPECT_TRUE(has(over,
                  "onnx.Add 'twice': asks for 64 bytes, the run holds 64 bytes of values, "
                  "the value limit is 127"))
      << over.text;
}

TEST(OpenModels, InspectNamesEveryUnsupportedNode) {
  const TempFolder folder;
  w::Graph g{.inputs = {w::value("x", w::tensor_type(w::kF32, {w::named("n")}))},
             .outputs = {w::unshaped("y", w::kF32)}};
  for (int i = 0; i < 25; ++i) {
    g.nodes.push_back(
        w::node("Bogus", {"x"}, {"v" + std::to_string(i)}, {}, "b" + std::to_string(i)));
  }
  g.nodes.push_back(w::node("Relu", {"v24"}, {"y"}));
  const std::string path = written(folder, "bogus.onnx", w::model(g));
  const Outcome o = pyc("inspect " + path);
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "input   x: f32[n]")) << o.text;
  for (int i = 0; i < 25; ++i) {
    EXPECT_TRUE(has(o, "node 'b" + std::to_string(i) + "': Bogus of opset 18")) << i;
  }
  const Json report = Json::parse(pyc_out("inspect " + path + " --json").text);
  EXPECT_EQ(report["unsupported"].size(), 25U);
  EXPECT_EQ(report["breaks"]["ops"]["unknown"], 1) << "no output needs the others";
  EXPECT_EQ(report["breaks"]["compilability_score"], 0.5);
  EXPECT_EQ(report["opsets"][""], 18);
  EXPECT_EQ(pyc("run " + path).exit, 3);
}

// Which of an open model's nodes become code is seen by a run alone.
TEST(OpenModels, InspectSaysThatItDoesNotKnowWhatBreaks) {
  const TempFolder folder;
  const std::string path = written(folder, "exported.onnx", exported());
  const Json breaks = Json::parse(pyc_out("inspect " + path + " --json").text)["breaks"];
  EXPECT_TRUE(breaks["compilability_score"].is_null()) << breaks;
  EXPECT_TRUE(breaks["compiled"].is_null()) << breaks;
  const Outcome o = pyc("inspect " + path);
  EXPECT_TRUE(has(o, "shapes are open: how many compile is not known before a run")) << o.text;
  const Json chosen =
      Json::parse(pyc_out("inspect " + path + " --dim batch=3 --dim seq=5 --json").text)["breaks"];
  EXPECT_EQ(chosen["compilability_score"], 1.0);
}

// Exporters declare a scalar where the model is fed a tensor of one element.
TEST(OpenModels, AnInputOfOneElementIsTakenForAScalarEverywhere) {
  const TempFolder folder;
  const std::string path =
      written(folder, "scalar.onnx",
              w::model({.inputs = {w::value("x", w::kF32, {2}), w::value("rate", w::kF32, {})},
                        .outputs = {w::value("y", w::kF32, {2})},
                        .nodes = {w::node("Mul", {"x", "rate"}, {"y"})}}));
  const std::string one =
      write_model("one.ir", "graph @g(%x: f32[1]) -> (%rate) {\n  %rate = relu(%x)\n}\n");
  ASSERT_EQ(pyc("run " + one + " --output-dir " + folder.path()).exit, 0);
  const std::string given = path + " --input rate=" + folder.file("rate.npy");
  for (const std::string& arguments :
       {"run " + given, "bench " + given + " --runs 2", "compare " + given}) {
    const Outcome o = pyc(arguments);
    EXPECT_EQ(o.exit, 0) << o.text;
    EXPECT_TRUE(has(o, "note: input 'rate' is declared as a scalar; the file's shape [1] is taken"))
        << o.text;
  }
}

TEST(OpenModels, CommandsThatNeedOneGraphSayWhichDoNot) {
  const TempFolder folder;
  const std::string model = PYC_SOURCE_DIR "/tests/open_models/branch_loop.ir";
  for (const std::string command : {"what-if", "tune", "dump --stage loop"}) {
    const Outcome o = pyc(command + " " + model + " --cache-dir " + folder.file("kept"));
    EXPECT_EQ(o.exit, 5) << command;
    EXPECT_TRUE(has(o, "'s' cannot run: waits_for_value")) << o.text;
    EXPECT_TRUE(has(o,
                    "this command needs the model as one graph, while run, bench, explain and "
                    "report compile it in parts"))
        << o.text;
  }
  const std::string page = folder.file("r.html");
  const Outcome o = pyc("report " + model + " --shape x=2,4 --no-probe -o " + page);
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "compiled in parts as it runs, so no steps were measured")) << o.text;
}

}  // namespace
}  // namespace pyc::test
