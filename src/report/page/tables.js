// Tables of steps and decisions.

const page_rows = 100;

// A table that can be sorted by its columns and shows a part of its rows at first. A column is
// {title, of (the value to sort by), cell (element or text), number}.
class SortedTable {
  constructor(parent, columns, rows, options = {}) {
    this.parent = parent;
    this.columns = columns;
    this.rows = rows;
    this.by = options.by ?? -1;
    this.down = true;
    this.first = options.first ?? page_rows;
    this.limit = this.first;
    this.picked = options.picked || (() => false);
    this.lines = [];
    this.empty = options.empty || "Nothing to show.";
    this.render();
  }
  show(rows) {
    this.rows = rows;
    this.limit = this.first;
    this.render();
  }
  sort(column) {
    this.down = this.by === column ? !this.down : Boolean(this.columns[column].number);
    this.by = column;
    this.render();
    this.parent.querySelectorAll("th button")[column].focus();
  }
  sorted() {
    if (this.by < 0) return this.rows;
    const of = this.columns[this.by].of;
    const sign = this.down ? -1 : 1;
    return [...this.rows].sort((a, b) => (of(a) < of(b) ? -sign : of(a) > of(b) ? sign : 0));
  }
  render() {
    if (!this.rows.length) {
      this.lines = [];
      this.parent.replaceChildren(make("div", {class: "empty"}, this.empty));
      return;
    }
    const heads = this.columns.map((column, i) => {
      const sorting = this.by === i ? (this.down ? "descending" : "ascending") : null;
      return make("th", {scope: "col", class: column.number ? "number" : null, "aria-sort": sorting}, make("button", {type: "button", onclick: () => this.sort(i)}, column.title));
    });
    this.lines = this.sorted().slice(0, this.limit).map((row) => [row, make("tr", {}, ...this.columns.map((column) => (
      make("td", {class: column.style || (column.number ? "number" : null)}, column.cell(row)))))]);
    this.mark();
    const left = this.rows.length - this.limit;
    const table = make("div", {class: "scroll"}, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...this.lines.map(([, line]) => line))));
    const more = left <= 0 ? null : make("button", {type: "button", class: "more", onclick: () => { this.limit += page_rows; this.render(); }}, `Show ${Math.min(left, page_rows)} more of ${left.toLocaleString("en-US")}`);
    this.parent.replaceChildren(...[table, more].filter((part) => part));
  }
  mark() { for (const [row, line] of this.lines) line.className = this.picked(row) ? "picked" : ""; }
}

function step_table() {
  if (!steps.length) return;
  const link = (step) => (step.group < 0 ? step.name : make("button", {type: "button", class: "link", onclick: () => selection.set(step.group)}, step.name));
  const share = (step) => {
    const bar = make("i", {style: `width: ${100 * (step.ns / total_ns)}%`});
    return make("span", {}, time_text(step.ns), make("span", {class: "share", "aria-hidden": "true"}, bar));
  };
  const columns = [
    {title: "Step", of: (s) => s.index, cell: link},
    {title: "Kernel", of: kernel_of_step, cell: kernel_of_step, style: "name"},
  ];
  if (measured) {
    columns.push({title: "Time", number: true, of: (s) => s.ns, cell: share});
    columns.push({title: "Least – most", number: true, of: (s) => Math.max(...s.times) - Math.min(...s.times), cell: (s) => `${time_text(Math.min(...s.times))} – ${time_text(Math.max(...s.times))}`});
    columns.push({title: "GFLOP/s", number: true, of: (s) => s.flops / s.ns, cell: (s) => number_text(s.flops / Math.max(1, s.ns))});
    columns.push({title: "GB/s", number: true, of: (s) => s.bytes / s.ns, cell: (s) => number_text(s.bytes / Math.max(1, s.ns))});
    if (report.roofs) columns.push({title: "Bound by", of: bound_of, cell: bound_of});
  }
  columns.push({title: "flop", number: true, of: (s) => s.flops, cell: (s) => number_text(s.flops)});
  columns.push({title: "Bytes", number: true, of: (s) => s.bytes, cell: (s) => bytes_text(s.bytes)});
  columns.push({title: "Pieces", number: true, of: (s) => s.parallel, cell: (s) => number_text(s.parallel)});
  const table = new SortedTable($("steps"), columns, steps, {by: measured ? 2 : -1, first: 12, picked: (s) => s.group >= 0 && s.group === selection.group});
  selection.watchers.push(() => table.mark());
}

const decisions = report.decisions.map(([what, chosen, reason, detail, alternatives], index) => {
  const [stage, ...rest] = text(what).split(":");
  return {index, stage, what: text(what), subject: rest.join(":").replace(/^%/, ""), chosen: text(chosen), reason: text(reason), detail: text(detail), alternatives};
});

class DecisionTable {
  constructor() {
    this.stage = "";
    this.table = new SortedTable($("decision-table"), [
      {title: "What", of: (d) => d.index, cell: (d) => d.what, style: "name"},
      {title: "Chosen", of: (d) => d.chosen, cell: (d) => d.chosen, style: "name"},
      {title: "Reason", of: (d) => d.reason, cell: (d) => make("span", {class: "reason"}, d.reason.replace(/_/g, " "))},
      {title: "Detail", of: (d) => d.detail, cell: (d) => this.detail(d), style: "detail"},
    ], [], {empty: "No decision matches."});
    this.filter();
  }
  detail(decision) {
    if (!decision.alternatives.length) return decision.detail;
    const rows = decision.alternatives.map(([name, cost, rejected]) => make("tr", {}, make("td", {class: "name"}, text(name)), make("td", {}, cost === null ? text(rejected) : `estimated ${time_text(cost)}`)));
    const summary = make("summary", {}, count_text(decision.alternatives.length, "candidate"));
    return make("div", {}, decision.detail, make("details", {}, summary, make("table", {}, make("tbody", {}, ...rows))));
  }
  matching() {
    if (search.query === "") return decisions;
    const group = groups[searched_group()];
    if (group) {
      const {nodes, values} = after_graph();
      const names = new Set([group.name, ...group.members.flatMap((member) => nodes[member].outputs.map((value) => values[value].name))]);
      return decisions.filter((d) => names.has(d.subject));
    }
    return decisions.filter((d) => found_in(d.what, d.chosen, d.reason, d.reason.replace(/_/g, " "), d.detail));
  }
  filter() {
    const matching = this.matching();
    const counts = new Map();
    for (const d of matching) counts.set(d.stage, (counts.get(d.stage) || 0) + 1);
    if (this.stage !== "" && !counts.has(this.stage)) this.stage = "";
    const chip = (stage, label) => make("button", {type: "button", "aria-pressed": String(this.stage === stage), onclick: () => this.choose(stage)}, label);
    $("stages").replaceChildren(chip("", `all ${matching.length.toLocaleString("en-US")}`), ...[...counts].map(([stage, count]) => chip(stage, `${stage.replace(/_/g, " ")} ${count.toLocaleString("en-US")}`)));
    this.table.show(this.stage === "" ? matching : matching.filter((d) => d.stage === this.stage));
    return matching.length;
  }
  choose(stage) {
    this.stage = stage;
    this.filter();
    [...$("stages").children].find((chip) => chip.getAttribute("aria-pressed") === "true").focus();
  }
}
