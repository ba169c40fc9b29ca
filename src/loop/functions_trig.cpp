#include <vector>

#include "loop/functions.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace {

using namespace detail;

// 2^(16g) · 2/π without the bits that only add multiples of 4 to its product with a float of
// [1, 2^16) that has 24 bits: two pieces for each g.
constexpr double kTwoOverPiNarrow[] = {
    0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, 0x1.45f306dc9c883p15, -0x1.6b01ec5417056p-39,
    0x1.f306dc9c882a5p23, 0x1.fc2757d1f534ep-32,  0x1.6e4e441529fc2p24, 0x1.d5f47d4d37703p-30,
    0x1.1054a7f09d5f4p22, 0x1.f534ddc0db629p-32,  0x1.29fc2757d1f53p24, 0x1.377036d8a5665p-30,
    0x1.3abe8fa9a6eep21,  0x1.b6c52b3278872p-33,  0x1.d1f534ddc0db6p24, 0x1.4acc9e21c821p-31,
};

// 2^(32g) · 2/π without the bits that only add multiples of 4 to its product with a double of
// [1, 2^32): four pieces for each g.
constexpr double kTwoOverPiWide[] = {
    0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, -0x1.6447e493ad4cep-109, 0x1.e21c820ff28b2p-163,
    0x1.45f306dc9c883p31, -0x1.6b01ec5417056p-23, -0x1.6447e493ad4cep-77,  0x1.e21c820ff28b2p-131,
    0x1.cc1b727220a95p53, -0x1.ec54170565912p-7,  0x1.b6c52b3278872p-65,   0x1.07f9458eaf7afp-122,
    0x1.054a7f09d5f48p50, -0x1.596447e493ad5p-5,  0x1.93c439041fe51p-60,   0x1.8eaf7aef1586ep-114,
    0x1.3abe8fa9a6eep53,  0x1.b6c52b3278872p-1,   0x1.07f9458eaf7afp-58,   -0x1.d4f246dc8e2dfp-115,
    0x1.a6ee06db14acdp53, -0x1.8778df7c035d4p-1,  0x1.d5ef5de2b0db9p-55,   0x1.1b8e909374b8p-110,
    0x1.14acc9e21c821p53, -0x1.ae9c5421443aap-8,  0x1.b7246e3a424ddp-64,   0x1.700324977504fp-119,
    0x1.c820ff28b1d5fp49, -0x1.443a9e48db91cp-8,  -0x1.6f6c8b47fe6dbp-62,  -0x1.115f62e6de302p-116,
    0x1.163abdebbc562p52, -0x1.236e4716f6c8bp-2,  -0x1.1ff9b6d115f63p-56,  0x1.921cfe1deb1cbp-112,
    0x1.de2b0db92371dp53, 0x1.09374b801924cp-2,   -0x1.15f62e6de301ep-56,  -0x1.0a71a76b2c609p-111,
    0x1.2371d2126e97p53,  0x1.924bba8274648p-6,   0x1.cfe1deb1cb12ap-60,   -0x1.63045df7282b4p-114,
    0x1.ba5c00c925dd4p51, 0x1.3a32439fc3bd6p-5,   0x1.cb129a73ee882p-60,   0x1.afa975da24275p-115,
    0x1.25dd413a3243ap51, -0x1.e214e34ed658cp-8,  -0x1.177dca0ad144cp-64,  0x1.213a671c09ad1p-118,
    0x1.1921cfe1deb1dp52, -0x1.3b5963045df73p-2,  0x1.f52ebb4484e9ap-56,   -0x1.c7eca5d040df6p-111,
    0x1.deb1cb129a73fp52, -0x1.77dca0ad144bbp-4,  -0x1.ec598e3f652e8p-58,  -0x1.037d8cdc538dp-113,
    0x1.4d39f74411afbp53, -0x1.a28976f62cc72p-1,  0x1.35a2fbf209cc9p-59,   -0x1.4e33e566305b2p-115,
    0x1.1afa975da2427p49, 0x1.338e04d68befdp-5,   -0x1.f633714e33e56p-59,  -0x1.8c16c6f740e88p-113,
    0x1.da24274ce3813p53, 0x1.68befc827323bp-1,   -0x1.c67cacc60b638p-56,  0x1.17e2ef7e4a0ecp-110,
    0x1.c7026b45f7e41p52, 0x1.cc8eb1cc1a99dp-3,   -0x1.6c6f740e8840ep-61,  0x1.41d8ffc4bffefp-115,
    0x1.f7e413991d63ap52, -0x1.f2b3182d8dee8p-2,  -0x1.d1081b5f13802p-58,  0x1.2fffbc0b301fep-113,
    0x1.1d639835339f5p52, -0x1.8dee81d1081b6p-2,  0x1.d8ffc4bffef03p-59,   -0x1.9fc04343b9d29p-114,
    0x1.339f49c845f8cp52, -0x1.081b5f13801dap-2,  -0x1.0fd33f8086877p-67,  -0x1.d297d64b824b2p-122,
    0x1.17e2ef7e4a0ecp50, 0x1.ff897ffde0598p-4,   0x1.fde5e2316b415p-61,   -0x1.2e092c98130d8p-116,
    0x1.c941d8ffc4cp53,   -0x1.0fd33f8086877p-3,  -0x1.d297d64b824b2p-58,  -0x1.8130d834f648bp-112,
    0x1.c4bffef02cc08p53, -0x1.0d0ee74a5f593p-4,  0x1.f6d367ecf27cbp-60,   0x1.36e9e8c7ecd3dp-117,
    0x1.6603fbcbc462dp50, 0x1.a0a6d1f6d367fp-4,   -0x1.86c1a7b24585dp-59,  0x1.fb34f2ff516bbp-115,
    0x1.788c5ad05369p53,  -0x1.25930261b069fp-1,  0x1.b74f463f669e6p-56,   -0x1.5d28ad8453814p-116,
    0x1.4da3eda6cfd9ep51, 0x1.3e584dba7a32p-3,    -0x1.32c3402ba515bp-57,  -0x1.14e050683a131p-114,
    0x1.b3f6793e584dcp53, -0x1.61738132c3403p-1,  0x1.16ba93dd63f5fp-55,   0x1.7c5ecf41ce7dep-110,
    0x1.6136e9e8c7ecdp51, 0x1.e5fea2d7527bbp-4,   -0x1.c0a0d0742617cp-59,  -0x1.8c10eb5ada2b3p-113,
    0x1.8fd9a797fa8b6p50, -0x1.5b08a7028341dp-5,  -0x1.30be31821d6b6p-62,  0x1.2ea6bfb5fb12p-116,
    0x1.fea2d7527bac8p52, -0x1.41a0e84c2f8c6p-4,  -0x1.0eb5ada2b2809p-61,  -0x1.0277039517bd5p-115,
};

// sin(r) from r³ and cos(r) from r⁴ or r², in r², for |r| <= π/4.
constexpr double kSinWide[] = {
    -0x1.5555555555555p-3,  0x1.1111111111067p-7,  -0x1.a01a019ffdbb1p-13, 0x1.71de3a32ac161p-19,
    -0x1.ae642adbebd39p-26, 0x1.6108952dd73ffp-33, -0x1.9f382d5975942p-41};
constexpr double kCosWide[] = {
    0x1.5555555555555p-5,  -0x1.6c16c16c16b2ap-10, 0x1.a01a019ffb549p-16, -0x1.27e4fb5836daep-22,
    0x1.1eed6d0331222p-29, -0x1.937139f7bf4c9p-37, 0x1.9c31e908b469cp-45};
constexpr double kSinNarrow[] = {-0x1.5555555552406p-3, 0x1.1111110ca354dp-7,
                                 -0x1.a019f95ba9c84p-13, 0x1.71d77d8c859a5p-19,
                                 -0x1.a96716ef6ce35p-26};
constexpr double kCosNarrow[] = {-0x1.fffffffffffa3p-2,  0x1.555555554f987p-5,
                                 -0x1.6c16c1648d2a2p-10, 0x1.a019f885ea630p-16,
                                 -0x1.27df6c9f048fdp-22, 0x1.1b962434322d3p-29};

// |x| = quadrant · π/2 + r with |r| <= π/4; the quadrant (i64) counts modulo 4.
struct ReducedAngle {
  Expr quadrant;
  Pair r;
};

uint32_t table_of(Pool& p, std::span<const double> values) {
  std::vector<Word> words;
  for (double v : values) words.push_back(word_from_double(v, DType::kF64));
  return p.table(DType::kF64, std::move(words));
}

// x less the nearest multiple of 4.
Expr modulo_4(Expr x) { return fma(round_even(x * 0.25), like(x, -4.0), x); }

// The number of the group of exponents that a >= 0 belongs to: [1, 2^width) or less is 0.
Expr group_of(Expr a, int64_t log2_width, int64_t groups) {
  const Expr bits = bits_of(a);
  const Expr exponent = shr(bits, int_like(bits, 52)) - int_like(bits, 1023);
  const Expr group = shr(exponent, int_like(bits, log2_width));
  return max(min(group, int_like(bits, groups - 1)), int_like(bits, 0));
}

Expr reciprocal_scale(Expr group, int64_t width) {
  const Expr exponent = int_like(group, 1023) - group * int_like(group, width);
  return bitcast(shl(exponent, int_like(group, 52)), DType::kF64);
}

// a·2/π modulo 4, from the pieces of 2/π that count for a's magnitude. One path for all arguments.
ReducedAngle reduce_wide(Expr a) {
  const Expr group = group_of(a, 5, 32);
  const Expr x = a * reciprocal_scale(group, 32);
  const uint32_t table = table_of(*a.pool, kTwoOverPiWide);
  const auto piece = [&](int64_t i) {
    return table_load(*a.pool, table, group * int_like(group, 4) + int_like(group, i));
  };
  const Pair p0 = two_product(x, piece(0));
  const Pair p1 = two_product(x, piece(1));
  const Pair p2 = two_product(x, piece(2));
  const Pair s = two_sum(modulo_4(p0.hi), modulo_4(p0.lo));
  const Pair t = two_sum(s.hi, modulo_4(p1.hi));
  const Expr n = round_even(t.hi);
  // What is left may cancel almost completely, so every rounding error is kept.
  Pair f = exactly(t.hi - n);
  for (Expr term : {t.lo, s.lo, p1.lo, p2.hi}) {
    const Pair sum = two_sum(f.hi, term);
    f = {sum.hi, f.lo + sum.lo};
  }
  f = fast_two_sum(f.hi, f.lo + fma(x, piece(3), p2.lo));
  const Pair half_pi{like(a, 0x1.921fb54442d18p0), like(a, 0x1.1a62633145c07p-54)};
  const Pair r = multiply(f, half_pi);
  return {convert(n, DType::kI64), fast_two_sum(r.hi, r.lo)};
}

ReducedAngle reduce_narrow(Expr a) {
  const Expr group = group_of(a, 4, 8);
  const Expr x = a * reciprocal_scale(group, 16);
  const uint32_t table = table_of(*a.pool, kTwoOverPiNarrow);
  const Expr index = group * int_like(group, 2);
  const Pair p = two_product(x, table_load(*a.pool, table, index));
  const Expr high = modulo_4(p.hi);
  const Expr n = round_even(high);
  const Expr low = fma(x, table_load(*a.pool, table, index + int_like(group, 1)), p.lo);
  return {convert(n, DType::kI64), exactly(((high - n) + low) * 0x1.921fb54442d18p0)};
}

struct SinCos {
  Pair sin;
  Pair cos;
};

SinCos sin_cos_wide(Pair r) {
  const Expr one = like(r.hi, 1.0);
  const Pair z = two_product(r.hi, r.hi);
  const Expr half = z.hi * 0.5;
  const Expr cubic = r.hi * z.hi * polynomial(z.hi, kSinWide);
  const Pair main = fast_two_sum(one, -half);
  const Expr quartic = z.hi * z.hi * polynomial(z.hi, kCosWide);
  const Expr tail = fma(z.lo, like(r.hi, -0.5), fma(-r.hi, r.lo, main.lo));
  return {fast_two_sum(r.hi, cubic + fma(-half, r.lo, r.lo)),
          fast_two_sum(main.hi, quartic + tail)};
}

SinCos sin_cos_narrow(Expr r) {
  const Expr z = r * r;
  const Expr sin = fma(r * z, polynomial(z, kSinNarrow), r);
  const Expr cos = fma(z, polynomial(z, kCosNarrow), like(r, 1.0));
  return {exactly(sin), exactly(cos)};
}

Expr bit(Expr quadrant, int64_t mask) {
  return ne(quadrant & int_like(quadrant, mask), int_like(quadrant, 0));
}

struct Argument {
  Expr quadrant;
  SinCos r;
};

Argument reduce_angle(Expr x, bool wide) {
  const ReducedAngle reduced = wide ? reduce_wide(abs(x)) : reduce_narrow(abs(x));
  return {reduced.quadrant, wide ? sin_cos_wide(reduced.r) : sin_cos_narrow(reduced.r.hi)};
}

// Below it sin(x) and tan(x) round to x or its neighbour; products with 2/π may be denormal there.
Expr keep_small(Expr x, Expr y) { return select(lt(abs(x), like(x, 0x1p-27)), x, y); }

Expr with_flipped_sign(Expr y, Expr flip, Expr x) {
  const Expr signed_y = select(flip, -y, y);
  return bitcast(bits_of(signed_y) ^ sign_bits(x), y.dtype());
}

Expr sin_of(Expr x, bool wide) {
  const Argument a = reduce_angle(x, wide);
  const Expr y = select(bit(a.quadrant, 1), value(a.r.cos), value(a.r.sin));
  return keep_small(x, with_flipped_sign(y, bit(a.quadrant, 2), x));
}

Expr cos_of(Expr x, bool wide) {
  const Argument a = reduce_angle(x, wide);
  const Expr y = select(bit(a.quadrant, 1), value(a.r.sin), value(a.r.cos));
  const Expr next = a.quadrant + int_like(a.quadrant, 1);
  return select(bit(next, 2), -y, y);
}

Expr tan_of(Expr x, bool wide) {
  const Argument a = reduce_angle(x, wide);
  const Expr odd = bit(a.quadrant, 1);
  const auto pick = [&](Pair p, Pair q) {
    return Pair{select(odd, p.hi, q.hi), select(odd, p.lo, q.lo)};
  };
  const Pair top = pick(a.r.cos, a.r.sin);
  const Pair bottom = pick(a.r.sin, a.r.cos);
  const Expr y = wide ? value(divide(top, bottom)) : top.hi / bottom.hi;
  return keep_small(x, with_flipped_sign(y, odd, x));
}

}  // namespace

namespace definition {

Expr sin(Expr x) { return is_f32(x) ? narrow(sin_of(widen(x), false)) : sin_of(x, true); }
Expr cos(Expr x) { return is_f32(x) ? narrow(cos_of(widen(x), false)) : cos_of(x, true); }
Expr tan(Expr x) { return is_f32(x) ? narrow(tan_of(widen(x), false)) : tan_of(x, true); }

}  // namespace definition
}  // namespace pyc::loop
