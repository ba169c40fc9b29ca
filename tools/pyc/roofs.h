#pragma once

#include "command.h"

namespace pyc::tool {

// What the device reaches at best, measured with PyC's own kernels: the better of two square matrix
// products, and a pass over more memory than caches hold.
struct Roofs {
  double flops_per_ns = 0.0;
  double bytes_per_ns = 0.0;
  double byte_products_per_ns = 0.0;  // flops of a product of bytes; 0: not asked for
};

Roofs probe_roofs(const CompileOptions& options, bool byte_products = false);

}  // namespace pyc::tool
