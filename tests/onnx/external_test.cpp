// Data outside of the model file lies in the model's folder, under one name, and nowhere else.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "onnx/run_model.h"
#include "support/temp_folder.h"

namespace pyc::onnx::test {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

class OnnxExternal : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(temp_.file("model/sub"));
    write("model/w.bin", "skip" + weights());
    write("model/sub/w.bin", weights());
    write("outside.bin", weights());
  }
  static Bytes weights() { return raw_of(std::vector<float>{1, 2, 3, 4, 5, 6}); }
  void write(const std::string& name, const Bytes& content) const {
    std::ofstream(temp_.file(name), std::ios::binary) << content;
  }
  Result<std::vector<DynValue>> run_with(const std::vector<Bytes>& initializers) const {
    Graph g = small_graph();
    g.initializers.erase(g.initializers.begin());
    g.initializers.insert(g.initializers.end(), initializers.begin(), initializers.end());
    write("model/m.onnx", model(g));
    PYC_ASSIGN(const Imported imported, import_file(temp_.file("model/m.onnx")));
    driver::CompileOptions options;
    options.device = "reference";
    options.threads = 1;
    PYC_ASSIGN(const auto made, session::Session::create(imported.graph, options));
    const std::vector<DynValue> x{f32({2, 3}, {1, 1, 1, 0, 0, 2})};
    return made->run(x);
  }
  Result<std::vector<DynValue>> run_at(const Entries& entries) const {
    return run_with({external("w", kF32, {3, 2}, entries)});
  }
  void expect_outside(const std::string& location, const std::string& why) const {
    const auto out = run_at({{"location", location}});
    expect_refused(out, Code::kInvalidArgument, why);
    expect_refused(out, Code::kInvalidArgument, "tensor 'w'");
  }

  TempFolder temp_;
};

TEST_F(OnnxExternal, GoodRanges) {
  for (const Entries& entries :
       {Entries{{"location", "w.bin"}, {"offset", "4"}, {"length", "24"}},
        Entries{{"location", "w.bin"}, {"offset", "4"}}, Entries{{"location", "sub/w.bin"}},
        Entries{{"location", "./sub/./w.bin"}, {"checksum", "unknown"}}}) {
    const auto out = run_at(entries);
    ASSERT_TRUE(out.ok()) << out.status().to_string();
    EXPECT_EQ(numbers_of(out), (std::vector<double>{8, 13, 9, 13}));
  }
}

TEST_F(OnnxExternal, WrongRanges) {
  const auto refused = [&](const std::string& offset, const std::string& length, Code code) {
    expect_refused(run_at({{"location", "w.bin"}, {"offset", offset}, {"length", length}}), code,
                   "tensor 'w'");
  };
  refused("8", "24", Code::kSizeMismatch);
  refused("4", "20", Code::kSizeMismatch);
  refused("9223372036854775807", "24", Code::kSizeMismatch);
  refused("-4", "24", Code::kParseError);
  refused("four", "24", Code::kParseError);
  refused("99999999999999999999", "24", Code::kParseError);
}

TEST_F(OnnxExternal, RangesMayBeSharedButNotOverlap) {
  const auto at = [](const std::string& name, const std::string& offset) {
    return external(name, kF32, {3, 2}, {{"location", "w.bin"}, {"offset", offset}});
  };
  write("model/w.bin", "skip" + weights() + weights());
  EXPECT_TRUE(run_with({at("w", "4"), at("same", "4")}).ok());
  EXPECT_TRUE(run_with({at("w", "4"), at("next", "28")}).ok());
  expect_refused(run_with({at("w", "4"), at("part", "8")}), Code::kInvalidArgument, "'part'");
  expect_refused(run_with({at("w", "8"), at("part", "4")}), Code::kInvalidArgument, "overlap");
  const Bytes dotted = external("part", kF32, {3, 2}, {{"location", "./w.bin"}, {"offset", "8"}});
  expect_refused(run_with({at("w", "4"), dotted}), Code::kInvalidArgument, "overlap");
}

TEST_F(OnnxExternal, PathsThatLeaveTheFolder) {
  expect_outside("../outside.bin", "climbs out");
  expect_outside("sub/../../outside.bin", "climbs out");
  expect_outside("sub/../w.bin", "climbs out");
  expect_outside(temp_.file("outside.bin"), "absolute");
  expect_outside("", "is empty");
  expect_outside("sub//w.bin", "empty part");
  expect_outside(std::string("w.bin\0x", 7), "zero byte");
  expect_refused(run_at({}), Code::kInvalidArgument, "is empty");
}

TEST_F(OnnxExternal, Links) {
  std::filesystem::create_symlink(temp_.file("outside.bin"), temp_.file("model/soft.bin"));
  std::filesystem::create_symlink("w.bin", temp_.file("model/inside.bin"));
  std::filesystem::create_directory_symlink(temp_.path(), temp_.file("model/up"));
  std::filesystem::create_hard_link(temp_.file("outside.bin"), temp_.file("model/hard.bin"));
  expect_outside("soft.bin", "link");
  expect_outside("inside.bin", "link");
  expect_outside("up/outside.bin", "link");
  expect_outside("hard.bin", "second name");
}

TEST_F(OnnxExternal, WhatIsNoFile) {
  ASSERT_EQ(mkfifo(temp_.file("model/pipe").c_str(), 0600), 0);
  expect_refused(run_at({{"location", "pipe"}}), Code::kIoError, "tensor 'w'");
  expect_refused(run_at({{"location", "sub"}}), Code::kIoError, "tensor 'w'");
  expect_refused(run_at({{"location", "."}}), Code::kIoError, "tensor 'w'");
  expect_refused(run_at({{"location", "gone.bin"}}), Code::kNotFound, "tensor 'w'");
  expect_refused(run_at({{"location", "w.bin/x"}}), Code::kNotFound, "tensor 'w'");
  expect_refused(import_file(temp_.file("model/pipe")), Code::kIoError, "pipe");
}

TEST_F(OnnxExternal, ModelsFromMemoryHaveNoFolder) {
  Graph g = small_graph();
  g.initializers[0] = external("w", kF32, {3, 2}, {{"location", "w.bin"}});
  expect_read_refused(model(g), Code::kUnsupported, "tensor 'w'");
}

}  // namespace
}  // namespace pyc::onnx::test
