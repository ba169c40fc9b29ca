// What segments cost: C[m, n] = A[m, k] · B[n, k]ᵀ in bf16 with totals kept apart in registers,
// against one chain, and the bits of samples against src/base/matrix_unit.cpp. Three ways to end a
// segment:
//   together: both consumer groups wait for their sums and add them;
//   turns: the groups issue their blocks of k in turns, so that one adds while the other's products
//   run; halves: a group's tile is two products, one of which runs while the other's sums are
//   added.

#include <cuda.h>

#include <algorithm>
#include <functional>

#include "base/convert.h"
#include "device.cuh"
#include "support.h"
#include "wgmma_text.cuh"

namespace probe {
namespace {

enum Mode { kTogether, kTurns, kHalves };

constexpr int kTileRows = 128;
constexpr int kDepth = 64;  // elements of k in a stage
constexpr int kThreads = 384;

template <int BN>
struct Layout {
  static constexpr int kStages = BN == 128 ? 5 : 4;
  static constexpr int kPitch = BN * 2 + 16;  // of a row of results on its way out
  static constexpr int kA = kTileRows * kDepth * 2;
  static constexpr int kB = BN * kDepth * 2;
  static constexpr int kBytes = kStages * (kA + kB) + kTileRows * kPitch + kStages * 16;
};

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@p bra.uni DONE;\nbra.uni AGAIN;\nDONE:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                          int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
// K-major with 128-byte swizzle: rows of 128 bytes, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ uint64_t swizzled_descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | 1ULL << 16 | 64ULL << 32 | 1ULL << 62;
}
__device__ __forceinline__ void turn_wait(int group) {
  asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
}
__device__ __forceinline__ void turn_give(int group) {
  asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory");
}
// Neighbours in time share rows of A and of B.
__device__ __forceinline__ int2 tile_at(int t, int tiles_m, int tiles_n) {
  constexpr int kGroup = 12;
  const int group = t / (kGroup * tiles_n), first = group * kGroup;
  const int height = min(kGroup, tiles_m - first), rest = t - group * kGroup * tiles_n;
  return {first + rest % height, rest / height};
}

// The stages as a consumer sees them.
template <int BN>
struct Stages {
  uint32_t a, b, full, empty;
  int at = 0;
  uint32_t parity = 0;
  int lane;

  __device__ __forceinline__ void wait() const { barrier_wait(full + at * 8, parity); }
  __device__ __forceinline__ void release(int stage) const {
    if (lane == 0) barrier_arrive(empty + stage * 8);
  }
  __device__ __forceinline__ void next() {
    if (++at == Layout<BN>::kStages) {
      at = 0;
      parity ^= 1;
    }
  }
};

// acc += one stage; with keep = 0 acc = one stage.
template <int N>
__device__ __forceinline__ void multiply(float (&acc)[N / 2], uint32_t a, uint32_t b, int keep) {
#pragma unroll
  for (int k = 0; k < 4; k++)
    Shared<0, N>::mma(acc, swizzled_descriptor(a + k * 32), swizzled_descriptor(b + k * 32),
                      k ? 1 : keep);
}

// `count` stages into `sum`, which starts without accumulator.
template <int BN, bool TURNS>
__device__ __forceinline__ void chain(Stages<BN>& stages, int group, int count,
                                      float (&sum)[BN / 2]) {
  using L = Layout<BN>;
  int before = 0;
  for (int i = 0; i < count; i++) {
    stages.wait();
    if (TURNS) turn_wait(group);
    wgmma_fence();
    multiply<BN>(sum, stages.a + stages.at * L::kA, stages.b + stages.at * L::kB, i > 0);
    wgmma_commit();
    if (TURNS) turn_give(1 - group);
    wgmma_wait<1>();
    if (i > 0) stages.release(before);
    before = stages.at;
    stages.next();
  }
  wgmma_wait<0>();
  pin(sum);
  stages.release(before);
}

// One tile's sums into `out`; SEG stages a segment, 0: one chain.
template <int BN, int SEG, bool TURNS>
__device__ __forceinline__ void whole_sums(Stages<BN>& stages, int group, int blocks,
                                           float (&out)[BN / 2]) {
#pragma unroll
  for (int i = 0; i < BN / 2; i++) out[i] = 0.0F;
  if constexpr (SEG == 0) {
    chain<BN, TURNS>(stages, group, blocks, out);
  } else {
    float acc[BN / 2];
#pragma unroll
    for (int i = 0; i < BN / 2; i++) acc[i] = 0.0F;
    for (int first = 0; first < blocks; first += SEG) {
      chain<BN, TURNS>(stages, group, min(SEG, blocks - first), acc);
#pragma unroll
      for (int i = 0; i < BN / 2; i++) out[i] = __fadd_rn(out[i], acc[i]);
    }
  }
}

// The same with the tile's columns in two products. A segment's last stage and the next one's first
// are written out together: the low sums are added while the high product runs, the high ones while
// the next low product does.
template <int BN, int SEG>
__device__ __forceinline__ void halved_sums(Stages<BN>& stages, int blocks, float (&out)[BN / 2]) {
  using L = Layout<BN>;
  constexpr int kHalf = BN / 2;  // columns
  constexpr int kSums = kHalf / 2;
  float low[kSums], high[kSums];
#pragma unroll
  for (int i = 0; i < BN / 2; i++) out[i] = 0.0F;
#pragma unroll
  for (int i = 0; i < kSums; i++) low[i] = high[i] = 0.0F;
  auto a = [&] { return stages.a + stages.at * L::kA; };
  auto b = [&] { return stages.b + stages.at * L::kB; };
  auto both = [&](int keep) {
    stages.wait();
    wgmma_fence();
    multiply<kHalf>(low, a(), b(), keep);
    wgmma_commit();
    multiply<kHalf>(high, a(), b() + kHalf * 128, keep);
    wgmma_commit();
  };
  both(0);
  int before = stages.at;
  stages.next();
  auto middle = [&](int count) {
    for (int i = 0; i < count; i++) {
      both(1);
      wgmma_wait<2>();
      stages.release(before);
      before = stages.at;
      stages.next();
    }
  };
  int done = 0;
  for (; done + SEG < blocks; done += SEG) {
    middle(SEG - 2);
    both(1);
    wgmma_wait<1>();
    pin(low);
#pragma unroll
    for (int i = 0; i < kSums; i++) out[i] = __fadd_rn(out[i], low[i]);
    stages.release(before);
    before = stages.at;
    stages.next();
    stages.wait();
    pin(low);
    wgmma_fence();
    multiply<kHalf>(low, a(), b(), 0);
    wgmma_commit();
    wgmma_wait<1>();
    pin(high);
#pragma unroll
    for (int i = 0; i < kSums; i++) out[kSums + i] = __fadd_rn(out[kSums + i], high[i]);
    stages.release(before);
    pin(high);
    wgmma_fence();
    multiply<kHalf>(high, a(), b() + kHalf * 128, 0);
    wgmma_commit();
    before = stages.at;
    stages.next();
  }
  middle(blocks - done - 1);
  wgmma_wait<0>();
  pin(low);
  pin(high);
#pragma unroll
  for (int i = 0; i < kSums; i++) {
    out[i] = __fadd_rn(out[i], low[i]);
    out[kSums + i] = __fadd_rn(out[kSums + i], high[i]);
  }
  stages.release(before);
}

// A warp's 16 rows of results, as bf16, through shared memory; whole rows leave in bulk.
template <int BN>
__device__ __forceinline__ void store_rows(const float (&out)[BN / 2], uint32_t rows, int lane,
                                           uint16_t* c, int row, int column, int m, int n) {
  constexpr int kPitch = Layout<BN>::kPitch;
  const uint32_t at = rows + ((lane & 7) + ((lane >> 3) & 1) * 8) * kPitch + (lane >> 4) * 16;
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  __syncwarp();
#pragma unroll
  for (int j = 0; j < BN / 8; j += 2) {
    const uint32_t r0 = pack_bf16(out[j * 4], out[j * 4 + 1]),
                   r1 = pack_bf16(out[j * 4 + 2], out[j * 4 + 3]);
    const uint32_t r2 = pack_bf16(out[j * 4 + 4], out[j * 4 + 5]),
                   r3 = pack_bf16(out[j * 4 + 6], out[j * 4 + 7]);
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at + j * 16),
        "r"(r0), "r"(r1), "r"(r2), "r"(r3)
        : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  const int columns = min(BN, n - column);
  if (lane < 16 && row + lane < m && columns > 0) {
    const uint64_t to = __cvta_generic_to_global(c + static_cast<size_t>(row + lane) * n + column);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(rows + lane * kPitch), "r"(columns * 2)
                 : "memory");
  }
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// 384 threads: group 0 loads, 1 and 2 multiply 64 rows each. As many blocks as multiprocessors.
template <int BN, int SEG, Mode MODE>
__global__ void __launch_bounds__(kThreads, 1)
    product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
            uint16_t* c, int m, int n, int k) {
#if PROBE_SM90A
  using L = Layout<BN>;
  extern __shared__ __align__(1024) uint8_t buffer[];
  const uint32_t a = shared_address(buffer), b = a + L::kStages * L::kA;
  const uint32_t rows = b + L::kStages * L::kB, full = rows + kTileRows * L::kPitch;
  const uint32_t empty = full + L::kStages * 8;
  const int role = threadIdx.x / 128, lane = threadIdx.x & 31, warp = (threadIdx.x & 127) / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < L::kStages; i++) {
      barrier_init(full + i * 8, 1);
      barrier_init(empty + i * 8, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int blocks = k / kDepth, tiles_m = (m + kTileRows - 1) / kTileRows,
            tiles_n = (n + BN - 1) / BN;
  if (role == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      int stage = 0;
      uint32_t parity = 0;
      for (int t = blockIdx.x; t < tiles_m * tiles_n; t += gridDim.x) {
        const int2 tile = tile_at(t, tiles_m, tiles_n);
        for (int i = 0; i < blocks; i++) {
          barrier_wait(empty + stage * 8, parity ^ 1);
          barrier_expect(full + stage * 8, L::kA + L::kB);
          load_tile(a + stage * L::kA, &map_a, full + stage * 8, i * kDepth, tile.x * kTileRows);
          load_tile(b + stage * L::kB, &map_b, full + stage * 8, i * kDepth, tile.y * BN);
          if (++stage == L::kStages) {
            stage = 0;
            parity ^= 1;
          }
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group = role - 1;
    Stages<BN> stages = {a + group * 64 * 128, b, full, empty};
    stages.lane = lane;
    if (MODE == kTurns && group == 1) turn_give(0);
    for (int t = blockIdx.x; t < tiles_m * tiles_n; t += gridDim.x) {
      const int2 tile = tile_at(t, tiles_m, tiles_n);
      float out[BN / 2];
      if constexpr (MODE == kHalves)
        halved_sums<BN, SEG>(stages, blocks, out);
      else
        whole_sums<BN, SEG, MODE == kTurns>(stages, group, blocks, out);
      const int row = group * 64 + warp * 16;
      store_rows<BN>(out, rows + row * L::kPitch, lane, c, tile.x * kTileRows + row, tile.y * BN, m,
                     n);
    }
    if (MODE == kTurns && group == 0) turn_wait(0);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
#endif
}

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

struct Variant {
  std::string name;
  int segment;  // 0: none
  void (*run)(Problem&);
};

std::vector<Variant> variants() {
  return {{"128x192 none", 0, launch<192, 0, kTogether>},
          {"128x192 none again", 0, launch<192, 0, kTogether>},
          {"128x192 together 1024", 1024, launch<192, 16, kTogether>},
          {"128x192 together 512", 512, launch<192, 8, kTogether>},
          {"128x192 together 256", 256, launch<192, 4, kTogether>},
          {"128x192 turns none", 0, launch<192, 0, kTurns>},
          {"128x192 turns 1024", 1024, launch<192, 16, kTurns>},
          {"128x192 turns 512", 512, launch<192, 8, kTurns>},
          {"128x192 turns 256", 256, launch<192, 4, kTurns>},
          {"128x192 halves 1024", 1024, launch<192, 16, kHalves>},
          {"128x192 halves 512", 512, launch<192, 8, kHalves>},
          {"128x192 halves 256", 256, launch<192, 4, kHalves>},
          {"128x128 none", 0, launch<128, 0, kTogether>},
          {"128x128 together 256", 256, launch<128, 4, kTogether>},
          {"128x128 turns none", 0, launch<128, 0, kTurns>},
          {"128x128 turns 1024", 1024, launch<128, 16, kTurns>},
          {"128x128 turns 512", 512, launch<128, 8, kTurns>},
          {"128x128 turns 256", 256, launch<128, 4, kTurns>}};
}

// Results of samples that are not the named order's, rounded to bf16.
long wrong_samples(Problem& p, int segment, const std::vector<uint16_t>& a,
                   const std::vector<uint16_t>& b) {
  const std::vector<uint16_t> c = p.c.download();
  pyc::MatrixUnit unit = *pyc::find_matrix_unit("sm90");
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

void measure(int size_m, int size_n, int size_k, double seconds) {
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
    std::vector<double> times;
    for (const Variant& v : all) {
      check(cudaEventRecord(start), "event");
      for (int i = 0; i < repeats; ++i) v.run(p);
      check(cudaEventRecord(stop), "event");
      check(cudaEventSynchronize(stop), "product");
      float ms = 0;
      check(cudaEventElapsedTime(&ms, start, stop), "event");
      times.push_back(ms / repeats);
    }
    if (round == 0) continue;
    for (size_t i = 0; i < all.size(); ++i) {
      rate[i].push_back(flops / times[i] / 1e9);
      const size_t base = all[i].name.starts_with("128x128") ? 12 : 0;
      ratio[i].push_back(times[i] / times[base]);
    }
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::printf(
      "%dx%dx%d bf16: TFLOP/s, time over the same tile without segments (medians of %zu), wrong of "
      "1024 samples\n",
      p.m, p.n, p.k, rate[0].size());
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string key = text("segments.%d.%s", p.m, all[i].name.c_str());
    report().number(key + ".tflops", median(rate[i]));
    report().number(key + ".time_ratio", median(ratio[i]));
    report().number(key + ".wrong", static_cast<double>(wrong[i]));
    conclude(text("%5d  %-24s %7.1f TFLOP/s  %+6.2f %%  wrong %ld", p.m, all[i].name.c_str(),
                  median(rate[i]), 100 * (median(ratio[i]) - 1), wrong[i]));
  }
}

}  // namespace

void measure_segments(double seconds) {
  measure(256, 384, 2048, 0.2);
  measure(4096, 4096, 4096, seconds / 2);
  measure(8192, 8192, 8192, seconds / 2);
}

}  // namespace probe
