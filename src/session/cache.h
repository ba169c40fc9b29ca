#pragma once

// The in-memory compile cache: bounded, shared by all threads, keyed by the whole graph and every
// option that reaches the program. Constants enter the key by their 128-bit hash.

#include <memory>
#include <string>

#include "driver/compile.h"
#include "runtime/model.h"

namespace pyc::session {

// Every option that reaches the program, as one line, with the threads it runs on.
std::string program_key(driver::CompileOptions options);
std::string cache_key(const ir::Graph& graph, const driver::CompileOptions& options);
// The entry whose key equals `key` byte for byte, or null.
std::shared_ptr<const driver::Compiled> cache_find(const std::string& key);
// Keeps it; the entries least recently found go while there are more than kCacheEntries, or hold
// more bytes (cache_bytes) than the limit.
void cache_insert(const std::string& key, std::shared_ptr<const driver::Compiled> compiled);
void cache_clear();
struct CacheStats {
  int64_t entries = 0;
  int64_t hits = 0;  // of cache_find, since the process started
  int64_t misses = 0;
};
CacheStats cache_stats();
// Bytes of the code and the parameters of all programs that are kept, each object and parameter
// once, however many programs share it.
int64_t cache_bytes();
// Bytes of a program's code, counted so.
int64_t code_bytes(const runtime::Program& program);
inline constexpr size_t kCacheEntries = 32;
inline constexpr int64_t kCacheBytes = int64_t{2} << 30;
// Sets the limit in bytes, kCacheBytes at first; returns what it was.
int64_t set_cache_limit(int64_t bytes);

// One pool per thread count, shared by all models while any of them lives.
Result<std::shared_ptr<ThreadPool>> shared_pool(int threads);

}  // namespace pyc::session
