#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/temp_folder.h"

namespace pyc {
namespace {

constexpr uint64_t kPlenty = 1 << 30;

std::string content_of(const std::string& path) {
  Result<std::string> text = read_file(path, kPlenty);
  EXPECT_TRUE(text.ok()) << text.status().to_string();
  return text.ok() ? *text : "";
}

TEST(Files, WriteThenReadAnyBytes) {
  const TempFolder folder;
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(i % 257);
  for (const std::string& content :
       {std::string(), std::string("x"), std::string(4096, 'y'), bytes}) {
    ASSERT_TRUE(write_file_atomic(folder.file("f"), content).ok());
    EXPECT_EQ(content_of(folder.file("f")), content);
  }
  EXPECT_EQ(folder.entries(), 1) << "no temporary file stays behind";
}

TEST(Files, RelativePathWithoutFolder) {
  const TempFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_TRUE(write_file_atomic("plain", "text").ok());
  EXPECT_EQ(content_of("plain"), "text");
  std::filesystem::current_path(before);
}

TEST(Files, LongestNameCanBeWritten) {
  const TempFolder folder;
  const std::string path = folder.file(std::string(255, 'n'));
  ASSERT_TRUE(write_file_atomic(path, "text").ok());
  EXPECT_EQ(content_of(path), "text");
}

TEST(Files, NewFilesFollowTheUmask) {
  const TempFolder folder;
  const mode_t before = umask(027);
  EXPECT_TRUE(write_file_atomic(folder.file("f"), "text").ok());
  umask(before);
  struct stat info = {};
  ASSERT_EQ(stat(folder.file("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST(Files, SizeLimit) {
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder.file("f"), "12345").ok());
  EXPECT_TRUE(read_file(folder.file("f"), 5).ok());
  const Result<std::string> refused = read_file(folder.file("f"), 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_NE(refused.status().message().find(folder.file("f")), std::string::npos);
  EXPECT_NE(refused.status().message().find("4 bytes"), std::string::npos);
}

TEST(Files, FilesWithoutAStatedSizeAreReadToTheEnd) {
  EXPECT_FALSE(content_of("/proc/self/status").empty());
  const Result<std::string> refused = read_file("/proc/self/status", 10);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
}

TEST(Files, MissingFileIsNamed) {
  const TempFolder folder;
  const Result<std::string> missing = read_file(folder.file("nothing"), kPlenty);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_EQ(missing.status().message(),
            "cannot open '" + folder.file("nothing") + "': No such file or directory");
}

TEST(Files, FolderCannotBeReadOrReplaced) {
  const TempFolder folder;
  const Result<std::string> text = read_file(folder.path(), kPlenty);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), Code::kIoError);
  ASSERT_EQ(mkdir(folder.file("d").c_str(), 0777), 0);
  const Status status = write_file_atomic(folder.file("d"), "text");
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_NE(status.message().find(folder.file("d")), std::string::npos);
  EXPECT_EQ(folder.entries(), 1) << "the temporary file is removed";
}

TEST(Files, MissingFolderIsNamed) {
  const TempFolder folder;
  const Status status = write_file_atomic(folder.file("no/such/file"), "text");
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("no/such/file"), std::string::npos);
  EXPECT_NE(status.message().find("No such file"), std::string::npos);
}

TEST(Files, LinkIsReplacedNotFollowed) {
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder.file("target"), "old").ok());
  ASSERT_EQ(symlink(folder.file("target").c_str(), folder.file("link").c_str()), 0);
  ASSERT_TRUE(write_file_atomic(folder.file("link"), "new").ok());
  EXPECT_EQ(content_of(folder.file("target")), "old");
  EXPECT_EQ(content_of(folder.file("link")), "new");
}

TEST(Files, ReadersSeeOneOfTheWholeFiles) {
  const TempFolder folder;
  const std::string path = folder.file("shared");
  const std::string versions[] = {std::string(20'000, 'a'), std::string(30'000, 'b')};
  ASSERT_TRUE(write_file_atomic(path, versions[0]).ok());
  std::atomic<int> wrong{0};
  const auto write = [&](const std::string& content) {
    for (int i = 0; i < 20; ++i) {
      if (!write_file_atomic(path, content).ok()) ++wrong;
    }
  };
  const auto read = [&] {
    for (int i = 0; i < 100; ++i) {
      const std::string content = content_of(path);
      if (content != versions[0] && content != versions[1]) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(write, versions[0]);
  threads.emplace_back(write, versions[1]);
  threads.emplace_back(read);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(folder.entries(), 1);
}

}  // namespace
}  // namespace pyc
