// A team for each row that fits its threads' registers.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/row_emitter.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kMostRowWarps = 32;
constexpr int64_t kTeamsOfRows = 4;  // of a block whose teams are single warps
// Rows up to which a launch is short of threads, so that all loads had better begin at once.
constexpr int64_t kFewRows = 8 * kMultiprocessors;

}  // namespace

std::optional<KernelText> rows_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, const std::vector<bool>& unaligned) {
  RowEmitter emitter(kernel, dialect, symbol, unaligned);
  if (!emitter.fits() || emitter.warps() > kMostRowWarps) return std::nullopt;
  const int64_t points = kernel.parallel_size();
  const std::string type = counter_type(points);
  std::vector<int64_t> extents;
  for (loop::VarId v : kernel.parallel) extents.push_back(kernel.pool.var_info(v).extent);
  emitter.open_scope();
  declare_digits(emitter, "point", type, kernel.parallel, extents);
  emitter.whole_rows(points <= kFewRows);
  const std::string body = emitter.close_scope();

  const int64_t teams =
      emitter.warps() > 1 ? 1 : std::clamp<int64_t>(points / kMultiprocessors, 1, kTeamsOfRows);
  const int64_t team_threads = emitter.warps() * dialect.warp;
  KernelText out{.symbol = symbol,
                 .form = fmt::format("rows of {}", team_threads),
                 .text = "",
                 .buffers = parameters_of(kernel)};
  out.threads = static_cast<uint32_t>(team_threads * teams);
  out.blocks = static_cast<uint32_t>(std::min((points + teams - 1) / teams, kMostBlocks));
  const std::string head = fmt::format(
      "const i32 team = pyc_thread() / {0};\nconst i32 t = pyc_thread() % {0};\n"
      "const i32 warp = t / {1};\nconst i32 lane = t % {1};\n"
      "const i32 first = warp * {2} + lane * {3};\n",
      team_threads, dialect.warp, loop::kTreeBlock, RowEmitter::kPair);
  const std::string loop = fmt::format(
      "for ({0} point = ({0})pyc_block() * {1} + team; point < {2}; point += ({0})pyc_blocks() * "
      "{1}) {{\n{3}}}",
      type, teams, points, body);
  // What was computed once for all points stands in the emitter's outermost scope.
  const std::string once = emitter.close_scope();
  out.text = emitter.tables() + kernel_head(out, kernel, true) + " {\n" + head + emitter.head() +
             once + loop + "\n}\n";
  return out;
}

}  // namespace pyc::cuda
