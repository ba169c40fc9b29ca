// Names that a file chose must not reach a terminal as they are, whatever prints them.

#include <cstdlib>

#include "base/escape.h"
#include "cli/json_output.h"
#include "cli/program.h"
#include "onnx/model_writer.h"

namespace pyc::test {
namespace {

using namespace onnx::test;  // NOLINT: the writer's short names

// An escape sequence that clears a screen, a line end and a forged line, a byte that is no UTF-8,
// the one-character CSI, DEL.
const std::string kHostile = "\x1b[2J\nerror: all is well\xff\xc2\x9b\x7f";
const std::string kShown = R"(\x1b[2J\nerror: all is well\xff\xc2\x9b\x7f)";

std::string named_model(const TempFolder& folder, const std::string& op) {
  const std::string x = "x" + kHostile;
  const std::string y = "y" + kHostile;
  std::string path = folder.file("model.onnx");
  std::ofstream(path, std::ios::binary)
      << model({.inputs = {value(x, kF32, {2, 3})},
                .outputs = {value(y, kF32, {2, 3})},
                .nodes = {node("Exp", {x}, {"t" + kHostile}, {}, "a" + kHostile),
                          node(op, {"t" + kHostile}, {y}, {}, "b" + kHostile)}});
  return path;
}

void expect_printable(const Outcome& o, const std::string& arguments) {
  std::string_view rest = o.text;
  for (; !rest.empty(); rest.remove_prefix(std::max<size_t>(utf8_length(rest), 1))) {
    if (rest[0] == '\n') continue;
    ASSERT_FALSE(is_unprintable(rest)) << arguments << "\n" << printable(o.text);
  }
  EXPECT_EQ(o.text.find("\nerror: all is well"), std::string::npos) << arguments << o.text;
}

TEST(Names, OfAFileAreEscapedInEveryTextOutput) {
  const TempFolder folder;
  const std::string path = named_model(folder, "Relu");
  for (const std::string& arguments :
       {"run " + path + " --explain", "bench " + path + " --runs 2", "inspect " + path,
        "explain " + path, "compare " + path, "dump " + path + " --stage groups",
        "dump " + path + " --stage plan", "dump " + path + " --stage graph", "opt " + path,
        "run " + path + " --input nothing=x.npy", "run " + path + " --memory-budget 1",
        "report " + path + " --runs 0 -o " + folder.file("report.html"),
        "report " + path + " --runs 0 --json", "run " + path + " --json",
        "explain " + path + " --json", "inspect " + path + " --json"}) {
    const Outcome o = pyc(arguments);
    EXPECT_FALSE(o.text.empty()) << arguments;
    expect_printable(o, arguments);
  }
  EXPECT_TRUE(has(pyc("run " + path), "output  y" + kShown + ": f32[2,3]"))
      << pyc("run " + path).text;
}

TEST(Names, OfAFileAreEscapedInEveryMessage) {
  const TempFolder folder;
  const std::string path = named_model(folder, "Rel" + kHostile);
  for (const std::string& arguments : {"run " + path, "inspect " + path, "bench " + path,
                                       "run " + path + " --json", "inspect " + path + " --json"}) {
    expect_printable(pyc(arguments), arguments);
  }
  EXPECT_TRUE(has(pyc("run " + path), kShown)) << pyc("run " + path).text;
}

}  // namespace
}  // namespace pyc::test
