#pragma once

// What lowering hands to selection, planning and the backends.

#include <optional>
#include <string>
#include <vector>

#include "base/decision.h"
#include "ir/graph.h"
#include "loop/loop.h"

namespace pyc::lower {

// The order of products that every backend and the reference have: fma chains over segments of 256.
inline constexpr std::string_view kCanonicalOrder = "canonical";

enum class GroupKind : uint8_t { kLoop, kContraction };

// A matrix product found in a group's kernel, as strides. In the kernel, one point of
// (batch…, m, n) computes result = chain over k of a[…]·b[…], segments of `segment`, then stores
// expressions of it. `a` does not depend on n, `b` does not depend on m. Strides are in elements
// of the operand's buffer. m_var, n_var and batch_vars are kernel variables; a variable that does
// not exist (extent 1) is kNone.
struct Contraction {
  struct Operand {
    uint32_t buffer = 0;
    DType dtype = DType::kF32;
    int64_t base = 0;
    int64_t row_stride = 0;  // per m (a) or per n (b)
    int64_t k_stride = 0;
    std::vector<int64_t> batch_strides;
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
  loop::VarId result = loop::kNone;
  Operand a;
  Operand b;
  int64_t batch_size() const;
};

// An attention as a group's kernel has it (docs/NUMERICS.md): one point of (batch…, query) walks
// blocks of `block` keys. The kernel's loops are the generic form; this names its parts, so that a
// backend can compute several queries at once. Expressions are of the kernel's pool.
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
  DType dtype = DType::kF32;  // arithmetic is done in it
  std::optional<Operand> q;   // empty: computed, or no fixed strides
  std::optional<Operand> k;
  std::optional<Operand> v;

  // The score of key block_var·block + key_var from the product; −inf for a key out of range.
  loop::VarId block_var = loop::kNone;
  loop::VarId key_var = loop::kNone;
  loop::VarId product = loop::kNone;
  loop::ExprId score = loop::kNone;
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
  std::optional<Contraction> contraction;
  std::optional<Attention> attention;
  // The order of its products, fixed by the canonical graph, the level and the device kind before
  // groups are formed; all products of a group have the same.
  std::string order = std::string(kCanonicalOrder);
  std::vector<std::string> faults;  // message of fault code i+1
  double flops = 0.0;               // arithmetic of the whole group, roughly
  int64_t bytes = 0;                // distinct bytes read and written
};

struct LoweredGraph {
  ir::VerifiedGraph graph;    // the canonical graph the groups refer to
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
  };
  std::vector<Packed> packed;
};

}  // namespace pyc::lower
