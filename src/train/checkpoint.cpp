#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "io/named_tensors.h"
#include "train/options.h"

namespace pyc::train {
namespace {

using Metadata = std::map<std::string, std::string>;

constexpr uint64_t kMaxCheckpointBytes = uint64_t{1} << 40;
constexpr std::string_view kNameStart = "step-";
constexpr std::string_view kNameEnd = ".safetensors";
constexpr std::string_view kLeftBehind = ".pyc-tmp.";  // by a write_file_atomic that was killed
constexpr std::string_view kFormatKey = "pyc.checkpoint";
constexpr std::string_view kFormat = "1";
constexpr std::string_view kStepKey = "pyc.step";
constexpr std::string_view kIdentityKey = "pyc.identity";
constexpr std::string_view kPrecisionKey = "pyc.precision";  // of products
constexpr std::string_view kSeedKey = "pyc.seed";
constexpr std::string_view kPositionKey = "pyc.data_position";
constexpr std::string_view kDataKey = "pyc.data";
constexpr std::string_view kOptionKey = "pyc.option.";
constexpr std::string_view kDigestKey = "pyc.digest";
constexpr size_t kDigestDigits = 32;

std::string file_of(int64_t step) { return fmt::format("{}{:012}{}", kNameStart, step, kNameEnd); }

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kNameStart) || !name.ends_with(kNameEnd)) return std::nullopt;
  const std::string_view digits =
      name.substr(kNameStart.size(), name.size() - kNameStart.size() - kNameEnd.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && file_of(step) == name ? std::optional(step) : std::nullopt;
}

// Where the digits of the digest are in a header: behind its key, which no string can contain as
// its quotes would be escaped there.
Result<size_t> digest_place(std::string_view header) {
  const std::string key = fmt::format("\"{}\":\"", kDigestKey);
  const size_t at = header.find(key);
  if (at == std::string_view::npos || header.size() - at < key.size() + kDigestDigits) {
    return Status(Code::kParseError, "it has no digest");
  }
  return at + key.size();
}

Result<std::string> expected_digest(std::string_view file) {
  PYC_ASSIGN(const std::string_view header, io::header_part(file));
  PYC_ASSIGN(const size_t at, digest_place(header));
  const std::string zeros(kDigestDigits, '0');
  Hasher hasher;
  hasher.update(std::as_bytes(std::span(header.substr(0, at))));
  hasher.update(std::as_bytes(std::span(zeros)));
  hasher.update(std::as_bytes(std::span(file.substr(at + kDigestDigits))));
  return hasher.finish().hex();
}

std::string precision_of(const Trainer& trainer) {
  return std::string(dtype_name(trainer.options().precision));
}

Metadata describe(const Trainer& trainer, const DataPlace& place) {
  Metadata out = {{std::string(kFormatKey), std::string(kFormat)},
                  {std::string(kStepKey), std::to_string(trainer.steps_done())},
                  {std::string(kIdentityKey), trainer.identity()},
                  {std::string(kPrecisionKey), precision_of(trainer)},
                  {std::string(kSeedKey), std::to_string(place.seed)},
                  {std::string(kPositionKey), std::to_string(place.position)},
                  {std::string(kDataKey), place.digest},
                  {std::string(kDigestKey), std::string(kDigestDigits, '0')}};
  for (const TrainOption& option : train_options()) {
    out[fmt::format("{}{}", kOptionKey, option.name)] = option.text(trainer.spec());
  }
  return out;
}

// The number of steps stands in the metadata.
bool is_kept(const StateValue& value) { return value.role != StateValue::Role::kStep; }

Status folder_error(std::string_view what, const std::string& path, const std::error_code& error) {
  return {Code::kIoError, fmt::format("cannot {} '{}': {}", what, path, error.message())};
}

// Removes all but the newest of those up to `last`; newer ones are bad ones that were passed over.
Status remove_older(const std::string& folder, int64_t last, int64_t keep) {
  PYC_ASSIGN(std::vector<int64_t> steps, checkpoint_steps(folder));
  std::erase_if(steps, [&](int64_t step) { return step > last; });
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i) {
    std::error_code error;
    const std::string path = folder + "/" + file_of(steps[i]);
    std::filesystem::remove(path, error);
    if (error) return folder_error("remove", path, error);
  }
  return {};
}

// What writers that were killed left behind; that it cannot be removed is no harm.
void remove_left_behind(const std::string& folder) {
  const auto names = list_folder(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    std::error_code ignored;
    if (name.starts_with(kLeftBehind)) std::filesystem::remove(folder + "/" + name, ignored);
  }
}

// A checkpoint as its file has it, whole and undamaged.
struct ReadCheckpoint {
  Metadata metadata;
  std::vector<io::NamedTensor> tensors;
  int64_t step = 0;
  DataPlace place;

  const std::string& at(std::string_view key) const {
    static const std::string none;
    const auto found = metadata.find(std::string(key));
    return found == metadata.end() ? none : found->second;
  }
};

template <class T>
Status read_whole(const ReadCheckpoint& from, std::string_view key, T& value) {
  const std::string& text = from.at(key);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= T{0}) return {};
  return {Code::kParseError, fmt::format("its '{}' is '{}', no number", key, text.substr(0, 40))};
}

Result<ReadCheckpoint> read_checkpoint(const std::string& path, int64_t step) {
  PYC_ASSIGN(const std::string file, read_file(path, kMaxCheckpointBytes));
  PYC_ASSIGN(io::Safetensors parsed, io::parse_safetensors(file));
  ReadCheckpoint out;
  out.metadata = std::move(parsed.metadata);
  out.tensors = std::move(parsed.tensors);
  PYC_ASSIGN(const std::string expected, expected_digest(file));
  if (out.at(kDigestKey) != expected) {
    return Status(Code::kParseError,
                  fmt::format("it is damaged: its digest is {}, that of its bytes {}",
                              out.at(kDigestKey).substr(0, 40), expected));
  }
  if (out.at(kFormatKey) != kFormat) {
    return Status(Code::kUnsupported, fmt::format("it has format '{}' of checkpoints, known is {}",
                                                  out.at(kFormatKey).substr(0, 40), kFormat));
  }
  PYC_TRY(read_whole(out, kStepKey, out.step));
  PYC_TRY(read_whole(out, kSeedKey, out.place.seed));
  PYC_TRY(read_whole(out, kPositionKey, out.place.position));
  out.place.digest = out.at(kDataKey);
  if (out.step != step) {
    return Status(Code::kParseError,
                  fmt::format("it holds step {}, its name says {}", out.step, step));
  }
  return out;
}

Status other(std::string_view what, std::string_view there, std::string_view here) {
  return {Code::kInvalidArgument,
          fmt::format("the checkpoint is of another training: {}: it has '{}', this run '{}'", what,
                      there.substr(0, 200), here.substr(0, 200))};
}

Status check_options_match(const ReadCheckpoint& from, const Trainer& trainer) {
  for (const TrainOption& option : train_options()) {
    const std::string& there = from.at(fmt::format("{}{}", kOptionKey, option.name));
    const std::string here = option.text(trainer.spec());
    if (there != here) return other(option.name, there, here);
  }
  const std::string precision = precision_of(trainer);
  if (from.at(kPrecisionKey) != precision)
    return other("precision", from.at(kPrecisionKey), precision);
  return {};
}

// For each value of the state the tensor that goes there; none for the number of steps.
Result<std::vector<const io::NamedTensor*>> match_state(const ReadCheckpoint& from,
                                                        const Trainer& trainer) {
  std::map<std::string_view, const io::NamedTensor*> unmet;
  for (const io::NamedTensor& tensor : from.tensors) unmet[tensor.name] = &tensor;
  std::vector<const io::NamedTensor*> out;
  for (const StateValue& value : trainer.state()) {
    out.push_back(nullptr);
    if (!is_kept(value)) continue;
    const auto found = unmet.find(value.name);
    if (found == unmet.end()) return other(value.name, "no such tensor", value.type.to_string());
    const DynValue& there = found->second->value;
    if (there.dtype != value.type.dtype || there.shape != value.type.shape) {
      return other(value.name, there.to_string(), value.type.to_string());
    }
    out.back() = found->second;
    unmet.erase(found);
  }
  if (unmet.empty()) return out;
  const io::NamedTensor& extra = *unmet.begin()->second;
  return other(extra.name, extra.value.to_string(), "no such parameter");
}

Status restore(const ReadCheckpoint& from, Trainer& trainer, const DataPlace& expected) {
  PYC_TRY(check_options_match(from, trainer));
  PYC_ASSIGN(const auto tensors, match_state(from, trainer));
  if (from.at(kIdentityKey) != trainer.identity()) {
    return other("the model", from.at(kIdentityKey), trainer.identity());
  }
  if (!expected.digest.empty() && !from.place.digest.empty()) {
    if (expected.digest != from.place.digest) {
      return other("the data", from.place.digest, expected.digest);
    }
    if (expected.seed != from.place.seed) {
      return other("the seed", std::to_string(from.place.seed), std::to_string(expected.seed));
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto step = std::as_bytes(std::span(&from.step, 1));
    PYC_TRY(trainer.set(i, tensors[i] == nullptr ? step : tensors[i]->value.bytes.span()));
  }
  return {};
}

}  // namespace

Result<std::vector<int64_t>> checkpoint_steps(const std::string& folder) {
  auto names = list_folder(folder);
  if (names.status().code() == Code::kNotFound) return std::vector<int64_t>();
  if (!names.ok()) return std::move(names).status();
  std::vector<int64_t> steps;
  for (const std::string& name : *names) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Result<std::string> save_checkpoint(const std::string& folder, const Trainer& trainer,
                                    const DataPlace& place, int64_t keep) {
  if (keep < 1) {
    return Status(Code::kInvalidArgument,
                  fmt::format("checkpoints to keep: expected 1 or more, found {}", keep));
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return folder_error("make the folder", folder, error);
  std::vector<io::NamedBytes> tensors;
  for (size_t i = 0; i < trainer.state().size(); ++i) {
    const StateValue& value = trainer.state()[i];
    if (is_kept(value)) tensors.push_back({value.name, value.type, trainer.bytes(i)});
  }
  PYC_ASSIGN(io::SafetensorsHeader header,
             io::safetensors_header(tensors, describe(trainer, place)));
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(header.bytes))};
  Hasher hasher;
  hasher.update(pieces[0]);
  for (const size_t i : header.order) {
    pieces.push_back(tensors[i].bytes);
    hasher.update(tensors[i].bytes);
  }
  PYC_ASSIGN(const size_t digits, digest_place(header.bytes));
  header.bytes.replace(digits, kDigestDigits, hasher.finish().hex());
  const std::string path = folder + "/" + file_of(trainer.steps_done());
  PYC_TRY(write_file_atomic(path, pieces)
              .with_context(
                  fmt::format("the checkpoint of step {} is not written", trainer.steps_done())));
  PYC_TRY(remove_older(folder, trainer.steps_done(), keep));
  return path;
}

Result<std::optional<Resumed>> resume_checkpoint(const std::string& folder, Trainer& trainer,
                                                 const DataPlace& expected) {
  PYC_ASSIGN(const std::vector<int64_t> steps, checkpoint_steps(folder));
  remove_left_behind(folder);
  Resumed out;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    out.path = folder + "/" + file_of(*step);
    auto read = read_checkpoint(out.path, *step);
    if (!read.ok()) {
      const Code code = read.status().code();
      if (code == Code::kOutOfMemory || code == Code::kUnsupported) {
        return std::move(read).status().with_context(out.path);
      }
      out.passed_over.push_back(fmt::format("{}: {}", file_of(*step), read.status().message()));
      continue;
    }
    PYC_TRY(restore(*read, trainer, expected).with_context(out.path));
    out.place = read->place;
    return std::optional(std::move(out));
  }
  if (out.passed_over.empty()) return std::optional<Resumed>();
  return Status(Code::kParseError,
                fmt::format("none of the {} checkpoints in '{}' can be used; the newest is {}",
                            steps.size(), folder, out.passed_over.front()));
}

}  // namespace pyc::train
