#pragma once

// Models on the device "cuda" over the fake driver and compiler.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cuda/fake_driver.h"
#include "runtime/model.h"
#include "session/model.h"

namespace pyc::test {

// The device finds the fakes as long as this lives.
class FakesChosen {
 public:
  FakesChosen() {
    setenv("PYC_LIBCUDA", kFakeDriver, 1);
    setenv("PYC_NVRTC", kFakeNvrtc, 1);
  }
  ~FakesChosen() {
    unsetenv("PYC_LIBCUDA");
    unsetenv("PYC_NVRTC");
  }
  FakesChosen(const FakesChosen&) = delete;
  FakesChosen& operator=(const FakesChosen&) = delete;
};

inline driver::CompileOptions on_device(const std::string& device) {
  driver::CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.cache = false;
  return options;
}

inline Result<std::unique_ptr<runtime::Model>> compile_text(const std::string& text,
                                                            const driver::CompileOptions& options) {
  PYC_ASSIGN(ir::Graph graph, driver::parse_model(text));
  return session::compile(std::move(graph), options);
}

using TensorBytes = std::vector<std::vector<std::byte>>;

// Views of bytes as a model's inputs or outputs.
inline std::vector<runtime::TensorView> views_of(const std::vector<runtime::IoSpec>& specs,
                                                 TensorBytes& bytes) {
  std::vector<runtime::TensorView> views;
  for (size_t i = 0; i < specs.size(); ++i) {
    views.push_back({.data = bytes[i].data(),
                     .dtype = specs[i].dtype,
                     .shape = specs[i].shape,
                     .bytes = specs[i].bytes});
  }
  return views;
}

// Memory for outputs, filled with a pattern.
inline TensorBytes room_for(const std::vector<runtime::IoSpec>& specs) {
  TensorBytes bytes;
  for (const runtime::IoSpec& spec : specs) {
    bytes.emplace_back(static_cast<size_t>(spec.bytes), std::byte{0xAB});
  }
  return bytes;
}

// The floats 0.25, 0.5, … as inputs.
inline TensorBytes ramp_inputs(const std::vector<runtime::IoSpec>& specs, float first = 0.25F) {
  TensorBytes bytes = room_for(specs);
  for (std::vector<std::byte>& b : bytes) {
    auto* floats = reinterpret_cast<float*>(b.data());
    for (size_t i = 0; i < b.size() / 4; ++i) {
      floats[i] = first + 0.25F * static_cast<float>(i % 37) - 3.0F;
    }
  }
  return bytes;
}

inline Status run_on(runtime::Model& model, TensorBytes inputs, TensorBytes& outputs,
                     runtime::RunStats* stats = nullptr) {
  outputs = room_for(model.outputs());
  return model.run(views_of(model.inputs(), inputs), views_of(model.outputs(), outputs), stats);
}

}  // namespace pyc::test
