// Loads a relocatable ELF object without a linker: sections are copied into one mapping, the few
// relocations that position-independent code with its own constants needs are applied, and the
// pages get their final protection. An object is checked as if it came from a stranger.

#include "runtime/code_module.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>

namespace pyc::runtime {
namespace {

#if defined(__aarch64__)
constexpr uint16_t kHostMachine = EM_AARCH64;
#elif defined(__x86_64__)
constexpr uint16_t kHostMachine = EM_X86_64;
#else
constexpr uint16_t kHostMachine = EM_NONE;
#endif

Status malformed(const std::string& what) {
  return {Code::kParseError, "not a well-formed relocatable ELF object: " + what};
}

// A read-only view of an object's tables; every access is checked against the bytes there are.
class ElfObject {
 public:
  static Result<ElfObject> parse(std::string_view bytes);

  uint16_t machine() const { return header_.e_machine; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }
  std::string symbol_name(const Elf64_Sym& s) const;
  std::string_view bytes() const { return bytes_; }
  // The entries of a table section.
  template <class T>
  Result<std::vector<T>> table(const Elf64_Shdr& s) const;

 private:
  bool within(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

  std::string_view bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_;
};

template <class T>
Result<std::vector<T>> ElfObject::table(const Elf64_Shdr& s) const {
  if (s.sh_entsize != sizeof(T) || s.sh_size % sizeof(T) != 0 || !within(s.sh_offset, s.sh_size)) {
    return malformed("a table is cut off");
  }
  std::vector<T> entries(s.sh_size / sizeof(T));
  if (!entries.empty()) std::memcpy(entries.data(), bytes_.data() + s.sh_offset, s.sh_size);
  return entries;
}

Result<ElfObject> ElfObject::parse(std::string_view bytes) {
  ElfObject o;
  o.bytes_ = bytes;
  if (bytes.size() < sizeof(Elf64_Ehdr)) return malformed("too short");
  std::memcpy(&o.header_, bytes.data(), sizeof(Elf64_Ehdr));
  const Elf64_Ehdr& h = o.header_;
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
      h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_type != ET_REL) {
    return malformed("expected 64 bits, little endian, ET_REL");
  }
  if (h.e_shentsize != sizeof(Elf64_Shdr) ||
      !o.within(h.e_shoff, uint64_t{h.e_shnum} * sizeof(Elf64_Shdr))) {
    return malformed("the section table is cut off");
  }
  o.sections_.resize(h.e_shnum);
  if (h.e_shnum > 0) {
    std::memcpy(o.sections_.data(), bytes.data() + h.e_shoff, h.e_shnum * sizeof(Elf64_Shdr));
  }
  for (const Elf64_Shdr& s : o.sections_) {
    if (s.sh_type != SHT_NOBITS && !o.within(s.sh_offset, s.sh_size)) {
      return malformed("a section is cut off");
    }
    if (s.sh_type != SHT_SYMTAB) continue;
    if (s.sh_link >= o.sections_.size()) return malformed("symbols without names");
    PYC_ASSIGN(o.symbols_, o.table<Elf64_Sym>(s));
    const Elf64_Shdr& names = o.sections_[s.sh_link];
    if (!o.within(names.sh_offset, names.sh_size)) return malformed("symbols without names");
    o.names_ = bytes.substr(names.sh_offset, names.sh_size);
  }
  return o;
}

std::string ElfObject::symbol_name(const Elf64_Sym& s) const {
  if (s.st_name >= names_.size()) return "";
  const std::string_view rest = names_.substr(s.st_name);
  return std::string(rest.substr(0, rest.find('\0')));
}

std::vector<std::string> undefined_in(const ElfObject& object) {
  std::vector<std::string> names;
  for (size_t i = 1; i < object.symbols().size(); ++i) {
    const Elf64_Sym& s = object.symbols()[i];
    if (s.st_shndx == SHN_UNDEF) names.push_back(object.symbol_name(s));
  }
  return names;
}

class LoadedModule final : public CodeModule {
 public:
  explicit LoadedModule(const ElfObject& object) : object_(object) {}
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  ~LoadedModule() override {
    if (memory_ != nullptr) munmap(memory_, size_);
  }

  Status load() {
    PYC_TRY(place());
    PYC_TRY(map());
    PYC_TRY(relocate());
    PYC_TRY(protect());
    for (const Elf64_Sym& s : object_.symbols()) {
      if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || ELF64_ST_BIND(s.st_info) == STB_LOCAL) continue;
      if (s.st_shndx >= places_.size() || s.st_value >= code_size_) continue;
      functions_[object_.symbol_name(s)] = memory_ + places_[s.st_shndx] + s.st_value;
    }
    object_ = ElfObject();
    return {};
  }

  pyc_kernel_fn lookup(std::string_view symbol) const override {
    const auto it = functions_.find(symbol);
    if (it == functions_.end()) return nullptr;
    return reinterpret_cast<pyc_kernel_fn>(it->second);
  }
  int64_t mapped_bytes() const override { return static_cast<int64_t>(size_); }

 private:
  static constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  // Chooses each section's place: code first, then constants on pages of their own.
  Status place() {
    places_.assign(object_.sections().size(), kNowhere);
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (const bool code : {true, false}) {
      for (size_t i = 0; i < places_.size(); ++i) {
        const Elf64_Shdr& s = object_.sections()[i];
        const bool is_code = (s.sh_flags & SHF_EXECINSTR) != 0;
        if ((s.sh_flags & SHF_ALLOC) == 0 || s.sh_size == 0 || is_code != code) continue;
        if ((s.sh_flags & SHF_WRITE) != 0 || s.sh_type != SHT_PROGBITS) {
          return {Code::kInternal, "generated code has data that can be written"};
        }
        const uint64_t align = std::max<uint64_t>(s.sh_addralign, 1);
        if (align > page || (align & (align - 1)) != 0 || s.sh_size > kMaxBytes) {
          return malformed("a section's alignment or size");
        }
        size_ = (size_ + align - 1) / align * align;
        places_[i] = size_;
        size_ += s.sh_size;
        if (size_ > kMaxBytes) return malformed("too large");
      }
      size_ = (size_ + page - 1) / page * page;
      if (code) code_size_ = size_;
    }
    if (code_size_ == 0) return malformed("no code");
    return {};
  }

  Status map() {
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
      return {Code::kOutOfMemory, "mapping " + std::to_string(size_) + " bytes for code"};
    }
    memory_ = static_cast<uint8_t*>(p);
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] == kNowhere) continue;
      const Elf64_Shdr& s = object_.sections()[i];
      std::memcpy(memory_ + places_[i], object_.bytes().data() + s.sh_offset, s.sh_size);
    }
    return {};
  }

  Status relocate() {
    for (const Elf64_Shdr& s : object_.sections()) {
      if (s.sh_type == SHT_REL) return malformed("relocations without addends");
      if (s.sh_type != SHT_RELA || s.sh_info >= places_.size()) continue;
      if (places_[s.sh_info] == kNowhere) continue;
      const uint64_t limit = object_.sections()[s.sh_info].sh_size;
      PYC_ASSIGN(const std::vector<Elf64_Rela> entries, object_.table<Elf64_Rela>(s));
      for (const Elf64_Rela& r : entries) {
        const uint64_t number = ELF64_R_SYM(r.r_info);
        if (number >= object_.symbols().size()) return malformed("a relocation's symbol");
        const Elf64_Sym& symbol = object_.symbols()[number];
        if (symbol.st_shndx >= places_.size() || places_[symbol.st_shndx] == kNowhere) {
          return malformed("a relocation to nowhere");
        }
        if (r.r_offset > limit || limit - r.r_offset < 4) return malformed("a relocation's place");
        const uint64_t room = limit - r.r_offset;
        uint8_t* at = memory_ + places_[s.sh_info] + r.r_offset;
        const uint64_t target = reinterpret_cast<uint64_t>(memory_) + places_[symbol.st_shndx] +
                                symbol.st_value + static_cast<uint64_t>(r.r_addend);
        PYC_TRY(apply(static_cast<uint32_t>(ELF64_R_TYPE(r.r_info)), at, room, target));
      }
    }
    return {};
  }

  static Status apply(uint32_t type, uint8_t* at, uint64_t room, uint64_t target) {
    const auto here = reinterpret_cast<uint64_t>(at);
    const auto distance = static_cast<int64_t>(target - here);
    const auto put32 = [&](uint32_t v) { std::memcpy(at, &v, 4); };
    uint32_t word = 0;
    std::memcpy(&word, at, 4);
    [[maybe_unused]] const auto low12 = [&](unsigned shift) {
      put32((word & ~(0xFFFu << 10)) | static_cast<uint32_t>((target & 0xFFF) >> shift) << 10);
      return Status();
    };
    if (kHostMachine == EM_AARCH64) {
      switch (type) {
        case R_AARCH64_ADR_PREL_PG_HI21: {
          const int64_t pages =
              static_cast<int64_t>((target & ~uint64_t{0xFFF}) - (here & ~uint64_t{0xFFF})) >> 12;
          const auto bits = static_cast<uint32_t>(pages);
          put32((word & 0x9F00001F) | (bits & 3) << 29 | (bits >> 2 & 0x7FFFF) << 5);
          return {};
        }
        case R_AARCH64_ADR_PREL_LO21: {
          const auto bits = static_cast<uint32_t>(distance);
          put32((word & 0x9F00001F) | (bits & 3) << 29 | (bits >> 2 & 0x7FFFF) << 5);
          return {};
        }
        case R_AARCH64_ADD_ABS_LO12_NC:
        case R_AARCH64_LDST8_ABS_LO12_NC:
          return low12(0);
        case R_AARCH64_LDST16_ABS_LO12_NC:
          return low12(1);
        case R_AARCH64_LDST32_ABS_LO12_NC:
          return low12(2);
        case R_AARCH64_LDST64_ABS_LO12_NC:
          return low12(3);
        case R_AARCH64_LDST128_ABS_LO12_NC:
          return low12(4);
        case R_AARCH64_CALL26:
        case R_AARCH64_JUMP26:
          put32((word & 0xFC000000) | (static_cast<uint32_t>(distance >> 2) & 0x03FFFFFF));
          return {};
        case R_AARCH64_PREL32:
          put32(static_cast<uint32_t>(distance));
          return {};
        default:
          break;
      }
    }
    if (kHostMachine == EM_X86_64) {
      switch (type) {
        case R_X86_64_PC32:
        case R_X86_64_PLT32:
          put32(static_cast<uint32_t>(distance));
          return {};
        case R_X86_64_64:
          if (room < 8) return malformed("a relocation's place");
          std::memcpy(at, &target, 8);
          return {};
        default:
          break;
      }
    }
    return {Code::kInternal, "generated code needs a relocation of type " + std::to_string(type) +
                                 ", which the loader does not know"};
  }

  Status protect() {
    __builtin___clear_cache(reinterpret_cast<char*>(memory_),
                            reinterpret_cast<char*>(memory_ + code_size_));
    const bool ok =
        mprotect(memory_, code_size_, PROT_READ | PROT_EXEC) == 0 &&
        (size_ == code_size_ || mprotect(memory_ + code_size_, size_ - code_size_, PROT_READ) == 0);
    if (ok) return {};
    const int error = errno;
    return {error == ENOMEM ? Code::kOutOfMemory : Code::kCompileFailed,
            std::string("the system refuses to make generated code executable: ") +
                std::strerror(error)};
  }

  ElfObject object_;
  std::vector<uint64_t> places_;  // offset of each section in the mapping
  uint64_t size_ = 0;
  uint64_t code_size_ = 0;
  uint8_t* memory_ = nullptr;
  std::map<std::string, uint8_t*, std::less<>> functions_;
};

}  // namespace

Result<std::vector<std::string>> undefined_symbols(std::string_view object) {
  PYC_ASSIGN(const ElfObject elf, ElfObject::parse(object));
  return undefined_in(elf);
}

Result<std::unique_ptr<CodeModule>> CodeModule::load(std::string_view object) {
  PYC_ASSIGN(const ElfObject elf, ElfObject::parse(object));
  if (elf.machine() != kHostMachine) {
    return Status(Code::kInvalidArgument, "the object is for ELF machine " +
                                              std::to_string(elf.machine()) + ", this one is " +
                                              std::to_string(kHostMachine));
  }
  const std::vector<std::string> missing = undefined_in(elf);
  if (!missing.empty()) {
    return Status(Code::kInternal,
                  "generated code needs the undefined symbol '" + missing[0] + "'");
  }
  auto module = std::make_unique<LoadedModule>(elf);
  PYC_TRY(module->load());
  return std::unique_ptr<CodeModule>(std::move(module));
}

}  // namespace pyc::runtime
