#pragma once

// What an op's `kernel` function works with. It writes the Loop IR kernel of its node statement by
// statement: parallel variables first, then loops, stores and checks, each into the loop whose body
// is being written. Offsets are row-major positions. Results of `reduce` are usable in the loop
// that the call stands in.

#include "ops/lowering.h"

namespace pyc::ops {

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
  // it is kNone, and stores to it are left out.
  virtual uint32_t scratch(DType t, int64_t elements) = 0;
  virtual uint32_t output(int i) = 0;
  virtual Expr load(uint32_t buffer, Expr offset) = 0;
  virtual void store(uint32_t buffer, Expr offset, Expr value) = 0;

  // A loop that carries nothing.
  void each(int64_t extent, Order order, const std::function<void(Expr i)>& body) {
    loop(extent, order, {}, [&](Expr i, std::span<const Expr>) {
      body(i);
      return std::vector<Expr>{};
    });
  }
};

}  // namespace pyc::ops
