#pragma once

// Why two values are not computed by one kernel.

#include <string>
#include <vector>

#include "command.h"

namespace pyc::tool {

// One group of the "groups" stage.
struct Group {
  std::string name;
  std::string text;
  std::vector<std::string> members;  // names of values
  std::vector<std::string> reads;    // likewise
};

std::vector<Group> split_groups(const std::string& text);
// The group that computes the value; null where none does.
const Group* group_of(const std::vector<Group>& groups, const std::string& value);

// In lines: that they share a group, or every refusal that kept them apart.
std::string why_not(const Model& model, const std::vector<Group>& groups, const std::string& a,
                    const std::string& b);

}  // namespace pyc::tool
