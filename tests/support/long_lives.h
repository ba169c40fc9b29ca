#pragma once

// Graphs with long lives, as training has them: what the forward pass computes is read again, last
// first, by the backward pass.

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/gradient.h"
#include "ir/graph.h"
#include "ops/registry.h"

namespace pyc::test {

// The graph and the gradients of the sum of its first output's squares, in all float constants that
// are no scalars.
inline Result<ir::VerifiedGraph> with_gradients(ir::Graph graph) {
  ir::GraphBuilder builder(ops::all_ops(), std::move(graph));
  const ir::ValueId out = builder.graph().outputs[0];
  PYC_ASSIGN(const ir::ValueId square, builder.op("mul", {out, out}, {}, "square"));
  PYC_ASSIGN(const ir::ValueId loss,
             builder.op("reduce_sum", {square}, {{"keepdims", false}}, "loss"));
  PYC_TRY(builder.output(loss));
  std::vector<ir::ValueId> wanted;
  for (ir::ValueId v = 0; v < builder.graph().values.size(); ++v) {
    const ir::Value& value = builder.graph().value(v);
    if (value.kind == ir::ValueKind::kConstant && !value.type.shape.empty()) wanted.push_back(v);
  }
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(std::move(builder).take()));
  return autograd::differentiate(verified, loss, wanted, ops::all_ops());
}

// A block of layers each of which reads the concatenated results of all before it.
inline std::string dense_block(int layers, int growth, int size) {
  std::string consts;
  std::string nodes;
  std::string features = "%x";
  int channels = 2 * growth;
  for (int i = 0; i < layers; ++i) {
    const float bound = 1.0F / std::sqrt(9.0F * static_cast<float>(channels));
    consts += fmt::format("  %scale{0} = const f32[{1},1,1] random(seed={2}, lo=0.8, hi=1.2)\n", i,
                          channels, 3 * i + 1);
    consts += fmt::format("  %shift{0} = const f32[{1},1,1] random(seed={2}, lo=-0.1, hi=0.1)\n", i,
                          channels, 3 * i + 2);
    consts += fmt::format("  %w{0} = const f32[{1},{2},3,3] random(seed={3}, lo={4}, hi={5})\n", i,
                          growth, channels, 3 * i + 3, -bound, bound);
    const std::string in = i == 0 ? "%x" : fmt::format("%in{}", i);
    if (i > 0) nodes += fmt::format("  {} = concat({}) {{axis=1}}\n", in, features);
    nodes += fmt::format("  %scaled{0} = mul({1}, %scale{0})\n", i, in);
    nodes += fmt::format("  %normed{0} = add(%scaled{0}, %shift{0})\n", i);
    nodes += fmt::format("  %active{0} = relu(%normed{0})\n", i);
    nodes += fmt::format("  %y{0} = conv(%active{0}, %w{0}) {{pads=[1, 1, 1, 1]}}\n", i);
    features += fmt::format(", %y{}", i);
    channels += growth;
  }
  nodes += fmt::format("  %all = concat({}) {{axis=1}}\n", features);
  nodes += "  %mean = reduce_mean(%all) {axes=[2, 3], keepdims=false}\n";
  return fmt::format("graph @dense(%x: f32[1,{},{},{}]) -> (%mean) {{\n{}{}}}\n", 2 * growth, size,
                     size, consts, nodes);
}

// Layers h + gate(norm(h) a) b, forward, and all gradients written out behind it.
inline std::string residual_step(int layers, int rows, int width) {
  const int hidden = 4 * width;
  const float bound = 1.0F / std::sqrt(static_cast<float>(width));
  std::string consts;
  std::string forward;
  std::string backward;
  std::string outputs = "%loss";
  std::string h = "%x";
  for (int i = 0; i < layers; ++i) {
    consts += fmt::format("  %a{0} = const f32[{1},{2}] random(seed={3}, lo={4}, hi={5})\n", i,
                          width, hidden, 2 * i + 1, -bound, bound);
    consts += fmt::format("  %b{0} = const f32[{2},{1}] random(seed={3}, lo={4}, hi={5})\n", i,
                          width, hidden, 2 * i + 2, -bound / 2, bound / 2);
    forward += fmt::format(
        "  %sq{0} = mul({1}, {1})\n"
        "  %ms{0} = reduce_mean(%sq{0}) {{axes=[1], keepdims=true}}\n"
        "  %root{0} = sqrt(%ms{0})\n"
        "  %inv{0} = reciprocal(%root{0})\n"
        "  %n{0} = mul({1}, %inv{0})\n"
        "  %u{0} = matmul(%n{0}, %a{0})\n"
        "  %s{0} = sigmoid(%u{0})\n"
        "  %g{0} = mul(%u{0}, %s{0})\n"
        "  %v{0} = matmul(%g{0}, %b{0})\n"
        "  %h{0} = add({1}, %v{0})\n",
        i, h);
    h = fmt::format("%h{}", i);
  }
  forward += fmt::format("  %error = sub({}, %y)\n  %square = mul(%error, %error)\n", h);
  forward += "  %loss = reduce_sum(%square) {axes=[0, 1], keepdims=false}\n";
  forward += "  %d = add(%error, %error)\n";
  std::string d = "%d";
  for (int i = layers - 1; i >= 0; --i) {
    h = i == 0 ? std::string("%x") : fmt::format("%h{}", i - 1);
    // u·s differentiated: s + u·s·(1 − s); x/r: (dn − n·mean(dn·n))/r.
    backward += fmt::format(
        "  %gt{0} = transpose(%g{0}) {{perm=[1, 0]}}\n"
        "  %db{0} = matmul(%gt{0}, {1})\n"
        "  %bt{0} = transpose(%b{0}) {{perm=[1, 0]}}\n"
        "  %dg{0} = matmul({1}, %bt{0})\n"
        "  %gs{0} = mul(%g{0}, %s{0})\n"
        "  %ge{0} = sub(%g{0}, %gs{0})\n"
        "  %slope{0} = add(%s{0}, %ge{0})\n"
        "  %du{0} = mul(%dg{0}, %slope{0})\n"
        "  %nt{0} = transpose(%n{0}) {{perm=[1, 0]}}\n"
        "  %da{0} = matmul(%nt{0}, %du{0})\n"
        "  %at{0} = transpose(%a{0}) {{perm=[1, 0]}}\n"
        "  %dn{0} = matmul(%du{0}, %at{0})\n"
        "  %dnn{0} = mul(%dn{0}, %n{0})\n"
        "  %along{0} = reduce_mean(%dnn{0}) {{axes=[1], keepdims=true}}\n"
        "  %part{0} = mul(%n{0}, %along{0})\n"
        "  %across{0} = sub(%dn{0}, %part{0})\n"
        "  %back{0} = mul(%across{0}, %inv{0})\n"
        "  %d{0} = add({1}, %back{0})\n",
        i, d);
    outputs += fmt::format(", %da{0}, %db{0}", i);
    d = fmt::format("%d{}", i);
  }
  outputs += ", " + d;
  return fmt::format(
      "graph @residual(%x: f32[{0},{1}], %y: f32[{0},{1}]) -> ({2}) {{\n{3}{4}{5}}}\n", rows, width,
      outputs, consts, forward, backward);
}

}  // namespace pyc::test
