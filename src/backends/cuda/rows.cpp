// A team for each row that fits its threads' registers.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/row_emitter.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kMostRowWarps = 32;            // of a block
constexpr int64_t kTeamsOfRows = 4;              // of a block whose teams are single warps
constexpr int64_t kMostGrid = int64_t{1} << 30;  // blocks of a launch
// Rows up to which a launch is short of threads, so that all loads had better begin at once.
constexpr int64_t kFewRows = 8 * kMultiprocessors;

}  // namespace

bool counts_rows(const loop::Kernel& kernel, const loop::Loop& l, loop::ExprId offset) {
  const loop::Affine sum = loop::affine_of(kernel.pool, offset);
  size_t known = 1;
  if (sum.constant != 0 || sum.coefficient(kernel.pool, l.var) != 1) return false;
  int64_t stride = l.extent;
  for (size_t i = kernel.parallel.size(); i-- > 0;) {
    if (sum.coefficient(kernel.pool, kernel.parallel[i]) != stride) return false;
    stride *= kernel.pool.var_info(kernel.parallel[i]).extent;
    ++known;
  }
  return known == sum.terms.size();
}

std::optional<KernelText> rows_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, const std::vector<bool>& unaligned) {
  RowEmitter emitter(kernel, dialect, symbol, unaligned);
  if (!emitter.fits() || emitter.block_warps() > kMostRowWarps) return std::nullopt;
  const int64_t points = kernel.parallel_size();
  const std::string type = counter_type(points);
  std::vector<int64_t> extents;
  for (loop::VarId v : kernel.parallel) extents.push_back(kernel.pool.var_info(v).extent);
  const int64_t together = emitter.together();
  const int64_t teams = emitter.warps() > 1
                            ? emitter.teams()
                            : std::clamp<int64_t>(points / kMultiprocessors, 1, kTeamsOfRows);
  // A cluster has one row, unless its blocks would be alone; others take them in turn.
  const int64_t of_clusters = emitter.in_turns() ? emitter.clusters_at_once() : points;
  const int64_t at_once =
      together > 1 ? of_clusters : std::min((points + teams - 1) / teams, kMostBlocks);
  if (at_once * together > kMostGrid) return std::nullopt;
  emitter.open_scope();
  declare_digits(emitter, "point", type, kernel.parallel, extents);
  emitter.whole_rows(points <= kFewRows);
  const std::string body = emitter.close_scope();

  const int64_t block_threads = emitter.team_warps() * dialect.warp;
  KernelText out{
      .symbol = symbol,
      .form = fmt::format("rows of {}{}{}", block_threads * together,
                          emitter.in_turns() ? " in turns" : "",
                          emitter.teams() > 1 ? fmt::format(" by {}", emitter.teams()) : ""),
      .text = "",
      .buffers = parameters_of(kernel)};
  out.threads = static_cast<uint32_t>(block_threads * teams);
  out.blocks = static_cast<uint32_t>(at_once * together);
  out.shared_bytes = static_cast<uint32_t>(emitter.shared_bytes());
  // Blocks that run together are neighbours.
  const auto of_team = [&](const std::string& number, char sign) {
    return together == 1 ? number : fmt::format("({} {} {})", number, sign, together);
  };
  const std::string before =
      together == 1 ? "" : of_team("pyc_block()", '%') + fmt::format(" * {} + ", block_threads);
  std::string head = fmt::format(
      "const i32 team = pyc_thread() / {0};\nconst i32 t = {4}pyc_thread() % {0};\n"
      "const i32 warp = t / {1};\nconst i32 lane = t % {1};\n"
      "const i32 first = warp * {2} + lane * {3};\n",
      block_threads, dialect.warp, loop::kTreeBlock, RowEmitter::kPair, before);
  if (emitter.teams() > 1) {
    head += fmt::format("const i32 own = pyc_thread() % {};\n", block_threads);
  }
  const std::string loop = fmt::format(
      "for ({0} point = ({0}){4} * {1} + team; point < {2}; point += ({0}){5} * {1}) {{\n{3}}}",
      type, teams, points, body, of_team("pyc_block()", '/'), of_team("pyc_blocks()", '/'));
  // What was computed once for all points stands in the emitter's outermost scope.
  const std::string once = emitter.close_scope();
  std::string begin;
  if (!emitter.gates().empty()) {
    begin = emitter.gates() + "pyc_gates_made();\npyc_together_arrive();\n" +
            (emitter.in_turns() ? "" : "const ") + "u32 turn = 0;\n";
  }
  out.text = emitter.tables() + kernel_head(out, kernel, true, emitter.resident(), together) +
             " {\n" + head + emitter.head() + once + begin + emitter.once() + loop + "\n" +
             emitter.last() + "}\n";
  return out;
}

}  // namespace pyc::cuda
