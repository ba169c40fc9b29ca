// What a compile would come to.

#include "pyc/predict.h"

#include <cstddef>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/options.h"
#include "driver/predict.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

// The struct of the first version.
constexpr size_t kFirstPrediction = offsetof(pyc_prediction, copied_bytes);

}  // namespace

pyc_status pyc_predict(const pyc_graph* graph, const pyc_compile_options* options, int32_t smallest,
                       pyc_prediction* prediction, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(check_out_struct(prediction, "pyc_prediction", kFirstPrediction));
    PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(graph->graph()));
    PYC_ASSIGN(const driver::Prediction made,
               driver::predict(std::move(given), to_options(options), smallest != 0));
    pyc_prediction out{};
    out.peak_bytes = made.peak_bytes;
    out.arena_bytes = made.arena_bytes;
    out.steps = made.steps;
    out.recomputed_steps = made.recomputed_steps;
    out.run_ns = made.run_ns;
    out.copied_bytes = made.copied_bytes;
    write_struct(prediction, out);
    return {};
  });
}
