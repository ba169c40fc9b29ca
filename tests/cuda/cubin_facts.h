#pragma once

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace pyc::test {

// Registers and stack of a cubin's one kernel, from the attributes that its section .nv.info lists:
// format, number, size, then what the format says; format 4 is a symbol and a number.
struct CubinFacts {
  uint32_t registers = 0;
  uint32_t frame_bytes = 0;
};

inline CubinFacts facts_of(const std::string& image) {
  const auto at = [&](size_t offset, auto& out) {
    ASSERT_LE(offset + sizeof(out), image.size());
    memcpy(&out, image.data() + offset, sizeof(out));
  };
  CubinFacts facts;
  Elf64_Ehdr head{};
  at(0, head);
  for (size_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section{};
    at(head.e_shoff + i * sizeof(section), section);
    Elf64_Shdr names{};
    at(head.e_shoff + head.e_shstrndx * sizeof(names), names);
    if (std::string(image.c_str() + names.sh_offset + section.sh_name) != ".nv.info") continue;
    for (size_t p = section.sh_offset; p + 4 <= section.sh_offset + section.sh_size;) {
      const auto format = static_cast<uint8_t>(image[p]);
      const auto number = static_cast<uint8_t>(image[p + 1]);
      uint16_t size = 0;
      at(p + 2, size);
      if (format == 4 && number == 0x2f) at(p + 8, facts.registers);
      if (format == 4 && number == 0x11) at(p + 8, facts.frame_bytes);
      p += 4 + (format == 4 ? size : 0);
    }
  }
  return facts;
}

}  // namespace pyc::test
