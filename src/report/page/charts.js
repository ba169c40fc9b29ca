// Timeline, memory and roofline.

// What the pointer is over, with a tip; and that it left.
function hover(chart, event) {
  chart.hovered = chart.hit(event.offsetX, event.offsetY);
  chart.canvas.style.cursor = chart.hovered ? "pointer" : "default";
  if (chart.hovered) tip.show(event.clientX, event.clientY, ...chart.lines(chart.hovered));
  else tip.hide();
  chart.surface.request();
}
function leave(chart) {
  tip.hide();
  Object.assign(chart, {hovered: null}).surface.request();
}

// A chart over one axis that can be moved and zoomed.
class AxisChart {
  constructor(canvas, domain) {
    this.canvas = canvas;
    this.domain = domain;
    this.from = 0;
    this.to = domain;
    this.hovered = null;
    this.left = 88;
    this.right = 16;
    this.surface = new Surface(canvas, (context, width, height) => this.draw(context, width, height));
    this.listen();
  }
  x(at) { return this.left + ((at - this.from) / (this.to - this.from)) * (this.surface.width - this.left - this.right); }
  at(x) { return this.from + ((x - this.left) / (this.surface.width - this.left - this.right)) * (this.to - this.from); }
  move(from, to) {
    const length = Math.min(this.domain, Math.max(this.domain / 5000, to - from));
    this.from = Math.min(Math.max(0, from), this.domain - length);
    this.to = this.from + length;
    this.surface.request();
  }
  clip(context, width, height) {
    context.save();
    context.beginPath();
    context.rect(this.left, 0, width - this.left - this.right, height);
    context.clip();
  }
  zoom(factor, x = (this.left + this.surface.width - this.right) / 2) {
    const at = this.at(x);
    this.move(at - (at - this.from) / factor, at + (this.to - at) / factor);
  }
  pan(part, by = part * (this.to - this.from)) { this.move(this.from + by, this.to + by); }
  listen() {
    const canvas = this.canvas;
    listen_pointer(canvas, {
      drag: (dx) => this.pan(-dx / (this.surface.width - this.left - this.right)),
      click: (event) => this.choose(this.hit(event.offsetX, event.offsetY)),
      look: (event) => hover(this, event),
      leave: () => leave(this),
      zoom: (factor, event) => this.zoom(factor, event.offsetX),
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "ArrowLeft") this.pan(-0.12);
      else if (event.key === "ArrowRight") this.pan(0.12);
      else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-" || event.key === "_") this.zoom(1 / 1.4);
      else if (event.key === "0") this.move(0, this.domain);
      else if (event.key === "Escape") selection.set(-1);
      else return;
      event.preventDefault();
    });
  }
}

// Each measured run is a lane, each step a block of it.
class Timeline extends AxisChart {
  constructor(canvas) {
    super(canvas, Math.max(...run_totals));
    this.starts = report.runs.map((run) => {
      let at = 0;
      return run.map((ns) => (at += ns) - ns);
    });
    this.lanes = run_totals.slice(0, 8).map((_, run) => run);
    if (!this.lanes.includes(fastest_run)) this.lanes[this.lanes.length - 1] = fastest_run;
    this.move(0, 1.4 * median(run_totals));  // a run that was held up does not squeeze the others
    canvas.parentElement.style.height = `${34 + this.lanes.length * 30}px`;
  }
  lane_top(lane) { return 8 + lane * 30; }
  draw(context, width, height) {
    const bottom = this.lane_top(this.lanes.length) + 2;
    this.draw_axis(context, width, height, bottom);
    this.clip(context, width, height);
    this.lanes.forEach((run, lane) => this.draw_run(context, run, this.lane_top(lane)));
    context.restore();
    context.textBaseline = "middle";
    context.textAlign = "right";
    this.lanes.forEach((run, lane) => {
      context.fillStyle = run === fastest_run ? colors.ink : colors.muted;
      context.font = sans(12, run === fastest_run ? 600 : 400);
      context.fillText(run === fastest_run ? "fastest run" : `run ${run + 1}`, this.left - 8, this.lane_top(lane) + 12);
    });
    context.textAlign = "left";
  }
  draw_axis(context, width, height, bottom) {
    context.font = sans(11);
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const at of ticks(this.from, this.to, Math.max(2, (width - this.left) / 110))) {
      const x = this.x(at);
      context.fillStyle = colors.line;
      context.fillRect(Math.round(x), 4, 1, bottom - 4);
      context.fillStyle = colors.muted;
      context.fillText(time_text(at), x, bottom + 4);
    }
    context.textAlign = "left";
  }
  draw_run(context, run, top) {
    const strong = run === fastest_run;
    let covered = -Infinity;
    report.runs[run].forEach((ns, index) => {
      const start = this.starts[run][index];
      if (start + ns < this.from || start > this.to) return;
      const [x1, x2] = [this.x(start), this.x(start + ns)];
      // Blocks that fall into a pixel that is drawn already are not seen.
      if (x2 - covered < 0.4) return;
      covered = x2;
      const step = steps[index];
      const color = color_of_kind(kind_of_step(step));
      const picked = step.group >= 0 && step.group === selection.group;
      const lit = picked || (this.hovered && this.hovered.step === step);
      context.fillStyle = lit ? color : tint(color, strong ? 0.55 : 0.3);
      const gap = x2 - x1 > 3 ? 1 : 0;
      context.fillRect(x1, top, Math.max(0.6, x2 - x1 - gap), 24);
      context.font = sans(11, 500);
      if (x2 - x1 < context.measureText(step.name).width + 8) return;
      context.textBaseline = "middle";
      context.fillStyle = lit ? colors.panel : colors.ink;
      context.fillText(step.name, x1 + 4, top + 12.5);
    });
  }
  hit(x, y) {
    const lane = Math.floor((y - 8) / 30);
    if (lane < 0 || lane >= this.lanes.length || x < this.left) return null;
    const run = this.lanes[lane];
    const at = this.at(x);
    const index = report.runs[run].findIndex((ns, i) => at >= this.starts[run][i] && at < this.starts[run][i] + ns);
    return index < 0 ? null : {step: steps[index], run};
  }
  lines({step, run}) { return [step.name, `${time_text(report.runs[run][step.index])} in this run`, ...step_lines(step)]; }
  choose(hit) { selection.set(hit ? hit.step.group : -1); }
}

// Offsets in the arena over the steps of the plan.
class MemoryMap extends AxisChart {
  constructor(canvas) {
    super(canvas, Math.max(1, report.plan_steps.length));
    this.instances = report.instances.map(([name, cls, place, offset, bytes, taken, first, last, in_place]) => (
      {name: text(name), cls: text(cls), place, offset, bytes, taken, first, last, in_place}));
    this.show(report.places.findIndex((place) => place.arena > 0));
  }
  show(place) {
    this.place = report.places[place];
    this.shown = this.instances.filter((instance) => instance.place === place);
    const change = new Array(report.plan_steps.length + 1).fill(0);
    for (const instance of this.shown) {
      // In its first step an instance in place shares the bytes of what it replaces.
      change[instance.first + instance.in_place] += instance.taken;
      change[instance.last + 1] -= instance.taken;
    }
    let live = 0;
    this.live = change.slice(0, -1).map((by) => (live += by));
    this.top_bytes = Math.max(this.place.arena, this.place.lower_bound, 1) * 1.08;
    this.surface.request();
  }
  y(bytes) { return this.surface.height - 30 - (bytes / this.top_bytes) * (this.surface.height - 44); }
  draw(context, width, height) {
    this.draw_axes(context, width, height);
    this.clip(context, width, height);
    for (const instance of this.shown) this.draw_instance(context, instance);
    this.draw_live(context);
    context.restore();
    this.draw_limits(context, width);
  }
  draw_axes(context, width, height) {
    context.font = sans(11);
    context.textBaseline = "middle";
    const unit = 1024 ** Math.max(0, Math.floor(Math.log(this.top_bytes) / Math.log(1024)));
    for (const at of ticks(0, this.top_bytes / unit, 5)) {
      const y = Math.round(this.y(at * unit));
      context.fillStyle = colors.line;
      context.fillRect(this.left, y, width - this.left - this.right, 1);
      context.fillStyle = colors.muted;
      context.textAlign = "right";
      context.fillText(bytes_text(at * unit), this.left - 8, y);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    const whole = ticks(this.from, this.to, Math.max(2, width / 100)).filter((at) => Number.isInteger(at) && at < report.plan_steps.length);
    for (const at of whole) context.fillText(String(at), this.x(at + 0.5), height - 22);
    context.textAlign = "right";
    context.fillText("step", this.left - 8, height - 22);
    context.textAlign = "left";
  }
  draw_instance(context, instance) {
    if (instance.last + 1 < this.from || instance.first > this.to) return;
    const color = instance.cls === "workspace" ? colors.warm : colors.loop;
    const [x1, x2] = [this.x(instance.first), this.x(instance.last + 1)];
    const [y1, y2] = [this.y(instance.offset + instance.taken), this.y(instance.offset)];
    const lit = instance === this.hovered || this.belongs(instance);
    context.fillStyle = tint(color, lit ? 0.6 : 0.22);
    context.fillRect(x1, y1, Math.max(0.5, x2 - x1), Math.max(0.5, y2 - y1));
    context.strokeStyle = tint(color, lit ? 1 : 0.55);
    context.lineWidth = lit ? 1.5 : 0.75;
    if (x2 - x1 > 2 && y2 - y1 > 2) context.strokeRect(x1 + 0.5, y1 + 0.5, x2 - x1 - 1, y2 - y1 - 1);
    if (x2 - x1 < 34 || y2 - y1 < 15) return;
    context.font = sans(11, 500);
    context.textBaseline = "middle";
    context.fillStyle = colors.ink;
    const left = Math.max(x1, this.left);
    context.fillText(fitted(context, instance.name, Math.min(x2, this.surface.width - this.right) - left - 10), left + 5, (y1 + y2) / 2);
  }
  // Whether the group that is selected makes it.
  belongs(instance) {
    return selection.group >= 0 && text(report.plan_steps[instance.first]) === groups[selection.group].name;
  }
  draw_live(context) {
    context.beginPath();
    this.live.forEach((bytes, step) => {
      context.lineTo(this.x(step), this.y(bytes));
      context.lineTo(this.x(step + 1), this.y(bytes));
    });
    context.strokeStyle = colors.ink;
    context.lineWidth = 1.25;
    context.stroke();
  }
  draw_limits(context, width) {
    const right = width - this.right;
    const line = (bytes, color, dash, label, above) => {
      const y = Math.round(this.y(bytes)) + 0.5;
      context.setLineDash(dash);
      context.strokeStyle = color;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(this.left, y);
      context.lineTo(right, y);
      context.stroke();
      context.setLineDash([]);
      context.font = sans(11.5, 600);
      context.textAlign = "right";
      context.textBaseline = above ? "bottom" : "top";
      const size = context.measureText(label).width;
      context.fillStyle = tint(colors.panel, 0.8);
      context.fillRect(right - size - 8, above ? y - 17 : y + 2, size + 8, 15);
      context.fillStyle = color;
      context.fillText(label, right - 4, above ? y - 3 : y + 4);
      context.textAlign = "left";
    };
    const {arena, lower_bound: bound} = this.place;
    if (arena === bound) {
      line(arena, colors.accent, [], `arena ${bytes_text(arena)}, which is the lower bound`, true);
      return;
    }
    line(arena, colors.accent, [], `arena ${bytes_text(arena)}`, true);
    line(bound, colors.bad, [6, 4], `lower bound ${bytes_text(bound)}`, false);
  }
  hit(x, y) {
    const step = this.at(x);
    return this.shown.find((i) => step >= i.first && step < i.last + 1 && y <= this.y(i.offset) && y >= this.y(i.offset + i.taken)) || null;
  }
  lines(instance) {
    const steps_text = instance.first === instance.last ? `step ${instance.first}` : `steps ${instance.first} to ${instance.last}`;
    return [instance.name, `${instance.cls}, ${instance.bytes.toLocaleString("en-US")} bytes at offset ${instance.offset.toLocaleString("en-US")}`, steps_text + (instance.in_place ? ", written in place" : "")];
  }
  choose(instance) {
    selection.set(instance ? groups.findIndex((group) => group.name === text(report.plan_steps[instance.first])) : -1);
  }
}

// Every kernel by its intensity and its rate, both in logarithms.
class Roofline {
  constructor(canvas) {
    this.canvas = canvas;
    this.points = steps.filter((step) => step.flops > 0 && step.bytes > 0 && step.ns > 0).map((step) => (
      {step, intensity: step.flops / step.bytes, rate: step.flops / step.ns}));
    this.drawn = [...this.points].sort((a, b) => b.step.ns - a.step.ns);
    this.hovered = null;
    this.measure();
    this.surface = new Surface(canvas, (context, width, height) => this.draw(context, width, height));
    this.listen();
  }
  measure() {
    const roofs = report.roofs;
    const xs = this.points.map((p) => p.intensity);
    const ys = this.points.map((p) => p.rate);
    if (roofs) {
      xs.push(roofs.gflops / roofs.gbytes_per_second);
      ys.push(roofs.gflops);
    }
    const span = (list, below, above) => [Math.floor(Math.log10(Math.min(...list)) - below), Math.ceil(Math.log10(Math.max(...list)) + above)];
    this.xs = span(xs, 0.2, 0.2);
    this.ys = span(ys, 0.1, 0.15);
  }
  x(value) { return 66 + ((Math.log10(value) - this.xs[0]) / (this.xs[1] - this.xs[0])) * (this.surface.width - 90); }
  y(value) { return this.surface.height - 46 - ((Math.log10(value) - this.ys[0]) / (this.ys[1] - this.ys[0])) * (this.surface.height - 66); }
  radius(point) { return 3.5 + 17 * Math.sqrt(point.step.ns / total_ns); }

  draw(context, width, height) {
    this.draw_axes(context, width, height);
    if (report.roofs) this.draw_roofs(context, width);
    for (const point of this.drawn) this.draw_point(context, point);
    this.label_points(context);
  }
  draw_axes(context, width, height) {
    const power_text = (power) => (power >= 0 && power < 4 ? (10 ** power).toLocaleString("en-US") : power > -3 && power < 0 ? String(10 ** power) : `1e${power}`);
    context.font = sans(11);
    for (let power = this.xs[0]; power <= this.xs[1]; ++power) {
      context.fillStyle = colors.line;
      context.fillRect(Math.round(this.x(10 ** power)), 14, 1, height - 60);
      context.fillStyle = colors.muted;
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillText(power_text(power), this.x(10 ** power), height - 40);
    }
    for (let power = this.ys[0]; power <= this.ys[1]; ++power) {
      context.fillStyle = colors.line;
      context.fillRect(66, Math.round(this.y(10 ** power)), width - 90, 1);
      context.fillStyle = colors.muted;
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(power_text(power), 58, this.y(10 ** power));
    }
    context.font = sans(12);
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.fillText("intensity: flop per byte moved", width / 2 + 20, height - 5);
    context.save();
    context.translate(14, height / 2 - 14);
    context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText("rate: GFLOP/s", 0, 0);
    context.restore();
    context.textAlign = "left";
  }
  draw_roofs(context, width) {
    const {gflops, gbytes_per_second: bandwidth} = report.roofs;
    const ridge = gflops / bandwidth;
    const left = 10 ** this.xs[0];
    context.save();
    context.beginPath();
    context.rect(66, 14, width - 90, this.surface.height - 60);
    context.clip();
    context.strokeStyle = colors.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(this.x(left), this.y(left * bandwidth));
    context.lineTo(this.x(ridge), this.y(gflops));
    context.lineTo(this.x(10 ** this.xs[1]), this.y(gflops));
    context.stroke();
    context.restore();
    context.fillStyle = colors.ink;
    context.font = sans(12, 550);
    context.textBaseline = "bottom";
    context.textAlign = "right";
    context.fillText(`${number_text(gflops)} GFLOP/s`, width - 30, this.y(gflops) - 6);
    const at = Math.max(ridge / 6, 10 ** (this.xs[0] + 0.15));
    const slope = Math.atan2(this.y(10 * at * bandwidth) - this.y(at * bandwidth), this.x(10 * at) - this.x(at));
    context.save();
    context.translate(this.x(at), this.y(at * bandwidth));
    context.rotate(slope);
    context.textAlign = "center";
    context.fillText(`${number_text(bandwidth)} GB/s`, 0, -6);
    context.restore();
    context.textAlign = "left";
  }
  draw_point(context, point) {
    const color = color_of_kind(kind_of_step(point.step));
    const picked = point.step.group >= 0 && point.step.group === selection.group;
    const lit = picked || point === this.hovered;
    context.beginPath();
    context.arc(this.x(point.intensity), this.y(point.rate), this.radius(point), 0, 2 * Math.PI);
    context.fillStyle = tint(color, lit ? 0.75 : 0.3);
    context.fill();
    context.strokeStyle = lit ? colors.ink : color;
    context.lineWidth = lit ? 2 : 1;
    context.stroke();
  }
  // The names of the slowest, where there is room.
  label_points(context) {
    const taken = [];
    context.font = sans(11, 500);
    context.textBaseline = "middle";
    for (const point of this.drawn.slice(0, 12)) {
      const x = this.x(point.intensity) + this.radius(point) + 4;
      const y = this.y(point.rate);
      const width = context.measureText(point.step.name).width;
      if (taken.some((t) => x < t.x + t.width && t.x < x + width && Math.abs(t.y - y) < 13)) continue;
      taken.push({x, y, width});
      context.fillStyle = colors.muted;
      context.fillText(point.step.name, x, y);
    }
  }
  hit(x, y) {
    let best = null;
    let least = 12;
    for (const point of this.drawn) {
      const far = Math.max(0, Math.hypot(this.x(point.intensity) - x, this.y(point.rate) - y) - this.radius(point));
      if (far <= least) [best, least] = [point, far];
    }
    return best;
  }
  lines(point) { return [point.step.name, `${number_text(point.intensity)} flop per byte`, ...step_lines(point.step), bound_text(point.step)]; }
  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("pointermove", (event) => hover(this, event));
    canvas.addEventListener("pointerleave", () => leave(this));
    canvas.addEventListener("click", (event) => {
      const point = this.hit(event.offsetX, event.offsetY);
      selection.set(point ? point.step.group : -1);
    });
    // Arrow keys walk from kernel to kernel, in the order they run in.
    canvas.addEventListener("keydown", (event) => {
      const by = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
      if (event.key === "Escape") selection.set(-1);
      if (!by || !this.points.length) return;
      event.preventDefault();
      const now = this.points.findIndex((p) => p.step.group === selection.group);
      const next = this.points[now < 0 ? 0 : (now + by + this.points.length) % this.points.length];
      selection.set(next.step.group);
      announce(this.lines(next).join(", "));
    });
  }
}

// What bounds a step: as `pyc bench` says it.
function bound_of(step) {
  if (!report.roofs || step.ns === null) return "";
  const arithmetic = step.flops / report.roofs.gflops;
  const moving = step.bytes / report.roofs.gbytes_per_second;
  if (step.ns > 4 * Math.max(arithmetic, moving)) return "other";
  return arithmetic > moving ? "arithmetic" : "memory";
}
function bound_text(step) {
  const bound = bound_of(step);
  return bound === "" ? "" : bound === "other" ? "takes over four times what the roofs allow" : `bound by ${bound}`;
}
