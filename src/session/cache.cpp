#include "session/cache.h"

#include <fmt/format.h>

#include <list>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/numerics.h"
#include "driver/tuning.h"

namespace pyc::session {
namespace {

struct Cache {
  std::mutex mutex;
  std::list<std::pair<std::string, std::shared_ptr<const driver::Compiled>>>
      entries;  // newest first
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t limit = kCacheBytes;
};

Cache& cache() {
  static Cache instance;
  return instance;
}

// Counts each piece of memory once.
class PieceCount {
 public:
  void add_code(const runtime::Program& program) {
    for (const runtime::Step& step : program.steps) {
      if (step.copy() != nullptr) continue;
      const std::string* object = step.kernel().object.get();
      if (object != nullptr) add(object->data(), static_cast<int64_t>(object->size()));
    }
  }
  void add_parameters(const runtime::Program& program) {
    for (const runtime::Parameter& p : program.parameters) {
      if (!p.in_file) add(p.data, p.bytes);
    }
  }
  void add(const driver::Compiled& compiled) {
    add_code(*compiled.program);
    add_parameters(*compiled.program);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void add(const void* data, int64_t bytes) {
    if (seen_.insert(data).second) bytes_ += bytes;
  }

  std::set<const void*> seen_;
  int64_t bytes_ = 0;
};

// Under the lock.
void drop_what_is_too_much(Cache& c) {
  if (c.entries.size() > kCacheEntries) c.entries.pop_back();
  PieceCount count;
  for (auto it = c.entries.begin(); it != c.entries.end(); ++it) {
    count.add(*it->second);
    if (count.bytes() <= c.limit) continue;
    c.entries.erase(it, c.entries.end());
    return;
  }
}

}  // namespace

std::string program_key(driver::CompileOptions options) {
  options.threads = driver::thread_count(options);
  std::string key = fmt::format("numerics={} {}", kNumericsVersion, driver::options_key(options));
  if (options.tuning != nullptr) {
    // Any group of the table may be one of the program's.
    const std::string table = options.tuning->print();
    key += fmt::format("tuning={} ", hash128(std::as_bytes(std::span(table))).hex());
  }
  return key;
}

std::string cache_key(const ir::Graph& graph, const driver::CompileOptions& options) {
  return program_key(options) + ir::fingerprint_key(graph);
}

std::shared_ptr<const driver::Compiled> cache_find(const std::string& key) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  for (auto it = c.entries.begin(); it != c.entries.end(); ++it) {
    if (it->first != key) continue;
    c.entries.splice(c.entries.begin(), c.entries, it);
    ++c.hits;
    return it->second;
  }
  ++c.misses;
  return nullptr;
}

void cache_insert(const std::string& key, std::shared_ptr<const driver::Compiled> compiled) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.entries.emplace_front(key, std::move(compiled));
  drop_what_is_too_much(c);
}

int64_t set_cache_limit(int64_t bytes) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  const int64_t before = std::exchange(c.limit, bytes);
  drop_what_is_too_much(c);
  return before;
}

void cache_clear() {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  c.entries.clear();
}

CacheStats cache_stats() {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  return {static_cast<int64_t>(c.entries.size()), c.hits, c.misses};
}

int64_t cache_bytes() {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  PieceCount count;
  for (const auto& [key, compiled] : c.entries) count.add(*compiled);
  return count.bytes();
}

int64_t code_bytes(const runtime::Program& program) {
  PieceCount count;
  count.add_code(program);
  return count.bytes();
}

Result<std::shared_ptr<ThreadPool>> shared_pool(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<ThreadPool>> pools;
  const std::lock_guard lock(mutex);
  if (auto pool = pools[threads].lock()) return pool;
  PYC_ASSIGN(std::unique_ptr<ThreadPool> made, ThreadPool::create(threads));
  std::shared_ptr<ThreadPool> pool = std::move(made);
  pools[threads] = pool;
  return pool;
}

}  // namespace pyc::session
