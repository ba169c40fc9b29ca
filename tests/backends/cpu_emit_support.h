#pragma once

// Runs a kernel through the interpreter and through generated code of every width and compares the
// bytes. Buffers end at a page that cannot be touched, so that generated code that reads or
// writes too far is caught.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/codegen.h"
#include "eval/interpreter.h"
#include "loop/builder.h"
#include "loop/loop.h"
#include "loop/parse.h"
#include "loop/verify.h"
#include "runtime/code_module.h"

namespace pyc::cpu_test {

using loop::Expr;
using loop::ExprId;
using loop::Kernel;
using loop::VarId;

// A kernel from the lines between its braces.
inline Kernel parsed(const std::string& text) {
  auto kernel = loop::parse_kernel("kernel {\n" + text + "\n}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  if (!kernel.ok()) return {};
  EXPECT_TRUE(loop::verify_kernel(*kernel).ok()) << loop::verify_kernel(*kernel).to_string();
  return std::move(*kernel);
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = (bytes_ + page - 1) / page * page + 2 * page;
    base_ = static_cast<uint8_t*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + mapped_ - page, page, PROT_NONE);
    data_ = base_ + mapped_ - page - bytes_;
    std::memset(base_ + page, 0xA5, mapped_ - 2 * page);
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(base_, mapped_); }
  uint8_t* data() { return data_; }
  size_t size() const { return bytes_; }

 private:
  size_t bytes_;
  size_t mapped_;
  uint8_t* base_;
  uint8_t* data_;
};

// Zeros, ones, limits, halves, subnormals, infinities and NaN of a type, as far as it has them.
inline std::vector<Word> edge_values(DType t) {
  std::vector<Word> v;
  if (is_float(t)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (const double x : {0.0,
                           1.0,
                           0.5,
                           1.5,
                           2.5,
                           3.5,
                           0.49999997,
                           1e-3,
                           3e-5,
                           6e-8,
                           2e-8,
                           1e-40,
                           1e-45,
                           1e-300,
                           5e-324,
                           127.0,
                           127.5,
                           128.0,
                           255.5,
                           448.0,
                           464.0,
                           465.0,
                           1000.0,
                           32767.5,
                           65504.0,
                           65519.0,
                           65520.0,
                           65535.5,
                           2147483520.0,
                           2147483647.0,
                           2147483648.0,
                           4294967040.0,
                           4294967295.0,
                           4294967296.0,
                           9.2233715e18,
                           9.223372036854775e18,
                           9.223372036854775808e18,
                           1.8446742e19,
                           1.8446744073709550e19,
                           1.8446744073709551616e19,
                           3.3e38,
                           3.4028236e38,
                           1.7e308,
                           1.0000001,
                           1.00000001,
                           1.001953125,
                           1.00146484375,
                           1.00390625,
                           1.0625,
                           inf}) {
      v.push_back(word_from_double(x, t));
      v.push_back(word_from_double(-x, t));
    }
    v.push_back(word_from_double(std::numeric_limits<double>::quiet_NaN(), t));
    return v;
  }
  if (t == DType::kBool) return {0, 1};
  for (const int64_t x : {int64_t{0},
                          int64_t{1},
                          int64_t{2},
                          int64_t{3},
                          int64_t{7},
                          int64_t{8},
                          int64_t{31},
                          int64_t{32},
                          int64_t{63},
                          int64_t{64},
                          int64_t{100},
                          int64_t{127},
                          int64_t{128},
                          int64_t{255},
                          int64_t{32767},
                          int64_t{65535},
                          int64_t{65519},
                          int64_t{65520},
                          int64_t{16777217},
                          int64_t{16777219},
                          int64_t{0x7FFFFFFF},
                          int64_t{0x80000000},
                          int64_t{0xFFFFFFFF},
                          (int64_t{1} << 53) + 1,
                          (int64_t{1} << 62) + (int64_t{1} << 54) + 1,
                          (int64_t{1} << 40) + 1,
                          (int64_t{1} << 61) + (int64_t{1} << 37) + 1,
                          std::numeric_limits<int64_t>::max(),
                          std::numeric_limits<int64_t>::min()}) {
    v.push_back(convert_word(static_cast<Word>(x), DType::kI64, t));
    v.push_back(convert_word(0 - static_cast<Word>(x), DType::kI64, t));
  }
  return v;
}

inline bool is_nan(Word w, DType t) {
  const double x = word_to_double(w, t);
  return is_float(t) && x != x;
}

class Harness {
 public:
  explicit Harness(const Kernel& kernel, uint64_t seed = 1) : k_(kernel), random_(seed) {
    for (const loop::Buffer& b : k_.buffers) {
      buffers_.push_back(std::make_unique<GuardedBuffer>(b.elements * dtype_size(b.dtype)));
      if (b.access == loop::Access::kRead) fill(buffers_.back()->data(), b);
    }
  }

  template <class T>
  std::span<T> data(uint32_t buffer) {
    return {reinterpret_cast<T*>(buffers_[buffer]->data()), buffers_[buffer]->size() / sizeof(T)};
  }

  using Bytes = std::vector<std::vector<uint8_t>>;

  // What the interpreter writes to each buffer; nothing if it refuses the kernel.
  Bytes interpreted() {
    auto interpreter = eval::Interpreter::create(k_);
    if (!interpreter.ok()) {
      ADD_FAILURE() << interpreter.status().to_string();
      return {};
    }
    return run([&](const pyc_kernel_args& args, int64_t begin, int64_t end) {
      (*interpreter)->run(args, begin, end);
    });
  }

  // Generated code of all widths against the interpreter.
  void check() {
    const Bytes reference = interpreted();
    ASSERT_FALSE(reference.empty());
    const int32_t fault = fault_;
    cpu::CodegenTarget target = cpu::CodegenTarget::host();
    for (const int lanes : {4, 8, 16}) {
      SCOPED_TRACE("lanes " + std::to_string(lanes));
      target.lanes = lanes;
      auto object = cpu::emit_object(k_, target);
      ASSERT_TRUE(object.ok()) << object.status().to_string();
      auto module = runtime::CodeModule::load(*object);
      ASSERT_TRUE(module.ok()) << module.status().to_string();
      const pyc_kernel_fn fn = (*module)->lookup(cpu::kDefaultSymbol);
      ASSERT_NE(fn, nullptr);
      const auto found = run(
          [&](const pyc_kernel_args& args, int64_t begin, int64_t end) { fn(&args, begin, end); });
      EXPECT_EQ(fault_, fault);
      if (fault == 0) compare(reference, found);
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  void fill(uint8_t* p, const loop::Buffer& b) {
    const std::vector<Word> edges = edge_values(b.dtype);
    std::normal_distribution<double> normal(0.0, 2.0);
    for (int64_t i = 0; i < b.elements; ++i) {
      Word w = 0;
      if (random_() % 16 == 0) {
        w = edges[random_() % edges.size()];
      } else if (is_float(b.dtype)) {
        w = word_from_double(normal(random_), b.dtype);
      } else if (random_() % 2 == 0) {
        w = convert_word(random_(), DType::kI64, b.dtype);
      } else {
        w = convert_word(random_() % 100, DType::kI64, b.dtype);
      }
      store_word(p + i * dtype_size(b.dtype), b.dtype, w);
    }
  }

  template <class Run>
  Bytes run(Run run_range) {
    GuardedBuffer scratch(k_.scratch_bytes());
    std::vector<void*> pointers;
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      GuardedBuffer& b = *buffers_[i];
      if (k_.buffers[i].access == loop::Access::kWrite) std::memset(b.data(), 0xA5, b.size());
      pointers.push_back(k_.buffers[i].access == loop::Access::kScratch ? nullptr : b.data());
    }
    fault_ = 0;
    pyc_kernel_args args{};
    args.buffers = pointers.data();
    args.fault = &fault_;
    args.threads = 1;
    // Aligned scratch that ends at the protected page up to its own padding to 64 bytes.
    args.scratch = scratch.data();
    const int64_t points = k_.parallel_size();
    run_range(args, 0, points / 3);
    run_range(args, points / 3, points);
    Bytes outputs;
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      GuardedBuffer& b = *buffers_[i];
      const bool written = k_.buffers[i].access == loop::Access::kWrite;
      outputs.emplace_back(b.data(), b.data() + (written ? b.size() : 0));
    }
    return outputs;
  }

  void compare(const Bytes& expected, const Bytes& found) {
    for (size_t i = 0; i < k_.buffers.size(); ++i) {
      const DType t = k_.buffers[i].dtype;
      const auto size = static_cast<size_t>(dtype_size(t));
      for (size_t at = 0; at + size <= expected[i].size(); at += size) {
        const Word e = load_word(expected[i].data() + at, t);
        const Word f = load_word(found[i].data() + at, t);
        if (e == f || (is_nan(e, t) && is_nan(f, t))) continue;
        ADD_FAILURE() << "buffer " << i << " (" << k_.buffers[i].name << ", " << dtype_name(t)
                      << ") element " << at / size << std::hex << ": expected 0x" << e << " ("
                      << word_to_double(e, t) << "), found 0x" << f << " (" << word_to_double(f, t)
                      << ")";
        return;
      }
    }
  }

  const Kernel& k_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;
  int32_t fault_ = 0;
};

// Short names for building kernels.
struct Builder {
  Kernel k;
  loop::Pool& pool = k.pool;

  Builder() { k.name = "test"; }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  uint32_t buffer(DType t, int64_t elements, loop::Access access) {
    k.buffers.push_back({"b" + std::to_string(k.buffers.size()), t, elements, access});
    return static_cast<uint32_t>(k.buffers.size() - 1);
  }
  uint32_t in(DType t, int64_t n) { return buffer(t, n, loop::Access::kRead); }
  uint32_t out(DType t, int64_t n) { return buffer(t, n, loop::Access::kWrite); }
  uint32_t scratch(DType t, int64_t n) { return buffer(t, n, loop::Access::kScratch); }

  VarId parallel(int64_t extent) {
    const VarId v = pool.new_var("p", DType::kI64, extent);
    k.parallel.push_back(v);
    return v;
  }
  Expr var(VarId v) { return {&pool, pool.var(v)}; }
  Expr idx(int64_t v) { return loop::index(pool, v); }
  Expr load(uint32_t b, Expr offset) {
    return {&pool, pool.load(b, k.buffers[b].dtype, offset.id)};
  }
  Expr load_if(uint32_t b, Expr offset, Expr guard, Expr fallback) {
    return {&pool, pool.load(b, k.buffers[b].dtype, offset.id, guard.id, fallback.id)};
  }
  loop::Stmt store(uint32_t b, Expr offset, Expr value) {
    k.stores.push_back({b, offset.id, value.id});
    return {loop::StmtKind::kStore, static_cast<uint32_t>(k.stores.size() - 1)};
  }
  loop::Stmt check(Expr ok, int32_t code) {
    k.checks.push_back({ok.id, code});
    return {loop::StmtKind::kCheck, static_cast<uint32_t>(k.checks.size() - 1)};
  }
  VarId loop_var(int64_t extent) { return pool.new_var("i", DType::kI64, extent); }
  VarId result(DType t) { return pool.new_var("r", t, loop::kResult); }
  loop::Stmt loop(VarId v, bool vector, std::vector<loop::Stmt> body,
                  std::vector<loop::Reduction> reductions = {}) {
    loop::Loop l;
    l.var = v;
    l.extent = pool.var_info(v).extent;
    l.vector = vector;
    l.body = std::move(body);
    l.reductions = std::move(reductions);
    k.loops.push_back(std::move(l));
    return {loop::StmtKind::kLoop, static_cast<uint32_t>(k.loops.size() - 1)};
  }
};

inline loop::Reduction tree(loop::ReduceOp op, Expr value, VarId result) {
  return {.kind = loop::ReduceKind::kTree, .op = op, .value = value.id, .result = result};
}
inline loop::Reduction exact(loop::ReduceOp op, Expr value, VarId result) {
  return {.kind = loop::ReduceKind::kExact, .op = op, .value = value.id, .result = result};
}
inline loop::Reduction chain(Expr a, Expr b, int64_t segment, VarId result) {
  return {.kind = loop::ReduceKind::kChain,
          .op = loop::ReduceOp::kSum,
          .value = a.id,
          .value2 = b.id,
          .segment = segment,
          .result = result};
}

}  // namespace pyc::cpu_test
