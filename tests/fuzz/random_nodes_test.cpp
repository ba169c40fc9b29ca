// One node of every op with random inputs and attributes, right and wrong ones: it runs or is
// refused with the node's name.

#include <cstdlib>
#include <iterator>
#include <random>

#include "fuzz/targets.h"

namespace pyc::onnx::test {
namespace {

constexpr const char* kOps[] = {"Attention",
                                "AveragePool",
                                "BatchNormalization",
                                "CenterCropPad",
                                "Clip",
                                "Col2Im",
                                "Compress",
                                "Concat",
                                "ConstantOfShape",
                                "Conv",
                                "ConvTranspose",
                                "CumSum",
                                "DepthToSpace",
                                "Einsum",
                                "Expand",
                                "EyeLike",
                                "Flatten",
                                "GRU",
                                "Gather",
                                "GatherElements",
                                "GatherND",
                                "Gemm",
                                "GroupNormalization",
                                "LSTM",
                                "LayerNormalization",
                                "MatMul",
                                "MaxPool",
                                "MaxUnpool",
                                "OneHot",
                                "Pad",
                                "Range",
                                "ReduceSum",
                                "Reshape",
                                "Resize",
                                "ReverseSequence",
                                "ScatterElements",
                                "ScatterND",
                                "Shape",
                                "Slice",
                                "Softmax",
                                "SpaceToDepth",
                                "Split",
                                "Squeeze",
                                "Tile",
                                "TopK",
                                "Transpose",
                                "Trilu",
                                "Unsqueeze",
                                "Upsample",
                                "Where"};
constexpr const char* kAttrs[] = {
    "axis",        "axes",      "perm",       "kernel_shape", "strides",      "pads",
    "dilations",   "group",     "auto_pad",   "ceil_mode",    "keepdims",     "mode",
    "num_outputs", "blocksize", "batch_dims", "allowzero",    "output_shape", "output_padding",
    "num_groups",  "start",     "end",        "upper",        "split",        "scales",
    "shape",       "to",        "k",          "hidden_size",  "direction",    "equation",
    "largest",     "time_axis"};
constexpr const char* kWords[] = {"",         "SAME_UPPER",    "SAME_LOWER", "VALID",
                                  "constant", "reflect",       "linear",     "cubic",
                                  "CRD",      "bidirectional", "ij,jk->ik",  "...->"};
constexpr int64_t kNumbers[] = {0,
                                1,
                                2,
                                3,
                                4,
                                -1,
                                -2,
                                -3,
                                7,
                                1 << 20,
                                INT64_C(1) << 31,
                                INT64_C(1) << 40,
                                INT64_C(1) << 62,
                                INT64_MAX,
                                INT64_MIN};

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  Bytes make(const std::string& op) {
    Graph g{.outputs = {unshaped("y", kF32)}};
    Names in;
    const size_t count = below(5);
    for (size_t i = 0; i < count; ++i) {
      in.push_back(below(8) == 0 ? "" : "v" + std::to_string(i));
      if (below(2) == 0) {
        g.inputs.push_back(value("v" + std::to_string(i), below(4) == 0 ? kI64 : kF32, shape()));
      } else {
        g.initializers.push_back(ints("v" + std::to_string(i), list()));
      }
    }
    std::vector<Bytes> attrs;
    const size_t first = below(std::size(kAttrs));
    for (size_t i = 0; i < below(4); ++i) {
      attrs.push_back(attr(kAttrs[(first + i * 7) % std::size(kAttrs)]));
    }
    Names out{"y"};
    for (size_t i = below(4); i > 2; --i) out.push_back("z" + std::to_string(i));
    g.nodes = {node(op, in, out, attrs, "the_node")};
    constexpr int64_t kVersions[] = {1, 7, 9, 10, 11, 13, 18, 21, 23};
    return model(g, kVersions[below(std::size(kVersions))]);
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  int64_t pick() { return kNumbers[below(2) == 0 ? below(5) : below(std::size(kNumbers))]; }
  Ints shape() {
    Ints dims;
    for (size_t i = below(5); i > 0; --i) dims.push_back(static_cast<int64_t>(below(5)));
    return dims;
  }
  Ints list() {
    Ints values;
    for (size_t i = below(6); i > 0; --i) values.push_back(pick());
    return values;
  }
  Bytes attr(const std::string& name) {
    switch (below(5)) {
      case 0:
        return attr_string(name, kWords[below(std::size(kWords))]);
      case 1:
        return attr_ints(name, list());
      case 2:
        return attr_ints(name, {pick(), pick()});
      default:
        return attr_int(name, pick());
    }
  }

  std::mt19937_64 random_;
};

TEST(FuzzNodes, RandomNodesRunOrAreRefused) {
  const char* more = std::getenv("PYC_FUZZ_NODES");  // trials per op
  const int trials = more == nullptr ? 60 : std::atoi(more);
  Maker maker(more == nullptr ? 23 : static_cast<uint64_t>(trials));
  for (const char* op : kOps) {
    SCOPED_TRACE(op);
    for (int i = 0; i < trials; ++i) fuzz_run(maker.make(op));
  }
}

}  // namespace
}  // namespace pyc::onnx::test
