#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace pyc {

// Conversions between element types by the rules of docs/NUMERICS.md: one rounding, to nearest
// even, straight from the source type; float to int truncates and saturates with NaN to 0; int to
// int keeps the low bits; anything to bool is x != 0 (NaN is true). A NaN becomes the positive
// canonical NaN of the other float type (f32 0x7FC00000, f16 0x7E00, bf16 0x7FC0, f8e4m3fn 0x7F,
// f8e5m2 0x7E, the fnuz types 0x80, f8e8m0 0xFF); converting a type to itself keeps the bits.
//
// f8e5m2 overflows to infinity. f8e4m3fn and the fnuz types have none: what rounds beyond their
// largest number (448, 240, 57344) becomes NaN; the fnuz types have no -0 either, it becomes +0.
// f4e2m1 has neither infinity nor NaN: it saturates at ±6, and NaN becomes 6. f8e8m0 is a power of
// two from 2^-127 to 2^127: numbers between are rounded up, all others become NaN, zero included.

uint16_t f32_to_f16(float x);
uint16_t f32_to_bf16(float x);
uint8_t f32_to_f8e4m3fn(float x);
uint8_t f32_to_f8e5m2(float x);
uint16_t f64_to_f16(double x);
uint16_t f64_to_bf16(double x);
uint8_t f64_to_f8e4m3fn(double x);
uint8_t f64_to_f8e5m2(double x);

// `count` f32 from `in`, as f16 or bf16 (`to`) to `out`; any alignment. Whether a finite one of
// them became an infinity.
bool narrow_floats(const std::byte* in, size_t count, DType to, std::byte* out);

float f16_to_f32(uint16_t bits);
float bf16_to_f32(uint16_t bits);
float f8e4m3fn_to_f32(uint8_t bits);
float f8e5m2_to_f32(uint8_t bits);

// One element held in a 64-bit word: floats as their bit pattern in the low bits, signed integers
// sign-extended, unsigned integers and bool zero-extended. This is the form of constants in Loop IR
// and of the evaluator's registers.
using Word = uint64_t;

// The value of `x`, an element of type `from`, as an element of type `to`.
Word convert_word(Word x, DType from, DType to);

// Reads or writes the element at `p` (any alignment). Any bool byte but 0 reads as 1.
Word load_word(const void* p, DType t);
void store_word(void* p, DType t, Word x);

// The element of type `t` nearest to `x` (saturating for integers, as convert_word does).
Word word_from_double(double x, DType t);
Word word_from_int(int64_t x, DType t);
double word_to_double(Word x, DType t);

}  // namespace pyc
