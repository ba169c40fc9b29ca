#include "ops/support/equation.h"

#include <algorithm>
#include <cctype>

namespace pyc::ops {
namespace {

// For the dims behind "...", the last one first.
constexpr std::string_view kRunLetters = "0123456789!#$%&*";
static_assert(kRunLetters.size() == ir::kMaxRank);

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

Status malformed(std::string_view text) {
  return refuse(Code::kInvalidArgument, "malformed equation \"", text, "\"");
}

// The letters for a run of `count` dims.
std::string run_of(size_t count) {
  std::string run(kRunLetters.substr(0, count));
  std::reverse(run.begin(), run.end());
  return run;
}

// Replaces "..." by letters for the dims of `rank` that the term does not name.
Result<std::string> without_dots(std::string term, int64_t rank, size_t* longest) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  term.erase(dots, 3);
  const auto named = static_cast<int64_t>(term.size());
  if (named > rank) {
    return refuse(Code::kRankMismatch, "\"", term, "\" names more dims than there are: ", rank);
  }
  const auto count = static_cast<size_t>(rank - named);
  *longest = std::max(*longest, count);
  return term.insert(dots, run_of(count));
}

std::string once_only(const std::vector<std::string>& operands, size_t run) {
  std::string all;
  for (const std::string& o : operands) all += o;
  std::string result;
  for (char letter : all) {
    const bool named = std::isalpha(static_cast<unsigned char>(letter)) != 0;
    if (named && std::count(all.begin(), all.end(), letter) == 1) result += letter;
  }
  std::sort(result.begin(), result.end());
  return run_of(run) + result;
}

}  // namespace

std::string Equation::text() const {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ",") + operands[i];
  return text + "->" + result;
}

std::string Equation::summed() const {
  std::string letters;
  for (const std::string& o : operands) {
    for (char letter : o) {
      const bool known = (letters + result).find(letter) != std::string::npos;
      if (!known) letters += letter;
    }
  }
  return letters;
}

Result<Equation> parse_equation(std::string_view text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return malformed(text);
  Equation e{split(text.substr(0, arrow), ','), std::string(text.substr(arrow + 2))};
  std::string all;
  for (const std::string& o : e.operands) all += o;
  if ((all + e.result).find_first_of(",->. ") != std::string::npos) return malformed(text);
  for (char letter : e.result) {
    if (std::count(e.result.begin(), e.result.end(), letter) == 1 &&
        all.find(letter) != std::string::npos) {
      continue;
    }
    return refuse(Code::kInvalidArgument, "the result of \"", text,
                  "\" must name dims of the "
                  "operands, each once");
  }
  return e;
}

Result<Equation> parse_einsum(std::string_view text, std::span<const TensorType> inputs) {
  std::string bare;
  for (char letter : text) {
    if (letter == ' ') continue;
    const bool known = std::isalpha(static_cast<unsigned char>(letter)) != 0 ||
                       std::string_view(",->.").find(letter) != std::string_view::npos;
    if (!known) return malformed(text);
    bare += letter;
  }
  const size_t arrow = bare.find("->");
  std::vector<std::string> terms = split(bare.substr(0, arrow), ',');
  if (terms.size() != inputs.size()) {
    return refuse(Code::kInvalidArgument, "equation \"", text, "\" has ",
                  static_cast<int64_t>(terms.size()), " operands, found ",
                  static_cast<int64_t>(inputs.size()));
  }
  size_t run = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    PYC_ASSIGN(terms[i], without_dots(terms[i], inputs[i].rank(), &run));
  }
  std::string result;
  if (arrow == std::string::npos) {
    result = once_only(terms, run);
  } else {
    result = bare.substr(arrow + 2);
    const size_t dots = result.find("...");
    if (dots != std::string::npos) result.replace(dots, 3, run_of(run));
  }
  Equation e{std::move(terms), std::move(result)};
  const auto checked = parse_equation(e.text());
  if (!checked.ok()) return malformed(text);
  return e;
}

Result<Shape> extents_of(const Equation& equation, std::span<const TensorType> inputs,
                         std::string_view letters) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto rank = static_cast<int64_t>(equation.operands[i].size());
    if (inputs[i].rank() == rank) continue;
    return refuse(Code::kRankMismatch, "\"", equation.operands[i], "\" needs rank ", rank,
                  ", found ", inputs[i]);
  }
  Shape extents;
  for (char letter : letters) {
    int64_t extent = 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t d = 0; d < inputs[i].shape.size(); ++d) {
        const int64_t dim = inputs[i].shape[d];
        if (equation.operands[i][d] != letter || dim == extent || dim == 1) continue;
        if (extent != 1) {
          return refuse(Code::kShapeMismatch, "index ", std::string(1, letter), " has extents ",
                        extent, " and ", dim);
        }
        extent = dim;
      }
    }
    extents.push_back(extent);
  }
  return extents;
}

}  // namespace pyc::ops
