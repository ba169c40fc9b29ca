// Rows of which a block has two or four: brought to shared memory before their turn, by bulk
// copies.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/row_emitter.h"

namespace pyc::cuda {

using loop::Affine;
using loop::ExprId;

namespace {

// Warps of a block that has two teams.
constexpr int64_t kMostTeamWarps = 32;
// Rounds that leave together, and places of a warp for them: the first that there is room for.
constexpr std::pair<int64_t, int64_t> kSent[] = {{4, 2}, {1, 3}};

}  // namespace

// Where all else that is read is the same for all rows, one block has two rows at a time, each by
// half of its threads: what all rows read is in shared memory once, a warp's part of the row that
// comes next arrives there while both teams compute. Results of floats leave from there while the
// next row is computed; halves are bound by instructions, of which that would be more.
//
// Only for rows that wait for each other's parts twice: else as many rows as there is room for,
// each with a block of its own, are faster (0.97 of a copy for 0.92 where floats are divided by a
// norm).
std::optional<RowEmitter::Brought> RowEmitter::row_to_bring() {
  const auto waits = std::count_if(passes_.begin(), passes_.end(),
                                   [](const loop::Loop& l) { return !l.reductions.empty(); });
  if (waits < 2) return std::nullopt;
  if (together_ != kClusterOfGroup || !is_whole_ || beside() < kTeamsOfBlock ||
      kMostTeamWarps / block_warps_ != kTeamsOfBlock ||
      kernel_.parallel_size() <= kTeamsOfBlock * clusters_at_once()) {
    return std::nullopt;
  }
  std::map<Key, RowLoad> rows;
  std::set<Key> weights;
  int64_t bytes = kSharedOfBlock + kTeamsOfBlock * told_shared(1);
  bool fits = true;
  for (const loop::Loop& l : passes_) {
    each_row_load(l, [&](ExprId, const RowLoad& load) {
      fits = fits && lies_in_pairs(load.buffer, load.base);
      if (is_row_by_row(load.base)) {
        rows.emplace(load.key(), load);
      } else if (load.base.terms.empty() && passes_with_[load.key()] == 1) {
        if (weights.insert(load.key()).second) bytes += bytes_of_block(load.dtype);
      } else {
        fits = false;
      }
    });
    fits = fits && rows.size() == 1;
  }
  if (!fits || passes_with_[rows.begin()->first] == 1) return std::nullopt;
  Brought brought{rows.begin()->second};
  const int64_t of_block = bytes_of_block(brought.row.dtype);
  if (is_half(brought.row.dtype)) {
    if (bytes + kTeamsOfBlock * of_block > kSharedOfAll) return std::nullopt;
    const int64_t more = kTeamsOfBlock * (told_shared(1) + of_block);
    const bool fits_four = bytes + kTeamsOfBlock * of_block + more <= kSharedOfAll;
    if (fits_four && can_have_both()) brought.blocks_of_warp = kBlocksOfBoth;
    return brought;
  }
  if (brought.row.dtype != DType::kF32 || !sends_alone()) return std::nullopt;
  for (const auto& [rounds, places] : kSent) {
    if (bytes + of_block + kTeamsOfBlock * of_block * rounds * places / rounds_ > kSharedOfAll) {
      continue;
    }
    brought.sent_rounds = rounds;
    brought.sent_places = places;
    return brought;
  }
  return std::nullopt;
}

// Whether a warp can have two blocks of halves, so that four teams have rows: the more there are,
// the less often all of them wait at the same time. Numbers that are kept would take too many
// registers.
bool RowEmitter::can_have_both() {
  return block_warps_ % kBlocksOfBoth == 0 && divides_between_passes() &&
         kernel_.parallel_size() > kBlocksOfBoth * kTeamsOfBlock * clusters_at_once() &&
         std::none_of(kernel_.buffers.begin(), kernel_.buffers.end(),
                      [](const auto& b) { return b.access == loop::Access::kScratch; });
}

// Whether every pass but the first has a division of its own. That is a jump; without one, the
// assembler keeps the numbers that it made of two blocks of halves for the next pass, which takes
// more registers than there are.
bool RowEmitter::divides_between_passes() {
  std::set<ExprId> divisions;
  for (const loop::Loop& l : passes_) {
    const size_t before = divisions.size();
    for (const ExprId e : used_by(l)) {
      const loop::ExprNode& n = pool_.node(e);
      if (n.op == loop::Op::kDiv && n.dtype == DType::kF32) divisions.insert(e);
    }
    if (l.var != passes_[0].var && divisions.size() == before) return false;
  }
  return true;
}

// Whether the last pass stores a row of floats, and nothing else is stored of rows.
bool RowEmitter::sends_alone() {
  int count = 0;
  for (const loop::Loop& l : passes_) {
    for (const loop::Stmt& s : l.body) {
      if (s.kind != loop::StmtKind::kStore) continue;
      const loop::Store& store = kernel_.stores[s.index];
      const loop::Buffer& b = kernel_.buffers[store.buffer];
      if (b.access == loop::Access::kScratch) continue;
      const std::optional<Affine> base = base_of(l, store.offset);
      if (l.var != passes_.back().var || b.dtype != DType::kF32 || !base || !is_row_by_row(*base) ||
          !lies_in_pairs(store.buffer, *base)) {
        return false;
      }
      ++count;
    }
  }
  return count == 1;
}

// Halves come twice as often, so each team has a place for its next row; floats have one place for
// both, in which the one team's row follows the other's. A warp's gates are its team's in any case.
void RowEmitter::bring_rows() {
  const std::string type = memory_type(brought_->row.dtype);
  const auto place = [&](const std::string& name, const std::string& thread, int64_t elements,
                         int64_t bytes) {
    head_ += fmt::format(
        "PYC_NEAR {0}* const {1} = (PYC_NEAR {0}*)(pyc_shared + {2}) + {3} / {4} * {5};\n", type,
        name, shared_bytes_, thread, dialect_.warp, elements);
    shared_bytes_ += bytes;
  };
  const int64_t of_block = bytes_of_block(brought_->row.dtype);
  head_ += "PYC_SHARED_MORE\n";
  place("arriving", own_places() ? "pyc_thread()" : "own", blocks_of_warp() * loop::kTreeBlock,
        own_places() ? teams() * of_block : of_block);
  if (sends()) {
    const int64_t rounds = brought_->sent_rounds * brought_->sent_places;
    place("leaving", "pyc_thread()", rounds * dialect_.warp * kPair,
          kTeamsOfBlock * of_block * rounds / rounds_);
    last_ = "if (lane == 0) pyc_sent();\n";
  }
  const int64_t gates = teams() * team_warps();
  head_ += fmt::format("PYC_SHARED_EACH(u64, arrived, {});\n", gates);
  once_ += fmt::format(
      "if (pyc_thread() == 0) {{\n"
      "PYC_ROLLED for (i32 g = 0; g < {}; ++g) pyc_gate_make(arrived + g);\n}}\n"
      "pyc_gates_made();\npyc_barrier();\nif ({}lane == 0) {{\n{}}}\n",
      gates, own_places() ? "" : "team == 0 && ",
      bring(fmt::format("(pyc_block() / {} * {} + team)", together_, teams()), "team"));
}

std::string RowEmitter::bring(const std::string& point, const std::string& team) const {
  const std::string gate =
      fmt::format("arrived + {} * {} + own / {}", team, team_warps(), dialect_.warp);
  const int64_t elements = blocks_of_warp() * loop::kTreeBlock;
  return fmt::format(
      "pyc_gate_expect({0}, {1});\n"
      "pyc_bring(arriving, {2} + (i64){3} * {4} + warp * {5}, {1}u, {0});\n",
      gate, elements * dtype_size(brought_->row.dtype), buffer_name(brought_->row.buffer), point,
      extent_, elements);
}

// The row that a warp brings once it has its part of this one in registers.
std::string RowEmitter::next_point() const {
  const std::string step = fmt::format("pyc_blocks() / {}", together_);
  if (!brought_) return "point + " + step;
  if (own_places()) return fmt::format("point + {} * {}", step, teams());
  // A block's second team has the row behind the first one's.
  return fmt::format("point + (team == 0 ? 1 : {} * {} - 1)", step, kTeamsOfBlock);
}

// Text for each of the warp's blocks.
std::string RowEmitter::each_block(const std::string& text) const {
  return fmt::format(
      "PYC_UNROLL for (i32 q = 0; q < {0}; ++q) {{\n"
      "const i32 first = (warp * {0} + q) * {1} + lane * {2};\n{3}}}\n",
      blocks_of_warp(), loop::kTreeBlock, kPair, text);
}

// The thread's elements of the row that is there.
void RowEmitter::take_brought(const RowLoad& load, const std::string& name) {
  const bool both = blocks_of_warp() > 1;
  const int64_t size = dtype_size(load.dtype);
  line(fmt::format(
      "PYC_ALIGN16 {} {}{}[{}][{}];\npyc_gate_pass(arrived + team * {} + own / {}, {}, turn);",
      memory_type(load.dtype), name, both ? "[2]" : "", rounds_, kPair, team_warps(), dialect_.warp,
      blocks_of_warp() * loop::kTreeBlock * size));
  const std::string take = fmt::format(
      "{0}*(pyc_v{1}*){2}{3}[k] = *(PYC_NEAR const pyc_v{1}*)(arriving + {4}k * {5} + lane * "
      "{6});\n}}\n",
      round_head("0", rounds_), kPair * size, name, both ? "[q]" : "",
      both ? fmt::format("q * {} + ", loop::kTreeBlock) : "", dialect_.warp * kPair, kPair);
  line(both ? each_block(take) : take);
  if (both) kept_[load.key()] = name + "[q]";
}

// The pass over the one block and over the other, whose parts are told at once.
void RowEmitter::pass_of_both(const loop::Loop& l) {
  for (const loop::Reduction& r : l.reductions) {
    line(fmt::format("{} {}_b[{}];", value_type(pool_.var_info(r.result).dtype), name_of(r),
                     blocks_of_warp()));
  }
  open_scope();
  pointers_.clear();
  pass(l);
  for (const loop::Reduction& r : l.reductions) {
    join_warp(r);
    line(fmt::format("{0}_b[q] = {0};", name_of(r)));
  }
  line(each_block(close_scope()));
  pointers_.clear();
  const bool is_first = l.var == passes_[0].var;
  if (is_first) line("if (turn == 0) pyc_together_wait();");
  if (!l.reductions.empty()) tell_parts(l.reductions);
  if (is_first) bring_next();
  if (!l.reductions.empty()) join_parts(l.reductions);
  declare_joined(l.reductions);
}

void RowEmitter::bring_next() {
  line(fmt::format("pyc_warp_barrier();\nif (lane == 0 && next < {}) {{\n{}}}",
                   kernel_.parallel_size(), bring("next", own_places() ? "team" : "(1 - team)")));
}

std::string RowEmitter::place_to_send() const {
  return fmt::format("leaving + (k / {0} % {1} * {0} + k % {0}) * {2} + lane * {3}",
                     brought_->sent_rounds, brought_->sent_places, dialect_.warp * kPair, kPair);
}

// Rounds of the last pass, some at a time, each time in the next place that has been read.
std::string RowEmitter::sent_rounds(const std::string& text) const {
  const int64_t of_round = dialect_.warp * kPair;
  return fmt::format(
      "PYC_UNROLL for (i32 k0 = 0; k0 < {0}; k0 += {1}) {{\n"
      "if (lane == 0) {{\nif (k0 == 0) pyc_sends_read_but_0();\nelse "
      "pyc_sends_read_but_{2}();\n}}\n"
      "pyc_warp_barrier();\n{3}\npyc_sends_ready();\npyc_warp_barrier();\n"
      "if (lane == 0) pyc_send({4} + k0 * {5}, leaving + k0 / {1} % {6} * {7}, {8}u);\n}}",
      rounds_, brought_->sent_rounds, brought_->sent_places - 1, text, sent_to_, of_round,
      brought_->sent_places, brought_->sent_rounds * of_round,
      brought_->sent_rounds * of_round * dtype_size(brought_->row.dtype));
}

std::string RowEmitter::barrier() const {
  return brought_ ? fmt::format("pyc_team_barrier(team, {});", team_warps() * dialect_.warp)
                  : "pyc_barrier();";
}

// An array in which a block hears of others, or one for each of its teams.
void RowEmitter::declare_told(std::string_view type, const std::string& name, int64_t count) {
  if (!brought_) {
    head_ += fmt::format("PYC_SHARED_EACH({}, {}, {});\n", type, name, count);
    return;
  }
  head_ += fmt::format("PYC_SHARED_TEAMS({}, {}, {}, {}, team);\n", type, name, count, teams());
}

}  // namespace pyc::cuda
