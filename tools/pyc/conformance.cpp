#include "conformance.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace pyc::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr const char* kVerdicts[] = {"passed", "failed", "refused"};

std::vector<std::string> find_cases(const ConformanceCommand& command) {
  std::vector<std::string> cases;
  for (const auto& entry : fs::recursive_directory_iterator(command.folder)) {
    if (entry.path().filename() != "model.onnx") continue;
    const std::string folder = entry.path().parent_path().string();
    if (folder.find(command.filter) != std::string::npos) cases.push_back(folder);
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

// The work of one child process: the result as a line of JSON.
void run_child(const std::string& folder, const ConformanceCommand& command, int out) {
  const auto r = driver::run_case(folder, command.compile, command.tolerance);
  const json line{{"verdict", kVerdicts[static_cast<int>(r.verdict)]},
                  {"reason", r.reason},
                  {"detail", r.detail},
                  {"data_sets", r.data_sets},
                  {"compared", r.compared},
                  {"not_compared", r.not_compared},
                  {"segments", r.segments},
                  {"host_calls", r.host_calls}};
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(out, text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
}

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  size_t index = 0;
  Clock::time_point start;
  std::string text;
};

Child start_child(const std::string& folder, const ConformanceCommand& command, size_t index) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid == 0) {
    ::close(ends[0]);
    int code = 0;
    try {
      run_child(folder, command, ends[1]);
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}: {}\n", folder, e.what());
      code = 70;
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  return {pid, ends[0], index, Clock::now(), ""};
}

json finish(const Child& child, int status, bool timed_out) {
  json r = json::parse(child.text, nullptr, false);
  if (!timed_out && WIFEXITED(status) && WEXITSTATUS(status) == 0 && r.is_object()) return r;
  const std::string detail = timed_out             ? "over the time limit"
                             : WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                   : fmt::format("exit {}", WEXITSTATUS(status));
  return json{
      {"verdict", "failed"}, {"reason", timed_out ? "time_out" : "crash"}, {"detail", detail}};
}

class Pool {
 public:
  Pool(const ConformanceCommand& command, const std::vector<std::string>& cases)
      : command_(command), cases_(cases), results_(cases.size()) {}

  std::vector<json> run() {
    size_t next = 0;
    while (next < cases_.size() || !children_.empty()) {
      while (next < cases_.size() && children_.size() < static_cast<size_t>(command_.jobs)) {
        children_.push_back(start_child(cases_[next], command_, next));
        ++next;
      }
      wait_a_little();
    }
    return std::move(results_);
  }

 private:
  void wait_a_little() {
    std::vector<pollfd> fds;
    for (const Child& c : children_) fds.push_back({c.pipe, POLLIN, 0});
    ::poll(fds.data(), fds.size(), 200);
    for (size_t i = children_.size(); i-- > 0;) {
      if (fds[i].revents != 0 && !drain(children_[i]))
        end(i, false);
      else if (Clock::now() - children_[i].start > std::chrono::seconds(command_.time_limit)) {
        ::kill(children_[i].pid, SIGKILL);
        end(i, true);
      }
    }
  }

  static bool drain(Child& c) {
    char buffer[4096];
    const ssize_t n = ::read(c.pipe, buffer, sizeof buffer);
    if (n <= 0) return false;
    c.text.append(buffer, static_cast<size_t>(n));
    return true;
  }

  void end(size_t i, bool timed_out) {
    const Child child = std::move(children_[i]);
    children_.erase(children_.begin() + static_cast<int64_t>(i));
    ::close(child.pipe);
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    results_[child.index] = finish(child, status, timed_out);
    ++done_;
    if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{} of {}", done_, cases_.size());
  }

  const ConformanceCommand& command_;
  const std::vector<std::string>& cases_;
  std::vector<json> results_;
  std::vector<Child> children_;
  size_t done_ = 0;
};

}  // namespace

int run_conformance(const ConformanceCommand& command) {
  const std::vector<std::string> cases = find_cases(command);
  const std::vector<json> results = Pool(command, cases).run();
  size_t counts[3] = {};
  json list = json::array();
  for (size_t i = 0; i < cases.size(); ++i) {
    json r = results[i];
    const std::string verdict = r["verdict"];
    const int v = verdict == "passed" ? 0 : verdict == "failed" ? 1 : 2;
    ++counts[v];
    if (v != 0 && !command.json) {
      fmt::print("{} {} [{}] {}\n", verdict, cases[i], r["reason"].get<std::string>(),
                 r["detail"].get<std::string>());
    }
    r["case"] = fs::relative(cases[i], command.folder).string();
    list.push_back(std::move(r));
  }
  if (command.json) {
    const json report{{"passed", counts[0]},
                      {"failed", counts[1]},
                      {"refused", counts[2]},
                      {"device", command.compile.device},
                      {"cases", list}};
    fmt::print("{}\n", report.dump(1));
  } else {
    fmt::print("{} passed, {} failed, {} refused\n", counts[0], counts[1], counts[2]);
  }
  return counts[1] == 0 ? 0 : 1;
}

}  // namespace pyc::tool
