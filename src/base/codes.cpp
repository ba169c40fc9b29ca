#include "base/codes.h"

#include <array>

namespace pyc {
namespace {

// By number.
constexpr std::array<CodeInfo, kCodeCount> kCodes = {{
    {"ok", "nothing is wrong", ""},
    {"invalid_argument",
     "an option or argument is out of its range, or the number of tensors is wrong",
     "Pass what the message asks for."},
    {"parse_error", "a text or file is malformed; the message names line and column, or the place",
     "Mend the file at the line and column, or the place, that the message names."},
    {"verify_failed", "a graph breaks the rule of Graph IR named in brackets",
     "Mend the graph by the rule in brackets; docs/IR.md lists them."},
    {"shape_mismatch", "shapes do not fit one another or the model; both are named",
     "Make the two shapes the message names fit."},
    {"dtype_mismatch", "the op or the model does not take an element type",
     "Convert the tensor to the element type the message asks for."},
    {"rank_mismatch", "a tensor has another number of dims than needed",
     "Reshape the tensor to the number of dims the message asks for."},
    {"size_mismatch", "a buffer's byte count does not fit its element type, shape and strides",
     "Pass a buffer that holds every element, and its size."},
    {"misaligned", "a tensor's address is no multiple of its element size",
     "Align the tensor's memory to the size of its elements, or leave out strict_views."},
    {"null_pointer", "a tensor has no memory, or a handle or pointer is NULL",
     "Pass memory or a handle where the message names NULL."},
    {"unknown_option", "an option, device, stage or name does not exist",
     "Use one of the known names; the message lists them or suggests one."},
    {"unknown_op", "an op does not exist",
     "Check the name, its domain and its version: the message suggests one, docs/ops.md lists "
     "PyC's "
     "own; an ONNX model can bring an operator of its own as a function."},
    {"unsupported", "the request is valid, but this build, device or target cannot serve it",
     "Use another device, option or element type: the message says which part is not supported."},
    {"budget_exceeded", "a limit would be passed: the memory contract, a file's size, a depth",
     "Raise the budget, or make the model smaller; the message has the sizes."},
    {"out_of_memory", "the system refused memory or a thread",
     "Free memory or use a smaller model or fewer threads."},
    {"compile_failed", "code generation failed, or the system refuses to execute generated code",
     "Please report it with the model; `--device reference` runs it without generated code."},
    {"runtime_failed", "a check inside a kernel failed, e.g. a gather index out of range",
     "Change the input values the message names; the outputs of this run are void."},
    {"io_error", "a file could not be read or written; the system's reason is given",
     "Look at the system's reason in the message: rights, space, the device."},
    {"not_found", "a file or name does not exist", "Check the path or the name."},
    {"internal", "an invariant of PyC is broken",
     "Please report it with the message: an invariant of PyC is broken."},
}};

}  // namespace

CodeInfo code_info(Code code) {
  const int number = static_cast<int>(code);
  if (number < 0 || number >= kCodeCount) return {"unknown", "", ""};
  return kCodes[static_cast<size_t>(number)];
}

std::string_view code_name(Code code) { return code_info(code).name; }

}  // namespace pyc
