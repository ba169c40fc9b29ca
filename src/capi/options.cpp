#include "capi/options.h"

#include <memory>
#include <string>
#include <vector>

#include "capi/guard.h"
#include "driver/contract.h"
#include "driver/devices.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

std::unique_ptr<const ShownOption> show(const driver::OptionRow& row) {
  auto out = std::make_unique<ShownOption>();
  out->name = row.name;
  out->help = row.help;
  out->form = row.accepts.form;
  out->initial = row.text(driver::CompileOptions());
  if (row.accepts.words != nullptr) {
    for (const std::string_view word : row.accepts.words()) out->words.emplace_back(word);
  }
  for (const int64_t number : row.accepts.among) out->words.push_back(std::to_string(number));
  out->point();
  pyc_option_info& info = out->info;
  info.kind = static_cast<int32_t>(row.kind);
  info.effect = static_cast<int32_t>(row.effect);
  info.offer = static_cast<int32_t>(row.offer);
  info.other_bits = row.bits == driver::OptionBits::kOtherBits ? 1 : 0;
  info.lo = row.accepts.lo;
  info.hi = row.accepts.hi;
  return out;
}

const std::vector<std::unique_ptr<const ShownOption>>& shown_options() {
  static const auto shown = [] {
    std::vector<std::unique_ptr<const ShownOption>> all;
    for (const driver::OptionRow& row : driver::option_rows()) {
      if (row.offer != driver::OptionOffer::kInternal) all.push_back(show(row));
    }
    return all;
  }();
  return shown;
}

}  // namespace

namespace pyc::capi {

void ShownOption::point() {
  for (const std::string& word : words) word_pointers.push_back(word.c_str());
  info.name = name.c_str();
  info.help = help.c_str();
  info.initial = initial.c_str();
  info.form = form.c_str();
  info.words = word_pointers.data();
  info.word_count = word_pointers.size();
}

driver::CompileOptions to_options(const pyc_compile_options* given) {
  return given == nullptr ? driver::CompileOptions() : given->values;
}

open::ShapeChoice to_shapes(const pyc_compile_options* given) {
  if (given == nullptr) return {};
  return {given->values.dims, given->values.shapes};
}

}  // namespace pyc::capi

pyc_status pyc_compile_options_create(pyc_compile_options** options, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    *options = new pyc_compile_options();
    return {};
  });
}

pyc_status pyc_compile_options_copy(const pyc_compile_options* from, pyc_compile_options** options,
                                    pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(from, "from"));
    PYC_TRY(require(options, "options"));
    *options = new pyc_compile_options(*from);
    return {};
  });
}

void pyc_compile_options_destroy(pyc_compile_options* options) { delete options; }

pyc_status pyc_compile_options_set(pyc_compile_options* options, const char* name,
                                   const char* value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    PYC_TRY(require(name, "name"));
    PYC_TRY(require(value, "value"));
    return driver::set_option(options->values, name, value);
  });
}

pyc_status pyc_compile_options_reset(pyc_compile_options* options, const char* name,
                                     pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    PYC_TRY(require(name, "name"));
    return driver::reset_option(options->values, name);
  });
}

pyc_status pyc_compile_options_get(const pyc_compile_options* options, const char* name,
                                   char** value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    PYC_TRY(require(name, "name"));
    PYC_ASSIGN(const driver::OptionRow* row, driver::find_option(name));
    return give_text(row->text(options->values), value);
  });
}

pyc_status pyc_compile_options_contract(pyc_compile_options* options, const char* text,
                                        pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    PYC_TRY(require(text, "text"));
    return driver::add_contract(options->values, text);
  });
}

pyc_status pyc_compile_options_progress(pyc_compile_options* options,
                                        void (*progress)(void* user, int64_t done, int64_t all),
                                        void* user, void (*release)(void* user),
                                        pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    if (progress == nullptr) {
      options->values.progress = {};
      if (release != nullptr) release(user);
      return {};
    }
    const std::shared_ptr<void> kept(user, [release](void* u) {
      if (release != nullptr) release(u);
    });
    options->values.progress = [progress, kept](int64_t done, int64_t all) {
      progress(kept.get(), done, all);
    };
    return {};
  });
}

pyc_status pyc_compile_options_share_code(pyc_compile_options* options, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    PYC_ASSIGN(const backends::Backend* backend, driver::find_backend(options->values.device));
    options->values.store = backend->make_store();
    return {};
  });
}

size_t pyc_option_count(void) {
  size_t count = 0;
  guard(nullptr, [&]() -> Status {
    count = shown_options().size();
    return {};
  });
  return count;
}

pyc_status pyc_option(size_t index, pyc_option_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_option_info", sizeof(pyc_option_info)));
    PYC_TRY(require_index(index, shown_options().size(), "option"));
    write_struct(info, shown_options()[index]->info);
    return {};
  });
}
