#include <fmt/format.h>

#include <map>
#include <utility>

#include "artifact/artifact.h"
#include "artifact/byte_stream.h"
#include "artifact/format.h"
#include "base/hash_pieces.h"
#include "base/numerics.h"

namespace pyc::artifact {
namespace {

using Objects = std::map<const std::string*, uint32_t>;  // for lookups; its order is an address's

// Pieces of one section, with the places of what is in it.
class Blob {
 public:
  // Where it begins; the next one begins aligned.
  uint64_t add(SharedBytes bytes) {
    const uint64_t at = size_;
    size_ += bytes.size();
    if (!bytes.empty()) pieces_.push_back(std::move(bytes));
    pad();
    return at;
  }
  // A whole file, whose size is a multiple of the alignment.
  uint64_t add_file(std::vector<SharedBytes> pieces) {
    const uint64_t at = size_;
    for (SharedBytes& piece : pieces) {
      size_ += piece.size();
      pieces_.push_back(std::move(piece));
    }
    pad();
    return at;
  }
  uint64_t size() const { return size_; }
  std::vector<SharedBytes>& pieces() { return pieces_; }
  Digest digest() const {
    const std::vector<std::span<const std::byte>> parts(pieces_.begin(), pieces_.end());
    return hash_pieces(parts);
  }

 private:
  void pad() {
    const size_t zeros = padding(size_);
    if (zeros > 0) pieces_.emplace_back(std::vector<std::byte>(zeros));
    size_ += zeros;
  }

  std::vector<SharedBytes> pieces_;
  uint64_t size_ = 0;
};

void write_io(ByteWriter& out, const runtime::IoSpec& io) {
  out.text(io.name);
  out.number(static_cast<uint8_t>(io.dtype));
  out.number<uint64_t>(io.shape.size());
  for (const int64_t dim : io.shape) out.number(dim);
  out.number(io.bytes);
}

void write_io(ByteWriter& out, const std::vector<runtime::IoSpec>& list) {
  out.number<uint64_t>(list.size());
  for (const runtime::IoSpec& io : list) write_io(out, io);
}

void write_states(ByteWriter& out, const std::vector<runtime::StateSpec>& list) {
  out.number<uint64_t>(list.size());
  for (const runtime::StateSpec& state : list) {
    write_io(out, state.input);
    out.text(state.output);
    out.number(state.first_write);
  }
}

void write_ref(ByteWriter& out, const runtime::BufferRef& ref) {
  out.number(static_cast<uint8_t>(ref.where));
  out.number(ref.index);
  out.number(ref.offset);
}

void write_fault(ByteWriter& out, const Fault& fault) {
  out.text(fault.message);
  out.number(fault.buffer);
  out.text(fault.value);
  out.number(static_cast<uint8_t>(fault.dtype));
  out.number<uint64_t>(fault.shape.size());
  for (const int64_t dim : fault.shape) out.number(dim);
  const Accepted& a = fault.accepted;
  for (const int64_t n : {a.first, a.last, a.also, a.begin, a.step}) out.number(n);
}

void write_places(ByteWriter& out, const std::vector<runtime::Place>& places) {
  out.number<uint64_t>(places.size());
  for (const runtime::Place& place : places) {
    out.text(place.backend);
    out.text(place.target);
    out.text(place.space);
  }
}

void write_kernel(ByteWriter& out, const runtime::Kernel& kernel, const Objects& objects) {
  out.text(kernel.symbol);
  out.number(objects.at(kernel.object.get()));
  out.text(kernel.launch);
  out.number<uint64_t>(kernel.buffers.size());
  for (const runtime::BufferRef& ref : kernel.buffers) write_ref(out, ref);
  out.number<uint64_t>(kernel.faults.size());
  for (const Fault& fault : kernel.faults) write_fault(out, fault);
}

void write_step(ByteWriter& out, const runtime::Step& step, const Objects& objects) {
  const runtime::Copy* copy = step.copy();
  out.number<uint8_t>(copy != nullptr ? kCopyStep : step.again ? kAgainStep : kKernelStep);
  out.text(step.name);
  out.number(step.place);
  out.number(step.bytes_moved);
  out.number(step.flops);
  if (copy == nullptr) return write_kernel(out, step.kernel(), objects);
  for (const runtime::BufferRef& ref : copy->buffers) write_ref(out, ref);
  out.number(copy->bytes);
}

void write_memory(ByteWriter& out, const runtime::MemoryReport& memory) {
  for (const int64_t bytes : memory.class_bytes) out.number(bytes);
  out.number(memory.peak_bytes);
}

struct Sections {
  std::array<Blob, kSections> blobs;

  void add_decisions(const DecisionLog& log) {
    ByteWriter out;
    out.number<uint64_t>(log.size());
    for (const Decision& d : log) {
      for (const std::string* text : {&d.what, &d.chosen, &d.reason, &d.detail}) out.text(*text);
      out.number<uint64_t>(d.alternatives.size());
      for (const Alternative& a : d.alternatives) {
        out.text(a.name);
        out.number(a.cost_ns);
        out.text(a.rejected);
        out.number(a.measured_ns);
      }
    }
    blobs[kDecisions].add(out.take());
  }

  // Writes where each object is, and puts it there; one that several steps share goes in once.
  Objects add_objects(ByteWriter& out, const std::vector<runtime::Step>& steps) {
    Objects known;
    ByteWriter table;
    for (const runtime::Step& step : steps) {
      if (step.copy() != nullptr) continue;
      const auto index = static_cast<uint32_t>(known.size());
      const std::shared_ptr<const std::string>& object = step.kernel().object;
      if (!known.emplace(object.get(), index).second) continue;
      const auto bytes = std::as_bytes(std::span(*object));
      table.number(blobs[kCode].add({object, bytes}));
      table.number<uint64_t>(bytes.size());
    }
    out.number<uint64_t>(known.size());
    out.raw({reinterpret_cast<const char*>(table.bytes().data()), table.size()});
    return known;
  }

  void add_parameters(ByteWriter& out, const std::vector<runtime::Parameter>& parameters) {
    out.number<uint64_t>(parameters.size());
    for (const runtime::Parameter& p : parameters) {
      const auto size = static_cast<size_t>(p.bytes);
      out.number(blobs[kWeights].add({p.owner, {static_cast<const std::byte*>(p.data), size}}));
      out.number<uint64_t>(size);
    }
  }

  void add_program(const Artifact& artifact) {
    const runtime::Program& program = artifact.program;
    ByteWriter out;
    out.text(artifact.determinism);
    out.text(artifact.fingerprint);
    out.text(artifact.key);
    write_memory(out, artifact.memory);
    out.number(program.arena_bytes);
    out.number(program.scratch_bytes);
    write_places(out, program.places);
    write_io(out, program.inputs);
    write_io(out, program.outputs);
    write_states(out, program.states);
    add_parameters(out, program.parameters);
    const Objects objects = add_objects(out, program.steps);
    out.number<uint64_t>(program.steps.size());
    for (const runtime::Step& step : program.steps) write_step(out, step, objects);
    blobs[kProgram].add(out.take());
  }
};

Status add_open(const Artifact& artifact, Sections& sections) {
  if (!artifact.is_open()) return {};
  ByteWriter out;
  out.text(artifact.graph);
  out.number<uint64_t>(artifact.options.size());
  for (const auto& [name, value] : artifact.options) {
    out.text(name);
    out.text(value);
  }
  out.number<uint64_t>(artifact.stored.size());
  for (const SharedBytes& bytes : artifact.stored) {
    out.number(sections.blobs[kWeights].add(bytes));
    out.number<uint64_t>(bytes.size());
  }
  out.number<uint64_t>(artifact.parts.size());
  for (const Artifact& part : artifact.parts) {
    PYC_CHECK(!part.is_open(), "a part that is one program");
    PYC_ASSIGN(std::vector<SharedBytes> file, encode(part));
    uint64_t size = 0;
    for (const SharedBytes& piece : file) size += piece.size();
    out.number(sections.blobs[kCode].add_file(std::move(file)));
    out.number(size);
  }
  sections.blobs[kOpen].add(out.take());
  return {};
}

SharedBytes header(const Sections& sections) {
  uint64_t size = kHeaderBytes;
  for (const Blob& blob : sections.blobs) size += blob.size();
  ByteWriter out;
  out.raw(kMark);
  out.number(kFormat);
  out.number<uint32_t>(kSections);
  out.number(size);
  out.fixed(version(), kVersionBytes);
  for (size_t s = 0; s < kSections; ++s) {
    const Digest digest = sections.blobs[s].digest();
    out.fixed(kSectionNames[s], kSectionNameBytes);
    out.number(sections.blobs[s].size());
    out.number(digest.hi);
    out.number(digest.lo);
  }
  out.pad_to(kHeaderDigestAt);
  const Digest digest = hash128(out.bytes());
  out.number(digest.hi);
  out.number(digest.lo);
  return out.take();
}

}  // namespace

std::string_view version() {
  static const std::string text = fmt::format("{} numerics {}", PYC_VERSION, kNumericsVersion);
  return text;
}

Result<std::vector<SharedBytes>> encode(const Artifact& artifact) {
  PYC_TRY(check_program(artifact.program));
  PYC_CHECK(version().size() <= kVersionBytes, "a name that fits the header");
  Sections sections;
  sections.add_program(artifact);
  sections.add_decisions(artifact.log);
  PYC_TRY(add_open(artifact, sections));
  std::vector<SharedBytes> file = {header(sections)};
  for (Blob& blob : sections.blobs) {
    for (SharedBytes& piece : blob.pieces()) file.push_back(std::move(piece));
  }
  return file;
}

}  // namespace pyc::artifact
