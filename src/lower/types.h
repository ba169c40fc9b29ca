#pragma once

// What lowering hands to selection, planning and the backends.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/decision.h"
#include "base/fault.h"
#include "ir/graph.h"
#include "loop/in_place.h"
#include "loop/loop.h"

namespace pyc::lower {

// The order of products that every backend and the reference have: fma chains over segments of 256.
inline constexpr std::string_view kCanonicalOrder = "canonical";

// What a target tells the choice of layouts: nanoseconds of one thread, roughly. All 0: there is
// nothing to choose by, and everything is row-major.
struct LayoutFacts {
  double tile_product = 0.0;     // a product in a register tile
  double generic_product = 0.0;  // in a loop, both factors beside those of the next lane
  double read = 0.0;             // an element beside that of the next lane
  double strided_read = 0.0;     // an element that is not
  double packed_read = 0.0;      // an element copied together with its neighbours for a tile
  int64_t run = 1;               // so many neighbours, or a multiple, are copied together
  double step = 0.0;  // of a sum that is not along memory, and so one thread's, however many run

  bool known() const { return tile_product > 0.0; }
};

enum class GroupKind : uint8_t { kLoop, kContraction };

// A matrix product found in a group's kernel. One point of (batch…, m, n) computes
// result = chain over k of a[…]·b[…], segments of `segment`, then stores expressions of it. `a`
// does not depend on n, `b` does not depend on m; a batch variable is any that is neither. m_var,
// n_var, k_var and batch_vars are variables of `kernel`; m_var is kNone where m is 1.
struct Contraction {
  // How an element of an operand follows from (batch…, row, k).
  enum class Form : uint8_t {
    kLinear,  // a load with fixed strides
    kDigits,  // a load, perhaps converted, whose offset is a sum of functions of one variable each
    kComputed,  // anything else: a window with padding, a dequantised value
  };
  struct Operand {
    Form form = Form::kLinear;
    // The element, of the accumulator's dtype. Where the kernel skips a term, one of the operands
    // is +0 and the other a constant that was found finite: that changes no bit.
    loop::ExprId value = loop::kNone;
    // The load that it is but for a conversion, and where it loads from; kNone if it is computed.
    loop::ExprId load = loop::kNone;
    uint32_t buffer = loop::kNone;
    DType dtype = DType::kF32;  // in memory
    // kLinear only, in elements of the buffer.
    int64_t base = 0;
    int64_t row_stride = 0;  // per m (a) or per n (b)
    int64_t k_stride = 0;
    std::vector<int64_t> batch_strides;
    // Of an integer product: value = byte - zero, both i8 or u8 and widened; zero, the zero point,
    // does not depend on k and is kNone for 0. kNone if the value is no such difference; else
    // `load` is the byte where that is a load.
    loop::ExprId byte = loop::kNone;
    loop::ExprId zero = loop::kNone;
  };
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 0;
  int64_t segment = 0;
  DType dtype = DType::kF32;  // the accumulator's
  std::vector<loop::VarId> batch_vars;
  std::vector<int64_t> batch;
  loop::VarId m_var = loop::kNone;
  loop::VarId n_var = loop::kNone;
  loop::VarId k_var = loop::kNone;
  loop::VarId result = loop::kNone;
  Operand a;
  Operand b;
  // What the variables and expressions belong to: the group's kernel with its dims cut so that m
  // and n are as long as can be. Same buffers, same bits; where the group has a named order, its
  // chain stands for the sum in that order.
  std::shared_ptr<const loop::Kernel> kernel;

  int64_t batch_size() const;
  // For a load: the constant part of its offset, and for each value of `var` the part that follows
  // from it, in elements.
  int64_t base_of(const Operand& operand) const;
  std::vector<int64_t> offsets_of(const Operand& operand, loop::VarId var) const;
};

// An attention as a group's kernel has it (docs/NUMERICS.md): one point of (batch…, query) walks
// blocks of `block` keys. The kernel's loops are the generic form; this names its parts, so that a
// backend can compute several queries at once. Expressions are of the kernel's pool. In a named
// order `product` is a variable of no loop, weights are rounded to `factors` for the product with
// the values, and the sums over values continue from those of the blocks before.
struct Attention {
  // An operand that lies in memory with fixed strides, in elements of its buffer.
  struct Operand {
    uint32_t buffer = 0;
    DType dtype = DType::kF32;
    int64_t base = 0;
    int64_t row_stride = 0;  // per query or key
    int64_t column_stride = 0;
    std::vector<int64_t> batch_strides;
  };
  std::vector<loop::VarId> batch_vars;  // kNone where the extent is 1
  std::vector<int64_t> batch;
  loop::VarId query_var = loop::kNone;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t block = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  DType dtype = DType::kF32;    // arithmetic is done in it
  DType factors = DType::kF32;  // of q, k and v
  std::optional<Operand> q;     // empty: computed, or no fixed strides
  std::optional<Operand> k;
  std::optional<Operand> v;

  // The score of key block_var·block + key_var from the product; −inf for a key out of range.
  loop::VarId block_var = loop::kNone;
  loop::VarId key_var = loop::kNone;
  loop::VarId product = loop::kNone;
  loop::ExprId score = loop::kNone;
  loop::ExprId in_range = loop::kNone;  // whether there is such a key; kNone: always
  // Variables of no loop, for the formulas of one row: an element's place, a score s, the maximum
  // before and after a block, a sum over values and the row's sum.
  loop::VarId lane_var = loop::kNone;
  loop::VarId s = loop::kNone;
  loop::VarId m_before = loop::kNone;
  loop::VarId m = loop::kNone;
  loop::VarId o = loop::kNone;
  loop::VarId l = loop::kNone;
  loop::ExprId weight = loop::kNone;  // of s and m
  loop::ExprId factor = loop::kNone;  // of m_before and m: what is kept of earlier blocks
  loop::ExprId result = loop::kNone;  // of o, l and m
  // What is stored after the last block, row-major: result per column, then m and l. A buffer that
  // nothing reads is kNone.
  struct Output {
    uint32_t buffer = loop::kNone;
    loop::ExprId value = loop::kNone;
  };
  Output outputs[3];
  int64_t batch_size() const;
};

// Nodes that become one kernel.
struct Group {
  std::string name;  // "g0", "g1", …
  GroupKind kind = GroupKind::kLoop;
  std::vector<ir::NodeId> members;   // in topological order
  std::vector<std::string> reasons;  // why each member is here: a reason code
  loop::Kernel kernel;               // the generic form; every backend can run it
  // Value held by each kernel buffer; ir::kNoId for scratch.
  std::vector<ir::ValueId> buffer_values;
  // Element of that value at which each kernel buffer begins; empty: at its first.
  std::vector<int64_t> buffer_offsets;
  int64_t buffer_offset(size_t buffer) const {
    return buffer < buffer_offsets.size() ? buffer_offsets[buffer] : 0;
  }
  // The plan gives both the same memory.
  void set_in_place(uint32_t written, uint32_t read) {
    kernel.buffers[written].in_place_of = read;
    if (!contraction || contraction->kernel == nullptr) return;
    auto cut = std::make_shared<loop::Kernel>(*contraction->kernel);
    cut->buffers[written].in_place_of = read;
    contraction->kernel = std::move(cut);
  }
  int64_t buffer_offset_bytes(size_t buffer) const {
    return buffer_offset(buffer) * dtype_size(kernel.buffers[buffer].dtype);
  }
  std::optional<Contraction> contraction;
  std::optional<Attention> attention;
  // The order of its products (orders.h): fixed by the canonical graph, the level and the device
  // kind before groups are formed; all products of a group have the same. `kernel` computes it.
  std::string order = std::string(kCanonicalOrder);
  std::vector<Fault> faults;  // what fault code i+1 means
  double flops = 0.0;         // arithmetic of the whole group, roughly
  int64_t bytes = 0;          // distinct bytes read and written
};

struct LoweredGraph {
  // The canonical graph the groups refer to, its constants as they lie in memory.
  ir::VerifiedGraph graph;
  std::vector<Group> groups;  // in an order that can be executed
  // Storage of model output i: the value whose group writes it (an output that is only another
  // shape of a computed value is written by that value's group).
  std::vector<ir::ValueId> output_values;
  DecisionLog decisions;
};

// What a kernel candidate asks of the planner.
struct KernelNeeds {
  int64_t workspace_bytes = 0;  // shared by all threads of the step
  int64_t scratch_bytes = 0;    // per thread
  struct Packed {
    ir::ValueId source;  // a constant the kernel reads in packed form only
    int64_t bytes;
    // How it is packed. One source packed by equal descriptions is packed once and shared.
    std::string packing = {};
  };
  std::vector<Packed> packed;
  // Buffers of the group's kernel that may be the same memory for it (loop/in_place.h).
  std::vector<loop::InPlacePair> in_place;
  // Read buffers of it that are packed in steps of their own, before the step that writes results:
  // a result of as many bytes may lie where one of them was.
  std::vector<uint32_t> read_first = {};
};

}  // namespace pyc::lower
