#pragma once

// What an op's `kernel` function works with. It writes the Loop IR kernel of its node statement by
// statement: parallel variables first, then loops, stores and checks, each into the loop whose body
// is being written. Offsets are row-major positions. Results of `reduce` are usable in the loop
// that the call stands in.

#include "ops/lowering.h"

namespace pyc::ops {

// An attention: for each query a softmax over the products with all keys, and the values' sum by
// it, in the order of docs/NUMERICS.md. Operands are expressions of f32 or f64 elements. `at` has
// an index for each dim of `batch`; where `in_range` is valid, a key is in range only where it
// holds.
struct AttentionForm {
  using At = std::span<const Expr>;
  std::vector<int64_t> batch;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t depth = 0;    // of queries and keys
  int64_t columns = 0;  // of values
  std::function<Expr(At at, Expr query, Expr d)> q;
  std::function<Expr(At at, Expr key, Expr d, Expr in_range)> k;
  std::function<Expr(At at, Expr key, Expr column, Expr in_range)> v;
  // From the product of a query and a key.
  std::function<Expr(At at, Expr query, Expr key, Expr product, Expr in_range)> score;
};

class KernelContext : public LowerContext {
 public:
  // A new parallel variable; to be called before any statement.
  virtual Expr parallel(int64_t extent) = 0;

  enum class Order : uint8_t {
    kSerial,   // iterations store to different elements
    kVector,   // … and are independent
    kOrdered,  // may store to one element repeatedly and read what is stored
  };
  // A value carried from one iteration to the next; with an extent it is an i64 proven to stay in
  // [0, extent).
  struct Carried {
    Expr init;
    int64_t extent = loop::kResult;
  };
  // Writes the body, given the iteration and what is carried; returns what is carried on.
  using Body = std::function<std::vector<Expr>(Expr i, std::span<const Expr> carried)>;
  // A loop; returns what is carried out of it.
  virtual std::vector<Expr> loop(int64_t extent, Order order, std::span<const Carried> carried,
                                 const Body& body) = 0;

  // Buffers: memory of the point's own, or an output. One that nothing reads is no buffer at all:
  // it is kNone, and stores to it are left out. An element is named by its number in the order of
  // the shape, the last dim fastest, wherever it lies in memory.
  virtual uint32_t scratch(DType t, int64_t elements) = 0;
  virtual uint32_t output(int i) = 0;
  virtual Expr load(uint32_t buffer, Expr offset) = 0;
  virtual void store(uint32_t buffer, Expr offset, Expr value) = 0;

  // `start` plus the terms' products, block after block as unit() adds them, in one segment; only
  // where there is a unit.
  virtual Expr add_products(Expr start, int64_t extent,
                            const std::function<ReduceTerm(Expr k)>& term) = 0;

  // The whole kernel: output 0 is [batch…, queries, columns], outputs 1 and 2, [batch…, queries],
  // are each row's maximum and sum.
  virtual void attention(const AttentionForm& form) = 0;

  // A loop that carries nothing.
  void each(int64_t extent, Order order, const std::function<void(Expr i)>& body) {
    loop(extent, order, {}, [&](Expr i, std::span<const Expr>) {
      body(i);
      return std::vector<Expr>{};
    });
  }
};

using Order = KernelContext::Order;

}  // namespace pyc::ops
