// `pyc reduce` as a user calls it, with faults planted in the check.

#include <filesystem>

#include "cli/program.h"

namespace pyc::test {
namespace {

constexpr const char* kModel = R"(
graph @g(%x: f32[8,16]) -> (%e) {
  %a = relu(%x)
  %c = softmax(%a)
  %d = tanh(%c)
  %e = exp(%d)
}
)";

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CliReduce, KeepsWhatACommandLooksFor) {
  const std::string model = write_model("reduce_me.ir", kModel);
  const TempFolder folder;
  const std::string small = folder.file("reduced.ir");
  const Outcome o = pyc("reduce " + model + " -o " + small + " -- grep -q softmax");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "1 nodes of 4")) << o.text;
  EXPECT_EQ(content(small),
            "graph @g(%a: f32[1,1]) -> (%c) {\n"
            "  %c = softmax(%a) {axis=-1} : f32[1,1]\n"
            "}\n");
}

TEST(CliReduce, WritesOnnxAndJson) {
  const std::string model = write_model("reduce_me.ir", kModel);
  const TempFolder folder;
  const std::string small = folder.file("reduced.onnx");
  const Outcome o = pyc_out("reduce " + model + " --json -o " + small + " -- grep -q tanh {}");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "\"nodes\": 1")) << o.text;
  EXPECT_EQ(pyc("run " + small).exit, 0);
}

TEST(CliReduce, KeepsARefusal) {
  const std::string model = write_model("reduce_me.ir", kModel);
  const TempFolder folder;
  const std::string small = folder.file("refused.ir");
  const Outcome o =
      pyc("reduce " + model + " -o " + small + " --memory-budget 100 --check budget_exceeded");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_EQ(pyc("run " + small + " --memory-budget 100").exit, 6);
}

TEST(CliReduce, AFaultThatIsNotThereIsRefused) {
  const std::string model = write_model("reduce_me.ir", kModel);
  const TempFolder folder;
  const std::string small = folder.file("none.ir");
  for (const char* check : {"differs", "crash", "unsupported"}) {
    const Outcome o = pyc("reduce " + model + " -o " + small + " --check " + check);
    EXPECT_EQ(o.exit, 2) << check << o.text;
    EXPECT_TRUE(has(o, "does not show")) << o.text;
    EXPECT_FALSE(std::filesystem::exists(small));
  }
}

}  // namespace
}  // namespace pyc::test
