#include "report.h"
#include "say.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyc::tool {

void print(const Json& document) { say("{}\n", Lines{document.text(2)}); }

Json value_json(const pyc_value_info& info) {
  return {{"name", info.name},
          {"dtype", pyc_dtype_name(info.dtype)},
          {"shape", std::vector<int64_t>(info.shape, info.shape + info.rank)},
          {"bytes", info.bytes}};
}

namespace {

constexpr size_t kShownElements = 4;

pyc_tensor_view tensor_of(const pyc_result* result) {
  auto view = sized<pyc_tensor_view>();
  check([&](pyc_error** e) { return pyc_result_tensor(result, &view, e); });
  return view;
}

std::string digest_of(const pyc_tensor_view& view) {
  return take_text([&](char** text, pyc_error** e) { return pyc_tensor_digest(&view, text, e); });
}

std::string string_of(const pyc_result* result, size_t i) {
  const char* text = nullptr;
  size_t size = 0;
  check([&](pyc_error** e) { return pyc_result_string(result, i, &text, &size, e); });
  return {text, size};
}

const pyc_result* item_of(const pyc_result* result, size_t i) {
  const pyc_result* item = nullptr;
  check([&](pyc_error** e) { return pyc_result_item(result, i, &item, e); });
  return item;
}

std::string first_values(const pyc_tensor_view& view) {
  const int64_t count = number_count(view);
  std::vector<double> numbers(std::min(kShownElements, static_cast<size_t>(count)));
  check([&](pyc_error** e) {
    return pyc_tensor_read_f64(&view, 0, static_cast<int64_t>(numbers.size()), numbers.data(), e);
  });
  std::string text;
  for (const double x : numbers) text += fmt::format("{}{:.6g}", text.empty() ? "" : " ", x);
  return static_cast<size_t>(count) > numbers.size() ? text + " …" : text;
}

std::string first_strings(const pyc_result* result) {
  const size_t count = pyc_result_count(result);
  std::string text;
  for (size_t i = 0; i < std::min(count, kShownElements); ++i) {
    text += fmt::format("{}{:?}", i == 0 ? "" : " ", string_of(result, i));
  }
  return count > kShownElements ? text + " …" : text;
}

}  // namespace

Json result_json(const pyc_result* result) {
  const int32_t type = pyc_result_type(result);
  if (type == PYC_TYPE_TENSOR) {
    const pyc_tensor_view view = tensor_of(result);
    return {{"dtype", pyc_dtype_name(view.dtype)},
            {"shape", std::vector<int64_t>(view.shape, view.shape + view.rank)},
            {"bytes", view.bytes},
            {"type", "tensor"},
            {"digest", digest_of(view)}};
  }
  if (type == PYC_TYPE_STRINGS) {
    const int64_t* shape = nullptr;
    int64_t rank = 0;
    check([&](pyc_error** e) { return pyc_result_shape(result, &shape, &rank, e); });
    Json out = {{"type", "strings"},
                {"shape", std::vector<int64_t>(shape, shape + rank)},
                {"strings", Json::array()}};
    for (size_t i = 0; i < pyc_result_count(result); ++i) {
      out["strings"].push_back(string_of(result, i));
    }
    return out;
  }
  if (type != PYC_TYPE_SEQUENCE) return {{"type", "nothing"}};
  Json out = {{"type", "sequence"}, {"items", Json::array()}};
  for (size_t i = 0; i < pyc_result_count(result); ++i) {
    out["items"].push_back(result_json(item_of(result, i)));
  }
  return out;
}

std::string result_text(const pyc_result* result, const std::string& indent) {
  const std::string head = printable(pyc_result_type_text(result));
  switch (pyc_result_type(result)) {
    case PYC_TYPE_TENSOR: {
      const pyc_tensor_view view = tensor_of(result);
      return fmt::format("{} digest {}\n{}{}\n", head, digest_of(view), indent, first_values(view));
    }
    case PYC_TYPE_STRINGS:
      return fmt::format("{}\n{}{}\n", head, indent, first_strings(result));
    case PYC_TYPE_SEQUENCE: {
      std::string text = head + "\n";
      for (size_t i = 0; i < pyc_result_count(result); ++i) {
        text += fmt::format("{}{}: {}", indent, i, result_text(item_of(result, i), indent + "   "));
      }
      return text;
    }
    default:
      return head + "\n";
  }
}

Json breaks_json(const Breaks& breaks) {
  const pyc_break_summary s = breaks.summary();
  Json out = {{"nodes", s.nodes},
              {"compiled", s.compiled < 0 ? Json(nullptr) : Json(s.compiled)},
              {"compilability_score", s.compilability_score},
              {"count", s.break_count},
              {"ops", Json::object()},
              {"first", nullptr},
              {"summary", s.summary}};
  for (const pyc_break_op& op : breaks.ops()) out["ops"][op.op] = op.count;
  if (s.break_count > 0) {
    out["first"] = {{"node", s.first_node}, {"op", s.first_op}, {"reason", s.first_reason}};
  }
  return out;
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
          {"measured_arena_bytes", m.measured_arena_bytes},
          {"staging_bytes", m.staging_bytes},
          {"code_bytes", m.code_bytes},
          {"kept_program_bytes", m.kept_program_bytes},
          {"state_bytes", m.state_bytes},
          {"mapped_bytes", m.mapped_bytes}};
}

void print_memory(const pyc_memory_report& m) {
  say("memory  peak {} (inputs {}, parameters {}, temporaries {}, outputs {}, workspace {})\n"
      "        arena planned {} B, measured {} B with scratch {} B\n"
      "        code {} B, kept programs {} B\n",
      bytes_text(m.peak_bytes), bytes_text(m.input_bytes), bytes_text(m.parameter_bytes),
      bytes_text(m.temporary_bytes), bytes_text(m.output_bytes), bytes_text(m.workspace_bytes),
      m.arena_bytes, m.measured_arena_bytes, m.scratch_bytes, m.code_bytes, m.kept_program_bytes);
}

std::string decision_text(const pyc_decision& d, const std::vector<pyc_alternative>& alternatives) {
  std::string text =
      fmt::format("{} -> {} [{}]", printable(d.what), printable(d.chosen), printable(d.reason));
  if (*d.detail != '\0') text += fmt::format(" {}", printable(d.detail));
  for (const pyc_alternative& a : alternatives) {
    if (*a.rejected != '\0') {
      text += fmt::format("\n    candidate {} not applicable: {}", printable(a.name),
                          printable(a.rejected));
      continue;
    }
    text += fmt::format("\n    candidate {} cost {:.0f} ns", printable(a.name), a.cost_ns);
    if (a.measured_ns > 0) text += fmt::format(", measured {:.0f} ns", a.measured_ns);
  }
  return text;
}

}  // namespace pyc::tool
