#pragma once

// What lowering hands to selection, planning and the backends.

#include <optional>
#include <string>
#include <vector>

#include "base/decision.h"
#include "ir/graph.h"
#include "loop/loop.h"

namespace pyc::lower {

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
