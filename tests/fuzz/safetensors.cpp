#include "fuzz/more_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pyc::test::fuzz_safetensors({reinterpret_cast<const char*>(data), size});
  return 0;
}
