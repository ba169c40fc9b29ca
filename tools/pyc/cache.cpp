#include <fmt/format.h>

#include <chrono>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

class Cache final : public Command {
 public:
  std::string name() const override { return "cache"; }
  std::string summary() const override { return "List, check or clear compiled models on disk"; }
  std::string examples() const override {
    return "  pyc run tests/models/mlp.ir --cache-dir cache\n"
           "  pyc cache list --cache-dir cache\n"
           "  pyc cache stats --cache-dir cache\n"
           "  pyc cache verify --cache-dir cache\n"
           "  pyc cache clear --cache-dir cache\n";
  }
  void declare(Options& options) override {
    options.positional("what", what_, "list, stats, verify or clear");
    options.text("--cache-dir", folder_, "The cache's folder; default: what PYC_CACHE_DIR names");
  }

  int run() override {
    if (what_ == "clear") return clear();
    if (what_ == "list" || what_ == "stats" || what_ == "verify") return show();
    throw Error(PYC_STATUS_UNKNOWN_OPTION,
                fmt::format("cache: expected list, stats, verify or clear, found '{}'{}", what_,
                            did_you_mean(what_, {"list", "stats", "verify", "clear"})),
                "");
  }

 private:
  int clear() const {
    const int64_t removed = CacheFiles::clear(folder_);
    json ? print(Json{{"removed", removed}}) : say("{} entries removed\n", removed);
    return kExitOk;
  }

  // The entries, but for stats, and what they are together.
  int show() const {
    const bool verify = what_ == "verify";
    const bool each = what_ != "stats";
    const CacheFiles files(folder_, verify);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    Json rows = Json::array();
    int64_t bytes = 0;
    size_t unusable = 0;
    for (size_t i = 0; i < files.size(); ++i) {
      const pyc_cache_file file = files[i];
      const double age_s = static_cast<double>(now_ns - file.used_ns) / 1e9;
      bytes += file.bytes;
      unusable += *file.problem == '\0' ? 0 : 1;
      if (!each) continue;
      rows.push_back({{"file", file.name},
                      {"bytes", file.bytes},
                      {"unused_s", age_s},
                      {"problem", file.problem}});
      if (!json) {
        say("{}  {}, unused for {:.0f} s{}{}\n", file.name, bytes_text(file.bytes), age_s,
            *file.problem == '\0' ? "" : ": ", file.problem);
      }
    }
    if (json && !each) {
      print(Json{{"count", files.size()}, {"bytes", bytes}});
    } else if (json) {
      print(Json{{"entries", std::move(rows)}, {"bytes", bytes}, {"unusable", unusable}});
    } else {
      say("{} entries, {}", files.size(), bytes_text(bytes));
      say("{}\n", verify ? fmt::format(", {} unusable", unusable) : "");
    }
    return unusable == 0 ? kExitOk : kExitDifferent;
  }

  std::string what_;
  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> make_cache() { return std::make_unique<Cache>(); }

}  // namespace pyc::tool
