// PyC for C++20: training. pyc.hpp has the rest and includes this.
//
//   pyc::Trainer trainer(graph, pyc::TrainOptions().set("loss", "mse").set("optimizer", "adamw"));
//   pyc::TrainData data(trainer, "data.npz", 7);
//   for (int i = 0; i < 100; ++i) trainer.step(data);
//   trainer.graph().export_onnx("trained.onnx");
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pyc/pyc.hpp"

namespace pyc {
inline namespace api1 {

// Options of training by name (docs/training.md): TrainOptions().set("optimizer", "adamw").
class TrainOptions {
 public:
  TrainOptions() {
    check([&](pyc_error** e) { return pyc_train_options_create(handle_.put(), e); });
  }
  // A list gets one more item.
  TrainOptions& set(const std::string& name, const std::string& value) {
    check([&](pyc_error** e) {
      return pyc_train_options_set(get(), name.c_str(), value.c_str(), e);
    });
    return *this;
  }
  std::string text(const std::string& name) const {
    return take_text([&](char** value, pyc_error** e) {
      return pyc_train_options_get(get(), name.c_str(), value, e);
    });
  }
  pyc_train_options* get() const { return handle_.get(); }

 private:
  Handle<pyc_train_options, pyc_train_options_destroy> handle_;
};

class TrainData;

// A training run: steps over batches, checkpoints, the trained graph.
class Trainer {
 public:
  explicit Trainer(const Graph& graph, const TrainOptions& options = {},
                   const CompileOptions& compile = {}) {
    check([&](pyc_error** e) {
      return pyc_train_create(graph.get(), options.get(), compile.get(), handle_.put(), e);
    });
  }
  // The tensors a step takes.
  std::vector<pyc_value_info> batch() const {
    std::vector<pyc_value_info> out(pyc_train_batch_count(get()), sized<pyc_value_info>());
    for (size_t i = 0; i < out.size(); ++i) {
      check([&](pyc_error** e) { return pyc_train_batch(get(), i, &out[i], e); });
    }
    return out;
  }
  pyc_train_result step(std::span<const pyc_tensor_view> batch) {
    auto result = sized<pyc_train_result>();
    check([&](pyc_error** e) {
      return pyc_train_step(get(), batch.data(), batch.size(), &result, e);
    });
    return result;
  }
  double evaluate(std::span<const pyc_tensor_view> batch) {
    double loss = 0.0;
    check([&](pyc_error** e) {
      return pyc_train_evaluate(get(), batch.data(), batch.size(), &loss, e);
    });
    return loss;
  }
  // Over the next batch of the data, or as many as a step accumulates; over one pass of it.
  inline pyc_train_result step(TrainData& data);
  inline double evaluate(TrainData& data);

  int64_t steps_done() const { return pyc_train_steps_done(get()); }
  // The graph with the parameters as they are.
  Graph graph() const {
    Graph out;
    check([&](pyc_error** e) { return pyc_train_graph(get(), out.handle_.put(), e); });
    return out;
  }
  // What is compiled (pyc_train_step_graph); `states` gets the pairs that are state, one a line.
  Graph step_graph(size_t index, std::string& states) const {
    Graph out;
    states = take_text([&](char** text, pyc_error** e) {
      return pyc_train_step_graph(get(), index, out.handle_.put(), text, e);
    });
    return out;
  }
  // The value of a training option as the run has it.
  std::string option(const std::string& name) const {
    return take_text([&](char** value, pyc_error** e) {
      return pyc_train_get_option(get(), name.c_str(), value, e);
    });
  }
  // Of the parameters.
  std::string digest() const {
    return take_text([&](char** text, pyc_error** e) { return pyc_train_digest(get(), text, e); });
  }
  // Writes a checkpoint, keeps the `keep` newest; returns its path.
  inline std::string save(const std::string& folder, int64_t keep = 3,
                          const TrainData* data = nullptr) const;
  // Goes on from the newest good checkpoint, if there is one; a JSON report of which.
  inline std::string resume(const std::string& folder, TrainData* data = nullptr);
  pyc_trainer* get() const { return handle_.get(); }

 private:
  Handle<pyc_trainer, pyc_train_destroy> handle_;
};

// Rows of a .npz or .safetensors file, or of a folder of .npy files, as batches for a trainer.
class TrainData {
 public:
  // In the file's order.
  TrainData(const Trainer& trainer, const std::string& path) { load(trainer, path, 0, 0); }
  // Shuffled anew in each pass by the seed.
  TrainData(const Trainer& trainer, const std::string& path, uint64_t seed) {
    load(trainer, path, 1, seed);
  }
  pyc_train_data_info info() const {
    auto info = sized<pyc_train_data_info>();
    check([&](pyc_error** e) { return pyc_train_data_get_info(get(), &info, e); });
    return info;
  }
  pyc_train_data* get() const { return handle_.get(); }

 private:
  void load(const Trainer& trainer, const std::string& path, int32_t shuffled, uint64_t seed) {
    check([&](pyc_error** e) {
      return pyc_train_data_load(trainer.get(), path.c_str(), shuffled, seed, handle_.put(), e);
    });
  }
  Handle<pyc_train_data, pyc_train_data_destroy> handle_;
};

inline pyc_train_result Trainer::step(TrainData& data) {
  auto result = sized<pyc_train_result>();
  check([&](pyc_error** e) { return pyc_train_step_data(get(), data.get(), &result, e); });
  return result;
}
inline double Trainer::evaluate(TrainData& data) {
  double loss = 0.0;
  check([&](pyc_error** e) { return pyc_train_evaluate_data(get(), data.get(), &loss, e); });
  return loss;
}
inline std::string Trainer::save(const std::string& folder, int64_t keep,
                                 const TrainData* data) const {
  return take_text([&](char** path, pyc_error** e) {
    return pyc_train_save(get(), data == nullptr ? nullptr : data->get(), folder.c_str(), keep,
                          path, e);
  });
}
inline std::string Trainer::resume(const std::string& folder, TrainData* data) {
  return take_text([&](char** report, pyc_error** e) {
    return pyc_train_resume(get(), data == nullptr ? nullptr : data->get(), folder.c_str(), report,
                            e);
  });
}

}  // namespace api1
}  // namespace pyc
