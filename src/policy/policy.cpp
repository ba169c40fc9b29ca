#include "policy/policy.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "policy/child.h"

namespace pyc::policy {
namespace {

constexpr const char* kEntry = "pyc_policy_entry";
constexpr size_t kLongestName = 64;

// The library while it is open.
class Library {
 public:
  static Result<Library> open(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      return Status(Code::kUnsupported, reason == nullptr ? "it cannot be loaded" : reason);
    }
    Library library(handle);
    const auto entry = reinterpret_cast<pyc_policy_entry_function>(dlsym(handle, kEntry));
    if (entry == nullptr) {
      return Status(Code::kInvalidArgument, fmt::format("it has no function {}", kEntry));
    }
    library.policy_ = entry();
    PYC_TRY(check(library.policy_));
    return library;
  }
  Library(Library&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), policy_(other.policy_) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  const pyc_policy& policy() const { return *policy_; }

 private:
  explicit Library(void* handle) : handle_(handle) {}

  static Status check(const pyc_policy* policy) {
    if (policy == nullptr) return {Code::kInvalidArgument, "it gave no policy"};
    if (policy->version != PYC_POLICY_VERSION || policy->struct_size < sizeof(pyc_policy)) {
      return {Code::kInvalidArgument,
              fmt::format("expected version {} with {} bytes, found version {} with {}",
                          PYC_POLICY_VERSION, sizeof(pyc_policy), policy->version,
                          policy->struct_size)};
    }
    const size_t length = policy->name == nullptr ? 0 : strnlen(policy->name, kLongestName + 1);
    const bool plain = std::all_of(policy->name, policy->name + length,
                                   [](char c) { return c >= ' ' && c <= '~'; });
    if (length == 0 || length > kLongestName || !plain) {
      return {Code::kInvalidArgument,
              fmt::format("expected a name of 1 to {} characters from ' ' to '~'", kLongestName)};
    }
    return {};
  }

  void* handle_;
  const pyc_policy* policy_ = nullptr;
};

// What a child says: a code, then a message or numbers.
std::string encode(const Result<std::vector<int64_t>>& answer) {
  std::string out(1, static_cast<char>(answer.status().code()));
  if (!answer.ok()) return out + answer.status().message();
  out.resize(1 + answer->size() * sizeof(int64_t));
  if (!answer->empty()) std::memcpy(out.data() + 1, answer->data(), out.size() - 1);
  return out;
}

Result<std::vector<int64_t>> decode(const std::string& text) {
  const int code = text.empty() ? -1 : static_cast<unsigned char>(text[0]);
  if (code == static_cast<int>(Code::kInvalidArgument) ||
      code == static_cast<int>(Code::kUnsupported)) {
    return Status(static_cast<Code>(code), text.substr(1));
  }
  if (code != 0 || (text.size() - 1) % sizeof(int64_t) != 0) {
    return Status(Code::kInvalidArgument, "its process gave no answer");
  }
  std::vector<int64_t> numbers((text.size() - 1) / sizeof(int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), text.data() + 1, text.size() - 1);
  return numbers;
}

Result<std::vector<int64_t>> ask_here(const std::string& path, const auto& question) {
  PYC_ASSIGN(const Library library, Library::open(path));
  return question(library.policy());
}

}  // namespace

Result<std::vector<int64_t>> Policy::ask(const Question& question) const {
  auto answer = [&]() -> Result<std::vector<int64_t>> {
    if (!isolated_) return ask_here(path_, question);
    const auto text = run_in_child(kLimitMs, [&] { return encode(ask_here(path_, question)); });
    if (!text.ok()) return text.status();
    return decode(*text);
  }();
  if (answer.ok()) return answer;
  return Status(answer.status()).with_context(fmt::format("policy '{}'", path_));
}

Result<Policy> Policy::load(std::string path, bool isolated) {
  Policy policy(std::move(path), isolated);
  PYC_ASSIGN(const std::vector<int64_t> name, policy.ask([](const pyc_policy& p) {
    const std::string_view text = p.name;
    return std::vector<int64_t>(text.begin(), text.end());
  }));
  for (const int64_t c : name) policy.name_ += static_cast<char>(c);
  return policy;
}

Result<std::vector<int64_t>> Policy::keep_apart(std::span<const ValueFacts> values) const {
  return ask([&](const pyc_policy& p) {
    std::vector<int64_t> out;
    if (p.keep_apart == nullptr) return out;
    for (const ValueFacts& v : values) {
      const pyc_policy_value value{v.name.c_str(), v.op.c_str(), v.bytes, v.readers};
      out.push_back(p.keep_apart(p.state, &value));
    }
    return out;
  });
}

Result<std::vector<int64_t>> Policy::choose_kernels(std::span<const GroupFacts> groups) const {
  return ask([&](const pyc_policy& p) {
    std::vector<int64_t> out;
    if (p.choose_kernel == nullptr) return out;
    for (const GroupFacts& group : groups) {
      std::vector<pyc_policy_candidate> candidates;
      for (const CandidateFacts& c : group.candidates) {
        candidates.push_back({c.name.c_str(), c.rejected.c_str(), c.cost_ns});
      }
      out.push_back(
          p.choose_kernel(p.state, group.name.c_str(), candidates.data(), candidates.size()));
    }
    return out;
  });
}

Result<std::vector<int64_t>> Policy::order_steps(std::span<const StepFacts> steps) const {
  return ask([&](const pyc_policy& p) {
    std::vector<pyc_policy_step> shown;
    for (const StepFacts& s : steps) {
      shown.push_back(
          {s.group.c_str(), s.waits_for.data(), s.waits_for.size(), s.written_bytes, s.cost_ns});
    }
    std::vector<uint32_t> order(steps.size());
    const bool says = p.order_steps != nullptr &&
                      p.order_steps(p.state, shown.data(), shown.size(), order.data()) != 0;
    return says ? std::vector<int64_t>(order.begin(), order.end()) : std::vector<int64_t>();
  });
}

Result<int64_t> Policy::memory_budget(int64_t asked) const {
  PYC_ASSIGN(const std::vector<int64_t> answer, ask([&](const pyc_policy& p) {
               const int64_t bytes =
                   p.memory_budget == nullptr ? 0 : p.memory_budget(p.state, asked);
               return std::vector<int64_t>{bytes};
             }));
  return answer.size() == 1 ? answer[0] : 0;
}

}  // namespace pyc::policy
