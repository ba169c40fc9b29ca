#include "lower/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/readers.h"
#include "loop/function.h"
#include "loop/walk.h"

namespace pyc::lower {
namespace {

// Longest chain of nodes read through one another: bounds the size of one kernel's expressions.
constexpr int kMaxInlined = 48;
// A value with so many times the elements it is made of is better computed again than stored, where
// a kernel does much else for each of them.
constexpr int64_t kSpread = 64;
// A row that several members share must stay near between their passes: in a cache, or in the
// registers of a cluster of blocks.
constexpr int64_t kMaxRowElements = int64_t{1} << 18;

// A copy is made so that a product finds its operand with fixed strides.
constexpr std::string_view kKeepsStrides = "keeps_product_strides";

// LowerOptions::keep_apart says so.
constexpr std::string_view kKeptApart = "kept_apart";

// Groups that a value reads from, the last first.
class Producers {
 public:
  void insert(uint32_t g) {
    const uint32_t* const at = std::lower_bound(begin(), end(), g, std::greater<>());
    if (at == end() || *at != g) groups_.insert(at, g);
  }
  const uint32_t* begin() const { return groups_.begin(); }
  const uint32_t* end() const { return groups_.end(); }

 private:
  InlineVector<uint32_t, 6> groups_;
};

class Former {
 public:
  Former(const ir::Graph& graph, Layouts layouts, Orders orders, const LowerOptions& options)
      : graph_(graph),
        options_(options),
        readers_(graph),
        is_output_(graph.values.size(), false),
        none_(graph.values.size(), false),
        plain_(graph, none_, out_.layouts, out_.orders, options.build_alike_once) {
    for (const ir::ValueId v : graph.outputs) is_output_[v] = true;
    out_.layouts = std::move(layouts);
    out_.orders = std::move(orders);
    out_.inlined.assign(graph.values.size(), false);
    out_.forwarded_output.assign(graph.values.size(), -1);
    out_.reads.resize(graph.values.size());
    out_.reasons.resize(graph.values.size());
    group_of_.assign(graph.values.size(), ir::kNoId);
    inline_depth_.assign(graph.values.size(), 0);
    made_of_.assign(graph.values.size(), 0);
  }

  Grouping run() {
    forward_outputs();
    find_kernel_inputs();
    if (options_.fuse) {
      for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) decide_inline(n);
    }
    Probes through(graph_, out_.inlined, out_.layouts, out_.orders, options_.build_alike_once);
    for (ir::NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (node.op->kernel != nullptr) {
        place_kernel(n);
        continue;
      }
      for (const ir::ValueId v : node.outputs) {
        if (out_.inlined[v] || (readers_.of(v).empty() && !stored_for_output(v))) continue;
        place(v, reads_through(node) ? through.of(v) : plain_probe(v));
      }
    }
    out_.stored.assign(graph_.values.size(), false);
    for (ir::ValueId reader = 0; reader < graph_.values.size(); ++reader) {
      for (ir::ValueId value : out_.reads[reader]) {
        if (group_of_[value] != group_of_[reader]) out_.stored[value] = true;
      }
    }
    for (ir::ValueId v : out_.output_values) out_.stored[v] = true;
    order_groups();
    return std::move(out_);
  }

 private:
  bool stored_for_output(ir::ValueId v) const {
    return is_output_[v] || out_.forwarded_output[v] >= 0;
  }

  bool reads_through(const ir::Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ir::ValueId v) { return out_.inlined[v]; });
  }

  // The value's node with nothing read through: asked for by all that might read through it.
  Probe& plain_probe(ir::ValueId v) { return plain_.of(v); }

  Probe probe(ir::NodeId n, int output, const std::vector<bool>& inlined) const {
    return probe_node(graph_, n, output, inlined, out_.layouts, out_.orders);
  }

  // An output that only renames or reshapes a computed value is written by that value's kernel.
  void forward_outputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      ir::ValueId v = graph_.outputs[i];
      std::vector<ir::ValueId> views;
      while (options_.fuse && graph_.value(v).kind == ir::ValueKind::kResult &&
             !writes_kernel(graph_.value(v).producer)) {
        const Probe& p = plain_probe(v);
        if (!p.is_view()) break;
        const ir::ValueId source = p.source()->value;
        if (graph_.value(source).kind != ir::ValueKind::kResult || is_output_[source] ||
            out_.inlined[source] || out_.forwarded_output[source] >= 0) {
          break;
        }
        views.push_back(v);
        v = source;
      }
      for (ir::ValueId view : views) {
        out_.inlined[view] = true;
        is_output_[view] = false;
      }
      out_.forwarded_output[v] = static_cast<int>(i);
      out_.output_values.push_back(v);
      if (!views.empty()) {
        decide("output", graph_.outputs[i], "written by %" + graph_.value(v).name,
               "view_of_result");
      }
    }
  }

  void decide(std::string_view what, ir::ValueId v, std::string chosen, std::string reason,
              std::vector<Alternative> refused = {}) {
    out_.reasons[v] = reason;
    out_.decisions.push_back({.what = fmt::format("{}:%{}", what, graph_.value(v).name),
                              .chosen = std::move(chosen),
                              .reason = std::move(reason),
                              .detail = "",
                              .alternatives = std::move(refused)});
  }

  std::string group_name(uint32_t g) const {
    return fmt::format("group of %{}", graph_.value(out_.groups[g].members[0].value).name);
  }

  bool writes_kernel(ir::NodeId n) const { return graph_.nodes[n].op->kernel != nullptr; }

  // Values that a kernel of its own reads, at once or through views: it may read an element often.
  void find_kernel_inputs() {
    kernel_input_.assign(graph_.values.size(), false);
    bool any = false;
    for (ir::NodeId n = static_cast<ir::NodeId>(graph_.nodes.size()); n-- > 0;) {
      const ir::Node& node = graph_.nodes[n];
      const bool view = any && !writes_kernel(n) && node.outputs.size() == 1 &&
                        kernel_input_[node.outputs[0]] && plain_probe(node.outputs[0]).is_view();
      if (!writes_kernel(n) && !view) continue;
      any = true;
      for (ir::ValueId v : node.inputs) kernel_input_[v] = true;
    }
  }

  // Whether the results of node n are read through instead of stored.
  void decide_inline(ir::NodeId n) {
    if (writes_kernel(n)) return;
    for (ir::ValueId v : graph_.nodes[n].outputs) decide_inline(graph_.nodes[n], v);
  }

  void decide_inline(const ir::Node& node, ir::ValueId v) {
    if (out_.inlined[v] || stored_for_output(v) || readers_.of(v).empty()) return;
    int depth = 1;
    made_of_[v] = 0;
    for (ir::ValueId u : node.inputs) {
      if (out_.inlined[u]) depth += inline_depth_[u];
      made_of_[v] += out_.inlined[u] ? made_of_[u] : graph_.type(u).elements();
    }
    const Probe& p = plain_probe(v);
    if (!p.pointwise()) return;
    const std::string_view refusal = kept_apart(v)         ? kKeptApart
                                     : depth > kMaxInlined ? "too_deep"
                                                           : why_stored(v, p);
    if (!refusal.empty()) {
      decide("inline", v, "stored", std::string(refusal));
      return;
    }
    mark_inlined(v, depth, p.is_view() ? "view" : p.moves_data() ? "moves_data" : "single_use");
  }

  bool kept_apart(ir::ValueId v) const {
    return options_.keep_apart && options_.keep_apart(graph_, v);
  }

  // Why `v`, an expression of one element, is not read through; "" when it is.
  std::string_view why_stored(ir::ValueId v, const Probe& p) {
    if (p.is_view()) return "";
    if (readers_.of(v).size() != 1) return "several_uses";
    if (uses_of(v, p) > 1 && (p.moves_data() || is_costly(v))) return "several_uses";
    if (p.elements / kSpread >= made_of_[v] && read_by_terms(v)) return "";
    if (kernel_input_[v]) return p.moves_data() && read_strided(v) ? "" : "whole_kernel_reads_it";
    if (p.moves_data()) {
      std::vector<bool> through = out_.inlined;
      through[v] = true;
      return spoils_product(v, p.elements, through) ? kKeepsStrides : "";
    }
    if (read_again(v, p.elements) && !is_widened_half(v, p)) return "read_again";
    if (narrows_product(v, p)) return "narrows_product";
    return read_guarded(v) ? "read_guarded" : "";
  }

  // Whether `v`, of bytes, is made of a product's results one by one, element for element: its
  // group writes them as bytes then, if the reader of `v` is of another group, in place of words.
  bool narrows_product(ir::ValueId v, const Probe& p) {
    if (dtype_size(graph_.type(v).dtype) != 1) return false;
    for (ir::ValueId from = v;;) {
      ir::ValueId source = ir::kNoId;
      for (const ir::ValueId u : graph_.nodes[graph_.value(from).producer].inputs) {
        if (graph_.type(u).elements() != p.elements) continue;
        if (source != ir::kNoId) return false;
        source = u;
      }
      if (source == ir::kNoId || graph_.value(source).kind != ir::ValueKind::kResult ||
          writes_kernel(graph_.value(source).producer) || readers_.of(source).size() != 1) {
        return false;
      }
      const Probe& made = plain_probe(source);
      if (!out_.inlined[source]) {
        return made.reductions.size() == 1 && made.reductions[0].kind == loop::ReduceKind::kChain &&
               dtype_size(graph_.type(source).dtype) > 1;
      }
      if (made.is_view() || made.moves_data()) return false;
      from = source;
    }
  }

  // Whether an element of `v` takes more operations, with those of what it reads through, than are
  // better done again for each of a few readers.
  bool is_costly(ir::ValueId v) {
    constexpr int kFew = 8;
    int count = 0;
    const std::function<void(ir::ValueId)> visit = [&](ir::ValueId of) {
      const loop::Pool& pool = *plain_probe(of).pool;
      loop::Walk{pool}(plain_probe(of).result, [&](loop::ExprId, const loop::ExprNode& n) {
        if (count > kFew || n.op == loop::Op::kLoad || n.op == loop::Op::kVar ||
            n.op == loop::Op::kConst) {
          return false;
        }
        count += loop::operations_of(pool, n);
        return true;
      });
      if (count > kFew) return;
      for (const ir::ValueId u : graph_.nodes[graph_.value(of).producer].inputs) {
        if (out_.inlined[u]) visit(u);
      }
    };
    visit(v);
    return count > kFew;
  }

  // How many nodes read `v`, whose probe is `p`, at once or through views of it; of what is only
  // moved those that read all of it, since parts are best read where they come from.
  int uses_of(ir::ValueId v, const Probe& p) {
    int uses = 0;
    for (const ir::NodeId consumer : readers_.of(v)) {
      const std::vector<ir::ValueId>& outputs = graph_.nodes[consumer].outputs;
      if (writes_kernel(consumer)) {
        ++uses;
      } else if (outputs.size() == 1 && !stored_for_output(outputs[0]) &&
                 plain_probe(outputs[0]).is_view()) {
        uses += uses_of(outputs[0], p);
      } else if (!p.moves_data() || std::ranges::any_of(outputs, [&](ir::ValueId out) {
                   return plain_probe(out).domain() >= p.elements;
                 })) {
        ++uses;
      }
    }
    return uses;
  }

  // Whether `v`, whose probe is `p`, is a half as f32 for an op of single elements on a device with
  // a matrix unit: reading it through costs an instruction there, storing it a launch.
  bool is_widened_half(ir::ValueId v, const Probe& p) {
    if (options_.unit.empty()) return false;
    const loop::ExprNode& n = p.pool->node(p.result);
    if (n.op != loop::Op::kConvert || n.dtype != DType::kF32) return false;
    const loop::ExprNode& from = p.pool->node(n.a);
    if (from.op != loop::Op::kLoad || from.b != loop::kNone || !is_half(from.dtype)) return false;
    const ir::Node& reader = graph_.nodes[readers_.of(v)[0]];
    return reader.op->kernel == nullptr &&
           std::ranges::all_of(reader.outputs, [&](ir::ValueId out) {
             return plain_probe(out).pointwise() && !plain_probe(out).moves_data();
           });
  }

  // Whether an element of `v`, one of `elements`, is read more than once: by what reads it or what
  // that only moves it on to.
  bool read_again(ir::ValueId v, int64_t elements) {
    for (const ir::NodeId consumer : readers_.of(v)) {
      if (graph_.nodes[consumer].op->traits.reads_strided) return true;
      if (writes_kernel(consumer)) continue;
      for (const ir::ValueId out : graph_.nodes[consumer].outputs) {
        const Probe& c = plain_probe(out);
        if (c.domain() > elements) return true;
        if (c.pointwise() && c.moves_data() && read_again(out, elements)) return true;
      }
    }
    return false;
  }

  // Whether `v`, used once, is read by a kernel that takes its operands in any strides, at once or
  // through what only moves it on.
  bool read_strided(ir::ValueId v) {
    const ir::Node& consumer = graph_.nodes[readers_.of(v)[0]];
    if (consumer.op->kernel != nullptr) return consumer.op->traits.reads_strided;
    const ir::ValueId out = consumer.outputs[0];
    return consumer.outputs.size() == 1 && readers_.of(out).size() == 1 &&
           !stored_for_output(out) && plain_probe(out).moves_data() && read_strided(out);
  }

  // Whether `v`, used once, is an input that a kernel reads once for each of many terms, or what
  // one is made of. The inputs it always has are its factors, which it reads by strides.
  bool read_by_terms(ir::ValueId v) {
    const ir::Node& consumer = graph_.nodes[readers_.of(v)[0]];
    const auto at = std::find(consumer.inputs.begin(), consumer.inputs.end(), v);
    if (consumer.op->kernel != nullptr) {
      return consumer.op->traits.reads_strided &&
             at - consumer.inputs.begin() >= consumer.op->min_inputs;
    }
    const ir::ValueId out = consumer.outputs[0];
    return consumer.outputs.size() == 1 && readers_.of(out).size() == 1 &&
           !stored_for_output(out) && plain_probe(out).pointwise() && read_by_terms(out);
  }

  bool read_guarded(ir::ValueId v) {
    for (const ir::ValueId out : graph_.nodes[readers_.of(v)[0]].outputs) {
      for (const ProbeRead& r : plain_probe(out).reads) {
        if (r.value == v && r.guarded) return true;
      }
    }
    return false;
  }

  // Whether a sum of products whose operands lie in memory with fixed strides would lose them by
  // reading through `v`: a copy of it costs less. `through` has what is read through, `v` included.
  bool spoils_product(ir::ValueId v, int64_t elements, std::vector<bool>& through) {
    for (const ir::NodeId consumer : readers_.of(v)) {
      if (writes_kernel(consumer)) continue;
      const std::vector<ir::ValueId>& outputs = graph_.nodes[consumer].outputs;
      for (size_t o = 0; o < outputs.size(); ++o) {
        const Probe& plain = plain_probe(outputs[o]);
        if (plain.is_view()) {
          through[outputs[o]] = true;
          if (spoils_product(outputs[o], elements, through)) return true;
          continue;
        }
        if (plain.domain() <= elements || !strided_product(plain, false)) continue;
        const bool in_runs = !options_.unit.empty() && is_half(graph_.type(v).dtype);
        if (!strided_product(probe(consumer, static_cast<int>(o), through), in_runs)) return true;
      }
    }
    return false;
  }

  // A chain of products whose operands' places are sums of multiples of the indices or, for a unit
  // whose kernels copy neighbours in runs, of what runs of indices are cut into, as heads that lie
  // apart.
  static bool strided_product(const Probe& p, bool in_runs) {
    const bool chain = p.reductions.size() == 1 && p.reductions[0].kind == loop::ReduceKind::kChain;
    return chain && std::all_of(p.reads.begin(), p.reads.end(), [&](const ProbeRead& r) {
             return !r.guarded && is_strided(*p.pool, loop::affine_of(*p.pool, r.offset), in_runs);
           });
  }
  static bool is_strided(const loop::Pool& pool, const loop::Affine& at, bool in_runs) {
    constexpr int64_t kRun = 8;
    bool is_cut = false;
    bool has_neighbours = false;
    for (const auto& [term, factor] : at.terms) {
      const loop::ExprNode& n = pool.node(term);
      has_neighbours = has_neighbours || factor == 1;
      if (n.op == loop::Op::kVar) continue;
      is_cut = true;
      if (n.op != loop::Op::kFloorDiv && n.op != loop::Op::kFloorMod) return false;
      const loop::ExprNode& by = pool.node(n.b);
      if (pool.node(n.a).op != loop::Op::kVar || by.op != loop::Op::kConst) return false;
      if (static_cast<int64_t>(by.word) % kRun != 0) return false;
    }
    return !is_cut || (in_runs && has_neighbours);
  }

  void mark_inlined(ir::ValueId v, int depth, std::string reason) {
    out_.inlined[v] = true;
    inline_depth_[v] = depth;
    decide("inline", v, "read through", std::move(reason));
  }

  // Puts the value into the group of one of its producers, or into a new one.
  void place(ir::ValueId v, Probe& p) {
    Producers producers;
    for (const ProbeRead& r : p.reads) {
      out_.reads[v].insert(r.value);
      if (group_of_[r.value] != ir::kNoId) producers.insert(group_of_[r.value]);
    }
    std::vector<Alternative> refused;  // the groups it could not join, in the order tried
    const bool may_join = options_.fuse && !kept_apart(v);
    if (may_join) {
      for (uint32_t g : producers) {
        Member m{.value = v};
        const std::string reason = try_join(g, p, m);
        if (reason.empty() && !makes_cycle(g, producers)) {
          join(g, m, producers);
          const char* why = m.reduces ? "row_reduction" : m.per_row ? "row_value" : "same_space";
          decide("fusion", v, "joined " + group_name(g), why, std::move(refused));
          return;
        }
        refused.push_back(
            {.name = group_name(g), .rejected = reason.empty() ? "would_make_cycle" : reason});
      }
    }
    std::string why_not = !options_.fuse    ? "fusion_off"
                          : !may_join       ? std::string(kKeptApart)
                          : refused.empty() ? "no_producer_group"
                                            : refused.back().rejected;
    if (out_.reasons[v] == kKeepsStrides) why_not = kKeepsStrides;
    start_group(v, p, producers);
    decide("fusion", v, "new group", std::move(why_not), std::move(refused));
  }

  // The values node n loads: its inputs, or what those that are read through load.
  void add_reads(ir::NodeId n, ValueSet& reads) const {
    for (ir::ValueId v : graph_.nodes[n].inputs) {
      if (out_.inlined[v]) {
        add_reads(graph_.value(v).producer, reads);
      } else if (!is_immediate(graph_.value(v))) {
        reads.insert(v);
      }
    }
  }

  void place_kernel(ir::NodeId n) {
    GroupPlan group;
    group.shape = GroupShape::kKernel;
    ValueSet reads;
    add_reads(n, reads);
    Producers producers;
    for (ir::ValueId r : reads) {
      if (group_of_[r] != ir::kNoId) producers.insert(group_of_[r]);
    }
    const auto g = static_cast<uint32_t>(out_.groups.size());
    for (ir::ValueId v : graph_.nodes[n].outputs) {
      if (readers_.of(v).empty() && !stored_for_output(v)) continue;
      group.members.push_back({.value = v});
      group.elements = std::max(group.elements, graph_.type(v).elements());
      out_.reads[v] = reads;
      group_of_[v] = g;
      decide("fusion", v, "new group", "whole_kernel");
    }
    if (group.members.empty()) return;
    out_.reasons[graph_.nodes[n].outputs[0]] = "whole_kernel";
    out_.groups.push_back(std::move(group));
    add_dependencies(g, producers);
  }

  bool makes_cycle(uint32_t g, const Producers& producers) const {
    return std::any_of(producers.begin(), producers.end(),
                       [&](uint32_t h) { return h != g && out_.groups[h].depends.contains(g); });
  }

  // The whole output is one reduction per element whose index runs with unit stride in memory.
  static bool reduces_rows(const Probe& p) {
    if (p.reductions.size() != 1 || p.reductions[0].kind == loop::ReduceKind::kChain) return false;
    if (p.reductions[0].extent < 2) return false;
    return std::any_of(p.reads.begin(), p.reads.end(), [&](const ProbeRead& r) {
      return r.in_reduction && !r.guarded &&
             loop::affine_of(*p.pool, r.offset).coefficient(*p.pool, p.reductions[0].var) == 1;
    });
  }

  // Fills in `m` and returns "" when the value can be computed in group g, or the reason why not.
  std::string try_join(uint32_t g, Probe& p, Member& m) {
    const GroupPlan& group = out_.groups[g];
    if (group.shape == GroupShape::kKernel) return "whole_kernel";
    if (group.elements == 0 || p.elements == 0) return "nothing_to_compute";
    if (group.shape == GroupShape::kFlat) {
      if (p.pointwise()) {
        if (p.elements != group.elements) return "other_space";
        for (const ProbeRead& r : p.reads) {
          if (group.find(r.value) != nullptr && (r.offset != p.linear || r.guarded)) {
            return "other_index";
          }
        }
        return "";
      }
      if (group.lane_reduction || !reduces_rows(p)) return "reduction_after_other_space";
      const int64_t cols = p.reductions[0].extent;
      if (p.elements * cols != group.elements) return "other_space";
      return join_rows(group, p.elements, cols, p, m);
    }
    return join_rows(group, group.rows, group.cols, p, m);
  }

  // Expressions that are compared with the probe's are added to its pool.
  std::string join_rows(const GroupPlan& group, int64_t rows, int64_t cols, Probe& p, Member& m) {
    if (cols > kMaxRowElements) return "row_too_long";
    m.reduces = !p.pointwise();
    m.per_row = m.reduces || (p.elements == rows && p.elements != rows * cols);
    if (m.reduces && (!reduces_rows(p) || p.reductions[0].extent != cols || p.elements != rows)) {
      return "other_rows";
    }
    if (!m.per_row && p.elements != rows * cols) return "other_space";
    // What a read of a per-point and of a per-row member must look like.
    loop::Pool& pool = *p.pool;
    const loop::ExprId column_count = pool.integer(cols);
    loop::ExprId row = p.linear;
    if (!m.per_row) row = pool.binary(loop::Op::kFloorDiv, p.linear, column_count);
    loop::ExprId point = m.per_row ? loop::kNone : p.linear;
    if (m.reduces) {
      point = pool.binary(loop::Op::kAdd, pool.binary(loop::Op::kMul, p.linear, column_count),
                          pool.var(p.reductions[0].var));
    }
    m.level = m.per_row && !m.reduces ? -1 : 0;
    for (const ProbeRead& r : p.reads) {
      const Member* read = group.find(r.value);
      if (read == nullptr) continue;
      if (r.guarded) return "other_index";
      if (read->per_row) {
        if (r.offset != row) return "other_index";
        const bool whole_pass = !m.per_row || (m.reduces && r.in_reduction);
        m.level = std::max(m.level, whole_pass ? read->level + 1 : read->level);
      } else {
        if (m.per_row && !m.reduces) return "row_value_reads_points";
        if (r.offset != point) return "other_index";
        m.level = std::max(m.level, read->level);
      }
    }
    return "";
  }

  void join(uint32_t g, const Member& m, const Producers& producers) {
    GroupPlan& group = out_.groups[g];
    if (group.shape == GroupShape::kFlat && m.per_row) {
      group.shape = GroupShape::kRows;
      group.rows = graph_.type(m.value).elements();
      group.cols = group.elements / group.rows;
    }
    group.members.push_back(m);
    group_of_[m.value] = g;
    add_dependencies(g, producers);
  }

  void add_dependencies(uint32_t g, const Producers& producers) {
    GroupSet added;
    for (uint32_t h : producers) {
      if (h == g) continue;
      added.insert(h);
      added.insert(out_.groups[h].depends);
    }
    if (added.empty()) return;
    for (uint32_t k = 0; k < out_.groups.size(); ++k) {
      if (k == g || out_.groups[k].depends.contains(g)) {
        out_.groups[k].depends.insert(added);
      }
    }
  }

  void start_group(ir::ValueId v, const Probe& p, const Producers& producers) {
    GroupPlan group;
    Member m{.value = v};
    group.elements = p.elements;
    if (!p.pointwise() && reduces_rows(p)) {
      group.shape = GroupShape::kRows;
      group.rows = p.elements;
      group.cols = p.reductions[0].extent;
      group.elements = group.rows * group.cols;
      m.reduces = m.per_row = true;
    } else {
      group.lane_reduction = !p.pointwise();
    }
    group.members.push_back(m);
    const auto g = static_cast<uint32_t>(out_.groups.size());
    out_.groups.push_back(std::move(group));
    group_of_[v] = g;
    add_dependencies(g, producers);
  }

  // Groups were started in topological order, but a late member may need a later group.
  void order_groups() {
    std::vector<GroupPlan> ordered;
    GroupSet done;
    while (ordered.size() < out_.groups.size()) {
      const size_t before = ordered.size();
      for (uint32_t g = 0; g < out_.groups.size(); ++g) {
        if (done.contains(g) || !out_.groups[g].depends.within(done)) continue;
        done.insert(g);
        ordered.push_back(std::move(out_.groups[g]));
      }
      PYC_CHECK(ordered.size() > before, "groups depend on one another");
    }
    out_.groups = std::move(ordered);
  }

  const ir::Graph& graph_;
  const LowerOptions& options_;
  ir::Readers readers_;
  std::vector<bool> is_output_;  // and no other value is written in its place
  std::vector<bool> kernel_input_;
  std::vector<int> inline_depth_;
  std::vector<int64_t> made_of_;    // elements that are read for it where it is read through
  std::vector<uint32_t> group_of_;  // by value
  Grouping out_;
  const std::vector<bool> none_;  // by value: read through
  Probes plain_;
};

}  // namespace

const Member* GroupPlan::find(ir::ValueId v) const {
  for (const Member& m : members) {
    if (m.value == v) return &m;
  }
  return nullptr;
}

Grouping form_groups(const ir::Graph& graph, Layouts layouts, Orders orders,
                     const LowerOptions& options) {
  return Former(graph, std::move(layouts), std::move(orders), options).run();
}

}  // namespace pyc::lower
