#include "backends/cuda/generators/wgmma_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/generators/product_runs.h"
#include "backends/cuda/generators/wgmma_bring.h"
#include "backends/cuda/generators/wgmma_epilogue.h"
#include "backends/cuda/generators/wgmma_maps.h"
#include "backends/cuda/generators/wgmma_prelude.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/launch.h"
#include "base/matrix_unit.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;
using loop::VarId;

constexpr int64_t kDepth = kStageDepth;
constexpr int64_t kRowBytes = kStageRowBytes;
constexpr int64_t kChunk = 8;      // elements of 16 bytes
constexpr int64_t kThreads = 128;  // that compute kRows rows together, or bring operands
constexpr int64_t kRows = kGroupRows;
constexpr int64_t kBlock = 16;  // of k in one instruction
constexpr int64_t kGateBytes = 8;
constexpr int64_t kMostShared = 227 << 10;
constexpr int64_t kReservedShared = 1 << 10;  // of each block
constexpr int64_t kFewStages = 4;
constexpr int64_t kEarlyStages = 2;      // of a ring that maps fill
constexpr double kMostTiles = 1e9;       // tiles are counted in i32
constexpr int64_t kMostRegisters = 232;  // of a thread
constexpr int64_t kRegisters = 1 << 16;  // of a multiprocessor
constexpr int64_t kOtherRegisters = 40;  // besides sums
constexpr int64_t kLeastRegisters = 72;  // of threads that bring 16 bytes at a time
constexpr int64_t kMostResident = 3;
// Three or four groups of threads begin with as many registers each, and share them out again if
// the sums of all but one need more.
constexpr int64_t kSpareRegisters = 64;
constexpr int64_t kFewestRegisters = 40;

const lower::Contraction::Operand& operand_of(const WgmmaProduct& product, bool of_b) {
  return of_b ? product.contraction().b : product.contraction().a;
}
VarId row_var_of(const lower::Contraction& c, bool of_b) { return of_b ? c.n_var : c.m_var; }
int64_t row_count_of(const lower::Contraction& c, bool of_b) { return of_b ? c.n : c.m; }

int64_t stage_bytes(const WgmmaTile& tile) { return (tile.rows + tile.columns) * kRowBytes; }
// Of a thread that multiplies.
int64_t sums_of(const WgmmaTile& tile) { return wgmma_row_blocks(tile) * tile.columns / 2; }
// Where in shared memory what lies, behind the ring.
int64_t sums_at(const WgmmaTile& tile) { return tile.stages * stage_bytes(tile); }
int64_t gates_at(const WgmmaTile& tile) { return sums_at(tile) + wgmma_piece_bytes(tile); }
int64_t turn_gates_at(const WgmmaTile& tile) {
  return gates_at(tile) + 2 * tile.stages * kGateBytes;
}
int64_t shared_bytes(const WgmmaTile& tile) {
  return turn_gates_at(tile) + tile.turns * kGateBytes;
}
int64_t segment_of(DType factors) { return find_matrix_unit("sm90", factors)->segment; }

constexpr int64_t kMostTogether = 8;  // blocks of a cluster

// What of a product a kernel computes: all of it, with one block after the other or with the
// segments of a tile together in a cluster; or sums of segments, or what joins them.
enum class Part : uint8_t { kWhole, kTogether, kSegments, kJoin };

bool brings_elements(const WgmmaProduct& product) {
  return wgmma_bring(product, false) == WgmmaBring::kElements ||
         wgmma_bring(product, true) == WgmmaBring::kElements;
}

// Threads that bring: twice as many where they compute elements. One has maps do it, and a warp is
// enough where no group gives registers to another.
int64_t bringing_threads(const WgmmaProduct& product) {
  if (product.tile.maps && wgmma_groups(product.tile) == 1) return kWarpThreads;
  return brings_elements(product) ? 2 * kThreads : kThreads;
}
int64_t threads_of(const WgmmaProduct& product) {
  return wgmma_groups(product.tile) * kThreads + bringing_threads(product);
}

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Of a thread that multiplies, roughly: sums, totals where segments follow one another, addresses.
int64_t registers_of(const WgmmaProduct& product) {
  const bool apart = wgmma_segments(product) > 1 && !product.tile.split;
  return kOtherRegisters + (apart ? 2 : 1) * sums_of(product.tile);
}

// Of threads that multiply and of those that bring, where they share them out unequally.
struct RegisterShares {
  int64_t multiplying = 0;
  int64_t bringing = 0;
};
std::optional<RegisterShares> register_shares(const WgmmaProduct& product) {
  const int64_t wanted = registers_of(product) + kSpareRegisters;
  const int64_t groups = wgmma_groups(product.tile);
  const int64_t equal = kRegisters / threads_of(product) / 8 * 8;
  if (groups == 1 || brings_elements(product) || wanted <= equal) return std::nullopt;
  const int64_t all = (groups + 1) * equal;
  const int64_t most =
      std::min({kMostRegisters, rounded_up(wanted, 8), (all - kFewestRegisters) / groups / 8 * 8});
  return RegisterShares{most, all - groups * most};
}

// Of a thread that multiplies, besides what it needs for that and for its results.
int64_t registers_left(const WgmmaProduct& product) {
  const auto shares = register_shares(product);
  const int64_t all =
      shares ? shares->multiplying
             : std::min(kRegisters / threads_of(product) / wgmma_resident(product), kMostRegisters);
  return all - registers_of(product);
}

class WgmmaWriter {
 public:
  WgmmaWriter(const WgmmaProduct& product, Part part, std::string symbol)
      : p_(product),
        c_(product.contraction()),
        part_(part),
        symbol_(std::move(symbol)),
        kernel_(*c_.kernel) {
    product_of(kernel_).value = c_.a.value;
    product_of(kernel_).value2 = c_.b.value;
    kernel_ = loop::without_calls(std::move(kernel_));
    rows_ = side(p_.tile.swapped, p_.tile.rows);
    columns_ = side(!p_.tile.swapped, p_.tile.columns);
    out_.symbol = symbol_;
    out_.form = fmt::format("wgmma {}x{}{}{}", p_.tile.rows, p_.tile.columns,
                            p_.tile.swapped ? " swapped" : "", part_ == Part::kJoin ? " join" : "");
    out_.buffers = parameters_of(kernel_);
    multiplying_ = wgmma_groups(p_.tile) * kThreads;
    bringing_ = bringing_threads(p_);
    out_.threads = static_cast<uint32_t>(multiplying_ + (part_ == Part::kJoin ? 0 : bringing_));
    tiles_ = tiles_of(rows_) * tiles_of(columns_) * c_.batch_size();
    const int64_t segments = wgmma_segments(p_);
    items_ = of_segments() ? tiles_ * segments : tiles_;
    const bool in_turn = part_ == Part::kWhole || part_ == Part::kSegments;
    out_.blocks = static_cast<uint32_t>(
        in_turn ? std::min(items_, kMultiprocessors * wgmma_resident(p_)) : items_);
    out_.shared_bytes = static_cast<uint32_t>(shared_bytes(p_.tile));
    if (by_maps()) add_maps();
    if (part_ == Part::kSegments || part_ == Part::kJoin) {
      out_.workspace_bytes = tiles_ * segments * p_.tile.rows * p_.tile.columns * 4;
    }
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      unaligned_.push_back(p_.group->buffer_offset_bytes(b) % kBufferAlignment != 0);
    }
  }

  KernelText write() {
    const auto shares = register_shares(p_);
    const WgmmaInstruction instruction{.factors = p_.factors,
                                       .columns = p_.tile.columns,
                                       .a_along_rows = rows_.along_rows(),
                                       .b_along_rows = columns_.along_rows(),
                                       .fewer_registers = shares ? shares->bringing : 0,
                                       .more_registers = shares ? shares->multiplying : 0};
    out_.text = wgmma_prelude(instruction) + (by_maps() ? map_prelude() : "") +
                Emitter(kernel_, cuda_dialect(), symbol_).tables();
    std::string body = "const i32 thread = pyc_thread();\n";
    if (part_ == Part::kJoin) {
      body += each_item(joined() + epilogue());
    } else {
      if (!by_maps()) {
        const WgmmaBringing all{.kernel = kernel_,
                                .contraction = c_,
                                .symbol = symbol_,
                                .parameters = buffer_parameters(),
                                .threads = bringing_,
                                .knows_terms = knows_terms()};
        out_.text += wgmma_bring_function(all, rows_, "rows") +
                     wgmma_bring_function(all, columns_, "columns");
      }
      body += gates() + fmt::format("if (thread >= {}) {{\n{}}} else {{\n{}}}\n", multiplying_,
                                    bringing(), multiplying());
    }
    const int64_t cluster = part_ == Part::kTogether ? wgmma_segments(p_) : 1;
    if (by_maps()) out_.text += fmt::format("PYC_MAPPED({}, {})\n", symbol_, out_.maps.size());
    out_.text +=
        kernel_head(out_, kernel_, true, wgmma_resident(p_), cluster) + " {\n" + body + "}\n";
    return std::move(out_);
  }

 private:
  bool by_maps() const { return p_.tile.maps && part_ != Part::kJoin; }
  void add_maps() {
    for (const WgmmaSide* s : {&rows_, &columns_}) {
      auto map = map_of(mapped_side(kernel_.pool, *s));
      PYC_CHECK(map.has_value(), "wgmma_fits was asked");
      const auto buffer = static_cast<uint32_t>(kernel_.pool.node(s->value).imm);
      map->buffer = static_cast<uint32_t>(
          std::find(out_.buffers.begin(), out_.buffers.end(), buffer) - out_.buffers.begin());
      out_.maps.push_back(*map);
    }
    out_.map_names = {"rows_map", "columns_map"};
  }
  MappedSide mapped_side(const loop::Pool& pool, const WgmmaSide& s) const {
    return side_of_stage(pool, s.value, p_, s.of_b);
  }

  bool of_segments() const { return part_ == Part::kSegments || part_ == Part::kTogether; }
  int64_t sums() const { return sums_of(p_.tile); }
  int64_t k_stages() const { return (c_.k + kDepth - 1) / kDepth; }
  // Whether all stages are written out, so that for elements that come one by one all that follows
  // from k is a constant: the window of a first convolution has few channels and few terms.
  bool knows_terms() const { return writes() && k_stages() <= kFewStages; }

  loop::Reduction& product_of(loop::Kernel& kernel) const {
    const auto inner =
        std::find_if(kernel.loops.begin(), kernel.loops.end(), [&](const loop::Loop& l) {
          return !l.reductions.empty() && l.reductions[0].result == c_.result;
        });
    PYC_CHECK(inner != kernel.loops.end(), "a contraction has its reduction");
    return inner->reductions[0];
  }

  WgmmaSide side(bool of_b, int64_t rows) {
    WgmmaSide s;
    const loop::Reduction& product = product_of(kernel_);
    const ExprId value = of_b ? product.value2 : product.value;
    const loop::ExprNode& n = kernel_.pool.node(value);
    const bool widened = n.op == loop::Op::kConvert && kernel_.pool.dtype(n.a) == p_.factors;
    s.value = widened ? n.a : kernel_.pool.convert(value, p_.factors);
    s.var = row_var_of(c_, of_b);
    s.extent = row_count_of(c_, of_b);
    s.rows = rows;
    s.of_b = of_b;
    s.bring = wgmma_bring(p_, of_b);
    return s;
  }

  static int64_t tiles_of(const WgmmaSide& s) { return (s.extent + s.rows - 1) / s.rows; }

  std::string buffer_parameters() const {
    std::string text;
    for (const uint32_t b : out_.buffers) {
      const loop::Buffer& buffer = kernel_.buffers[b];
      text +=
          fmt::format("PYC_GLOBAL {}{}* {}, ", buffer.access == loop::Access::kRead ? "const " : "",
                      memory_type(buffer.dtype), buffer_name(b));
    }
    return text;
  }
  std::string buffer_arguments() const {
    std::string text;
    for (const uint32_t b : out_.buffers) text += buffer_name(b) + ", ";
    return text;
  }

  // The loop over what this block computes: tiles, or tiles of one segment each.
  std::string each_item(const std::string& body) const {
    return fmt::format("for (i32 item = pyc_block(); item < {}; item += {}) {{\n{}{}}}\n", items_,
                       out_.blocks, place(), body);
  }

  // Segments of a tile are neighbours where they run together.
  std::string number() const {
    return part_ == Part::kTogether ? fmt::format("item / {}", wgmma_segments(p_))
                                    : fmt::format("item % {}", tiles_);
  }
  std::string segment() const {
    return part_ == Part::kTogether ? fmt::format("item % {}", wgmma_segments(p_))
                                    : fmt::format("item / {}", tiles_);
  }

  // Which tile an item is. Blocks that run together read few rows and few columns.
  std::string place() const {
    const int64_t across = tiles_of(columns_);
    const int64_t down = tiles_of(rows_);
    // Bands of one height need no division at run time.
    constexpr int64_t kBand = 8;
    int64_t tall = kBand;
    while (tall > kBand / 2 && down % tall != 0) --tall;
    const bool is_even = down % tall == 0;
    if (!is_even) tall = kBand;
    std::string text = fmt::format(
        "const i32 number = {1};\nconst i32 batch = number / {0}, tile = number % {0};\n",
        across * down, number());
    if (down <= kBand) {
      return text + fmt::format(
                        "const i32 first_row = tile % {0} * {1}, "
                        "first_column = tile / {0} * {2};\n",
                        down, rows_.rows, columns_.rows);
    }
    return text + fmt::format(
                      "const i32 band = tile / {0} * {1}, in_band = tile % {0};\n"
                      "const i32 height = {2};\n"
                      "const i32 first_row = (band + in_band % height) * {3}, "
                      "first_column = in_band / height * {4};\n",
                      tall * across, tall,
                      is_even ? fmt::format("{}", tall)
                              : fmt::format("{0} - band < {1} ? {0} - band : {1}", down, tall),
                      rows_.rows, columns_.rows);
  }

  // A stage has two gates: one opens when it is full, one when it is empty again. Both are passed
  // in turns, the first with parity 0. Every thread that brings reports to the first, for what it
  // copies and for what it writes itself; a warp that has multiplied reports to the second.
  std::string full_gate(const std::string& slot) const {
    return fmt::format("{}u + {} * {}u", gates_at(p_.tile), slot, kGateBytes);
  }
  std::string empty_gate(const std::string& slot) const {
    return fmt::format("{}u + {} * {}u", gates_at(p_.tile) + p_.tile.stages * kGateBytes, slot,
                       kGateBytes);
  }
  // Of groups that take turns each has one more, which its warps open once in a turn: when its last
  // stage is there and the next group may multiply. The stages' gates tell even from odd turns
  // only, so that who waits at one must not have missed another: this one sees to that.
  std::string turn_gate(const std::string& group) const {
    return fmt::format("{}u + (u32)({}) * {}u", turn_gates_at(p_.tile), group, kGateBytes);
  }
  bool copies() const { return !rows_.elements() || !columns_.elements(); }
  bool writes() const { return rows_.elements() || columns_.elements(); }
  // Gates are made one after the other in a warp, so all warps make some; but the first stages are
  // on their way before.
  std::string gates() const {
    const int64_t reports = by_maps() ? 1 : bringing_ * ((copies() ? 1 : 0) + (writes() ? 1 : 0));
    const int64_t early = by_maps() ? kEarlyStages : 0;
    const int64_t making = by_maps() ? multiplying_ : multiplying_ + bringing_;
    const auto each = [&](int64_t first, const std::string& gate, int64_t count) {
      return fmt::format(
          "PYC_ROLLED for (u32 i = {}u + (u32)thread / {}u; i < {}u; i += {}u) pyc_gate_init({}, "
          "{}u);\n",
          first, kWarpThreads, p_.tile.stages, making / kWarpThreads, gate, count);
    };
    const std::string made =
        fmt::format("if (thread % {} == 0 && thread < {}) {{\n{}{}{}}}\npyc_barrier();\n",
                    kWarpThreads, making, each(early, full_gate("i"), reports) + turn_gates(),
                    each(0, empty_gate("i"), freeing()), by_maps() ? "pyc_gates_ready();\n" : "");
    return by_maps() ? first_copies() + made : made;
  }
  // Warps that multiply with one stage.
  int64_t freeing() const { return (p_.tile.turns > 0 ? kThreads : multiplying_) / kWarpThreads; }
  std::string turn_gates() const {
    if (p_.tile.turns == 0) return "";
    return fmt::format(
        "if (thread == {}) PYC_ROLLED for (u32 i = 0; i < {}u; ++i) pyc_gate_init({}u + i * {}u, "
        "{}u);\n",
        multiplying_ - kWarpThreads, p_.tile.turns, turn_gates_at(p_.tile), kGateBytes, freeing());
  }
  std::string first_copies() const {
    std::string text;
    for (int64_t e = 0; e < kEarlyStages; ++e) {
      text += fmt::format("pyc_gate_init({}, 1u);\n", full_gate(fmt::format("{}u", e)));
    }
    return fmt::format(
        "if (thread == {}) {{\n{}pyc_gates_ready();\nconst i32 item = pyc_block();\n{}{}"
        "PYC_UNROLL for (i32 e = 0; e < {}; ++e) {{\nconst i32 t = first + e;\n"
        "const u32 slot = (u32)e;\nif (t >= last) break;\n{}}}\n}}\n",
        multiplying_, text, place(), first_and_last(), kEarlyStages, stage_by_maps());
  }
  std::string next_slot() const {
    return fmt::format("if (++slot == {}u) {{\nslot = 0;\nturn ^= 1u;\n}}\n", p_.tile.stages);
  }

  // The stages of an item.
  std::string first_and_last() const {
    if (!of_segments()) {
      return fmt::format("const i32 first = 0, last = {};\n", k_stages());
    }
    return fmt::format(
        "const i32 first = {0} * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", segment(),
        segment_of(p_.factors) / kDepth, k_stages());
  }

  // What begins to bring stage t.
  std::string stage_by_maps() const {
    const std::string gate = full_gate("slot");
    std::string stage =
        fmt::format("const u32 to = slot * {0}u;\npyc_gate_expect_bytes({1}, {0}u);\n",
                    stage_bytes(p_.tile), gate);
    stage += map_copies(mapped_side(kernel_.pool, rows_), "rows_map", "first_row", "to", gate);
    return stage + map_copies(mapped_side(kernel_.pool, columns_), "columns_map", "first_column",
                              fmt::format("to + {}u", rows_.bytes()), gate);
  }
  // What one thread does that has the device bring operands by their maps, and its warp.
  std::string bringing_by_maps() const {
    const std::string ahead =
        wgmma_prefetches(what_follows(), multiplying_, part_ == Part::kTogether ? segment() : "");
    const std::string begin = fmt::format(
        "i32 t = first;\nif (item == pyc_block()) {{\nt = last < first + {0} ? last : first + "
        "{0};\n"
        "slot = (u32)(t - first);\n}}\n",
        kEarlyStages);
    return "pyc_fewer_registers();\nu32 slot = 0, turn = 1;\n" +
           each_item(first_and_last() + ahead + begin +
                     fmt::format("if (thread == {}) for (; t < last; ++t) {{\npyc_gate_wait({}, "
                                 "turn);\n{}{}}}\n",
                                 multiplying_, empty_gate("slot"), stage_by_maps(), next_slot()) +
                     (ahead.empty() ? "" : "pyc_warp_barrier();\n") +
                     (part_ == Part::kTogether ? met() : ""));
  }

  // What the threads do that bring operands.
  std::string bringing() const {
    if (by_maps()) return bringing_by_maps();
    std::string stage = fmt::format("pyc_gate_wait({}, turn);\nconst u32 to = slot * {}u;\n",
                                    empty_gate("slot"), stage_bytes(p_.tile));
    const auto bring = [&](const char* side, int64_t further) {
      return fmt::format("{}_{}({}(u32)(thread - {}) % {}u, batch, first_{}, t * {}, to + {}u);\n",
                         symbol_, side, buffer_arguments(), multiplying_, bringing_,
                         further == 0 ? "row" : "column", kDepth, further);
    };
    stage += bring("rows", 0) + bring("columns", rows_.bytes());
    if (copies()) stage += fmt::format("pyc_gate_arrive_copied({});\n", full_gate("slot"));
    if (writes()) {
      stage += fmt::format("pyc_shared_fence();\npyc_gate_arrive({});\n", full_gate("slot"));
    }
    return "pyc_fewer_registers();\nu32 slot = 0, turn = 1;\n" +
           each_item(first_and_last() + (knows_terms() ? "PYC_UNROLL " : "") +
                     "for (i32 t = first; t < last; ++t) {\n" + stage + next_slot() + "}\n" +
                     (part_ == Part::kTogether ? met() : ""));
  }

  // What the threads do that multiply. Groups of them go each at its own pace, so that one
  // multiplies while the other is at its results.
  std::string multiplying() const {
    if (p_.tile.turns > 0) return multiplying_in_turns();
    return "pyc_more_registers();\nu32 slot = 0, turn = 0;\n" +
           each_item(first_and_last() + products() + results());
  }
  // Tiles of the block are numbered by q, and the groups have them in turn.
  std::string multiplying_in_turns() const {
    return fmt::format(
               "pyc_more_registers();\nfor (i32 q = thread / {0};; q += {1}) {{\n"
               "const i32 item = pyc_block() + q * {2};\nif (item >= {3}) break;\n"
               "const u32 stage = (u32)q * {4}u;\n"
               "u32 slot = stage % {5}u, turn = stage / {5}u % 2u;\n"
               "if (q > 0) pyc_gate_wait({6}, (u32)((q - 1) / {1} % 2));\n",
               kThreads, p_.tile.turns, out_.blocks, items_, k_stages(), p_.tile.stages,
               turn_gate(fmt::format("(q - 1) % {}", p_.tile.turns))) +
           place() + first_and_last() + products() + epilogue() + "}\n";
  }
  std::string results() const {
    if (part_ == Part::kSegments) return kept();
    return part_ == Part::kTogether ? together() : epilogue();
  }

  // Where all threads of the cluster meet: when the ring is no longer needed, when the sums of all
  // segments lie in its place, and when they were read.
  static std::string met(const std::string& leave = "", const std::string& take = "") {
    return "pyc_barrier();\n" + leave + "pyc_cluster_barrier();\n" + take + "pyc_cluster_part();\n";
  }
  // Every block joins its share of the tile.
  std::string together() const {
    const std::string leave = fmt::format(
        "PYC_UNROLL for (i32 i = 0; i < {}; ++i) pyc_put2((PYC_NEAR float*)(pyc_shared + "
        "(u32)(i * {} + thread) * 8u), total[2 * i], total[2 * i + 1]);\n",
        sums() / 2, multiplying_);
    return met(leave, fmt::format("const i32 rank = {};\n{}", segment(), epilogue()));
  }

  // The unit's view of a side's part at `at`: rows of 8 groups, or groups of 64 rows.
  static std::string view(const WgmmaSide& s, const std::string& at) {
    return fmt::format("pyc_wgmma_place({}, {}u, {}u)", at,
                       s.along_rows() ? kDepth * kRowBytes : kBlock, 8 * kRowBytes);
  }
  static int64_t block_bytes(const WgmmaSide& s) {
    return s.along_rows() ? kBlock * kRowBytes : kBlock * 2;
  }

  // `total` of each of the thread's elements, or of those of the item's segment. One segment alone
  // is summed where its total is: +0 and a sum are the sum, which is never −0.
  std::string products() const {
    const std::string each = fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) ", sums());
    std::string text = fmt::format("float total[{}];\n", sums());
    if (k_stages() == 0) return text + each + "total[i] = 0.0f;\n";
    const bool alone = of_segments() || wgmma_segments(p_) == 1;
    if (alone)
      return text + "{\nconst i32 begin = first, end = last;\n" + segment_sums("total") + "}\n";
    text += fmt::format("{}total[i] = 0.0f;\n", each);
    text += fmt::format(
        "for (i32 begin = first; begin < last; begin += {0}) {{\n"
        "const i32 end = begin + {0} < last ? begin + {0} : last;\nfloat sum[{1}];\n",
        segment_of(p_.factors) / kDepth, sums());
    return text + segment_sums("sum") + each + "total[i] = pyc_add_f32(total[i], sum[i]);\n}\n";
  }

  static constexpr int64_t kBlockBytes = kRows * kRowBytes;
  // The sums of stages begin … end - 1.
  std::string segment_sums(const char* sum) const {
    std::string text = fmt::format(
        "u32 before = 0;\nfor (i32 t = begin; t < end; ++t) {{\n"
        "pyc_gate_wait({0}, turn);\n{4}"
        "const u32 a_at = slot * {1}u + {2}, b_at = slot * {1}u + {3}u;\n"
        "pyc_wgmma_fence();\n",
        full_gate("slot"), stage_bytes(p_.tile),
        p_.tile.turns > 0 ? "0u" : fmt::format("(u32)(thread / {}) * {}u", kThreads, kBlockBytes),
        rows_.bytes(), by_maps() ? "" : "pyc_shared_fence();\n");
    for (int64_t b = 0; b < kDepth / kBlock; ++b) {
      for (int64_t r = 0; r < wgmma_row_blocks(p_.tile); ++r) {
        const int64_t a_at = b * block_bytes(rows_) + r * kBlockBytes;
        text += fmt::format("pyc_wgmma({}{}, {}, {}, {});\n", sum,
                            r == 0 ? "" : fmt::format(" + {}", r * p_.tile.columns / 2),
                            view(rows_, fmt::format("a_at + {}u", a_at)),
                            view(columns_, fmt::format("b_at + {}u", b * block_bytes(columns_))),
                            b == 0 ? "t != begin" : "1");
      }
    }
    const std::string empty =
        fmt::format("thread % 32 == 0) pyc_gate_arrive({});\n", empty_gate("before"));
    return text + "pyc_wgmma_commit();\npyc_wgmma_wait_1();\nif (t != begin && " + empty +
           "before = slot;\n" + next_slot() + "}\n" +
           (p_.tile.turns > 0
                ? fmt::format("if (thread % {} == 0) pyc_gate_arrive({});\n", kWarpThreads,
                              turn_gate(fmt::format("q % {}", p_.tile.turns)))
                : "") +
           "pyc_wgmma_wait_0();\nif (" + empty;
  }

  // Where segment `segment` of this tile has the thread's sums in the workspace.
  std::string kept_at(const std::string& segment) const {
    return fmt::format("(PYC_GLOBAL float*)workspace + ((i64)({}) * {} + number) * {} + thread",
                       segment, tiles_, p_.tile.rows * p_.tile.columns);
  }
  // A total is +0 plus the segment's sum, so it is what the sum alone is: no sum is −0.
  std::string kept() const {
    return fmt::format(
        "PYC_GLOBAL float* to = {};\nPYC_UNROLL for (i32 i = 0; i < {}; ++i) to[i * {}] = "
        "total[i];\n",
        kept_at(segment()), sums(), multiplying_);
  }
  std::string joined() const {
    return fmt::format(
        "float total[{0}];\nPYC_UNROLL for (i32 i = 0; i < {0}; ++i) total[i] = 0.0f;\n"
        "for (i32 s = 0; s < {1}; ++s) {{\nPYC_GLOBAL const float* from = {2};\n"
        "PYC_UNROLL for (i32 i = 0; i < {0}; ++i) total[i] = pyc_add_f32(total[i], from[i * "
        "{3}]);\n}}\n",
        sums(), wgmma_segments(p_), kept_at("s"), multiplying_);
  }

  std::string epilogue() const { return wgmma_epilogue(what_follows()); }
  WgmmaEpilogue what_follows() const {
    return {.kernel = kernel_,
            .contraction = c_,
            .unaligned = unaligned_,
            .symbol = symbol_,
            .tile = p_.tile,
            .row_extent = rows_.extent,
            .column_extent = columns_.extent,
            .at = sums_at(p_.tile),
            .registers = registers_left(p_),
            .segments = part_ == Part::kTogether ? wgmma_segments(p_) : 1};
  }

  const WgmmaProduct& p_;
  const lower::Contraction& c_;
  Part part_;
  std::string symbol_;
  loop::Kernel kernel_;
  WgmmaSide rows_;
  WgmmaSide columns_;
  int64_t tiles_ = 0;
  int64_t items_ = 0;        // that blocks take in turn
  int64_t multiplying_ = 0;  // threads
  int64_t bringing_ = 0;
  std::vector<bool> unaligned_;
  KernelText out_;
};

}  // namespace

int64_t wgmma_segments(const WgmmaProduct& product) {
  const int64_t segment = segment_of(product.factors);
  return (product.contraction().k + segment - 1) / segment;
}

WgmmaBring wgmma_bring(const WgmmaProduct& product, bool of_b) {
  const lower::Contraction& c = product.contraction();
  if (product.packing && product.packing->of_a != of_b) return WgmmaBring::kAlongK;
  const loop::Pool& pool = c.kernel->pool;
  const ExprId load = padded_load(pool, operand_of(product, of_b).value, product.factors);
  if (load == kNone) return WgmmaBring::kElements;
  const auto buffer = static_cast<uint32_t>(pool.node(load).imm);
  if (product.group->buffer_offset_bytes(buffer) % kBufferAlignment != 0) {
    return WgmmaBring::kElements;
  }
  if (lies_in_runs(pool, load, c.k_var, c.k, kChunk)) return WgmmaBring::kAlongK;
  const bool along_rows =
      lies_in_runs(pool, load, row_var_of(c, of_b), row_count_of(c, of_b), kChunk);
  const bool in_columns = of_b != product.tile.swapped;
  const int64_t rows = in_columns ? product.tile.columns : product.tile.rows;
  return along_rows && rows % kRows == 0 ? WgmmaBring::kAlongRows : WgmmaBring::kElements;
}

bool wgmma_together(const WgmmaProduct& product) {
  return product.tile.split && wgmma_segments(product) <= kMostTogether;
}

bool wgmma_fits(const WgmmaProduct& product) {
  const WgmmaTile& tile = product.tile;
  const int64_t segments = wgmma_segments(product);
  if (tile.split && segments < 2) return false;
  if (tile.turns > 0 && (segments > 1 || tile.swapped || !tile.maps)) return false;
  const lower::Contraction& c = product.contraction();
  const double items = static_cast<double>(c.m) * static_cast<double>(c.n) *
                       static_cast<double>(c.batch_size()) * static_cast<double>(segments) /
                       static_cast<double>(tile.rows * tile.columns);
  const auto shares = register_shares(product);
  const int64_t registers =
      shares ? shares->multiplying
             : std::min(kRegisters / threads_of(product) / 8 * 8, kMostRegisters);
  return items <= kMostTiles && shared_bytes(product.tile) <= kMostShared &&
         registers_of(product) <= registers && (!tile.maps || wgmma_has_maps(product));
}

int64_t wgmma_resident(const WgmmaProduct& product) {
  if (product.tile.turns > 0 || register_shares(product)) return 1;
  const int64_t registers = rounded_up(std::max(registers_of(product), kLeastRegisters), 8);
  // Two blocks of 64x192 with three stages each, which have room, take 100 µs for 12288x3072x768,
  // where one of 192x192 takes 88: a warp that brings counts as a group.
  const int64_t threads =
      wgmma_groups(product.tile) * kThreads + std::max(bringing_threads(product), kThreads);
  return std::clamp(std::min(kMostShared / (shared_bytes(product.tile) + kReservedShared),
                             kRegisters / (threads * registers)),
                    int64_t{1}, kMostResident);
}

std::vector<KernelText> wgmma_texts(const WgmmaProduct& product, const std::string& symbol) {
  std::vector<KernelText> out;
  const auto add = [&](Part part) { out.push_back(WgmmaWriter(product, part, symbol).write()); };
  if (!product.tile.split) {
    add(Part::kWhole);
    return out;
  }
  if (wgmma_together(product)) {
    add(Part::kTogether);
    return out;
  }
  add(Part::kSegments);
  add(Part::kJoin);
  return out;
}

}  // namespace pyc::cuda
