#pragma once

// Which order the products of a node are summed in (docs/NUMERICS.md, matrix units). The table of
// named orders is matrix_units(): name, block, segment, dtypes; what no row covers is canonical.
// Private to lower/.

#include <string_view>
#include <vector>

#include "base/matrix_unit.h"
#include "ir/graph.h"

namespace pyc::lower {

// By node, fixed on the canonical graph before groups are formed. No later stage can change it: a
// group has the order of its product.
class Orders {
 public:
  Orders() = default;  // all canonical
  // With the units of device kind `kind`; "" has none.
  Orders(const ir::Graph& graph, std::string_view kind);

  // The row whose order the node's products have; null: canonical, or no products.
  const MatrixUnit* unit(ir::NodeId node) const {
    return node < units_.size() ? units_[node] : nullptr;
  }

 private:
  std::vector<const MatrixUnit*> units_;
};

}  // namespace pyc::lower
