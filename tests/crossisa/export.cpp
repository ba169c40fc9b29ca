// Writes every model of tests/models, compiled for another machine, as something a small runner can
// link: `export TARGET DIR` makes DIR/<model>.inc (tables), DIR/<model>.data (inputs, parameters)
// and DIR/<model>.o<i> (kernels). `check DIR` compares the outputs that the runner left behind with
// the golden digests.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "driver/compile.h"
#include "runtime/host_engine.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(PYC_SOURCE_DIR) / "tests" / "models";
const fs::path kGolden = fs::path(PYC_SOURCE_DIR) / "tests" / "golden" / "digests.txt";
constexpr size_t kAlignment = 64;

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "crossisa: " << message << "\n";
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) fail(result.status().to_string());
  return std::move(result).value();
}

void write(const fs::path& path, std::string_view bytes) {
  const Status status = write_file_atomic(path.string(), bytes);
  if (!status.ok()) fail(status.to_string());
}

void append(std::string& blob, const void* data, int64_t bytes) {
  blob.append(static_cast<const char*>(data), static_cast<size_t>(bytes));
  blob.resize((blob.size() + kAlignment - 1) / kAlignment * kAlignment);
}

std::string size_table(const char* name, const std::vector<int64_t>& sizes) {
  std::string text = fmt::format("static const int64_t {}[] = {{", name);
  for (int64_t s : sizes) text += fmt::format("{}, ", s);
  return text + "-1};\n";
}

void export_model(const std::string& name, const std::string& target, const fs::path& dir) {
  const std::string text = must(read_file((kModels / (name + ".ir")).string(), 1 << 24));
  driver::CompileOptions options;
  options.determinism = driver::Determinism::kStrict;
  options.threads = 3;
  options.target = target;
  const auto program =
      must(driver::compile_program(test::verified(must(driver::parse_model(text))), options))
          .program;

  std::string blob;
  std::vector<int64_t> inputs;
  std::vector<int64_t> parameters;
  std::vector<int64_t> outputs;
  for (const runtime::IoSpec& spec : program->inputs) {
    const auto data = tooling::seeded_input(spec, inputs.size());
    append(blob, data->bytes.data(), spec.bytes);
    inputs.push_back(spec.bytes);
  }
  for (const runtime::Parameter& p : program->parameters) {
    append(blob, p.data, p.bytes);
    parameters.push_back(p.bytes);
  }
  std::string names;
  for (const runtime::IoSpec& spec : program->outputs) {
    outputs.push_back(spec.bytes);
    names += fmt::format("{} {}\n", spec.name, spec.bytes);
  }
  write(dir / (name + ".data"), blob);
  write(dir / (name + ".outputs"), names);

  std::map<const std::string*, size_t> objects;
  std::set<std::string> symbols;
  std::string refs;
  std::string steps;
  for (size_t i = 0; i < program->steps.size(); ++i) {
    const runtime::Kernel& step = program->steps[i].kernel();
    objects.try_emplace(step.object.get(), objects.size());
    symbols.insert(step.symbol);
    refs += fmt::format("static const struct ref refs{}[] = {{", i);
    for (const runtime::BufferRef& r : step.buffers) {
      refs += fmt::format("{{{}, {}, {}}}, ", static_cast<int>(r.where), r.index, r.offset);
    }
    refs += "{-1, 0, 0}};\n";
    steps += fmt::format("  {{{}, refs{}, {}, {}}},\n", step.symbol, i, step.buffers.size(),
                         must(runtime::host_points(step.launch)));
  }
  for (const auto& [object, index] : objects) {
    write(dir / fmt::format("{}.o{}", name, index), *object);
  }
  std::string out;
  for (const std::string& s : symbols) {
    out += fmt::format("extern \"C\" void {}(const pyc_kernel_args*, int64_t, int64_t);\n", s);
  }
  out += refs + "static const struct step steps[] = {\n" + steps + "};\n";
  out += size_table("input_bytes", inputs) + size_table("parameter_bytes", parameters) +
         size_table("output_bytes", outputs);
  out += fmt::format("enum : int64_t {{ kArenaBytes = {}, kScratchBytes = {} }};\n",
                     program->arena_bytes, program->scratch_bytes);
  write(dir / (name + ".inc"), out);
}

std::vector<std::string> model_names() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (entry.path().extension() == ".ir") names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

void check(const fs::path& dir) {
  std::map<std::string, std::string> golden;
  std::ifstream in(kGolden);
  std::string model;
  std::string output;
  std::string digest;
  while (in >> model >> output >> digest) golden[model + " " + output] = digest;
  int compared = 0;
  for (const std::string& name : model_names()) {
    const std::string bytes = must(read_file((dir / (name + ".result")).string(), 1 << 30));
    std::ifstream outputs(dir / (name + ".outputs"));
    size_t at = 0;
    size_t size = 0;
    while (outputs >> output >> size) {
      if (at + size > bytes.size()) fail(name + ": the result is too short");
      const std::string found = hash128(std::as_bytes(std::span(bytes).subspan(at, size))).hex();
      if (golden[name + " " + output] != found) {
        fail(name + " " + output + ": expected " + golden[name + " " + output] + ", found " +
             found);
      }
      at += size;
      ++compared;
    }
  }
  if (compared == 0) fail("nothing to compare");
  std::cout << compared << " outputs equal the golden digests\n";
}

}  // namespace
}  // namespace pyc

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 3 && args[0] == "export") {
    for (const std::string& name : pyc::model_names()) {
      pyc::export_model(name, args[1], args[2]);
    }
    return 0;
  }
  if (args.size() == 2 && args[0] == "check") {
    pyc::check(args[1]);
    return 0;
  }
  pyc::fail("usage: export TARGET DIR | check DIR");
}
