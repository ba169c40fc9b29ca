#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace pyc::bench {

// Threads that do nothing but read, each its own share of so many bytes again and again, in one to
// eight streams: far memory gives a core half as much again in four as in one. Sixteen loads are in
// flight, in vectors as wide as the machine has them; wider ones than the compiler may use it would
// keep in memory, and then reading is not what is measured.
class ReadProbe {
 public:
  explicit ReadProbe(int threads) : pool_(std::move(ThreadPool::create(threads)).value()) {}

  // Bytes a nanosecond of all threads: the best of several short rounds.
  double rate(int64_t bytes) {
    constexpr int kRounds = 6;
    constexpr int64_t kRoundBytes = int64_t{1} << 23;
    const int64_t threads = pool_->threads();
    bytes_ = std::max<int64_t>(bytes / threads / kBlock, 1) * kBlock;
    shares_.clear();
    for (int64_t t = 0; t < threads; ++t) {
      shares_.push_back(std::move(AlignedBuffer::create(static_cast<size_t>(bytes_))).value());
      std::fill_n(shares_.back().data(), bytes_, std::byte{1});
    }
    repeats_ = std::max<int64_t>(1, kRoundBytes / bytes_);
    double best = 0.0;
    for (const int streams : {1, 2, 4, 8}) {
      streams_ = streams;
      for (int round = 0; round < kRounds; ++round) {
        const int64_t start = now_ns();
        pool_->parallel_for(threads, &ReadProbe::part, this);
        const auto ns = static_cast<double>(now_ns() - start);
        best = std::max(best, static_cast<double>(threads * repeats_ * bytes_) / ns);
      }
    }
    return best;
  }

 private:
  static constexpr int64_t kBlock = 8 * 16 * 64;  // of all streams, in the widest vectors

  template <int Width>
  struct Words {
    using Vector __attribute__((vector_size(Width), may_alias)) = uint64_t;
  };

  template <int Width>
  [[gnu::always_inline]] static uint64_t mixed(const std::byte* data, int64_t bytes, int streams) {
    using Vector = typename Words<Width>::Vector;
    const int64_t each = bytes / streams;
    Vector s0{};
    Vector s1{};
    Vector s2{};
    Vector s3{};
    Vector s4{};
    Vector s5{};
    Vector s6{};
    Vector s7{};
    for (int64_t at = 0; at < each; at += 16 * Width) {
      for (int stream = 0; stream < streams; ++stream) {
        const auto* from = reinterpret_cast<const Vector*>(data + stream * each + at);
        s0 ^= from[0] ^ from[8];
        s1 ^= from[1] ^ from[9];
        s2 ^= from[2] ^ from[10];
        s3 ^= from[3] ^ from[11];
        s4 ^= from[4] ^ from[12];
        s5 ^= from[5] ^ from[13];
        s6 ^= from[6] ^ from[14];
        s7 ^= from[7] ^ from[15];
      }
    }
    const Vector all = ((s0 ^ s1) ^ (s2 ^ s3)) ^ ((s4 ^ s5) ^ (s6 ^ s7));
    return all[0] ^ all[1];
  }

#ifdef __x86_64__
  [[gnu::target("avx512f")]] static uint64_t mixed_512(const std::byte* data, int64_t bytes,
                                                       int streams) {
    return mixed<64>(data, bytes, streams);
  }
  [[gnu::target("avx2")]] static uint64_t mixed_256(const std::byte* data, int64_t bytes,
                                                    int streams) {
    return mixed<32>(data, bytes, streams);
  }
#endif

  static uint64_t read(const std::byte* data, int64_t bytes, int streams) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") != 0) return mixed_512(data, bytes, streams);
    if (__builtin_cpu_supports("avx2") != 0) return mixed_256(data, bytes, streams);
#endif
    return mixed<16>(data, bytes, streams);
  }

  static void part(void* ctx, int /*thread*/, int64_t begin, int64_t /*end*/) {
    const auto* self = static_cast<const ReadProbe*>(ctx);
    const std::byte* data = self->shares_[static_cast<size_t>(begin)].data();
    uint64_t sum = 0;
    for (int64_t i = 0; i < self->repeats_; ++i) {
      sum += read(data, self->bytes_, self->streams_);
      asm volatile("" : "+r"(sum), "+r"(data) : : "memory");  // every time anew
    }
  }

  std::unique_ptr<ThreadPool> pool_;
  std::vector<AlignedBuffer> shares_;
  int64_t bytes_ = 0;
  int64_t repeats_ = 0;
  int streams_ = 1;
};

}  // namespace pyc::bench
