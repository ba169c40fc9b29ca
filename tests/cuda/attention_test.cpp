// Attention on the device "cuda" over the fake driver: its own kernel, with the bits of the
// reference.

#include <string>

#include "cuda/models_on_fake.h"

namespace pyc::test {
namespace {

struct Heads {
  std::string q;
  std::string k;
  std::string v;
  std::string attributes;
};

std::string graph_of(const Heads& h) {
  return "graph @g(%q: f32" + h.q + ", %k: f32" + h.k + ", %v: f32" + h.v +
         ") -> (%y) {\n  %y, %a, %b, %c = attention(%q, %k, %v)" + h.attributes + "\n}\n";
}

struct Answer {
  std::string kernel;
  TensorBytes outputs;
};

Answer run(const std::string& device, const std::string& text) {
  Answer answer;
  auto model = compile_text(text, on_device(device));
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  if (!model.ok()) return answer;
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("kernel:")) answer.kernel = d.chosen;
  }
  const Status status = run_on(**model, ramp_inputs((*model)->inputs()), answer.outputs);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return answer;
}

class CudaAttention : public testing::TestWithParam<Heads> {};

TEST_P(CudaAttention, GivesTheBitsOfTheReference) {
  const FakesChosen fakes;
  const std::string text = graph_of(GetParam());
  const Answer found = run("cuda", text);
  EXPECT_EQ(found.kernel.substr(0, 13), "f32_attention");
  EXPECT_TRUE(found.outputs == run("reference", text).outputs) << "other bits";
}

// Rows, keys, depths and columns around the borders of tiles, chunks and blocks; 32 rows a block
// where there are many heads.
INSTANTIATE_TEST_SUITE_P(
    All, CudaAttention,
    testing::Values(Heads{"[1,2,1,64]", "[1,2,200,64]", "[1,2,200,64]", ""},
                    Heads{"[2,2,17,64]", "[2,2,128,64]", "[2,2,128,64]", " {causal=true}"},
                    Heads{"[1,3,37,40]", "[1,3,261,40]", "[1,3,261,24]", ""},
                    Heads{"[1,2,16,7]", "[1,2,3,7]", "[1,2,3,5]", " {causal=true}"},
                    Heads{"[1,1,9,256]", "[1,1,129,256]", "[1,1,129,130]", " {softcap=1.5}"},
                    Heads{"[1,1,33,33]", "[1,1,40,33]", "[1,1,40,65]",
                          " {left_window=5, right_window=1}"},
                    Heads{"[6,44,33,8]", "[6,44,20,8]", "[6,44,20,4]", ""}));

// What it cannot do has the generic kernel, and the log says why.
TEST(CudaAttentionRefused, DepthOfSeveralSegments) {
  const FakesChosen fakes;
  const Answer found = run("cuda", graph_of({"[1,1,2,300]", "[1,1,3,300]", "[1,1,3,4]", ""}));
  EXPECT_EQ(found.kernel.substr(0, 5), "loop_");
}

}  // namespace
}  // namespace pyc::test
