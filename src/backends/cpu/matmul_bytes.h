#pragma once

// What a product of bytes has of its own: which form its operands are packed in, tiles, and the
// packing of constants. The rest is as for f32 (matmul.h).

#include <string>

#include "backends/cpu/matmul.h"

namespace pyc::cpu {

// Whether both operands are bytes less a zero point, summed in i32.
bool multiplies_bytes(const lower::Contraction& contraction);

// The target with the lanes that tiles of bytes have, whatever it was asked for.
CodegenTarget byte_target(const CodegenTarget& target);

// Makes it a plan of bytes: sets the unit, how many k a step has, and k.
void begin_bytes(const lower::Contraction& contraction, const CodegenTarget& target, MatmulPlan& p);

// Most rows of a tile of so many columns in the registers of a unit that takes rows in twos.
int most_byte_rows(int columns);

// Signs and sums of the packed operands, from what is constant: rows and weights are chosen.
void choose_byte_forms(const lower::Contraction& contraction, MatmulPlan& p);

// The unit's name in a kernel's, and all that a packed operand's layout depends on but its tile.
std::string byte_unit_name(const MatmulPlan& plan);
std::string byte_form_text(const MatmulPlan& plan, const MatmulPlan::Bytes& form);

// pack_b and pack_a of bytes.
runtime::Parameter pack_byte_panels(const MatmulPlan& plan, const lower::Contraction& contraction,
                                    const void* data);
runtime::Parameter pack_byte_rows(const MatmulPlan& plan, const lower::Contraction& contraction,
                                  const void* data);

}  // namespace pyc::cpu
