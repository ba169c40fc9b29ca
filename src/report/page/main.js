// Puts the page together.

const graphs = {before: null, after: null};
const after_graph = () => graphs.after;
let graph_view = null;

function set_theme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", theme === "dark" ? "Use light colours" : "Use dark colours");
  read_colors();
  redraw();
}
function start_theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = false;
  set_theme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => { if (!chosen) set_theme(dark.matches ? "dark" : "light"); });
  $("theme").addEventListener("click", () => {
    chosen = true;
    set_theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  });
}

function overview() {
  const title = report.title || "Report";
  document.title = `${title} · PyC report`;
  $("title").textContent = title;
  const facts = [`device ${report.device}`, count_text(report.threads, "thread"), `determinism ${report.contract.determinism}`];
  $("facts").textContent = `${facts.join(" · ")} · ${report.breaks}`;
  const tile = (name, value, note) => make("div", {class: "tile"}, make("h3", {}, name), make("p", {}, value), make("small", {}, note));
  const tiles = [];
  if (report.graphs) {
    const [before, after] = [report.graphs.before.nodes.length, report.graphs.after.nodes.length];
    tiles.push(tile("Kernels", groups.length.toLocaleString("en-US"), `from ${count_text(before, "node")} as given, ${after.toLocaleString("en-US")} after the passes`));
  } else {
    tiles.push(tile("Kernels", steps.length ? steps.length.toLocaleString("en-US") : "not known", "the graph is not part of this report"));
  }
  if (measured) tiles.push(tile("Run", time_text(total_ns), report.runs.length === 1 ? "all steps of one run" : `all steps of the fastest of ${report.runs.length} runs; median ${time_text(median(run_totals))}`));
  else tiles.push(tile("Run", "not measured", report.open ? "an open model has no steps of its own" : "the report was made without runs"));
  const budget = report.contract.memory_budget;
  tiles.push(tile("Peak memory", bytes_text(report.memory.peak), budget === null ? "planned; no budget was set" : `budget ${bytes_text(budget)}, ${report.contract.kept ? "kept" : "not kept"}`));
  const place = (report.places || []).find((p) => p.arena > 0);
  if (place) tiles.push(tile("Arena", bytes_text(place.arena), place.arena === place.lower_bound ? "equal to the lower bound" : `${percent_text(place.arena / place.lower_bound - 1)} over the lower bound`));
  const { cache_hit: hit, ns } = report.compile;
  tiles.push(tile("Compile", ns ? time_text(ns) : "not known", hit ? "found in the cache of the process" : report.compile.distinct_kernels ? count_text(report.compile.distinct_kernels, "distinct kernel") : "loaded, not compiled"));
  $("tiles").replaceChildren(...tiles);
  overview_bars();
}

// A bar in parts, with what each is.
function stack(title, parts, value_text) {
  const all = sum(parts.map((part) => part[1]));
  if (!(all > 0)) return null;
  const shown = parts.filter((part) => part[1] > 0);
  const track = make("div", {class: "track", "aria-hidden": "true"}, ...shown.map(([, value, color]) => make("span", {style: `flex: ${value / all}; background: ${color}`})));
  const legend = make("div", {class: "legend"}, ...shown.map(([name, value, color]) => make("span", {}, make("i", {style: `background: ${color}`}), `${name} `, make("b", {}, value_text(value)))));
  return make("div", {class: "stack"}, make("h3", {}, title), track, legend);
}
function overview_bars() {
  const bars = [];
  if (measured && groups.length) {
    bars.push(stack("Time of a run", ["contraction", "attention", "loop"].map((kind) => [kind_names[kind], sum(steps.filter((s) => kind_of_step(s) === kind).map((s) => s.ns)), `var(--${kind_colors[kind]})`]), time_text));
  }
  const m = report.memory;
  bars.push(stack("Peak memory", [["parameters", m.parameters, "var(--product)"], ["arena", m.arena, "var(--loop)"], ["inputs", m.inputs, "var(--warm)"], ["outputs", m.outputs, "var(--attention)"], ["scratch", m.scratch, "var(--other)"]], bytes_text));
  const shades = ["var(--loop)", "var(--attention)", "var(--warm)", "var(--bad)", "var(--product)", "var(--other)"];
  bars.push(stack("Compile", report.compile.stages.map(([name, ns], i) => [name, ns, shades[i]]), time_text));
  $("bars").replaceChildren(...bars.filter((bar) => bar));
}

function graph_section() {
  if (!report.graphs) {
    const why = report.open ? "This model runs as several programs with host functions between them: there is no one graph to show. The decisions below say what became of each part." : "This model was compiled ahead of time: the file holds the program, not the graph it was made from.";
    empty($("graph-area"), why);
    $("graph-keys").remove();
    document.querySelector("#graph .tools").remove();
    return;
  }
  graphs.after = read_graph(report.graphs.after);
  graph_view = new GraphView($("graph-canvas"), $("graph-map"));
  $("show-after").addEventListener("click", () => show_graph("after"));
  $("show-before").addEventListener("click", () => show_graph("before"));
  $("zoom-in").addEventListener("click", () => graph_view.zoom(1.4));
  $("zoom-out").addEventListener("click", () => graph_view.zoom(1 / 1.4));
  $("zoom-fit").addEventListener("click", () => graph_view.fit());
  selection.watchers.push((group, from) => { if (from !== graph_view) graph_view.pick_group(group); });
  show_graph("after");
}
function show_graph(which) {
  graphs[which] = graphs[which] || read_graph(report.graphs[which]);
  graph_view.show(graphs[which]);
  $("show-after").setAttribute("aria-pressed", String(which === "after"));
  $("show-before").setAttribute("aria-pressed", String(which === "before"));
  const graph = graphs[which];
  const fused = groups.filter((group) => group.members.length > 1).length;
  $("graph-note").textContent = which === "after"
    ? `The canonical graph: ${count_text(graph.nodes.length, "node")} in ${count_text(groups.length, "kernel")}, ${fused.toLocaleString("en-US")} of them fused from several nodes. A box around nodes is one kernel.`
    : `The model as it was given: ${count_text(graph.nodes.length, "node")}. Colours say which kind of kernel a node became part of.`;
  graph_view.pick_group(selection.group);
  if (selection.group < 0) inspect(graph, null);
}
// The group in the graph as it is after the passes.
function show_group(index) {
  if (!graph_view) return;
  if (graph_view.graph !== graphs.after) show_graph("after");
  const box = graphs.after.boxes.find((b) => b.kind === box_kinds.group && b.item === index);
  graph_view.pick(box);
  graph_view.center_on(box);
  $("graph").scrollIntoView({block: "start"});
}

function timeline_section() {
  if (!measured) {
    $("timeline-note").textContent = "";
    empty($("timeline-canvas").parentElement, report.open ? "Not measured: an open model runs as several programs, and steps are measured of one." : "Not measured: the report was made with --runs 0.");
  } else {
    const several = report.threads > 1 ? `on ${report.threads} threads` : "on one thread";
    $("timeline-note").textContent = `Measured steps of ${count_text(report.runs.length, "run")}. Steps run one after the other, each ${several}; what each thread did is in a trace: pyc run --trace.`;
    $("timeline-canvas").setAttribute("aria-label", `Timeline of ${count_text(steps.length, "step")}; the table below has the same times. Arrow keys pan, plus and minus zoom.`);
    new Timeline($("timeline-canvas"));
  }
  step_table();
}

function memory_section() {
  const places = (report.places || []).filter((place) => place.arena > 0);
  if (!places.length) {
    $("memory-note").textContent = "";
    $("memory-legend").remove();
    empty($("memory-canvas").parentElement, report.places ? "No arena: every value of this model is an input, an output or a parameter." : "Not known: the plan is part of the report only where the graph is.");
    return;
  }
  const map = new MemoryMap($("memory-canvas"));
  const describe = () => {
    const place = map.place;
    const saved = place.requested > 0 ? `Without reuse it would be ${bytes_text(place.requested)}. ` : "";
    $("memory-note").textContent = `Where temporaries and workspaces lie in the arena, over the steps. ${saved}The lower bound is the most that is in use at one step (step ${place.peak_step}); no plan for this order of steps can take less.`;
    $("memory-canvas").setAttribute("aria-label", `Map of ${count_text(map.shown.length, "buffer")} over ${count_text(report.plan_steps.length, "step")}: arena ${bytes_text(place.arena)}, lower bound ${bytes_text(place.lower_bound)}`);
  };
  describe();
  $("memory-legend").replaceChildren(...[["loop", "temporary"], ["warm", "workspace"], ["ink", "in use at the step"], ["accent", "arena"], ["bad", "lower bound"]].map(([color, label]) => make("span", {}, make("i", {style: `background: var(--${color})`}), label)));
  if (places.length < 2) return;
  $("place-label").hidden = false;
  $("place").append(...places.map((place) => make("option", {value: report.places.indexOf(place)}, place.name)));
  $("place").addEventListener("change", () => describe(map.show(Number($("place").value))));
}

function roofline_section() {
  const drawable = steps.some((step) => step.flops > 0 && step.bytes > 0 && step.ns > 0);
  if (!drawable) {
    $("roofline-note").textContent = "";
    $("roofline-legend").remove();
    empty($("roofline-canvas").parentElement, measured ? "No kernel of this model does arithmetic." : "Not measured: without times there is no rate to draw.");
    return;
  }
  const chart = new Roofline($("roofline-canvas"));
  const silent = steps.length - chart.points.length;
  const probed = report.roofs ? "The roofs are what PyC's own matrix product and a pass over memory reach on this machine in the same process, not data-sheet numbers: kernels whose data stays in caches may lie above the slope." : "The machine was not probed, so there are no roofs.";
  const left_out = silent ? ` ${count_text(silent, "kernel")} without arithmetic ${silent === 1 ? "is" : "are"} not drawn; the table of steps has their rates.` : "";
  $("roofline-note").textContent = `Every kernel is a point, larger the more time it takes. flop and bytes are counted in Loop IR, times are of the fastest run. ${probed}${left_out}`;
  $("roofline-canvas").setAttribute("aria-label", `Roofline of ${count_text(chart.points.length, "kernel")}; arrow keys go from one to the next, the table of steps has the same numbers`);
  const kinds = [...new Set(chart.points.map((p) => kind_of_step(p.step)))];
  $("roofline-legend").replaceChildren(...kinds.map((kind) => make("span", {}, make("i", {class: "ring", style: `background: var(--${kind_colors[kind] || "other"})`}), kind_names[kind] || "other")));
}

// "14 us measured, 12 us estimated of 20 us"
function time_of_a_run(c) {
  const parts = measured ? [`${time_text(total_ns)} measured`] : ["not measured"];
  if (c.predicted_ns !== null) parts.push(`${time_text(c.predicted_ns)} estimated`);
  return parts.join(", ") + (c.latency_target_us === null ? "" : ` of ${time_text(c.latency_target_us * 1e3)}`);
}

function contract_section() {
  const c = report.contract;
  const term = (name, state, style, value, note) => make("div", {class: "term"}, make("h3", {}, name, make("span", {class: `state ${style}`}, state)), make("p", {}, value), make("small", {}, note));
  const levels = {
    strict: "The same bits run to run, for any number of threads, and on every device, for all types.",
    balanced: "The same bits run to run and for any number of threads; on every device for f32, f64 and integers, per kind of device for halves.",
    fast: "No bits are promised: kernels may take any order of sums.",
  };
  const terms = [
    c.memory_budget === null
      ? term("Memory", "no budget", "none", `peak ${bytes_text(c.peak_bytes)}`, "Planned to the byte before the run. --memory-budget makes it a limit that is kept or refused.")
      : term("Memory", c.kept ? "kept" : "not kept", c.kept ? "good" : "bad", `${bytes_text(c.peak_bytes)} of ${bytes_text(c.memory_budget)}`, `${c.peak_bytes.toLocaleString("en-US")} of ${c.memory_budget.toLocaleString("en-US")} bytes, planned before the run.`),
    term("Determinism", c.determinism === "fast" ? "not promised" : "kept", c.determinism === "fast" ? "none" : "good", c.determinism, levels[c.determinism]),
    term("Threads", "", "none", String(report.threads), "Their number is no promise: it changes the time of a run."),
    term("Device", c.fallback_count ? "fallbacks" : "no fallback", c.fallback_count ? "bad" : "good", report.device, `${count_text(c.fallback_count, "node")} ran on the host though their op has a kernel; ${count_text(c.host_calls, "call")} of host functions. Where the device cannot be used: ${c.fallback}.`),
    term("Runs", report.refusals.length ? "refused" : "none refused", report.refusals.length ? "bad" : "good", count_text(c.runs, "run"), `${count_text(c.guard_miss_count, "run")} refused at entry for their tensors.`),
    term("Time", c.latency_target_us === null ? "no target" : "kept by estimate", c.latency_target_us === null ? "none" : "good", time_of_a_run(c), "--latency-target-us refuses a model whose kernels are estimated to take longer. What is measured is not promised."),
    c.compile_budget_ms === null
      ? term("Compile", "no budget", "none", time_text(report.compile.ns), "--compile-budget-ms makes it a limit: a compile that takes longer is refused.")
      : term("Compile", "kept", "good", `${time_text(report.compile.ns)} of ${time_text(c.compile_budget_ms * 1e6)}`, "A compile that takes longer is refused."),
    term("Accuracy", "no bound", "none", "not bounded", "Promised are bits, by the level of determinism, and not bounds on the error of results."),
  ];
  $("terms").replaceChildren(...terms);
  const row = ([name, value, initial, bits, help]) => make("tr", {}, make("td", {class: "name"}, name), make("td", {class: "name"}, value.split("\n").join(", ") || "–"), make("td", {class: "name"}, initial || "–"), make("td", {}, bits ? "may change bits" : "same bits"), make("td", {class: "detail"}, help));
  const table = (rows) => make("div", {class: "scroll"}, make("table", {}, make("thead", {}, make("tr", {}, ...["Option", "Value", "Default", "Bits", "What it is"].map((h) => make("th", {scope: "col"}, h)))), make("tbody", {}, ...rows.map(row))));
  const clauses = report.decisions.filter(([what]) => text(what).startsWith("contract:"));
  const clause = ([what, chosen, reason, detail]) => make("tr", {}, make("td", {class: "name"}, text(what).slice(9)), make("td", {}, text(chosen)), make("td", {class: "name"}, text(reason)), make("td", {class: "detail"}, text(detail) || "–"));
  const answers = make("div", {class: "scroll"}, make("table", {id: "clauses"}, make("thead", {}, make("tr", {}, ...["Clause", "Answer", "Reason", "By what"].map((h) => make("th", {scope: "col"}, h)))), make("tbody", {}, ...clauses.map(clause))));
  const changed = report.options.filter(([, value, initial]) => value !== initial);
  const parts = clauses.length ? [make("h3", {}, "Clauses of the contract"), answers] : [];
  if (changed.length) parts.push(make("h3", {}, "Options that differ from their defaults"), table(changed));
  $("options").replaceChildren(...parts, make("details", {}, make("summary", {}, `All ${report.options.length} options`), table(report.options)));
}

function selection_bar() {
  selection.watchers.push((group) => {
    const bar = $("selection");
    bar.hidden = group < 0;
    if (group < 0) return;
    const g = groups[group];
    const took = measured ? ` · ${time_text(sum(g.steps.map((s) => s.ns)))}` : "";
    bar.replaceChildren(
      make("b", {}, g.name),
      make("span", {}, `${kind_names[g.kind]} · ${g.kernel}${took}`),
      make("button", {type: "button", onclick: () => show_group(group)}, "Show in graph"),
      make("button", {type: "button", onclick: () => { set_search(g.name); $("decisions").scrollIntoView(); }}, "Decisions"),
      make("button", {type: "button", class: "quiet", "aria-label": "Clear the selection", onclick: () => selection.set(-1)}, "×"));
  });
}

function set_search(query) {
  Object.assign($("search"), {value: query}).dispatchEvent(new Event("input"));
}
function searching(decision_table) {
  const input = $("search");
  let next = 0;
  input.addEventListener("input", () => {
    search.query = input.value.trim().toLowerCase();
    next = 0;
    const matching = decision_table.filter();
    if (graph_view) {
      graph_view.look_for();
      graph_view.request();
    }
    const boxes = graph_view ? graph_view.found.size : 0;
    $("found").textContent = search.query === "" ? "" : `${count_text(boxes, "node")}, ${count_text(matching, "decision")}`;
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      set_search("");
      input.blur();
    }
    if (event.key !== "Enter" || !graph_view || !graph_view.found.size) return;
    const box = [...graph_view.found][next++ % graph_view.found.size];
    graph_view.pick(box);
    graph_view.center_on(box);
    $("graph").scrollIntoView({block: "start"});
  });
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    }
    if (event.key === "Escape" && !typing) selection.set(-1);
  });
}

// The link of the section that is on the screen.
function mark_sections() {
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.id);
      if (!entry.isIntersecting || !link) continue;
      for (const other of links.values()) other.removeAttribute("aria-current");
      link.setAttribute("aria-current", "true");
    }
  }, {rootMargin: "-35% 0px -60% 0px"});
  for (const id of links.keys()) seen.observe($(id));
}

start_theme();
overview();
graph_section();
timeline_section();
memory_section();
roofline_section();
$("decisions-note").textContent = `${count_text(decisions.length, "choice")} of the compiler with ${decisions.length === 1 ? "its" : "their"} reason; kernels with all candidates and their estimated cost.`;
const decision_table = new DecisionTable();
contract_section();
selection_bar();
searching(decision_table);
mark_sections();
$("footer").textContent = `PyC ${report.version}${report.fingerprint ? ` · graph ${report.fingerprint}` : ""} · this page holds all its data and loads nothing.`;
document.documentElement.dataset.ready = "true";
