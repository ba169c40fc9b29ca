#include <vector>

#include "loop/functions.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace {

using namespace detail;

// erf(x)/x - 1 from x², in x², for |x| <= 1.
constexpr double kSmallWide[] = {
    -0x1.812746b0379e7p-2,  0x1.ce2f21a042c23p-4,  -0x1.b82ce3128a34ep-6,  0x1.565bcd0eb0e0fp-8,
    -0x1.c02db40f69116p-11, 0x1.f9a3290a88bdcp-14, -0x1.f4d28c09a49d5p-17, 0x1.b9e9b5fef3dfbp-20,
    -0x1.5f9311681648dp-23, 0x1.fe7161d2e8f23p-27, -0x1.58d3eb88c1717p-30, 0x1.b9545ffe479acp-34,
    -0x1.b9804557ebbafp-38,
};

// erfc(1 + (2i + 1)/8 + t) for |t| <= 1/8: kTerms coefficients for each of the kPieces values of i.
constexpr int64_t kPieces = 20;
constexpr int64_t kTerms = 12;
constexpr double kPieceCoefficients[] = {
    0x1.c9296beb09cf1p-4,   -0x1.45e99bcbb7916p-2,  0x1.6ea6cf452e89p-2,    -0x1.4cb3cf0aa0c89p-3,
    -0x1.ca5083176d32cp-6,  0x1.f65d15f238178p-5,   -0x1.fd1c6a0c243cfp-7,  -0x1.3acc79841cacdp-7,
    0x1.8b41d0cdb05a2p-8,   0x1.79bf98cb9e35fp-12,  -0x1.2c962b68e46d3p-10, 0x1.6d75512464804p-13,
    0x1.a8973c4b5c03ep-5,   -0x1.5ce595c455b0ap-3,  0x1.dfbbadedf5d0bp-3,   -0x1.4374d82e04d16p-3,
    0x1.f3b8d52d65dd2p-6,   0x1.f572c4c97744cp-6,   -0x1.6b16f55fdfdadp-6,  0x1.73ffa1393e121p-10,
    0x1.1740aaef9e8c3p-8,   -0x1.9da098a610fddp-10, -0x1.54b394326df08p-12, 0x1.612fd4f512887p-12,
    0x1.612d893085125p-6,   -0x1.499d478bca735p-4,  0x1.0bcfca2194798p-3,   -0x1.d6631e1a28e76p-4,
    0x1.974c0368afb5fp-5,   0x1.17d430bcca5b7p-9,   -0x1.d857f4056bcf2p-7,  0x1.954ab12bbbc35p-8,
    0x1.2e4d9db477f08p-11,  -0x1.71cdcaf074d63p-10, 0x1.70f675ab198bbp-12,  0x1.0803d18fef189p-13,
    0x1.0678442cc256fp-7,   -0x1.12ceb37ff9bc4p-5,  0x1.01a1c847fa1b2p-4,   -0x1.143d1c6f4efc9p-4,
    0x1.5a316520d729p-5,    -0x1.779b1e57b4115p-7,  -0x1.0d099d8418c29p-8,  0x1.42fcbbb7609edp-8,
    -0x1.76fd58dde21ep-10,  -0x1.7be0ea39505abp-12, 0x1.9755f40c5431p-12,   -0x1.307e2ea4bdf5ap-14,
    0x1.5bde729a6b60ep-9,   -0x1.94624e78e0fafp-7,  0x1.ada873606f141p-6,   -0x1.0ea475da3bdedp-5,
    0x1.afe553fa2b62cp-6,   -0x1.9973b48a42879p-7,  0x1.dd78efc73bbebp-10,  0x1.ea03bce0ce708p-10,
    -0x1.6aa3925074983p-10, 0x1.2fd88c239180ap-12,  0x1.02ee5e020262cp-13,  -0x1.8be5b6de9ccfep-14,
    0x1.9a7c305336483p-11,  -0x1.06918b6355625p-8,  0x1.37ccd585f57ccp-7,   -0x1.c1ec102e365a8p-7,
    0x1.ae59615f47933p-7,   -0x1.11dae47337506p-7,  0x1.982b287bb09a3p-9,   -0x1.0283e5c4d27a8p-13,
    -0x1.377e903adcb75p-11, 0x1.61ed67defcf1bp-12,  -0x1.c2bf3589567c1p-15, -0x1.0a94ea06e804bp-15,
    0x1.aeb4423e690e5p-13,  -0x1.2ce898809244dp-10, 0x1.8af14828c01a4p-9,   -0x1.407fbd18f147cp-8,
    0x1.62d4c6d46e3f3p-8,   -0x1.146c4b3de271cp-8,  0x1.267f3c2680171p-9,   -0x1.64f893631af31p-11,
    -0x1.22aad19b21363p-15, 0x1.40094ff65f38ep-13,  -0x1.34e040252a64cp-14, 0x1.52e1d156bd934p-17,
    0x1.916f7c5f2f76bp-15,  -0x1.30538fbb77ecfp-12, 0x1.b5781e9d7c3c3p-11,  -0x1.89e17c074d5cap-10,
    0x1.ed4ac7db218cdp-10,  -0x1.c11f27060bc4dp-10, 0x1.2add1caca1145p-10,  -0x1.151f78d1a01b3p-11,
    0x1.1c64e29e72d8ap-13,  0x1.0ecaa7ff1d086p-16,  -0x1.18df32817f8ffp-15, 0x1.eed19ce28cb2ap-17,
    0x1.4c144d984e1bep-17,  -0x1.0f9e1b4dd370ap-14, 0x1.a8670aa99994bp-13,  -0x1.a3737e2a2ee77p-12,
    0x1.24544f03685abp-11,  -0x1.2e7e763d6b167p-11, 0x1.da496d13c9348p-12,  -0x1.176cf60e7c219p-12,
    0x1.d2aed4febd668p-14,  -0x1.aaffc6345a5f8p-16, -0x1.0c841376040e1p-18, 0x1.acb0236d5759p-18,
    0x1.e749309831685p-20,  -0x1.abe09e9144b8bp-17, 0x1.690585ca90b8bp-15,  -0x1.84522fe8803fap-14,
    0x1.298f8d46e1e74p-13,  -0x1.5775778959cf4p-13, 0x1.330aaa7ca045bp-13,  -0x1.ac99965aeb1d1p-14,
    0x1.cc175cfc77b2ap-15,  -0x1.64c77b89af5ebp-16, 0x1.3193eaf8675bdp-18,  0x1.6d171c683bbccp-21,
    0x1.3ce784b41194cp-22,  -0x1.296a70f4140c5p-19, 0x1.0d88765d31b88p-17,  -0x1.394b1fa66f344p-16,
    0x1.05760ad203ba1p-15,  -0x1.4c1fe48bb5689p-15, 0x1.4b981fe8b5686p-15,  -0x1.085c0e7b0edb5p-15,
    0x1.510a83f5bd17ap-16,  -0x1.5166e48e4f7b1p-17, 0x1.f29b3e993d545p-19,  -0x1.abd8fe596a64ep-21,
    0x1.6d3126d74b64p-25,   -0x1.6ce1aa3fd7be8p-22, 0x1.617a9cedde0dp-20,   -0x1.b95fa39b3999ap-19,
    0x1.8e1fc4118b9b6p-18,  -0x1.1371721828493p-17, 0x1.2eb292a794abdp-17,  -0x1.0d8c35ad93b3ap-17,
    0x1.888385afa2d9ap-18,  -0x1.d25c71fef1f08p-19, 0x1.bd6adc65f402fp-20,  -0x1.3fe1bd5e566f4p-21,
    0x1.74b179d1eb648p-28,  -0x1.8b0cfce05788ap-25, 0x1.976564c7744d1p-23,  -0x1.0fdac559bc299p-21,
    0x1.07600c9d47bd1p-20,  -0x1.89ca77405b8e7p-20, 0x1.d73aaf281e431p-20,  -0x1.cd9e11eb93d03p-20,
    0x1.770bc2edd8db7p-20,  -0x1.fc16bb332333p-21,  0x1.2006ee081def8p-21,  -0x1.07ae695b5aaacp-22,
    0x1.50b75c536fddcp-31,  -0x1.7974e743da571p-28, 0x1.9cd7dcf28b4eap-26,  -0x1.252af6f4bcf2ap-24,
    0x1.2f7354c9dfd55p-23,  -0x1.e7102f6de598bp-23, 0x1.3ab0c0467075bp-22,  -0x1.4f611218799e7p-22,
    0x1.2b5bbac29102ep-22,  -0x1.c3b0008c31dd1p-23, 0x1.24163272b82cep-23,  -0x1.3a5e167c584c6p-24,
    0x1.0d3b35021b9b3p-34,  -0x1.3e44e452fdf77p-31, 0x1.6fffa80099483p-29,  -0x1.1508f769483a8p-27,
    0x1.30fd0c28a5b82p-26,  -0x1.05563260e9e8dp-25, 0x1.6a3abea2458b8p-25,  -0x1.a06fe4312d576p-25,
    0x1.93d2573f55c83p-25,  -0x1.4e173673fe42cp-25, 0x1.e1aacdf63bf2ap-26,  -0x1.255c2b3a1636bp-26,
    0x1.7cef42e9961d3p-38,  -0x1.d9a880f2f93b8p-35, 0x1.20a2ae9551ec2p-32,  -0x1.cb2a2e576f139p-31,
    0x1.0bc6ec8b8884p-29,   -0x1.e7ba56e10970bp-29, 0x1.6893803d8f747p-28,  -0x1.bc2af7637a1e7p-28,
    0x1.cff4a03ed6986p-28,  -0x1.a04ab9501b16ap-28, 0x1.4986c31e05e5ep-28,  -0x1.bc5a75c005865p-29,
    0x1.dcc4fabf27faap-42,  -0x1.370ab832755a7p-38, 0x1.8e85bc03d89a7p-36,  -0x1.4decacc1648c3p-34,
    0x1.9b3c545951a06p-33,  -0x1.8c78e378641ddp-32, 0x1.373d2565492b7p-31,  -0x1.988b01b19e446p-31,
    0x1.c89a4b2ba1246p-31,  -0x1.b8a1796476acbp-31, 0x1.7af1cc8938011p-31,  -0x1.16c0e6791b51p-31,
    0x1.07dd6833af36cp-45,  -0x1.68823e528783p-42,  0x1.e46f03c63a73p-40,   -0x1.aa7612136d6dcp-38,
    0x1.146fad677ff82p-36,  -0x1.192d3a21346dep-35, 0x1.d2eb61fc067e1p-35,  -0x1.450daf6ab0ea2p-34,
    0x1.8297c814e8233p-34,  -0x1.8e9cb19000fbap-34, 0x1.717b87b86e1aap-34,  -0x1.257941cd8898dp-34,
    0x1.0241de6c02525p-49,  -0x1.70beaf9c5b73fp-46, 0x1.034613813bbf8p-43,  -0x1.de74c0e5c021ap-42,
    0x1.459c7eed743f5p-40,  -0x1.5c5ee1e28dc34p-39, 0x1.30e488484c1f4p-38,  -0x1.c0884b18f73edp-38,
    0x1.1a8b201047e9cp-37,  -0x1.359eb7a827c09p-37, 0x1.336868fef9aafp-37,  -0x1.05973e4fdb41p-37,
    0x1.bef1b1a0d8b59p-54,  -0x1.4cd9c0412ae29p-50, 0x1.e8dfd276502c9p-48,  -0x1.d7c14a0d99a1ap-46,
    0x1.504299daabcfap-44,  -0x1.796a3653b7a88p-43, 0x1.5b2398d42f276p-42,  -0x1.0ce203b548478p-41,
    0x1.657650c8e7927p-41,  -0x1.9e7a4d0ac0fc9p-41, 0x1.b697cb31e2ecp-41,   -0x1.8d674f1fea55fp-41,
};

// Below 1 an odd polynomial; above 1 - p², p a polynomial for sqrt(erfc). erf(3.92) rounds to 1.
Expr erf_f32(Expr x) {
  constexpr double kSmall[] = {
      0x1.06eba8p-3, -0x1.81274p-2,   0x1.ce2d5p-4,   -0x1.b7fe96p-6,
      0x1.542e1cp-8, -0x1.a50a62p-11, 0x1.4c3298p-14,
  };
  // Without the first term, 0x1.1c552ap-2: it is added last, which costs less accuracy.
  constexpr double kRoot[] = {
      -0x1.b420ap-2, 0x1.a55c66p-3,  0x1.c7d77ep-7,  -0x1.6748dap-5, 0x1.e240bep-8,
      0x1.75516ap-8, -0x1.5eb90cp-9, 0x1.0aca3ap-12, 0x1.1382fap-14, -0x1.9d98ep-17,
  };
  const Expr a = abs(x);
  const Expr small = fma(x, estrin(x * x, kSmall), x);
  const Expr t = min(a, like(x, 3.925)) - 1.25;
  const Expr p = fma(estrin(t, kRoot), t, like(x, 0x1.1c552ap-2));
  const Expr large = fma(-p, p, like(x, 1.0));
  return select(lt(a, like(x, 1.0)), small, with_sign(large, x));
}

// Below 1 an odd polynomial; above 1 - erfc, by pieces of a quarter. erf(6) rounds to 1.
Expr erf_f64(Expr x) {
  Pool& pool = *x.pool;
  const Expr a = abs(x);
  const Expr z = x * x;
  const Expr slope = fma(z, polynomial(z, kSmallWide), like(x, 0x1.06eba8214db69p-3));
  const Expr small = fma(x, slope, x);

  const Expr c = clamp(a, 1.0, 6.0);
  const Expr quarter = convert((c - 1.0) * 4.0, DType::kI64);
  const Expr piece = max(min(quarter, index(pool, kPieces - 1)), index(pool, 0));
  const Expr centre = fma(convert(piece, DType::kF64), like(x, 0.25), like(x, 1.125));
  std::vector<Word> words;
  for (double v : kPieceCoefficients) words.push_back(word_from_double(v, DType::kF64));
  const uint32_t table = pool.table(DType::kF64, std::move(words));
  const auto coefficient = [&](int64_t i) {
    return table_load(pool, table, piece * index(pool, kTerms) + index(pool, i));
  };
  const Expr t = c - centre;
  Expr erfc = coefficient(kTerms - 1);
  for (int64_t i = kTerms - 1; i-- > 0;) erfc = fma(erfc, t, coefficient(i));
  return select(lt(a, like(x, 1.0)), small, with_sign(like(x, 1.0) - erfc, x));
}

}  // namespace

namespace definition {

Expr erf(Expr x) { return is_f32(x) ? erf_f32(x) : erf_f64(x); }

}  // namespace definition
}  // namespace pyc::loop
