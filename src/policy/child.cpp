#include "policy/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/clock.h"

namespace pyc::policy {
namespace {

constexpr size_t kMostAnswer = size_t{1} << 26;
constexpr int kThrew = 3;

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Never returns. No handler of the caller's sees what happens here, and no core is written.
[[noreturn]] void be_child(int file, const std::function<std::string()>& work) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGPIPE, SIGALRM}) {
    std::signal(signal, SIG_DFL);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  int code = kThrew;
  try {
    code = write_all(file, work()) ? 0 : kThrew;
  } catch (...) {
    code = kThrew;
  }
  _exit(code);
}

// What the child writes until it closes the pipe; false: it took too long, or wrote too much.
bool read_until(int file, int64_t end_ns, std::string& text) {
  std::array<char, 4096> chunk{};
  while (text.size() <= kMostAnswer) {
    const int64_t left_ms = (end_ns - now_ns() + 999'999) / 1'000'000;
    if (left_ms <= 0) return false;
    pollfd wanted{file, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left_ms, 1000)));
    if (ready <= 0) continue;  // interrupted, or not yet
    const ssize_t n = read(file, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text.append(chunk.data(), static_cast<size_t>(n));
  }
  return false;
}

// Whether the child is gone by then; its status.
bool wait_until(pid_t child, int64_t end_ns, int& status) {
  while (true) {
    const pid_t found = waitpid(child, &status, WNOHANG);
    if (found == child || (found < 0 && errno != EINTR)) return true;
    if (now_ns() > end_ns) return false;
    poll(nullptr, 0, 1);
  }
}

}  // namespace

Result<std::string> run_in_child(int64_t limit_ms, const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Status(Code::kOutOfMemory, "no pipe to a child process could be made");
  }
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return Status(Code::kOutOfMemory, "no child process could be made");
  }
  if (child == 0) be_child(ends[1], work);
  close(ends[1]);
  const int64_t end_ns = now_ns() + limit_ms * 1'000'000;
  std::string text;
  int status = 0;
  const bool in_time = read_until(ends[0], end_ns, text) && wait_until(child, end_ns, status);
  close(ends[0]);
  if (!in_time) {
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return Status(Code::kBudgetExceeded, fmt::format("it was ended after {} ms", limit_ms));
  }
  if (WIFSIGNALED(status)) {
    return Status(Code::kInvalidArgument, fmt::format("it crashed (signal {})", WTERMSIG(status)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Status(Code::kInvalidArgument, "it ended its process");
  }
  return text;
}

}  // namespace pyc::policy
