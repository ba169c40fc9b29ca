#!/usr/bin/env python3
"""Writes the wrappers of the wgmma instructions the probe uses: inline PTX has one operand per register.

usage: wgmma_text.py > wgmma_text.cuh

Shared<FORMAT, N>::mma takes A from shared memory, Registers<FORMAT, N>::mma from four registers. Formats are numbered as
probe::Format. keep = 0 starts without accumulator.
"""

FORMATS = [("bf16.bf16", 16), ("f16.f16", 16), ("e4m3.e4m3", 32), ("e5m2.e5m2", 32), ("e4m3.e5m2", 32)]
ALL = [8, 64, 256]
GEMM = [96, 128, 192]


def wrapper(number, n, registers):
    name, k = FORMATS[number]
    count = n // 2
    a = count
    b = a + (4 if registers else 1)
    keep = b + 1
    majors = "" if k == 32 else (", 0" if registers else ", 0, 0")
    dest = ", ".join(f"%{i}" for i in range(count))
    a_text = "{%s}" % ", ".join(f"%{a + i}" for i in range(4)) if registers else f"%{a}"
    a_parameter = "const uint32_t (&a)[4]" if registers else "uint64_t a"
    a_operands = ", ".join(f'"r"(a[{i}])' for i in range(4)) if registers else '"l"(a)'
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    struct = "Registers" if registers else "Shared"
    return f"""template <>
struct {struct}<{number}, {n}> {{
  static __device__ __forceinline__ void mma(float (&d)[{count}], {a_parameter}, uint64_t b, int keep) {{
    asm volatile(
        "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{keep}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{name} {{{dest}}}, {a_text}, %{b}, p, 1, 1{majors};\\n}}"
        : {outputs}
        : {a_operands}, "l"(b), "r"(keep));
  }}
}};
"""


def main():
    print("#pragma once\n// Written by wgmma_text.py.\n#include <cstdint>\n")
    print("template <int FORMAT, int N>\nstruct Shared;\ntemplate <int FORMAT, int N>\nstruct Registers;\n")
    for number in range(len(FORMATS)):
        for n in ALL + (GEMM if number == 0 else []):
            print(wrapper(number, n, False))
        for n in [64, 256]:
            print(wrapper(number, n, True))


main()
