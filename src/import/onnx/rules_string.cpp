#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "host/elements.h"
#include "host/ngrams.h"
#include "host/regex.h"
#include "host/strings.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

Status string_concat(HostCall& call) {
  return give(call, host::concat_strings(input_of(call, 0), input_of(call, 1)));
}

Status string_split(HostCall& call) {
  PYC_ASSIGN(host::SplitStrings split,
             host::split_strings(input_of(call, 0), call.attr_string("delimiter", ""),
                                 call.attr_int("maxsplit", -1)));
  call.set_output(0, std::move(split.parts));
  call.set_output(1, std::move(split.counts));
  return {};
}

Status string_normalizer(HostCall& call) {
  host::NormalizeSpec spec;
  const std::string change = call.attr_string("case_change_action", "NONE");
  if (change == "LOWER") {
    spec.change = host::CaseChange::kLower;
  } else if (change == "UPPER") {
    spec.change = host::CaseChange::kUpper;
  } else if (change != "NONE") {
    return {Code::kInvalidArgument, fmt::format("case_change_action '{}' is not known", change)};
  }
  spec.case_sensitive = call.attr_int("is_case_sensitive", 0) != 0;
  spec.stop_words = attr_strings(call, "stopwords");
  return give(call, host::normalize_strings(input_of(call, 0), spec));
}

Status regex_full_match(HostCall& call) {
  return give(call, host::match_fully(input_of(call, 0), call.attr_string("pattern", "")));
}

Status tf_idf_vectorizer(HostCall& call) {
  host::NgramSpec spec;
  spec.shortest = call.attr_int("min_gram_length", 1);
  spec.longest = call.attr_int("max_gram_length", 1);
  spec.most_skips = call.attr_int("max_skip_count", 0);
  const std::string mode = call.attr_string("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return {Code::kInvalidArgument, fmt::format("mode '{}' is not known", mode)};
  }
  spec.mode = mode == "TF"    ? host::NgramMode::kTf
              : mode == "IDF" ? host::NgramMode::kIdf
                              : host::NgramMode::kTfIdf;
  spec.pool_strings = attr_strings(call, "pool_strings");
  spec.pool_ints = attr_ints(call, "pool_int64s");
  if (!spec.pool_strings.empty() && !spec.pool_ints.empty()) {
    return {Code::kInvalidArgument, "there are two pools of n-grams"};
  }
  spec.starts = attr_ints(call, "ngram_counts");
  spec.places = attr_ints(call, "ngram_indexes");
  spec.weights = attr_floats(call, "weights");
  return give(call, host::count_ngrams(input_of(call, 0), spec));
}

// The inputs with numbers in place of strings: each string's place among all of them.
struct Numbered {
  std::vector<DynValue> inputs;
  std::vector<const std::string*> strings;
};
Result<Numbered> numbered(const HostCall& call) {
  Numbered made;
  for (size_t i = 0; i < call.inputs(); ++i) {
    const DynValue& input = call.input(i);
    if (input.kind != DynValue::Kind::kStrings) {
      made.inputs.push_back(input);
      continue;
    }
    PYC_TRY(host::check_strings(input, fmt::format("input {}", i)));
    Ints places;
    for (const std::string& s : *input.strings) {
      places.push_back(static_cast<int64_t>(made.strings.size()));
      made.strings.push_back(&s);
    }
    PYC_ASSIGN(DynValue numbers, host::tensor_of(DType::kI64, input.shape, places));
    made.inputs.push_back(std::move(numbers));
  }
  for (const DynValue& input : made.inputs) {
    if (!input.is_tensor() && !input.absent()) {
      return Status(Code::kDtypeMismatch,
                    fmt::format("expected tensors, found {}", input.to_string()));
    }
  }
  return made;
}

// Ops that only ask for the shape of strings.
Status measure_strings(HostCall& call) {
  PYC_ASSIGN(Numbered in, numbered(call));
  return give_all(call, call.run_node(std::move(in.inputs)));
}

// Ops that move the elements of inputs First to Last about: what they do to numbers is done to
// strings.
template <size_t First = 0, size_t Last = First>
Status move_strings(HostCall& call) {
  for (size_t i = First; i <= std::min(Last, std::max<size_t>(call.inputs(), 1) - 1); ++i) {
    PYC_TRY(host::check_strings(input_of(call, i), fmt::format("input {}", i)));
  }
  PYC_ASSIGN(Numbered in, numbered(call));
  PYC_ASSIGN(const std::vector<DynValue> moved, call.run_node(std::move(in.inputs)));
  for (size_t i = 0; i < moved.size(); ++i) {
    if (moved[i].absent()) continue;
    host::NewStrings strings;
    for (const int64_t place : to_ints(moved[i])) {
      if (place < 0 || place >= static_cast<int64_t>(in.strings.size())) {
        return {Code::kUnsupported, "elements that are not in the input"};
      }
      PYC_TRY(strings.add(*in.strings[static_cast<size_t>(place)]));
    }
    call.set_output(i, std::move(strings).finish(moved[i].shape));
  }
  return {};
}

constexpr Rule kStringRules[] = {
    {"Concat", nullptr, move_strings<0, SIZE_MAX>},
    {"Expand", nullptr, move_strings<>},
    {"Flatten", nullptr, move_strings<>},
    {"Gather", nullptr, move_strings<>},
    {"GatherElements", nullptr, move_strings<>},
    {"GatherND", nullptr, move_strings<>},
    {"RegexFullMatch", nullptr, regex_full_match},
    {"Reshape", nullptr, move_strings<>},
    {"Shape", nullptr, measure_strings},
    {"Size", nullptr, measure_strings},
    {"Slice", nullptr, move_strings<>},
    {"Split", nullptr, move_strings<>},
    {"Squeeze", nullptr, move_strings<>},
    {"StringConcat", nullptr, string_concat},
    {"StringNormalizer", nullptr, string_normalizer},
    {"StringSplit", nullptr, string_split},
    {"TfIdfVectorizer", nullptr, tf_idf_vectorizer},
    {"Tile", nullptr, move_strings<>},
    {"Transpose", nullptr, move_strings<>},
    {"Unsqueeze", nullptr, move_strings<>},
    {"Where", nullptr, move_strings<1, 2>},
};

}  // namespace

Rules string_rules() { return kStringRules; }

}  // namespace pyc::onnx
