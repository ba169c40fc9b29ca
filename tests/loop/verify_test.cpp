#include "loop/verify.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "loop/builder.h"
#include "loop/parse.h"

namespace pyc::loop {
namespace {

// The verifier's message for a kernel in text form, or "" where it accepts.
std::string verdict(const std::string& text) {
  auto kernel = parse_kernel("kernel {\n" + text + "\n}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  if (!kernel.ok()) return "not parsed";
  const Status status = verify_kernel(*kernel);
  EXPECT_TRUE(status.ok() || status.code() == Code::kVerifyFailed);
  return status.message();
}

#define EXPECT_REFUSED(text, message) EXPECT_EQ(verdict(text), "loop kernel '': " message)
#define EXPECT_ACCEPTED(text) EXPECT_EQ(verdict(text), "")

const std::string kBuffers =
    "buffer b0: f32[64] read\n"
    "buffer b1: f32[64] write\n"
    "buffer b2: f32[16] scratch\n"
    "buffer b3: i64[64] read\n";

TEST(Verify, AcceptsAWholeKernel) {
  EXPECT_ACCEPTED(kBuffers + R"(
parallel v0 < 4
loop v1 < 16 vector {
  b2[v1] = b0[v0*16 + v1]
  reduce v2: f32 = tree sum(b2[v1])
}
loop v3 < 16 {
  reduce v4: f32 = chain sum(b2[v3], v2) segment 8 if v3 < 9
}
check v4 < 100:f32 else 4
loop v5 < 16 vector {
  b1[v0*16 + v5] = b2[v5] / v4
})");
}

TEST(Verify, Types) {
  EXPECT_REFUSED(kBuffers + "b1[0] = f32(sqrt(b3[0]))",
                 "store 0: an operation that i64 does not have");
  EXPECT_REFUSED(kBuffers + "b1[0] = f32(f16(b0[0]) + f16(b0[1]))",
                 "store 0: an operation that f16 does not have");
  EXPECT_REFUSED(kBuffers + "b1[0] = rem(b0[0], b0[1])",
                 "store 0: an operation that f32 does not have");
  EXPECT_REFUSED(kBuffers + "b1[0] = f32(true + false)",
                 "store 0: an operation that bool does not have");
  EXPECT_REFUSED(kBuffers + "b1[0] = b3[0]",
                 "store 0: a value of type i64 for buffer b1 of type f32");
  EXPECT_REFUSED(kBuffers + "b1[0:i32] = b0[0]", "store 0: its offset is no i64");
  EXPECT_REFUSED(kBuffers + "check b0[0] else 2", "check 0: its condition is no bool");
  EXPECT_REFUSED(kBuffers + "check true else 0", "check 0: its code is 0, which means no fault");
}

TEST(Verify, TypesThatTheTextCannotSay) {
  const auto message = [](auto make) {
    Kernel k;
    k.name = "k";
    k.buffers = {{"x", DType::kF32, 4, Access::kRead}, {"y", DType::kF32, 4, Access::kWrite}};
    const ExprId zero = k.pool.integer(0);
    k.stores = {{1, zero, make(k.pool, k.pool.load(0, DType::kF32, zero))}};
    k.body = {{StmtKind::kStore, 0}};
    return verify_kernel(k).message();
  };
  EXPECT_EQ(message([](Pool& p, ExprId x) { return p.fma(x, p.constant(DType::kF64, 0), x); }),
            "loop kernel 'k': store 0: operands of different types");
  EXPECT_EQ(message([](Pool& p, ExprId) { return p.load(0, DType::kI32, p.integer(0)); }),
            "loop kernel 'k': store 0: a load of type i32 from buffer b0 of type f32 needs equal "
            "types and an i64 offset");
  EXPECT_EQ(message([](Pool& p, ExprId) { return p.load(7, DType::kF32, p.integer(0)); }),
            "loop kernel 'k': store 0: a load of a buffer that does not exist");
  EXPECT_EQ(message([](Pool& p, ExprId x) { return p.load(0, DType::kF32, p.integer(0), x, x); }),
            "loop kernel 'k': store 0: a guarded load needs a bool and a fallback of its type");
  EXPECT_EQ(message([](Pool& p, ExprId x) { return p.table_load(p.table(DType::kF32, {0}), x); }),
            "loop kernel 'k': store 0: a table load needs a table and an i64");
}

TEST(Verify, Scopes) {
  EXPECT_REFUSED(kBuffers + "loop v0 < 4 {\n b1[v0] = b0[v0]\n }\n b1[v0] = b0[0]",
                 "store 1: a variable is used outside its scope");
  EXPECT_REFUSED(kBuffers + R"(
loop v0 < 4 {
  loop v1 < 4 { reduce v2: f32 = tree sum(b0[v1]) }
}
b1[0] = v2)",
                 "store 0: a variable is used outside its scope");
  // A result is not there inside its own loop; the text declares it last, so this is built.
  Kernel k;
  k.buffers = {{"y", DType::kF32, 4, Access::kWrite}};
  const VarId i = k.pool.new_var("i", DType::kI64, 4);
  Reduction r;
  r.value = k.pool.constant(DType::kF32, 0);
  r.result = k.pool.new_var("sum", DType::kF32, kResult);
  k.stores = {{0, k.pool.var(i), k.pool.var(r.result)}};
  k.loops.resize(1);
  k.loops[0].var = i;
  k.loops[0].extent = 4;
  k.loops[0].body = {{StmtKind::kStore, 0}};
  k.loops[0].reductions = {r};
  k.body = {{StmtKind::kLoop, 0}};
  EXPECT_EQ(verify_kernel(k).message(),
            "loop kernel '': store 0: a variable is used outside its scope");
}

TEST(Verify, Structure) {
  Kernel k;
  k.buffers = {{"y", DType::kF32, 4, Access::kWrite}};
  const VarId i = k.pool.new_var("i", DType::kI64, 4);
  k.stores = {{0, k.pool.integer(0), k.pool.constant(DType::kF32, 0)}};
  k.loops.resize(1);
  k.loops[0].var = i;
  k.loops[0].extent = 4;
  const auto message = [](const Kernel& kernel) { return verify_kernel(kernel).message(); };
  Kernel bad = k;
  bad.body = {{StmtKind::kStore, 0}, {StmtKind::kStore, 0}};
  EXPECT_EQ(message(bad), "loop kernel '': store 0: the statement is in two places");
  bad.body = {{StmtKind::kCheck, 0}};
  EXPECT_EQ(message(bad), "loop kernel '': check 0: there is no such statement");
  bad.body = {{StmtKind::kLoop, 0}};
  EXPECT_EQ(message(bad), "");
  bad.loops[0].body = {{StmtKind::kLoop, 0}};
  EXPECT_EQ(message(bad), "loop kernel '': loop 0: the statement is in two places");
  bad = k;
  bad.body = {{StmtKind::kLoop, 0}};
  bad.parallel = {i};
  EXPECT_EQ(message(bad),
            "loop kernel '': loop 0: its variable already belongs to another statement");
  bad = k;
  bad.loops[0].extent = 5;
  bad.body = {{StmtKind::kLoop, 0}};
  EXPECT_EQ(message(bad), "loop kernel '': loop 0: its variable is not an i64 of its extent");
  bad = k;
  bad.buffers[0].elements = -1;
  EXPECT_EQ(message(bad), "loop kernel '': buffer b0: a negative number of elements");
  bad = k;
  bad.parallel = {k.pool.new_var("r", DType::kF32, kResult)};
  bad.pool = k.pool;
  EXPECT_EQ(message(bad), "loop kernel '': parallel: its variables are i64 with an extent");
}

TEST(Verify, Access) {
  EXPECT_REFUSED(kBuffers + "b0[0] = 1:f32", "store 0: buffer b0 is only read");
  EXPECT_REFUSED(kBuffers + "b1[0] = b1[1]",
                 "store 0: a load of buffer b1, which is written, in no ordered loop");
}

TEST(Verify, Bounds) {
  EXPECT_REFUSED(kBuffers + "parallel v0 < 65\nb2[0] = b0[v0]",
                 "store 0: offset in [0, 64] of buffer b0, which has 64 elements");
  EXPECT_REFUSED(kBuffers + "parallel v0 < 64\nb1[v0 - 1] = b0[v0]",
                 "store 0: offset in [-1, 62] of buffer b1, which has 64 elements");
  EXPECT_REFUSED("buffer b0: f32[4] write\nbuffer b1: i64[4] read\nb0[0] = f32(b1[b1[0]])",
                 "store 0: offset in [-9223372036854775808, 9223372036854775807] of buffer b1, "
                 "which has 4 elements");
  EXPECT_REFUSED(
      "buffer b0: f32[4] write\ntable c0: f32 = [1, 2]\nparallel v0 < 4\nb0[v0] = c0[v0]",
      "store 0: offset in [0, 3] of table 0, which has 2 elements");
  EXPECT_ACCEPTED(kBuffers + "parallel v0 < 64\nb1[v0] = b0[v0 - 1] if 1 <= v0 else 0:f32");
  EXPECT_ACCEPTED(kBuffers + "b1[0] = b0[min(max(b3[0], 0), 63)]");
  // Nothing runs, so nothing is out of bounds.
  EXPECT_ACCEPTED(
      "buffer b0: f32[0] read\nbuffer b1: f32[0] write\nparallel v0 < 0\nb1[v0] = b0[v0]");
  EXPECT_ACCEPTED(
      "buffer b0: f32[0] read\nbuffer b1: f32[0] write\nloop v0 < 0 { b1[v0] = b0[v0] }");
}

TEST(Verify, Reductions) {
  const auto reduce = [](const std::string& head, const std::string& text) {
    return verdict(kBuffers + "parallel v9 < 8\nloop v0 < 64 " + head + "{\n reduce v1: " + text +
                   "\n}");
  };
  const std::string where = "loop kernel '': loop 0, reduction 0: ";
  EXPECT_EQ(reduce("", "f32 = chain sum(b0[v0], b0[v0]) segment 16"), "");
  EXPECT_EQ(reduce("chunk 8 of v9 ", "f32 = chain sum(b0[v0]) segment 4"), "");
  EXPECT_EQ(reduce("chunk 8 of v9 ", "f32 = exact max(b0[v0])"), "");
  EXPECT_EQ(reduce("vector ", "f32 = chain sum(b0[v0])"), where + "a chain in a vector loop");
  EXPECT_EQ(reduce("chunk 8 of v9 ", "f32 = tree sum(b0[v0])"), where + "a tree in a chunked loop");
  EXPECT_EQ(reduce("chunk 8 of v9 ", "f32 = chain sum(b0[v0]) segment 5"),
            where + "chunks that cut a segment");
  EXPECT_EQ(reduce("", "f32 = chain prod(b0[v0])"),
            where + "a chain is a sum of f32, f64 or integers");
  EXPECT_EQ(reduce("", "f16 = chain sum(f16(b0[v0]))"),
            where + "a chain is a sum of f32, f64 or integers");
  EXPECT_EQ(reduce("", "f32 = tree max(b0[v0])"),
            where + "a tree is a sum or product of f32, f64 or integers");
  EXPECT_EQ(reduce("", "f32 = exact sum(b0[v0])"),
            where + "an exact reduction whose order could change the result");
  EXPECT_EQ(reduce("", "bool = exact sum(v0 < 4)"),
            where + "an exact reduction whose order could change the result");
  EXPECT_EQ(reduce("", "f32 = exact and(b0[v0])"),
            where + "an exact reduction whose order could change the result");
  EXPECT_EQ(reduce("", "f64 = tree sum(b0[v0])"), where + "an operand of type f32, expected f64");
  EXPECT_EQ(reduce("", "f32 = tree sum(b0[v0]) if b0[v0]"),
            where + "an operand of type f32, expected bool");
  EXPECT_EQ(reduce("", "f32 = tree sum(b0[v0], b0[v0])"),
            where + "only a chain has a second value or segments");
  EXPECT_EQ(reduce("", "f32 = tree sum(b0[v0]) segment 4"),
            where + "only a chain has a second value or segments");
}

TEST(Verify, Chunks) {
  const auto chunked = [](const std::string& head) {
    return verdict(kBuffers + "parallel v9 < 8\nloop v8 < 2 {\n loop v0 < 64 " + head + "{ } }");
  };
  EXPECT_EQ(chunked("chunk 8 of v9 "), "");
  EXPECT_EQ(chunked("chunk 7 of v9 "),
            "loop kernel '': loop 1: its chunks do not cover its extent");
  EXPECT_EQ(chunked("chunk 0 of v9 "), "loop kernel '': loop 1: its chunks are empty");
  EXPECT_EQ(chunked("chunk 32 of v8 "),
            "loop kernel '': loop 1: its chunks are not counted by a parallel variable");
}

const std::string kOut = "buffer b0: f32[4096] write\n";
const std::string kOverlap =
    "loop kernel '': store 0: cannot be proven apart from itself at another parallel point, both "
    "to buffer b0";

TEST(Verify, DisjointStores) {
  EXPECT_ACCEPTED(kOut + "parallel v0 < 8\nparallel v1 < 4\nb0[v0*4 + v1] = 0:f32");
  EXPECT_ACCEPTED(kOut + "parallel v0 < 8\nparallel v1 < 4\nb0[v1*8 + v0] = 0:f32");
  EXPECT_ACCEPTED(kOut + "parallel v0 < 8\nb0[4000 - v0*3] = 0:f32");
  EXPECT_ACCEPTED(kOut + "parallel v0 < 8\nloop v1 < 16 { b0[v0*16 + v1] = 0:f32 }");
  EXPECT_ACCEPTED(kOut + "parallel v0 < 8\nloop v1 < 16 { b0[v1*8 + v0] = 0:f32 }");
  // Within a point order is fixed, so a loop may hit one element many times.
  EXPECT_ACCEPTED(kOut + "parallel v0 < 8\nloop v1 < 16 ordered { b0[v0*16 + v1 // 3] = 0:f32 }");
  EXPECT_ACCEPTED(kOut + "parallel v0 < 1\nb0[7] = 0:f32");
  EXPECT_ACCEPTED(kOut + "parallel v0 < 32\nb0[v0 // 4 * 100 + v0 % 4] = 0:f32");
  EXPECT_ACCEPTED(kOut + "parallel v0 < 64\nb0[v0 // 16 + v0 // 4 % 4 * 4 + v0 % 4 * 16] = 0:f32");
  // Scratch belongs to the thread.
  EXPECT_ACCEPTED("buffer b0: f32[4] scratch\nparallel v0 < 32\nb0[0] = 0:f32");
}

TEST(Verify, OverlappingStoresAreRefused) {
  EXPECT_EQ(verdict(kOut + "parallel v0 < 8\nb0[7] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 8\nparallel v1 < 4\nb0[v0] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 8\nparallel v1 < 4\nb0[v0*3 + v1] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 8\nloop v1 < 16 { b0[v0*15 + v1] = 0:f32 }"), kOverlap);
  // The loop's larger steps meet those of the points.
  EXPECT_EQ(verdict(kOut + "parallel v0 < 4\nloop v1 < 2 { b0[v0*4 + v1*8] = 0:f32 }"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 32\nb0[v0 // 4] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 32\nb0[v0 % 16] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 32\nb0[v0 // 8 * 100 + v0 % 4] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 32\nb0[v0 // 4 * 2 + v0 % 4] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 32\nb0[min(v0, 30)] = 0:f32"), kOverlap);
  EXPECT_EQ(verdict("buffer b0: f32[64] write\nbuffer b1: i64[64] read\nparallel v0 < 64\n"
                    "b0[min(max(b1[v0], 0), 63)] = 0:f32"),
            kOverlap);
}

TEST(Verify, ChunkedStores) {
  const std::string head = kOut + "parallel v0 < 8\nloop v1 < 64 chunk 8 of v0 vector ";
  EXPECT_ACCEPTED(head + "{ b0[v1] = 0:f32 }");
  EXPECT_ACCEPTED(head + "{ loop v2 < 4 { b0[v1*4 + v2] = 0:f32 } }");
  EXPECT_ACCEPTED(head + "{ b0[v1 // 8 + v1 % 8 * 8] = 0:f32 }");
  EXPECT_EQ(verdict(head + "{ b0[v1 // 2] = 0:f32 }"), kOverlap);
  EXPECT_EQ(verdict(head + "{ loop v2 < 5 { b0[v1*4 + v2] = 0:f32 } }"), kOverlap);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 8\nparallel v2 < 8\nloop v1 < 64 chunk 8 of v0 "
                           "{ b0[v1] = 0:f32 }"),
            kOverlap);
}

TEST(Verify, SeveralStoresToOneBuffer) {
  const std::string apart =
      "loop kernel '': store 1: cannot be proven apart from store 0 at "
      "another parallel point, both to buffer b0";
  const std::string head = kOut + "parallel v0 < 8\n";
  EXPECT_ACCEPTED(head + "b0[v0] = 0:f32\nb0[v0] = 1:f32");
  EXPECT_ACCEPTED(head + "b0[v0] = 0:f32\nb0[v0 + 8] = 1:f32");
  EXPECT_ACCEPTED(head + "b0[v0*4 + 1] = 0:f32\nb0[v0*4 + 3] = 1:f32");
  EXPECT_ACCEPTED(head + "b0[v0*16] = 0:f32\nloop v1 < 16 { b0[v0*16 + v1] = 1:f32 }");
  EXPECT_ACCEPTED(head +
                  "loop v1 < 64 chunk 8 of v0 { b0[v1] = 0:f32 }\n"
                  "loop v2 < 60 chunk 8 of v0 { b0[v2] = 0:f32 }");
  // A part of what the other store covers, as a piece of a row; a row of one element.
  const std::string row = head + "loop v1 < 5 { b0[v0*5 + v1] = 0:f32 }\n";
  EXPECT_ACCEPTED(row + "loop v2 < 2 { b0[v0*5 + v2 + 2] = 1:f32 }");
  EXPECT_ACCEPTED(head + "loop v1 < 2 { b0[v0*5 + v1 + 3] = 0:f32 }\n" +
                  "loop v2 < 5 { b0[v0*5 + v2] = 1:f32 }");
  EXPECT_ACCEPTED(head + "loop v1 < 1 { b0[v0 + v1] = 0:f32 }\nb0[v0] = 1:f32");
  EXPECT_EQ(verdict(row + "loop v2 < 2 { b0[v0*5 + v2 + 4] = 1:f32 }"), apart);
  EXPECT_EQ(verdict(head + "b0[v0] = 0:f32\nb0[v0 + 1] = 1:f32"), apart);
  EXPECT_EQ(verdict(head + "b0[v0] = 0:f32\nb0[7 - v0] = 1:f32"), apart);
  EXPECT_EQ(verdict(head + "b0[v0] = 0:f32\nloop v1 < 16 { b0[v0*16 + v1] = 1:f32 }"), apart);
  EXPECT_EQ(verdict(head + "loop v1 < 64 chunk 8 of v0 { b0[v1] = 0:f32 }\n"
                           "loop v2 < 64 chunk 16 of v0 { b0[v2] = 0:f32 }"),
            apart);
  EXPECT_EQ(verdict(kOut + "parallel v0 < 4\nparallel v1 < 4\nb0[v0*4 + v1] = 0:f32\n"
                           "b0[v1*4 + v0] = 0:f32"),
            apart);
}

// Random pairs of stores, each in a loop of its own, under two parallel variables.
class RandomStores {
 public:
  explicit RandomStores(uint32_t seed) : random_(seed) {
    k.buffers = {{"y", DType::kF32, 1 << 20, Access::kWrite}};
    k.parallel = {k.pool.new_var("p", DType::kI64, pick(1, 4)),
                  k.pool.new_var("q", DType::kI64, pick(1, 6))};
    const int64_t chunk = pick(1, 4);
    for (uint32_t i = 0; i < static_cast<uint32_t>(pick(1, 2)); ++i) {
      Loop l;
      l.extent = pick(1, 6);
      if (pick(0, 2) == 0) {
        l.chunk_var = k.parallel[1];
        l.chunk = chunk;
        l.extent = std::min(l.extent, chunk * k.pool.var_info(l.chunk_var).extent);
      }
      l.var = k.pool.new_var("i", DType::kI64, l.extent);
      l.body = {{StmtKind::kStore, i}};
      k.stores.push_back({0, offset(l.var).id, k.pool.constant(DType::kF32, 0)});
      k.loops.push_back(l);
      k.body.push_back({StmtKind::kLoop, i});
    }
  }

  // Whether two different points store to one element.
  bool overlaps() const {
    std::map<int64_t, std::pair<int64_t, int64_t>> owner;
    std::vector<int64_t> vars(k.pool.var_count());
    for (vars[0] = 0; vars[0] < k.pool.var_info(0).extent; ++vars[0]) {
      for (vars[1] = 0; vars[1] < k.pool.var_info(1).extent; ++vars[1]) {
        for (size_t s = 0; s < k.stores.size(); ++s) {
          const Loop& l = k.loops[s];
          for (int64_t i = 0; i < l.extent; ++i) {
            if (l.chunk_var != kNone && i / l.chunk != vars[1]) continue;
            vars[l.var] = i;
            const std::pair point(vars[0], vars[1]);
            const auto [it, fresh] = owner.try_emplace(value(k.stores[s].offset, vars), point);
            if (it->second != point) return true;
          }
        }
      }
    }
    return false;
  }

  Kernel k;

 private:
  int64_t pick(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }

  Expr piece(VarId v) {
    const Expr x{&k.pool, k.pool.var(v)};
    switch (pick(0, 6)) {
      case 0:
        return floor_div(x, index(k.pool, pick(2, 3)));
      case 1:
        return floor_mod(x, index(k.pool, pick(2, 3)));
      case 2:
        return floor_mod(floor_div(x, index(k.pool, 2)), index(k.pool, 2));
      default:
        return x;
    }
  }

  Expr offset(VarId inner) {
    constexpr int64_t kFactors[] = {1, 1, 2, 3, 4, 6, 8, 12, 24, 36, -4, -24};
    Expr sum = index(k.pool, 1000 + pick(0, 3));
    for (VarId v : {k.parallel[0], k.parallel[1], k.parallel[1], inner}) {
      if (pick(0, 9) == 0) continue;
      const int64_t factor = kFactors[pick(0, std::size(kFactors) - 1)];
      sum = sum + piece(v) * index(k.pool, factor);
    }
    return sum;
  }

  int64_t value(ExprId e, const std::vector<int64_t>& vars) const {
    const ExprNode& n = k.pool.node(e);
    if (n.op == Op::kConst) return static_cast<int64_t>(n.word);
    if (n.op == Op::kVar) return vars[static_cast<size_t>(n.imm)];
    const int64_t a = value(n.a, vars);
    const int64_t b = value(n.b, vars);
    switch (n.op) {
      case Op::kAdd:
        return a + b;
      case Op::kMul:
        return a * b;
      case Op::kFloorDiv:
        return a / b;  // of what is not negative
      case Op::kFloorMod:
        return a % b;
      default:
        ADD_FAILURE() << "unexpected operation";
        return 0;
    }
  }

  std::mt19937 random_;
};

TEST(Verify, AcceptedStoresAreDisjoint) {
  int accepted = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    const RandomStores stores(seed);
    if (!verify_kernel(stores.k).ok()) continue;
    ++accepted;
    ASSERT_FALSE(stores.overlaps()) << "seed " << seed << "\n" << print(stores.k);
  }
  EXPECT_GT(accepted, 1000);
}

// Stores at places that come from data: sorted out by the digits of the point around them.
TEST(Verify, OrderedLoops) {
  const std::string head = kBuffers + "parallel v0 < 4\n";
  const std::string place = "b1[v0*16 + min(max(b3[v1], 0), 15)]";
  EXPECT_ACCEPTED(head + "loop v1 < 16 ordered { " + place + " = b0[v1] }");
  EXPECT_ACCEPTED(head + "loop v1 < 16 ordered { " + place + " = " + place + " + b0[v1] }");
  // Larger terms that come from data are told from the point by their common factor alone.
  const std::string rows = "loop v1 < 16 ordered {\n b1[v0 + v1*4] = b0[v1]\n b1[v0 + ";
  EXPECT_ACCEPTED(head + rows + "min(max(b3[v1], 0), 3)*4 + min(max(b3[v1], 0), 1)*8] = 0:f32 }");
  EXPECT_REFUSED(head + rows + "min(max(b3[v1], 0), 3)*4 + min(max(b3[v1], 0), 1)*6] = 0:f32 }",
                 "store 1: cannot be proven apart from store 0 at another parallel point, both to "
                 "buffer b1");
  EXPECT_REFUSED(head + "loop v1 < 16 { " + place + " = b0[v1] }",
                 "store 0: iterations of loop 0, which is not ordered, may store to one element");
  EXPECT_REFUSED(head + "loop v1 < 16 vector { " + place + " = b0[v1] }",
                 "store 0: iterations of loop 0, which is not ordered, may store to one element");
  EXPECT_REFUSED(head + "loop v1 < 16 { b1[v0*16 + v1] = b1[v0*16 + v1] }",
                 "store 0: a load of buffer b1, which is written, in no ordered loop");
  // The place may belong to another point.
  EXPECT_REFUSED(head + "loop v1 < 16 ordered { b1[v0*16 + min(max(b3[v1], 0), 16)] = b0[v1] }",
                 "store 0: offset in [0, 64] of buffer b1, which has 64 elements");
  EXPECT_REFUSED(head + "loop v1 < 16 ordered { b1[v0*15 + min(max(b3[v1], 0), 15)] = b0[v1] }",
                 "store 0: cannot be proven apart from itself at another parallel point, both to "
                 "buffer b1");
  EXPECT_REFUSED(head + "loop v1 < 16 ordered { b1[min(max(b3[v1], 0), 63)] = b0[v1] }",
                 "store 0: cannot be proven apart from itself at another parallel point, both to "
                 "buffer b1");
  EXPECT_REFUSED(head + "loop v1 < 16 ordered { b1[v0*16 + v1] = b1[min(max(b3[v1], 0), 63)] }",
                 "store 0: a load of buffer b1 cannot be proven apart from store 0 at another "
                 "parallel point");
  EXPECT_ACCEPTED(kBuffers + "loop v1 < 16 ordered { b1[min(max(b3[v1], 0), 63)] = b0[v1] }");
  EXPECT_REFUSED(head + "loop v1 < 4 vector { loop v2 < 4 ordered { b1[v0*16 + v1*4] = 0:f32 } }",
                 "loop 1: an ordered loop is not a vector loop and not inside of one");
  EXPECT_REFUSED(head + "loop v1 < 4 vector ordered { b1[v0*16] = 0:f32 }",
                 "loop 0: an ordered loop is not a vector loop and not inside of one");
  // What an ordered loop may read, a vector loop in it may not.
  EXPECT_REFUSED(kBuffers + R"(
loop v1 < 16 ordered {
  b1[0] = b1[1] + 1:f32
  loop v2 < 16 vector { b1[v2] = b1[1] + 1:f32 }
})",
                 "store 1: a load of buffer b1, which is written, in no ordered loop");
}

TEST(Verify, CarriedValues) {
  EXPECT_ACCEPTED(kBuffers + R"(
parallel v0 < 4
loop v1 < 16 {
  carry v2: f32 = b0[v0]
  carry v3: i64 < 64 = 0
  b1[v0*16 + v1] = v2 + b0[v3]
  next v2 = v2 * b0[v1] then v4
  next v3 = min(v3 + 1, 63) then v5
}
check v4 < b0[v5] else 1)");
  EXPECT_REFUSED(kBuffers + "loop v1 < 9 {\n carry v2: i64 < 64 = 0\n next v2 = v2 + 1 then v3 }",
                 "loop 0: a carried value in [1, 64], which is not below 64");
  EXPECT_REFUSED(kBuffers + "loop v1 < 9 {\n carry v2: i64 < 64 = 64\n next v2 = v2 then v3 }",
                 "loop 0: a carried value in [64, 64], which is not below 64");
  EXPECT_REFUSED(kBuffers +
                     "loop v1 < 9 {\n carry v2: i64 = 0\n next v2 = v2 + 1 then v3 }\n"
                     "b1[0] = b0[v3]",
                 "store 0: offset in [-9223372036854775808, 9223372036854775807] of buffer b0, "
                 "which has 64 elements");
  EXPECT_REFUSED(kBuffers + "loop v1 < 9 {\n carry v2: f32 = 0\n next v2 = v2 then v3 }",
                 "loop 0: a carried value of type i64, expected f32");
  EXPECT_REFUSED(kBuffers + "loop v1 < 9 {\n carry v2: f32 = 0:f32\n next v2 = 1 then v3 }",
                 "loop 0: a carried value of type i64, expected f32");
  EXPECT_REFUSED(kBuffers + "loop v1 < 9 vector {\n carry v2: i64 = 0\n next v2 = v2 then v3 }",
                 "loop 0: a vector or chunked loop carries nothing");
  EXPECT_REFUSED(kBuffers + "loop v1 < 9 {\n carry v2: i64 = v1\n next v2 = v2 then v3 }",
                 "loop 0: a variable is used outside its scope");
  EXPECT_REFUSED(kBuffers +
                     "loop v1 < 9 {\n carry v2: f32 = 0:f32\n next v2 = v2 then v3 }\n"
                     "b1[0] = v2",
                 "store 0: a variable is used outside its scope");
}

}  // namespace
}  // namespace pyc::loop
