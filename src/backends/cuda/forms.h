#pragma once

#include <optional>
#include <string>

#include "backends/cuda/emitter.h"
#include "backends/cuda/kernel_text.h"

namespace pyc::cuda {

// The forms; all but serial return nothing where they do not fit the kernel.
std::optional<KernelText> flat_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, const std::vector<bool>& unaligned);
std::optional<KernelText> rows_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, const std::vector<bool>& unaligned);
std::optional<KernelText> team_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, int64_t least_extent);
KernelText serial_text(const loop::Kernel& kernel, const std::string& symbol,
                       const Dialect& dialect);

// What all forms have in common.
std::vector<uint32_t> parameters_of(const loop::Kernel& kernel);
// `resident`: how many blocks must fit into a multiprocessor, 0 for as many as may be; `cluster`:
// how many run together.
std::string kernel_head(const KernelText& text, const loop::Kernel& kernel, bool barriers,
                        int64_t resident = 0, int64_t cluster = 1);
// Declares the variables as the digits of `index`, an integer of the type, the last fastest.
void declare_digits(Emitter& emitter, const std::string& index, const std::string& type,
                    const std::vector<loop::VarId>& vars, const std::vector<int64_t>& extents);
// Declares a variable as `text` under a name; nothing if there is none.
void declare_index(Emitter& emitter, loop::VarId var, const std::string& name,
                   const std::string& text);
// The value of `x`, a variable of that type, in another thread of the warp: "down" by `by` (",
// 4u"), at the number "xor" it, or the "first" one's.
std::string shuffle_text(const std::string& how, const std::string& x, DType t,
                         const std::string& by);
// Whether `offset` counts the elements of rows that lie one after the other, as the points are
// counted: rows of the loop.
bool counts_rows(const loop::Kernel& kernel, const loop::Loop& l, loop::ExprId offset);
// A value of that type as a word of 4 or 8 bytes ("u32", "u64"), and back.
std::string word_type(DType t);
std::string as_word(const std::string& x, DType t);
std::string from_word(const std::string& x, DType t);
// i32 where all numbers up to `n` and a grid's stride beyond it fit.
std::string counter_type(int64_t n);

// What a launch may pass: 4096 bytes on every device.
inline constexpr size_t kMostParameters = 500;

inline constexpr int64_t kMostBlocks = int64_t{1} << 16;

}  // namespace pyc::cuda
