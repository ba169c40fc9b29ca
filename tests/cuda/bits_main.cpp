// pyc_cuda_bits: op cases through generated CUDA kernels, compared bit by bit with the interpreter.
// Part `bits` of scripts/gpu-verify; with the fake driver and compiler the same without a GPU.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "cuda/device_runs.h"
#include "cuda/shape_runs.h"

namespace {

using namespace pyc;
using namespace pyc::test;

struct Options {
  CaseChoice cases{.folder = PYC_SOURCE_DIR "/tests/ops"};
  std::string driver;
  std::string nvrtc;
  bool shapes = false;       // graphs of shape_runs.h in place of op cases
  std::string compile_only;  // an architecture: no driver is needed
  std::string print;         // the text of the units to this file
  cuda::KernelForm form = cuda::KernelForm::kAny;
  std::string form_name = "any form";
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  size_t of_unit = 64;
};

constexpr const char* kUsage =
    "usage: pyc_cuda_bits [--driver LIB] [--nvrtc LIB] [--cases DIR] [--only OP] [--per-op N]\n"
    "  [--rest N] [--rest-from N] [--shapes] [--serial | --team] [--threads N] [--unit N] "
    "[--compile-only "
    "ARCH]\n"
    "  [--print FILE]     N = 0 for --per-op: all cases\n";

bool read_options(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--shapes") {
      o.shapes = true;
      continue;
    }
    if (name == "--serial" || name == "--team") {
      o.form = name == "--team" ? cuda::KernelForm::kTeam : cuda::KernelForm::kSerial;
      o.form_name = name.substr(2) + " form";
      continue;
    }
    if (++i >= argc) return false;
    const std::string value = argv[i];
    if (name == "--driver") {
      o.driver = value;
    } else if (name == "--nvrtc") {
      o.nvrtc = value;
    } else if (name == "--cases") {
      o.cases.folder = value;
    } else if (name == "--only") {
      o.cases.only = value;
    } else if (name == "--per-op") {
      o.cases.per_op = std::atoi(value.c_str());
    } else if (name == "--rest") {
      o.cases.rest = std::atoi(value.c_str());
    } else if (name == "--rest-from") {
      o.cases.rest_from = std::atoi(value.c_str());
    } else if (name == "--threads") {
      o.threads = std::atoi(value.c_str());
    } else if (name == "--unit") {
      o.of_unit = static_cast<size_t>(std::atoi(value.c_str()));
    } else if (name == "--compile-only") {
      o.compile_only = value;
    } else if (name == "--print") {
      o.print = value;
    } else {
      return false;
    }
  }
  return o.threads > 0 && o.of_unit > 0;
}

double seconds() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point begin = Clock::now();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Status run_cases(const Options& o, const std::vector<CaseRun>& runs, const KernelSet& kernels,
                 const cuda::DevicePtr& device, int* wrong) {
  PYC_ASSIGN(CaseRunner runner, CaseRunner::make(device, kernels));
  int equal = 0;
  for (const CaseRun& run : runs) {
    auto found = runner.run(run);
    if (!found.ok()) return std::move(found).status().with_context(run.name);
    if (found->empty()) {
      ++equal;
      continue;
    }
    ++*wrong;
    std::string forms;
    for (const lower::Group& g : run.lowered.groups) {
      const cuda::KernelText& first = kernels.texts(g.kernel)[0];
      forms += " [" + first.symbol + " " + first.form + "]";
    }
    std::printf("WRONG %s: %s%s\n", run.name.c_str(), found->c_str(), forms.c_str());
  }
  std::printf("==> bits, %s: %d cases equal, %d wrong (%.1f s)\n", o.form_name.c_str(), equal,
              *wrong, seconds());
  return {};
}

Status verify_bits(const Options& o, int* wrong) {
  PYC_ASSIGN(const auto runs, o.shapes ? shape_runs() : interpret_cases(o.cases));
  PYC_ASSIGN(KernelSet kernels, KernelSet::make(runs, o.form, o.of_unit));
  std::printf("%zu cases, %zu kernels in %zu units (%.1f s)\n", runs.size(), kernels.size(),
              kernels.unit_count(), seconds());
  for (const auto& [name, count] : kernels.count_by_form()) {
    std::printf("  %-12s %5d\n", name.c_str(), count);
  }
  if (!o.print.empty()) {
    std::FILE* file = std::fopen(o.print.c_str(), "w");
    if (file == nullptr) return {Code::kIoError, "cannot write " + o.print};
    for (size_t i = 0; i < kernels.unit_count(); ++i) {
      std::fputs(kernels.unit_source(i).c_str(), file);
    }
    std::fclose(file);
  }
  PYC_ASSIGN(const auto nvrtc, cuda::Nvrtc::load(o.nvrtc));
  cuda::DevicePtr device;
  if (o.compile_only.empty()) {
    PYC_ASSIGN(const auto driver, cuda::Driver::load(o.driver));
    PYC_ASSIGN(device, cuda::Device::open(driver));
    std::printf("device %s, %s, driver %d, NVRTC %s\n", device->name().c_str(),
                device->architecture().c_str(), driver->version(), nvrtc->version().c_str());
  }
  const double before = seconds();
  PYC_TRY(kernels.compile(*nvrtc, device ? device->architecture() : o.compile_only, o.threads));
  size_t bytes = 0;
  for (const std::string& image : kernels.images()) bytes += image.size();
  std::printf("==> compiled %zu kernels, %zu bytes, in %.1f s on %d threads\n", kernels.size(),
              bytes, seconds() - before, o.threads);
  return device ? run_cases(o, runs, kernels, device, wrong) : Status();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  seconds();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (!read_options(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  int wrong = 0;
  const Status status = verify_bits(options, &wrong);
  if (!status.ok()) std::printf("==> bits FAILED: %s\n", status.to_string().c_str());
  return status.ok() && wrong == 0 ? 0 : 1;
}
