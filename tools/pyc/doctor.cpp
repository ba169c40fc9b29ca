#include <fmt/format.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

constexpr std::string_view kCuda = "cuda";

struct Check {
  std::string what;
  bool ok = false;
  std::string detail;
};

// A matrix product, an epilogue and a reduction: one kernel of each kind.
std::string digest_on(const std::string& device) {
  ModelBuilder b("doctor");
  const Value x = b.input("x", PYC_DTYPE_F32, {5, 16});
  const Value w = b.random("w", PYC_DTYPE_F32, {16, 24}, 1, -0.5, 0.5);
  const Value bias = b.random("bias", PYC_DTYPE_F32, {24}, 2, -0.5, 0.5);
  b.output(b.softmax(b.relu(b.matmul(x, w) + bias), 1));
  CompileOptions options;
  options.set("device", device);
  options.set("determinism", "strict");
  options.set("cache", false);
  Model model = b.compile(options);
  return model(Tensor::random(PYC_DTYPE_F32, {5, 16}, 3)).front().digest();
}

// Devices that run must give the bits of the reference; the others must make a plan.
Check check_device(const pyc_device_info& device) {
  Check out{fmt::format("device {}", device.name), false, ""};
  try {
    if (device.runs == 0) {
      CompileOptions options;
      options.set("device", device.name);
      Graph::parse("graph @g(%x: f32[4]) -> (%y) {\n  %y = relu(%x)\n}\n").dump("plan", options);
      out.ok = true;
      out.detail = "makes plans; it runs nothing by design";
      return out;
    }
    const std::string digest = digest_on(device.name);
    const std::string expected = digest_on("reference");
    out.ok = digest == expected;
    out.detail = out.ok ? fmt::format("ran a kernel of each kind, digest {}", digest)
                        : fmt::format("digest {}, the reference has {}", digest, expected);
  } catch (const Error& e) {
    out.detail = e.what();
  }
  return out;
}

class Doctor final : public Command {
 public:
  std::string name() const override { return "doctor"; }
  std::string summary() const override {
    return "Show what works here, proven by running kernels on each device";
  }
  std::string examples() const override { return "  pyc doctor\n  pyc doctor --json\n"; }
  void declare(Options&) override {}

  int run() override {
    Progress progress(*this, "running a kernel of each kind on every device");
    auto cpu = sized<pyc_cpu_info>();
    check([&](pyc_error** e) { return pyc_get_cpu(&cpu, e); });
    auto cuda = sized<pyc_cuda_info>();
    check([&](pyc_error** e) { return pyc_cuda_get_info(&cuda, e); });
    std::vector<Check> checks;
    for (size_t i = 0; i < pyc_device_count(); ++i) {
      auto device = sized<pyc_device_info>();
      check([&](pyc_error** e) { return pyc_device(i, &device, e); });
      const bool absent = device.name == kCuda && cuda.available == 0;
      if (!absent) checks.push_back(check_device(device));
    }
    bool ok = true;
    for (const Check& c : checks) ok = ok && c.ok;
    progress.end();
    json ? print_json(cpu, cuda, checks, ok) : print_text(cpu, cuda, checks, ok);
    return ok ? kExitOk : kExitDifferent;
  }

 private:
  static void print_text(const pyc_cpu_info& cpu, const pyc_cuda_info& cuda,
                         const std::vector<Check>& checks, bool ok) {
    say("pyc     {} (ABI {})\n", pyc_version(), pyc_abi_version());
    say("cpu     {}, {} cores, {}-byte vectors, {}\n", cpu.arch, cpu.cores, cpu.vector_bytes,
        cpu.features);
    say("caches  L1 {}, L2 {}, L3 {}\n", bytes_text(cpu.l1_bytes), bytes_text(cpu.l2_bytes),
        bytes_text(cpu.l3_bytes));
    for (const Check& c : checks) {
      say("{}  {}: {}\n", c.ok ? "works " : "BROKEN", c.what, c.detail);
    }
    if (cuda.available == 0) say("absent  device cuda: {}\n", cuda.reason);
    say("gpu     {}\n", cuda.found);
    say("{}\n", ok ? "all that is here works" : "something is broken");
  }

  static void print_json(const pyc_cpu_info& cpu, const pyc_cuda_info& cuda,
                         const std::vector<Check>& checks, bool ok) {
    Json report = {
        {"version", pyc_version()},
        {"abi", pyc_abi_version()},
        {"cpu",
         {{"arch", cpu.arch},
          {"features", cpu.features},
          {"cores", cpu.cores},
          {"vector_bytes", cpu.vector_bytes},
          {"l1_bytes", cpu.l1_bytes},
          {"l2_bytes", cpu.l2_bytes},
          {"l3_bytes", cpu.l3_bytes}}},
        {"cuda",
         {{"available", cuda.available != 0}, {"reason", cuda.reason}, {"found", cuda.found}}},
        {"ok", ok},
        {"checks", Json::array()}};
    for (const Check& c : checks) {
      report["checks"].push_back({{"what", c.what}, {"ok", c.ok}, {"detail", c.detail}});
    }
    print(report);
  }
};

}  // namespace

std::unique_ptr<Command> make_doctor() { return std::make_unique<Doctor>(); }

}  // namespace pyc::tool
