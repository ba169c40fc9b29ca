// Traces as documents in the Trace Event Format.

#include "pyc/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "capi/guard.h"
#include "capi/json.h"
#include "capi/options.h"

using namespace pyc;
using namespace pyc::capi;

struct pyc_trace {
  std::shared_ptr<TraceLog> trace = std::make_shared<TraceLog>();
};

namespace {

// The groups of tracks that a viewer shows one below the other.
enum Process : int64_t { kThreads = 1, kMemory = 2, kNodes = 3 };

class TraceWriter {
 public:
  explicit TraceWriter(TraceRecord record) : record_(std::move(record)) {
    for (const TraceRun& run : record_.runs) {
      program_number_.emplace(run.program, static_cast<int64_t>(program_number_.size()));
      lane_number_.emplace(run.lane, static_cast<int64_t>(lane_number_.size()));
    }
    start_ns_ = INT64_MAX;
    for (const TraceSpan& span : record_.spans) start_ns_ = std::min(start_ns_, span.start_ns);
    for (const TraceRun& run : record_.runs) start_ns_ = std::min(start_ns_, run.start_ns);
  }

  std::string write() && {
    json_.begin_object();
    json_.key("schema").text("pyc.trace.v1");
    json_.key("version").text(pyc_version());
    json_.key("displayTimeUnit").text("ns");
    json_.key("runs").integer(static_cast<int64_t>(record_.runs.size()));
    json_.key("runs_left_out").integer(record_.runs_left_out);
    json_.key("runs_passed_over").integer(record_.runs_passed_over);
    json_.key("traceEvents").begin_array();
    write_tracks();
    for (const TraceSpan& span : record_.spans) {
      begin_slice(span.name, "compile", kThreads, span.thread, span.start_ns, span.end_ns);
      json_.end_object();
    }
    std::set<const void*> shown;
    for (const TraceRun& run : record_.runs) {
      write_run(run);
      if (shown.insert(run.program).second) write_nodes(run);
    }
    write_memory();
    write_passed_over();
    json_.end_array();
    json_.end_object();
    return std::move(json_).take();
  }

 private:
  static double microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

  void begin_event(std::string_view name, std::string_view phase, int64_t process, int64_t track) {
    json_.begin_object();
    json_.key("name").text(name);
    json_.key("ph").text(phase);
    json_.key("pid").integer(process);
    json_.key("tid").integer(track);
  }
  // Left open for its args.
  void begin_slice(std::string_view name, std::string_view category, int64_t process, int64_t track,
                   int64_t start_ns, int64_t end_ns) {
    begin_event(name, "X", process, track);
    json_.key("cat").text(category);
    json_.key("ts").number(microseconds(start_ns - start_ns_));
    json_.key("dur").number(microseconds(end_ns - start_ns));
  }
  void name_track(std::string_view what, int64_t process, int64_t track, std::string_view name) {
    begin_event(what, "M", process, track);
    json_.key("args").begin_object();
    json_.key("name").text(name);
    json_.end_object();
    json_.end_object();
  }

  void write_tracks() {
    name_track("process_name", kThreads, 0, "threads");
    name_track("process_name", kMemory, 0, "memory of runs");
    name_track("process_name", kNodes, 0, "nodes of the model");
    std::set<int> threads;
    for (const TraceSpan& span : record_.spans) threads.insert(span.thread);
    for (const TraceRun& run : record_.runs) {
      threads.insert(run.thread);
      for (const TracePart& part : run.parts) {
        if (part.thread >= 0) threads.insert(part.thread);
      }
    }
    for (const int thread : threads) {
      name_track("thread_name", kThreads, thread, fmt::format("thread {}", thread));
    }
    for (const auto& [lane, number] : lane_number_) {
      name_track("thread_name", kMemory, number, fmt::format("lane {}", number));
    }
    for (const auto& [address, number] : program_number_) {
      name_track("thread_name", kNodes, number, fmt::format("program {}", number));
    }
  }

  void write_run(const TraceRun& run) {
    begin_slice("run", "run", kThreads, run.thread, run.start_ns, run.end_ns);
    json_.key("args").begin_object();
    json_.key("program").integer(program_number_.at(run.program));
    json_.end_object();
    json_.end_object();
    const std::vector<TraceStep>& steps = record_.programs.at(run.program).steps;
    for (size_t s = 0; s < steps.size(); ++s) {
      for (size_t t = 0; t < run.threads; ++t) {
        const TracePart& part = run.parts[s * run.threads + t];
        if (part.thread < 0) continue;
        begin_slice(steps[s].name, "kernel", kThreads, part.thread, part.start_ns, part.end_ns);
        json_.key("args").begin_object();
        json_.key("kernel").text(steps[s].kernel);
        json_.key("step").integer(static_cast<int64_t>(s));
        json_.key("part").integer(static_cast<int64_t>(t));
        json_.end_object();
        json_.end_object();
      }
    }
    begin_slice("run", "memory", kMemory, lane_number_.at(run.lane), run.start_ns, run.end_ns);
    json_.key("args").begin_object();
    json_.key("bytes").integer(run.lane_bytes);
    json_.end_object();
    json_.end_object();
  }

  // The part of the step that began first; null where none was recorded.
  static const TracePart* first_part(const TraceRun& run, size_t step) {
    const TracePart* first = nullptr;
    for (size_t t = 0; t < run.threads; ++t) {
      const TracePart& part = run.parts[step * run.threads + t];
      if (part.thread < 0) continue;
      if (first == nullptr || part.start_ns < first->start_ns) first = &part;
    }
    return first;
  }

  // Each node as long as its kernel runs, and an arrow to it. In one run of each program, so that a
  // document does not grow by them with every run.
  void write_nodes(const TraceRun& run) {
    const TraceProgram& program = record_.programs.at(run.program);
    const int64_t track = program_number_.at(run.program);
    for (size_t s = 0; s < program.steps.size(); ++s) {
      if (s > 0 && program.steps[s].name == program.steps[s - 1].name) continue;  // of one group
      const TracePart* first = first_part(run, s);
      const auto nodes = program.nodes.find(program.steps[s].name);
      if (first == nullptr || nodes == program.nodes.end()) continue;
      for (const TraceNode& node : nodes->second) {
        begin_slice(node.name, "node", kNodes, track, first->start_ns, first->end_ns);
        json_.key("args").begin_object();
        json_.key("ops").text(node.ops);
        json_.key("kernel").text(program.steps[s].kernel);
        json_.end_object();
        json_.end_object();
        ++flows_;
        write_flow("s", kNodes, track, first->start_ns);
        write_flow("f", kThreads, first->thread, first->start_ns);
      }
    }
  }
  void write_flow(std::string_view phase, int64_t process, int64_t track, int64_t ns) {
    begin_event("computed by", phase, process, track);
    json_.key("cat").text("node");
    json_.key("id").integer(flows_);
    json_.key("ts").number(microseconds(ns - start_ns_));
    if (phase == "f") json_.key("bp").text("e");
    json_.end_object();
  }

  // How many bytes runs have at a time.
  void write_memory() {
    std::multimap<int64_t, int64_t> changes;
    for (const TraceRun& run : record_.runs) {
      changes.emplace(run.start_ns, run.lane_bytes);
      changes.emplace(run.end_ns, -run.lane_bytes);
    }
    int64_t bytes = 0;
    for (const auto& [ns, change] : changes) {
      bytes += change;
      begin_event("bytes in use", "C", kMemory, 0);
      json_.key("ts").number(microseconds(ns - start_ns_));
      json_.key("args").begin_object();
      json_.key("bytes").integer(bytes);
      json_.end_object();
      json_.end_object();
    }
  }

  // How many runs were not recorded before each that was; no lane where all were.
  void write_passed_over() {
    int64_t passed_over = 0;
    for (const TraceRun& run : record_.runs) {
      passed_over += run.passed_over;
      if (passed_over == 0) continue;
      begin_event("runs not recorded", "C", kThreads, 0);
      json_.key("ts").number(microseconds(run.start_ns - start_ns_));
      json_.key("args").begin_object();
      json_.key("runs").integer(passed_over);
      json_.end_object();
      json_.end_object();
    }
  }

  const TraceRecord record_;
  int64_t start_ns_ = 0;
  int64_t flows_ = 0;
  std::map<const void*, int64_t> program_number_;
  std::map<const void*, int64_t> lane_number_;
  JsonWriter json_;
};

}  // namespace

pyc_status pyc_trace_create(pyc_trace** trace, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trace, "trace"));
    *trace = new pyc_trace();
    return {};
  });
}

void pyc_trace_destroy(pyc_trace* trace) { delete trace; }

pyc_status pyc_compile_options_trace(pyc_compile_options* options, pyc_trace* trace,
                                     pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    options->values.trace = trace == nullptr ? nullptr : trace->trace;
    return {};
  });
}

pyc_status pyc_trace_stop(pyc_trace* trace, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trace, "trace"));
    trace->trace->stop();
    return {};
  });
}

pyc_status pyc_trace_every_run(pyc_trace* trace, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trace, "trace"));
    trace->trace->record_every_run();
    return {};
  });
}

pyc_status pyc_trace_runs(const pyc_trace* trace, int64_t* recorded, int64_t* passed_over,
                          pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trace, "trace"));
    PYC_TRY(require(recorded, "recorded"));
    PYC_TRY(require(passed_over, "passed_over"));
    const TraceRecord record = trace->trace->record();
    *recorded = static_cast<int64_t>(record.runs.size());
    *passed_over = record.runs_passed_over;
    return {};
  });
}

pyc_status pyc_trace_json(const pyc_trace* trace, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trace, "trace"));
    return give_text(TraceWriter(trace->trace->record()).write(), json);
  });
}
