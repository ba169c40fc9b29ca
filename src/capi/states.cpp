// What models keep from one run to the next.

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/views.h"
#include "pyc/compiler_api.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

// The program whose states they are.
Result<runtime::Model*> stateful(const pyc_model* model, size_t index) {
  PYC_TRY(require(model, "model"));
  PYC_TRY(require_index(index, pyc_model_state_count(model), "state"));
  return model->session->whole();
}

}  // namespace

size_t pyc_model_state_count(const pyc_model* model) {
  if (model == nullptr || model->session->whole() == nullptr) return 0;
  return model->session->whole()->state_specs().size();
}

pyc_status pyc_model_state(const pyc_model* model, size_t index, pyc_value_info* info,
                           const char** output, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_value_info", kFirstValueInfo));
    PYC_ASSIGN(runtime::Model* const whole, stateful(model, index));
    const runtime::StateSpec& state = whole->state_specs()[index];
    const runtime::IoSpec& input = state.input;
    write_struct(info,
                 value_info(input.name, input.dtype, input.shape, input.bytes, PYC_VALUE_INPUT));
    if (output != nullptr) *output = state.output.c_str();
    return {};
  });
}

pyc_status pyc_model_state_set(pyc_model* model, size_t index, const pyc_tensor_view* from,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(runtime::Model* const whole, stateful(model, index));
    PYC_ASSIGN(const runtime::TensorView view, to_view(from));
    return whole->states().set(index, view);
  });
}

pyc_status pyc_model_state_get(pyc_model* model, size_t index, const pyc_tensor_view* to,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(runtime::Model* const whole, stateful(model, index));
    PYC_ASSIGN(const runtime::TensorView view, to_view(to));
    return whole->states().get(index, view);
  });
}

pyc_status pyc_model_state_clear(pyc_model* model, size_t index, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(runtime::Model* const whole, stateful(model, index));
    return whole->states().clear(index);
  });
}
