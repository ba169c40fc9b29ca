// On a terminal, what takes over a second says so; elsewhere nothing is added.

#include <pty.h>
#include <unistd.h>

#include "cli/program.h"

namespace pyc::test {
namespace {

constexpr const char* kSlow = " --runs 0 --seconds 1.6";

// Runs the program with a terminal as its standard error and gives what was written there.
std::string terminal_output(const std::string& arguments) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const std::string command = std::string(PYC_CLI) + " " + arguments;
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> chunk{};
  for (ssize_t n = 0; (n = read(terminal, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(n));
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << text;
  return text;
}

TEST(Progress, IsShownOnATerminalAfterASecond) {
  const std::string text = terminal_output("bench " + kModels + "linear_relu.ir" + kSlow);
  EXPECT_NE(text.find("measuring " + kModels + "linear_relu.ir … 1 s"), std::string::npos) << text;
  EXPECT_EQ(terminal_output("ops --name relu").find("…"), std::string::npos);
}

TEST(Progress, IsNotShownElsewhere) {
  EXPECT_FALSE(has(pyc("bench " + kModels + "linear_relu.ir" + kSlow), "… 1 s"));
}

}  // namespace
}  // namespace pyc::test
