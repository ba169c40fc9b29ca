// The row of docs/adding-an-option.md, in a table with one row more, seen from every side. The rest
// of the library is compiled with the shorter table, so nothing here compiles a model.

#include <gtest/gtest.h>

#include "../../tools/pyc/command.h"
#include "driver/compile_options.h"
#include "pyc/pyc.hpp"

namespace pyc {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(OptionRecipe, TheRowMakesTheField) {
  driver::CompileOptions options;
  EXPECT_EQ(options.tile_rows, 8);
  options.tile_rows = 5;
  EXPECT_EQ(driver::check_options(options).message(),
            "tile_rows: expected one of 4, 8, 16, found '5'");
}

TEST(OptionRecipe, TheRowIsInTheKeyTheLogAndTheCheckOfArtefacts) {
  driver::CompileOptions options;
  EXPECT_TRUE(contains(driver::options_key(options), " tile_rows=8"));
  options.tile_rows = 16;
  EXPECT_TRUE(contains(driver::options_key(options), " tile_rows=16"));
  EXPECT_EQ(driver::options_summary(options), "tile_rows=16");
  EXPECT_EQ(driver::decided_options(options), std::vector<std::string_view>{"tile_rows"});
}

TEST(OptionRecipe, TheRowIsANameOfTheLibrary) {
  CompileOptions options;
  EXPECT_EQ(options.text("tile_rows"), "8");
  EXPECT_EQ(options.set("tile_rows", 4).text("tile_rows"), "4");
  EXPECT_THROW(options.set("tile_rows", 5), Error);
  auto last = sized<pyc_option_info>();
  ASSERT_EQ(pyc_option(pyc_option_count() - 1, &last, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(last.name, "tile_rows");
}

TEST(OptionRecipe, TheRowIsAFlagWithHelp) {
  tool::ModelOptions model;
  tool::Options options("run", "", "");
  model.declare(options);
  ASSERT_TRUE(options.parse({"model.ir", "--tile-rows", "16"}));
  model.finish();
  EXPECT_EQ(model.compile.text("tile_rows"), "16");

  tool::ModelOptions asked;
  tool::Options help("run", "", "");
  asked.declare(help);
  testing::internal::CaptureStdout();
  EXPECT_FALSE(help.parse({"--help"}));
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(contains(shown, "--tile-rows TEXT")) << shown;
  EXPECT_TRUE(contains(shown, "Rows of a tile of generated code: 4, 8, 16")) << shown;
}

TEST(OptionRecipe, TheRowIsALineOfThePage) {
  const auto command = tool::make_options();
  tool::Options options(command->name(), command->summary(), command->examples());
  command->declare(options);
  ASSERT_TRUE(options.parse({"--markdown"}));
  testing::internal::CaptureStdout();
  EXPECT_EQ(command->run(), 0);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStdout(),
                       "| `tile_rows` | `--tile-rows` | 4, 8, 16 | `8` | yes | the same | Rows of "
                       "a tile of generated code |\n"));
}

}  // namespace
}  // namespace pyc
