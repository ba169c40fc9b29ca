#include <fmt/format.h>

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

constexpr Rule kRules[] = {
    {"RegexFullMatch", nullptr, regex_full_match},    {"StringConcat", nullptr, string_concat},
    {"StringNormalizer", nullptr, string_normalizer}, {"StringSplit", nullptr, string_split},
    {"TfIdfVectorizer", nullptr, tf_idf_vectorizer},
};

}  // namespace

Rules string_rules() { return kRules; }

}  // namespace pyc::onnx
