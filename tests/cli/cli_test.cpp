// The program as a user calls it: output, exit codes, messages.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

namespace {

struct Outcome {
  int exit = -1;
  std::string text;
};

Outcome pyc(const std::string& arguments) {
  const std::string command = std::string(PYC_CLI) + " " + arguments + " 2>&1";
  Outcome out;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> chunk{};
  while (size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) out.text.append(chunk.data(), n);
  const int status = pclose(pipe);
  out.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

const std::string kModels = std::string(PYC_SOURCE_DIR) + "/tests/models/";

std::string write_model(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

bool has(const Outcome& o, const std::string& part) {
  return o.text.find(part) != std::string::npos;
}

TEST(Cli, RunPrintsOutputsTimeAndMemory) {
  const Outcome o = pyc("run " + kModels + "linear_relu.ir");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "output  y: f32[4,16] digest ")) << o.text;
  EXPECT_TRUE(has(o, "compile ")) << o.text;
  EXPECT_TRUE(has(o, "peak ")) << o.text;
}

TEST(Cli, ReferenceAndCpuPrintTheSameDigests) {
  const auto digests = [](const Outcome& o) {
    std::string lines;
    for (size_t at = o.text.find("output"); at != std::string::npos;
         at = o.text.find("\noutput", at + 1)) {
      lines += o.text.substr(at, o.text.find('\n', at + 1) - at);
    }
    return lines;
  };
  const Outcome a = pyc("run " + kModels + "mlp.ir --device reference --determinism strict");
  const Outcome b = pyc("run " + kModels + "mlp.ir --device cpu --determinism strict --threads 7");
  EXPECT_NE(digests(a), "");
  EXPECT_EQ(digests(a), digests(b));
}

TEST(Cli, JsonIsPrinted) {
  const Outcome o = pyc("run " + kModels + "linear_relu.ir --json");
  EXPECT_EQ(o.exit, 0);
  EXPECT_EQ(o.text.front(), '{');
  EXPECT_TRUE(has(o, "\"digest\"")) << o.text;
  EXPECT_TRUE(has(o, "\"decisions\"")) << o.text;
}

TEST(Cli, ExplainNamesGroupsMembersAndCandidates) {
  const Outcome o = pyc("explain " + kModels + "linear_relu.ir");
  EXPECT_EQ(o.exit, 0);
  EXPECT_TRUE(has(o, "group g0 contraction")) << o.text;
  EXPECT_TRUE(has(o, "%y = relu")) << o.text;
  EXPECT_TRUE(has(o, "candidate loop_generic__")) << o.text;
  EXPECT_TRUE(has(o, "candidate f32_matmul__")) << o.text;
}

TEST(Cli, MalformedTextNamesLineAndColumn) {
  const std::string path =
      write_model("bad.ir", "graph @g(%x: f32[2]) -> (%y) {\n  %y = relu(%x\n}\n");
  const Outcome o = pyc("run " + path);
  EXPECT_EQ(o.exit, 3);
  EXPECT_TRUE(has(o, "parse_error")) << o.text;
  EXPECT_TRUE(has(o, "3:1")) << o.text;
}

TEST(Cli, UnknownOpSuggestsTheRightOne) {
  const std::string path =
      write_model("op.ir", "graph @g(%x: f32[2]) -> (%y) {\n  %y = rellu(%x)\n}\n");
  const Outcome o = pyc("run " + path);
  EXPECT_EQ(o.exit, 3);
  EXPECT_TRUE(has(o, "relu")) << o.text;
}

TEST(Cli, ContradictoryShapesAreNamed) {
  const std::string path = write_model(
      "shape.ir", "graph @g(%x: f32[8,64], %w: f32[32,16]) -> (%y) {\n  %y = matmul(%x, %w)\n}\n");
  const Outcome o = pyc("run " + path);
  EXPECT_EQ(o.exit, 4);
  EXPECT_TRUE(has(o, "f32[8,64]")) << o.text;
  EXPECT_TRUE(has(o, "f32[32,16]")) << o.text;
}

TEST(Cli, BudgetUnknownOptionAndMissingFileHaveTheirExitCodes) {
  EXPECT_EQ(pyc("run " + kModels + "mlp.ir --memory-budget 1").exit, 6);
  EXPECT_EQ(pyc("run " + kModels + "mlp.ir --no-such-option").exit, 2);
  EXPECT_EQ(pyc("run " + kModels + "mlp.ir --device gpu9").exit, 2);
  EXPECT_EQ(pyc("dump " + kModels + "mlp.ir --stage nothing").exit, 2);
  EXPECT_EQ(pyc("run " + kModels + "no_such_model.ir").exit, 9);
}

}  // namespace
