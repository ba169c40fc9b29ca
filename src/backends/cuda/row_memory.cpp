// Rows of clusters beyond registers: what waits in shared memory, and what is read before its turn.

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

// Shared memory of a multiprocessor, and what a block takes of it besides its own.
constexpr int64_t kSharedOfAll = int64_t{228} << 10;
constexpr int64_t kSharedOfBlock = 1 << 10;
// Of the rows that are on the device together, the part after which the one comes that is fetched
// ahead; where a row is made of two, half as far, since the cache would forget the first ones.
constexpr int64_t kShareAhead = 4;
// The multiprocessors are in groups of 16 or 18 of which a cluster has one, and one smaller group.
constexpr int64_t kWholeGroups = 7;
constexpr int64_t kClusterOfGroup = 16;
// Warps of a block that has two teams.
constexpr int64_t kMostTeamWarps = 32;
// Rounds that leave together, and places of a warp for them: the first that there is room for.
constexpr std::pair<int64_t, int64_t> kSent[] = {{4, 2}, {1, 3}};

}  // namespace

// Clusters on the device, each block alone on its multiprocessor.
int64_t RowEmitter::clusters_at_once() const {
  if (together_ > kClusterOfGroup / 2) return kWholeGroups;
  return std::max<int64_t>(kMultiprocessors / together_ - 1, 1);
}

// A thread's own pairs of a row in shared memory: the array's name is that of a pointer to pairs.
std::string RowEmitter::share(DType t, const std::string& name) {
  if (shared_bytes_ == 0) head_ += "PYC_SHARED_MORE\n";
  head_ +=
      fmt::format("PYC_NEAR {0} (*const {1})[{2}] = (PYC_NEAR {0} (*)[{2}])(pyc_shared + {3});\n",
                  memory_type(t), name, kPair, shared_bytes_);
  shared_bytes_ += bytes_of_block(t);
  return name;
}

std::string RowEmitter::own_pair(const std::string& array) const {
  return fmt::format("{}[k * {} + {}]", array, block_warps_ * dialect_.warp, thread());
}

// What the head declares for gates and parts.
int64_t RowEmitter::told_shared() const {
  int64_t bytes = 0;
  for (const loop::Loop& l : passes_) bytes += 2 * told_bytes(l.reductions) + 64;
  return bytes * teams();
}

// What all rows read alike stays in shared memory, as much of it as all blocks that are to be
// beside each other have room for.
void RowEmitter::hold_weights() {
  const int64_t room = kSharedOfAll / resident() - kSharedOfBlock - told_shared();
  for (const loop::Loop& l : passes_) {
    each_row_load(l, [&](ExprId, const RowLoad& load) {
      const int64_t bytes = bytes_of_block(load.dtype);
      if (!load.base.terms.empty() || passes_with_[load.key()] > 1 || held_.contains(load.key()) ||
          !lies_in_pairs(load.buffer, load.base) || shared_bytes_ + bytes > room) {
        return;
      }
      const std::string name = share(load.dtype, fmt::format("w{}", held_.size()));
      const std::string from = fmt::format("{} + {} + first + k * {}", buffer_name(load.buffer),
                                           load.base.constant, dialect_.warp * kPair);
      once_ += fmt::format(
          "{0}{1}{2}*(PYC_NEAR pyc_v{3}*){4} = *(PYC_GLOBAL const pyc_v{3}*)({5});\n}}\n",
          round_head("0", rounds_), brought_ ? "if (k % 2 == team) " : "", in_range(),
          kPair * dtype_size(load.dtype), own_pair(name), from);
      held_[load.key()] = name;
    });
  }
  if (brought_ && !held_.empty()) once_ += "pyc_barrier();\n";
}

// Where all else that is read is the same for all rows, one block has two rows at a time, each by
// half of its threads: what all rows read is in shared memory once, a warp's part of the row that
// comes next arrives there while both teams compute. Results of floats leave from there while the
// next row is computed; halves are bound by instructions, of which that would be more.
std::optional<RowEmitter::RowLoad> RowEmitter::row_to_bring() {
  if (together_ != kClusterOfGroup || !is_whole_ || beside() < kTeamsOfBlock ||
      kMostTeamWarps / block_warps_ != kTeamsOfBlock ||
      kernel_.parallel_size() <= kTeamsOfBlock * clusters_at_once()) {
    return std::nullopt;
  }
  std::map<Key, RowLoad> rows;
  std::set<Key> weights;
  int64_t bytes = kSharedOfBlock + kTeamsOfBlock * told_shared();
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
  const RowLoad& row = rows.begin()->second;
  const int64_t of_block = bytes_of_block(row.dtype);
  if (is_half(row.dtype)) {
    if (bytes + kTeamsOfBlock * of_block > kSharedOfAll) return std::nullopt;
    return row;
  }
  if (row.dtype != DType::kF32 || !sends_alone()) return std::nullopt;
  for (const auto& [rounds, places] : kSent) {
    if (bytes + of_block + kTeamsOfBlock * of_block * rounds * places / rounds_ > kSharedOfAll) {
      continue;
    }
    sent_rounds_ = rounds;
    sent_places_ = places;
    return row;
  }
  return std::nullopt;
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
  const std::string type = memory_type(brought_->dtype);
  const auto place = [&](const std::string& name, const std::string& thread, int64_t elements,
                         int64_t bytes) {
    head_ += fmt::format(
        "PYC_NEAR {0}* const {1} = (PYC_NEAR {0}*)(pyc_shared + {2}) + {3} / {4} * {5};\n", type,
        name, shared_bytes_, thread, dialect_.warp, elements);
    shared_bytes_ += bytes;
  };
  const int64_t of_block = bytes_of_block(brought_->dtype);
  head_ += "PYC_SHARED_MORE\n";
  place("arriving", own_places() ? "pyc_thread()" : "own", loop::kTreeBlock,
        own_places() ? kTeamsOfBlock * of_block : of_block);
  if (sends()) {
    const int64_t rounds = sent_rounds_ * sent_places_;
    place("leaving", "pyc_thread()", rounds * dialect_.warp * kPair,
          kTeamsOfBlock * of_block * rounds / rounds_);
    last_ = "if (lane == 0) pyc_sent();\n";
  }
  const int64_t gates = kTeamsOfBlock * block_warps_;
  head_ += fmt::format("PYC_SHARED_EACH(u64, arrived, {});\n", gates);
  once_ += fmt::format(
      "if (pyc_thread() < {}) pyc_gate_make(arrived + pyc_thread());\npyc_gates_made();\n"
      "pyc_barrier();\nif ({}lane == 0) {{\n{}}}\n",
      gates, own_places() ? "" : "team == 0 && ",
      bring(fmt::format("(pyc_block() / {} * {} + team)", together_, kTeamsOfBlock), "team"));
}

std::string RowEmitter::bring(const std::string& point, const std::string& team) const {
  const std::string gate =
      fmt::format("arrived + {} * {} + own / {}", team, block_warps_, dialect_.warp);
  const int64_t bytes = loop::kTreeBlock * dtype_size(brought_->dtype);
  return fmt::format(
      "pyc_gate_expect({0}, {1});\n"
      "pyc_bring(arriving, {2} + (i64){3} * {4} + warp * {5}, {1}u, {0});\n",
      gate, bytes, buffer_name(brought_->buffer), point, extent_, loop::kTreeBlock);
}

// The row that a warp brings once it has its part of this one in registers.
std::string RowEmitter::next_point() const {
  const std::string step = fmt::format("pyc_blocks() / {}", together_);
  if (!brought_) return "point + " + step;
  if (own_places()) return fmt::format("point + {} * {}", step, kTeamsOfBlock);
  // A block's second team has the row behind the first one's.
  return fmt::format("point + (team == 0 ? 1 : {} * {} - 1)", step, kTeamsOfBlock);
}

// The thread's elements of the row that is there.
void RowEmitter::take_brought(const RowLoad& load, const std::string& name) {
  line(fmt::format(
      "PYC_ALIGN16 {0} {1}[{2}][{3}];\npyc_gate_pass(arrived + team * {4} + own / {5}, {6}, "
      "turn);\n"
      "{7}*(pyc_v{8}*){1}[k] = *(PYC_NEAR const pyc_v{8}*)(arriving + k * {9} + lane * {3});\n}}",
      memory_type(load.dtype), name, rounds_, kPair, block_warps_, dialect_.warp,
      loop::kTreeBlock * dtype_size(load.dtype), round_head("0", rounds_),
      kPair * dtype_size(load.dtype), dialect_.warp * kPair));
}

void RowEmitter::bring_next() {
  line(fmt::format("pyc_warp_barrier();\nif (lane == 0 && next < {}) {{\n{}}}",
                   kernel_.parallel_size(), bring("next", own_places() ? "team" : "(1 - team)")));
}

std::string RowEmitter::place_to_send() const {
  return fmt::format("leaving + (k / {0} % {1} * {0} + k % {0}) * {2} + lane * {3}", sent_rounds_,
                     sent_places_, dialect_.warp * kPair, kPair);
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
      rounds_, sent_rounds_, sent_places_ - 1, text, sent_to_, of_round, sent_places_,
      sent_rounds_ * of_round, sent_rounds_ * of_round * dtype_size(brought_->dtype));
}

std::string RowEmitter::barrier() const {
  return brought_ ? fmt::format("pyc_team_barrier(team, {});", block_warps_ * dialect_.warp)
                  : "pyc_barrier();";
}

// An array in which a block hears of others, or one for each of its teams.
void RowEmitter::declare_told(std::string_view type, const std::string& name, int64_t count) {
  if (!brought_) {
    head_ += fmt::format("PYC_SHARED_EACH({}, {}, {});\n", type, name, count);
    return;
  }
  for (int64_t team = 0; team < kTeamsOfBlock; ++team) {
    head_ += fmt::format("PYC_SHARED_EACH({}, {}_of{}, {});\n", type, name, team, count);
  }
  head_ += fmt::format("PYC_NEAR {0}* const {1} = team == 0 ? {1}_of0 : {1}_of1;\n", type, name);
}

// Whether the last pass can read the row of the next point where this one's was.
bool RowEmitter::is_refilled(const RowLoad& load) const {
  return in_turns_ && is_whole_ && is_row_by_row(load.base) &&
         lies_in_pairs(load.buffer, load.base);
}

std::string RowEmitter::of_point(const RowLoad& load, const std::string& point) const {
  return fmt::format("*(PYC_GLOBAL const pyc_v{}*)({} + (i64){} * {} + first + k * {})",
                     kPair * dtype_size(load.dtype), buffer_name(load.buffer), point, extent_,
                     dialect_.warp * kPair);
}

std::string RowEmitter::refills() {
  std::string text;
  for (const auto& [key, load] : refilled_) {
    // Not what it was where there is no next row, so that the compiler need not keep that.
    text += fmt::format(
        "{{\npyc_v{0} row = {{}};\nif (next < {1}) row = {2};\n*(pyc_v{0}*){3}[k] = row;\n}}\n",
        kPair * dtype_size(load.dtype), kernel_.parallel_size(), of_point(load, "next"),
        kept_[key]);
  }
  return text;
}

// Whether the row of the next point begins where this one ends.
bool RowEmitter::is_row_by_row(const Affine& base) const {
  int64_t step = extent_;
  size_t terms = 0;
  for (auto v = kernel_.parallel.rbegin(); v != kernel_.parallel.rend(); ++v) {
    const int64_t count = pool_.var_info(*v).extent;
    if (count > 1 && base.coefficient(pool_.var(*v)) != step) return false;
    terms += count > 1 ? 1 : 0;
    step *= count;
  }
  return base.terms.size() == terms && base.constant == 0;
}

// A cluster's blocks wait for each other and compute at the same time, and while they do, memory
// would rest: so each of them has the cache read its part of a row that is soon begun.
void RowEmitter::fetch_ahead(const loop::Loop& l) {
  if (together_ == 1 || !is_whole_ || brought_) return;
  if (l.var != passes_[in_turns_ && passes_.size() > 1 ? 1 : 0].var) return;
  std::map<Key, RowLoad> rows;
  each_row_load(passes_[0], [&](ExprId, const RowLoad& load) {
    if (extent_ * dtype_size(load.dtype) % 16 == 0 && is_row_by_row(load.base) &&
        lies_in_pairs(load.buffer, load.base)) {
      rows[load.key()] = load;
    }
  });
  if (rows.empty()) return;
  const int64_t points = kernel_.parallel_size();
  const int64_t at_once = kMultiprocessors * resident() / together_;
  const int64_t ahead =
      std::max<int64_t>(at_once / (kShareAhead * static_cast<int64_t>(rows.size())), 1);
  // Where a block has its multiprocessor to itself, this is slower but in turns.
  if (!in_turns_ && (resident() == 1 || ahead >= points)) return;
  for (const auto& [key, load] : rows) {
    const std::string from =
        in_turns_ ? fmt::format("{} + (i64)next * {} + first", buffer_name(load.buffer), extent_)
                  : fmt::format("{} + {}ll", pointer(load.buffer, load.base), ahead * extent_);
    line(fmt::format("if (pyc_thread() == 0 && {} < {}) pyc_fetch_ahead({}, {}u);",
                     in_turns_ ? "next" : "point", in_turns_ ? points : points - ahead, from,
                     block_warps_ * loop::kTreeBlock * dtype_size(load.dtype)));
  }
}

}  // namespace pyc::cuda
