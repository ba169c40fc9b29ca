#include <fmt/format.h>

#include <limits>
#include <utility>

#include "backends/cuda/generators/attention_halves_writer.h"
#include "base/status.h"

namespace pyc::cuda {

// A group copies. A thread keeps its place in a row: from round to round it goes on by a multiple
// of eight rows, so that the swizzle stays and both addresses move by constants.
std::string HalvesWriter::copied(const Copied& c) const {
  const int64_t chunks = c.width / 8;
  const int64_t step = kGroupThreads / chunks;
  PYC_CHECK(step % 8 == 0, "rounds go on by whole groups of eight rows");
  std::string text = fmt::format(
      "{{\nconst i32 r = in_group / {0}, c = in_group % {0};\n"
      "PYC_GLOBAL const u16* from = {2} + ((i64)r * {3}ll + c * 8) + (i64){1} * {3}ll;\n"
      "const u32 to = {4} + (u32)(c / 8 * {5} + r * {6} + ((c % 8 ^ r % 8) << 4));\n",
      chunks, c.first, c.name, c.row_stride, c.to, c.rows * kPartBytes, kPartBytes);
  text += fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) {{\n", (c.rows + step - 1) / step);
  if (c.rows % step != 0) {
    text += fmt::format("if (i < {} || r + i * {} < {}) {{\n", c.rows / step, step, c.rows);
  }
  std::string there = c.inside ? "" : fmt::format("{} + r + i * {} < {}", c.first, step, c.last);
  if (c.columns < c.width) {
    there += fmt::format("{}c < {}", there.empty() ? "" : " && ", c.columns / 8);
  }
  const std::string to = fmt::format("to + (u32)(i * {})", step * kPartBytes);
  const std::string from = fmt::format("from + i * {}ll", step * c.row_stride);
  if (there.empty()) {
    text += fmt::format("pyc_copy16({}, {}, 16u);\n", to, from);
  } else {
    // What is not there is read nowhere, and its address is one of the buffer's.
    text += fmt::format("const bool there = {};\n", there);
    text += fmt::format("pyc_copy16({}, there ? {} : {}, there ? 16u : 0u);\n", to, from, c.name);
  }
  return text + (c.rows % step != 0 ? "}\n}\n}\n" : "}\n}\n");
}

// A map holds an operand of all heads: behind a head's last row is the next one's first, so blocks
// of keys are whole; behind its last column may be anything. Queries past the last are nobody's.
void HalvesWriter::find_maps() {
  if (!z_.copies_apart || a_.keys % z_.keys != 0 || a_.depth != z_.depth ||
      a_.columns != z_.columns) {
    return;
  }
  auto q = mapped(*a_.q, a_.queries, z_.depth, kGroupRows);
  auto k = mapped(*a_.k, a_.keys, z_.depth, z_.keys);
  auto v = mapped(*a_.v, a_.keys, z_.columns, z_.keys);
  if (q && k && v) maps_ = {*std::move(q), *std::move(k), *std::move(v)};
}

std::optional<HalvesWriter::Mapped> HalvesWriter::mapped(const lower::Attention::Operand& x,
                                                         int64_t rows, int64_t width,
                                                         int64_t box_rows) const {
  constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();
  if (x.row_stride <= 0 || x.row_stride * kMapElement >= kMostMapBytes) return std::nullopt;
  Mapped out{.map = {}, .column = "0", .row = "0", .width = width};
  int64_t columns = width;
  for (size_t i = 0; i < x.batch_strides.size(); ++i) {
    const int64_t stride = x.batch_strides[i];
    if (stride == 0 || a_.batch[i] == 1) continue;
    const bool is_of_rows = stride % x.row_stride == 0;
    const int64_t step = is_of_rows ? stride / x.row_stride : stride;
    if (stride < 0 || step > kMostExtent) return std::nullopt;
    (is_of_rows ? out.row : out.column) += fmt::format(" + (i32)at{} * {}", i, step);
    (is_of_rows ? rows : columns) += (a_.batch[i] - 1) * step;
    if (rows > kMostExtent || columns > x.row_stride) return std::nullopt;
  }
  if (columns > x.row_stride) return std::nullopt;  // rows would overlap
  out.map = {.buffer = x.buffer,
             .columns = static_cast<uint32_t>(columns),
             .rows = static_cast<uint32_t>(rows),
             .box_rows = static_cast<uint32_t>(box_rows),
             .row_bytes = x.row_stride * kMapElement,
             .offset_bytes = x.base * kMapElement};
  return out;
}

// Begins to bring rows of an operand (the head's row is a text), part by part of its columns.
std::string HalvesWriter::bring_box(char operand, const std::string& to, const std::string& gate,
                                    const std::string& row) const {
  const Mapped& m = maps_[operand == 'q' ? 0 : operand == 'k' ? 1 : 2];
  std::string text;
  for (int64_t c = 0; c < m.width; c += kPart) {
    text += fmt::format("pyc_map_copy({} + {}u, &{}_map, {} + {}, {} + {}, {});\n", to,
                        c / kPart * m.map.box_rows * kPartBytes, operand, m.column, c, m.row, row,
                        gate);
  }
  return text;
}

std::string HalvesWriter::bring(char operand, const char* j, const char* stage) const {
  const bool keys = operand == 'k';
  const std::string to =
      in(keys ? "{K_AT}u + " : "{V_AT}u + ") + stage + in(keys ? " * {K_BYTES}u" : " * {V_BYTES}u");
  const std::string gate = in(keys ? "{K_FULL}u + " : "{V_FULL}u + ") + stage + " * 8u";
  if (!maps_.empty()) {
    return fmt::format("pyc_gate_expect_bytes({}, {}u{});\n", gate,
                       keys ? z_.key_bytes() : z_.value_bytes(), keys ? " + with_keys" : "") +
           bring_box(operand, to, gate, fmt::format("({}) * {}", j, a_.block));
  }
  return fmt::format("{{\nconst i32 row0 = ({}) * {};\n", j, a_.block) +
         copied({.name = keys ? "k" : "v",
                 .first = "row0",
                 .last = a_.keys,
                 .inside = a_.keys % z_.keys == 0,
                 .rows = z_.keys,
                 .width = keys ? z_.depth : z_.columns,
                 .columns = keys ? a_.depth : a_.columns,
                 .row_stride = (keys ? a_.k : a_.v)->row_stride,
                 .to = to}) +
         "pyc_gate_arrive_copied(" + gate + ");\n}\n";
}

// The queries of group g; they have arrived when the tile's first keys have.
std::string HalvesWriter::bring_queries() const {
  const std::string to = fmt::format("(u32)(g * {})", kGroupRows * z_.depth * 2) +
                         in(z_.turns == 1 ? "" : " + slot * {Q_BYTES}u");
  const char* const row = z_.mixed ? "(firsts[g] < {QUERIES} ? firsts[g] : 0)" : "first + g * 64";
  if (!maps_.empty()) {
    return bring_box('q', to, in("{K_FULL}u + stage * 8u"), in(row)) +
           fmt::format("with_keys += {}u;\n", kGroupRows * z_.depth * 2);
  }
  return "{\nconst i32 row0 = " + in(row) + ";\n" +
         copied({.name = "q",
                 .first = "row0",
                 .last = a_.queries,
                 .inside = a_.queries % z_.tile_rows() == 0,
                 .rows = kGroupRows,
                 .width = z_.depth,
                 .columns = a_.depth,
                 .row_stride = a_.q->row_stride,
                 .to = to}) +
         "}\n";
}

// Where a group copies for itself: the queries with the first keys, the first values and the
// second keys.
std::string HalvesWriter::bring_first() const {
  return "if (begin < end) {\nconst i32 g = 0;\n" + bring_queries() + bring('k', "begin", "0u") +
         bring('v', "begin", "0u") + "if (begin + 1 < end) {\n" + bring('k', "begin + 1", "1u") +
         "}\n}\n";
}

// All that a group brings for the others, tile after tile. The next tile's first keys are on their
// way while the last of this one's values are added and its results stored. It is there until all
// of it has arrived.
std::string HalvesWriter::copied_tiles() const {
  return in(R"(if (group == {COMPUTING} / 128) {{
  pyc_fewer_registers();
)") + (maps_.empty() ? "{\n" : "if (in_group == 0) {\n") +
         in(R"(i32 done = 0, tiles = 0;
  u32 stage = 0u, parity = 0u;
)") + in(values_apart() ? "u32 v_stage = 0u, v_parity = 0u;\n" : "") +
         in("for (i32 turn = 0; turn < {TURNS}; ++turn) {{\n") + tile("turn") +
         in("for (i32 j = begin; j < end; ++j) {{\n") +
         in(z_.mixed ? "for (i32 side = 0; side < sides; ++side) {{\n"
                       "const i32 head = side == 0 ? heads[0] : heads[2];\n"
                     : "") +
         (z_.mixed ? place_in_batch() : "") + (maps_.empty() ? "" : "u32 with_keys = 0u;\n") +
         in(R"(if (done >= {STAGES}) pyc_gate_wait({K_FREE}u + stage * 8u, parity ^ 1u);
  if (j == begin) {{
  const u32 slot = (u32)tiles % {SLOTS}u;
)") + in(z_.mixed ? "PYC_UNROLL " : "") +
         in("for (i32 g = 0; g < {COMPUTING} / 128; ++g) {{\n") +
         in(z_.mixed ? "if (heads[g] != head) continue;\n" : "") + in(R"(if (tiles >= {SLOTS}) {{
  pyc_gate_wait({Q_FREE}u + (slot * {COMPUTING}u / 128u + (u32)g) * 8u,
                ((u32)tiles / {SLOTS}u + 1u) % 2u);
  }}
)") + bring_queries() +
         in(z_.mixed ? "}}\nif (side + 1 == sides) tiles += 1;\n}}\n" : "}}\ntiles += 1;\n}}\n") +
         bring('k', "j", "stage") +
         in("if (done >= {V_STAGES}) pyc_gate_wait({V_FREE}u + {V_STAGE} * 8u, {V_PARITY} ^ "
            "1u);\n") +
         bring('v', "j", v_stage()) + "done += 1;\n" + next_stages() + in(z_.mixed ? "}}\n" : "") +
         in(R"(}}
  }}
  if (done > 0) {{
  parity ^= stage == 0u ? 1u : 0u;
  stage = stage == 0u ? {STAGES}u - 1u : stage - 1u;
)") +
         in(values_apart() ? R"(v_parity ^= v_stage == 0u ? 1u : 0u;
  v_stage = v_stage == 0u ? {V_STAGES}u - 1u : v_stage - 1u;
)"
                           : "") +
         in(R"(pyc_gate_wait({K_FULL}u + stage * 8u, parity);
  pyc_gate_wait({V_FULL}u + {V_STAGE} * 8u, {V_PARITY});
  }}
  }}
  }} else {{
  pyc_more_registers();
)");
}

// The stages after this block's, of keys and of values.
std::string HalvesWriter::next_stages() const {
  return in(R"(stage = stage + 1u == {STAGES}u ? 0u : stage + 1u;
  parity ^= stage == 0u ? 1u : 0u;
)") + in(values_apart() ? R"(v_stage = v_stage + 1u == {V_STAGES}u ? 0u : v_stage + 1u;
  v_parity ^= v_stage == 0u ? 1u : 0u;
)"
                        : "");
}

// The next values, and the keys after the next.
std::string HalvesWriter::bring_next() const {
  return in(R"(if (j + 2 < end) {{
  const u32 after = next + 1u == {STAGES}u ? 0u : next + 1u;
  const u32 before_parity = after == 0u ? next_parity : next_parity ^ 1u;
  if (j + 2 - begin >= {STAGES}) pyc_gate_wait({K_FREE}u + after * 8u, before_parity);
)") + bring('k', "j + 2", "after") +
         in(R"(}}
  if (j + 1 < end) {{
  if (j + 1 - begin >= {STAGES}) pyc_gate_wait({V_FREE}u + next * 8u, next_parity ^ 1u);
)") + bring('v', "j + 1", "next") +
         "}\n";
}

}  // namespace pyc::cuda
