// What compiles share and are told of besides options by name: progress, code, constants.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "capi/calls.h"

namespace pyc::test {
namespace {

// Rows of `length` elements; the first dim is not open.
Graph rows_of(int64_t length) {
  ModelBuilder b("rows");
  const auto x = b.input("x", PYC_DTYPE_F32, {3, length});
  b.output(b.softmax(x), "y");
  return b.graph().clone();
}

std::string generated(const Model& model) {
  const std::string log = model.decision_log();
  const size_t end = log.find(" generated\"");
  if (end == std::string::npos) return "";
  const size_t begin = log.rfind('"', end) + 1;
  return log.substr(begin, end - begin);
}

TEST(Progress, IsToldAfterEachKernel) {
  struct Told {
    std::atomic<int64_t> calls = 0;
    std::atomic<int64_t> last = 0;
    std::atomic<int64_t> all = 0;
  };
  const auto told = std::make_shared<Told>();
  const std::weak_ptr<Told> watched = told;
  {
    CompileOptions options;
    options.set("cache", false).set("fuse", false);
    options.progress([told](int64_t done, int64_t all) {
      ++told->calls;
      told->all = all;
      if (done == all) told->last = done;
    });
    ModelBuilder b("two");
    const auto x = b.input("x", PYC_DTYPE_F32, {7});
    b.output(b.op("exp", {b.relu(x)}), "y");
    const Model model(b.graph(), options);
    EXPECT_EQ(told->calls, told->all);
    EXPECT_EQ(told->last, told->all);
    EXPECT_GE(told->all, 2);
  }
  EXPECT_EQ(watched.use_count(), 1) << "the options let it go";
}

TEST(Progress, OfNobodyIsReleasedAtOnce) {
  CompileOptions options;
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  ASSERT_EQ(pyc_compile_options_progress(options.get(), nullptr, &released, release, nullptr),
            PYC_STATUS_OK);
  EXPECT_EQ(released, 1);
}

TEST(SharedCode, ServesOtherSizesWithTheSameBits) {
  CompileOptions shared;
  shared.set("cache", false).share_code();
  std::vector<std::string> made;
  for (const int64_t length : {300, 301, 302, 517, 300}) {
    const Graph graph = rows_of(length);
    Model model(graph, CompileOptions(shared));
    made.push_back(generated(model));
    Model alone(graph, CompileOptions().set("cache", false));
    const std::vector<Tensor> found = model(Tensor::random(PYC_DTYPE_F32, {3, length}, 7));
    const std::vector<Tensor> right = alone(Tensor::random(PYC_DTYPE_F32, {3, length}, 7));
    EXPECT_EQ(found[0].digest(), right[0].digest()) << length;
  }
  EXPECT_NE(made[0], "0");
  EXPECT_EQ(made[2], "0") << "a third size";
  EXPECT_EQ(made[3], "0");
  EXPECT_EQ(made[4], "0") << "a size met before";
}

TEST(Constants, BorrowedOnesAreReleasedWhenNothingReadsThem) {
  const std::vector<float> elements = {1, 2, 3};
  const int64_t shape[] = {3};
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  std::vector<Tensor> found;
  {
    ModelBuilder b("borrowed");
    pyc_value value = 0;
    ASSERT_EQ(pyc_graph_constant_borrowed(b.graph().get(), "w", PYC_DTYPE_F32, shape, 1,
                                          elements.data(), 12, &released, release, &value, nullptr),
              PYC_STATUS_OK);
    const auto x = b.input("x", PYC_DTYPE_F32, {3});
    b.output(x * Value(&b, value), "y");
    Model model(b.graph(), CompileOptions().set("cache", false));
    EXPECT_EQ(released, 0);
    found = model(Tensor::random(PYC_DTYPE_F32, {3}, 7));
  }
  EXPECT_EQ(released, 1);
  ModelBuilder copied("copied");
  const auto x = copied.input("x", PYC_DTYPE_F32, {3});
  copied.output(x * copied.constant("w", PYC_DTYPE_F32, {3}, elements), "y");
  Model model(copied.graph(), CompileOptions().set("cache", false));
  EXPECT_EQ(model(Tensor::random(PYC_DTYPE_F32, {3}, 7))[0].digest(), found[0].digest());
}

TEST(Constants, RefusedOnesAreReleasedAtOnce) {
  const float one = 1;
  const int64_t shape[] = {3};
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  ModelBuilder b("refused");
  pyc_value value = 0;
  EXPECT_EQ(pyc_graph_constant_borrowed(b.graph().get(), "w", PYC_DTYPE_F32, shape, 1, &one, 4,
                                        &released, release, &value, nullptr),
            PYC_STATUS_SIZE_MISMATCH);
  EXPECT_EQ(released, 1);
}

TEST(Constants, OfAnotherGraphAreThoseElements) {
  ModelBuilder first("first");
  const auto w = first.constant("w", PYC_DTYPE_F32, {2}, std::vector<float>{3, 4});
  ModelBuilder second("second");
  const auto x = second.input("x", PYC_DTYPE_F32, {2});
  second.output(x + second.constant_of("w", w), "y");
  ModelBuilder alone("second");
  const auto z = alone.input("x", PYC_DTYPE_F32, {2});
  alone.output(z + alone.constant("w", PYC_DTYPE_F32, {2}, std::vector<float>{3, 4}), "y");
  EXPECT_EQ(second.graph().fingerprint(), alone.graph().fingerprint());
  pyc_value value = 0;
  EXPECT_EQ(pyc_graph_constant_of(alone.graph().get(), "v", second.graph().get(), x.id(), &value,
                                  nullptr),
            PYC_STATUS_INVALID_ARGUMENT)
      << "an input is no constant";
}

TEST(SharedCode, IsNotSaidOfAModelThatSharesNone) {
  EXPECT_EQ(generated(Model(rows_of(64), CompileOptions().set("cache", false))), "");
}

}  // namespace
}  // namespace pyc::test
