// What segments cost: the kernels of segment_kernels.cuh timed against one chain, and the bits of
// samples against src/base/matrix_unit.cpp.

#include <algorithm>
#include <functional>
#include <map>

#include "base/convert.h"
#include "segment_kernels.cuh"
#include "support.h"

namespace probe {
namespace {

// About normal: the sum of four uniform numbers.
__global__ void fill(uint16_t* p, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    uint64_t h = (i + 1) * 0x9E3779B97F4A7C15ULL + seed * 0xD1B54A32D192ED03ULL;
    h = (h ^ h >> 31) * 0xBF58476D1CE4E5B9ULL;
    h = (h ^ h >> 27) * 0x94D049BB133111EBULL;
    h ^= h >> 31;
    float x = 0;
    for (int part = 0; part < 4; part++)
      x += static_cast<float>(h >> (16 * part) & 0xFFFF) / 65536.0F - 0.5F;
    p[i] = static_cast<uint16_t>(pack_bf16(x * 1.7320508F, 0.0F) & 0xFFFF);
  }
}

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeTiled find_encode_tiled() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &found),
        "driver");
  if (entry == nullptr) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  return reinterpret_cast<EncodeTiled>(entry);
}

CUtensorMap tensor_map(uint16_t* data, int rows, int k, int box_rows) {
  static const EncodeTiled encode = find_encode_tiled();
  CUtensorMap map;
  const cuuint64_t extents[2] = {static_cast<cuuint64_t>(k), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(k) * 2};
  const cuuint32_t box[2] = {kDepth, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, data, extents, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled " + std::to_string(result));
  return map;
}

struct Problem {
  int m, n, k;
  DeviceArray<uint16_t> a, b, c;
  int multiprocessors = 0;

  Problem(int m_, int n_, int k_)
      : m(m_), n(n_), k(k_), a(size_t(m) * k), b(size_t(n) * k), c(size_t(m) * n) {
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "attribute");
    fill<<<1024, 256>>>(a.data(), a.size(), 1);
    fill<<<1024, 256>>>(b.data(), b.size(), 2);
    check(cudaDeviceSynchronize(), "fill");
  }
};

template <int BN, int SEG, Mode MODE>
void launch(Problem& p) {
  constexpr int kBytes = Layout<BN>::kBytes;
  auto* kernel = product<BN, SEG, MODE>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "shared memory");
  const CUtensorMap map_a = tensor_map(p.a.data(), p.m, p.k, kTileRows);
  const CUtensorMap map_b = tensor_map(p.b.data(), p.n, p.k, BN);
  kernel<<<p.multiprocessors, kThreads, kBytes>>>(map_a, map_b, p.c.data(), p.m, p.n, p.k);
  check(cudaGetLastError(), "launch");
}

// Stages of a segment that no sum reaches: one chain.
constexpr int kWhole = 1 << 20;

struct Variant {
  std::string name;
  int segment;  // 0: none
  void (*run)(Problem&);
};

std::vector<Variant> variants() {
  return {{"128x128 none", 0, launch<128, 0, kTogether>},
          {"128x128 together 256", 256, launch<128, 4, kTogether>},
          {"128x128 halves none", 0, launch<128, kWhole, kHalves>},
          {"128x128 halves 512", 512, launch<128, 8, kHalves>},
          {"128x128 halves 256", 256, launch<128, 4, kHalves>},
          {"128x128 doubled 1024", 1024, launch<128, 16, kDoubled>},
          {"128x128 doubled 512", 512, launch<128, 8, kDoubled>},
          {"128x128 doubled 256", 256, launch<128, 4, kDoubled>},
          {"128x192 none", 0, launch<192, 0, kTogether>},
          {"128x192 turns none", 0, launch<192, 0, kTurns>},
          {"128x192 turns 512", 512, launch<192, 8, kTurns>},
          {"128x192 halves none", 0, launch<192, kWhole, kHalves>},
          {"128x192 halves 1024", 1024, launch<192, 16, kHalves>},
          {"128x192 halves 512", 512, launch<192, 8, kHalves>},
          {"128x192 halves 256", 256, launch<192, 4, kHalves>},
          {"128x256 none", 0, launch<256, 0, kTogether>},
          {"128x256 turns none", 0, launch<256, 0, kTurns>}};
}

// Results of samples that are not the named order's, rounded to bf16.
long wrong_samples(Problem& p, int segment, const std::vector<uint16_t>& a,
                   const std::vector<uint16_t>& b) {
  const std::vector<uint16_t> c = p.c.download();
  pyc::MatrixUnit unit = *pyc::find_matrix_unit("sm90", pyc::DType::kBF16);
  unit.segment = segment == 0 ? 1 << 30 : segment;
  constexpr size_t kSamples = 1024;
  std::vector<char> wrong(kSamples);
  parallel(kSamples, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t row = i * 2654435761U % p.m, column = i * 2246822519U % p.n;
      const size_t bytes = static_cast<size_t>(p.k) * 2;
      const auto x =
          factors(pyc::DType::kBF16, reinterpret_cast<const uint8_t*>(&a[row * p.k]), bytes);
      const auto y =
          factors(pyc::DType::kBF16, reinterpret_cast<const uint8_t*>(&b[column * p.k]), bytes);
      wrong[i] = pyc::f32_to_bf16(pyc::named_order_sum(unit, x, y)) != c[row * p.n + column];
    }
  });
  return std::count(wrong.begin(), wrong.end(), 1);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// The variant that is the same tile in one chain.
size_t chain_of(const std::vector<Variant>& all, const Variant& variant) {
  const std::string wanted = variant.name.substr(0, variant.name.find(' ')) + " none";
  size_t i = 0;
  while (i + 1 < all.size() && all[i].name != wanted) ++i;
  return i;
}

// Of one size: the time of the best kernel with each S over that of the best kernel without.
using CostOfSegment = std::map<int, double>;

CostOfSegment costs(int size, const std::vector<Variant>& all, const std::vector<double>& rates) {
  std::map<int, size_t> best;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [at, added] = best.emplace(all[i].segment, i);
    if (!added && rates[i] > rates[at->second]) at->second = i;
  }
  CostOfSegment cost;
  const double chain = rates[best.at(0)];
  for (const auto& [segment, i] : best) {
    cost[segment] = chain / rates[i] - 1;
    conclude(text("%5d  best of S %4d: %s, %.1f TFLOP/s, %+.2f %% of time", size, segment,
                  all[i].name.c_str(), rates[i], 100 * cost[segment]));
  }
  return cost;
}

CostOfSegment measure(int size_m, int size_n, int size_k, double seconds) {
  Problem p(size_m, size_n, size_k);
  const std::vector<Variant> all = variants();
  std::vector<long> wrong;
  const std::vector<uint16_t> a = p.a.download(), b = p.b.download();
  for (const Variant& v : all) {
    p.c.poison();
    v.run(p);
    wrong.push_back(wrong_samples(p, v.segment, a, b));
  }
  const double flops = 2.0 * p.m * p.n * p.k;
  const int repeats = static_cast<int>(std::clamp(8e12 / flops, 3.0, 50.0));
  std::vector<std::vector<double>> rate(all.size()), ratio(all.size());
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");
  const double end = seconds_now() + seconds;
  for (int round = 0; round < 3 || (seconds_now() < end && round < 60); ++round) {
    // Every round begins with another variant, so that none always follows the same one.
    std::vector<double> times(all.size());
    for (size_t j = 0; j < all.size(); ++j) {
      const size_t at = (j + static_cast<size_t>(round)) % all.size();
      const Variant& v = all[at];
      check(cudaEventRecord(start), "event");
      for (int i = 0; i < repeats; ++i) v.run(p);
      check(cudaEventRecord(stop), "event");
      check(cudaEventSynchronize(stop), "product");
      float ms = 0;
      check(cudaEventElapsedTime(&ms, start, stop), "event");
      times[at] = ms / repeats;
    }
    if (round == 0) continue;
    for (size_t i = 0; i < all.size(); ++i) {
      rate[i].push_back(flops / times[i] / 1e9);
      ratio[i].push_back(times[i] / times[chain_of(all, all[i])]);
    }
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::printf(
      "%dx%dx%d bf16: TFLOP/s, time over the same tile without segments (medians of %zu), wrong of "
      "1024 samples\n",
      p.m, p.n, p.k, rate[0].size());
  std::vector<double> rates;
  for (size_t i = 0; i < all.size(); ++i) {
    rates.push_back(wrong[i] == 0 ? median(rate[i]) : 0);
    const std::string key = text("segments.%d.%s", p.m, all[i].name.c_str());
    report().number(key + ".tflops", median(rate[i]));
    report().number(key + ".time_ratio", median(ratio[i]));
    report().number(key + ".wrong", static_cast<double>(wrong[i]));
    conclude(text("%5d  %-24s %7.1f TFLOP/s  %+6.2f %%  wrong %ld", p.m, all[i].name.c_str(),
                  median(rate[i]), 100 * (median(ratio[i]) - 1), wrong[i]));
  }
  return costs(p.m, all, rates);
}

}  // namespace

void measure_segments(double seconds) {
  measure(256, 384, 2048, 0.2);
  const CostOfSegment small = measure(4096, 4096, 4096, seconds / 2);
  const CostOfSegment large = measure(8192, 8192, 8192, seconds / 2);
  constexpr double kAllowed = 0.03;
  int smallest = 0;
  for (const auto& [segment, cost] : small)
    if (segment != 0 && smallest == 0 && std::max(cost, large.at(segment)) <= kAllowed)
      smallest = segment;
  report().number("segments.smallest_within_3_percent", smallest);
  conclude(smallest != 0 ? text("segments: S = %d is the smallest within 3 %% of the best kernel "
                                "without segments at 4096 and 8192",
                                smallest)
                         : std::string("segments: no S is within 3 % at 4096 and 8192"));
}

}  // namespace probe
