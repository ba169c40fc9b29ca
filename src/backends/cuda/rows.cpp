// A team for each row that fits its threads' registers.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/row_emitter.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kMostRowWarps = 32;  // of a block
constexpr int64_t kTeamsOfRows = 4;    // of a block whose teams are single warps
// A cluster is within one part of the device; each has at least so many multiprocessors.
constexpr int64_t kParts = 8;
constexpr int64_t kMultiprocessorsOfPart = 16;
// Rows up to which a launch is short of threads, so that all loads had better begin at once.
constexpr int64_t kFewRows = 8 * kMultiprocessors;

// Clusters that run at a time.
int64_t places_of(const RowEmitter& emitter) {
  return kParts * (kMultiprocessorsOfPart * emitter.resident() / emitter.together());
}

}  // namespace

std::optional<KernelText> rows_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, const std::vector<bool>& unaligned) {
  RowEmitter emitter(kernel, dialect, symbol, unaligned);
  if (!emitter.fits() || emitter.block_warps() > kMostRowWarps) return std::nullopt;
  const int64_t points = kernel.parallel_size();
  const std::string type = counter_type(points);
  std::vector<int64_t> extents;
  for (loop::VarId v : kernel.parallel) extents.push_back(kernel.pool.var_info(v).extent);
  const int64_t together = emitter.together();
  const int64_t teams =
      emitter.warps() > 1 ? 1 : std::clamp<int64_t>(points / kMultiprocessors, 1, kTeamsOfRows);
  int64_t at_once = std::min((points + teams - 1) / teams, kMostBlocks / together);
  // Clusters have their rows one after the other where the next one can be brought meanwhile.
  if (together > 1 && points > places_of(emitter)) emitter.look_ahead();
  std::string bring;
  if (emitter.ahead_bytes() > 0) {
    const int64_t rows = (points + places_of(emitter) - 1) / places_of(emitter);
    at_once = (points + rows - 1) / rows;
    emitter.open_scope();
    declare_digits(emitter, "next", type, kernel.parallel, extents);
    emitter.bring();
    bring = fmt::format("if (next < {}) {{\n{}}}\n", points, emitter.close_scope());
  }
  const bool again = at_once * teams < points;
  // Blocks that run together are neighbours.
  const auto of_team = [&](const std::string& number, char sign) {
    return together == 1 ? number : fmt::format("({} {} {})", number, sign, together);
  };
  const std::string begin_at =
      fmt::format("({}){} * {} + team", type, of_team("pyc_block()", '/'), teams);
  const std::string stride = fmt::format("({}){} * {}", type, of_team("pyc_blocks()", '/'), teams);
  const auto brought = [&](const std::string& number) {
    return fmt::format("{{\nconst {} next = {};\n{}}}\n", type, number, bring);
  };
  emitter.open_scope();
  declare_digits(emitter, "point", type, kernel.parallel, extents);
  emitter.whole_rows(points <= kFewRows, again, brought("point + " + stride));
  const std::string body = emitter.close_scope();

  const int64_t block_threads = emitter.block_warps() * dialect.warp;
  KernelText out{.symbol = symbol,
                 .form = fmt::format("rows of {}{}", block_threads * together,
                                     bring.empty() ? "" : ", brought ahead"),
                 .text = "",
                 .buffers = parameters_of(kernel)};
  out.threads = static_cast<uint32_t>(block_threads * teams);
  out.blocks = static_cast<uint32_t>(at_once * together);
  out.shared_bytes = static_cast<uint32_t>(emitter.ahead_bytes());
  const std::string before =
      together == 1 ? "" : of_team("pyc_block()", '%') + fmt::format(" * {} + ", block_threads);
  const std::string head = fmt::format(
      "const i32 team = pyc_thread() / {0};\nconst i32 t = {4}pyc_thread() % {0};\n"
      "const i32 warp = t / {1};\nconst i32 lane = t % {1};\n"
      "const i32 first = warp * {2} + lane * {3};\n",
      block_threads, dialect.warp, loop::kTreeBlock, RowEmitter::kPair, before);
  const std::string loop = fmt::format("for ({} point = {}; point < {}; point += {}) {{\n{}}}",
                                       type, begin_at, points, stride, body);
  // What was computed once for all points stands in the emitter's outermost scope.
  const std::string once = emitter.close_scope();
  // A block that leaves takes its memory along: not before the others have written theirs.
  const std::string begin = (emitter.meets() ? "pyc_together_arrive();\n" : "") +
                            (bring.empty() ? "" : brought(begin_at));
  const std::string end = emitter.meets() && again ? "\npyc_together_wait();" : "";
  out.text = emitter.tables() + kernel_head(out, kernel, true, emitter.resident(), together) +
             " {\n" + head + emitter.head() + once + begin + loop + end + "\n}\n";
  return out;
}

}  // namespace pyc::cuda
