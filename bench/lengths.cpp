// A model with one open dim run at many sizes of it: how often code was generated, what a size met
// for the first time took by stage, and what a size met before takes beyond its run. With
// --compare every some sizes the bits are those of a model that the reference device runs.
//
//   pyc_bench_lengths MODEL DIM FIRST LAST [--compare EVERY] [--again RUNS] [--quiet]

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model_file/load.h"
#include "session/session.h"

namespace {

using pyc::DynValue;

struct Arguments {
  std::string model;
  std::string dim;
  int64_t first = 1;
  int64_t last = 1;
  int64_t every = 0;
  int64_t again = 5;
  bool quiet = false;
};

// Small numbers that depend on their place alone.
DynValue filled(const pyc::open::OpenValue& input, const std::string& dim, int64_t size) {
  DynValue value;
  value.kind = DynValue::Kind::kTensor;
  value.dtype = *input.type.dtype;
  int64_t elements = 1;
  for (const auto& d : *input.type.shape) {
    value.shape.push_back(d.symbol == dim ? size : std::max<int64_t>(d.value, 1));
    elements *= value.shape.back();
  }
  std::vector<std::byte> bytes(static_cast<size_t>(elements * pyc::dtype_size(value.dtype)));
  if (value.dtype == pyc::DType::kF32) {
    for (int64_t i = 0; i < elements; ++i) {
      const float x = static_cast<float>((i * 7919 + 13) % 2003 - 1001) / 1001.0F;
      std::memcpy(bytes.data() + i * 4, &x, 4);
    }
  }
  value.bytes = std::move(bytes);
  return value;
}

// Of all threads: what other programs take from them does not count.
int64_t processor_ns() {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

bool same(const std::vector<DynValue>& a, const std::vector<DynValue>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.shape == y.shape && x.bytes == y.bytes;
  });
}

int fail(const pyc::Status& status) {
  fmt::print(stderr, "{}\n", status.to_string());
  return 1;
}

int measure(const Arguments& a) {
  auto model = pyc::model_file::load_model_file(a.model);
  if (!model.ok()) return fail(model.status());
  pyc::driver::CompileOptions options;
  auto made = pyc::model_file::make_session(*model, {}, options);
  if (!made.ok()) return fail(made.status());
  pyc::session::Session& session = **made;
  pyc::driver::CompileOptions plain;
  plain.device = "reference";
  auto reference = pyc::model_file::make_session(*model, {}, plain);
  if (!reference.ok()) return fail(reference.status());
  int64_t rounds = 0;
  int64_t different = 0;
  std::vector<int64_t> first_ns;
  std::vector<int64_t> processor;  // of a further size, without its run
  std::vector<int64_t> beyond_ns;
  for (int64_t size = a.first; size <= a.last; ++size) {
    std::vector<DynValue> inputs;
    for (const auto& input : session.inputs()) inputs.push_back(filled(input, a.dim, size));
    const pyc::session::SessionStats before = session.stats();
    const int64_t began = processor_ns();
    auto outputs = session.run(inputs);
    const int64_t first_used = processor_ns() - began;
    if (!outputs.ok()) return fail(outputs.status());
    const pyc::session::SessionStats after = session.stats();
    const int64_t generated = after.generated_kernels - before.generated_kernels;
    const int64_t compile_ns = after.compile_ns - before.compile_ns;
    rounds += generated > 0 ? 1 : 0;
    if (generated == 0) first_ns.push_back(compile_ns);
    // Again, several times: what is not the program's own run.
    int64_t least = INT64_MAX;
    int64_t least_used = INT64_MAX;
    for (int64_t i = 0; i < a.again; ++i) {
      const int64_t run_before = session.stats().run_ns;
      outputs = std::vector<DynValue>();  // the caller's to give back, not part of a run
      const int64_t used_before = processor_ns();
      const int64_t start = pyc::now_ns();
      outputs = session.run(inputs);
      const int64_t took = pyc::now_ns() - start;
      if (!outputs.ok()) return fail(outputs.status());
      least = std::min(least, took - (session.stats().run_ns - run_before));
      least_used = std::min(least_used, processor_ns() - used_before);
    }
    beyond_ns.push_back(least);
    if (generated == 0) processor.push_back(first_used - least_used);
    std::string compared;
    if (a.every > 0 && (size - a.first) % a.every == 0) {
      auto expected = (*reference)->run(inputs);
      if (!expected.ok()) return fail(expected.status());
      const bool equal = same(*outputs, *expected);
      different += equal ? 0 : 1;
      compared = equal ? ", bits equal" : ", BITS DIFFER";
    }
    if (!a.quiet || generated > 0 || !compared.empty()) {
      const auto ms = [&](int64_t pyc::runtime::CompileBreakdown::*part) {
        return static_cast<double>(after.compile.*part - before.compile.*part) * 1e-6;
      };
      using Part = pyc::runtime::CompileBreakdown;
      fmt::print(
          "{} = {}: {} generated, {:.2f} ms (passes {:.2f}, lower {:.2f}, select {:.2f}, plan "
          "{:.2f}, code {:.2f}, assemble {:.2f}){}\n",
          a.dim, size, generated, static_cast<double>(compile_ns) * 1e-6, ms(&Part::passes_ns),
          ms(&Part::lower_ns), ms(&Part::select_ns), ms(&Part::plan_ns), ms(&Part::code_ns),
          ms(&Part::assemble_ns), compared);
    }
  }
  // The median, and the least: what it takes where nothing else runs.
  const auto of = [](std::vector<int64_t>& ns, double unit) {
    std::sort(ns.begin(), ns.end());
    if (ns.empty()) return std::string("nothing");
    return fmt::format("{:.2f} (least {:.2f})", static_cast<double>(ns[ns.size() / 2]) * unit,
                       static_cast<double>(ns.front()) * unit);
  };
  fmt::print(
      "{} sizes, {} rounds of code generation; a further size {} ms, of processors {}; a size met "
      "before {} us beyond its run\n",
      a.last - a.first + 1, rounds, of(first_ns, 1e-6), of(processor, 1e-6), of(beyond_ns, 1e-3));
  return different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr,
               "usage: pyc_bench_lengths MODEL DIM FIRST LAST [--compare EVERY] [--again RUNS] "
               "[--quiet]\n");
    return 2;
  }
  Arguments a{argv[1], argv[2], std::stoll(argv[3]), std::stoll(argv[4])};
  for (int i = 5; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quiet") a.quiet = true;
    if (word == "--compare" && i + 1 < argc) a.every = std::stoll(argv[++i]);
    if (word == "--again" && i + 1 < argc) a.again = std::stoll(argv[++i]);
  }
  return measure(a);
}
