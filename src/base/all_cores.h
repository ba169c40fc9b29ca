#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cores.h"
#include "base/exceptions.h"
#include "base/status.h"

namespace pyc {

// Calls work(i) for all i below `count`, on all cores; which thread takes which never shows in the
// result. Gives the first refusal in the order of i.
template <class Work>
Status on_all_cores(size_t count, const Work& work) {
  std::vector<Status> statuses(count);
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        statuses[i] = work(i);
      } catch (...) {  // may be on a helper thread: nothing may leave it
        statuses[i] = status_of_exception();
      }
    }
  };
  const auto cores = static_cast<size_t>(core_count());
  std::vector<std::jthread> helpers;
  for (size_t t = 1; t < std::min(cores, count); ++t) {
    try {
      helpers.emplace_back(take);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: this one does the rest
    }
  }
  take();
  helpers.clear();
  for (Status& status : statuses) {
    if (!status.ok()) return std::move(status);
  }
  return {};
}

}  // namespace pyc
