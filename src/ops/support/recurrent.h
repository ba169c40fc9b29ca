#pragma once

// What lstm, gru and rnn share: x is [T,B,I], w [D,G*H,I], r [D,G*H,H], b [D,2*G*H], sequence_lens
// [B], initial states [D,B,H]; results are y [T,D,B,H] and the last states [D,B,H]. D is 2 for
// direction "bidirectional", else 1. With layout=1 the batch comes first. Steps are unrolled.

#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "ops/support/compose.h"
#include "ops/support/operands.h"

namespace pyc::ops {

struct RecurrentKind {
  int64_t gates;                                     // G
  size_t states;                                     // 1: h; 2: h and c
  std::string_view activations;                      // of one direction, the default
  std::initializer_list<std::string_view> operands;  // the optional inputs
};

std::vector<ir::AttrDef> recurrent_attrs();
Types infer_recurrent(const InferArgs& args, const RecurrentKind& kind);

using Activation = std::function<ValueId(ValueId)>;

// One direction of a recurrent node: what its steps are made of.
struct Direction {
  std::vector<Activation> functions;  // each clips its argument first
  ValueId r_transposed;               // [H,G*H]
  ValueId w_bias;                     // [G*H], or kNoId
  ValueId r_bias;
  ValueId peepholes;  // [3*H], or kNoId
  int64_t hidden;

  // Part `i` of gates [B,n*H] or of a parameter [n*H].
  ValueId part(Compose& c, ValueId gates, int64_t i) const;
};

// The states after a step, from x·Wᵀ plus its bias at that step [B,G*H] and the states before.
using Step = std::function<std::vector<ValueId>(const Direction&, ValueId, std::vector<ValueId>)>;

struct RecurrentSteps {
  // The bias that x·Wᵀ gets.
  std::function<ValueId(const Direction&)> bias;
  Step step;
};

// All steps in all directions: y and the last states.
Result<std::vector<ValueId>> unroll(Compose& c, const ir::Node& node, const RecurrentKind& kind,
                                    const RecurrentSteps& steps);

// Wb + Rb, or kNoId.
ValueId joined_bias(Compose& c, const Direction& d);

}  // namespace pyc::ops
