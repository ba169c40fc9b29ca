#pragma once

#include <string>

#include "base/dtype.h"
#include "loop/loop.h"

namespace pyc::cuda {

// How elements lie in memory and how values are held, in the words of a dialect.
std::string memory_type(DType t);
std::string value_type(DType t);

// The C type of a node's values: an i64 whose range is known to be small is an i32, which a GPU
// computes several times as fast. The margin leaves room to step past the end of a loop.
bool is_short_index(const loop::ExprNode& node);
std::string node_type(const loop::ExprNode& node);

// A value as a literal of its value_type (an i64 that is_short_index as i32).
std::string literal(DType t, Word word, bool short_index = false);

// The value `x` of type `from` as one of type `to`, by the rules of base/convert.h.
std::string conversion(const std::string& x, DType from, DType to);
// The value with the same bits; both types have as many.
std::string bitcast_text(const std::string& x, DType from, DType to);

// What a reduction starts with and how two of its values join.
std::string identity_text(loop::ReduceOp op, DType t);
std::string join_text(loop::ReduceOp op, DType t, const std::string& x, const std::string& y);

}  // namespace pyc::cuda
