#pragma once

// Checkpoints: where a training run stands, one safetensors file each, which anyone can read.
//
// A file holds the parameters and the optimizer's values under their names, and in its metadata
// the number of steps done, every training option, the identity of the step's graph, the place in
// the data, and a digest of all its bytes, its own digits taken as zeros. It is written beside its
// name, synced and renamed: a run that is killed at any moment leaves whole files only. A folder
// belongs to one run at a time.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "train/trainer.h"

namespace pyc::train {

// Where a run stands in its data.
struct DataPlace {
  uint64_t seed = 0;     // of the order of rows
  int64_t position = 0;  // batches taken
  std::string digest;    // of the data; "" is not compared
};

// Writes step-NUMBER.safetensors into the folder, which is made, then removes all but the `keep`
// (at least 1) newest up to this one. Returns the file's path. A failure (kIoError) leaves all
// earlier files as they were.
Result<std::string> save_checkpoint(const std::string& folder, const Trainer& trainer,
                                    const DataPlace& place, int64_t keep);

struct Resumed {
  std::string path;
  DataPlace place;
  std::vector<std::string> passed_over;  // "FILE: why", newer ones that could not be used
};

// Puts the newest good checkpoint of the folder into the trainer; nothing when the folder holds
// none at all or is not there. Files that are cut off or damaged are passed over; what a writer
// that was killed left behind is removed. Refused, the
// trainer as it was: kInvalidArgument when the checkpoint is of another training (options, names,
// shapes, model, data or seed), naming the first difference; kParseError when all are damaged.
Result<std::optional<Resumed>> resume_checkpoint(const std::string& folder, Trainer& trainer,
                                                 const DataPlace& expected);

// The steps done in each checkpoint of the folder, by the names of the files, ascending; none when
// there is no folder.
Result<std::vector<int64_t>> checkpoint_steps(const std::string& folder);

}  // namespace pyc::train
