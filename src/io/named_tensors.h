#pragma once

// Files that hold several tensors, each under a name: .npz and safetensors. Bytes come in, checked
// tensors in memory of their own go out. A file that contradicts itself is kParseError, one that is
// valid but of a kind PyC does not have is kUnsupported; both name the entry.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"
#include "ir/types.h"

namespace pyc::io {

struct NamedTensor {
  std::string name;
  DynValue value;  // a tensor
};

// A tensor to be written; its bytes stay the caller's.
struct NamedBytes {
  std::string name;
  ir::TensorType type;
  std::span<const std::byte> bytes;  // as many as the type says
};

// .npz: a zip archive of .npy files, as numpy.savez writes it; names without ".npy". Entries are
// stored, not deflated (kUnsupported names numpy.savez). Every entry's CRC-32 is checked; names
// that come twice, entries that overlap and sizes beyond the file are refused.
Result<std::vector<NamedTensor>> parse_npz(std::string_view bytes);
// The file of some tensors. kInvalidArgument for names that come twice; kUnsupported for 4 GiB or
// more.
Result<std::string> npz_bytes(std::span<const NamedBytes> tensors);

// safetensors: the length of a header (u64, little-endian), the header as JSON, the elements of all
// tensors one behind the other without holes.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<NamedTensor> tensors;  // in the order of their elements
};
Result<Safetensors> parse_safetensors(std::string_view bytes);

// The tensors of a file, safetensors or .npz as its name ends; of a .npy file, under that name
// without the ending; of a folder, those of its .npy files. Messages start with the path.
Result<std::vector<NamedTensor>> read_named_tensors(const std::string& path);

// The length and the header of such a file, and in what order the elements of `tensors` follow it:
// those of larger types first, so that all are aligned. kInvalidArgument: a name that comes twice
// or is no UTF-8; kUnsupported: a dtype the format has not.
struct SafetensorsHeader {
  std::string bytes;
  std::vector<size_t> order;
};
Result<SafetensorsHeader> safetensors_header(std::span<const NamedBytes> tensors,
                                             const std::map<std::string, std::string>& metadata);
// The part of a file that safetensors_header wrote; kParseError when it is cut off.
Result<std::string_view> header_part(std::string_view file);

}  // namespace pyc::io
