#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

namespace fs = std::filesystem;

constexpr int kShows = 0;
constexpr int kShowsNot = 1;
constexpr int kBroken = 70;

// What came of a child process.
struct Ended {
  int exit = -1;   // -1: by a signal
  int signal = 0;  // SIGALRM: over the time limit
};

// Runs `body`, which returns an exit code, in a process of its own: it may crash or hang. This
// process starts no threads before but that of Progress, which waits: the child may do anything.
Ended in_child(int64_t time_limit, const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid == 0) {
    ::alarm(static_cast<unsigned>(time_limit));
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    int code = kBroken;
    try {
      code = body();
    } catch (...) {
      code = kBroken;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFEXITED(status)) return {WEXITSTATUS(status), 0};
  return {-1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

// A file that is gone when its owner is.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::string pattern = (fs::temp_directory_path() / "pyc-reduce-XXXXXX.ir").string();
    const int fd = ::mkstemps(pattern.data(), 3);
    if (fd < 0) throw Error(PYC_STATUS_IO_ERROR, "cannot make a file '" + pattern + "'", "");
    ::close(fd);
    path_ = pattern;
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Reduce final : public Command {
 public:
  std::string name() const override { return "reduce"; }
  std::string summary() const override { return "Shrink a model that shows a fault"; }
  std::string examples() const override {
    return "  pyc reduce model.ir -o small.ir --lanes 8\n"
           "  pyc reduce model.ir -o small.ir --check unsupported\n"
           "  pyc reduce model.ir -o small.ir -- ./still_wrong.sh\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    options.text("-o,--output", output_, "The file to write: .onnx, else text IR");
    options.text("--check", check_,
                 "What must stay: differs (from --reference), crash, or the code of an error");
    options.choice("--reference", reference_, "The device to compare with", device_names());
    options.integer("--seed", seed_, "Seed of the inputs", 0, INT64_MAX);
    options.integer("--tries", tries_, "Graphs to try at most", 1, INT64_MAX);
    options.integer("--time-limit", time_limit_, "Seconds per try", 1, 86400);
    options.rest("command", command_,
                 "a program that is given the file of a smaller model and exits with 0 "
                 "while the fault is there");
  }

  int run() override {
    model_.finish();
    if (output_.empty()) {
      throw Error(PYC_STATUS_INVALID_ARGUMENT, "no file to write is given", "");
    }
    Progress progress(*this, "reducing " + model_.model);
    const Graph graph = Graph::load(model_.model);
    int64_t tried = 0;
    const TemporaryFile file;
    const Graph small = graph.reduce(
        [&](const std::string& text) {
          ++tried;
          return shows(text, file.path());
        },
        tries_);
    write(small);
    progress.end();
    if (json) {
      print(Json{{"file", output_},
                 {"nodes_before", graph.node_count()},
                 {"nodes", small.node_count()},
                 {"tried", tried}});
    } else {
      say("{}: {} nodes of {}, {} graphs tried\n", output_, small.node_count(), graph.node_count(),
          tried);
    }
    return kExitOk;
  }

 private:
  bool shows(const std::string& text, const std::string& path) const {
    if (!command_.empty()) {
      std::ofstream(path, std::ios::trunc) << text;
      return in_child(time_limit_, [&] { return call(path); }).exit == kShows;
    }
    const Ended ended = in_child(time_limit_, [&] { return check(text); });
    if (check_ == "crash") return ended.exit < 0 && ended.signal != SIGALRM;
    return ended.exit == kShows;
  }

  // Replaces the child by the user's program; {} stands for the file, which else comes last.
  int call(const std::string& path) const {
    std::vector<std::string> words = command_;
    if (std::find(words.begin(), words.end(), "{}") == words.end()) words.push_back("{}");
    std::replace(words.begin(), words.end(), std::string("{}"), path);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    return kBroken;
  }

  int check(const std::string& text) const {
    const Graph graph = Graph::parse(text);
    if (check_ == "differs") {
      return digests(graph, reference_) == digests(graph, model_.compile.text("device")) ? kShowsNot
                                                                                         : kShows;
    }
    try {
      digests(graph, model_.compile.text("device"));
    } catch (const Error& e) {
      return pyc_status_name(e.code()) == check_ ? kShows : kShowsNot;
    }
    return kShowsNot;
  }

  std::vector<std::string> digests(const Graph& graph, const std::string& device) const {
    CompileOptions options = model_.compile;
    options.set("device", device);
    Model model(graph, options);
    InputOptions inputs;
    inputs.seed = seed_;
    const std::vector<AnyValue> values = inputs.make(model);
    const std::vector<Tensor> outputs = model.make_outputs();
    model.run(views_of(values), views_of(outputs));
    std::vector<std::string> out;
    for (const Tensor& t : outputs) out.push_back(t.digest());
    return out;
  }

  void write(const Graph& graph) const {
    if (fs::path(output_).extension() == ".onnx") return graph.export_onnx(output_);
    std::ofstream file(output_, std::ios::trunc);
    file << graph.print();
    if (!file.flush()) throw Error(PYC_STATUS_IO_ERROR, "cannot write '" + output_ + "'", "");
  }

  ModelOptions model_;
  std::string output_;
  std::string check_ = "differs";
  std::string reference_ = "reference";
  std::vector<std::string> command_;
  int64_t seed_ = 0;
  int64_t tries_ = 2000;
  int64_t time_limit_ = 60;
};

}  // namespace

std::unique_ptr<Command> make_reduce() { return std::make_unique<Reduce>(); }

}  // namespace pyc::tool
