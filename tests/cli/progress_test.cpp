// On a terminal, what takes over a second says so; elsewhere nothing is added.

#include <pty.h>
#include <unistd.h>

#include <csignal>

#include "cli/program.h"

namespace pyc::test {
namespace {

constexpr const char* kSlow = " --runs 0 --seconds 1.6";

// Runs the program with a terminal as its standard error and gives what was written there; with
// `until`, the program is killed as soon as that is there.
std::string terminal_output(const std::string& arguments, const std::string& until = "") {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
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
  const std::string text = terminal_output("bench " + kModels + "linear_relu.ir" + kSlow);
  EXPECT_NE(text.find("measuring " + kModels + "linear_relu.ir … 1 s"), std::string::npos) << text;
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
                      " s left");
  EXPECT_NE(text.find(" of 100000, loss "), std::string::npos) << text;
  EXPECT_NE(text.find(" steps/s, "), std::string::npos) << text;
}

TEST(Progress, IsNotShownElsewhere) {
  EXPECT_FALSE(has(pyc("bench " + kModels + "linear_relu.ir" + kSlow), "… 1 s"));
}

}  // namespace
}  // namespace pyc::test
