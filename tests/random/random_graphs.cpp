// pyc_random_graphs: what scripts/random_graphs and scripts/differential.py run.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "export/onnx/export.h"
#include "ops/registry.h"
#include "support/compare.h"

namespace pyc::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    "usage: pyc_random_graphs compare FIRST COUNT [FOLDER]  reference against cpu at 4, 8, 16 and "
    "own lanes\n"
    "       pyc_random_graphs pairs                         every op with every dtype it takes\n"
    "       pyc_random_graphs show SEED                     a graph as text\n"
    "       pyc_random_graphs export FIRST COUNT FOLDER PAIRS NODES\n"
    "                       ONNX models of tame graphs of at most NODES nodes over the pairs of a "
    "file, their\n"
    "                       inputs and the reference's outputs\n";

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

// Two of the widths and thread counts, taking turns: what costs is the code generator.
std::vector<driver::CompileOptions> settings_of(uint64_t seed) {
  constexpr int kLanes[] = {4, 8, 16, 0};
  constexpr int kThreads[] = {1, 2, 7};
  std::vector<driver::CompileOptions> settings;
  for (const uint64_t i : {seed, seed + 1 + seed / 4 % 3}) {
    settings.push_back(cpu_options(kLanes[i % 4], kThreads[i % 3]));
  }
  if (seed % 5 == 0) settings[0].kernels = {"f32_matmul"};
  return settings;
}

int compare(uint64_t first, uint64_t count, const std::string& folder) {
  uint64_t different = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const DrawnGraph drawn = draw_graph(seed);
    const std::string found = difference(drawn, settings_of(seed));
    if (found.empty()) continue;
    ++different;
    fmt::print("seed {}: {}\n", seed, found);
    if (!folder.empty())
      write(fs::path(folder) / fmt::format("{}.ir", seed), ir::print(drawn.graph));
  }
  fmt::print("graphs={} differences={}\n", count, different);
  return different == 0 ? 0 : 1;
}

int pairs() {
  for (const Pair& pair : all_pairs()) fmt::print("{} {}\n", pair.op->name, dtype_name(pair.dtype));
  return 0;
}

int show(uint64_t seed) {
  fmt::print("{}", ir::print(draw_graph(seed).graph));
  return 0;
}

std::vector<Pair> read_pairs(const std::string& path) {
  std::vector<Pair> out;
  std::ifstream file(path);
  for (std::string op, dtype; file >> op >> dtype;) {
    const ir::OpDef* def = ops::all_ops().find(op);
    const auto t = dtype_from_name(dtype);
    if (def == nullptr || !t) throw std::runtime_error("no such pair: " + op + " " + dtype);
    out.push_back({def, *t});
  }
  if (out.empty()) throw std::runtime_error("no pairs in " + path);
  return out;
}

std::string joined(const std::vector<std::vector<std::byte>>& tensors) {
  std::string out;
  for (const auto& t : tensors) out.append(reinterpret_cast<const char*>(t.data()), t.size());
  return out;
}

// SEED.onnx; SEED.in and SEED.out: the elements of all inputs and all outputs, one after the other;
// SEED.pairs: what it is made of. What ONNX cannot express is skipped; cpu must equal the
// reference.
int export_graphs(uint64_t first, uint64_t count, const fs::path& folder,
                  const DrawOptions& options) {
  uint64_t written = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const DrawnGraph drawn = draw_graph(seed, options);
    const auto bytes = onnx::export_model(drawn.graph);
    if (!bytes.ok()) {
      fmt::print("seed {}: {}\n", seed, bytes.status().message());
      continue;
    }
    const std::string found = difference(drawn, {cpu_options(0, 2)});
    if (!found.empty()) throw std::runtime_error(fmt::format("seed {}: {}", seed, found));
    const auto outputs = run_drawn(drawn, plain_reference());
    const std::string name = fmt::format("{}", seed);
    std::string pairs;
    for (const Pair& p : drawn.pairs) {
      pairs += fmt::format("{} {}\n", p.op->name, dtype_name(p.dtype));
    }
    write(folder / (name + ".in"), joined(drawn.inputs));
    write(folder / (name + ".out"), joined(*outputs));
    write(folder / (name + ".pairs"), pairs);
    write(folder / (name + ".ir"), ir::print(drawn.graph));
    write(folder / (name + ".onnx"), *bytes);
    ++written;
  }
  fmt::print("written={} of {}\n", written, count);
  return 0;
}

uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

int run(const std::vector<std::string>& args) {
  const std::string command = args.empty() ? "" : args[0];
  const auto at = [&](size_t i) { return number(args[i].c_str()); };
  if (command == "compare" && (args.size() == 3 || args.size() == 4)) {
    return compare(at(1), at(2), args.size() > 3 ? args[3] : "");
  }
  if (command == "pairs" && args.size() == 1) return pairs();
  if (command == "show" && args.size() == 2) return show(at(1));
  if (command == "export" && args.size() == 6) {
    return export_graphs(at(1), at(2), args[3],
                         {Values::kTame, read_pairs(args[4]), static_cast<int>(at(5))});
  }
  fmt::print(stderr, "{}", kUsage);
  return 2;
}

}  // namespace
}  // namespace pyc::test

int main(int argc, char** argv) {
  try {
    return pyc::test::run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
