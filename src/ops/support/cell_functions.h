#pragma once

// The activation functions that recurrent ops name in an attribute: relu, tanh, sigmoid, affine,
// leakyrelu, thresholdedrelu, scaledtanh, hardsigmoid, elu, softsign and softplus, in any letter
// case and with or without underscores, separated by commas.

#include <string_view>
#include <vector>

#include "ops/support/compose.h"

namespace pyc::ops {

struct ActivationSpec {
  std::string name;  // lower case
  double alpha = 0.0;
  double beta = 0.0;
};

// Those that use alpha or beta take the next of the lists; where a list has ended, their default.
// Refuses unknown names.
Result<std::vector<ActivationSpec>> parse_activations(std::string_view names,
                                                      const std::vector<double>& alphas,
                                                      const std::vector<double>& betas);

ValueId activate(Compose& c, const ActivationSpec& function, ValueId x);

}  // namespace pyc::ops
