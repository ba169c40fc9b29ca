#include "ops/support/operands.h"

#include <algorithm>

namespace pyc::ops {
namespace {

std::vector<std::string_view> names_in(const ir::Attrs& attrs) {
  std::string_view rest = std::get<std::string>(attrs.at("with"));
  std::vector<std::string_view> names;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    names.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

}  // namespace

Status require_operands(const InferArgs& args, size_t required,
                        std::initializer_list<std::string_view> known) {
  const auto names = names_in(args.attrs);
  const auto* next = known.begin();
  for (std::string_view name : names) {
    next = std::find(next, known.end(), name);
    if (next == known.end()) {
      std::string list;
      for (std::string_view k : known) list += (list.empty() ? "" : ",") + std::string(k);
      return refuse(Code::kInvalidArgument, "with must name some of ", list,
                    " in this order, found \"", args.attr_string("with"), "\"");
    }
    ++next;
  }
  if (args.inputs.size() != required + names.size()) {
    return refuse(Code::kInvalidArgument, "expected ", static_cast<int64_t>(required),
                  " inputs and those of with=\"", args.attr_string("with"), "\", found ",
                  static_cast<int64_t>(args.inputs.size()));
  }
  return {};
}

int operand_at(const ir::Attrs& attrs, size_t required, std::string_view name) {
  const auto names = names_in(attrs);
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end()
             ? -1
             : static_cast<int>(required) + static_cast<int>(found - names.begin());
}

}  // namespace pyc::ops
