#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

constexpr uint64_t bit(pyc_dtype dtype) { return uint64_t{1} << dtype; }

// Sets of dtypes that have a name of their own, largest first.
struct Named {
  const char* name;
  uint64_t bits;
};
constexpr uint64_t kFloats = bit(PYC_DTYPE_F8E4M3FN) | bit(PYC_DTYPE_F8E5M2) | bit(PYC_DTYPE_F16) |
                             bit(PYC_DTYPE_BF16) | bit(PYC_DTYPE_F32) | bit(PYC_DTYPE_F64);
constexpr uint64_t kSigned =
    bit(PYC_DTYPE_I8) | bit(PYC_DTYPE_I16) | bit(PYC_DTYPE_I32) | bit(PYC_DTYPE_I64);
constexpr uint64_t kUnsigned =
    bit(PYC_DTYPE_U8) | bit(PYC_DTYPE_U16) | bit(PYC_DTYPE_U32) | bit(PYC_DTYPE_U64);
constexpr Named kNamed[] = {
    {"all", kFloats | kSigned | kUnsigned | bit(PYC_DTYPE_BOOL)},
    {"floats", kFloats},
    {"signed", kSigned},
    {"unsigned", kUnsigned},
};

std::vector<std::string> dtype_list(uint64_t bits) {
  std::vector<std::string> names;
  for (pyc_dtype d = 0; d < pyc_dtype_count(); ++d) {
    if ((bits & bit(d)) != 0) names.emplace_back(pyc_dtype_name(d));
  }
  return names;
}

std::string dtypes_text(uint64_t bits) {
  if (bits == 0) return "not tried";  // no small graph of the op is known
  std::vector<std::string> parts;
  for (const Named& set : kNamed) {
    if ((bits & set.bits) != set.bits) continue;
    parts.emplace_back(set.name);
    bits &= ~set.bits;
  }
  for (const std::string& name : dtype_list(bits)) parts.push_back(name);
  return fmt::format("{}", fmt::join(parts, ", "));
}

struct Row {
  std::string op;
  std::vector<uint64_t> dtypes;  // by device
};

class Capabilities final : public Command {
 public:
  std::string name() const override { return "capabilities"; }
  std::string summary() const override {
    return "Show which device compiles which op for which dtypes";
  }
  std::string examples() const override {
    return "  pyc capabilities\n  pyc capabilities --op matmul\n";
  }
  void declare(Options& options) override { options.text("--op", op_, "Only this op"); }

  int run() override {
    Progress progress(*this, "asking every device for every op");
    read_devices();
    read_rows();
    progress.end();
    if (json) {
      print_json();
    } else {
      print_table();
    }
    return kExitOk;
  }

 private:
  void read_devices() {
    for (size_t i = 0; i < pyc_device_count(); ++i) {
      devices_.push_back(sized<pyc_device_info>());
      check([&](pyc_error** e) { return pyc_device(i, &devices_.back(), e); });
    }
  }

  void read_rows() {
    size_t first = 0;
    size_t end = pyc_op_count();
    if (!op_.empty()) {
      check([&](pyc_error** e) { return pyc_op_find(op_.c_str(), &first, e); });
      end = first + 1;
    }
    for (size_t i = first; i < end; ++i) {
      auto op = sized<pyc_op_info>();
      check([&](pyc_error** e) { return pyc_op(i, &op, e); });
      Row row{op.name, {}};
      for (const pyc_device_info& device : devices_) {
        row.dtypes.push_back(0);
        check([&](pyc_error** e) {
          return pyc_device_op_dtypes(device.name, op.name, &row.dtypes.back(), e);
        });
      }
      rows_.push_back(std::move(row));
    }
  }

  void print_table() const {
    say("| device | runs | strict determinism |\n|---|---|---|\n");
    for (const pyc_device_info& d : devices_) {
      const auto yes = [](int32_t flag) { return flag != 0 ? "yes" : "no"; };
      say("| {} | {} | {} |\n", d.name, yes(d.runs), yes(d.strict));
    }
    say("\n| op |");
    for (const pyc_device_info& d : devices_) say(" {} |", d.name);
    say("\n|---|");
    for (size_t i = 0; i < devices_.size(); ++i) say("---|");
    say("\n");
    for (const Row& row : rows_) {
      say("| `{}` |", row.op);
      for (const uint64_t bits : row.dtypes) say(" {} |", dtypes_text(bits));
      say("\n");
    }
  }

  void print_json() const {
    Json report = {{"devices", Json::array()}, {"ops", Json::array()}};
    for (const pyc_device_info& d : devices_) {
      report["devices"].push_back(
          {{"name", d.name}, {"runs", d.runs != 0}, {"strict", d.strict != 0}});
    }
    for (const Row& row : rows_) {
      Json dtypes;
      for (size_t i = 0; i < devices_.size(); ++i) {
        dtypes[devices_[i].name] = dtype_list(row.dtypes[i]);
      }
      report["ops"].push_back({{"name", row.op}, {"dtypes", dtypes}});
    }
    print(report);
  }

  std::string op_;
  std::vector<pyc_device_info> devices_;
  std::vector<Row> rows_;
};

}  // namespace

std::unique_ptr<Command> make_capabilities() { return std::make_unique<Capabilities>(); }

}  // namespace pyc::tool
