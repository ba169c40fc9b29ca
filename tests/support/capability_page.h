#pragma once

// docs/capabilities.md: for each op and device, the element types of the cases that ran there.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace pyc::test {

using RanTypes = std::map<std::string, std::set<DType>>;  // by device

// The op's line of the page.
std::string capability_row(const std::string& op, const RanTypes& ran);
// Expects the line on the page; PYC_UPDATE_GOLDEN=1 writes it there.
void expect_on_page(const std::string& op, const RanTypes& ran);
// The ops that have a line, in their order.
std::vector<std::string> ops_on_page();

}  // namespace pyc::test
