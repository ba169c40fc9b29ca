#include "faults/sweep.h"

#include <gtest/gtest.h>

#include <iostream>

#include "base/sanitizers.h"

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
  // Sanitizers make a run take four times as long: every third place.
  const size_t stride = kSanitized ? 3 : 1;
  int64_t tried = 0;
  for (size_t i = 0; i < recorded.numbers.size(); i += stride, ++tried) {
    const int64_t number = recorded.numbers[i];
    const Held before = held();
    const std::string wrong = refuse(scenario, files, number, right, counts);
    const Held after = held();
    ASSERT_EQ(wrong, "");
    EXPECT_EQ(after.blocks, before.blocks) << "blocks, call " << number;
    EXPECT_EQ(after.files, before.files) << "files, call " << number;
    EXPECT_EQ(after.maps, before.maps) << "mappings, call " << number;
  }
  std::cout << recorded.calls << " calls, " << recorded.in_llvm << " of them by LLVM; " << tried
            << " chosen, " << counts.refused << " refused, " << counts.tolerated
            << " of them tolerated\n";
  // Two threads count their calls in another order every time, so that some numbers meet LLVM.
  EXPECT_GT(counts.refused * 2, tried);
}

}  // namespace pyc::faults
