#pragma once

// The layout of a .pycm file, all numbers little-endian:
//
//   0   mark, 8 bytes
//   8   u32 format, u32 number of sections
//   16  u64 bytes of the whole file
//   24  versions of PyC and of its numerics, 24 bytes, zero-padded
//   48  the section table: name (8 bytes, zero-padded), u64 bytes, digest (u64 hi, u64 lo)
//   208 zeros
//   240 digest of bytes 0 … 239
//   256 the sections, one behind the other, each padded with zeros to a multiple of 64
//
// A section's bytes and digest (hash_pieces) include its padding, so every byte of the file is
// under a digest.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pyc::artifact {

// Like PNG's: line-end conversion and text tools destroy it visibly.
inline constexpr std::string_view kMark = "\x89PYCM\r\n\x1a";
inline constexpr uint32_t kFormat = 8;

// "open": of a model that is not one program, its graph and where its stored tensors (in "weights")
// and its programs (artefacts inside of this one, in "code") are; else no bytes.
enum Section : size_t { kProgram, kDecisions, kOpen, kCode, kWeights, kSections };
inline constexpr std::array<std::string_view, kSections> kSectionNames = {
    "program", "decision", "open", "code", "weights"};

// What a step is, as its first byte says.
// kAgainStep: a kernel that computes what an earlier step did.
enum StepKind : uint8_t { kKernelStep, kCopyStep, kAgainStep, kStepKinds };

inline constexpr size_t kAlignment = 64;
inline constexpr size_t kFormatAt = 8;
inline constexpr size_t kFileBytesAt = 16;
inline constexpr size_t kVersionAt = 24;
inline constexpr size_t kVersionBytes = 24;
inline constexpr size_t kTableAt = 48;
inline constexpr size_t kSectionNameBytes = 8;
inline constexpr size_t kTableEntryBytes = 32;
inline constexpr size_t kHeaderDigestAt = 240;
inline constexpr size_t kHeaderBytes = 256;
static_assert(kTableAt + kSections * kTableEntryBytes <= kHeaderDigestAt);

// The bytes of zeros that follow `size` bytes.
constexpr size_t padding(size_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

}  // namespace pyc::artifact
