#include "why_not.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "report.h"

namespace pyc::tool {
namespace {

constexpr std::string_view kFusion = "fusion:%";

// What was decided about a value that is stored.
struct Placing {
  bool began = false;                          // a group, rather than joining one
  std::map<std::string, std::string> refused;  // by the value that began a group: the reason
};
using Placings = std::map<std::string, Placing>;

Placings placings_of(const Model& model) {
  constexpr std::string_view kGroupOf = "group of %";
  Placings out;
  for_each_decision(model, [&](const pyc_decision& d, const auto& alternatives) {
    const std::string_view what = d.what;
    if (!what.starts_with(kFusion)) return;
    Placing& placing = out[std::string(what.substr(kFusion.size()))];
    placing.began = std::string_view(d.chosen) == "new group";
    for (const pyc_alternative& a : alternatives) {
      const std::string_view name = a.name;
      if (name.starts_with(kGroupOf)) {
        placing.refused[std::string(name.substr(kGroupOf.size()))] = a.rejected;
      }
    }
  });
  return out;
}

std::string meaning_of(const std::string& reason) {
  for (size_t i = 0; i < pyc_reason_count(); ++i) {
    if (reason == pyc_reason_name(i)) return pyc_reason_meaning(i);
  }
  return "";
}

// The value that began the group.
std::string first_of(const Group& group, const Placings& placings) {
  for (const std::string& m : group.members) {
    const auto found = placings.find(m);
    if (found != placings.end() && found->second.began) return m;
  }
  return "";
}

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The refusals of members of `from` by the group `to`.
std::string refusals(const Group& from, const Group& to, const Placings& placings) {
  std::string out;
  const std::string first = first_of(to, placings);
  for (const std::string& m : from.members) {
    const auto placing = placings.find(m);
    if (placing == placings.end()) continue;
    const auto refused = placing->second.refused.find(first);
    if (refused == placing->second.refused.end()) continue;
    out += fmt::format("%{} of {} could not join {}: [{}] {}\n", m, from.name, to.name,
                       refused->second, meaning_of(refused->second));
  }
  if (!out.empty()) return out;
  const auto read = std::find_if(from.reads.begin(), from.reads.end(),
                                 [&](const std::string& v) { return is_in(to.members, v); });
  if (read == from.reads.end()) return "";
  return fmt::format(
      "{} reads %{} of {}, but its values joined another group before this one was "
      "tried: a value is in one group\n",
      from.name, *read, to.name);
}

}  // namespace

std::vector<Group> split_groups(const std::string& text) {
  std::vector<Group> groups;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("group ")) {
      groups.push_back({line.substr(6, line.find(' ', 6) - 6), "", {}, {}});
    }
    if (groups.empty()) continue;
    Group& group = groups.back();
    group.text += line + "\n";
    constexpr std::string_view kRead = ": read ";
    const size_t read = line.find(kRead);
    if (line.starts_with("  %")) {
      group.members.push_back(line.substr(3, line.find(" = ") - 3));
    } else if (line.starts_with("  b") && read != std::string::npos) {
      const std::string rest = line.substr(read + kRead.size());
      group.reads.push_back(rest.substr(0, rest.find(' ')));
    }
  }
  return groups;
}

const Group* group_of(const std::vector<Group>& groups, const std::string& value) {
  for (const Group& group : groups) {
    if (is_in(group.members, value)) return &group;
  }
  return nullptr;
}

std::string why_not(const Model& model, const std::vector<Group>& groups, const std::string& a,
                    const std::string& b) {
  const Group* const of_a = group_of(groups, a);
  const Group* const of_b = group_of(groups, b);
  if (of_a == nullptr || of_b == nullptr) {
    return fmt::format("%{} is in no group: it is an input or a constant, or passes replaced it\n",
                       of_a == nullptr ? a : b);
  }
  if (of_a == of_b) return fmt::format("%{} and %{} share the group {}\n", a, b, of_a->name);
  const Placings placings = placings_of(model);
  const std::string found = refusals(*of_a, *of_b, placings) + refusals(*of_b, *of_a, placings);
  if (!found.empty()) return found;
  return fmt::format("neither {} nor {} reads a value of the other: there is nothing to join\n",
                     of_a->name, of_b->name);
}

}  // namespace pyc::tool
