// Outputs that are another value under another name.

#include <gtest/gtest.h>

#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

std::string digest(std::string_view text, const char* device, bool fuse) {
  CompileOptions options;
  options.device = device;
  options.fuse = fuse;
  options.cache = false;
  const auto model = session::compile(parse_model(text).value(), options);
  if (!model.ok()) return model.status().to_string();
  const auto data = tooling::SeededRun::create(**model, 5);
  const Status status = (*model)->run(data->inputs(), data->outputs());
  return status.ok() ? data->digest(0).hex() : status.to_string();
}

// The update covers all of the past, which is read for nothing: the result is the update.
TEST(Views, AreOfTheValueThatIsTakenNotOfTheFirstOneRead) {
  constexpr std::string_view kText = R"(
    graph @g(%x: i32[33], %y: i32[33]) -> (%r) {
      %a = neg(%x)
      %b = abs(%y)
      %past = reshape(%a) {shape=[3,1,11]}
      %update = reshape(%b) {shape=[3,1,11]}
      %r = tensor_scatter(%past, %update) {axis=1, mode="circular"}
    })";
  constexpr std::string_view kUpdate = R"(
    graph @g(%x: i32[33], %y: i32[33]) -> (%r) {
      %b = abs(%y)
      %r = reshape(%b) {shape=[3,1,11]}
    })";
  const std::string expected = digest(kUpdate, "reference", false);
  for (const char* device : {"reference", "cpu"}) {
    EXPECT_EQ(digest(kText, device, true), expected) << device;
    EXPECT_EQ(digest(kText, device, false), expected) << device;
  }
}

}  // namespace
}  // namespace pyc::driver
