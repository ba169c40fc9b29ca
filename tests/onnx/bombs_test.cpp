// Small files that ask for much: memory of reading and compiling stays under 4 times the file and
// 64 MiB, and neither takes long. Each runs in a child, whose peak is measured.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

#include "base/sanitizers.h"
#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = kKiB * kKiB;
constexpr size_t kShown = 512;     // bytes of a message
constexpr unsigned kSeconds = 60;  // far more than any of them takes; a hang ends here

// A line of /proc/self/status in bytes.
int64_t own_memory(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ":")) return std::stoll(line.substr(what.size() + 1)) * kKiB;
  }
  return -1;
}

driver::CompileOptions options_for(const std::string& device) {
  driver::CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.cache = false;
  options.loop_limit = 1000;
  return options;
}

struct Measured {
  bool ended = false;  // by itself, without a crash
  int64_t bytes = 0;   // peak beyond what was there before
  std::string message = {};
};

// Does the work in a child; the parent's libraries are loaded by then.
Measured measure(const std::function<Status()>& work) {
  int channel[2];
  if (pipe(channel) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    const int64_t before = own_memory("VmRSS");
    const std::string message = work().to_string();
    std::string text = fmt::format("{} {}", own_memory("VmHWM") - before, message);
    text.resize(std::min(text.size(), kShown));
    const bool written = write(channel[1], text.data(), text.size()) > 0;
    _exit(written ? 0 : 1);
  }
  close(channel[1]);
  std::string text(kShown, '\0');
  const ssize_t got = ::read(channel[0], text.data(), text.size());
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Measured out;
  out.ended = WIFEXITED(status) && WEXITSTATUS(status) == 0 && got > 0;
  if (!out.ended) return out;
  text.resize(static_cast<size_t>(got));
  out.bytes = std::stoll(text);
  out.message = text.substr(text.find(' ') + 1);
  return out;
}

Status compile(const Bytes& bytes, const std::string& device) {
  PYC_ASSIGN(const Imported imported, read(bytes));
  return session::Session::create(imported.graph, options_for(device)).status();
}

Bytes i64(const std::string& name, int64_t v) {
  return raw_tensor(name, kI64, {}, raw_of(Ints{v}));
}

// y = nodes(x), x f32[1].
Bytes of_nodes(std::vector<Bytes> nodes, std::vector<Bytes> initializers) {
  return model({.inputs = {value("x", kF32, {1})},
                .outputs = {unshaped("y", kF32)},
                .initializers = std::move(initializers),
                .nodes = std::move(nodes)});
}

Bytes constant_of_shape() {
  return of_nodes({node("ConstantOfShape", {"n"}, {"big"}), node("Exp", {"big"}, {"e"}),
                   node("Add", {"e", "x"}, {"y"})},
                  {ints("n", {int64_t{1} << 32})});
}

Bytes expand_chain() {
  return of_nodes(
      {node("Expand", {"one", "n"}, {"a"}), node("Expand", {"a", "m"}, {"b"}),
       node("Sin", {"b"}, {"c"}), node("Add", {"c", "x"}, {"y"})},
      {floats("one", {1, 1}, {1}), ints("n", {1 << 16, 1}), ints("m", {1 << 16, 1 << 15})});
}

Bytes tile_chain() {
  std::vector<Bytes> nodes;
  for (int i = 0; i < 8; ++i) {
    nodes.push_back(node("Tile", {i == 0 ? "one" : "t" + std::to_string(i - 1), "n"},
                         {"t" + std::to_string(i)}));
  }
  nodes.push_back(node("Add", {"t7", "x"}, {"y"}));
  return of_nodes(nodes, {floats("one", {1}, {1}), ints("n", {16})});
}

Bytes range_to_shape() {
  return of_nodes(
      {node("Range", {"from", "to", "step"}, {"r"}),
       node("Cast", {"r"}, {"f"}, {attr_int("to", kF32)}), node("Add", {"f", "x"}, {"y"})},
      {i64("from", 0), i64("to", int64_t{1} << 33), i64("step", 1)});
}

// A shape that is computed from a constant of a billion elements.
Bytes shape_of_a_sum() {
  return of_nodes(
      {node("ConstantOfShape", {"n"}, {"big"},
            {attr_tensor("value", raw_tensor("", kI64, {1}, raw_of(Ints{1})))}),
       node("ReduceSum", {"big"}, {"sum"}, {attr_int("keepdims", 0)}),
       node("Unsqueeze", {"sum", "axis"}, {"shape"}), node("Expand", {"x", "shape"}, {"y"})},
      {ints("n", {int64_t{1} << 30}), ints("axis", {0})});
}

// 40 doublings, each a value.
Bytes doubling_concat() {
  std::vector<Bytes> nodes;
  for (int i = 0; i < 34; ++i) {
    const std::string from = i == 0 ? "one" : "c" + std::to_string(i - 1);
    nodes.push_back(node("Concat", {from, from}, {"c" + std::to_string(i)}, {attr_int("axis", 0)}));
  }
  nodes.push_back(node("Add", {"c33", "x"}, {"y"}));
  return of_nodes(nodes, {floats("one", {1}, {1})});
}

Bytes one_hot() {
  return of_nodes(
      {node("OneHot", {"i", "depth", "v"}, {"o"}), node("Add", {"o", "x"}, {"y"})},
      {ints("i", {1, 2, 3, 4}), i64("depth", int64_t{1} << 31), floats("v", {2}, {0, 1})});
}

Bytes pad() {
  return of_nodes({node("Pad", {"one", "pads"}, {"p"}), node("Add", {"p", "x"}, {"y"})},
                  {floats("one", {1}, {1}), ints("pads", {1 << 30, 1 << 30})});
}

Bytes resize() {
  return of_nodes({node("Resize", {"one", "", "scales"}, {"r"}), node("Mul", {"r", "x"}, {"y"})},
                  {floats("one", {1, 1, 1, 1}, {1}), floats("scales", {4}, {1, 1, 60000, 60000})});
}

Bytes loop(int64_t trips, bool inner) {
  Bytes body =
      graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), value("s", kF32, {1})},
             .outputs = {unshaped("go", kBool), unshaped("t", kF32)},
             .nodes = {node("Neg", {"s"}, {"t"})}});
  if (inner) {
    body = graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), value("s", kF32, {1})},
                  .outputs = {unshaped("go", kBool), unshaped("t", kF32)},
                  .nodes = {node("Loop", {"n", "", "s"}, {"t"}, {attr_graph("body", body)})}});
  }
  return of_nodes({node("Loop", {"n", "", "x"}, {"y"}, {attr_graph("body", body)}, "long")},
                  {i64("n", trips)});
}

// Much for each byte of the file.
Bytes many_nodes(const std::string& op) {
  Graph g{.inputs = {value("x", kF32, {1})}, .outputs = {unshaped("y", kF32)}};
  const Bytes small = texts(1, {"x"}) + text(4, op);
  g.nodes.assign(200'000, small);
  g.nodes.push_back(node("Neg", {"x"}, {"y"}));
  return model(g);
}

struct Bomb {
  const char* name;
  Bytes bytes;
};

std::vector<Bomb> bombs() {
  return {{"ConstantOfShape", constant_of_shape()},
          {"Expand", expand_chain()},
          {"Tile", tile_chain()},
          {"Range", range_to_shape()},
          {"a shape from a sum", shape_of_a_sum()},
          {"Concat", doubling_concat()},
          {"OneHot", one_hot()},
          {"Pad", pad()},
          {"Resize", resize()},
          {"Loop", loop(INT64_MAX, false)},
          {"Loop in Loop", loop(int64_t{1} << 40, true)},
          {"short loops", loop(32, true)},
          {"many nodes", many_nodes("Abs")},
          {"many unknown nodes", many_nodes("Bogus")}};
}

void expect_small(const std::string& device) {
  if (kSanitized) GTEST_SKIP() << "memory of sanitizers counts too";
  // Loads and warms what every compile shares.
  const auto small = read(model(small_graph()));
  ASSERT_TRUE(session::Session::create(small->graph, options_for(device)).ok());
  for (const Bomb& bomb : bombs()) {
    const Measured found = measure([&] { return compile(bomb.bytes, device); });
    EXPECT_TRUE(found.ended) << bomb.name << " crashed or hung";
    const auto allowed = static_cast<int64_t>(4 * bomb.bytes.size()) + 64 * kMiB;
    EXPECT_LE(found.bytes, allowed) << bomb.name << ": " << found.message;
    std::printf("%-20s file %8zu B, peak %6.1f MiB: %.80s\n", bomb.name, bomb.bytes.size(),
                static_cast<double>(found.bytes) / kMiB, found.message.c_str());
  }
}

TEST(OnnxBombs, TheMeasureSeesMemory) {
  const Measured found = measure([]() -> Status {
    const std::vector<char> touched(100 * kMiB, 'x');
    return {touched[touched.size() / 2] == 'x' ? Code::kBudgetExceeded : Code::kOk, "touched"};
  });
  ASSERT_TRUE(found.ended);
  // The kernel counts resident pages per core and adds them up in batches: some may not be in yet.
  EXPECT_GE(found.bytes, 98 * kMiB);
  EXPECT_EQ(found.message, "budget_exceeded: touched");
}

TEST(OnnxBombs, SmallOnTheReferenceDevice) { expect_small("reference"); }
TEST(OnnxBombs, SmallOnTheCpu) { expect_small("cpu"); }

// Forty doublings of a string: what only a run can tell ends at the budget.
TEST(OnnxBombs, HostValuesEndAtTheBudget) {
  std::vector<Bytes> nodes = {node("Cast", {"x"}, {"s0"}, {attr_int("to", 8)})};
  for (int i = 1; i <= 40; ++i) {
    const std::string from = "s" + std::to_string(i - 1);
    nodes.push_back(node("StringConcat", {from, from}, {"s" + std::to_string(i)}, {}, "double"));
  }
  const Bytes bytes = model(
      {.inputs = {value("x", kF32, {1})}, .outputs = {unshaped("s40", 8)}, .nodes = nodes}, 20);
  const auto imported = read(bytes);
  ASSERT_TRUE(imported.ok()) << imported.status().to_string();
  driver::CompileOptions options = options_for("reference");
  options.memory_budget = kMiB;
  const auto made = session::Session::create(imported->graph, options);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  expect_refused((*made)->run(std::vector<DynValue>{f32({1}, {1})}), Code::kBudgetExceeded,
                 "the memory budget is 1048576");
}

TEST(OnnxBombs, EndlessLoopsEndAtTheLimit) {
  for (const Bytes& bytes : {loop(INT64_MAX, false), loop(int64_t{1} << 40, true)}) {
    const auto imported = read(bytes);
    const auto made = session::Session::create(imported->graph, options_for("reference"));
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    expect_refused((*made)->run(std::vector<DynValue>{f32({1}, {1})}), Code::kBudgetExceeded,
                   "more than 1000 iterations");
  }
}

}  // namespace
}  // namespace pyc::onnx::test
