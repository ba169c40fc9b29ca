#include "loop/loop.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "loop/builder.h"

namespace pyc::loop {
namespace {

int64_t plain_floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  while (q * b > a) --q;
  return q;
}

// Index arithmetic as written, before the pool sees it.
struct Tree {
  enum Kind { kVariable, kNumber, kPlus, kMinus, kTimes, kDivide, kModulo, kLeast, kGreatest } kind;
  int64_t number = 0;  // a variable's, a constant's or a divisor's
  std::unique_ptr<Tree> a;
  std::unique_ptr<Tree> b;
};

std::unique_ptr<Tree> random_tree(std::mt19937& random, int depth, int vars) {
  auto tree = std::make_unique<Tree>();
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  if (depth == 0 || pick(6) == 0) {
    tree->kind = pick(3) == 0 ? Tree::kNumber : Tree::kVariable;
    tree->number = tree->kind == Tree::kNumber ? pick(25) - 12 : pick(vars);
    return tree;
  }
  constexpr Tree::Kind kKinds[] = {Tree::kPlus,   Tree::kPlus,   Tree::kMinus,   Tree::kTimes,
                                   Tree::kTimes,  Tree::kDivide, Tree::kDivide,  Tree::kModulo,
                                   Tree::kModulo, Tree::kLeast,  Tree::kGreatest};
  tree->kind = kKinds[pick(std::size(kKinds))];
  tree->a = random_tree(random, depth - 1, vars);
  if (tree->kind == Tree::kDivide || tree->kind == Tree::kModulo) {
    tree->number = 1 + pick(12);
  } else if (tree->kind == Tree::kTimes && pick(4) != 0) {
    tree->b = std::make_unique<Tree>();
    tree->b->kind = Tree::kNumber;
    tree->b->number = pick(17) - 4;
    if (pick(2) == 0) std::swap(tree->a, tree->b);
  } else {
    tree->b = random_tree(random, depth - 1, vars);
  }
  return tree;
}

int64_t value_of(const Tree& t, const std::vector<int64_t>& vars) {
  const int64_t a = t.a ? value_of(*t.a, vars) : 0;
  const int64_t b = t.b ? value_of(*t.b, vars) : 0;
  switch (t.kind) {
    case Tree::kVariable:
      return vars[static_cast<size_t>(t.number)];
    case Tree::kNumber:
      return t.number;
    case Tree::kPlus:
      return a + b;
    case Tree::kMinus:
      return a - b;
    case Tree::kTimes:
      return a * b;
    case Tree::kDivide:
      return plain_floor_div(a, t.number);
    case Tree::kModulo:
      return a - plain_floor_div(a, t.number) * t.number;
    case Tree::kLeast:
      return std::min(a, b);
    case Tree::kGreatest:
      return std::max(a, b);
  }
  return 0;
}

Expr build(Pool& p, const Tree& t, const std::vector<VarId>& vars) {
  if (t.kind == Tree::kVariable) return {&p, p.var(vars[static_cast<size_t>(t.number)])};
  if (t.kind == Tree::kNumber) return index(p, t.number);
  const Expr a = build(p, *t.a, vars);
  if (t.kind == Tree::kDivide) return floor_div(a, index(p, t.number));
  if (t.kind == Tree::kModulo) return floor_mod(a, index(p, t.number));
  const Expr b = build(p, *t.b, vars);
  switch (t.kind) {
    case Tree::kPlus:
      return a + b;
    case Tree::kMinus:
      return a - b;
    case Tree::kTimes:
      return a * b;
    case Tree::kLeast:
      return min(a, b);
    default:
      return max(a, b);
  }
}

// The values of all nodes of a pool of index arithmetic.
std::vector<int64_t> node_values(const Pool& p, const std::vector<int64_t>& vars) {
  std::vector<int64_t> values(p.size());
  for (ExprId e = 0; e < p.size(); ++e) {
    const ExprNode& n = p.node(e);
    const int64_t a = n.a != kNone ? values[n.a] : 0;
    const int64_t b = n.b != kNone ? values[n.b] : 0;
    switch (n.op) {
      case Op::kConst:
        values[e] = static_cast<int64_t>(n.word);
        break;
      case Op::kVar:
        values[e] = vars[static_cast<size_t>(n.imm)];
        break;
      case Op::kAdd:
        values[e] = a + b;
        break;
      case Op::kSub:
        values[e] = a - b;
        break;
      case Op::kMul:
        values[e] = a * b;
        break;
      case Op::kFloorDiv:
        values[e] = plain_floor_div(a, b);
        break;
      case Op::kFloorMod:
        values[e] = a - plain_floor_div(a, b) * b;
        break;
      case Op::kMin:
        values[e] = std::min(a, b);
        break;
      case Op::kMax:
        values[e] = std::max(a, b);
        break;
      default:
        ADD_FAILURE() << "unexpected operation";
        break;
    }
  }
  return values;
}

TEST(Pool, IndexArithmeticKeepsItsValueAndRange) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 3000; ++round) {
    Pool p;
    std::vector<VarId> vars;
    std::vector<int64_t> extents;
    for (int v = 0; v < 3; ++v) {
      extents.push_back(1 + static_cast<int64_t>(random() % 7));
      vars.push_back(p.new_var("v", DType::kI64, extents.back()));
    }
    const auto tree = random_tree(random, 4, 3);
    const Expr e = build(p, *tree, vars);
    std::vector<int64_t> at(3);
    for (at[0] = 0; at[0] < extents[0]; ++at[0]) {
      for (at[1] = 0; at[1] < extents[1]; ++at[1]) {
        for (at[2] = 0; at[2] < extents[2]; ++at[2]) {
          const std::vector<int64_t> values = node_values(p, at);
          ASSERT_EQ(values[e.id], value_of(*tree, at)) << "round " << round;
          for (ExprId n = 0; n < p.size(); ++n) {
            ASSERT_LE(p.node(n).lo, values[n]) << "round " << round;
            ASSERT_GE(p.node(n).hi, values[n]) << "round " << round;
          }
        }
      }
    }
  }
}

class IndexTest : public testing::Test {
 protected:
  Expr variable(int64_t extent) { return {&p, p.var(p.new_var("v", DType::kI64, extent))}; }
  Expr n(int64_t v) { return index(p, v); }
  Pool p;
};

TEST_F(IndexTest, SumsHaveOneForm) {
  const Expr i = variable(4);
  const Expr j = variable(5);
  EXPECT_EQ((i * n(5) + j).id, (j + i * n(2) + i * n(3)).id);
  EXPECT_EQ((i - i + j).id, j.id);
  EXPECT_EQ(((i + n(2)) * n(3)).id, (n(6) + n(3) * i).id);
  EXPECT_EQ((-i).id, (i * n(-1)).id);
}

TEST_F(IndexTest, DivisionUndoesFlattening) {
  const Expr i = variable(4);
  const Expr j = variable(5);
  const Expr flat = i * n(5) + j;
  EXPECT_EQ(floor_div(flat, n(5)).id, i.id);
  EXPECT_EQ(floor_mod(flat, n(5)).id, j.id);
  EXPECT_EQ(floor_div(flat, n(1)).id, flat.id);
  EXPECT_EQ(floor_mod(flat, n(1)).id, n(0).id);
  EXPECT_EQ(floor_div(flat, n(20)).id, n(0).id);
}

TEST_F(IndexTest, WhatNeverCarriesFallsOutOfQuotients) {
  const Expr i = variable(100);
  const Expr j = variable(12);
  const Expr flat = i * n(12) + j;
  EXPECT_EQ(floor_div(flat, n(60)).id, floor_div(i, n(5)).id);
  EXPECT_EQ(floor_mod(flat, n(60)).id, (floor_mod(i, n(5)) * n(12) + j).id);
  EXPECT_EQ(floor_div(flat + n(24), n(60)).id, floor_div(i + n(2), n(5)).id);
  // One more, and the last element carries.
  EXPECT_NE(floor_div(flat + n(1), n(60)).id, floor_div(i, n(5)).id);
  // 12 does not divide 30.
  EXPECT_EQ(p.node(floor_div(flat, n(30)).id).op, Op::kFloorDiv);
}

TEST_F(IndexTest, HugeIndicesAreLeftAlone) {
  const Expr big = variable(int64_t{1} << 62);
  const Expr sum = big * n(3) + variable(8);
  EXPECT_EQ(p.node(sum.id).lo, INT64_MIN);
  const Expr q = floor_div(sum, n(3));
  EXPECT_EQ(p.node(q.id).op, Op::kFloorDiv);
  EXPECT_EQ(p.node(q.id).a, sum.id);
  // The whole is in range but a part of it is not.
  const Expr other = variable(int64_t{1} << 62);
  const Expr part = big * n(2) - other * n(2) + variable(2) * n(5) + n(INT64_MIN + 1);
  const Expr m = floor_mod(part, n(7));
  EXPECT_EQ(p.node(m.id).op, Op::kFloorMod);
}

TEST_F(IndexTest, ComparisonsAreDecidedByRange) {
  const Expr i = variable(4);
  EXPECT_EQ(lt(i, n(4)).id, p.constant(DType::kBool, 1));
  EXPECT_EQ(lt(i, n(0)).id, p.constant(DType::kBool, 0));
  EXPECT_EQ(le(n(0), i).id, p.constant(DType::kBool, 1));
  EXPECT_EQ(le(n(4), i).id, p.constant(DType::kBool, 0));
  EXPECT_EQ(p.node(lt(i, n(3)).id).op, Op::kLt);
  EXPECT_EQ(min(i, n(3)).id, i.id);
  EXPECT_EQ(max(i, n(3)).id, n(3).id);
}

TEST_F(IndexTest, EqualStructureIsOneValue) {
  const Expr x{&p, p.load(0, DType::kF32, variable(4).id)};
  EXPECT_EQ((x * x).id, (x * x).id);
  EXPECT_NE((x + 0.0).id, x.id);
  EXPECT_NE((x + 0.0).id, (x + -0.0).id);
}

TEST_F(IndexTest, AffineReadsTheNormalForm) {
  const Expr i = variable(4);
  const Expr j = variable(5);
  const Expr e = i * n(6) - j + n(7);
  const Affine sum = affine_of(p, e.id);
  EXPECT_EQ(sum.constant, 7);
  EXPECT_EQ(sum.coefficient(i.id), 6);
  EXPECT_EQ(sum.coefficient(j.id), -1);
  EXPECT_EQ(from_affine(p, sum), e.id);
  EXPECT_TRUE(depends_on(p, e.id, static_cast<VarId>(p.node(i.id).imm)));
  EXPECT_FALSE(depends_on(p, i.id, static_cast<VarId>(p.node(j.id).imm)));
}

TEST(Kernel, ScratchIsAligned) {
  Kernel k;
  k.buffers = {{"a", DType::kF32, 3, Access::kScratch},
               {"b", DType::kF32, 3, Access::kRead},
               {"c", DType::kF64, 9, Access::kScratch}};
  EXPECT_EQ(k.scratch_offsets(), (std::vector<int64_t>{0, -1, 64}));
  EXPECT_EQ(k.scratch_bytes(), 64 + 128);
  EXPECT_EQ(k.parallel_size(), 1);
}

}  // namespace
}  // namespace pyc::loop
