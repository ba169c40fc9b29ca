#include "cuda/shape_runs.h"

#include <iterator>
#include <utility>

namespace pyc::test {
namespace {

struct Wanted {
  std::string type;  // of the input: "f32[3,64]"
  std::string op;    // with attributes
};

Status add_run(std::vector<CaseRun>& runs, const Wanted& w) {
  const size_t name_end = w.op.find(' ');
  const std::string op = w.op.substr(0, name_end);
  const std::string attributes = name_end == std::string::npos ? "" : w.op.substr(name_end);
  PYC_ASSIGN(CaseRun run, interpret_graph(w.op + " of " + w.type,
                                          "graph @g(%x: " + w.type + ") -> (%y) {\n  %y = " + op +
                                              "(%x)" + attributes + "\n}\n"));
  runs.push_back(std::move(run));
  return {};
}

}  // namespace

Result<std::vector<CaseRun>> tree_runs() {
  std::vector<CaseRun> runs;
  for (const char* n :
       {"1", "31", "32", "33", "63", "64", "65", "1023", "1024", "1025", "2049", "5000"}) {
    const std::string row = std::string("[3,") + n + "]";
    PYC_TRY(add_run(runs, {"f32" + row, "reduce_sum {axes=[1]}"}));
    PYC_TRY(add_run(runs, {"f64" + row, "reduce_prod {axes=[1]}"}));
    PYC_TRY(add_run(runs, {"f32" + row, "reduce_max {axes=[1]}"}));
    PYC_TRY(add_run(runs, {"bf16" + row, "reduce_sum {axes=[1]}"}));
    PYC_TRY(add_run(runs, {std::string("f32[") + n + ",5]", "reduce_sum {axes=[0]}"}));
  }
  return runs;
}

Result<std::vector<CaseRun>> super_block_runs() {
  std::vector<CaseRun> runs;
  PYC_TRY(add_run(runs, {"f32[2100000]", "reduce_sum {axes=[0]}"}));
  PYC_TRY(add_run(runs, {"i32[2100000]", "reduce_max {axes=[0]}"}));
  return runs;
}

Result<std::vector<CaseRun>> row_runs() {
  std::vector<CaseRun> runs;
  // The last ones: of several blocks, of as many as there may be, and too long for them.
  for (const char* shape : {"[5,40]", "[3,768]", "[2,1025]", "[2,5000]", "[2,12000]", "[2,20480]",
                            "[1,40001]", "[1,200000]", "[1,265000]"}) {
    PYC_TRY(add_run(runs, {std::string("f32") + shape, "softmax"}));
    PYC_TRY(add_run(runs, {std::string("f16") + shape, "softmax"}));
    PYC_TRY(add_run(runs, {std::string("f32") + shape, "argmax {axis=1}"}));
  }
  // Of so many that the cache reads the last ones ahead.
  PYC_TRY(add_run(runs, {"f32[9,147456]", "softmax"}));
  PYC_TRY(add_run(runs, {"f16[9,147456]", "softmax"}));
  // Of so many that blocks have two at a time, and a third in the place of the first.
  PYC_TRY(add_run(runs, {"f32[29,180224]", "softmax"}));
  PYC_TRY(add_run(runs, {"f16[15,180224]", "softmax"}));
  return runs;
}

Result<std::vector<CaseRun>> norm_runs() {
  std::vector<CaseRun> runs;
  // Rows that end within a pair, a round and a block, more than start at once, of clusters; the
  // last are those of clusters that have several, one after the other.
  const std::pair<const char*, const char*> shapes[] = {
      {"3", "768"},  {"2", "95"},    {"3", "100"},   {"2", "1024"},  {"2", "1026"},  {"2", "1501"},
      {"1", "2048"}, {"1100", "64"}, {"2", "33000"}, {"7", "32768"}, {"9", "147456"}};
  for (const auto& [rows, columns] : shapes) {
    for (const char* t : {"f32", "bf16"}) {
      const auto of = [&](const std::string& dims) { return std::string(t) + "[" + dims + "]"; };
      const std::string row = of(columns);
      const std::string all = of(std::string(rows) + "," + columns);
      PYC_ASSIGN(CaseRun run,
                 interpret_graph("norm of " + all, "graph @g(%x: " + all + ", %r: " + all +
                                                       ", %g: " + row + ", %b: " + row +
                                                       ") -> (%y, %s) {\n  %s = add(%x, %r)\n"
                                                       "  %y = layer_norm(%s, %g, %b)\n}\n"));
      runs.push_back(std::move(run));
    }
  }
  // Two at a time in a block, whose shared memory the weights of floats nearly fill, and four.
  for (const std::string type : {"f32[16,262144]", "bf16[29,196608]"}) {
    const std::string row = type.substr(0, type.find('[') + 1) + type.substr(type.find(',') + 1);
    PYC_ASSIGN(CaseRun run,
               interpret_graph("norm of " + type, "graph @g(%x: " + type + ", %g: " + row +
                                                      ", %b: " + row +
                                                      ") -> (%y) {\n"
                                                      "  %y = layer_norm(%x, %g, %b)\n}\n"));
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<std::vector<CaseRun>> neighbour_runs() {
  std::vector<CaseRun> runs;
  for (const char* type :
       {"f32[3,64]", "bf16[4,24]", "f16[64]", "f64[6]", "i8[5,16]", "f32[7,6]", "f32[300,4096]"}) {
    PYC_TRY(add_run(runs, {type, "relu"}));
    PYC_TRY(add_run(runs, {type, "cast {to=f16}"}));
  }
  return runs;
}

Result<std::vector<CaseRun>> shape_runs() {
  std::vector<CaseRun> all;
  for (auto* part : {tree_runs, super_block_runs, row_runs, norm_runs, neighbour_runs}) {
    PYC_ASSIGN(std::vector<CaseRun> runs, part());
    std::move(runs.begin(), runs.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace pyc::test
