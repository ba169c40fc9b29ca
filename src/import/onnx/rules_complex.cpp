// What ops do to complex tensors. The standard lets them be moved about, and nothing be computed
// with them: a node is run on the real and on the imaginary parts, which is exact for every op that
// is linear in its data. Ops that are not here take no complex numbers.

#include <fmt/format.h>

#include <algorithm>

#include "host/complex.h"
#include "host/elements.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};
constexpr size_t kMaskBits = 64;

bool is_complex_tensor(const DynValue& value) {
  return value.is_tensor() && is_complex(value.dtype);
}

// Inputs beyond the mask are like its last.
bool is_data(uint64_t mask, size_t input) {
  return (mask >> std::min(input, kMaskBits - 1) & 1) != 0;
}

// The inputs with the parts of complex ones in their place. Data is complex throughout, and of one
// type; nothing else is.
Result<std::vector<host::ComplexParts>> split_inputs(const HostCall& call, uint64_t data) {
  const DynValue* first = nullptr;
  std::vector<host::ComplexParts> inputs;
  for (size_t i = 0; i < call.inputs(); ++i) {
    const DynValue& input = call.input(i);
    if (is_complex_tensor(input) != (is_data(data, i) && !input.absent())) {
      return Status(
          Code::kDtypeMismatch,
          fmt::format("input {}: expected {}, found {}", i,
                      is_data(data, i) ? "complex numbers" : "real numbers", input.to_string()));
    }
    if (!is_complex_tensor(input)) {
      inputs.push_back({input, input});
      continue;
    }
    if (first == nullptr) first = &input;
    if (input.dtype != first->dtype) {
      return Status(Code::kDtypeMismatch, fmt::format("expected one type, found {} and {}",
                                                      first->to_string(), input.to_string()));
    }
    PYC_ASSIGN(host::ComplexParts parts, host::split_parts(input));
    inputs.push_back(std::move(parts));
  }
  return inputs;
}

Result<std::vector<DynValue>> run_part(HostCall& call,
                                       const std::vector<host::ComplexParts>& inputs,
                                       DynValue host::ComplexParts::*part) {
  std::vector<DynValue> values;
  for (const host::ComplexParts& input : inputs) values.push_back(input.*part);
  return call.run_node(std::move(values));
}

// Inputs whose bit is set are data.
template <uint64_t Data = 1>
Status by_parts(HostCall& call) {
  PYC_ASSIGN(const std::vector<host::ComplexParts> inputs, split_inputs(call, Data));
  PYC_ASSIGN(const std::vector<DynValue> real, run_part(call, inputs, &host::ComplexParts::real));
  PYC_ASSIGN(const std::vector<DynValue> imaginary,
             run_part(call, inputs, &host::ComplexParts::imaginary));
  for (size_t i = 0; i < real.size(); ++i) {
    if (real[i].absent()) continue;
    PYC_ASSIGN(DynValue joined, host::join_parts({real[i], imaginary[i]}));
    call.set_output(i, std::move(joined));
  }
  return {};
}

// Ops that only ask for the shape.
Status measure(HostCall& call) {
  PYC_ASSIGN(const std::vector<host::ComplexParts> inputs, split_inputs(call, 1));
  return give_all(call, run_part(call, inputs, &host::ComplexParts::real));
}

// Data and updates; input 1 is the indices.
Status scatter(HostCall& call) {
  const std::string reduction = call.attr_string("reduction", "none");
  if (reduction == "none" || reduction == "add") return by_parts<0b101>(call);
  return {Code::kUnsupported,
          fmt::format("reduction '{}' computes with complex numbers", reduction)};
}

// Ops that fill with a number which an attribute gives, and which would fill both parts.
template <Name Filler, uint64_t Data>
Status filled(HostCall& call) {
  const double filler = call.attr_float(Filler.text, 0.0);
  if (filler == 0.0) return by_parts<Data>(call);
  return {Code::kUnsupported,
          fmt::format("attribute '{}': expected 0 beside complex numbers, found {}", Filler.text,
                      filler)};
}

Status complex_nonzero(HostCall& call) {
  return give(call, host::nonzero_complex(input_of(call, 0)));
}

constexpr ComplexRule kComplexRules[] = {
    {"CenterCropPad", by_parts<>},
    {"Col2Im", by_parts<>},
    {"Compress"},
    {"Concat", by_parts<kAll>},
    {"ConcatFromSequence"},
    {"DepthToSpace", by_parts<>},
    {"Expand", by_parts<>},
    {"Flatten", by_parts<>},
    {"Gather", by_parts<>},
    {"GatherElements", by_parts<>},
    {"GatherND", by_parts<>},
    {"GridSample", by_parts<>},
    {"Identity"},
    {"If"},
    {"Loop"},
    {"NonZero", complex_nonzero},
    {"OneHot", by_parts<0b100>},
    {"Optional"},
    {"OptionalGetElement"},
    {"OptionalHasElement"},
    {"Pad", filled<"value", 0b101>},
    {"Reshape", by_parts<>},
    {"Resize", filled<"extrapolation_value", 0b1>},
    {"ReverseSequence", by_parts<>},
    {"Scan"},
    {"Scatter", by_parts<0b101>},
    {"ScatterElements", scatter},
    {"ScatterND", scatter},
    {"SequenceAt"},
    {"SequenceConstruct"},
    {"SequenceErase"},
    {"SequenceInsert"},
    {"SequenceLength"},
    {"SequenceMap"},
    {"Shape", measure},
    {"Size", measure},
    {"Slice", by_parts<>},
    {"SpaceToDepth", by_parts<>},
    {"Split", by_parts<>},
    {"SplitToSequence"},
    {"Squeeze", by_parts<>},
    {"TensorScatter", by_parts<0b11>},
    {"Tile", by_parts<>},
    {"Transpose", by_parts<>},
    {"Trilu", by_parts<>},
    {"Unsqueeze", by_parts<>},
    {"Upsample", by_parts<>},
    {"Where", by_parts<0b110>},
};

}  // namespace

std::span<const ComplexRule> complex_rules() { return kComplexRules; }

}  // namespace pyc::onnx
