// Products of halves on the matrix unit: whole models on the device "cuda" over the fake driver,
// whose model of wgmma reads shared memory as late as the unit may, against the reference in the
// order sm90. And with NVRTC, where it is installed, what becomes of the texts.

#include <fmt/format.h>

#include <bit>
#include <random>

#include "backends/cuda/device.h"
#include "backends/cuda/generators/wgmma_text.h"
#include "backends/cuda/nvrtc.h"
#include "base/convert.h"
#include "base/files.h"
#include "base/matrix_unit.h"
#include "cuda/models_on_fake.h"
#include "driver/compile.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "support/printed_by.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

constexpr const char* kUnit = "sm90";

driver::CompileOptions in_unit_order(const std::string& device) {
  driver::CompileOptions options = on_device(device);
  options.matrix_unit = device == "cuda" ? "" : kUnit;  // the device's own
  return options;
}

std::vector<std::string> kernels_of(const DecisionLog& log) {
  std::vector<std::string> out;
  for (const Decision& d : log) {
    if (d.what.starts_with("kernel:")) out.push_back(d.chosen);
  }
  return out;
}

// Halves of any bits, infinities and NaN among them, or of like magnitude.
enum class Content : uint8_t { kNumbers, kBits };

TensorBytes drawn_inputs(const std::vector<runtime::IoSpec>& specs, Content content) {
  std::mt19937 random(7);
  TensorBytes bytes = room_for(specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    const int64_t size = dtype_size(specs[i].dtype);
    for (size_t at = 0; at + static_cast<size_t>(size) <= bytes[i].size();
         at += static_cast<size_t>(size)) {
      const double x = (static_cast<double>(random() % 4001) - 2000.0) / 1000.0;
      const bool any = content == Content::kBits && is_half(specs[i].dtype);
      store_word(bytes[i].data() + at, specs[i].dtype,
                 any ? random() & 0xFFFF : word_from_double(x, specs[i].dtype));
    }
  }
  return bytes;
}

// Runs the text on both; the kernels that the device chose.
std::vector<std::string> expect_bits(const std::string& text, Content content = Content::kNumbers,
                                     const driver::CompileOptions& asked = in_unit_order("cuda")) {
  const FakesChosen fakes;
  driver::CompileOptions plain = asked;
  plain.device = "reference";
  plain.matrix_unit = kUnit;
  plain.kernels.clear();
  auto expected = compile_text(text, plain);
  auto found = compile_text(text, asked);
  EXPECT_TRUE(expected.ok()) << expected.status().to_string() << text;
  EXPECT_TRUE(found.ok()) << found.status().to_string() << text;
  if (!expected.ok() || !found.ok()) return {};
  TensorBytes wanted;
  TensorBytes given;
  EXPECT_TRUE(run_on(**expected, drawn_inputs((*expected)->inputs(), content), wanted).ok());
  const Status ran = run_on(**found, drawn_inputs((*found)->inputs(), content), given);
  EXPECT_TRUE(ran.ok()) << ran.to_string();
  EXPECT_TRUE(given == wanted) << "other bits\n" << text;
  return kernels_of((*found)->decisions());
}

void expect_on_unit(const std::string& text, Content content = Content::kNumbers) {
  const std::vector<std::string> kernels = expect_bits(text, content);
  EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [](const std::string& k) {
    return k.find("_wgmma_") != std::string::npos;
  })) << text;
}

std::string matmul_text(const char* type, int64_t m, int64_t n, int64_t k, bool a_turned,
                        bool b_turned) {
  const auto matrix = [&](int64_t rows, int64_t columns, bool turned) {
    return turned ? fmt::format("{}[{},{}]", type, columns, rows)
                  : fmt::format("{}[{},{}]", type, rows, columns);
  };
  std::string text = fmt::format("graph @g(%a: {}, %b: {}) -> (%y) {{\n", matrix(m, k, a_turned),
                                 matrix(k, n, b_turned));
  if (a_turned) text += "  %x = transpose(%a) {perm=[1,0]}\n";
  if (b_turned) text += "  %w = transpose(%b) {perm=[1,0]}\n";
  return text + fmt::format("  %y = matmul(%{}, %{}){}\n}}\n", a_turned ? "x" : "a",
                            b_turned ? "w" : "b",
                            std::string_view(type) == "f32" ? "" : " {to=f32}");
}

struct ProductShape {
  int64_t m;
  int64_t n;
  int64_t k;
};

TEST(CudaWgmma, ProductsOfEveryShapeAndLayout) {
  // One element, a tile, one more; blocks, stages and segments of k with a rest; rows that allow
  // 16 bytes at a time and others that do not.
  constexpr ProductShape kShapes[] = {{2, 3, 1},      {65, 9, 17},    {3, 200, 72}, {200, 3, 72},
                                      {72, 136, 128}, {1, 128, 1040}, {16, 8, 2056}};
  int number = 0;
  for (const ProductShape& s : kShapes) {
    for (const int turned : {0, 1, 2, 3}) {
      const char* type = ++number % 3 == 0 ? "f16" : "bf16";
      expect_on_unit(matmul_text(type, s.m, s.n, s.k, (turned & 1) != 0, (turned & 2) != 0));
    }
  }
}

// The kernels of a model that is one product, with a tile that its sizes alone would not ask for.
Result<std::vector<cuda::KernelText>> tile_texts(const std::string& model,
                                                 const cuda::WgmmaTile& tile) {
  PYC_ASSIGN(ir::Graph parsed, driver::parse_model(model));
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(parsed)));
  DecisionLog log;
  PYC_ASSIGN(ir::VerifiedGraph canonical,
             passes::run_pipeline(std::move(given), ops::all_ops(), {}, &log));
  PYC_ASSIGN(const lower::LoweredGraph lowered,
             lower::lower_graph(canonical, {.unit = std::string(kUnit)}));
  if (lowered.groups.size() != 1) return Status(Code::kInternal, "one group was expected");
  const cuda::WgmmaProduct product{
      .group = lowered.groups.data(), .factors = DType::kBF16, .tile = tile};
  if (!cuda::wgmma_fits(product)) return Status(Code::kInternal, "such a tile was expected to fit");
  return cuda::wgmma_texts(product, "tile");
}

// A product by itself, computed with a tile that its sizes alone would not ask for.
class TileRun {
 public:
  TileRun(const ProductShape& s, bool a_turned, bool b_turned)
      : s_(s), a_turned_(a_turned), b_turned_(b_turned) {
    std::mt19937 random(3);
    for (auto* values : {&a_, &b_}) {
      const int64_t count = s.k * (values == &a_ ? s.m : s.n);
      for (int64_t i = 0; i < count; ++i) {
        const double x = (static_cast<double>(random() % 4001) - 2000.0) / 1000.0;
        values->push_back(static_cast<uint16_t>(word_from_double(x, DType::kBF16)));
      }
    }
  }

  std::vector<float> expected() const {
    std::vector<float> out;
    const MatrixUnit unit = *find_matrix_unit(kUnit, DType::kBF16);
    std::vector<Factor> x(static_cast<size_t>(s_.k));
    std::vector<Factor> y(x.size());
    for (int64_t m = 0; m < s_.m; ++m) {
      for (int64_t n = 0; n < s_.n; ++n) {
        for (int64_t k = 0; k < s_.k; ++k) {
          const int64_t in_a = a_turned_ ? k * s_.m + m : m * s_.k + k;
          const int64_t in_b = b_turned_ ? n * s_.k + k : k * s_.n + n;
          x[static_cast<size_t>(k)] =
              Factor::from_bits(DType::kBF16, a_[static_cast<size_t>(in_a)]);
          y[static_cast<size_t>(k)] =
              Factor::from_bits(DType::kBF16, b_[static_cast<size_t>(in_b)]);
        }
        out.push_back(named_order_sum(unit, x, y));
      }
    }
    return out;
  }

  Result<std::vector<float>> found(const cuda::WgmmaTile& tile) const {
    PYC_ASSIGN(const auto texts,
               tile_texts(matmul_text("bf16", s_.m, s_.n, s_.k, a_turned_, b_turned_), tile));
    return run<float>(texts, {});
  }

  // With a matrix added, in halves.
  Result<std::vector<uint16_t>> found_with(const cuda::WgmmaTile& tile,
                                           const std::vector<uint16_t>& added) const {
    PYC_ASSIGN(
        const auto texts,
        tile_texts(fmt::format("graph @g(%a: bf16[{0},{2}], %b: bf16[{2},{1}], %r: bf16[{0},{1}]) "
                               "-> (%y) {{\n  %p = matmul(%a, %b)\n  %y = add(%p, %r)\n}}\n",
                               s_.m, s_.n, s_.k),
                   tile));
    return run<uint16_t>(texts, added);
  }

 private:
  template <typename Element>
  Result<std::vector<Element>> run(const std::vector<cuda::KernelText>& texts,
                                   const std::vector<uint16_t>& added) const {
    PYC_ASSIGN(const auto nvrtc, cuda::Nvrtc::load(kFakeNvrtc));
    PYC_ASSIGN(const auto driver, cuda::Driver::load(kFakeDriver));
    PYC_ASSIGN(const cuda::DevicePtr device, cuda::Device::open(driver));
    PYC_ASSIGN(cuda::Stream stream, cuda::Stream::create(device));
    std::vector<Element> sums(static_cast<size_t>(s_.m * s_.n));
    PYC_ASSIGN(const cuda::DeviceMemory a, device->allocate(a_.size() * 2));
    PYC_ASSIGN(const cuda::DeviceMemory b, device->allocate(b_.size() * 2));
    PYC_ASSIGN(const cuda::DeviceMemory r, device->allocate(added.size() * 2));
    PYC_ASSIGN(const cuda::DeviceMemory y, device->allocate(sums.size() * sizeof(Element)));
    PYC_ASSIGN(const cuda::DeviceMemory workspace,
               device->allocate(static_cast<size_t>(texts[0].workspace_bytes)));
    PYC_TRY(stream.copy_in(a.get(), std::as_bytes(std::span(a_))));
    PYC_TRY(stream.copy_in(b.get(), std::as_bytes(std::span(b_))));
    PYC_TRY(stream.copy_in(r.get(), std::as_bytes(std::span(added))));
    std::vector<uint64_t> plain = {a.get(), b.get(), y.get(), workspace.get(), 0, 0};
    if (!added.empty()) plain.insert(plain.begin() + 2, r.get());
    for (const cuda::KernelText& text : texts) {
      std::vector<uint64_t> parameters = plain;
      for (const cuda::TensorMap& map : text.maps) {
        PYC_ASSIGN(const cuda::EncodedMap made, device->encode_map(map, plain[map.buffer]));
        parameters.insert(parameters.end(), made.words.begin(), made.words.end());
      }
      const auto maps = static_cast<uint32_t>(text.maps.size());
      const cuda::KernelText* const kernels[] = {&text};
      PYC_ASSIGN(const std::string image,
                 nvrtc->cubin(cuda::unit_text(cuda::cuda_dialect(), kernels), "sm_90a"));
      PYC_ASSIGN(const cuda::Module module, cuda::Module::load(device, image));
      PYC_ASSIGN(const auto function, module.function("tile", text.shared_bytes));
      PYC_TRY(stream.launch(function, {text.blocks, text.threads, text.shared_bytes, maps},
                            parameters));
      PYC_TRY(stream.synchronize());
    }
    PYC_TRY(stream.copy_out(std::as_writable_bytes(std::span(sums)), y.get()));
    PYC_TRY(stream.synchronize());
    return sums;
  }

  ProductShape s_;
  bool a_turned_;
  bool b_turned_;
  std::vector<uint16_t> a_;
  std::vector<uint16_t> b_;
};

TEST(CudaWgmma, TilesNeverChangeBits) {
  // Wide and narrow, short and long rings, the operands swapped or not.
  constexpr cuda::WgmmaTile kTiles[] = {
      {128, 192, false, 5}, {128, 256, false, 4}, {64, 256, true, 3}, {128, 96, false, 7},
      {64, 32, true, 8},    {128, 64, true, 6},   {64, 8, true, 12},  {192, 192, false, 4}};
  int turned = 0;
  for (const ProductShape& s : {ProductShape{136, 264, 200}, {131, 67, 75}}) {
    for (const cuda::WgmmaTile& tile : kTiles) {
      // Elements that come one by one need threads, which need registers.
      if (s.k % 8 != 0 && tile.rows * tile.columns > 128 * 128) continue;
      const TileRun run(s, (turned & 1) != 0, (turned & 2) != 0);
      ++turned;
      const auto found = run.found(tile);
      ASSERT_TRUE(found.ok()) << found.status().to_string();
      EXPECT_TRUE(*found == run.expected())
          << tile.rows << "x" << tile.columns << " of " << s.m << "," << s.n << "," << s.k;
    }
  }
}

// Operands that the device brings by tensor maps: whole tiles and rests, neighbours along k and
// along the rows, several tiles for a block, segments one after the other, together and apart.
TEST(CudaWgmma, MapsNeverChangeBits) {
  struct Case {
    ProductShape shape;
    cuda::WgmmaTile tile;
    std::vector<int> turned;  // 1: a, 2: b
  };
  constexpr bool kByMaps = true;
  const Case cases[] = {
      {{136, 264, 200}, {128, 192, false, 5, false, kByMaps}, {0, 3}},
      {{136, 72, 136}, {64, 64, true, 6, false, kByMaps}, {1, 2}},
      {{72, 24, 1096}, {64, 64, false, 4, false, kByMaps}, {0}},
      {{24, 24, 2104}, {64, 64, false, 8, true, kByMaps}, {0}},
      {{16, 16, 9304}, {64, 64, false, 8, true, kByMaps}, {2}},
      {{64 * 20, 8 * 15, 80}, {64, 8, false, 12, false, kByMaps}, {2}},
      {{104, 72, 136}, {64, 48, true, 3, false, kByMaps}, {0, 2}},
      // In turns: one group alone, several, more stages than the ring has, and rests.
      {{128, 128, 64}, {128, 128, false, 6, false, kByMaps, 2}, {0}},
      {{136, 264, 456}, {128, 128, false, 6, false, kByMaps, 2}, {3}},
      {{64 * 20, 8 * 15, 80}, {64, 8, false, 3, false, kByMaps, 2}, {2}},
      {{64 * 7, 8 * 20, 328}, {64, 8, false, 5, false, kByMaps, 3}, {2}},
      {{192, 384, 136}, {64, 192, false, 6, false, kByMaps, 3}, {0}},
  };
  for (const Case& c : cases) {
    for (const int turned : c.turned) {
      const TileRun run(c.shape, (turned & 1) != 0, (turned & 2) != 0);
      const auto found = run.found(c.tile);
      ASSERT_TRUE(found.ok()) << found.status().to_string();
      EXPECT_TRUE(*found == run.expected())
          << c.tile.rows << "x" << c.tile.columns << " of " << c.shape.m << "," << c.shape.n << ","
          << c.shape.k << " turned " << turned;
    }
  }
}

// What groups that take turns store: all that a warp has of its rows, with what was read ahead.
TEST(CudaWgmma, StoresInTurnsReadTheirOwnPlaces) {
  for (const ProductShape& s : {ProductShape{256, 128, 72}, {136, 72, 72}}) {
    const TileRun run(s, false, false);
    std::mt19937 random(5);
    std::vector<uint16_t> added;
    std::vector<uint16_t> expected;
    for (const float sum : run.expected()) {
      const double x = static_cast<double>(random() % 4001) - 2000.0;
      added.push_back(static_cast<uint16_t>(word_from_double(x, DType::kBF16)));
      const float r = std::bit_cast<float>(static_cast<uint32_t>(added.back()) << 16);
      expected.push_back(static_cast<uint16_t>(word_from_double(sum + r, DType::kBF16)));
    }
    const auto found = run.found_with({128, 128, false, 4, false, true, 2}, added);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_TRUE(*found == expected) << s.m << "," << s.n << "," << s.k;
  }
}

// What stores read is fetched ahead, of whole tiles, of rests, swapped or of segments that run
// together; a bias is no matrix, and its halves are no kernel of their own.
TEST(CudaWgmma, ResidualsAreFetchedAhead) {
  for (const ProductShape& s : {ProductShape{512, 768, 72}, {136, 264, 72}, {24, 64, 2104}}) {
    const std::string text = fmt::format(
        "graph @g(%a: bf16[{0},{2}], %b: bf16[{2},{1}], %c: bf16[{1}], %r: bf16[{0},{1}]) -> (%y) "
        "{{\n  %p = matmul(%a, %b)\n  %q = add(%p, %c)\n  %y = add(%q, %r)\n}}\n",
        s.m, s.n, s.k);
    const bool is_whole = s.n % 64 == 0 && s.m % 64 == 0;
    const std::vector<std::string> kernels = expect_bits(text);
    ASSERT_EQ(kernels.size(), 1U) << text;
    if (is_whole) {
      EXPECT_NE(kernels[0].find("_64x64"), std::string::npos) << kernels[0];
    }
    for (const cuda::WgmmaTile& tile :
         {cuda::WgmmaTile{64, 64, false, 4, false, true}, {64, 16, true, 4, s.k > 1024, true}}) {
      const auto texts = tile_texts(text, tile);
      ASSERT_TRUE(texts.ok()) << texts.status().to_string();
      const std::string& kernel = texts->front().text;
      const size_t first = kernel.find("pyc_prefetch(b");
      EXPECT_NE(first, std::string::npos) << kernel;
      EXPECT_EQ(kernel.find("pyc_prefetch(b", first + 1), std::string::npos) << kernel;
      // Pieces of whole tiles have it in registers before, and the bias.
      EXPECT_EQ(kernel.find("pyc_v16 ahead") != std::string::npos, is_whole && !tile.swapped);
      EXPECT_EQ(kernel.find("pyc_v16 early") != std::string::npos, is_whole && !tile.swapped);
    }
  }
}

// No map is for rows that lie no multiple of 16 bytes apart.
TEST(CudaWgmma, MapsAreForMatricesAlone) {
  const auto fits = [](const ProductShape& s) {
    return tile_texts(matmul_text("bf16", s.m, s.n, s.k, false, false),
                      {64, 64, false, 4, false, true})
        .ok();
  };
  EXPECT_TRUE(fits({64, 64, 64}));
  EXPECT_FALSE(fits({64, 64, 65}));
  EXPECT_FALSE(fits({64, 68, 64}));
}

// A compiled model has them wherever its operands are matrices, its own temporaries too.
TEST(CudaWgmma, ModelsHaveMaps) {
  const std::vector<std::string> kernels = expect_bits(
      "graph @g(%a: bf16[72,136], %b: bf16[136,72]) -> (%y) {\n"
      "  %p = matmul(%a, %b) {to=f32}\n  %h = cast(%p) {to=bf16}\n"
      "  %y = matmul(%h, %h) {to=f32}\n}\n");
  EXPECT_TRUE(std::ranges::any_of(
      kernels, [](const std::string& k) { return k.find("_maps") != std::string::npos; }));
}

TEST(CudaWgmma, SegmentsJoinTheSameTogetherAndApart) {
  const TileRun run({70, 72, 2104}, false, false);
  const std::vector<float> expected = run.expected();
  for (const cuda::WgmmaTile& tile : {cuda::WgmmaTile{128, 192, false, 5, false},
                                      {64, 64, false, 8, true},
                                      {64, 16, true, 8, true}}) {
    const auto found = run.found(tile);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_TRUE(*found == expected) << tile.rows << "x" << tile.columns;
  }
}

// Segments that are too many for one cluster are joined by a kernel of their own.
TEST(CudaWgmma, ManySegmentsJoinInAnotherKernel) {
  const TileRun run({33, 24, 9300}, false, true);
  const auto found = run.found({64, 32, false, 8, true});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_TRUE(*found == run.expected());
}

// More tiles than blocks: a block's ring goes on from one tile to the next.
TEST(CudaWgmma, ABlockComputesManyTiles) {
  const TileRun run({64 * 20, 8 * 15, 80}, false, false);
  const auto found = run.found({64, 8, false, 3});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_TRUE(*found == run.expected());
}

// q, k and v are one product, and attention reads slices of it.
TEST(CudaWgmma, OperandsOfAttentionAreOneProduct) {
  driver::CompileOptions options = in_unit_order("cuda");
  options.precision = DType::kBF16;
  std::string text = "graph @g(%x: f32[2,24,32]) -> (%y) {\n";
  for (const char* which : {"q", "k", "v"}) {
    text += fmt::format(
        "  %w{0} = const f32[32,32] random(seed={1}, lo=-0.5, hi=0.5)\n"
        "  %b{0} = const f32[32] random(seed={2}, lo=-0.5, hi=0.5)\n"
        "  %p{0} = matmul(%x, %w{0})\n  %s{0} = add(%p{0}, %b{0})\n"
        "  %h{0} = reshape(%s{0}) {{shape=[2,24,2,16]}}\n"
        "  %{0} = transpose(%h{0}) {{perm=[0,2,1,3]}}\n",
        which, int{which[0]}, which[0] + 40);
  }
  text += "  %y, %c, %d, %s = attention(%q, %k, %v)\n}\n";
  const auto kernels = expect_bits(text, Content::kNumbers, options);
  EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(),
                          [](const std::string& k) { return k.starts_with("bf16_wgmma"); }),
            1);
}

// Attention stores halves, and the product reads them where they lie: nothing runs between. Tiles
// lie within one example (64 rows), or not (24).
TEST(CudaWgmma, RowsOfAttentionAreStoredAsTheProductReadsThem) {
  driver::CompileOptions options = in_unit_order("cuda");
  options.precision = DType::kBF16;
  for (const int64_t rows : {24, 64}) {
    const auto kernels =
        expect_bits(fmt::format("graph @g(%q: f32[2,2,{0},16], %k: f32[2,2,{0},16]) -> (%y) {{\n"
                                "  %a, %c, %d, %s = attention(%q, %k, %k)\n"
                                "  %t = transpose(%a) {{perm=[0,2,1,3]}}\n"
                                "  %f = reshape(%t) {{shape=[{1},32]}}\n"
                                "  %w = const f32[32,40] random(seed=5, lo=-0.5, hi=0.5)\n"
                                "  %y = matmul(%f, %w)\n}}\n",
                                rows, 2 * rows),
                    Content::kNumbers, options);
    ASSERT_GE(kernels.size(), 2U);
    EXPECT_TRUE(kernels.back().starts_with("bf16_wgmma")) << kernels.back();
    EXPECT_TRUE(kernels[kernels.size() - 2].starts_with("bf16_attention"))
        << kernels[kernels.size() - 2];
  }
}

TEST(CudaWgmma, NumbersOfAnyBits) {
  for (const char* type : {"bf16", "f16"}) {
    for (const int64_t k : {16, 40, 1032}) {
      expect_on_unit(matmul_text(type, 24, 40, k, false, false), Content::kBits);
    }
  }
}

// A thread's quotients come by short steps, and by division if one of them is not moderate: all are
// of the second kind where bits are any.
TEST(CudaWgmma, QuotientsBehindAProduct) {
  for (const Content content : {Content::kNumbers, Content::kBits}) {
    expect_on_unit(R"(graph @g(%a: bf16[40,48], %b: bf16[48,64], %r: f32[40,64]) -> (%y) {
  %p = matmul(%a, %b) {to=f32}
  %t = tanh(%p)
  %q = div(%t, %r)
  %y = div(%q, %p)
}
)",
                   content);
  }
}

TEST(CudaWgmma, NoTermsAreZero) { expect_on_unit(matmul_text("bf16", 3, 5, 0, false, false)); }

TEST(CudaWgmma, BatchesAndWhatFollowsTheProduct) {
  expect_on_unit(R"(graph @g(%a: bf16[3,20,48], %b: bf16[3,48,40]) -> (%y) {
  %y = matmul(%a, %b)
}
)");
  expect_on_unit(R"(graph @g(%a: bf16[2,4,20,16], %b: bf16[2,1,24,16], %r: f32[2,4,20,24]) -> (%y) {
  %t = transpose(%b) {perm=[0,1,3,2]}
  %p = matmul(%a, %t) {to=f32}
  %y = add(%p, %r)
}
)");
  expect_on_unit(R"(graph @g(%a: f16[33,64], %b: f16[64,72], %c: f16[72], %r: f16[33,72]) -> (%y) {
  %p = matmul(%a, %b)
  %s = add(%p, %c)
  %g = gelu(%s)
  %y = add(%g, %r)
}
)");
}

TEST(CudaWgmma, ConvolutionsInTheirNumberingOfK) {
  // Channels that fill a block, that do not, and few; padding, strides, groups.
  expect_on_unit(R"(graph @g(%x: bf16[2,32,9,8], %w: bf16[24,32,3,3], %b: bf16[24]) -> (%y) {
  %p = conv(%x, %w, %b) {pads=[1,1,1,1]}
  %y = relu(%p)
}
)");
  expect_on_unit(R"(graph @g(%x: f16[1,20,7,7], %w: f16[10,20,3,2]) -> (%y) {
  %y = conv(%x, %w) {strides=[2,1], pads=[0,1,2,0]}
}
)",
                 Content::kBits);
  expect_on_unit(R"(graph @g(%x: bf16[1,3,12,12], %w: bf16[16,3,5,5]) -> (%y) {
  %y = conv(%x, %w) {strides=[2,2], pads=[2,2,2,2]}
}
)");
  expect_on_unit(R"(graph @g(%x: bf16[1,48,6,6], %w: bf16[32,24,1,1]) -> (%y) {
  %y = conv(%x, %w) {group=2}
}
)");
}

// Two convolutions with constant weights between other ops, so that what is between them lies
// channels last and weights are packed.
std::string chain_text(const std::string& x, const std::string& w, const std::string& attributes,
                       int64_t out, const char* type = "bf16") {
  return fmt::format(R"(graph @g(%x: {0}{1}) -> (%y) {{
  %w = const {0}{2} random(seed=1, lo=-0.5, hi=0.5)
  %v = const {0}[16,{4},1,1] random(seed=2, lo=-0.5, hi=0.5)
  %b = const f32[{4},1,1] random(seed=3, lo=-0.5, hi=0.5)
  %a = relu(%x)
  %c = conv(%a, %w) {{to=f32{3}}}
  %s = add(%c, %b)
  %h = cast(%s) {{to={0}}}
  %d = conv(%h, %v)
  %m = max_pool(%d) {{kernel=[2,2]}}
  %y = add(%m, %m)
}}
)",
                     type, x, w, attributes, out);
}

TEST(CudaWgmma, ConvolutionsOfChannelsThatAreLast) {
  // Taps of whole stages, of parts of a stage, of blocks that are not full; strides, dilations,
  // padding, groups, rows of a tile that end within an image.
  expect_on_unit(chain_text("[2,64,6,5]", "[24,64,3,3]", ", pads=[1,1,1,1]", 24));
  expect_on_unit(chain_text("[1,32,9,8]", "[72,32,3,2]", ", strides=[2,1], pads=[0,1,2,0]", 72));
  expect_on_unit(chain_text("[1,24,7,7]", "[16,24,3,3]", ", pads=[2,2,2,2], dilations=[2,2]", 16));
  expect_on_unit(chain_text("[1,20,5,5]", "[16,20,3,3]", ", pads=[1,1,1,1]", 16, "f16"));
  expect_on_unit(chain_text("[1,48,6,6]", "[32,24,3,3]", ", group=2, pads=[1,1,1,1]", 32));
  expect_on_unit(chain_text("[1,32,8,8]", "[40,32,1,1]", ", strides=[2,2]", 40));
  expect_on_unit(chain_text("[1,3,14,14]", "[24,3,7,7]", ", strides=[2,2], pads=[3,3,3,3]", 24));
  expect_on_unit(chain_text("[1,128,3,3]", "[16,128,3,3]", ", pads=[1,1,1,1]", 16));
}

// Whether the windows of the text's convolution, whose input lies channels last, come 16 bytes at a
// time; its weights lie as the window goes over them and do not.
bool windows_come_together(const std::string& x, const std::string& w, const char* attributes) {
  auto graph = driver::parse_model(fmt::format(R"(graph @g(%x: bf16{}, %w: bf16{}) -> (%y) {{
  %a = relu(%x)
  %y = conv(%a, %w) {{pads=[1,1,1,1]{}}}
}}
)",
                                               x, w, attributes));
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  auto verified = ir::verify_graph(std::move(*graph));
  EXPECT_TRUE(verified.ok()) << verified.status().to_string();
  const auto last = [](const ir::Graph& g, const lower::LayoutFacts&) {
    lower::Layouts out;
    out.set(g.nodes[0].outputs[0], {0, 2, 3, 1});
    return out;
  };
  const auto lowered =
      lower::lower_graph(*verified, {.layout_chooser = last, .unit = std::string(kUnit)});
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string();
  const lower::Group& group = lowered->groups.back();
  EXPECT_TRUE(group.contraction.has_value());
  const cuda::WgmmaTile tile{.rows = 64, .columns = 64};
  const cuda::WgmmaProduct product{.group = &group, .factors = DType::kBF16, .tile = tile};
  const auto brings = {cuda::wgmma_bring(product, false), cuda::wgmma_bring(product, true)};
  return std::ranges::count(brings, cuda::WgmmaBring::kAlongK) == 1;
}

TEST(CudaWgmma, ChannelsOfAWindowComeTogether) {
  EXPECT_TRUE(windows_come_together("[2,64,6,5]", "[24,64,3,3]", ""));
  EXPECT_TRUE(windows_come_together("[2,24,6,5]", "[24,24,3,3]", ", strides=[2,2]"));
  EXPECT_TRUE(windows_come_together("[2,40,6,5]", "[32,40,3,3]", ", dilations=[2,2]"));
  // Taps that begin within 16 bytes, and channels that end there.
  EXPECT_FALSE(windows_come_together("[2,12,6,5]", "[24,12,3,3]", ""));
  EXPECT_FALSE(windows_come_together("[2,20,6,5]", "[24,20,3,3]", ""));
}

// What has no kernel of its own on the unit keeps its order in the generic forms.
TEST(CudaWgmma, SmallFloatsKeepTheOrder) {
  expect_bits(R"(graph @g(%a: f8e4m3fn[4,40], %b: f8e4m3fn[40,8]) -> (%y) {
  %y = matmul(%a, %b)
}
)");
}

TEST(CudaWgmma, AnF32ModelNarrowedRunsOnTheUnit) {
  driver::CompileOptions options = in_unit_order("cuda");
  options.precision = DType::kBF16;
  const auto kernels = expect_bits(R"(graph @g(%x: f32[24,32]) -> (%y) {
  %w = const f32[32,16] random(seed=1, lo=-0.5, hi=0.5)
  %p = matmul(%x, %w)
  %y = softmax(%p)
}
)",
                                   Content::kNumbers, options);
  EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(),
                          [](const std::string& k) { return k.starts_with("bf16_wgmma_"); }));
}

// At strict, and for f32, products have the canonical order: no kernel of the unit is asked.
TEST(CudaWgmma, OnlyBalancedHasTheUnit) {
  const FakesChosen fakes;
  driver::CompileOptions options = on_device("cuda");
  options.determinism = driver::Determinism::kStrict;
  auto strict = compile_text(matmul_text("bf16", 24, 40, 64, false, false), options);
  ASSERT_TRUE(strict.ok()) << strict.status().to_string();
  auto floats = compile_text(matmul_text("f32", 24, 40, 64, false, false), on_device("cuda"));
  ASSERT_TRUE(floats.ok()) << floats.status().to_string();
  for (const auto* model : {&*strict, &*floats}) {
    for (const std::string& kernel : kernels_of((*model)->decisions())) {
      EXPECT_EQ(kernel.find("wgmma"), std::string::npos) << kernel;
    }
  }
}

// The kernels' sums stay in registers, and the unit computes them.
TEST(CudaWgmma, BecomesCubinsForHopper) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
  const TempFolder folder;
  bool disassembled = false;
  driver::CompileOptions options = on_device("cuda");
  options.target = "sm_90a";
  for (const ProductShape& s : {ProductShape{512, 1024, 768}, {8192, 8192, 8192}, {1, 768, 3072}}) {
    auto graph = driver::parse_model(matmul_text("bf16", s.m, s.n, s.k, false, false));
    ASSERT_TRUE(graph.ok());
    auto verified = ir::verify_graph(std::move(*graph));
    ASSERT_TRUE(verified.ok());
    const auto compiled = driver::compile_program(std::move(*verified), options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
    const std::string& image = *compiled->program->steps[0].kernel().object;
    const std::string file = folder.path() + "/kernel.cubin";
    ASSERT_TRUE(write_file_atomic(file, std::string_view(image)).ok());
    const auto code = printed_by("nvdisasm -c " + file);
    if (!code) continue;
    disassembled = true;
    EXPECT_NE(code->find("HGMMA"), std::string::npos);
    for (const char* spill : {"LDL", "STL"}) EXPECT_EQ(code->find(spill), std::string::npos);
  }
  if (!disassembled) GTEST_SKIP() << "NOT RUN: no nvdisasm to look at the code with";
}

// The widest tiles have registers for one set of sums, and none to lose in the epilogue.
TEST(CudaWgmma, WideTilesStayInRegisters) {
  const auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc.ok()) GTEST_SKIP() << "NOT RUN: " << nvrtc.status().message();
  const TempFolder folder;
  constexpr const char* kPlain =
      "graph @g(%a: bf16[1024,768], %b: bf16[768,3072]) -> (%y) {\n  %y = matmul(%a, %b)\n}\n";
  constexpr const char* kLong =
      "graph @g(%a: bf16[1024,768], %b: bf16[768,3072], %c: f32[3072]) -> (%y) {\n"
      "  %p = matmul(%a, %b) {to=f32}\n  %q = add(%p, %c)\n  %g = gelu(%q)\n"
      "  %y = cast(%g) {to=bf16}\n}\n";
  for (const cuda::WgmmaTile& tile : {cuda::WgmmaTile{128, 192, false, 5},
                                      {128, 256, false, 4},
                                      {192, 192, false, 4},
                                      {128, 128, false, 6, false, true, 2}}) {
    for (const char* model : {kPlain, kLong}) {
      const auto texts = tile_texts(model, tile);
      ASSERT_TRUE(texts.ok()) << texts.status().to_string();
      const cuda::KernelText* const kernels[] = {texts->data()};
      const auto image = (*nvrtc)->cubin(cuda::unit_text(cuda::cuda_dialect(), kernels), "sm_90a");
      ASSERT_TRUE(image.ok()) << image.status().to_string();
      const std::string file = folder.path() + "/kernel.cubin";
      ASSERT_TRUE(write_file_atomic(file, std::string_view(*image)).ok());
      const auto code = printed_by("nvdisasm -c " + file);
      if (!code) GTEST_SKIP() << "NOT RUN: no nvdisasm to look at the code with";
      // One by one, results would be rounded at a quarter of the speed.
      for (const char* slow : {"LDL", "STL", "F2F.BF16"}) {
        EXPECT_EQ(code->find(slow), std::string::npos) << slow << " of " << tile.columns << model;
      }
    }
  }
}

}  // namespace
}  // namespace pyc::test
