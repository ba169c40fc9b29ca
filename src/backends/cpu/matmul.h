#pragma once

// The matrix product of the CPU backend, of f32 and of bytes: register tiles of exact size over a B
// packed in panels, the group's own stores as the epilogue of each tile. Bits are those of the
// generic kernel (docs/NUMERICS.md, contractions): one fma chain per segment of 256, joined in
// order. Tiles, blocks, packing, lanes and threads never enter.
//
// Bytes are multiplied by the target's unit for them and summed in i32, which is exact. Packed,
// they stand in 32-bit elements of `group` consecutive k, zeros behind the last; with these for
// elements all of the above holds, a chain being one segment. What is packed is the byte without
// its zero point: Σ(a−p)(b−q) = Σab − pΣb − qΣa + kpq, in wrapping arithmetic, where Σa and Σb
// stand behind the packed rows and columns.
//
// Operands need not lie in memory as matrices: a convolution's windows, halves and anything else
// that lower/ finds to be a product are evaluated from their expressions while they are packed.
//
// How it runs. A tile of `tile_rows` rows and `tile_columns` columns stays in registers over one
// segment; between segments its totals lie on the stack. A task computes one block of tiles: some
// rows × some panels of one batch entry. It walks the tiles of its rows and, for each, all its
// panels, so that A's rows stay in the first-level cache and the block of B in the second. Cutting
// k into blocks and copying A's rows were measured and cost more than they gave where rows are
// short. What pays is to fetch a panel's columns a few steps ahead into the first-level cache, and
// into the second the block to come of a B that is larger (both x86), and to pack all rows in a
// step of its own where k lies apart (a product with a transposed A, as the gradients of weights
// are).
//
// Long rows of a constant B (on aarch64 with several threads): a task walks the segments of k, for
// each the tiles of its rows, and for each of these its panels. The totals of all its tiles lie in
// scratch between segments. On aarch64, and where rows fall into the same sets of the cache, a
// tile's rows of one segment are copied to scratch first. B is packed in groups of panels, each
// segment by segment, so that what a task reads lies together: strips of panels a power of two
// apart would fall into the same sets too.

#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/codegen.h"
#include "backends/cpu/packing.h"
#include "lower/types.h"
#include "runtime/program.h"

namespace pyc::cpu {

// Steps of k whose fma chain is one segment.
inline constexpr int64_t kMatmulSegment = 256;

// Rows a multiple of half a page apart, in elements of 32 bits, fall into one or two sets of the
// first-level cache.
inline constexpr int64_t kHalfPage = 512;

// A tile register of AMX: so many rows, each of 16 elements of 32 bits.
inline constexpr int kAmxRows = 16;
inline constexpr int kAmxColumns = 16;

// What a matmul kernel is made from; all of it follows from the arguments of plan_matmul.
struct MatmulPlan {
  static constexpr int64_t kLine = 64;
  enum class Weights : uint8_t {
    kPackedAhead,   // a constant, packed by pack_b when the model is compiled
    kPackedAtRun,   // packed by the kernel's first step into the workspace
    kPackedByTask,  // each task packs the block it reads into scratch
    kInPlace,       // read where it lies
  };
  enum class Rows : uint8_t {
    kPackedAhead,    // a constant, packed by pack_a when the model is compiled
    kPackedAtRun,    // copied or evaluated by a step of its own into the workspace
    kInPlace,        // k lies together
    kSegmentCopied,  // by segment: whole segments of each tile are copied to scratch
    kCopied,         // each tile's rows are copied to scratch, by their strides
    kComputed,       // or evaluated into it; by segment, all of a task's are
  };

  // How bytes of an operand are packed.
  struct Bytes {
    bool is_unsigned = false;  // as packed
    bool turned = false;       // their sign bit is: u8 became i8 or i8 u8, 128 apart
    bool sums = false;         // of all k stand behind them
  };

  std::string name;                 // "f32_matmul__neon_8x8"
  double slowdown = 1.0;            // estimated, of its tile against that of plan_matmul
  ByteUnit unit = ByteUnit::kNone;  // kNone: f32
  Bytes a_form;
  Bytes b_form;
  bool swapped = false;  // the unit takes B first
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 0;  // in elements; of bytes rounded up to whole steps of `unroll`
  int64_t segments = 1;

  int lanes = 4;            // elements of one vector value
  int tile_rows = 8;        // of the first `tall_tiles` tiles; the others have one row less
  int tile_columns = 8;     // a multiple of `lanes`
  int unroll = 4;           // steps of k per iteration
  bool a_by_lanes = false;  // four k of a row are loaded as one vector
  int64_t row_tiles = 1;
  int64_t tall_tiles = 1;
  int64_t panels = 1;  // of tile_columns columns; the last may be padded

  int64_t m_blocks = 1;  // tasks are (batch, m block, n block), the last fastest, or see rows_first
  int64_t n_blocks = 1;
  int64_t batch = 1;

  Rows rows = Rows::kInPlace;
  // Of an A that is packed ahead or at run: the matmul step's operand, strides in elements, how
  // many matrices there are, the size of all and where in the workspace they begin.
  uint32_t a_slot = 0;
  std::vector<int64_t> a_batch_strides;
  int64_t a_matrices = 1;
  int64_t a_bytes = 0;
  int64_t a_workspace = 0;
  int64_t a_parts = 1;  // of k, in which a step packs each tile's rows

  // A task walks the segments of k, for each its tiles of rows, for each of these its panels; else
  // its tiles, for each its panels, each with all of k.
  bool by_segment = false;

  Weights weights = Weights::kPackedAhead;
  uint32_t b_slot = 0;         // the matmul step's operand that is B as the tiles read it
  int64_t b_matrices = 1;      // distinct ones
  int64_t b_panel_stride = 0;  // in elements, of B as the tiles read it; by segment, of one
  // By segment: panels stand in so many even groups, each with all its segments one after another,
  // and a task's panels are of one group. As large a group as a task has at most, so that a task
  // reads B as it lies.
  int64_t b_groups = 1;
  int64_t b_k_stride = 0;
  // A panel's columns are cut into so many streams, each with all of k: what has one use comes from
  // far memory faster that way.
  int b_streams = 1;
  std::vector<int64_t> b_batch_strides;

  // The block of B to come is fetched into the second-level cache while the tiles use this one.
  bool fetch_b = false;
  // A tile's rows, one behind the other, are fetched while the tile before is computed.
  bool fetch_a = false;
  // Each step of k fetches B's columns of so many steps on into the first-level cache; 0: none.
  int b_ahead = 0;
  // There is also a function that takes the tasks from the last to the first.
  bool both_ways = false;

  int64_t packed_bytes = 0;   // of B, with padding; 0 when read in place
  int64_t scratch_bytes = 0;  // of a thread: one tile's rows, then the task's block of B
  int64_t b_scratch = 0;      // where that block begins, in bytes

  bool of_bytes() const { return unit != ByteUnit::kNone; }
  // How many k an element has, and how many of one column's lie together in a panel.
  int group() const { return !of_bytes() ? 1 : unit == ByteUnit::kWords ? 2 : 4; }
  int column_elements() const { return unit == ByteUnit::kMmla ? 2 : 1; }
  // As packed for a tile of so many rows: the unit may take them in twos, or 16 at a time.
  int packed_rows(int tile) const {
    const int together = unit == ByteUnit::kMmla ? 2 : unit == ByteUnit::kAmx ? kAmxRows : 1;
    return (tile + together - 1) / together * together;
  }
  // A as the tiles read it, tile after tile: [step of `unroll` elements][row][unroll]; of f32 that
  // is broadcast from memory each row by itself, which takes fewer instructions to write.
  bool a_packed() const { return rows != Rows::kInPlace; }
  bool rows_apart() const { return a_packed() && !a_by_lanes && !of_bytes(); }
  // What a packed row of f32 takes.
  int64_t row_room() const {
    const int64_t elements = rows == Rows::kSegmentCopied ? kMatmulSegment : padded_k();
    const bool spread = rows_apart() && elements % kHalfPage == 0;
    return elements + (spread ? kLine / 4 : 0);
  }
  // In a packed tile of so many rows: from a row to the next, and from a step of k to the next.
  int64_t a_row_stride() const { return rows_apart() ? row_room() : unroll; }
  int64_t a_k_stride(int tile) const { return rows_apart() ? 1 : packed_rows(tile); }
  // From one tile's packed rows to the next; f32's may lie closer.
  int64_t a_tile_elements() const {
    if (!of_bytes()) return tile_rows * row_room();
    return packed_rows(tile_rows) * (padded_k() + (a_form.sums ? 1 : 0));
  }
  int64_t tile_elements() const { return int64_t{tile_rows} * tile_columns; }
  // By segment: where in a thread's scratch the totals of a task's tiles begin, in elements, behind
  // the rows that are copied or evaluated.
  int64_t totals_scratch() const {
    const int64_t tiles = rows == Rows::kSegmentCopied ? 1
                          : rows == Rows::kComputed    ? task_tiles()
                                                       : 0;
    return in_lines(tiles * a_tile_elements() * 4) / 4;
  }
  // The most tiles of rows, and panels, that a task has.
  int64_t task_tiles() const { return (row_tiles + m_blocks - 1) / m_blocks; }
  int64_t task_panels() const { return (panels + n_blocks - 1) / n_blocks; }
  int64_t padded_k() const { return (k + unroll - 1) / unroll * unroll; }
  bool a_placed() const { return rows == Rows::kPackedAhead || rows == Rows::kPackedAtRun; }
  int64_t tasks() const { return batch * m_blocks * n_blocks; }
  // Of much more columns than rows, and a B that fills a second-level cache, the m blocks are
  // fastest: a thread's tasks lie together, and so read all of the rows and a part of B, not the
  // other way round. Else rows stay with the thread that wrote them, and B is read by all.
  bool rows_first() const {
    constexpr int64_t kFillsCache = 2 << 20;
    return n > 2 * m && 4 * n * k >= kFillsCache;
  }
  // What a packed constant takes: whole lines, as memory is handed out.
  static int64_t in_lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
};

// "" when the generator can compute the group, else the reason: "no_contraction", "dtype_not_f32",
// "no_byte_unit", "k_is_zero", "empty", "segment_not_256", "no_free_column", "has_scratch",
// "has_checks", "lanes_not_supported".
std::string matmul_rejected(const lower::Group& group, const CodegenTarget& target);

// Which operands are loads of constants, whose bytes are at hand when the model is compiled.
struct MatmulConstants {
  bool a = false;
  bool b = false;
};

// The group must not be rejected. `threads` steers the sizes of tasks. `pack_rows` off: no rows
// have a workspace.
MatmulPlan plan_matmul(const lower::Group& group, MatmulConstants constants,
                       const CodegenTarget& target, int threads, bool pack_rows = true);

// The same first, then others that may be faster on the machine at hand: a few tiles, and blocks of
// B of half and twice the size where they differ. All have the same bits.
std::vector<MatmulPlan> likely_matmuls(const lower::Group& group, MatmulConstants constants,
                                       const CodegenTarget& target, int threads);

// Workspace for operands packed at run time, scratch per thread, and the packed constants, first
// B's, then A's, whose source is group.buffer_values of the operand's buffer. A constant that the
// epilogue reads too is packed at run time like anything else.
lower::KernelNeeds matmul_needs(const lower::Group& group, const MatmulPlan& plan);

// Estimated time of one run: the slowest of arithmetic, memory and the busiest thread's tasks.
double matmul_cost_ns(const lower::Group& group, const MatmulPlan& plan,
                      const CodegenTarget& target, int threads);

// A constant operand in the plan's layout, from the bytes of its buffer. B: panels of tile_columns
// columns, each [b_streams][k][tile_columns / b_streams], by segment those of each group's segments
// one after another (of bytes [step][tile_columns][column_elements] and the sums), columns beyond n
// zero; requires weights == kPackedAhead. A: see a_packed; requires rows == kPackedAhead. Data is
// null when there is no memory.
runtime::Parameter pack_b(const MatmulPlan& plan, const lower::Contraction& contraction,
                          const void* b_data);
runtime::Parameter pack_a(const MatmulPlan& plan, const lower::Contraction& contraction,
                          const void* a_data);

// How the step that packs a linear B at run time does it.
inline Packing packing_of(const MatmulPlan& plan, const lower::Contraction& contraction) {
  return {.n = plan.n,
          .k = plan.k,
          .columns = plan.tile_columns,
          .lanes = plan.lanes,
          .base = contraction.b.base,
          .row_stride = contraction.b.row_stride,
          .k_stride = contraction.b.k_stride,
          .batch = contraction.batch,
          .batch_strides = contraction.b.batch_strides};
}

// One step of the compiled group. A run executes them in order.
struct MatmulStep {
  std::string symbol;                       // in the object
  std::vector<backends::Operand> operands;  // in the order of the pointer table
  int64_t parallel = 1;
  std::string backwards = {};  // as CompiledStep::backwards
};

// [pack A,] [pack B,] multiply. The multiply step's operands are the group's kernel buffers in
// their order (kValue of group.buffer_values), where a packed operand stands in the place of its
// buffer unless the kernel also reads that as it is (or the operand is no load of one), or it is an
// A packed at run time; then it is appended. A buffer that nothing reads any more is not named: the
// workspace stands there, and a result may lie in its memory (KernelNeeds::read_first). A packed
// constant is kPacked, numbered as in matmul_needs; what is packed at run time kWorkspace. The
// operands of a step that packs are {kValue, kWorkspace} for a linear operand, else the kernel's
// buffers, the workspace in place of those it does not read, and the workspace. No operand may
// overlap one that is written, but in place.
std::vector<MatmulStep> matmul_steps(const lower::Group& group, const MatmulPlan& plan,
                                     const std::string& symbol = std::string(kDefaultSymbol));

// Equal keys give equal objects: everything the code depends on but the target and the symbol.
// `kernel_text` is that of the contraction's kernel.
std::string matmul_key(const MatmulPlan& plan, const std::string& kernel_text);

// Both steps' functions as one relocatable object, as LLVM IR after the pass list, as assembly.
Result<std::string> emit_matmul_object(const lower::Group& group, const MatmulPlan& plan,
                                       const CodegenTarget& target,
                                       const std::string& symbol = std::string(kDefaultSymbol));
Result<std::string> emit_matmul_llvm_text(const lower::Group& group, const MatmulPlan& plan,
                                          const CodegenTarget& target);
Result<std::string> emit_matmul_assembly(const lower::Group& group, const MatmulPlan& plan,
                                         const CodegenTarget& target);

// A kernel that does nothing but fma in registers, to measure what a core can do: each of its
// parallel points does `fma_probe_flops` operations. Its one buffer holds 2 · lanes floats.
inline constexpr int kFmaProbeDepth = 4;
Result<std::string> emit_fma_probe_object(const CodegenTarget& target,
                                          const std::string& symbol = std::string(kDefaultSymbol));
// Enough chains to hide the latency, few enough for the registers.
inline int fma_probe_chains(const CodegenTarget& target) {
  return target.is_aarch64() ? 96 / target.lanes : 12;
}
int64_t fma_probe_flops(const CodegenTarget& target);

}  // namespace pyc::cpu
