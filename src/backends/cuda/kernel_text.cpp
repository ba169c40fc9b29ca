#include "backends/cuda/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kSerialThreads = 128;
// Scratch memory that threads of the serial form may have together.
constexpr int64_t kSerialScratch = int64_t{64} << 20;

// The wait is written here, so that no form can forget it. One that has something to do before,
// with parameters alone, writes it itself.
std::string with_wait(const std::string& text) {
  const size_t head = text.find("PYC_KERNEL");  // in any of its forms
  if (head == std::string::npos) return text;   // a kernel without a point
  if (text.find("pyc_wait_for_earlier()", head) != std::string::npos) return text;
  const size_t body = text.find('{', head) + 1;
  return text.substr(0, body) + "\npyc_wait_for_earlier();" + text.substr(body);
}

}  // namespace

std::vector<uint32_t> parameters_of(const loop::Kernel& kernel) {
  std::vector<uint32_t> buffers;
  for (uint32_t i = 0; i < kernel.buffers.size(); ++i) {
    if (kernel.buffers[i].access != loop::Access::kScratch) buffers.push_back(i);
  }
  return buffers;
}

std::string kernel_head(const KernelText& text, const loop::Kernel& kernel, bool barriers,
                        int64_t resident, int64_t cluster) {
  std::string parameters;
  for (const uint32_t i : text.buffers) {
    const loop::Buffer& b = kernel.buffers[i];
    parameters +=
        fmt::format("PYC_GLOBAL {}{}* {}, ", b.access == loop::Access::kRead ? "const " : "",
                    memory_type(b.dtype), buffer_name(i));
  }
  std::string maps;
  for (const std::string_view name : text.map_names) maps += fmt::format(", PYC_MAP {}", name);
  const std::string begin =
      resident == 0
          ? "PYC_KERNEL("
          : fmt::format("PYC_KERNEL_{}({}, ", cluster > 1 ? "CLUSTER" : "BESIDE", resident);
  return begin +
         fmt::format(
             "{}, {}, {}, {}, {}PYC_GLOBAL char* workspace, PYC_GLOBAL u32* fault, u64 step{})",
             text.symbol, text.buffers.size() + 3 + text.maps.size(), text.threads,
             barriers ? cluster : 0, parameters, maps);
}

void declare_digits(Emitter& emitter, const std::string& index, const std::string& type,
                    const std::vector<loop::VarId>& vars, const std::vector<int64_t>& extents) {
  std::string rest = index;
  const std::string whole = type == "i32" ? "u32" : "u64";
  for (size_t i = vars.size(); i-- > 0;) {
    const std::string name = fmt::format("p{}", vars[i]);
    const std::string digit =
        i == 0 ? rest : fmt::format("({})({}) % {}u", whole, rest, extents[i]);
    emitter.line(
        fmt::format("const {0} {1} = ({0})({2});", emitter.var_type(vars[i]), name, digit));
    emitter.declare(vars[i], name);
    if (i == 0) break;
    const std::string next = fmt::format("q{}", vars[i]);
    emitter.line(fmt::format("const {0} {1} = ({0})(({2})({3}) / {4}u);", type, next, whole, rest,
                             extents[i]));
    rest = next;
  }
}

void declare_index(Emitter& emitter, loop::VarId var, const std::string& name,
                   const std::string& text) {
  if (var == loop::kNone) return;
  emitter.line(fmt::format("const {0} {1} = ({0})({2});", emitter.var_type(var), name, text));
  emitter.declare(var, name);
}

std::string counter_type(int64_t n) { return n < (int64_t{1} << 30) ? "i32" : "i64"; }

KernelText serial_text(const loop::Kernel& kernel, const std::string& symbol,
                       const Dialect& dialect) {
  KernelText out{.symbol = symbol, .form = "serial", .text = "", .buffers = parameters_of(kernel)};
  const int64_t points = kernel.parallel_size();
  const int64_t scratch = kernel.scratch_bytes();
  int64_t most = kMostBlocks * kSerialThreads;
  if (scratch > 0) most = std::clamp<int64_t>(kSerialScratch / scratch, 1, most);
  const int64_t threads = std::min(points, most);
  out.threads =
      static_cast<uint32_t>(std::min<int64_t>(kSerialThreads, std::max<int64_t>(threads, 1)));
  out.blocks = static_cast<uint32_t>((threads + out.threads - 1) / out.threads);
  out.workspace_bytes = scratch * out.blocks * out.threads;

  Emitter emitter(kernel, dialect, symbol);
  const std::string type = counter_type(points);
  emitter.line(
      fmt::format("const {0} thread = ({0})pyc_block() * {1} + pyc_thread();", type, out.threads));
  const std::vector<int64_t> offsets = kernel.scratch_offsets();
  for (uint32_t i = 0; i < kernel.buffers.size(); ++i) {
    if (offsets[i] < 0) continue;
    emitter.line(fmt::format(
        "PYC_GLOBAL {0}* {1} = (PYC_GLOBAL {0}*)(workspace + (i64)thread * {2}ll + {3}ll);",
        memory_type(kernel.buffers[i].dtype), buffer_name(i), scratch, offsets[i]));
  }
  std::vector<int64_t> extents;
  for (loop::VarId v : kernel.parallel) extents.push_back(kernel.pool.var_info(v).extent);
  emitter.open_scope();
  declare_digits(emitter, "point", type, kernel.parallel, extents);
  emitter.serial_body(kernel.body);
  const std::string body = emitter.close_scope();
  emitter.line(fmt::format(
      "for ({0} point = thread; point < {1}; point += ({0})pyc_blocks() * {2}) {{\n{3}}}", type,
      points, out.threads, body));
  out.text = emitter.tables() + emitter.finished(kernel_head(out, kernel, false));
  return out;
}

Result<KernelText> kernel_text(const loop::Kernel& given, const std::string& symbol,
                               const Dialect& dialect, KernelForm form,
                               const std::vector<bool>& unaligned) {
  if (loop::inlined_operations(given.pool) > loop::kMaxInlined) {
    return Status(Code::kUnsupported, "the kernel's calls have too many operations");
  }
  const loop::Kernel kernel = loop::without_calls(given);
  if (parameters_of(kernel).size() + 3 > kMostParameters) {
    return Status(Code::kUnsupported,
                  fmt::format("kernel '{}' has {} buffers, a launch takes {}", kernel.name,
                              kernel.buffers.size(), kMostParameters - 3));
  }
  if (kernel.parallel_size() == 0) {
    // Without a point nothing is proven about what its statements would read.
    return KernelText{.symbol = symbol, .form = "empty", .text = "", .buffers = {}};
  }
  if (form == KernelForm::kAny) {
    if (auto text = flat_text(kernel, symbol, dialect, unaligned)) return std::move(*text);
    if (auto text = rows_text(kernel, symbol, dialect, unaligned)) return std::move(*text);
  }
  if (form != KernelForm::kSerial) {
    const int64_t least = form == KernelForm::kTeam ? 1 : dialect.warp;
    if (auto text = team_text(kernel, symbol, dialect, least)) return std::move(*text);
  }
  return serial_text(kernel, symbol, dialect);
}

std::string unit_text(const Dialect& dialect, std::span<const KernelText* const> kernels) {
  std::string text(dialect.header);
  text += prelude();
  for (const KernelText* k : kernels) text += "\n// " + k->form + "\n" + with_wait(k->text);
  return text;
}

}  // namespace pyc::cuda
