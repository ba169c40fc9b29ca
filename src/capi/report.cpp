// The report on a model, as JSON and as a page.

#include "pyc/report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/json.h"
#include "driver/contract.h"
#include "driver/stages.h"
#include "report/gather.h"
#include "report/page.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

// Texts that a document names by number: most stand in it often.
class TextTable {
 public:
  int64_t number(std::string_view text) {
    const auto [at, added] =
        numbers_.try_emplace(std::string(text), static_cast<int64_t>(numbers_.size()));
    if (added) texts_.push_back(&at->first);
    return at->second;
  }
  const std::vector<const std::string*>& texts() const { return texts_; }

 private:
  std::map<std::string, int64_t, std::less<>> numbers_;
  std::vector<const std::string*> texts_;
};

// What one run of a group is in a program: a candidate may start several kernels, each of them a
// step that carries the account of the whole group.
struct StepSpan {
  size_t begin;
  size_t end;
};

std::vector<StepSpan> spans_of(const runtime::Model* whole) {
  std::vector<StepSpan> out;
  if (whole == nullptr) return out;
  const std::vector<runtime::Step>& steps = whole->program().steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i > 0 && steps[i].name == steps[i - 1].name) {
      out.back().end = i + 1;
    } else {
      out.push_back({i, i + 1});
    }
  }
  return out;
}

class ReportWriter {
 public:
  ReportWriter(const pyc_model& model, const pyc_report_facts& facts)
      : model_(model), facts_(facts), stats_(model.session->stats()) {}

  std::string write(const std::optional<report::CompileRows>& rows) && {
    json_.begin_object();
    json_.key("schema").text("pyc.report.v1");
    write_head();
    write_contract();
    write_options();
    write_compile();
    write_memory();
    write_steps(rows);
    write_roofs();
    write_rows(rows);
    write_decisions("decisions", model_.session->decisions());
    write_decisions("refusals", model_.session->refusals());
    json_.key("strings").begin_array();
    for (const std::string* text : texts_.texts()) json_.text(*text);
    json_.end_array();
    json_.end_object();
    return std::move(json_).take();
  }

 private:
  void name(std::string_view text) { json_.integer(texts_.number(text)); }
  void numbers(const std::vector<uint32_t>& list) {
    json_.begin_array();
    for (const uint32_t n : list) json_.integer(n);
    json_.end_array();
  }
  // -1 for none.
  void number_or_none(uint32_t n) {
    json_.integer(n == report::kNone ? -1 : static_cast<int64_t>(n));
  }

  void write_head() {
    json_.key("title").text(to_text(facts_.title));
    json_.key("version").text(pyc_version());
    json_.key("device").text(model_.options.device);
    json_.key("threads").integer(driver::thread_count(model_.options));
    json_.key("fingerprint").text(model_.session->fingerprint());
    json_.key("open").boolean(model_.session->whole() == nullptr);
    json_.key("breaks").text(model_.session->breaks().summary);
  }

  void write_contract() {
    const int64_t budget = model_.options.memory_budget;
    const int64_t peak = model_.session->memory().peak_bytes;
    json_.key("contract").begin_object();
    json_.key("memory_budget");
    budget == 0 ? json_.null() : json_.integer(budget);
    json_.key("peak_bytes").integer(peak);
    json_.key("kept").boolean(budget == 0 || peak <= budget);
    const driver::CompileOptions& o = model_.options;
    number_or_null("compile_budget_ms", o.compile_budget_ms, o.compile_budget_ms >= 0);
    number_or_null("latency_target_us", o.latency_target_us, o.latency_target_us > 0);
    const double predicted = driver::predicted_ns(model_.session->decisions());
    number_or_null("predicted_ns", static_cast<int64_t>(predicted), predicted > 0);
    json_.key("determinism").text(driver::determinism_name(model_.options.determinism));
    json_.key("fallback").text(model_.options.fallback);
    json_.key("fallback_count").integer(stats_.fallbacks);
    json_.key("host_calls").integer(stats_.host_calls);
    json_.key("guard_miss_count").integer(stats_.guard_misses);
    json_.key("runs").integer(stats_.runs);
    json_.end_object();
  }

  void number_or_null(std::string_view key, int64_t number, bool there) {
    json_.key(key);
    there ? json_.integer(number) : json_.null();
  }

  // Each as name, value, default, 1 where it may change bits, and what it is.
  void write_options() {
    const driver::CompileOptions defaults;
    json_.key("options").begin_array();
    for (const driver::OptionRow& row : driver::option_rows()) {
      if (row.offer == driver::OptionOffer::kInternal) continue;
      json_.begin_array();
      json_.text(row.name).text(row.text(model_.options)).text(row.text(defaults));
      json_.integer(row.bits == driver::OptionBits::kOtherBits ? 1 : 0).text(row.help);
      json_.end_array();
    }
    json_.end_array();
  }

  void write_compile() {
    const runtime::CompileBreakdown& c = stats_.compile;
    json_.key("compile").begin_object();
    json_.key("ns").integer(stats_.compile_ns);
    json_.key("cache_hit").boolean(stats_.cache_hit);
    json_.key("stages").begin_array();
    const std::pair<const char*, int64_t> stages[] = {
        {"passes", c.passes_ns}, {"lower", c.lower_ns}, {"select", c.select_ns},
        {"plan", c.plan_ns},     {"code", c.code_ns},   {"assemble", c.assemble_ns}};
    for (const auto& [stage, ns] : stages) json_.begin_array().text(stage).integer(ns).end_array();
    json_.end_array();
    json_.key("kernels").integer(c.kernels);
    json_.key("distinct_kernels").integer(c.distinct_kernels);
    json_.end_object();
  }

  void write_memory() {
    const runtime::MemoryReport m = model_.session->memory();
    const auto of_class = [&](BufferClass c) { return m.class_bytes[static_cast<size_t>(c)]; };
    json_.key("memory").begin_object();
    json_.key("peak").integer(m.peak_bytes);
    json_.key("parameters").integer(of_class(BufferClass::kParameter));
    json_.key("inputs").integer(of_class(BufferClass::kHostInput));
    json_.key("outputs").integer(of_class(BufferClass::kOutput));
    json_.key("arena").integer(m.arena_bytes);
    json_.key("scratch").integer(m.scratch_bytes);
    json_.key("measured_arena").integer(m.measured_arena_bytes);
    json_.end_object();
  }

  // Steps as name, group (-1: not known), flops, bytes, independent pieces, kernels it starts; runs
  // as their times.
  void write_steps(const std::optional<report::CompileRows>& rows) {
    const runtime::Model* whole = model_.session->whole();
    const std::vector<StepSpan> spans = spans_of(whole);
    json_.key("steps").begin_array();
    for (size_t i = 0; i < spans.size(); ++i) {
      int64_t parallel = 0;
      double flops = 0.0;
      int64_t bytes = 0;
      for (size_t s = spans[i].begin; s < spans[i].end; ++s) {
        const runtime::Step& step = whole->program().steps[s];
        parallel = std::max(parallel, whole->engine().parallel(s));
        flops = std::max(flops, step.flops);
        bytes = std::max(bytes, step.bytes_moved);
      }
      json_.begin_array();
      name(whole->program().steps[spans[i].begin].name);
      json_.integer(rows ? static_cast<int64_t>(rows->runs[i]) : -1);
      json_.number(flops).integer(bytes).integer(parallel);
      json_.integer(static_cast<int64_t>(spans[i].end - spans[i].begin)).end_array();
    }
    json_.end_array();
    const size_t count = spans.empty() ? 0 : spans.back().end;
    json_.key("runs").begin_array();
    for (size_t at = 0; at < facts_.step_ns_count; at += count) {
      json_.begin_array();
      for (const StepSpan& span : spans) {
        json_.integer(std::accumulate(facts_.step_ns + at + span.begin,
                                      facts_.step_ns + at + span.end, int64_t{0}));
      }
      json_.end_array();
    }
    json_.end_array();
  }

  void write_roofs() {
    json_.key("roofs");
    if (facts_.flops_per_ns <= 0.0 || facts_.bytes_per_ns <= 0.0) {
      json_.null();
      return;
    }
    json_.begin_object();
    json_.key("gflops").number(facts_.flops_per_ns);
    json_.key("gbytes_per_second").number(facts_.bytes_per_ns);
    json_.end_object();
  }

  void write_rows(const std::optional<report::CompileRows>& rows) {
    json_.key("graphs");
    if (!rows) {
      json_.null();
      return;
    }
    json_.begin_object();
    json_.key("before");
    write_graph(rows->before);
    json_.key("after");
    write_graph(rows->after);
    json_.end_object();
    write_groups(rows->groups);
    write_plan(*rows);
  }

  void write_graph(const report::GraphPart& graph) {
    json_.begin_object();
    json_.key("width").integer(graph.size.width);
    json_.key("height").integer(graph.size.height);
    json_.key("values").begin_array();
    for (const report::ValueRow& v : graph.values) {
      json_.begin_array();
      name(v.name);
      name(v.type);
      json_.integer(v.kind).end_array();
    }
    json_.end_array();
    json_.key("nodes").begin_array();
    for (const report::NodeRow& n : graph.nodes) {
      json_.begin_array();
      name(n.op);
      numbers(n.inputs);
      numbers(n.outputs);
      name(n.attributes);
      name(n.location);
      numbers(n.groups);
      json_.end_array();
    }
    json_.end_array();
    write_drawing(graph);
    json_.end_object();
  }

  // Boxes as kind, item, parent, x, y, width, height; edges as from, to, x and y of each bend.
  void write_drawing(const report::GraphPart& graph) {
    json_.key("boxes").begin_array();
    for (const report::BoxRow& b : graph.boxes) {
      json_.begin_array().integer(static_cast<int64_t>(b.kind)).integer(b.item);
      number_or_none(b.parent);
      json_.integer(b.corner.x).integer(b.corner.y);
      json_.integer(b.size.width).integer(b.size.height).end_array();
    }
    json_.end_array();
    json_.key("edges").begin_array();
    for (const report::EdgeRow& e : graph.edges) {
      json_.begin_array().integer(e.from).integer(e.to);
      for (const report::Point& p : e.bends) json_.integer(p.x).integer(p.y);
      json_.end_array();
    }
    json_.end_array();
  }

  void write_groups(const std::vector<report::GroupRow>& groups) {
    json_.key("groups").begin_array();
    for (const report::GroupRow& g : groups) {
      json_.begin_array();
      name(g.name);
      name(g.kind);
      name(g.kernel);
      name(g.order);
      numbers(g.members);
      json_.begin_array();
      for (const std::string& reason : g.reasons) name(reason);
      json_.end_array();
      json_.end_array();
    }
    json_.end_array();
  }

  // Instances as name, class, place, offset, bytes, bytes taken, first and last step, in place.
  void write_plan(const report::CompileRows& rows) {
    json_.key("places").begin_array();
    for (const report::PlaceRow& p : rows.places) {
      json_.begin_object();
      json_.key("name").text(p.name);
      json_.key("arena").integer(p.arena_bytes);
      json_.key("lower_bound").integer(p.lower_bound_bytes);
      json_.key("requested").integer(p.requested_bytes);
      json_.key("peak_step").integer(p.peak_step);
      json_.end_object();
    }
    json_.end_array();
    json_.key("instances").begin_array();
    for (const report::InstanceRow& i : rows.instances) {
      json_.begin_array();
      name(i.name);
      name(i.cls);
      json_.integer(i.place).integer(i.offset).integer(i.bytes).integer(i.taken_bytes);
      json_.integer(i.first).integer(i.last).integer(i.in_place ? 1 : 0).end_array();
    }
    json_.end_array();
    json_.key("plan_steps").begin_array();
    for (const std::string& step : rows.plan_steps) name(step);
    json_.end_array();
  }

  // Each as what, chosen, reason, detail and alternatives: name, cost (null: it was rejected), why.
  void write_decisions(std::string_view key, const DecisionLog& log) {
    json_.key(key).begin_array();
    for (const Decision& d : log) {
      json_.begin_array();
      for (const std::string* text : {&d.what, &d.chosen, &d.reason, &d.detail}) {
        name(report::shown(*text, report::kShownDetailBytes));
      }
      json_.begin_array();
      for (const Alternative& a : d.alternatives) {
        json_.begin_array();
        name(a.name);
        a.rejected.empty() ? json_.number(a.cost_ns) : json_.null();
        name(report::shown(a.rejected));
        json_.end_array();
      }
      json_.end_array().end_array();
    }
    json_.end_array();
  }

  const pyc_model& model_;
  const pyc_report_facts& facts_;
  const session::SessionStats stats_;
  JsonWriter json_;
  TextTable texts_;
};

Status check_graph(const pyc_model& model, const ir::Graph& graph) {
  const std::string expected = model.session->fingerprint();
  const std::string found = ir::fingerprint(graph).hex();
  if (found == expected) return {};
  return {Code::kInvalidArgument,
          fmt::format("graph: expected the one that the model was compiled from ({}), found {}",
                      expected.empty() ? "no one graph" : expected, found)};
}

// That the plan's runs are the steps of the model's program: one that was compiled ahead of time
// may have been so with other options.
Status check_steps(const runtime::Model* whole, const report::CompileRows& rows) {
  const std::vector<StepSpan> spans = spans_of(whole);
  bool same = whole != nullptr && rows.runs.size() == spans.size();
  for (size_t i = 0; same && i < spans.size(); ++i) {
    same = whole->program().steps[spans[i].begin].name == rows.groups[rows.runs[i]].name;
  }
  if (same) return {};
  return {Code::kInvalidArgument,
          fmt::format("graph: with the model's options it has {} steps, the model has {}",
                      rows.runs.size(), spans.size())};
}

Status check_times(const pyc_report_facts& facts, size_t steps) {
  if (facts.step_ns_count == 0) return {};
  PYC_TRY(require(facts.step_ns, "step_ns"));
  if (steps > 0 && facts.step_ns_count % steps == 0) return {};
  return {Code::kInvalidArgument,
          fmt::format("step_ns_count: expected a multiple of the {} steps of the model, found {}",
                      steps, facts.step_ns_count)};
}

}  // namespace

pyc_status pyc_model_report(const pyc_model* model, const pyc_graph* graph,
                            const pyc_report_facts* facts, int32_t format, char** text,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(require(text, "text"));
    if (format != PYC_REPORT_JSON && format != PYC_REPORT_HTML) {
      return {Code::kInvalidArgument,
              fmt::format("format: expected PYC_REPORT_JSON or PYC_REPORT_HTML, found {}", format)};
    }
    pyc_report_facts known;
    PYC_TRY(read_struct(facts, "pyc_report_facts", sizeof(pyc_report_facts), known));
    PYC_TRY(check_times(known, pyc_model_step_count(model)));
    std::optional<report::CompileRows> rows;
    if (graph != nullptr) {
      PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(graph->graph()));
      PYC_TRY(check_graph(*model, *given));
      PYC_ASSIGN(const driver::Stages stages, driver::stages(std::move(given), model->options));
      rows = report::gather(stages);
      PYC_TRY(check_steps(model->session->whole(), *rows));
    }
    const std::string json = ReportWriter(*model, known).write(rows);
    return give_text(format == PYC_REPORT_JSON ? json : report::page(json), text);
  });
}
