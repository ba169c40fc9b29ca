// On a terminal, what takes over a second says so; in a log a line every five; Ctrl-C ends it.

#include <fcntl.h>
#include <fmt/format.h>
#include <pty.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "base/sanitizers.h"
#include "cli/program.h"

namespace pyc::test {
namespace {

constexpr const char* kSlow = " --runs 0 --seconds 1.6";

// Many cores would compile in less than a second what is to be watched.
void stay_on_one_core() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return;
  int first = 0;
  while (first + 1 < CPU_SETSIZE && CPU_ISSET(first, &cores) == 0) ++first;
  CPU_ZERO(&cores);
  CPU_SET(first, &cores);
  sched_setaffinity(0, sizeof(cores), &cores);
}

enum class Cores { kAll, kOne };

// Runs the program with a terminal as its standard error and gives what was written there; with
// `until`, the program is killed as soon as that is there.
std::string terminal_output(const std::string& arguments, const std::string& until = "",
                            Cores cores = Cores::kAll) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    if (cores == Cores::kOne) stay_on_one_core();
    const std::string command = std::string(PYC_CLI) + " " + arguments;
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> chunk{};
  for (ssize_t n = 0; (n = read(terminal, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(n));
    if (!until.empty() && text.find(until) != std::string::npos) {
      kill(child, SIGKILL);
      break;
    }
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(status == 0 || !until.empty()) << text;
  return text;
}

TEST(Progress, IsShownOnATerminalAfterASecond) {
  const std::string text = terminal_output("bench " + kModels + "linear_relu.ir --seconds 2.5");
  EXPECT_NE(text.find("measuring " + kModels + "linear_relu.ir … 1 s"), std::string::npos) << text;
  EXPECT_NE(text.find(" s [#"), std::string::npos) << text;
  EXPECT_NE(text.find(" %, "), std::string::npos) << text;
  EXPECT_NE(text.find(" s left"), std::string::npos) << text;
  EXPECT_NE(text.find("\r\033[Klatency"), std::string::npos) << "not taken away: " << text;
  EXPECT_EQ(terminal_output("ops --name relu").find("…"), std::string::npos);
}

// A run that ends by being killed: all its steps take much longer than the line takes to appear.
TEST(Progress, OfTrainingSaysHowFarItHasCome) {
  const TempFolder folder;
  const std::string source = PYC_SOURCE_DIR;
  const Outcome data =
      shell("python3 " + source + "/scripts/train_data.py " + folder.file("d.npz") + " 64 1");
  ASSERT_EQ(data.exit, 0);
  const std::string text =
      terminal_output("train " + source + "/tests/train/models/blobs.ir --loss cross_entropy" +
                          " --lr 0.001 --steps 100000 --data " + folder.file("d.npz"),
                      " steps/s");
  EXPECT_NE(text.find(" of 100000, loss "), std::string::npos) << text;
  EXPECT_NE(text.find(" s left, step "), std::string::npos) << text;
}

TEST(Progress, IsALineEveryFiveSecondsInALog) {
  const Outcome log = pyc("bench " + kModels + "linear_relu.ir --runs 0 --seconds 5.5");
  EXPECT_TRUE(has(log, "linear_relu.ir … 5 s")) << log.text;
  EXPECT_FALSE(has(log, "… 1 s")) << log.text;
  EXPECT_FALSE(has(log, "\r")) << log.text;
}

TEST(Progress, IsNotShownWhereNobodyAskedForIt) {
  const std::string bench = "bench " + kModels + "linear_relu.ir" + kSlow;
  EXPECT_EQ(terminal_output(bench + " --quiet").find("…"), std::string::npos);
  EXPECT_EQ(terminal_output(bench + " --json").find("…"), std::string::npos);
}

// A chain of products, no two of one size: seconds of compiling.
std::string slow_to_compile() {
  constexpr int kProducts = 120;
  std::string text = "graph @slow(%v0: f32[4,20]) -> (%v120) {\n";
  std::string nodes;
  for (int i = 0; i < kProducts; ++i) {
    text += fmt::format("  %w{} = const f32[{},{}] splat(0.25)\n", i, 20 + i, 21 + i);
    nodes += fmt::format("  %p{0} = matmul(%v{0}, %w{0})\n  %v{1} = gelu(%p{0})\n", i, i + 1);
  }
  return write_model("slow.ir", text + nodes + "}\n");
}

TEST(Progress, OfACompileCountsKernels) {
  const TempFolder folder;
  const std::string text = terminal_output(
      "compile " + slow_to_compile() + " -o " + folder.file("m.pycm"), " %, ", Cores::kOne);
  EXPECT_NE(text.find("compiling "), std::string::npos) << text;
  EXPECT_NE(text.find(" s left"), std::string::npos) << text;
}

TEST(Progress, OfConformanceCountsCases) {
  const TempFolder folder;
  ASSERT_EQ(shell("mkdir -p " + folder.file("case") + "/test_data_set_0").exit, 0);
  ASSERT_EQ(pyc("export " + slow_to_compile() + " -o " + folder.file("case/model.onnx")).exit, 0);
  const std::string text = terminal_output("conformance " + folder.file(""), " cases", Cores::kOne);
  EXPECT_NE(text.find("running cases on cpu … "), std::string::npos) << text;
  EXPECT_NE(text.find("0 of 1 cases"), std::string::npos) << text;
}

// Killed when it has shown how far it is; the next call goes on behind what was measured.
TEST(Progress, OfTuningSaysHowFarItHasCome) {
  const TempFolder folder;
  const std::string tune = "tune " + slow_to_compile() + " --cache-dir " + folder.file("cache");
  const std::string text = terminal_output(tune, " %, ");
  EXPECT_NE(text.find("tuning "), std::string::npos) << text;
  EXPECT_NE(text.find(" s ["), std::string::npos) << text;
  const Outcome next = pyc(tune + " --budget 0.001 --quiet");
  EXPECT_EQ(next.exit, 0) << next.text;
  EXPECT_FALSE(has(next, ", 0 before")) << next.text;
}

pid_t start(const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(PYC_CLI)};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  const int nowhere = ::open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  execv(PYC_CLI, argv.data());
  _exit(127);
}

// Of a sanitized program the shadow memory has to go, too.
constexpr double kSoonMs = kSanitized ? 2000.0 : 100.0;

// Milliseconds from the interrupt to the end of the process, or much if it was over before.
double interrupted_after(pid_t child, std::chrono::milliseconds delay) {
  using Clock = std::chrono::steady_clock;
  std::this_thread::sleep_for(delay);
  const auto sent = Clock::now();
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) return 1e9;
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  return std::chrono::duration<double, std::milli>(Clock::now() - sent).count();
}

// Other tests run beside this one, so the least of some tries counts.
TEST(Interrupt, EndsACompileAtOnceAndLeavesTheFileAsItWas) {
  const TempFolder folder;
  const std::string model = slow_to_compile();
  const std::string file = folder.file("m.pycm");
  ASSERT_EQ(pyc("compile " + kModels + "linear_relu.ir -o " + file).exit, 0);
  const std::string before = pyc("inspect " + file).text;
  double least = 1e9;
  for (const int ms : {50, 150, 300}) {
    const pid_t child = start({"compile", model, "-o", file});
    const double took = interrupted_after(child, std::chrono::milliseconds(ms));
    if (took < 1e9) {
      EXPECT_EQ(pyc("inspect " + file).text, before);
    }
    least = std::min(least, took);
  }
  EXPECT_LT(least, kSoonMs);
}

TEST(Interrupt, EndsAMeasurementAtOnce) {
  double least = 1e9;
  for (const int ms : {300, 500}) {
    const pid_t child = start({"bench", kMlp, "--seconds", "60"});
    least = std::min(least, interrupted_after(child, std::chrono::milliseconds(ms)));
  }
  EXPECT_LT(least, kSoonMs);
}

TEST(Interrupt, EndsTuningAtOnceAndTheNextCallGoesOn) {
  const TempFolder folder;
  const std::string model = slow_to_compile();
  double least = 1e9;
  for (const int ms : {300, 600, 900}) {
    const pid_t child = start({"tune", model, "--cache-dir", folder.file("cache")});
    least = std::min(least, interrupted_after(child, std::chrono::milliseconds(ms)));
  }
  EXPECT_LT(least, kSoonMs);
  const Outcome next =
      pyc("tune " + model + " --cache-dir " + folder.file("cache") + " --budget 0.001 --quiet");
  EXPECT_EQ(next.exit, 0) << next.text;
}

// The first child of a process, when it has one; 0 where it gets none.
pid_t first_child(pid_t parent) {
  const std::string path = fmt::format("/proc/{0}/task/{0}/children", parent);
  for (int i = 0; i < 500; ++i) {
    pid_t child = 0;
    if (std::ifstream(path) >> child) return child;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

// It may be a zombie that nobody waits for.
bool runs(pid_t process) {
  std::string text;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), text);
  return !text.empty() && text.find(") Z ") == std::string::npos;
}

TEST(Interrupt, EndsTheCasesOfConformanceToo) {
  const TempFolder folder;
  const std::string data = folder.file("case") + "/test_data_set_0";
  ASSERT_EQ(shell("mkdir -p " + data).exit, 0);
  ASSERT_EQ(pyc("export " + slow_to_compile() + " -o " + folder.file("case/model.onnx")).exit, 0);
  const pid_t parent = start({"conformance", folder.file("")});
  const pid_t child = first_child(parent);
  interrupted_after(parent, std::chrono::milliseconds(0));
  ASSERT_NE(child, 0) << "no case began";
  for (int i = 0; i < 50 && runs(child); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(runs(child));
}

}  // namespace
}  // namespace pyc::test
