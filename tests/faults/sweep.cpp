#include "faults/sweep.h"

#include <gtest/gtest.h>

#include <iostream>

namespace pyc::faults {

void sweep(const Scenario& scenario, bool every) {
  const Files files;
  const Answer right = scenario.run(files);
  ASSERT_EQ(right.status, PYC_STATUS_OK) << right.text.data();
  begin_recording();
  const Answer again = scenario.run(files);
  const Recorded recorded = end_recording(every);
  ASSERT_TRUE(same(again, right)) << again.text.data();
  scenario.run(files);
  Counts counts;
  for (const int64_t number : recorded.numbers) {
    const Held before = held();
    const std::string wrong = refuse(scenario, files, number, right, counts);
    const Held after = held();
    ASSERT_EQ(wrong, "");
    EXPECT_EQ(after.blocks, before.blocks) << "blocks, call " << number;
    EXPECT_EQ(after.files, before.files) << "files, call " << number;
    EXPECT_EQ(after.maps, before.maps) << "mappings, call " << number;
  }
  std::cout << recorded.calls << " calls, " << recorded.in_llvm << " of them by LLVM; "
            << recorded.numbers.size() << " chosen, " << counts.refused << " refused, "
            << counts.tolerated << " of them tolerated\n";
  // Two threads count their calls in another order every time, so that some numbers meet LLVM.
  EXPECT_GT(counts.refused * 2, static_cast<int64_t>(recorded.numbers.size()));
}

}  // namespace pyc::faults
