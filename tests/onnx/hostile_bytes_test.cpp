// Damaged files: whatever the bytes are, they are refused with a Status or make a graph.

#include <malloc.h>

#include <random>

#include "import/onnx/proto.h"
#include "onnx/run_model.h"
#include "onnx/seeds.h"

namespace pyc::onnx::test {
namespace {

// Reads `bytes`; whether they made a graph.
bool survives(const Bytes& bytes) {
  const auto imported = read(bytes);
  EXPECT_TRUE(imported.ok() || !imported.status().message().empty());
  return imported.ok();
}

TEST(OnnxHostileBytes, TruncatedAnywhere) {
  for (const auto& [name, bytes] : seeds()) {
    for (size_t n = 0; n < bytes.size(); ++n) survives(bytes.substr(0, n));
    EXPECT_TRUE(survives(bytes)) << name;
  }
}

TEST(OnnxHostileBytes, FlippedBits) {
  std::mt19937_64 random(20);
  for (const auto& [name, bytes] : seeds()) {
    for (int i = 0; i < 400; ++i) {
      Bytes wrong = bytes;
      const auto flips = 1 + random() % 4;
      for (uint64_t k = 0; k < flips; ++k) {
        wrong[random() % wrong.size()] ^= static_cast<char>(1U << (random() % 8));
      }
      survives(wrong);
    }
  }
}

TEST(OnnxHostileBytes, ReplacedRemovedAndRepeatedParts) {
  std::mt19937_64 random(21);
  for (const auto& [name, bytes] : seeds()) {
    for (int i = 0; i < 200; ++i) {
      Bytes wrong = bytes;
      const size_t at = random() % wrong.size();
      const size_t length = std::min<size_t>(1 + random() % 16, wrong.size() - at);
      const Bytes part = wrong.substr(random() % wrong.size(), length);
      switch (random() % 3) {
        case 0:
          wrong.replace(at, length, part);
          break;
        case 1:
          wrong.erase(at, length);
          break;
        default:
          wrong.insert(at, part);
      }
      survives(wrong);
    }
  }
}

// What is in use on the heap.
size_t in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Millions of empty messages are two bytes each and a struct each.
TEST(OnnxHostileBytes, MemoryStaysInProportion) {
  constexpr size_t kCount = 2'000'000;
  const auto repeated = [&](const Bytes& part) {
    Bytes all;
    for (size_t i = 0; i < kCount; ++i) all += part;
    return all;
  };
  for (const Bytes& inner :
       {repeated(text(1, "")), repeated(text(5, "")), repeated(text(11, "")),
        repeated(text(15, "")), text(1, repeated(text(5, ""))),
        text(1, text(5, repeated(text(9, "")))), text(5, text(7, Bytes(kCount, '\1')))}) {
    const Bytes bytes = text(7, inner) + text(8, opset(18));
    const SharedBytes file = shared(bytes);
    MemoryBudget budget(bytes.size());
    const size_t before = in_use();
    const auto parsed = parse_model(file, budget);
    EXPECT_LT(in_use() - std::min(before, in_use()), 4 * bytes.size() + (size_t{64} << 20));
    EXPECT_TRUE(parsed.ok() || parsed.status().code() == Code::kBudgetExceeded);
    EXPECT_FALSE(read(bytes).ok());
  }
}

TEST(OnnxHostileBytes, FieldsOfTheWrongWireType) {
  const Bytes good = model(small_graph());
  for (const Bytes& wrong : {number(7, 1) + good, single(7, 1) + good, text(1, "x") + good,
                             number(8, 3) + good, number(25, 3) + good, Bytes(20, '\xff')}) {
    const auto imported = read(wrong);
    expect_refused(imported, Code::kParseError, "malformed");
  }
}

}  // namespace
}  // namespace pyc::onnx::test
