// The program as a user calls it: output, exit codes, messages.

#include <filesystem>
#include <fstream>

#include "cli/program.h"

namespace pyc::test {
namespace {

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
  EXPECT_EQ(pyc("run " + kModels + "mlp.ir --lanes 7").exit, 2);
  EXPECT_EQ(pyc("run").exit, 2);
  EXPECT_EQ(pyc("dump " + kModels + "mlp.ir --stage nothing").exit, 2);
  EXPECT_EQ(pyc("run " + kModels + "no_such_model.ir").exit, 9);
}

TEST(Cli, WrongCallsAreToldInWordsThatHelp) {
  const auto said = [](const std::string& arguments, const std::string& words) {
    const Outcome o = pyc(arguments);
    EXPECT_EQ(o.exit, 2) << o.text;
    EXPECT_TRUE(has(o, words)) << o.text;
    EXPECT_LT(o.text.size(), 500u) << o.text;
  };
  said("run", "invalid_argument: no model is given; `pyc run --help` shows");
  said("run " + kMlp + " other.ir", "'other.ir' is one argument too many for 'pyc run'");
  said("run " + kMlp + " --threads x", "invalid_argument: --threads: expected an integer from 0");
  said("bench " + kMlp + " --seconds -1",
       "--seconds: expected a number from 0 to 1000000000, found");
  said("bench " + kMlp + " --seconds 1e300", "--seconds: expected a number from 0 to 1000000000");
  said("tune " + kMlp + " --budget inf", "--budget: expected a number from 0 to 1000000000, found");
  said("run " + kMlp + " --seed -1", "--seed: expected an integer of 0 or more, found '-1'");
  said("bench " + kMlp + " --seconds", "--seconds: a value is missing");
  said("nothing-like-it", "there is no command 'nothing-like-it'; known are run, train, ");
  said("--verson", "did you mean '--version'?");
  const Outcome empty = pyc("run " + write_model("empty.onnx", ""));
  EXPECT_EQ(empty.exit, 3) << empty.text;
  EXPECT_TRUE(has(empty, "found nothing: it is empty")) << empty.text;
}

TEST(Cli, FilesOfOtherProgramsAreNamed) {
  const auto said = [](const std::string& bytes, const std::string& words) {
    const Outcome o = pyc("run " + write_model("foreign.bin", bytes));
    EXPECT_EQ(o.exit, 5) << o.text;
    EXPECT_TRUE(has(o, "expected ONNX, text IR or a .pycm file, found " + words)) << o.text;
  };
  using namespace std::string_literals;
  said("PK\x03\x04 archive/data.pkl"s, "a file of PyTorch's: write the module with torch.onnx");
  said("\x1c\0\0\0TFL3"s, "TensorFlow Lite");
  said("\x93NUMPY\x01\0"s, "a file of tensors");
  said("version https://git-lfs.github.com/spec/v1\n",
       "a pointer of Git LFS: `git lfs pull` fetches");
  said("<!DOCTYPE html>\n", "a page of HTML");
  said("\x40\0\0\0\0\0\0\0{\"w\": {}}"s, "a file of tensors");
}

TEST(Cli, AnOnnxFileIsExplainedInItsOwnNames) {
  const TempFolder folder;
  const std::string onnx = folder.file("mlp.onnx");
  ASSERT_EQ(pyc("export " + kMlp + " -o " + onnx).exit, 0);
  const Outcome o = pyc("explain " + onnx);
  EXPECT_TRUE(has(o, "%m1 = matmul")) << o.text;
  EXPECT_TRUE(has(o, "read w1 f32[8192]")) << o.text;
  EXPECT_TRUE(has(o, "%logits = add")) << o.text;
}

TEST(Cli, ACallWithoutACommandPrintsTheHelp) {
  const Outcome bare = pyc_out("");
  EXPECT_EQ(bare.exit, 0);
  EXPECT_EQ(bare.text, pyc_out("--help").text);
  EXPECT_TRUE(has(bare, "Usage: pyc COMMAND")) << bare.text;
}

TEST(Cli, TheNullDeviceIsNotRun) {
  for (const std::string& arguments :
       {"run " + kMlp + " --device null", "bench " + kMlp + " --device null --runs 1",
        "compare " + kMlp + " --b null"}) {
    const Outcome o = pyc(arguments);
    EXPECT_EQ(o.exit, 5) << o.text;
    EXPECT_TRUE(has(o, "device 'null' computes nothing")) << o.text;
    EXPECT_FALSE(has(o, "digest")) << o.text;
  }
  EXPECT_EQ(pyc("dump " + kMlp + " --device null --stage plan").exit, 0);
}

TEST(Cli, TheFolderOfOutputsIsMade) {
  const TempFolder folder;
  const std::string deep = folder.file("new/deeper");
  const Outcome o = pyc("run " + kModels + "linear_relu.ir --output-dir " + deep);
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_EQ(pyc("inspect " + deep + "/y.npy").exit, 0);
  // A file of that name stays, and the folder cannot be made.
  const Outcome taken = pyc("run " + kMlp + " --output-dir " + deep + "/y.npy");
  EXPECT_EQ(taken.exit, 9) << taken.text;
  EXPECT_TRUE(has(taken, "y.npy")) << taken.text;
}

TEST(Cli, ConformanceWithoutCasesIsNotFound) {
  const TempFolder folder;
  const Outcome missing = pyc("conformance " + folder.file("no_such_folder"));
  EXPECT_EQ(missing.exit, 9) << missing.text;
  EXPECT_TRUE(has(missing, "not_found: there is no folder")) << missing.text;
  const Outcome empty = pyc("conformance " + folder.path());
  EXPECT_EQ(empty.exit, 9) << empty.text;
  EXPECT_TRUE(has(empty, "there is no case")) << empty.text;
}

// The case fails wherever it is run: nothing is compared.
TEST(Cli, ConformanceRunsOnAllDevicesButWhatIsIgnored) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.file("cases/one"));
  const std::string model = folder.file("cases/one/model.onnx");
  ASSERT_EQ(pyc("export " + kModels + "linear_relu.ir -o " + model).exit, 0);
  const auto run = [&](std::string_view lines) {
    const std::string list = folder.file("ignored.tsv");
    std::ofstream(list) << lines;
    return pyc("conformance " + folder.file("cases") + " --device all --ignored " + list);
  };
  const Outcome none = run("# nothing\n");
  EXPECT_EQ(none.exit, 1) << none.text;
  for (const char* line : {"device cpu\n", "device reference\n", "[nothing_compared]"}) {
    EXPECT_TRUE(has(none, line)) << none.text;
  }
  EXPECT_FALSE(has(none, "device null")) << "it does not run";
  const Outcome one = run("reference\tone\tno data\n");
  EXPECT_EQ(one.exit, 1) << one.text;
  EXPECT_TRUE(has(one, "1 ignored\n0 passed, 0 failed, 0 refused\n")) << one.text;
  EXPECT_TRUE(has(one, "[no data]")) << one.text;
  // The last line counts where there is such a device.
  const Outcome all = run("reference\tone\tno data\ncpu\tone\tno data\ncuda\tone\tno data\n");
  EXPECT_EQ(all.exit, 0) << all.text;
  const Outcome no_reason = run("reference\tone\t\n");
  EXPECT_TRUE(has(no_reason, "ignored.tsv:1: expected device, tab, case, tab, reason"))
      << no_reason.text;
}

TEST(Cli, ConformanceOfSeveralCasesAProcess) {
  const TempFolder folder;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    std::filesystem::create_directories(folder.file(std::string("cases/") + name));
    const std::string model = folder.file(std::string("cases/") + name + "/model.onnx");
    ASSERT_EQ(pyc("export " + kModels + "linear_relu.ir -o " + model).exit, 0);
  }
  const Outcome three = pyc("conformance " + folder.file("cases") + " --per-process 3 --jobs 2");
  EXPECT_TRUE(has(three, "0 passed, 5 failed, 0 refused\n")) << three.text;
  EXPECT_FALSE(has(three, "[crash]")) << three.text;
}

TEST(Cli, MisspeltCommandsOptionsWordsOpsAndNamesGetASuggestion) {
  const std::string mlp = kModels + "mlp.ir";
  EXPECT_TRUE(has(pyc("rnu " + mlp), "did you mean 'run'?"));
  EXPECT_TRUE(has(pyc("run " + mlp + " --devcie cpu"), "did you mean '--device'?"));
  EXPECT_TRUE(has(pyc("run " + mlp + " --device referense"), "did you mean 'reference'?"));
  EXPECT_TRUE(has(pyc("dump " + mlp + " --stage grups"), "did you mean 'groups'?"));
  EXPECT_TRUE(has(pyc("opt " + mlp + " --passes decompos"), "did you mean 'decompose'?"));
  EXPECT_TRUE(has(pyc("ops --name softmx"), "did you mean 'softmax'?"));
  EXPECT_TRUE(has(pyc("explain " + mlp + " --node logitz"), "did you mean 'logits'?"));
  EXPECT_EQ(pyc("rnu").exit, 2);
  EXPECT_EQ(pyc("ops --name softmx").exit, 3);
}

TEST(Cli, HelpOfACommandIsFoundInBothOrders) {
  EXPECT_EQ(pyc("help run").text, pyc("run --help").text);
  EXPECT_EQ(pyc("help rnu").exit, 2);
  EXPECT_EQ(pyc("-V").text, pyc("--version").text);
}

TEST(Cli, HelpShowsExamplesAndThePageListsTheCommand) {
  const Outcome page = shell("cat " + std::string(PYC_SOURCE_DIR) + "/docs/cli.md");
  for (const char* command :
       {"run", "bench", "explain", "report", "inspect", "compare", "dump", "opt", "export", "ops",
        "errors", "reasons", "doctor", "capabilities", "completion", "man"}) {
    const Outcome o = pyc(std::string(command) + " --help");
    EXPECT_EQ(o.exit, 0);
    EXPECT_TRUE(has(o, "Examples:\n  pyc " + std::string(command))) << o.text;
    EXPECT_TRUE(has(pyc("--help"), std::string("\n  ") + command)) << command;
    EXPECT_TRUE(has(page, "| `pyc " + std::string(command))) << command;
  }
}

TEST(Cli, VersionHasTheFactsOfTheBuild) {
  const Outcome o = pyc("--version");
  EXPECT_TRUE(o.text.starts_with("pyc 0.1.0\nabi ")) << o.text;
  for (const char* fact : {"\ncompiler ", "\nbuild ", "\nllvm 16", "\nsystem "}) {
    EXPECT_TRUE(has(o, fact)) << fact;
  }
}

}  // namespace
}  // namespace pyc::test
