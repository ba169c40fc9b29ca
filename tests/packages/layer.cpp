// A program of somebody else's: prints what y = relu(x @ w + 0.25) is for ones.
#include <cstdio>
#include <pyc/pyc.hpp>
#include <vector>

int main() {
  pyc::ModelBuilder b("layer");
  auto x = b.input("x", PYC_DTYPE_F32, {1, 4});
  auto w = b.random("w", PYC_DTYPE_F32, {4, 3}, 1, -0.5, 0.5);
  b.output(b.relu(b.matmul(x, w) + b.scalar(PYC_DTYPE_F32, 0.25)), "y");
  pyc::Model model = b.compile();
  const float ones[] = {1, 1, 1, 1};
  const std::vector<pyc::Tensor> y =
      model(pyc::Tensor::of(PYC_DTYPE_F32, {1, 4}, std::span<const float>(ones)));
  std::printf("%s\n", y[0].digest().c_str());
}
