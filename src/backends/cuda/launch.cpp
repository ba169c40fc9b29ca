#include "backends/cuda/launch.h"

#include <fmt/format.h>

#include <cstring>

namespace pyc::cuda {
namespace {

constexpr uint32_t kMagic =
    0x33554350;  // "PCU3": its kernels wait for earlier launches, and have maps
constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostShared = 227U << 10;
constexpr uint32_t kWritten = 1;
constexpr uint32_t kUnaligned = 2;
constexpr uint32_t kMostMaps = 8;

struct Head {
  uint32_t magic = kMagic;
  uint32_t blocks = 0;
  uint32_t threads = 0;
  uint32_t shared_bytes = 0;
  int64_t workspace_bytes = 0;
  uint32_t buffers = 0;
  uint32_t maps = 0;
};
struct Row {
  int64_t bytes = 0;
  uint32_t flags = 0;
  uint32_t zero = 0;
};

Status wrong(std::string message) {
  return {Code::kParseError, "its launch " + std::move(message)};
}

// Bytes from where the reference points to the end of what it points into.
int64_t reach(const runtime::Program& program, const runtime::BufferRef& ref) {
  switch (ref.where) {
    case runtime::Where::kInput:
      return program.inputs[ref.index].bytes - ref.offset;
    case runtime::Where::kOutput:
      return program.outputs[ref.index].bytes - ref.offset;
    case runtime::Where::kParameter:
      return program.parameters[ref.index].bytes - ref.offset;
    case runtime::Where::kArena:
      return program.arena_bytes - ref.offset;
    case runtime::Where::kShelf:  // only copies have it
    case runtime::Where::kState:  // the loader takes no program that has one
    case runtime::Where::kScratch:
      break;
  }
  return -1;
}

// Kernels read boxes of a map without a look at the buffer's end.
Status check_map(const TensorMap& map, const Launch& launch) {
  const bool is_one = map.buffer < launch.buffers.size() && map.columns > 0 && map.rows > 0 &&
                      map.box_rows > 0 && map.box_rows <= kMostBoxRows && map.row_bytes > 0 &&
                      map.row_bytes < kMostMapBytes && map.row_bytes % kBufferAlignment == 0 &&
                      map.offset_bytes >= 0 && map.offset_bytes % kBufferAlignment == 0;
  if (!is_one) return wrong("has a map that no device takes");
  const Launch::Use& use = launch.buffers[map.buffer];
  // Neither of the numbers is over 2^40 · 2^32.
  const auto reached = static_cast<long double>(map.offset_bytes) +
                       static_cast<long double>(map.row_bytes) * (map.rows - 1.0L) +
                       static_cast<long double>(map.columns) * kMapElement;
  if (!use.aligned || reached > static_cast<long double>(use.bytes)) {
    return wrong("has a map that reaches beyond its buffer");
  }
  return {};
}

bool may_write(runtime::Where where) {
  return where == runtime::Where::kOutput || where == runtime::Where::kArena;
}

Status check_use(const Launch::Use& use, const runtime::Program& program,
                 const runtime::BufferRef& ref) {
  if (reach(program, ref) < use.bytes) {
    return wrong(fmt::format("needs {} bytes, {} are there", use.bytes, reach(program, ref)));
  }
  if (use.written && !may_write(ref.where)) return wrong("writes what is only read");
  if (use.aligned && ref.offset % kBufferAlignment != 0) {
    return wrong(
        fmt::format("needs a multiple of {} bytes, found {}", kBufferAlignment, ref.offset));
  }
  return {};
}

}  // namespace

std::string encode(const Launch& launch) {
  const Head head{.blocks = launch.shape.blocks,
                  .threads = launch.shape.threads,
                  .shared_bytes = launch.shape.shared_bytes,
                  .workspace_bytes = launch.workspace_bytes,
                  .buffers = static_cast<uint32_t>(launch.buffers.size()),
                  .maps = static_cast<uint32_t>(launch.maps.size())};
  std::string out(reinterpret_cast<const char*>(&head), sizeof(head));
  for (const Launch::Use& use : launch.buffers) {
    const Row row{.bytes = use.bytes,
                  .flags = (use.written ? kWritten : 0) | (use.aligned ? 0 : kUnaligned)};
    out.append(reinterpret_cast<const char*>(&row), sizeof(row));
  }
  for (const TensorMap& map : launch.maps) {
    out.append(reinterpret_cast<const char*>(&map), sizeof(map));
  }
  return out;
}

Result<Launch> decode_launch(std::string_view bytes) {
  Head head;
  if (bytes.size() < sizeof(head)) return wrong(fmt::format("has {} bytes", bytes.size()));
  std::memcpy(&head, bytes.data(), sizeof(head));
  bytes.remove_prefix(sizeof(head));
  if (head.magic != kMagic) return wrong("is not one of this backend");
  if (head.buffers > ParameterAddresses::kMost - kOwnParameters - kMostMaps ||
      head.maps > kMostMaps ||
      bytes.size() != head.buffers * sizeof(Row) + head.maps * sizeof(TensorMap)) {
    return wrong(fmt::format("has {} bytes for {} buffers", bytes.size(), head.buffers));
  }
  const bool starts = head.blocks > 0;
  if (head.blocks > INT32_MAX || head.threads > kMostThreads || (starts && head.threads == 0) ||
      head.shared_bytes > kMostShared || head.workspace_bytes < 0) {
    return wrong(fmt::format("has {} blocks of {} threads, {} bytes shared, {} of workspace",
                             head.blocks, head.threads, head.shared_bytes, head.workspace_bytes));
  }
  Launch out{.shape = {head.blocks, head.threads, head.shared_bytes, head.maps},
             .workspace_bytes = head.workspace_bytes,
             .buffers = {}};
  for (uint64_t b = 0; b < head.buffers; ++b) {
    Row row;
    std::memcpy(&row, bytes.data() + b * sizeof(row), sizeof(row));
    if (row.bytes < 0 || row.flags > (kWritten | kUnaligned) || row.zero != 0) {
      return wrong(fmt::format("has a buffer of {} bytes, flags {}", row.bytes, row.flags));
    }
    out.buffers.push_back({row.bytes, (row.flags & kWritten) != 0, (row.flags & kUnaligned) == 0});
  }
  bytes.remove_prefix(head.buffers * sizeof(Row));
  for (uint32_t m = 0; m < head.maps; ++m) {
    TensorMap map;
    std::memcpy(&map, bytes.data() + m * sizeof(map), sizeof(map));
    PYC_TRY(check_map(map, out));
    out.maps.push_back(map);
  }
  return out;
}

Status check_launch(const Launch& launch, const runtime::Program& program,
                    const runtime::Kernel& kernel) {
  const bool works = launch.workspace_bytes > 0;
  const size_t expected = launch.buffers.size() + (works ? 1 : 0);
  if (kernel.buffers.size() != expected) {
    return wrong(fmt::format("has {} buffers, the step {}", expected, kernel.buffers.size()));
  }
  for (size_t b = 0; b < launch.buffers.size(); ++b) {
    PYC_TRY(check_use(launch.buffers[b], program, kernel.buffers[b])
                .with_context(fmt::format("buffer {}", b)));
  }
  if (!works) return {};
  return check_use({launch.workspace_bytes, true, true}, program, kernel.buffers.back())
      .with_context("workspace");
}

}  // namespace pyc::cuda
