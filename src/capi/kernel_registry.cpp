#include "pyc/kernel_registry.h"

#include <utility>

#include "base/target_info.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "driver/devices.h"
#include "ir/rules.h"
#include "tooling/tables.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

constexpr std::string_view kKernelDecision = "kernel:";

// Defaults as text, by op and attribute: made once, handed out as pointers.
const std::vector<std::string>& fallbacks(size_t op) {
  static const auto table = [] {
    std::vector<std::vector<std::string>> rows;
    for (const ir::OpDef* def : tooling::known_ops().all()) {
      std::vector<std::string>& row = rows.emplace_back();
      for (const ir::AttrDef& attr : def->attrs) {
        row.push_back(attr.may_be_absent ? "none" : ir::attr_to_string(attr.fallback));
      }
    }
    return rows;
  }();
  return table[op];
}

Result<size_t> find_op(const char* name) {
  PYC_TRY(require(name, "name"));
  const auto all = tooling::known_ops().all();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i]->name == name) return i;
  }
  return Status(Code::kUnknownOp,
                fmt::format("op '{}' is not known{}", name,
                            ir::did_you_mean(tooling::known_ops().suggest(name))));
}

// The struct of the first version.
constexpr size_t kFirstKernelInfo = offsetof(pyc_kernel_info, measured_ns);

// The candidates of all groups, counted through.
template <class Visit>
void for_each_kernel(const pyc_model& model, Visit visit) {
  const exec::GrowingLog& log = model.session->log();
  for (size_t i = 0; i < log.size(); ++i) {
    const Decision& d = log.at(i);
    if (!std::string_view(d.what).starts_with(kKernelDecision)) continue;
    for (const Alternative& a : d.alternatives) visit(d, a);
  }
}

}  // namespace

size_t pyc_op_count(void) {
  size_t count = 0;
  guard(nullptr, [&]() -> Status {
    count = tooling::known_ops().all().size();
    return {};
  });
  return count;
}

pyc_status pyc_op(size_t index, pyc_op_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_op_info", sizeof(pyc_op_info)));
    const auto all = tooling::known_ops().all();
    PYC_TRY(require_index(index, all.size(), "op"));
    const ir::OpDef& def = *all[index];
    pyc_op_info out{};
    out.name = def.name.data();
    out.summary = def.summary.data();
    out.min_inputs = def.min_inputs;
    out.max_inputs = def.max_inputs >= ir::kVariadic ? -1 : def.max_inputs;
    out.outputs = def.outputs;
    out.composite = def.decompose != nullptr ? 1 : 0;
    out.attribute_count = def.attrs.size();
    out.no_gradient = def.no_gradient.data();
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_op_attribute(size_t op, size_t index, pyc_attribute_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_attribute_info", sizeof(pyc_attribute_info)));
    const auto all = tooling::known_ops().all();
    PYC_TRY(require_index(op, all.size(), "op"));
    PYC_TRY(require_index(index, all[op]->attrs.size(), "attribute"));
    const ir::AttrDef& attr = all[op]->attrs[index];
    pyc_attribute_info out{};
    out.name = attr.name.data();
    out.kind = ir::attr_kind_name(attr.kind).data();
    out.fallback = attr.required ? nullptr : fallbacks(op)[index].c_str();
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_op_find(const char* name, size_t* index, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(index, "index"));
    PYC_ASSIGN(*index, find_op(name));
    return {};
  });
}

size_t pyc_device_count(void) {
  size_t count = 0;
  guard(nullptr, [&]() -> Status {
    count = driver::device_names().size();
    return {};
  });
  return count;
}

pyc_status pyc_device(size_t index, pyc_device_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_device_info", sizeof(pyc_device_info)));
    const auto names = driver::device_names();
    PYC_TRY(require_index(index, names.size(), "device"));
    PYC_ASSIGN(const backends::Backend* backend, driver::find_backend(names[index]));
    const backends::Capabilities can = backend->capabilities();
    pyc_device_info out{};
    out.name = names[index].data();
    out.runs = backend->loader().available().ok() ? 1 : 0;
    out.strict = can.ieee_floats ? 1 : 0;
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_device_op_dtypes(const char* device, const char* op, uint64_t* dtypes,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(device, "device"));
    PYC_TRY(require(dtypes, "dtypes"));
    PYC_TRY(driver::find_backend(device).status());
    PYC_ASSIGN(const size_t index, find_op(op));
    PYC_ASSIGN(*dtypes, tooling::device_dtypes(device, *tooling::known_ops().all()[index]));
    return {};
  });
}

pyc_status pyc_get_cpu(pyc_cpu_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_cpu_info", sizeof(pyc_cpu_info)));
    static const TargetInfo target = host_target();
    static const std::string features = target.features();
    pyc_cpu_info out{};
    out.arch = target.arch.c_str();
    out.features = features.c_str();
    out.cores = target.cores;
    out.vector_bytes = target.vector_bytes;
    out.l1_bytes = target.l1_bytes;
    out.l2_bytes = target.l2_bytes;
    out.l3_bytes = target.l3_bytes;
    write_struct(info, out);
    return {};
  });
}

size_t pyc_model_kernel_count(const pyc_model* model) {
  size_t count = 0;
  if (model != nullptr) for_each_kernel(*model, [&](const auto&, const auto&) { ++count; });
  return count;
}

pyc_status pyc_model_kernel(const pyc_model* model, size_t index, pyc_kernel_info* info,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(info, "pyc_kernel_info", kFirstKernelInfo));
    PYC_TRY(require_index(index, pyc_model_kernel_count(model), "kernel"));
    size_t at = 0;
    for_each_kernel(*model, [&](const Decision& d, const Alternative& a) {
      if (at++ != index) return;
      pyc_kernel_info out{};
      out.group = d.what.c_str() + kKernelDecision.size();
      out.name = a.name.c_str();
      out.rejected = a.rejected.c_str();
      out.cost_ns = a.cost_ns;
      out.chosen = a.name == d.chosen ? 1 : 0;
      out.measured_ns = a.measured_ns;
      write_struct(info, out);
    });
    return {};
  });
}
