#pragma once

// How a model's facts are printed, as text and as JSON.

#include <string>
#include <vector>

#include "command.h"

namespace pyc::tool {

void print(const Json& document);

Json value_json(const pyc_value_info& info);
// The output of a run: a tensor's value with its digest, strings, items.
Json result_json(const pyc_result* result);
// The same in lines, each indented by `indent`.
std::string result_text(const pyc_result* result, const std::string& indent);
Json breaks_json(const Breaks& breaks);
Json memory_json(const pyc_memory_report& memory);
void print_memory(const pyc_memory_report& memory);

std::string decision_text(const pyc_decision& decision,
                          const std::vector<pyc_alternative>& alternatives);

// Calls `visit(decision, alternatives)` for each decision of the compile.
template <class Visit>
void for_each_decision(const Model& model, Visit visit) {
  for (size_t i = 0; i < pyc_model_decision_count(model.get()); ++i) {
    auto decision = sized<pyc_decision>();
    check([&](pyc_error** e) { return pyc_model_decision(model.get(), i, &decision, e); });
    std::vector<pyc_alternative> alternatives;
    for (size_t k = 0; k < decision.alternative_count; ++k) {
      alternatives.push_back(sized<pyc_alternative>());
      check([&](pyc_error** e) {
        return pyc_model_alternative(model.get(), i, k, &alternatives.back(), e);
      });
    }
    visit(decision, alternatives);
  }
}

}  // namespace pyc::tool
