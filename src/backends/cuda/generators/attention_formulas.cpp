#include "backends/cuda/generators/attention_formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/cuda/c_types.h"
#include "backends/cuda/launch.h"
#include "loop/function.h"

namespace pyc::cuda {

using lower::Attention;

// The formulas travel through the copy as if they were stored.
AttentionFormulas::AttentionFormulas(const lower::Group& group, std::string symbol)
    : a_(*group.attention), symbol_(std::move(symbol)) {
  std::vector<loop::ExprId> formulas{a_.score, a_.weight, a_.factor};
  for (const Attention::Output& out : a_.outputs) {
    if (out.buffer != loop::kNone) formulas.push_back(out.value);
  }
  loop::Kernel copy = group.kernel;
  const size_t first = copy.stores.size();
  for (const loop::ExprId e : formulas) copy.stores.push_back({0, loop::kNone, e});
  kernel_ = loop::without_calls(std::move(copy));
  for (size_t i = 0; i < formulas.size(); ++i) {
    written_[formulas[i]] = kernel_.stores[first + i].value;
  }
  kernel_.stores.resize(first);
}

void AttentionFormulas::declare_place(Emitter& emitter) const {
  for (size_t i = 0; i < a_.batch.size(); ++i) {
    if (a_.batch_vars[i] != loop::kNone) emitter.declare(a_.batch_vars[i], fmt::format("at{}", i));
  }
}

std::string AttentionFormulas::place_of(const std::string& head) const {
  std::string text;
  std::string rest = head;
  for (size_t i = a_.batch.size(); i-- > 0;) {
    text += fmt::format("const i64 at{0} = {1} % {2};\nconst i32 head{0} = {1} / {2};\n", i, rest,
                        a_.batch[i]);
    rest = fmt::format("head{}", i);
  }
  return text;
}

std::string AttentionFormulas::assigned(
    const std::string& into, loop::ExprId value,
    std::initializer_list<std::pair<loop::VarId, const char*>> known,
    const std::string& type) const {
  return text([&](Emitter& emitter) {
    for (const auto& [var, name] : known) {
      if (var != loop::kNone) emitter.declare(var, name);
    }
    emitter.line(fmt::format("{} = ({}){};", into, type, emitter.value(value)));
  });
}

std::string AttentionFormulas::operand(const char* name, const Attention::Operand& x) const {
  std::string at = fmt::format("{}ll", x.base);
  for (size_t i = 0; i < x.batch_strides.size(); ++i) {
    if (x.batch_strides[i] != 0) at += fmt::format(" + at{} * {}ll", i, x.batch_strides[i]);
  }
  return fmt::format("PYC_GLOBAL const {}* {} = {} + ({});\n", memory_type(x.dtype), name,
                     buffer_name(x.buffer), at);
}

bool lies_by(int64_t elements, const lower::Group& group, const Attention::Operand& x,
             int64_t extent) {
  const auto whole = [&](int64_t n) { return n % elements == 0; };
  return x.column_stride == 1 && whole(extent) && whole(x.base) && whole(x.row_stride) &&
         std::all_of(x.batch_strides.begin(), x.batch_strides.end(), whole) &&
         group.buffer_offset_bytes(x.buffer) % kBufferAlignment == 0;
}

}  // namespace pyc::cuda
