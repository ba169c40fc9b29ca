// What shells, readers of manuals and users of other programs see.

#include <set>

#include "cli/json_output.h"
#include "cli/program.h"

namespace pyc::test {
namespace {

// What bash completes the last word of the line to.
std::set<std::string> completed(const std::string& words) {
  const Outcome o = shell("bash -c 'source <(" + std::string(PYC_CLI) +
                          " completion bash); COMP_WORDS=(" + words +
                          "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _pyc; printf \"%s\\n\" "
                          "\"${COMPREPLY[@]}\"' 2>&1");
  std::set<std::string> out;
  for (size_t at = 0; at < o.text.size();) {
    const size_t end = o.text.find('\n', at);
    out.insert(o.text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

using Words = std::set<std::string>;

TEST(Completion, BashCompletesCommandsOptionsAndWords) {
  EXPECT_EQ(completed("pyc re"), (Words{"reasons", "reduce", "replay", "report"}));
  EXPECT_EQ(completed("pyc run --st"), (Words{"--state", "--strict-views"}));
  EXPECT_EQ(completed("pyc run m.onnx --device re"), (Words{"reference"}));
  EXPECT_EQ(completed("pyc bench m.onnx --warmup-"), (Words{"--warmup-ms"}));
  EXPECT_EQ(completed("pyc compile --out"), (Words{"--output"}));
  EXPECT_EQ(completed("pyc train --optimizer ada"), (Words{"adagrad", "adam", "adamw"}));
}

// The shells themselves are not there everywhere; each has a line for every option.
TEST(Completion, EveryShellHasEveryOption) {
  const Outcome zsh = pyc("completion zsh");
  const Outcome fish = pyc("completion fish");
  for (const char* option : {"threads", "memory-budget", "trace", "no-fuse", "json", "seconds"}) {
    EXPECT_TRUE(has(zsh, std::string("'--") + option + "[")) << option;
    EXPECT_TRUE(has(fish, std::string(" -l ") + option + " ")) << option;
  }
  EXPECT_TRUE(has(zsh, ":value:(cpu cuda reference null)'"));
  EXPECT_TRUE(has(fish, "-x -a 'cpu cuda reference null'"));
  const Outcome wrong = pyc("completion fissh");
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_TRUE(has(wrong, "did you mean 'fish'?")) << wrong.text;
  for (const char* name : {"zsh", "fish"}) {
    if (shell(std::string("command -v ") + name + " >/dev/null").exit != 0) continue;
    const std::string check = std::string(name) + " -n <(" + PYC_CLI + " completion " + name + ")";
    EXPECT_EQ(shell("bash -c '" + check + "' 2>&1").text, "") << name;
  }
}

TEST(Manual, HasEveryCommandAndNoErrors) {
  const Outcome page = pyc("man");
  for (const char* text : {".TH PYC 1", ".SS pyc run\n", "\\fB\\-\\-memory\\-budget\\fR",
                           ".SS pyc man\n", ".SH EXIT STATUS"}) {
    EXPECT_TRUE(has(page, text)) << text;
  }
  if (shell("command -v groff >/dev/null").exit != 0) return;
  const Outcome shown =
      shell(std::string(PYC_CLI) + " man | groff -man -Tascii -ww 2>&1 >/dev/null");
  EXPECT_EQ(shown.text, "");
}

TEST(Habits, ModelsOptionsAndShapesOfOtherPrograms) {
  const std::string open = std::string(PYC_SOURCE_DIR) + "/tests/open_models/branch_loop.ir";
  const std::string expected = pyc_out("run " + open + " --shape x=2,4 --threads 1").text;
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  EXPECT_NE(first_line(expected).find("digest"), std::string::npos);
  for (const std::string& arguments :
       {"--onnx=" + open + " --shapes=x:2x4 -nthreads 1",
        "-m " + open + " -shape 'x[2,4]' -x 1 -d CPU", open + " -f N:2 -e cpu"}) {
    const Outcome o = pyc_out("run " + arguments);
    EXPECT_EQ(o.exit, 0) << arguments;
    EXPECT_EQ(first_line(o.text), first_line(expected)) << arguments;
  }
}

TEST(Habits, Benchmarks) {
  const auto runs = [](const std::string& arguments) {
    return json_of("bench " + arguments)["runs"].get<int>();
  };
  EXPECT_EQ(runs("-m " + kMlp + " -niter 7 -t 1"), 7);
  EXPECT_EQ(runs("--onnx=" + kMlp + " --iterations=5 --warmUp=2 --duration=1"), 5);
  EXPECT_EQ(runs(kMlp + " -m times -r 6"), 6);
}

TEST(Habits, CompileAndPrecision) {
  const TempFolder folder;
  const std::string file = folder.file("m.pycm");
  ASSERT_EQ(pyc("compile --onnx=" + kMlp + " --saveEngine=" + file).exit, 0);
  EXPECT_EQ(pyc("run --loadEngine=" + file).exit, 0);
  EXPECT_EQ(json_of("run " + kMlp + " --bf16")["log"]["options"]["precision"], "bf16");
}

TEST(Habits, AreRefusedWhereTheCommandHasNoSuchOption) {
  const Outcome o = pyc("run " + kMlp + " -t 3");
  EXPECT_EQ(o.exit, 2);
  EXPECT_TRUE(has(o, "'-t' is not an option of 'pyc run'")) << o.text;
  EXPECT_TRUE(has(pyc("bench -m"), "-m: a value is missing"));
}

}  // namespace
}  // namespace pyc::test
