#include "driver/stream_file.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "base/mapped_file.h"

namespace pyc::driver {
namespace {

constexpr size_t kAlignment = 64;
constexpr std::byte kZeros[kAlignment] = {};

size_t padding(size_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

}  // namespace

Result<std::shared_ptr<const runtime::Program>> with_streamed_in_file(
    std::shared_ptr<const runtime::Program> program, const std::string& folder) {
  PYC_TRY(check_program(*program));
  const std::vector<bool> streamed = streamed_parameters(*program);
  std::vector<std::span<const std::byte>> pieces;
  std::vector<size_t> moved;
  for (size_t p = 0; p < streamed.size(); ++p) {
    const runtime::Parameter& parameter = program->parameters[p];
    if (!streamed[p] || parameter.in_file) continue;
    const auto size = static_cast<size_t>(parameter.bytes);
    pieces.emplace_back(static_cast<const std::byte*>(parameter.data), size);
    pieces.push_back(std::span(kZeros).first(padding(size)));
    moved.push_back(p);
  }
  if (moved.empty()) return program;
  auto file = map_nameless_file(folder, pieces);
  if (!file.ok()) {
    return Status(file.status().code(),
                  fmt::format("memory_budget: the file that parameters stay in: {}; TMPDIR in the "
                              "environment names another folder",
                              file.status().message()));
  }
  const auto owner = std::make_shared<const SharedBytes>(std::move(*file));
  auto out = std::make_shared<runtime::Program>(*program);
  const std::byte* data = owner->data();
  for (const size_t p : moved) {
    runtime::Parameter& parameter = out->parameters[p];
    parameter = {owner, data, parameter.bytes, true};
    const auto size = static_cast<size_t>(parameter.bytes);
    data += size + padding(size);
  }
  return std::shared_ptr<const runtime::Program>(std::move(out));
}

}  // namespace pyc::driver
