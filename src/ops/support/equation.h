#pragma once

// Equations over index letters: "bij,bjk->bik".

#include <string>
#include <string_view>
#include <vector>

#include "ops/support/infer.h"

namespace pyc::ops {

struct Equation {
  std::vector<std::string> operands;  // the letters of each operand's dims
  std::string result;

  std::string text() const;
  // The letters that are summed over, in the order in which they first appear.
  std::string summed() const;
};

// One letter per dim; the result must be written. Any character but ',', '-', '>', '.' and blank is
// a letter.
Result<Equation> parse_equation(std::string_view text);

// With "..." for the dims that broadcast, blanks, and the result left out on demand: those letters
// that appear once, in order. Letters are a-z and A-Z; the dims behind "..." get other ones.
Result<Equation> parse_einsum(std::string_view text, std::span<const TensorType> inputs);

// The extent of each of `letters`: 1 gives way to others. Refuses when they differ, and operands of
// another rank than their letters.
Result<Shape> extents_of(const Equation& equation, std::span<const TensorType> inputs,
                         std::string_view letters);

}  // namespace pyc::ops
