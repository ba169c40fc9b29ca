#pragma once

#include <string_view>

namespace pyc::test {

// A product with bias, relu and softmax: one model that has packed weights, an epilogue and a row.
inline constexpr std::string_view kSmallMlp = R"(graph @mlp(%x: f32[8,64]) -> (%y) {
  %w = const f32[64,32] random(seed=1, lo=-0.1, hi=0.1)
  %b = const f32[32] splat(0.5)
  %h = matmul(%x, %w)
  %a = add(%h, %b)
  %r = relu(%a)
  %y = softmax(%r) {axis=-1}
}
)";

}  // namespace pyc::test
