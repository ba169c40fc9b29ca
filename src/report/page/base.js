"use strict";
// What all parts of the page share: the data, text, colours, canvases, the selection.

const report = JSON.parse(document.getElementById("data").textContent);
const text = (i) => report.strings[i];
const $ = (id) => document.getElementById(id);

// An element. Text of a model goes in as text, never as markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function number_text(value, digits = 3) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(digits)));
}
function scaled(value, units, step) {
  let unit = 0;
  while (Math.abs(value) >= step && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  return `${number_text(value)} ${units[unit]}`;
}
const time_text = (ns) => scaled(ns, ["ns", "µs", "ms", "s"], 1000);
const bytes_text = (bytes) => scaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const count_text = (count, one, many = one + "s") => `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
const percent_text = (part) => (part > 0 && part < 0.001 ? "< 0.1 %" : `${number_text(100 * part, 2)} %`);

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const sum = (list) => list.reduce((a, b) => a + b, 0);

// The fastest run was disturbed least: its times are the ones that are shown, as by `pyc bench`.
const run_totals = report.runs.map(sum);
const fastest_run = run_totals.indexOf(Math.min(...run_totals));

// Groups and steps with names instead of positions.
const groups = (report.groups || []).map(([name, kind, kernel, order, members, reasons], index) => (
  {index, name: text(name), kind: text(kind), kernel: text(kernel), order: text(order), members, reasons: reasons.map(text), steps: []}));
const steps = report.steps.map(([name, group, flops, bytes, parallel, kernels], index) => {
  const times = report.runs.map((run) => run[index]);
  const step = {index, name: text(name), group, flops, bytes, parallel, kernels, times, ns: times.length ? times[fastest_run] : null};
  if (group >= 0) groups[group].steps.push(step);
  return step;
});
const measured = steps.length > 0 && report.runs.length > 0;
const total_ns = measured ? Math.max(1, run_totals[fastest_run]) : null;

const kind_names = {contraction: "matrix product", attention: "attention", loop: "loop"};
const kind_colors = {contraction: "product", attention: "attention", loop: "loop"};
// A program that was compiled ahead of time has no groups, but the decisions say what was chosen.
const chosen_kernels = new Map(report.decisions.filter(([what]) => text(what).startsWith("kernel:")).map(([what, chosen]) => [text(what).slice(7), text(chosen)]));
const kernel_of_step = (step) => chosen_kernels.get(step.name) || "";
const kind_of_step = (step) => (step.group >= 0 ? groups[step.group].kind : "");
const color_of_kind = (kind) => colors[kind_colors[kind] || "other"];

// The theme's colours, for canvases.
let colors = {};
function read_colors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "panel", "ink", "muted", "faint", "line", "soft", "accent", "product", "attention", "loop", "other", "warm", "bad", "good"];
  for (const name of names) colors[name] = style.getPropertyValue("--" + name).trim();
}
// A colour of the form #rrggbb with a part of its strength.
const tint = (color, strength) => color + Math.round(255 * strength).toString(16).padStart(2, "0");

// A canvas that is drawn again when its size or the theme changes, in pixels of the page.
const surfaces = [];
class Surface {
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.draw = draw;
    this.waiting = false;
    this.width = 0;
    this.height = 0;
    surfaces.push(this);
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }
  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ratio = ratio;
    this.request();
  }
  request() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.width === 0 || this.height === 0) return;
      this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.context.clearRect(0, 0, this.width, this.height);
      this.draw(this.context, this.width, this.height);
    });
  }
}
const redraw = () => surfaces.forEach((surface) => surface.request());

const sans = (size, weight = 400) => `${weight} ${size}px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif`;
const mono = (size, weight = 400) => `${weight} ${size}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace`;

// As much of the text as fits, or "".
function fitted(context, label, width) {
  if (width < 8) return "";
  if (context.measureText(label).width <= width) return label;
  let [low, high] = [0, label.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(label.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? "" : label.slice(0, low) + "…";
}

function rounded(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

// Round numbers from lo to hi, about `count` of them.
function ticks(lo, hi, count) {
  const rough = (hi - lo) / Math.max(1, count);
  if (!(rough > 0)) return [lo];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
  const out = [];
  for (let at = Math.ceil(lo / step) * step; at <= hi + step * 1e-9; at += step) out.push(at);
  return out;
}

const tip = {
  show(x, y, title, ...lines) {
    const box = $("tip");
    box.replaceChildren(make("b", {}, title), ...lines.filter((line) => line).map((line) => make("div", {}, line)));
    box.hidden = false;
    const {width, height} = box.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? x - width - 14 : x + 14;
    const top = y + 16 + height > innerHeight ? y - height - 12 : y + 16;
    box.style.cssText = `left: ${Math.max(6, left)}px; top: ${Math.max(6, top)}px`;
  },
  hide() { $("tip").hidden = true; },
};
const announce = (message) => { $("live").textContent = message; };
// The group that is selected, by anything on the page. Parts that show it register themselves.
const selection = {
  group: -1,
  watchers: [],
  set(group, from = null) {
    if (this.group === group) return;
    this.group = group;
    for (const watcher of this.watchers) watcher(group, from);
    redraw();
  },
};

// What is looked for, in lower case.
const search = {query: "", watchers: []};
// A group's name alone asks for that group and what is in it.
const searched_group = () => groups.findIndex((group) => group.name.toLowerCase() === search.query);
const found_in = (...texts) => texts.some((t) => t.toLowerCase().includes(search.query));

function step_lines(step) {
  const lines = [];
  if (step.group >= 0) lines.push(`${kind_names[groups[step.group].kind]} · ${groups[step.group].kernel}`);
  if (step.ns !== null) {
    lines.push(`${time_text(step.ns)}, ${percent_text(step.ns / total_ns)} of the fastest run`);
    lines.push(rates_text(step));
  }
  lines.push(`${number_text(step.flops)} flop, ${bytes_text(step.bytes)} moved, ${count_text(step.parallel, "independent piece")}`);
  if (step.kernels > 1) lines.push(`${step.kernels} kernels, one after the other`);
  return lines;
}
const rates_text = (step) => `${number_text(step.flops / step.ns)} GFLOP/s, ${number_text(step.bytes / step.ns)} GB/s`;

function empty(element, message) {
  element.replaceWith(make("div", {class: "empty"}, make("p", {}, message)));
}

// Drags, clicks and looks of the pointer on a canvas.
function listen_pointer(canvas, {drag, click, look, leave: left, zoom}) {
  let from = null;
  canvas.addEventListener("pointerdown", (event) => {
    from = {x: event.clientX, y: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return look(event);
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.moved && Math.hypot(dx, dy) < 4) return;
    from = {x: event.clientX, y: event.clientY, moved: true};
    canvas.classList.add("dragging");
    tip.hide();
    drag(dx, dy);
  });
  canvas.addEventListener("pointerup", (event) => {
    canvas.classList.remove("dragging");
    if (from && !from.moved) click(event);
    from = null;
  });
  canvas.addEventListener("pointerleave", left);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp(-event.deltaY * lines * 0.0022), event);
  }, {passive: false});
}
