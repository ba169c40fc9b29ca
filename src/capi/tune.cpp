// Measuring kernels.

#include "pyc/tune.h"

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/options.h"
#include "tune/tune.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

double best_ns(const driver::TunedGroup& tuned, const std::string& name) {
  const driver::MeasuredKernel* kernel = tuned.find(name);
  return kernel == nullptr ? 0.0 : static_cast<double>(kernel->best_ns);
}

pyc_tuned_group group_to_c(const tune::Step& step) {
  const driver::TunedGroup& tuned = *step.tuned;
  const driver::MeasuredKernel* chosen = tuned.find(tuned.chosen);
  pyc_tuned_group out{};
  out.struct_size = sizeof(out);
  out.done = step.done;
  out.all = step.all;
  out.group = step.group.c_str();
  out.untuned = tuned.untuned.c_str();
  out.chosen = tuned.chosen.c_str();
  out.untuned_ns = best_ns(tuned, tuned.untuned);
  out.chosen_ns = best_ns(tuned, tuned.chosen);
  out.predicted_ns = chosen == nullptr ? 0.0 : static_cast<double>(chosen->predicted_ns);
  out.flops = step.flops;
  out.known = step.known ? 1 : 0;
  out.candidates = static_cast<int32_t>(tuned.kernels.size());
  return out;
}

}  // namespace

pyc_status pyc_tune(const pyc_graph* graph, const pyc_compile_options* options, int64_t budget_ms,
                    int32_t (*after_group)(void* user, const pyc_tuned_group* group), void* user,
                    pyc_tune_report* report, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(check_out_struct(report, "pyc_tune_report", sizeof(pyc_tune_report)));
    PYC_ASSIGN(const ir::VerifiedGraph given, ir::verify_graph(graph->graph()));
    tune::Request request{.budget_ms = budget_ms};
    if (after_group != nullptr) {
      request.after_group = [&](const tune::Step& step) {
        const pyc_tuned_group group = group_to_c(step);
        return after_group(user, &group) == 0;
      };
    }
    PYC_ASSIGN(const tune::Report made, tune::tune(given, to_options(options), request));
    pyc_tune_report out{};
    out.groups = made.groups;
    out.measured = made.measured;
    out.known = made.known;
    out.left = made.left();
    out.changed = made.changed;
    out.near_best = made.near;
    out.wrong = made.wrong;
    out.flops_per_ns = made.probe.flops_per_ns;
    out.bytes_per_ns = made.probe.bytes_per_ns;
    out.step_ns = made.probe.step_ns;
    write_struct(report, out);
    return {};
  });
}
