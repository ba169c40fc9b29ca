#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

std::string text_of(double number) { return fmt::format("{}", number); }

// What a step's memory is for, from the plan's text and what its states are. Values that do not
// live at once share places, so that activations and gradients together may be more than the arena.
std::string memory_of(const Trainer& trainer, const std::string& graph, const std::string& plan) {
  std::set<std::string> gradients;
  int64_t parameters = 0;
  int64_t optimizer = 0;
  for (size_t i = 0; i < pyc_train_state_count(trainer.get()); ++i) {
    auto info = sized<pyc_value_info>();
    int32_t role = 0;
    check([&](pyc_error** e) { return pyc_train_state(trainer.get(), i, &info, &role, e); });
    if (role == PYC_TRAIN_PARAMETER) gradients.insert(fmt::format("grad.{}", info.name));
    (role == PYC_TRAIN_PARAMETER ? parameters : optimizer) += info.bytes;
  }
  // One whose scale was divided away is still a gradient: "  %v2 = div(%grad.w1, %loss_scale) …".
  std::istringstream nodes(graph);
  for (std::string line; std::getline(nodes, line);) {
    const size_t call = line.find(" = div(%");
    if (call == std::string::npos) continue;
    const size_t of = call + 8;
    if (!gradients.contains(line.substr(of, line.find(',', of) - of))) continue;
    gradients.insert(line.substr(3, call - 3));
  }
  int64_t gradient = 0;
  int64_t activation = 0;
  int64_t workspace = 0;
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line) && line != "steps:";) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string name;
    int64_t bytes = 0;
    if (!(words >> number >> kind >> name >> bytes)) continue;
    if (kind == "workspace") workspace += bytes;
    if (kind == "temporary")
      (gradients.contains(name.substr(0, name.size() - 1)) ? gradient : activation) += bytes;
  }
  return fmt::format(
      "memory: parameters {}, optimizer state {}, gradients {}, activations {}, workspace {}",
      parameters, optimizer, gradient, activation, workspace);
}

// One JSON document a line: a step, or an evaluation. No times, so that a run that was resumed
// leaves the same file as one that never stopped.
class Metrics {
 public:
  // Lines beyond the step a run goes on from are of steps that are done again.
  void open(const std::string& path, int64_t from) {
    if (path.empty()) return;
    path_ = path;
    std::string kept;
    if (from > 0) {
      std::ifstream old(path);
      for (std::string line; std::getline(old, line);) {
        const auto json = Json::parse(line);
        if (!json || !json->contains("step") || (*json)["step"].integer() > from) break;
        kept += line + "\n";
      }
    }
    file_.reset(std::fopen(path.c_str(), "w"));
    put(kept);
    flush();
  }
  void step(const pyc_train_result& result) {
    if (file_ == nullptr) return;
    Json line = {
        {"step", result.step}, {"loss", finite(result.loss)}, {"norm", finite(result.norm)}};
    if (result.skipped != 0) line["skipped"] = true;
    put(line.text(-1) + "\n");
  }
  void evaluation(int64_t step, double loss) {
    if (file_ != nullptr) put(Json{{"step", step}, {"eval_loss", finite(loss)}}.text(-1) + "\n");
  }
  // What a killed process must not lose: to be called before a checkpoint is written.
  void flush() {
    if (path_.empty()) return;
    if (file_ == nullptr || std::fflush(file_.get()) != 0 || failed_) {
      throw Error(PYC_STATUS_IO_ERROR, fmt::format("cannot write '{}'", path_), "");
    }
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  static Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(); }
  void put(const std::string& text) {
    failed_ = failed_ || file_ == nullptr ||
              std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size();
  }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  bool failed_ = false;
};

class Train final : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "Train a model on data, with checkpoints"; }
  std::string examples() const override {
    return "  pyc train mlp.onnx --data digits.npz --loss cross_entropy --optimizer adamw --lr "
           "0.001 \\\n"
           "      --batch 32 --steps 1000 --checkpoint-dir run --export trained.onnx\n"
           "  pyc train mlp.onnx … --checkpoint-dir run --resume\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    for (size_t i = 0; i < pyc_train_option_count(); ++i) {
      auto info = sized<pyc_option_info>();
      check([&](pyc_error** e) { return pyc_train_option(i, &info, e); });
      flags_.declare(options, info);
    }
    options.text("--data", data_,
                 "An array for each input and 'target': .npz, .safetensors, folder of .npy");
    options.integer("--steps", steps_, "Steps to have done at the end", 0, INT64_MAX);
    options.integer("--batch", batch_, "Rows of a batch; 0: as the model has it", 0, INT64_MAX);
    options.integer("--seed", seed_, "Seed of the order of rows", 0, INT64_MAX);
    options.text("--eval-data", eval_data_, "The same to evaluate on");
    options.integer("--eval-every", eval_every_, "Steps between evaluations; 0: at the end", 0,
                    INT64_MAX);
    options.text("--checkpoint-dir", folder_, "Folder of the run's checkpoints");
    options.integer("--checkpoint-every", every_, "Steps between checkpoints; the last has one too",
                    1, INT64_MAX);
    options.integer("--keep", keep_, "Checkpoints to keep", 1, INT64_MAX);
    options.flag("--resume", resume_, "Go on from the newest good checkpoint, if there is one");
    options.text("--metrics", metrics_file_, "A file of one JSON line a step");
    options.flag("--explain", explain_,
                 "Show the groups and every decision of the step's compile, and train nothing");
    options.text("--write-step", step_file_,
                 "Write the step's graph as text, with its states as comments, and train nothing");
    options.text("--export", export_, "Write the trained model: .onnx, or .pycm compiled");
  }

  int run() override {
    if (!explain_ && step_file_.empty()) require_options();
    const Graph graph = load();
    TrainOptions options;
    flags_.finish([&](const std::string& n, const std::string& v) { options.set(n, v); });
    auto compiling = std::make_unique<Progress>(*this, "compiling " + model_.model);
    compiling->watch(model_.compile);
    Trainer trainer(graph, options, model_.compile);
    compiling.reset();
    if (!step_file_.empty()) write_step(trainer);
    if (explain_) return explain(trainer);
    if (!step_file_.empty()) return kExitOk;
    check_batch(trainer);
    TrainData data(trainer, data_, static_cast<uint64_t>(seed_));
    if (!eval_data_.empty()) eval_ = std::make_unique<TrainData>(trainer, eval_data_);
    begin(trainer, data);
    loop(trainer, data);
    finish(trainer);
    return kExitOk;
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] static void refuse(const std::string& message) {
    throw Error(PYC_STATUS_INVALID_ARGUMENT, message, "");
  }

  void require_options() const {
    if (data_.empty()) refuse("no data is given: --data FILE.npz");
    if (steps_ == 0) refuse("no number of steps is given: --steps N");
    if (resume_ && folder_.empty()) refuse("--resume: no folder is given: --checkpoint-dir D");
    if (eval_every_ > 0 && eval_data_.empty())
      refuse("--eval-every: no data: --eval-data FILE.npz");
  }

  // The model as one graph; an open first dim of an input is the batch.
  Graph load() {
    model_.finish();
    const ModelFile file = ModelFile::load(model_.model);
    for (size_t i = 0; i < file.input_count() && batch_ > 0; ++i) {
      const pyc_value_info info = file.input(i);
      if (info.rank < 1 || info.shape[0] != -1) continue;
      const std::string symbol = info.symbols == nullptr ? "" : info.symbols[0];
      if (!symbol.empty()) {
        model_.compile.set("dim", fmt::format("{}={}", symbol, batch_));
        continue;
      }
      Shape shape(info.shape, info.shape + info.rank);
      shape[0] = batch_;
      if (std::find(shape.begin(), shape.end(), -1) != shape.end()) continue;
      model_.compile.set("shape", fmt::format("{}={}", info.name, fmt::join(shape, ",")));
    }
    return settled_graph(file, model_.compile);
  }

  void check_batch(const Trainer& trainer) const {
    const pyc_value_info first = trainer.batch().front();
    if (batch_ == 0 || (first.rank > 0 && first.shape[0] == batch_)) return;
    refuse(fmt::format("--batch {}: the model's input '{}' is {}", batch_, first.name,
                       type_text(first)));
  }

  // With the options that other commands take it with.
  void write_step(const Trainer& trainer) const {
    std::string pairs;
    const Graph graph = trainer.step_graph(0, pairs);
    std::ofstream file(step_file_);
    std::istringstream lines(pairs);
    for (std::string pair; std::getline(lines, pair);) file << "# --state " << pair << "\n";
    file << graph.print();
    if (!file.flush()) {
      throw Error(PYC_STATUS_IO_ERROR, fmt::format("cannot write '{}'", step_file_), "");
    }
  }

  // What `pyc explain` shows of a model, of each graph that a step runs.
  int explain(const Trainer& trainer) {
    const size_t graphs = std::stoll(trainer.option("accumulate")) > 1 ? 2 : 1;
    for (size_t i = 0; i < graphs; ++i) {
      CompileOptions compile = model_.compile;
      std::string pairs;
      const Graph graph = trainer.step_graph(i, pairs);
      std::istringstream lines(pairs);
      for (std::string pair; std::getline(lines, pair);) compile.set("state", pair);
      const Model model(graph, compile);
      if (json) {
        print(Json::parse(model.decision_log()).value());
        continue;
      }
      say("{}: loss_scale {}\n", i == 0 ? "step" : "micro-batch", trainer.option("loss_scale"));
      if (i == 0) {
        say("{}\n", memory_of(trainer, graph.print(), graph.dump("plan", compile)));
      }
      say("{}", Lines{graph.dump("groups", compile)});
      for_each_decision(model, [](const pyc_decision& d, const auto& alternatives) {
        say("{}\n", Lines{decision_text(d, alternatives)});
      });
    }
    return kExitOk;
  }

  // Goes on from a checkpoint, or sees to it that none is overwritten.
  void begin(Trainer& trainer, TrainData& data) {
    if (resume_) {
      const auto report = Json::parse(trainer.resume(folder_, &data)).value_or(Json());
      for (const Json& file : report["passed_over"].items()) {
        say(stderr, "note: checkpoint passed over: {}\n", file.string());
      }
      if (trainer.steps_done() > 0) {
        say(stderr, "note: goes on from {}\n", report["checkpoint"].string());
      } else {
        say(stderr, "note: no checkpoint in {}; begins at step 0\n", folder_);
      }
    } else if (!folder_.empty()) {
      int64_t last = -1;
      check([&](pyc_error** e) { return pyc_train_last_checkpoint(folder_.c_str(), &last, e); });
      if (last >= 0) {
        refuse(
            fmt::format("'{}' holds checkpoints up to step {}: --resume goes on from there, "
                        "another --checkpoint-dir begins anew",
                        folder_, last));
      }
    }
    first_ = trainer.steps_done();
    metrics_.open(metrics_file_, first_);
  }

  void loop(Trainer& trainer, TrainData& data) {
    Progress progress(*this, "training " + model_.model);
    const auto began = Clock::now();
    while (trainer.steps_done() < steps_) {
      const auto before = Clock::now();
      const pyc_train_result result = trainer.step(data);
      step_ms_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - before).count());
      loss_ = result.loss;
      metrics_.step(result);
      const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
      rate_ = static_cast<double>(result.step - first_) / std::max(seconds, 1e-9);
      if (progress.shown()) {
        progress.part(static_cast<double>(result.step - first_),
                      static_cast<double>(steps_ - first_));
        progress.note(fmt::format("step {} of {}, loss {:.6g}, {:.1f} steps/s", result.step, steps_,
                                  result.loss, rate_));
      }
      const bool last = result.step == steps_;
      if (eval_ != nullptr && (last || (eval_every_ > 0 && result.step % eval_every_ == 0))) {
        evaluate(trainer);
      }
      if (!folder_.empty() && (last || result.step % every_ == 0)) {
        metrics_.flush();
        trainer.save(folder_, keep_, &data);
      }
    }
    metrics_.flush();
  }

  void evaluate(Trainer& trainer) {
    eval_loss_ = trainer.evaluate(*eval_);
    metrics_.evaluation(trainer.steps_done(), *eval_loss_);
    if (!json) say("step {}: eval loss {}\n", trainer.steps_done(), text_of(*eval_loss_));
  }

  // Of all but the first, which finds its memory untouched.
  Json median_step() {
    if (step_ms_.size() < 2) return {};
    const auto first = step_ms_.begin() + 1;
    const auto middle = first + (step_ms_.end() - first) / 2;
    std::nth_element(first, middle, step_ms_.end());
    return Json(*middle);
  }

  void finish(const Trainer& trainer) {
    if (!export_.empty()) {
      const Graph trained = trainer.graph();
      if (export_.ends_with(".pycm")) {
        trained.compile_to_file(export_, model_.compile);
      } else {
        trained.export_onnx(export_);
      }
    }
    if (json) {
      Json out = {{"steps", trainer.steps_done()},
                  {"first_step", first_},
                  {"loss", loss_ ? Json(*loss_) : Json()},
                  {"eval_loss", eval_loss_ ? Json(*eval_loss_) : Json()},
                  {"steps_per_second", rate_},
                  {"step_ms", median_step()},
                  {"weights", trainer.digest()}};
      print(out);
      return;
    }
    say("{} steps, loss {}, {:.1f} steps/s, weights {}\n", trainer.steps_done(),
        loss_ ? text_of(*loss_) : "-", rate_, trainer.digest());
  }

  ModelOptions model_;
  OptionFlags flags_;
  std::string data_;
  int64_t steps_ = 0;
  int64_t batch_ = 0;
  int64_t seed_ = 0;
  std::string eval_data_;
  int64_t eval_every_ = 0;
  std::string folder_;
  int64_t every_ = 100;
  int64_t keep_ = 3;
  bool resume_ = false;
  std::string metrics_file_;
  std::string export_;
  bool explain_ = false;
  std::string step_file_;

  std::unique_ptr<TrainData> eval_;
  Metrics metrics_;
  int64_t first_ = 0;
  double rate_ = 0.0;
  std::vector<double> step_ms_;
  std::optional<double> loss_;
  std::optional<double> eval_loss_;
};

}  // namespace

std::unique_ptr<Command> make_train() { return std::make_unique<Train>(); }

}  // namespace pyc::tool
