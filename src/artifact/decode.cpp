// Files are hostile: nothing is used before it was checked, and what is made is never larger than
// what was read.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "artifact/artifact.h"
#include "artifact/byte_stream.h"
#include "artifact/format.h"
#include "base/aligned_buffer.h"
#include "base/hash_pieces.h"

namespace pyc::artifact {
namespace {

Status damaged(std::string_view what) {
  return {Code::kParseError, fmt::format("the artefact is damaged: {}", what)};
}

// Of anything a file may ask for; sums over all threads do not overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 48;

// A section's content, or a part of it.
using Bytes = std::span<const std::byte>;

struct Header {
  std::string version;
  std::array<Bytes, kSections> sections;
};

// Before anything else is believed: that it is an artefact, of a format this PyC knows, and whole.
Status check_envelope(Bytes file) {
  if (!is_artifact(file)) {
    return {Code::kParseError, "not an artefact: it does not start with a .pycm file's mark"};
  }
  const auto cut_off = [&](uint64_t expected) {
    return Status(Code::kParseError, fmt::format("the artefact is cut off: expected {} bytes, "
                                                 "found {}",
                                                 expected, file.size()));
  };
  if (file.size() < kHeaderBytes) return cut_off(kHeaderBytes);
  const auto format = ByteReader(file.subspan(kFormatAt)).number<uint32_t>();
  if (format != kFormat) {
    return {Code::kUnsupported,
            fmt::format("the artefact has format {}, this PyC reads format {}: compile the model "
                        "again",
                        format, kFormat)};
  }
  const auto size = ByteReader(file.subspan(kFileBytesAt)).number<uint64_t>();
  if (file.size() < size) return cut_off(size);
  if (file.size() > size) {
    return damaged(fmt::format("expected {} bytes, found {}", size, file.size()));
  }
  ByteReader stored(file.subspan(kHeaderDigestAt));
  Digest digest;
  digest.hi = stored.number<uint64_t>();
  digest.lo = stored.number<uint64_t>();
  if (digest != hash128(file.first(kHeaderDigestAt))) return damaged("the header's checksum");
  return {};
}

// Cuts the file into its sections and checks their digests, unless that is done.
Result<Header> read_header(Bytes file, Checksums checksums) {
  PYC_TRY(check_envelope(file));
  Header header;
  header.version = ByteReader(file.subspan(kVersionAt)).fixed(kVersionBytes);
  if (header.version != version()) {
    return Status(Code::kUnsupported,
                  fmt::format("the artefact was made by PyC {}, this is {}: compile the model "
                              "again",
                              header.version, version()));
  }
  ByteReader table(file.subspan(kTableAt));
  Bytes rest = file.subspan(kHeaderBytes);
  for (size_t s = 0; s < kSections; ++s) {
    const std::string name = table.fixed(kSectionNameBytes);
    const auto size = table.number<uint64_t>();
    Digest digest;
    digest.hi = table.number<uint64_t>();
    digest.lo = table.number<uint64_t>();
    if (name != kSectionNames[s] || size > rest.size() || size % kAlignment != 0) {
      return damaged(fmt::format("section '{}'", kSectionNames[s]));
    }
    header.sections[s] = rest.first(size);
    rest = rest.subspan(size);
    if (checksums == Checksums::kCheck && digest != hash_pieces(header.sections[s])) {
      return damaged(fmt::format("the checksum of section '{}'", kSectionNames[s]));
    }
  }
  if (!rest.empty()) return damaged("bytes after the last section");
  return header;
}

// A place in another section; nothing when it is not inside.
std::optional<Bytes> place_in(ByteReader& in, Bytes section) {
  const auto offset = in.number<uint64_t>();
  const auto size = in.number<uint64_t>();
  if (!in.ok() || offset % kAlignment != 0 || offset > section.size() ||
      size > section.size() - offset) {
    return std::nullopt;
  }
  return section.subspan(offset, size);
}

class ProgramReader {
 public:
  ProgramReader(const Header& header, const SharedBytes& file)
      : in_(header.sections[kProgram]), header_(header), file_(file) {}

  Status read(Artifact& out) {
    out.determinism = in_.text();
    out.fingerprint = in_.text();
    out.key = in_.text();
    PYC_TRY(read_memory(out));
    PYC_TRY(read_places(out.program.places));
    PYC_TRY(read_io(out.program.inputs));
    PYC_TRY(read_io(out.program.outputs));
    PYC_TRY(read_states(out.program.states));
    PYC_TRY(read_parameters(out.program.parameters));
    PYC_TRY(read_objects());
    PYC_TRY(read_steps(out.program));
    return in_.ok() ? Status() : damaged("section 'program' ends too early");
  }

 private:
  std::optional<Bytes> place(Section section) { return place_in(in_, header_.sections[section]); }

  Status read_memory(Artifact& out) {
    for (int64_t& bytes : out.memory.class_bytes) PYC_TRY(read_size(bytes));
    PYC_TRY(read_size(out.memory.peak_bytes));
    PYC_TRY(read_size(out.program.arena_bytes));
    PYC_TRY(read_size(out.program.scratch_bytes));
    out.memory.arena_bytes = out.program.arena_bytes;
    out.memory.scratch_bytes = out.program.scratch_bytes;
    return {};
  }

  Status read_size(int64_t& bytes) {
    bytes = in_.number<int64_t>();
    return bytes >= 0 && bytes <= kMaxBytes ? Status() : damaged("a size of memory");
  }

  Status read_io(std::vector<runtime::IoSpec>& list) {
    const size_t count = in_.count();
    for (size_t i = 0; i < count && in_.ok(); ++i) PYC_TRY(read_io(list.emplace_back()));
    return {};
  }

  Status read_io(runtime::IoSpec& io) {
    io.name = in_.text();
    const auto dtype = in_.number<uint8_t>();
    if (dtype >= kDTypeCount) return damaged(fmt::format("the type of '{}'", io.name));
    io.dtype = static_cast<DType>(dtype);
    const size_t rank = in_.count();
    for (size_t d = 0; d < rank && in_.ok(); ++d) io.shape.push_back(in_.number<int64_t>());
    io.bytes = in_.number<int64_t>();
    return {};
  }

  Status read_states(std::vector<runtime::StateSpec>& list) {
    const size_t count = in_.count();
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      runtime::StateSpec& state = list.emplace_back();
      PYC_TRY(read_io(state.input));
      state.output = in_.text();
      state.first_write = in_.number<int64_t>();
      if (in_.ok() && (state.input.bytes < 0 || state.input.bytes > kMaxBytes)) {
        return damaged(fmt::format("the size of state '{}'", state.input.name));
      }
    }
    return {};
  }

  Status read_parameters(std::vector<runtime::Parameter>& parameters) {
    const size_t count = in_.count();
    const auto owner = std::make_shared<const SharedBytes>(file_);
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      const std::optional<Bytes> bytes = place(kWeights);
      if (!bytes) return damaged(fmt::format("the place of parameter {}", i));
      parameters.push_back({owner, bytes->data(), static_cast<int64_t>(bytes->size())});
    }
    return {};
  }

  Status read_objects() {
    const size_t count = in_.count();
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      const std::optional<Bytes> bytes = place(kCode);
      if (!bytes) return damaged(fmt::format("the place of object {}", i));
      objects_.push_back(std::make_shared<const std::string>(
          reinterpret_cast<const char*>(bytes->data()), bytes->size()));
    }
    return {};
  }

  Status read_places(std::vector<runtime::Place>& places) {
    const size_t count = in_.count();
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      runtime::Place& place = places.emplace_back();
      place.backend = in_.text();
      place.target = in_.text();
      place.space = in_.text();
    }
    return places.empty() ? damaged("it names no place to run in") : Status();
  }

  Status read_steps(runtime::Program& program) {
    const size_t count = in_.count();
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      const auto kind = in_.number<uint8_t>();
      if (kind >= kStepKinds) return damaged(fmt::format("step {} is of kind {}", i, kind));
      runtime::Step step;
      step.again = kind == kAgainStep;
      step.name = in_.text();
      step.place = in_.number<uint32_t>();
      step.bytes_moved = in_.number<int64_t>();
      step.flops = in_.number<double>();
      if (step.place >= program.places.size()) {
        return damaged(
            fmt::format("step {} runs at place {} of {}", i, step.place, program.places.size()));
      }
      if (kind == kCopyStep) {
        PYC_TRY(read_copy(step.work.emplace<runtime::Copy>(), i));
      } else {
        PYC_TRY(read_kernel(step.kernel(), i));
      }
      program.steps.push_back(std::move(step));
    }
    return {};
  }

  Status read_fault(runtime::Kernel& kernel, size_t step) {
    Fault fault;
    fault.message = in_.text();
    fault.buffer = in_.number<int32_t>();
    fault.value = in_.text();
    const auto dtype = in_.number<uint8_t>();
    const size_t rank = in_.count();
    int64_t elements = 1;
    bool sound = dtype < kDTypeCount && fault.buffer < static_cast<int64_t>(kernel.buffers.size());
    for (size_t d = 0; d < rank && in_.ok(); ++d) {
      const auto dim = in_.number<int64_t>();
      sound = sound && dim >= 0 && dim <= kMaxBytes &&
              !__builtin_mul_overflow(elements, dim, &elements);
      fault.shape.push_back(dim);
    }
    Accepted& a = fault.accepted;
    for (int64_t* n : {&a.first, &a.last, &a.also, &a.begin, &a.step}) *n = in_.number<int64_t>();
    if (!sound || elements > kMaxBytes || a.begin < 0 || a.step < 1 || a.step > kMaxBytes) {
      return damaged(fmt::format("a fault of step {}", step));
    }
    fault.dtype = static_cast<DType>(dtype);
    kernel.faults.push_back(std::move(fault));
    return {};
  }

  Status read_kernel(runtime::Kernel& kernel, size_t step) {
    kernel.symbol = in_.text();
    const auto object = in_.number<uint32_t>();
    if (object >= objects_.size()) return damaged(fmt::format("the object of step {}", step));
    kernel.object = objects_[object];
    kernel.launch = in_.text();
    PYC_TRY(read_buffers(kernel, step));
    const size_t faults = in_.count();
    for (size_t f = 0; f < faults && in_.ok(); ++f) PYC_TRY(read_fault(kernel, step));
    return {};
  }

  Status read_buffers(runtime::Kernel& kernel, size_t step) {
    const size_t count = in_.count();
    for (size_t b = 0; b < count && in_.ok(); ++b) {
      PYC_TRY(read_ref(kernel.buffers.emplace_back(), b, step));
    }
    return {};
  }

  Status read_ref(runtime::BufferRef& ref, size_t buffer, size_t step) {
    const auto where = in_.number<uint8_t>();
    if (where > static_cast<uint8_t>(runtime::Where::kShelf)) {
      return damaged(fmt::format("buffer {} of step {}", buffer, step));
    }
    ref.where = static_cast<runtime::Where>(where);
    ref.index = in_.number<uint32_t>();
    ref.offset = in_.number<int64_t>();
    return {};
  }

  Status read_copy(runtime::Copy& copy, size_t step) {
    for (size_t b = 0; b < copy.buffers.size(); ++b) PYC_TRY(read_ref(copy.buffers[b], b, step));
    return read_size(copy.bytes);
  }

  ByteReader in_;
  const Header& header_;
  const SharedBytes& file_;
  std::vector<std::shared_ptr<const std::string>> objects_;
};

Result<Artifact> decode_program(const SharedBytes& file, const Header& header);

// The open graph and its programs, which are artefacts themselves.
class OpenReader {
 public:
  OpenReader(const Header& header, const SharedBytes& file)
      : in_(header.sections[kOpen]), header_(header), file_(file) {}

  Status read(Artifact& out) {
    if (header_.sections[kOpen].empty()) return {};
    out.graph = in_.text();
    if (out.graph.empty()) return damaged("the open graph has no text");
    const size_t options = in_.count();
    for (size_t i = 0; i < options && in_.ok(); ++i) {
      std::string name = in_.text();
      out.options.emplace_back(std::move(name), in_.text());
    }
    const size_t stored = in_.count();
    for (size_t i = 0; i < stored && in_.ok(); ++i) {
      const std::optional<Bytes> bytes = place_in(in_, header_.sections[kWeights]);
      if (!bytes) return damaged(fmt::format("the place of stored tensor {}", i));
      out.stored.push_back(share(*bytes));
    }
    const size_t parts = in_.count();
    for (size_t i = 0; i < parts && in_.ok(); ++i) {
      const std::optional<Bytes> bytes = place_in(in_, header_.sections[kCode]);
      if (!bytes) return damaged(fmt::format("the place of program {}", i));
      auto part = read_part(share(*bytes));
      if (!part.ok()) {
        return std::move(part).status().with_context(fmt::format("program {}", i));
      }
      out.parts.push_back(std::move(*part));
    }
    return in_.ok() ? Status() : damaged("section 'open' ends too early");
  }

 private:
  static Result<Artifact> read_part(const SharedBytes& bytes) {
    PYC_ASSIGN(const Header header, read_header(bytes, Checksums::kCheck));
    if (!header.sections[kOpen].empty()) return damaged("an open model inside of another");
    return decode_program(bytes, header);
  }
  SharedBytes share(Bytes bytes) const {
    return {std::make_shared<const SharedBytes>(file_), bytes};
  }

  ByteReader in_;
  const Header& header_;
  const SharedBytes& file_;
};

Status read_decisions(Bytes section, DecisionLog& log) {
  ByteReader in(section);
  const size_t count = in.count();
  for (size_t i = 0; i < count && in.ok(); ++i) {
    Decision d;
    for (std::string* text : {&d.what, &d.chosen, &d.reason, &d.detail}) *text = in.text();
    const size_t alternatives = in.count();
    for (size_t a = 0; a < alternatives && in.ok(); ++a) {
      Alternative row;
      row.name = in.text();
      row.cost_ns = in.number<double>();
      row.rejected = in.text();
      row.measured_ns = in.number<double>();
      d.alternatives.push_back(std::move(row));
    }
    log.push_back(std::move(d));
  }
  return in.ok() ? Status() : damaged("section 'decision' ends too early");
}

// The same bytes where weights may be used in place.
Result<SharedBytes> aligned(SharedBytes file) {
  if (reinterpret_cast<uintptr_t>(file.data()) % kAlignment == 0) return file;
  PYC_ASSIGN(AlignedBuffer made, AlignedBuffer::create(file.size()));
  const auto copy = std::make_shared<AlignedBuffer>(std::move(made));
  std::copy(file.begin(), file.end(), copy->data());
  return SharedBytes(copy, copy->bytes());
}

Result<Artifact> decode_program(const SharedBytes& file, const Header& header) {
  Artifact out;
  out.version = header.version;
  PYC_TRY(ProgramReader(header, file).read(out));
  PYC_TRY(read_decisions(header.sections[kDecisions], out.log));
  return out;
}

}  // namespace

bool is_artifact(std::span<const std::byte> bytes) {
  return bytes.size() >= kMark.size() && std::memcmp(bytes.data(), kMark.data(), kMark.size()) == 0;
}

Result<Artifact> decode(SharedBytes given, Checksums checksums) {
  PYC_ASSIGN(const SharedBytes file, aligned(std::move(given)));
  PYC_ASSIGN(const Header header, read_header(file, checksums));
  PYC_ASSIGN(Artifact out, decode_program(file, header));
  PYC_TRY(OpenReader(header, file).read(out));
  return out;
}

}  // namespace pyc::artifact
