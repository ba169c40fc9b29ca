#pragma once

// One conformance case: a folder with model.onnx and test_data_set_*. Input N of a data set is the
// N-th graph input that is no initializer, output N the N-th graph output; a position without a
// file is not compared.

#include <string>

#include "driver/compile.h"

namespace pyc::tooling {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-7;
  double scale = 0.0;  // over 0: allowed difference as a part of the largest expected magnitude
};

enum class Verdict : uint8_t { kPassed, kFailed, kRefused };

struct CaseResult {
  Verdict verdict = Verdict::kPassed;
  std::string
      reason;  // "" when passed; a code's name when refused; "mismatch" and such when failed
  std::string detail;
  int data_sets = 0;
  int compared = 0;      // outputs
  int not_compared = 0;  // outputs without a file
  int segments = 0;      // compiled
  int host_calls = 0;
};

// What a refusal of the model means: PyC may say no to a model, but must neither break nor fail on
// data that the standard allows.
Verdict verdict_of(Code code);

// A case in which nothing was compared has failed.
CaseResult run_case(const std::string& folder, const driver::CompileOptions& options,
                    const Tolerance& tolerance);

}  // namespace pyc::tooling
