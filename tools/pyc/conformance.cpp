#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <vector>

#include "command.h"
#include "say.h"

namespace pyc::tool {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// What was asked for.
struct Request {
  std::string folder;
  std::string filter;
  CompileOptions compile;
  pyc_tolerance tolerance{sizeof(pyc_tolerance), 1e-3, 1e-7, 0.0};
  std::string explained;  // file: case, tab, reason
  std::string ignored;    // file: device, tab, case, tab, reason
  int64_t jobs = 2;
  int64_t per_process = 1;
  int64_t time_limit = 600;
};

std::vector<std::string> find_cases(const Request& command) {
  std::error_code error;
  if (!fs::is_directory(command.folder, error)) {
    throw Error(PYC_STATUS_NOT_FOUND, fmt::format("there is no folder '{}'", command.folder), "");
  }
  std::vector<std::string> cases;
  for (const auto& entry : fs::recursive_directory_iterator(command.folder)) {
    if (entry.path().filename() != "model.onnx") continue;
    const std::string folder = entry.path().parent_path().string();
    if (folder.find(command.filter) != std::string::npos) cases.push_back(folder);
  }
  if (cases.empty()) {
    throw Error(
        PYC_STATUS_NOT_FOUND,
        fmt::format(
            "there is no case, a folder with model.onnx, in '{}'{}", command.folder,
            command.filter.empty() ? "" : fmt::format(" with '{}' in its path", command.filter)),
        "");
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

// The text that `work` returns in a process of its own. A GPU's driver does not survive a fork, so
// this process, whose children run the cases, never starts it.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid == 0) {
    ::close(ends[0]);
    std::string text;
    int code = 0;
    try {
      text = work();
    } catch (const std::exception& e) {
      text = e.what();
      code = 1;
    }
    const bool whole = ::write(ends[1], text.data(), text.size()) == ssize_t(text.size());
    ::_exit(whole ? code : 1);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(PYC_STATUS_UNSUPPORTED, text, "");
  }
  return text;
}

// Compiles once before any fork, so that children find the device's code generator loaded.
void load_compiler(const Request& command) {
  const Graph graph = Graph::parse("graph @g(%x: f32[1]) -> (%y) {\n  %y = relu(%x)\n}\n");
  CompileOptions options = command.compile;
  options.set("cache", false);
  if (options.text("device") != "cuda") {
    const Model model(graph, options);
    return;
  }
  in_child([&] {
    const Model model(graph, options);
    return std::string();
  });
}

// One case of a child process: the result as a line of JSON.
void run_case(const std::string& folder, const Request& command, int out) {
  const std::string text = take_text([&](char** json, pyc_error** error) {
                             return pyc_conformance_case(folder.c_str(), command.compile.get(),
                                                         &command.tolerance, json, error);
                           }) +
                           "\n";
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(out, text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
}

// The cases whose stored output is known not to be what the standard says, with the reason.
std::map<std::string, std::string> read_explained(const std::string& path) {
  std::map<std::string, std::string> reasons;
  if (path.empty()) return reasons;
  std::ifstream file(path);
  if (!file) throw Error(PYC_STATUS_NOT_FOUND, "there is no file '" + path + "'", "");
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (line.empty() || line[0] == '#' || tab == std::string::npos) continue;
    reasons[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return reasons;
}

// The cases that are not run on a device, with the reason.
std::map<std::string, std::string> read_ignored(const std::string& path,
                                                const std::string& device) {
  std::map<std::string, std::string> reasons;
  if (path.empty()) return reasons;
  std::ifstream file(path);
  if (!file) throw Error(PYC_STATUS_NOT_FOUND, "there is no file '" + path + "'", "");
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const size_t tab = line.find('\t');
    const size_t second = line.find('\t', tab + 1);
    if (tab == std::string::npos || second == std::string::npos || second + 1 == line.size()) {
      throw Error(PYC_STATUS_PARSE_ERROR,
                  fmt::format("{}:{}: expected device, tab, case, tab, reason", path, number), "");
    }
    if (line.substr(0, tab) != device) continue;
    reasons[line.substr(tab + 1, second - tab - 1)] = line.substr(second + 1);
  }
  return reasons;
}

// A process and the cases it runs one after another.
struct Child {
  pid_t pid = -1;
  int pipe = -1;
  std::vector<size_t> cases;
  size_t done = 0;          // of them
  Clock::time_point start;  // of the one after these
  std::string text;         // of it, so far
};

Child start_child(const std::vector<std::string>& folders, std::vector<size_t> cases,
                  const Request& command) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid == 0) {
    // None goes on when this process was ended, be it before the system was told.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    ::close(ends[0]);
    int code = 0;
    for (const size_t i : cases) {
      try {
        run_case(folders[i], command, ends[1]);
      } catch (const std::exception& e) {
        say(stderr, "{}: {}\n", folders[i], e.what());
        code = 70;
        break;
      }
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  return {pid, ends[0], std::move(cases), 0, Clock::now(), ""};
}

// Of a case whose process ended without an answer.
Json unanswered(int status, bool timed_out) {
  const std::string detail = timed_out             ? "over the time limit"
                             : WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                   : fmt::format("exit {}", WEXITSTATUS(status));
  return Json{
      {"verdict", "failed"}, {"reason", timed_out ? "time_out" : "crash"}, {"detail", detail}};
}

class Pool {
 public:
  Pool(const Request& command, const std::vector<std::string>& cases, Progress& progress)
      : command_(command), cases_(cases), progress_(progress), results_(cases.size()) {}

  std::vector<Json> run() {
    for (size_t i = 0; i < cases_.size(); ++i) waiting_.push_back(i);
    show();
    while (!waiting_.empty() || !children_.empty()) {
      while (!waiting_.empty() && children_.size() < static_cast<size_t>(command_.jobs)) {
        const size_t count = std::min(waiting_.size(), static_cast<size_t>(command_.per_process));
        children_.push_back(start_child(
            cases_, {waiting_.begin(), waiting_.begin() + static_cast<int64_t>(count)}, command_));
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<int64_t>(count));
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

  // Takes what there is; false at the end.
  bool drain(Child& c) {
    char buffer[4096];
    const ssize_t n = ::read(c.pipe, buffer, sizeof buffer);
    if (n <= 0) return false;
    c.text.append(buffer, static_cast<size_t>(n));
    for (size_t line = 0; (line = c.text.find('\n')) != std::string::npos;) {
      std::optional<Json> r = Json::parse(c.text.substr(0, line));
      c.text.erase(0, line + 1);
      c.start = Clock::now();
      if (c.done == c.cases.size() || !r || r->kind() != Json::Kind::kObject) continue;
      note(c.cases[c.done++], std::move(*r));
    }
    return true;
  }

  void note(size_t at, Json result) {
    results_[at] = std::move(result);
    ++done_;
    show();
  }

  void show() {
    if (!progress_.shown()) return;
    progress_.part(static_cast<double>(done_), static_cast<double>(cases_.size()));
    progress_.note(fmt::format("{} of {} cases", done_, cases_.size()));
  }

  // The case it was at has failed; those behind it wait again.
  void end(size_t i, bool timed_out) {
    const Child child = std::move(children_[i]);
    children_.erase(children_.begin() + static_cast<int64_t>(i));
    ::close(child.pipe);
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    if (child.done == child.cases.size()) return;
    note(child.cases[child.done], unanswered(status, timed_out));
    waiting_.insert(waiting_.end(), child.cases.begin() + static_cast<int64_t>(child.done) + 1,
                    child.cases.end());
  }

  const Request& command_;
  const std::vector<std::string>& cases_;
  Progress& progress_;
  std::vector<Json> results_;
  std::vector<size_t> waiting_;
  std::vector<Child> children_;
  size_t done_ = 0;
};

constexpr const char* kAll = "all";

std::vector<std::string> device_words() {
  std::vector<std::string> words = device_names();
  words.emplace_back(kAll);
  return words;
}

// Those that run here.
std::vector<std::string> running_devices() {
  const std::string lines = in_child([] {
    std::string text;
    for (size_t i = 0; i < pyc_device_count(); ++i) {
      auto device = sized<pyc_device_info>();
      check([&](pyc_error** error) { return pyc_device(i, &device, error); });
      if (device.runs != 0) text += std::string(device.name) + "\n";
    }
    return text;
  });
  std::vector<std::string> names;
  std::istringstream in(lines);
  for (std::string name; std::getline(in, name);) names.push_back(name);
  return names;
}

// How the cases went on one device.
struct Tally {
  std::map<std::string, size_t> verdicts;  // passed, failed, refused, explained, ignored
  int64_t compared = 0;
  Json cases = Json::array();

  void add(Json result) {
    ++verdicts[result["verdict"].string()];
    if (result.contains("compared")) compared += result["compared"].integer();
    cases.push_back(std::move(result));
  }
  size_t count(const char* verdict) const {
    const auto found = verdicts.find(verdict);
    return found == verdicts.end() ? 0 : found->second;
  }
};

class Conformance final : public Command {
 public:
  std::string name() const override { return "conformance"; }
  std::string summary() const override {
    return "Run every folder with model.onnx and test_data_set_*, and compare";
  }
  std::string examples() const override {
    return "  pyc conformance cases/ --device reference\n"
           "  pyc conformance cases/ --filter test_conv --jobs 4 --json\n";
  }
  void declare(Options& options) override {
    options.positional("folder", request_.folder,
                       "Searched for cases, run in processes of their own");
    options.choice("--device", device_, "Device to run on; all: one after the other",
                   device_words());
    options.integer("--threads", threads_, "Threads per case; 0: one per core", 0, 1024);
    options.number("--rtol", request_.tolerance.rtol, "Allowed difference, relative");
    options.number("--atol", request_.tolerance.atol, "Allowed difference, absolute");
    options.number("--scale-tol", request_.tolerance.scale,
                   "Allowed difference as a part of the largest expected magnitude");
    options.text("--explained", request_.explained,
                 "File of cases whose failing is explained: case, tab, reason");
    options.text("--ignored", request_.ignored,
                 "File of cases not to run: device, tab, case, tab, reason");
    options.text("--filter", request_.filter, "Only cases with this in their path");
    options.integer("--jobs", request_.jobs, "Cases at a time", 1, 256);
    options.integer("--per-process", request_.per_process,
                    "Cases that a process runs one after another; starting a GPU takes its time", 1,
                    100000);
    options.integer("--time-limit", request_.time_limit, "Seconds per case", 1, 86400);
  }
  int run() override;

 private:
  Tally run_on(const std::string& device, const std::vector<std::string>& cases);
  std::string name_of(const std::string& folder) const {
    return fs::relative(folder, request_.folder).string();
  }
  void say_case(const std::string& folder, const Json& result) const;

  Request request_;
  std::string device_ = "cpu";
  int64_t threads_ = 1;
};

void Conformance::say_case(const std::string& folder, const Json& result) const {
  const std::string verdict = result["verdict"].string();
  if (verdict == "passed" || this->json) return;
  const std::string detail = result.contains("detail") ? result["detail"].string() : "";
  say("{} {} [{}] {}\n", verdict, folder, result["reason"].string(), detail);
}

Tally Conformance::run_on(const std::string& device, const std::vector<std::string>& cases) {
  request_.compile.set("device", device);
  request_.compile.set("threads", threads_);
  const std::map<std::string, std::string> explained = read_explained(request_.explained);
  const std::map<std::string, std::string> ignored = read_ignored(request_.ignored, device);
  Tally tally;
  std::vector<std::string> to_run;
  for (const std::string& folder : cases) {
    const auto reason = ignored.find(name_of(folder));
    if (reason == ignored.end()) {
      to_run.push_back(folder);
      continue;
    }
    Json result{{"verdict", "ignored"}, {"reason", reason->second}, {"case", reason->first}};
    say_case(folder, result);
    tally.add(std::move(result));
  }
  load_compiler(request_);
  std::vector<Json> results;
  {
    Progress progress(*this, fmt::format("running cases on {}", device));
    results = Pool(request_, to_run, progress).run();
  }
  for (size_t i = 0; i < to_run.size(); ++i) {
    Json r = results[i];
    r["case"] = name_of(to_run[i]);
    const auto reason = explained.find(r["case"].string());
    if (r["verdict"] == "failed" && r["reason"] == "mismatch" && reason != explained.end()) {
      r["verdict"] = "explained";
      r["reason"] = reason->second;
    }
    say_case(to_run[i], r);
    tally.add(std::move(r));
  }
  return tally;
}

int Conformance::run() {
  const std::vector<std::string> cases = find_cases(request_);
  const bool all = device_ == kAll;
  Json reports = Json::array();
  size_t failed = 0;
  for (const std::string& device : all ? running_devices() : std::vector{device_}) {
    if (all && !this->json) say("device {}\n", device);
    const Tally tally = run_on(device, cases);
    failed += tally.count("failed");
    if (this->json) {
      reports.push_back(Json{{"passed", tally.count("passed")},
                             {"failed", tally.count("failed")},
                             {"refused", tally.count("refused")},
                             {"explained", tally.count("explained")},
                             {"ignored", tally.count("ignored")},
                             {"compared", tally.compared},
                             {"device", device},
                             {"cases", tally.cases}});
      continue;
    }
    say("{} outputs compared\n", tally.compared);
    for (const char* verdict : {"explained", "ignored"}) {
      if (tally.count(verdict) > 0) say("{} {}\n", tally.count(verdict), verdict);
    }
    say("{} passed, {} failed, {} refused\n", tally.count("passed"), tally.count("failed"),
        tally.count("refused"));
  }
  if (this->json) say("{}\n", Lines{all ? reports.text(1) : reports.items()[0].text(1)});
  return failed == 0 ? kExitOk : kExitDifferent;
}

}  // namespace

std::unique_ptr<Command> make_conformance() { return std::make_unique<Conformance>(); }

}  // namespace pyc::tool
