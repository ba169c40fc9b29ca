// Which blocks, which packing for a tile: decisions from sizes alone. None of them changes bits.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "backends/cpu/kernel_generator.h"
#include "backends/cpu/matmul.h"
#include "backends/cpu/matmul_bytes.h"
#include "backends/cpu/matmul_tiles.h"
#include "backends/cpu/reads.h"
#include "backends/cpu/registers.h"
#include "base/hash.h"

namespace pyc::cpu {
namespace {

using loop::ExprId;
using loop::kNone;
using Operand = lower::Contraction::Operand;

// What a block of B may take of the second-level cache.
constexpr int64_t kBlockBytes = 256 << 10;
// A B that does not stay in that cache from one run to the next.
constexpr int64_t kLargeBytes = 512 << 10;
// A B that is small enough to be read in place.
constexpr int64_t kInPlaceBytes = 32 << 10;

// What of a panel the first-level cache keeps beside rows.
constexpr int64_t kNearPanelBytes = 16 << 10;
// Steps of k that columns are fetched ahead into it: 8 and 16 gained as much, 32 less.
constexpr int kStepsAhead = 8;

// What a panel that stays near costs a task beside its tiles, in tiles.
constexpr double kNearPanel = 0.1;

// What long rows are, and what is done with them.
struct LongRows {
  // From this length on, the rows of a tile do not stay in the first-level cache: where they lie,
  // they come as so many streams, and those a multiple of 16 KB apart fall into the same few sets.
  int64_t least;
  // Fewer panels than this do not pay for copying A.
  int64_t panels;
  // What a task that goes by segments may have for the totals of its tiles.
  int64_t totals_bytes;
  // What copying a tile's rows costs against a tile, and a panel that comes from afar, segment by
  // segment. With 0.1 for the latter, tasks of two threads on x86 had few tiles, and long products
  // took 1.15 times as long.
  double copied;
  double panel;
  // One thread is faster by 6 to 12 % with rows packed in a step of their own, two are not
  // (decision 0068). Where they do not go by segments they are so too.
  bool may_gather;
};

// On x86 the larger part of the gain is that a panel's segment and the one to come stay in the
// second-level cache; rows of 768 lost 4 % (decision 0092).
LongRows long_rows(const CodegenTarget& target) {
  if (target.is_aarch64()) return {2048, 16, 32 << 10, 0.5, kNearPanel, true};
  return {2048, 8, 256 << 10, 0.1, 0.5, false};
}

// What tiles take that read long rows where they lie, beside those that read packed ones.
constexpr double kLongRowsFactor = 1.15;
// Rows that are evaluated are so once where B is larger than this and they take at most that: the
// blocks of a B that stays in the cache would each evaluate them anew.
constexpr int64_t kFarBytes = 1 << 20;
constexpr int64_t kGatheredBytes = 4 << 20;

// Rows that are evaluated by tasks go through long panels by segments where a task has so much of
// them: they lie in its scratch, and B is read once for all of them.
constexpr int64_t kTaskRowsBytes = 1 << 20;
constexpr int64_t kManyWindows = 256;  // of a thread

// So few panels that a tile is done before the next one's rows are there.
constexpr int64_t kFewPanels = 3;

// Tasks enough for every thread when each packs a part of B of its own.
constexpr int64_t kTasksPerThread = 4;

// What a task costs beside its tiles.
constexpr double kTaskOverheadNs = 100.0;

// The most tasks of a thread that are asked for in either direction.
constexpr int64_t kMostTasks = 8;

// Threads are not equally fast, and one that is done goes on with pieces of others, which are no
// less than an eighth of a thread's part: in the mean so much of a piece is waited for at the end.
constexpr double kLastPiece = 0.5;
constexpr double kLeastPiece = 0.125;

// What stays in the caches of a thread alone from one run of a step to the next.
constexpr int64_t kPrivateBytes = 3 << 20;

// What evaluating a row of A costs against a product with as many rows of one column, and by how
// much tiles are slower whose panels come from beyond the second-level cache.
constexpr double kComputedRows = 6.0;
constexpr double kFarPanels = 1.1;

// By how much tile registers are faster than tiles of f32 with as many elements.
constexpr double kAmxFaster = 4.0;

// A larger B of bytes is not read again for each tile of rows, but panel by panel with all rows
// beside it: blocks are so many times smaller then. Few rows are evaluated again for each.
constexpr int64_t kFarBytesOfB = 256 << 10;
constexpr int64_t kBlocksOfBytes = 4;  // in one of f32
constexpr int64_t kFewRows = 32;

// What a packed constant or computed operand costs to write, against copying it.
constexpr double kComputedFactor = 2.0;

// Whether an operand's buffer is also read as it is: by the epilogue, the other operand, or as its
// own zero points.
bool reads_elsewhere(const lower::Contraction& c, const Operand& own, const Operand& other) {
  Reads reads(c.kernel->pool, own.buffer);
  if (reads.in(other.value) || reads.in(own.zero)) return true;
  return std::any_of(c.kernel->stores.begin(), c.kernel->stores.end(),
                     [&](const loop::Store& s) { return reads.in(s.value) || reads.in(s.offset); });
}

// The buffers that only steps which pack at run time read.
std::vector<uint32_t> packed_first(const lower::Contraction& c, const MatmulPlan& p) {
  std::vector<uint32_t> out;
  const bool a = p.rows == MatmulPlan::Rows::kPackedAtRun;
  const bool b = p.weights == MatmulPlan::Weights::kPackedAtRun;
  if (a && c.a.buffer != kNone && !reads_elsewhere(c, c.a, c.b)) out.push_back(c.a.buffer);
  if (b && c.b.buffer != kNone && !reads_elsewhere(c, c.b, c.a)) out.push_back(c.b.buffer);
  return out;
}

// The dims of the batch that the operand depends on have matrices of their own; elements between
// those of neighbours, and how many there are.
int64_t batch_strides(const lower::Contraction& c, const Operand& operand, int64_t elements,
                      std::vector<int64_t>& strides) {
  int64_t matrices = 1;
  strides.assign(c.batch.size(), 0);
  for (size_t i = c.batch.size(); i-- > 0;) {
    if (!loop::depends_on(c.kernel->pool, operand.value, c.batch_vars[i])) continue;
    strides[i] = matrices * elements;
    matrices *= c.batch[i];
  }
  return matrices;
}

// Whether tiles of more than two rows gain where the rows that they read in place are packed.
bool has_long_rows(const CodegenTarget& target, const MatmulPlan& p) {
  return !p.of_bytes() && p.rows == MatmulPlan::Rows::kInPlace && p.k >= long_rows(target).least;
}

bool is_linear(const Operand& operand) { return operand.form == lower::Contraction::Form::kLinear; }

void choose_weights(const lower::Group& group, bool constant, int threads, MatmulPlan& p) {
  const lower::Contraction& c = *group.contraction;
  using Weights = MatmulPlan::Weights;
  const bool elsewhere = c.b.buffer == kNone || reads_elsewhere(c, c.b, c.a);
  const bool readable =
      is_linear(c.b) && c.b.row_stride == 1 && p.n % p.tile_columns == 0 && c.b.k_stride > 0;
  const bool small = p.k * c.b.k_stride * 4 <= kInPlaceBytes || p.m <= p.tile_rows;
  p.b_slot = elsewhere ? static_cast<uint32_t>(group.kernel.buffers.size()) : c.b.buffer;
  p.b_k_stride = p.tile_columns;
  if (constant && !elsewhere) {
    p.weights = Weights::kPackedAhead;
  } else if (readable && small) {
    p.weights = Weights::kInPlace;
    p.b_slot = c.b.buffer;
    p.b_panel_stride = p.tile_columns;
    p.b_k_stride = c.b.k_stride;
    p.b_batch_strides = c.b.batch_strides;
    return;
  } else if ((!is_linear(c.b) || p.rows == MatmulPlan::Rows::kPackedAhead) &&
             p.batch * p.panels >= kTasksPerThread * threads) {
    p.weights = Weights::kPackedByTask;
  } else {
    p.weights = Weights::kPackedAtRun;
  }
}

// A tile of one row waits for B alone. Measured on Neoverse-V1, where a core reads 67 MB at 26 GB/s
// in one stream and at 41 in four, 9 MB at 47 and 60. A stream has a line a step. Two rows, in two
// streams, lost a tenth.
void choose_streams(const CodegenTarget& target, MatmulPlan& p) {
  const bool far = 4 * p.n * p.k > kLargeBytes;
  if (!target.is_aarch64() || p.of_bytes() || p.tile_rows > 1 || !far ||
      p.weights != MatmulPlan::Weights::kPackedAhead || p.by_segment) {
    return;
  }
  constexpr int kLineFloats = MatmulPlan::kLine / 4;
  p.b_streams = std::max(1, p.tile_columns / kLineFloats);
  p.b_k_stride = p.tile_columns / p.b_streams;
}

// The sizes of operands that are packed.
void place_weights(const lower::Contraction& c, bool in_groups, MatmulPlan& p) {
  using Weights = MatmulPlan::Weights;
  if (p.weights == Weights::kInPlace) return;
  p.b_panel_stride = (p.k + (p.b_form.sums ? 1 : 0)) * p.tile_columns;
  if (p.weights == Weights::kPackedByTask) {
    p.b_batch_strides.assign(c.batch.size(), 0);
    return;
  }
  const int64_t matrix = p.panels * p.b_panel_stride;
  p.b_matrices = batch_strides(c, c.b, matrix, p.b_batch_strides);
  p.packed_bytes = p.b_matrices * matrix * 4;
  if (!p.by_segment) return;
  p.b_panel_stride = kMatmulSegment * p.tile_columns;
  if (in_groups)
    p.b_groups = ceil_div(p.panels, std::max<int64_t>(1, kBlockBytes / (4 * p.b_panel_stride)));
}

void place_rows(const lower::Contraction& c, MatmulPlan& p) {
  if (!p.a_placed()) return;
  const int64_t matrix = p.of_bytes() ? p.row_tiles * p.a_tile_elements() : p.m * p.row_room();
  p.a_matrices = batch_strides(c, c.a, matrix, p.a_batch_strides);
  p.a_bytes = p.a_matrices * matrix * 4;
  const bool beside_b =
      p.rows == MatmulPlan::Rows::kPackedAtRun && p.weights == MatmulPlan::Weights::kPackedAtRun;
  if (beside_b) p.a_workspace = MatmulPlan::in_lines(p.packed_bytes);
}

// Rows that are evaluated in a step are cut into parts where there are few tiles for the threads.
void choose_parts(const lower::Contraction& c, int threads, MatmulPlan& p) {
  if (p.rows != MatmulPlan::Rows::kPackedAtRun || is_linear(c.a) || p.of_bytes() || threads == 1) {
    return;
  }
  const int64_t wanted = ceil_div(kTasksPerThread * threads, p.a_matrices * p.row_tiles);
  p.a_parts = std::clamp<int64_t>(p.k / kMatmulSegment, 1, wanted);
}

void choose_rows(const lower::Group& group, bool constant, MatmulPlan& p) {
  const lower::Contraction& c = *group.contraction;
  using Rows = MatmulPlan::Rows;
  if (constant && c.a.buffer != kNone && !reads_elsewhere(c, c.a, c.b)) {
    p.rows = Rows::kPackedAhead;
    p.a_slot = c.a.buffer;
    return;
  }
  if (!is_linear(c.a)) {
    p.rows = Rows::kComputed;
  } else if (c.a.k_stride != 1) {
    p.rows = Rows::kCopied;
  }
}

// The same of the tile at hand.
bool gains_by_packed_rows(const CodegenTarget& target, const MatmulPlan& p) {
  return has_long_rows(target, p) && p.tile_rows > 2 && p.panels >= long_rows(target).panels;
}

// Whether a task may go through long rows by segments: B is packed likewise when the model is
// compiled, and all segments are whole.
bool walks_segments(const CodegenTarget& target, const MatmulPlan& p) {
  return !p.of_bytes() && p.weights == MatmulPlan::Weights::kPackedAhead &&
         p.k >= long_rows(target).least && p.k % kMatmulSegment == 0;
}

// Whether rows that lie in memory are packed in a step of their own: long ones, and those whose k
// lies apart where several blocks of columns would each copy them.
bool rows_are_gathered(const CodegenTarget& target, const MatmulPlan& p) {
  if (p.of_bytes() || p.tile_rows <= 2) return false;
  const bool copied_again =
      p.rows == MatmulPlan::Rows::kCopied && p.panels * p.tile_columns * p.k * 4 > kBlockBytes;
  return (long_rows(target).may_gather && gains_by_packed_rows(target, p)) || copied_again;
}

void gather_rows(const lower::Group& group, MatmulPlan& p) {
  using Weights = MatmulPlan::Weights;
  p.rows = MatmulPlan::Rows::kPackedAtRun;
  const bool b_given = p.weights == Weights::kPackedAhead || p.weights == Weights::kPackedAtRun;
  p.a_slot = static_cast<uint32_t>(group.kernel.buffers.size());
  if (b_given) p.a_slot = std::max(p.a_slot, p.b_slot + 1);
}

void choose_scratch(MatmulPlan& p) {
  if (p.by_segment) {
    p.scratch_bytes =
        4 * (p.totals_scratch() + p.task_tiles() * p.task_panels() * p.tile_elements());
  } else if (p.rows == MatmulPlan::Rows::kCopied || p.rows == MatmulPlan::Rows::kComputed) {
    p.scratch_bytes = p.a_tile_elements() * 4;
  }
  if (p.weights != MatmulPlan::Weights::kPackedByTask) return;
  p.b_scratch = MatmulPlan::in_lines(p.scratch_bytes);
  p.scratch_bytes = p.b_scratch + ceil_div(p.panels, p.n_blocks) * p.b_panel_stride * 4;
}

// The number of blocks in m and n whose busiest thread has least to do.
void choose_blocks(const CodegenTarget& target, int threads, int64_t block_bytes, MatmulPlan& p) {
  const bool by_segment = p.by_segment;
  const LongRows rows = long_rows(target);
  const int64_t panel_bytes = (by_segment ? kMatmulSegment : p.k) * p.tile_columns * 4;
  const int64_t panels_per_block = std::max<int64_t>(1, block_bytes / panel_bytes);
  // Rows that every block of columns evaluates anew had better have one with more of B than fits.
  const bool computed = p.rows == MatmulPlan::Rows::kComputed;
  const int64_t near = ceil_div(p.panels, panels_per_block);
  const int64_t fewest = ceil_div(computed ? 1 : near, p.b_groups) * p.b_groups;
  const int64_t most_columns = std::min(p.panels, std::max(near, fewest) + kMostTasks * threads);
  const double faster = p.unit == ByteUnit::kAmx ? kAmxFaster : 1.0;
  const bool copied = p.rows == MatmulPlan::Rows::kSegmentCopied;
  const double rows_cost =
      computed ? faster * kComputedRows / p.tile_columns : (copied ? rows.copied : 0.05);
  const double panel_cost = by_segment ? rows.panel : kNearPanel;
  double best = std::numeric_limits<double>::max();
  const double tile_ns =
      2.0 * static_cast<double>(p.tile_elements() * p.k) / (faster * tile_flops_per_ns(target));
  const double overhead = std::max(0.1, threads > 1 ? kTaskOverheadNs / tile_ns : 0.0);
  // What a task packs, no other task reads.
  const bool by_task = p.weights == MatmulPlan::Weights::kPackedByTask;
  const int64_t most = by_task      ? 1
                       : by_segment ? p.row_tiles
                                    : std::min<int64_t>(p.row_tiles, kMostTasks * threads);
  for (int64_t m_blocks = 1; m_blocks <= most; ++m_blocks) {
    for (int64_t n_blocks = fewest; n_blocks <= most_columns; n_blocks += p.b_groups) {
      const bool enough = m_blocks * n_blocks > 2 * kMostTasks * threads;
      if (enough && n_blocks > std::max(near, fewest)) break;
      const int64_t tasks = p.batch * m_blocks * n_blocks;
      const int64_t per_thread = ceil_div(tasks, threads);
      const double tiles = static_cast<double>(ceil_div(p.row_tiles, m_blocks));
      const double panels = static_cast<double>(ceil_div(p.panels, n_blocks));
      const double totals = tiles * panels * static_cast<double>(p.tile_elements() * 4);
      if (by_segment && totals > static_cast<double>(rows.totals_bytes)) continue;
      const double evaluated = tiles * static_cast<double>(p.a_tile_elements() * 4);
      if (by_segment && computed && evaluated > static_cast<double>(kTaskRowsBytes)) continue;
      // In units of one tile over the whole k; reading A and B anew costs a little each.
      const double far = panels > static_cast<double>(panels_per_block) ? kFarPanels : 1.0;
      const double task = tiles * panels * far + rows_cost * tiles + panel_cost * panels + overhead;
      const double share = static_cast<double>(tasks) / threads;
      const double piece = threads > 1 ? std::max(1.0, kLeastPiece * share) : 0.0;
      const double time =
          task * std::max(static_cast<double>(per_thread), share + kLastPiece * piece);
      if (time < best * 0.999) {
        best = time;
        p.m_blocks = m_blocks;
        p.n_blocks = n_blocks;
      }
    }
  }
}

// All that a packed operand's bytes depend on but the source's and the layout.
std::string operand_text(const lower::Group& group, const lower::Contraction::Operand& operand,
                         loop::VarId row, int64_t rows) {
  const lower::Contraction& c = *group.contraction;
  std::string text = fmt::format("{} {}x{} from {}", dtype_name(operand.dtype), rows, c.k,
                                 group.buffer_offset(operand.buffer) + c.base_of(operand));
  // Where elements lie, along every variable that moves them.
  const auto along = [&](loop::VarId var, int64_t stride) {
    if (var == kNone || !loop::depends_on(c.kernel->pool, operand.value, var)) return;
    if (operand.form == lower::Contraction::Form::kLinear) {
      text += fmt::format(" {} by {}", c.kernel->pool.var_info(var).extent, stride);
      return;
    }
    const std::vector<int64_t> offsets = c.offsets_of(operand, var);
    const Digest digest = hash128(std::as_bytes(std::span(offsets)));
    text += fmt::format(" {}:{}", offsets.size(), digest.hex());
  };
  along(row, operand.row_stride);
  text += " k";
  along(c.k_var, operand.k_stride);
  for (size_t i = 0; i < c.batch_vars.size(); ++i) {
    along(c.batch_vars[i], i < operand.batch_strides.size() ? operand.batch_strides[i] : 0);
  }
  return text;
}

}  // namespace

std::string matmul_rejected(const lower::Group& group, const CodegenTarget& target) {
  if (!group.contraction) return "no_contraction";
  const lower::Contraction& c = *group.contraction;
  const bool bytes = multiplies_bytes(c);
  if (!bytes && c.dtype != DType::kF32) return "dtype_not_f32";
  if (bytes && target.bytes == ByteUnit::kNone) return "no_byte_unit";
  if (c.k <= 0) return "k_is_zero";
  if (c.m <= 0 || c.n <= 0 || c.batch_size() <= 0) return "empty";
  if (!bytes && c.segment != kMatmulSegment) return "segment_not_256";
  if (c.n_var == kNone) return "no_free_column";
  if (group.kernel.scratch_bytes() != 0) return "has_scratch";
  if (!group.kernel.checks.empty()) return "has_checks";
  if (target.lanes != 4 && target.lanes != 8 && target.lanes != 16) return "lanes_not_supported";
  return "";
}

namespace {

// What the plans of one group have in common, and one of them for a tile.
class Planner {
 public:
  Planner(const lower::Group& group, MatmulConstants constants, const CodegenTarget& asked,
          int threads)
      : group_(group),
        constants_(constants),
        bytes_(multiplies_bytes(*group.contraction)),
        target_(bytes_ ? byte_target(asked) : asked),
        threads_(std::max(threads, 1)) {
    const lower::Contraction& c = *group.contraction;
    sizes_.m = c.m;
    sizes_.n = c.n;
    sizes_.k = c.k;
    sizes_.batch = c.batch_size();
    sizes_.segments = bytes_ ? 1 : ceil_div(c.k, kMatmulSegment);
    if (bytes_) begin_bytes(c, target_, sizes_);
    choose_rows(group_, constants_.a, sizes_);
  }

  std::vector<Tile> tiles() const {
    // On aarch64 nothing speaks for other tiles then.
    const bool lie = sizes_.rows == MatmulPlan::Rows::kInPlace || sizes_.a_placed();
    const bool by_segment = !target_.is_aarch64() && constants_.b &&
                            walks_segments(target_, sizes_) &&
                            (lie || should_gather() || has_many_windows(sizes_));
    return likely_tiles(target_, sizes_, threads_, by_segment);
  }

  // Whether rows that are evaluated can be so once, and whether they had better be: where several
  // of the batch have the same ones, as the pictures of a convolution, or B is large.
  bool gathers_computed() const {
    // With other units it was not measured.
    const bool units = sizes_.unit == ByteUnit::kAmx || sizes_.unit == ByteUnit::kVnni;
    return sizes_.rows == MatmulPlan::Rows::kComputed && (!bytes_ || units);
  }
  bool should_gather() const {
    const lower::Contraction& c = *group_.contraction;
    std::vector<int64_t> strides;
    const int64_t matrices = batch_strides(c, c.a, 1, strides);
    const bool fits = 4 * matrices * sizes_.m * sizes_.k <= kGatheredBytes;
    const bool shared = matrices < sizes_.batch;
    const bool bytes_far = sizes_.m > kFewRows && 4 * sizes_.n * sizes_.k > kFarBytesOfB;
    if (bytes_) return fits && bytes_far && gathers_computed();
    // On x86 threads have a cache each that holds their share of B: 16 of them gained nothing.
    const int64_t near = target_.is_aarch64() ? kFarBytes : kFarBytes * threads_;
    const bool far = 4 * sizes_.n * sizes_.k > near;
    return fits && (shared || far) && gathers_computed();
  }

  // `gather`: rows that are evaluated are so once, into the workspace, not by every task.
  // `pack_rows` off: no rows have a workspace.
  MatmulPlan plan(const Tile& tile, int64_t block_bytes, bool gather, bool pack_rows = true) const {
    const lower::Contraction& c = *group_.contraction;
    MatmulPlan p = sizes_;
    take_tile(target_, tile, p);
    choose_weights(group_, constants_.b, threads_, p);
    const bool lean = threads_ > 1 || !pack_rows || !long_rows(target_).may_gather;
    if (pack_rows && gather && gathers_computed()) {
      gather_rows(group_, p);
      p.name += "_rows";
    }
    choose_segments(lean, p);
    if (pack_rows && !p.by_segment && rows_are_gathered(target_, p)) gather_rows(group_, p);
    if (bytes_) choose_byte_forms(c, p);
    choose_streams(target_, p);
    // Not measured on aarch64.
    place_weights(c, !target_.is_aarch64(), p);
    place_rows(c, p);
    choose_parts(c, threads_, p);
    const bool small_blocks = bytes_ && p.rows == MatmulPlan::Rows::kPackedAtRun;
    choose_blocks(target_, threads_, small_blocks ? block_bytes / kBlocksOfBytes : block_bytes, p);
    // One tile of rows takes as long as B needs to come. The steps of an LSTM share B, and find its
    // last panels in the cache: 100 of them over 4 MiB took 0.7 of the time on Granite Rapids. Each
    // thread has its part then, none of which another begins.
    p.both_ways = p.weights == MatmulPlan::Weights::kPackedAhead && p.packed_bytes > kLargeBytes &&
                  p.row_tiles == 1 && !p.by_segment;
    if (p.both_ways && threads_ > 1 && p.packed_bytes <= threads_ * kPrivateBytes) {
      p.n_blocks = std::min<int64_t>(p.panels, threads_);
    }
    p.both_ways = p.both_ways && p.panels > threads_;
    choose_scratch(p);
    // One tile alone uses each line once and leaves no time to fetch. On aarch64 nothing was
    // gained.
    const bool lies_ahead = p.weights == MatmulPlan::Weights::kPackedAhead ||
                            p.weights == MatmulPlan::Weights::kPackedAtRun;
    p.fetch_b = !target_.is_aarch64() && lies_ahead && p.packed_bytes > kLargeBytes &&
                p.row_tiles >= 2 * p.m_blocks;
    p.fetch_a = fetches_rows(p);
    if (fetches_near(p)) p.b_ahead = kStepsAhead;
    return p;
  }

 private:
  // Whether there are many evaluated rows for each thread, as the windows of several pictures: a
  // task has many of them then.
  bool has_many_windows(const MatmulPlan& p) const {
    return p.rows == MatmulPlan::Rows::kComputed && p.batch * p.m >= kManyWindows * threads_ &&
           4 * p.k * registers_of(target_).rows <= kTaskRowsBytes / 2;
  }

  // Goes through long rows by segments where that gains. On x86 rows that lie well are not copied.
  void choose_segments(bool lean, MatmulPlan& p) const {
    using Rows = MatmulPlan::Rows;
    if (!walks_segments(target_, p) || p.tile_rows <= 2) return;
    const bool in_place = p.rows == Rows::kInPlace;
    const bool collide = in_place && group_.contraction->a.row_stride % kHalfPage == 0;
    const bool lie = (p.a_placed() || in_place) && !collide;
    if (!target_.is_aarch64() && (lie || has_many_windows(p))) {
      p.by_segment = true;
    } else if (lean && gains_by_packed_rows(target_, p)) {
      p.rows = Rows::kSegmentCopied;
      p.by_segment = true;
    }
  }

  // Whether the rows of a tile that lie where they are had better be fetched.
  bool fetches_rows(const MatmulPlan& p) const {
    const bool together = !bytes_ && p.rows == MatmulPlan::Rows::kInPlace && p.tile_rows >= 4 &&
                          group_.contraction->a.row_stride == p.k;
    // Few panels leave little time for them to come in, each from a place of its own.
    if (target_.is_aarch64()) return together && p.panels <= kFewPanels;
    // Many blocks of columns go through all of them, and between two of these they leave the cache.
    return together && p.n_blocks > kFewPanels && 4 * p.m * p.k >= kLargeBytes;
  }

  // Whether the columns of a panel had better be fetched into the first-level cache a few steps
  // before they are needed: where that cannot keep them from one tile to the next. On aarch64 it
  // was not measured; a tile of one vector has too little arithmetic for the requests.
  bool fetches_near(const MatmulPlan& p) const {
    return !target_.is_aarch64() && p.unit != ByteUnit::kAmx &&
           p.weights != MatmulPlan::Weights::kInPlace && p.tile_columns >= 2 * p.lanes &&
           4 * p.k * p.tile_columns > kNearPanelBytes;
  }

  const lower::Group& group_;
  MatmulConstants constants_;
  bool bytes_;
  CodegenTarget target_;
  int threads_;
  MatmulPlan sizes_;
};

}  // namespace

MatmulPlan plan_matmul(const lower::Group& group, MatmulConstants constants,
                       const CodegenTarget& asked, int threads, bool pack_rows) {
  const Planner planner(group, constants, asked, threads);
  return planner.plan(planner.tiles().front(), kBlockBytes, planner.should_gather(), pack_rows);
}

std::vector<MatmulPlan> likely_matmuls(const lower::Group& group, MatmulConstants constants,
                                       const CodegenTarget& asked, int threads) {
  const Planner planner(group, constants, asked, threads);
  std::vector<MatmulPlan> out;
  const std::vector<Tile> tiles = planner.tiles();
  const bool gather = planner.should_gather();
  for (const Tile& tile : tiles) {
    out.push_back(planner.plan(tile, kBlockBytes, gather));
    out.back().slowdown = std::max(1.0, tile.work / tiles.front().work);
  }
  if (planner.gathers_computed()) {
    out.push_back(planner.plan(tiles.front(), kBlockBytes, !gather));
  }
  for (const int64_t bytes : {kBlockBytes / 2, 2 * kBlockBytes}) {
    MatmulPlan p = planner.plan(tiles.front(), bytes, gather);
    const bool known = std::ranges::any_of(out, [&](const MatmulPlan& o) {
      return o.tile_columns == p.tile_columns && o.m_blocks == p.m_blocks &&
             o.n_blocks == p.n_blocks && o.rows == p.rows;
    });
    if (known) continue;
    p.name += fmt::format("_b{}k", bytes >> 10);
    out.push_back(std::move(p));
  }
  return out;
}

lower::KernelNeeds matmul_needs(const lower::Group& group, const MatmulPlan& plan) {
  const lower::Contraction& c = *group.contraction;
  lower::KernelNeeds needs;
  needs.scratch_bytes = plan.scratch_bytes;
  // Tiles take points in an order of their own, but each point's epilogue runs once.
  needs.in_place = loop::pointwise_pairs(group.kernel);
  needs.read_first = packed_first(c, plan);
  if (plan.weights == MatmulPlan::Weights::kPackedAhead) {
    std::string by_segment;
    if (plan.by_segment) by_segment = fmt::format(" by segment in {}", plan.b_groups);
    needs.packed.push_back(
        {group.buffer_values[c.b.buffer], MatmulPlan::in_lines(plan.packed_bytes),
         fmt::format("{} panels of {} columns{}{} of {}", byte_form_text(plan, plan.b_form),
                     plan.tile_columns, by_segment,
                     plan.b_streams > 1 ? fmt::format(" in {} streams", plan.b_streams) : "",
                     operand_text(group, c.b, c.n_var, plan.n))});
  }
  if (plan.weights == MatmulPlan::Weights::kPackedAtRun) needs.workspace_bytes = plan.packed_bytes;
  if (plan.rows == MatmulPlan::Rows::kPackedAtRun) {
    needs.workspace_bytes = plan.a_workspace + plan.a_bytes;
  }
  if (plan.rows == MatmulPlan::Rows::kPackedAhead) {
    needs.packed.push_back(
        {group.buffer_values[c.a.buffer], MatmulPlan::in_lines(plan.a_bytes),
         fmt::format("{} tiles, {} of {} rows, {} apart, by {} of {}",
                     byte_form_text(plan, plan.a_form), plan.tall_tiles, plan.tile_rows,
                     plan.a_row_stride(), plan.unroll, operand_text(group, c.a, c.m_var, plan.m))});
  }
  return needs;
}

double matmul_cost_ns(const lower::Group& group, const MatmulPlan& plan,
                      const CodegenTarget& target, int threads) {
  // A unit that takes rows in twos has twice the k of the others at once.
  const double faster = plan.unit == ByteUnit::kMmla  ? 2.0
                        : plan.unit == ByteUnit::kAmx ? kAmxFaster
                                                      : 1.0;
  const double rate = tile_flops_per_ns(target) * faster;
  const double rows = static_cast<double>(plan.row_tiles) * plan.tile_rows;
  const double columns = static_cast<double>(plan.panels) * plan.tile_columns;
  const double flops =
      2.0 * static_cast<double>(plan.batch) * rows * columns * static_cast<double>(plan.k);
  const double tasks = static_cast<double>(plan.tasks());
  const double rounds = static_cast<double>(ceil_div(plan.tasks(), threads));
  const double share = rounds / tasks;
  const double bytes = static_cast<double>(group.bytes);
  double ns = std::max(flops * share / rate, bytes * share / kBytesPerNs);
  if (!plan.by_segment && gains_by_packed_rows(target, plan)) ns *= kLongRowsFactor;
  if (plan.rows == MatmulPlan::Rows::kSegmentCopied) {
    ns *= 1.0 + long_rows(target).copied / static_cast<double>(plan.task_panels());
  }
  ns += rounds * kTaskOverheadNs + step_overhead_ns(plan.tasks(), threads);
  // What is made of the sums; index arithmetic and operands that are computed count as little.
  const double sums = 2.0 * static_cast<double>(plan.batch * plan.m) * static_cast<double>(plan.n) *
                      static_cast<double>(plan.k);
  ns += std::max(group.flops - sums, 0.0) * share / point_flops_per_ns(target);
  const auto packing_ns = [&](double elements, bool computed) {
    return elements * 4 / (kBytesPerNs / 4) / threads * (computed ? kComputedFactor : 1.0);
  };
  const double k = static_cast<double>(plan.k);
  const bool b_computed = !is_linear(group.contraction->b);
  if (plan.weights == MatmulPlan::Weights::kPackedAtRun) {
    ns += packing_ns(static_cast<double>(plan.packed_bytes) / 4, b_computed) +
          step_overhead_ns(plan.b_matrices * plan.panels, threads);
  } else if (plan.weights == MatmulPlan::Weights::kPackedByTask) {
    ns += packing_ns(static_cast<double>(plan.batch) * columns * k, b_computed);
  }
  if (plan.rows == MatmulPlan::Rows::kPackedAtRun) {
    const bool a_computed = !is_linear(group.contraction->a);
    ns += packing_ns(static_cast<double>(plan.a_bytes) / 4, a_computed) +
          step_overhead_ns(plan.a_matrices * plan.row_tiles * plan.a_parts, threads);
  }
  if (plan.rows == MatmulPlan::Rows::kComputed) {
    ns += packing_ns(static_cast<double>(plan.batch * plan.n_blocks) * rows * k, true);
  }
  return ns;
}

std::vector<MatmulStep> matmul_steps(const lower::Group& group, const MatmulPlan& plan,
                                     const std::string& symbol) {
  using backends::Operand;
  using Weights = MatmulPlan::Weights;
  const auto value = [&](size_t buffer) {
    return Operand{Operand::Kind::kValue, group.buffer_values[buffer],
                   group.buffer_offset_bytes(buffer), 0};
  };
  const Operand workspace{Operand::Kind::kWorkspace, ir::kNoId, 0, 0};
  const Operand rows{Operand::Kind::kWorkspace, ir::kNoId, plan.a_workspace, 0};
  std::vector<MatmulStep> steps;
  const lower::Contraction& c = *group.contraction;
  // What a step that evaluates an operand is given: the buffers that it reads in their places.
  const auto operands_of = [&](loop::ExprId read_by, const Operand& to) {
    std::vector<Operand> out;
    for (uint32_t i = 0; i < group.buffer_values.size(); ++i) {
      out.push_back(Reads(c.kernel->pool, i).in(read_by) ? value(i) : to);
    }
    out.push_back(to);
    return out;
  };
  if (plan.rows == MatmulPlan::Rows::kPackedAtRun) {
    MatmulStep pack{symbol + "_rows", {}, plan.a_matrices * plan.row_tiles * plan.a_parts};
    pack.operands = is_linear(c.a) ? std::vector<Operand>{value(c.a.buffer), rows}
                                   : operands_of(c.a.value, rows);
    steps.push_back(std::move(pack));
  }
  if (plan.weights == Weights::kPackedAtRun) {
    MatmulStep pack{symbol + "_pack", {}, plan.b_matrices * plan.panels};
    pack.operands = is_linear(c.b) ? std::vector<Operand>{value(c.b.buffer), workspace}
                                   : operands_of(c.b.value, workspace);
    steps.push_back(std::move(pack));
  }
  MatmulStep multiply{symbol, {}, plan.tasks()};
  if (plan.both_ways) multiply.backwards = symbol + "_back";
  for (size_t i = 0; i < group.buffer_values.size(); ++i) multiply.operands.push_back(value(i));
  for (const uint32_t i : packed_first(c, plan)) multiply.operands[i] = workspace;
  Operand packed{Operand::Kind::kPacked, ir::kNoId, 0, 0};
  if (plan.weights == Weights::kPackedAhead || plan.weights == Weights::kPackedAtRun) {
    multiply.operands.resize(std::max<size_t>(multiply.operands.size(), plan.b_slot + 1));
    multiply.operands[plan.b_slot] = plan.weights == Weights::kPackedAhead ? packed : workspace;
    packed.packed += plan.weights == Weights::kPackedAhead ? 1 : 0;
  }
  if (plan.rows == MatmulPlan::Rows::kPackedAhead) multiply.operands[plan.a_slot] = packed;
  if (plan.rows == MatmulPlan::Rows::kPackedAtRun) {
    multiply.operands.resize(plan.a_slot + 1);
    multiply.operands[plan.a_slot] = rows;
  }
  steps.push_back(std::move(multiply));
  return steps;
}

std::string matmul_key(const MatmulPlan& plan, const std::string& kernel_text) {
  return fmt::format("{} {}x{} blocks {} {} pack {} in {} {} by segment {}\n{}", plan.name,
                     plan.row_tiles, plan.panels, plan.m_blocks, plan.n_blocks,
                     static_cast<int>(plan.rows), plan.a_parts, static_cast<int>(plan.weights),
                     plan.by_segment, kernel_text);
}

}  // namespace pyc::cpu
