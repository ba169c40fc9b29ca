// Ops over rows that the CPU may take two at a time: any number of rows and threads gives the bits
// of the reference.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

Result<std::vector<std::byte>> bytes_of(const std::string& text, const std::string& device,
                                        int threads) {
  CompileOptions options;
  options.device = device;
  options.threads = threads;
  PYC_ASSIGN(ir::Graph graph, parse_model(text));
  PYC_ASSIGN(auto model, session::compile(std::move(graph), options));
  PYC_ASSIGN(tooling::SeededRun run, tooling::SeededRun::create(*model, 7));
  PYC_TRY(model->run(run.inputs(), run.outputs()));
  const runtime::TensorView& out = run.outputs()[0];
  const auto* data = static_cast<const std::byte*>(out.data);
  return std::vector<std::byte>(data, data + out.bytes);
}

TEST(RowPairs, GiveTheBitsOfTheReference) {
  for (const char* op : {"softmax(%x) {axis=-1}", "log_softmax(%x) {axis=-1}",
                         "layer_norm(%x, %g, %g)", "rms_norm(%x, %g)"}) {
    for (const int rows : {2, 7, 34}) {
      for (const int n : {64, 100, 1025}) {
        const std::string text = fmt::format(
            "graph @g(%x0: f32[{0},{1}]) -> (%y) {{\n"
            "  %g = const f32[{1}] random(seed=1, lo=0.5, hi=1.5)\n"
            "  %s = const f32[1] splat(40.0)\n"
            "  %x = mul(%x0, %s)\n"
            "  %y = {2}\n}}\n",
            rows, n, op);
        SCOPED_TRACE(text);
        const auto reference = bytes_of(text, "reference", 1);
        ASSERT_TRUE(reference.ok()) << reference.status().to_string();
        for (const int threads : {1, 2, 3}) {
          const auto found = bytes_of(text, "cpu", threads);
          ASSERT_TRUE(found.ok()) << found.status().to_string();
          EXPECT_EQ(*found, *reference) << threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace pyc::driver
