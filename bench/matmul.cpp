// f32 matrix products: the generated kernels beside OpenBLAS, weights packed ahead, one and two
// threads, both measured alternately in one run. Prints a table and, with --json FILE, writes the
// same numbers as JSON. "of peak" is the share of multiply-adds in registers, probed between the
// runs since clocks change by the minute, "of bound" that of the larger of these and of reading as
// many bytes as the operands and the result have, which lie where they do between runs.
//
//   pyc_bench_matmul [--set networks|forty|thin] [--json FILE] [--shape SUBSTRING] [--seconds S]
//                    [--quantile Q] [--threads LIST]

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/matmul.h"
#include "base/aligned_buffer.h"
#include "base/target_info.h"
#include "base/thread_pool.h"
#include "fma_probe.h"
#include "loop/builder.h"
#include "lower/kernel_builder.h"
#include "read_probe.h"
#include "runtime/code_module.h"

#ifdef PYC_HAVE_OPENBLAS
#include <cblas.h>
extern "C" char* openblas_get_config();
extern "C" char* openblas_get_corename();
extern "C" void openblas_set_num_threads(int threads);
#endif

namespace {

using namespace pyc;

struct Shape {
  std::string name;
  int64_t m;
  int64_t k;
  int64_t n;
  int64_t batch = 1;
  bool activations = false;  // B is computed at run time, so its packing counts too
  bool turned = false;       // B lies as [n, k]
};

const std::vector<Shape> kNetworks = {
    {"bert_qkv", 128, 768, 768},
    {"bert_ffn_up", 128, 768, 3072},
    {"bert_ffn_down", 128, 3072, 768},
    {"bert_pooler", 1, 768, 768},
    {"attention_qk", 128, 64, 128, 12, true, true},
    {"attention_pv", 128, 128, 64, 12, true},
    {"gpt2_qkv", 128, 768, 2304},
    {"gpt2_decode_up", 1, 768, 3072},
    {"vit_qkv", 197, 768, 2304},
    {"vit_ffn_down", 197, 3072, 768},
    {"resnet_c2_expand", 3136, 64, 256},
    {"resnet_c3_reduce", 784, 512, 128},
    {"resnet_c4_reduce", 196, 1024, 256},
    {"resnet_c4_expand", 196, 256, 1024},
    {"resnet_c5_reduce", 49, 2048, 512},
    {"resnet_fc", 1, 2048, 1000},
    {"mlp_in", 32, 512, 4096},
    {"mlp_hidden", 32, 4096, 4096},
    {"lstm_step", 1, 512, 2048},
    {"llama_ffn_up", 128, 768, 2048},
};

struct Sizes {
  int64_t m;
  int64_t k;
  int64_t n;
};

// Those of bench/tune.py.
constexpr Sizes kForty[] = {
    {64, 64, 64},     {96, 96, 96},     {128, 128, 128},   {192, 192, 192},  {256, 256, 256},
    {384, 384, 384},  {512, 512, 512},  {768, 768, 768},   {128, 768, 768},  {128, 768, 3072},
    {128, 3072, 768}, {128, 768, 2304}, {197, 768, 768},   {197, 768, 2304}, {197, 768, 3072},
    {197, 3072, 768}, {128, 768, 2048}, {128, 2048, 768},  {384, 768, 768},  {384, 768, 3072},
    {512, 512, 2048}, {512, 2048, 512}, {3136, 64, 64},    {3136, 64, 256},  {3136, 256, 64},
    {784, 512, 128},  {784, 128, 512},  {196, 1024, 256},  {196, 256, 1024}, {64, 2048, 512},
    {64, 512, 2048},  {784, 1152, 128}, {196, 2304, 256},  {100, 100, 100},  {77, 640, 640},
    {77, 640, 2560},  {1500, 384, 384}, {1500, 384, 1536}, {65, 129, 257},   {250, 300, 350},
};

// One row, few rows, one column, few columns, few terms.
constexpr Sizes kThin[] = {
    {1, 768, 768},   {1, 768, 3072},   {1, 3072, 768},   {1, 512, 2048},  {1, 2048, 1000},
    {1, 4096, 4096}, {2, 768, 3072},   {4, 768, 768},    {8, 1024, 1024}, {16, 512, 512},
    {32, 512, 4096}, {32, 4096, 4096}, {768, 768, 1},    {4096, 512, 1},  {512, 512, 4},
    {3136, 64, 8},   {784, 512, 16},   {1024, 1024, 10}, {512, 8, 512},   {1024, 16, 1024},
    {3136, 27, 32},  {12544, 27, 32},  {256, 3, 256},    {196, 4, 196},   {49, 32, 1280},
};

std::vector<Shape> shapes_of(std::string_view set) {
  std::vector<Shape> shapes;
  const auto add = [&](std::span<const Sizes> list) {
    for (const auto [m, k, n] : list) {
      shapes.push_back({.name = fmt::format("{}x{}x{}", m, k, n), .m = m, .k = k, .n = n});
    }
  };
  if (set == "networks") shapes = kNetworks;
  if (set == "forty") add(kForty);
  if (set == "thin") add(kThin);
  return shapes;
}

// out[b, m, n] = a[b, m, k] · b[b, k, n], B shared when batch is 1.
lower::Group product(const Shape& s) {
  using namespace loop;
  lower::Group g;
  g.name = s.name;
  g.kind = lower::GroupKind::kContraction;
  g.bytes = 4 * s.batch * (s.m * s.k + s.k * s.n + s.m * s.n);
  Kernel& k = g.kernel;
  k.name = s.name;
  Pool& p = k.pool;
  k.buffers = {{"a", DType::kF32, s.batch * s.m * s.k, Access::kRead},
               {"b", DType::kF32, s.batch * s.k * s.n, Access::kRead},
               {"y", DType::kF32, s.batch * s.m * s.n, Access::kWrite}};
  g.buffer_values = {0, 1, 2};
  const VarId batch = p.new_var("b", DType::kI64, s.batch);
  const VarId row = p.new_var("i", DType::kI64, s.m);
  const VarId column = p.new_var("j", DType::kI64, s.n);
  const VarId depth = p.new_var("k", DType::kI64, s.k);
  const VarId result = p.new_var("r", DType::kF32, kResult);
  const auto var = [&](VarId v) { return Expr{&p, p.var(v)}; };
  const auto at = [&](int64_t v) { return index(p, v); };
  const Expr left = var(batch) * at(s.m * s.k) + var(row) * at(s.k) + var(depth);
  const Expr right = var(batch) * at(s.k * s.n) + var(depth) * at(s.turned ? 1 : s.n) +
                     var(column) * at(s.turned ? s.k : 1);
  const Expr out = var(batch) * at(s.m * s.n) + var(row) * at(s.n) + var(column);
  k.parallel = {batch, row};
  Loop columns{.var = column, .extent = s.n, .vector = true, .body = {}, .reductions = {}};
  columns.body = {{StmtKind::kLoop, 1}, {StmtKind::kStore, 0}};
  Loop products{.var = depth, .extent = s.k, .body = {}, .reductions = {}};
  products.reductions.push_back({.kind = ReduceKind::kChain,
                                 .value = p.load(0, DType::kF32, left.id),
                                 .value2 = p.load(1, DType::kF32, right.id),
                                 .segment = cpu::kMatmulSegment,
                                 .result = result});
  k.loops = {columns, products};
  k.stores.push_back({2, out.id, p.var(result)});
  k.body = {{StmtKind::kLoop, 0}};
  std::string why_not;
  g.contraction = lower::find_contraction(
      k, [](uint32_t) { return false; }, &why_not);
  PYC_CHECK(g.contraction.has_value(), why_not);
  return g;
}

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double now_s() { return seconds_of(CLOCK_MONOTONIC); }

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())))];
}

AlignedBuffer random_floats(int64_t count, uint32_t seed) {
  AlignedBuffer buffer = std::move(AlignedBuffer::create(static_cast<size_t>(count) * 4)).value();
  auto* p = reinterpret_cast<float*>(buffer.data());
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return buffer;
}

AlignedBuffer bytes(int64_t count) {
  return std::move(AlignedBuffer::create(static_cast<size_t>(count))).value();
}

// A compiled product with its buffers.
class Ours {
 public:
  Ours(const Shape& s, int threads, float* a, float* b, float* y)
      : group_(product(s)),
        plan_(cpu::plan_matmul(group_, {.a = false, .b = !s.activations},
                               cpu::CodegenTarget::host(), threads)) {
    const cpu::CodegenTarget target = cpu::CodegenTarget::host();
    Result<std::string> object = cpu::emit_matmul_object(group_, plan_, target);
    PYC_CHECK(object.ok(), object.status().to_string());
    Result<std::unique_ptr<runtime::CodeModule>> module = runtime::CodeModule::load(*object);
    PYC_CHECK(module.ok(), module.status().to_string());
    module_ = std::move(module).value();
    pool_ = std::move(ThreadPool::create(threads)).value();
    const lower::KernelNeeds needs = cpu::matmul_needs(group_, plan_);
    workspace_ = bytes(needs.workspace_bytes);
    for (int t = 0; t < threads; ++t) scratch_.push_back(bytes(needs.scratch_bytes));
    if (!needs.packed.empty()) packed_ = cpu::pack_b(plan_, *group_.contraction, b);
    float* const values[] = {a, b, y};
    for (const cpu::MatmulStep& step : cpu::matmul_steps(group_, plan_)) {
      Step& made = steps_.emplace_back();
      made.fn = module_->lookup(step.symbol);
      made.parallel = step.parallel;
      for (const backends::Operand& o : step.operands) {
        void* packed = const_cast<void*>(packed_.data);
        made.buffers.push_back(o.kind == backends::Operand::Kind::kValue       ? values[o.value]
                               : o.kind == backends::Operand::Kind::kWorkspace ? workspace_.data()
                                                                               : packed);
      }
    }
  }

  const cpu::MatmulPlan& plan() const { return plan_; }

  void run() {
    for (Step& step : steps_) {
      running_ = &step;
      pool_->parallel_for(step.parallel, &Ours::part, this);
    }
  }

 private:
  struct Step {
    pyc_kernel_fn fn = nullptr;
    std::vector<void*> buffers;
    int64_t parallel = 0;
  };

  static void part(void* ctx, int thread, int64_t begin, int64_t end) {
    const Ours* self = static_cast<const Ours*>(ctx);
    pyc_kernel_args args{};
    args.buffers = self->running_->buffers.data();
    args.scratch = const_cast<std::byte*>(self->scratch_[static_cast<size_t>(thread)].data());
    args.thread = thread;
    args.threads = self->pool_->threads();
    self->running_->fn(&args, begin, end);
  }

  lower::Group group_;
  cpu::MatmulPlan plan_;
  std::unique_ptr<runtime::CodeModule> module_;
  std::unique_ptr<ThreadPool> pool_;
  runtime::Parameter packed_;
  AlignedBuffer workspace_;
  std::vector<AlignedBuffer> scratch_;
  std::vector<Step> steps_;
  const Step* running_ = nullptr;
};

#ifdef PYC_HAVE_OPENBLAS
constexpr bool kHasRival = true;
#else
constexpr bool kHasRival = false;
#endif

// OpenBLAS's sgemm, batch entry by batch entry.
void rival([[maybe_unused]] const Shape& s, [[maybe_unused]] const float* a,
           [[maybe_unused]] const float* b, [[maybe_unused]] float* y) {
#ifdef PYC_HAVE_OPENBLAS
  const auto m = static_cast<int>(s.m);
  const auto n = static_cast<int>(s.n);
  const auto k = static_cast<int>(s.k);
  for (int64_t i = 0; i < s.batch; ++i) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, s.turned ? CblasTrans : CblasNoTrans, m, n, k, 1.0f,
                a + i * s.m * s.k, k, b + i * s.k * s.n, s.turned ? k : n, 0.0f, y + i * s.m * s.n,
                n);
  }
#endif
}

struct Row {
  Shape shape;
  int threads;
  std::string kernel;
  double ours;      // GFLOP/s, medians
  double openblas;  // 0 where there is none, as the ratio
  double ratio;
  double spread;    // of our times: the 90th percentile over the 10th
  double peak;      // of multiply-adds between the runs
  double of_bound;  // the least time that arithmetic and reading allow, over ours
};

struct Settings {
  double seconds = 0.5;   // per shape
  double quantile = 0.5;  // of the times; a low one looks past interruptions by other processes
};

// Both run in turns. With several threads there is a pause in between, in which the idle threads of
// the one before stop spinning (OpenBLAS's take 2^26 ticks): they would hold a core that the other
// needs.
constexpr int kRounds = 8;
constexpr useconds_t kQuietUs = 80000;

// One thread is timed by its own CPU time, several by the clock on the wall.
Row measure(const Shape& s, int threads, const bench::FmaProbe& probe, const Settings& settings) {
  AlignedBuffer a = random_floats(s.batch * s.m * s.k, 1);
  AlignedBuffer b = random_floats(s.batch * s.k * s.n, 2);
  AlignedBuffer y = random_floats(s.batch * s.m * s.n, 3);
  AlignedBuffer z = random_floats(s.batch * s.m * s.n, 4);
  const auto floats = [](AlignedBuffer& x) { return reinterpret_cast<float*>(x.data()); };
  Ours ours(s, threads, floats(a), floats(b), floats(y));
#ifdef PYC_HAVE_OPENBLAS
  openblas_set_num_threads(threads);
#endif
  const double flops = 2.0 * double(s.batch * s.m * s.n) * double(s.k);
  const auto repeats =
      static_cast<int>(std::clamp((threads == 1 ? 2e7 : 4e6) / flops, 1.0, 1000.0));
  const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const auto timed = [&](const auto& f) {
    const double start = seconds_of(clock);
    for (int i = 0; i < repeats; ++i) f();
    return (seconds_of(clock) - start) / repeats;
  };
  const auto one = [&] { return timed([&] { ours.run(); }); };
  const auto other = [&] { return timed([&] { rival(s, floats(a), floats(b), floats(z)); }); };
  std::vector<double> mine;
  std::vector<double> theirs;  // empty where there is no rival
  std::vector<double> peaks;
  for (int round = 0; round < kRounds; ++round) {
    const auto block = [&](const auto& f, std::vector<double>& times) {
      if (threads > 1) usleep(kQuietUs);
      f();
      const double start = now_s();
      do times.push_back(f());
      while (now_s() - start < settings.seconds / (2 * kRounds));
    };
    block(one, mine);
    if (kHasRival) block(other, theirs);
    peaks.push_back(probe.rate(20) * 1e-9);
  }
  const double mine_s = quantile(mine, settings.quantile);
  const double theirs_s = kHasRival ? quantile(theirs, settings.quantile) : 0.0;
  const double peak = quantile(peaks, 0.5);
  const int64_t moved = 4 * s.batch * (s.m * s.k + s.k * s.n + s.m * s.n);
  if (threads > 1) usleep(kQuietUs);
  const double reading_s =
      1e-9 * static_cast<double>(moved) / bench::ReadProbe(threads).rate(moved);
  return {s,
          threads,
          ours.plan().name,
          flops / mine_s * 1e-9,
          kHasRival ? flops / theirs_s * 1e-9 : 0.0,
          theirs_s / mine_s,
          quantile(mine, 0.9) / quantile(mine, 0.1),
          peak,
          std::max(flops * 1e-9 / (peak * threads), reading_s) / mine_s};
}

std::string of_rival(double x, int digits) {
  return kHasRival ? fmt::format("{:.{}f}", x, digits) : "-";
}

std::string json(const std::vector<Row>& rows, double peak, const Settings& settings) {
  std::string text = fmt::format(
      "{{\n  \"bench\": \"matmul\",\n  \"cpu\": \"{}\",\n  \"peak_gflops\": {:.2f},\n"
      "  \"quantile\": {},\n",
      host_target().features(), peak, settings.quantile);
#ifdef PYC_HAVE_OPENBLAS
  text +=
      fmt::format("  \"rival\": \"{} core {}\",\n", openblas_get_config(), openblas_get_corename());
#endif
  text += "  \"rows\": [\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    text += fmt::format(
        "    {{\"name\": \"{}\", \"batch\": {}, \"m\": {}, \"k\": {}, \"n\": {}, \"threads\": {}, "
        "\"kernel\": \"{}\", \"gflops\": {:.2f}, \"openblas_gflops\": {:.2f}, \"ratio\": {:.3f}, "
        "\"of_peak\": {:.3f}, \"of_bound\": {:.3f}, \"spread\": {:.2f}}}{}\n",
        r.shape.name, r.shape.batch, r.shape.m, r.shape.k, r.shape.n, r.threads, r.kernel, r.ours,
        r.openblas, r.ratio, r.ours / (r.peak * r.threads), r.of_bound, r.spread,
        i + 1 < rows.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::string json_file;
  std::string only;
  std::string set = "networks";
  std::string threads_list = "1,2";
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--json") json_file = argv[i + 1];
    if (flag == "--set") set = argv[i + 1];
    if (flag == "--shape") only = argv[i + 1];
    if (flag == "--seconds") settings.seconds = std::atof(argv[i + 1]);
    if (flag == "--quantile") settings.quantile = std::atof(argv[i + 1]);
    if (flag == "--threads") threads_list = argv[i + 1];
  }
  const std::vector<Shape> shapes = shapes_of(set);
  if (shapes.empty()) {
    fmt::print(stderr, "there is no set '{}'\n", set);
    return 1;
  }
  const bench::FmaProbe probe;
  const double peak = probe.rate(200) * 1e-9;
  fmt::print("probe: {:.1f} GFLOP/s per thread\n", peak);
  std::vector<Row> rows;
  for (size_t at = 0; at < threads_list.size();) {
    const int threads = std::atoi(threads_list.c_str() + at);
    at = std::min(threads_list.find(',', at), threads_list.size() - 1) + 1;
    fmt::print("\n{:<18} {:>22} {:<22} {:>8} {:>8} {:>6} {:>7} {:>8}\n", "shape", "batch m k n",
               "kernel", "pyc", "openblas", "ratio", "of peak", "of bound");
    double ratios = 0.0;
    double of_peak = 0.0;
    double of_bound = 0.0;
    int count = 0;
    for (const Shape& s : shapes) {
      if (s.name.find(only) == std::string::npos) continue;
      rows.push_back(measure(s, threads, probe, settings));
      const Row& r = rows.back();
      fmt::print("{:<18} {:>22} {:<22} {:>8.1f} {:>8} {:>6} {:>6.0f}% {:>7.0f}%\n", s.name,
                 fmt::format("{} {} {} {}", s.batch, s.m, s.k, s.n), r.kernel, r.ours,
                 of_rival(r.openblas, 1), of_rival(r.ratio, 2), 100.0 * r.ours / (r.peak * threads),
                 100.0 * r.of_bound);
      std::fflush(stdout);
      ratios += kHasRival ? std::log(r.ratio) : 0.0;
      of_peak += std::log(r.ours / (r.peak * threads));
      of_bound += std::log(r.of_bound);
      ++count;
    }
    if (count > 0) {
      fmt::print(
          "{} thread(s), {} shapes, geometric means: ratio {}, of peak {:.3f}, of bound {:.3f}\n",
          threads, count, of_rival(std::exp(ratios / count), 3), std::exp(of_peak / count),
          std::exp(of_bound / count));
    }
  }
  if (json_file.empty()) return 0;
  std::FILE* file = std::fopen(json_file.c_str(), "w");
  if (file == nullptr) return 1;
  const std::string text = json(rows, peak, settings);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  return 0;
}
