#include <gtest/gtest.h>

#include "base/files.h"
#include "support/temp_folder.h"

namespace pyc {
namespace {

TEST(ListFolder, GivesNamesInOrder) {
  const TempFolder folder;
  EXPECT_TRUE(list_folder(folder.path()).value().empty());
  for (const char* name : {"b", "a", ".hidden", "c"}) {
    ASSERT_TRUE(write_file_atomic(folder.file(name), "x").ok());
  }
  EXPECT_EQ(list_folder(folder.path()).value(),
            (std::vector<std::string>{".hidden", "a", "b", "c"}));
}

TEST(ListFolder, RefusesWhatIsNone) {
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder.file("f"), "x").ok());
  EXPECT_EQ(list_folder(folder.file("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(list_folder(folder.file("f")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace pyc
