#include "report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace pyc::tool {

void print(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

Json value_json(const pyc_value_info& info) {
  return {{"name", info.name},
          {"dtype", pyc_dtype_name(info.dtype)},
          {"shape", std::vector<int64_t>(info.shape, info.shape + info.rank)},
          {"bytes", info.bytes}};
}

Json memory_json(const pyc_memory_report& m) {
  return {{"peak_bytes", m.peak_bytes},
          {"input_bytes", m.input_bytes},
          {"parameter_bytes", m.parameter_bytes},
          {"temporary_bytes", m.temporary_bytes},
          {"output_bytes", m.output_bytes},
          {"workspace_bytes", m.workspace_bytes},
          {"arena_bytes", m.arena_bytes},
          {"scratch_bytes", m.scratch_bytes},
          {"measured_arena_bytes", m.measured_arena_bytes}};
}

void print_memory(const pyc_memory_report& m) {
  fmt::print(
      "memory  peak {} (inputs {}, parameters {}, temporaries {}, outputs {}, workspace {})\n"
      "        arena planned {} B, measured {} B with scratch {} B\n",
      bytes_text(m.peak_bytes), bytes_text(m.input_bytes), bytes_text(m.parameter_bytes),
      bytes_text(m.temporary_bytes), bytes_text(m.output_bytes), bytes_text(m.workspace_bytes),
      m.arena_bytes, m.measured_arena_bytes, m.scratch_bytes);
}

std::string decision_text(const pyc_decision& d, const std::vector<pyc_alternative>& alternatives) {
  std::string text = fmt::format("{} -> {} [{}]", d.what, d.chosen, d.reason);
  if (*d.detail != '\0') text += fmt::format(" {}", d.detail);
  for (const pyc_alternative& a : alternatives) {
    text += *a.rejected == '\0'
                ? fmt::format("\n    candidate {} cost {:.0f} ns", a.name, a.cost_ns)
                : fmt::format("\n    candidate {} not applicable: {}", a.name, a.rejected);
  }
  return text;
}

}  // namespace pyc::tool
