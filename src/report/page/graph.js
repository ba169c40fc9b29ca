// The graph: drawn from a layout that PyC computed, more of it the closer one looks.

const box_kinds = {input: 0, node: 1, output: 2, group: 3};

// A graph of the report with names instead of positions.
function read_graph(part) {
  const values = part.values.map(([name, type, kind]) => ({name: text(name), type: text(type), kind, readers: []}));
  const nodes = part.nodes.map(([op, inputs, outputs, attributes, location, in_groups], index) => {
    for (const input of inputs) values[input].readers.push(index);
    return {index, op: text(op), inputs, outputs, attributes: text(attributes), location: text(location), groups: in_groups};
  });
  const boxes = part.boxes.map(([kind, item, parent, x, y, width, height], index) => (
    {index, kind, item, parent, x, y, width, height, above: [], below: [], members: []}));
  const edges = part.edges.map(([from, to, ...bends]) => {
    const [a, b] = [boxes[from], boxes[to]];
    const points = [[a.x + a.width / 2, a.y + a.height]];
    for (let i = 0; i < bends.length; i += 2) points.push([bends[i], bends[i + 1]]);
    points.push([b.x + b.width / 2, b.y]);
    const xs = points.map((p) => p[0]);
    a.below.push(b);
    b.above.push(a);
    const direct = points.length === 2 && (b.y - a.y - a.height > 400 || b.y < a.y);
    return {from: a, to: b, points, direct, left: Math.min(...xs), right: Math.max(...xs), top: Math.min(a.y, b.y), bottom: Math.max(points[0][1], b.y)};
  });
  const graph = {width: part.width, height: part.height, values, nodes, boxes, edges};
  for (const box of boxes) {
    if (box.parent >= 0) boxes[box.parent].members.push(box);
    box.group = box.kind === box_kinds.group ? box.item : box.kind === box_kinds.node && nodes[box.item].groups.length ? nodes[box.item].groups[0] : -1;
    Object.assign(box, box_texts(graph, box));
  }
  return graph;
}

function box_texts(graph, box) {
  if (box.kind === box_kinds.group) return {title: groups[box.item].name, detail: groups[box.item].kernel, name: groups[box.item].name};
  if (box.kind === box_kinds.node) {
    const node = graph.nodes[box.item];
    const first = graph.values[node.outputs[0]];
    return {title: node.op, detail: first ? first.type : "", name: first ? first.name : ""};
  }
  const value = graph.values[box.item];
  return {title: value.name, detail: value.type, name: value.name};
}

class GraphView {
  constructor(canvas, map) {
    this.canvas = canvas;
    this.view = {x: 0, y: 0, zoom: 1};
    this.picked = null;
    this.hovered = null;
    this.found = new Set();
    this.surface = new Surface(canvas, (context, width, height) => this.draw(context, width, height));
    this.map = new Surface(map, (context, width, height) => this.draw_map(context, width, height));
    this.listen();
  }

  show(graph) {
    this.graph = graph;
    this.picked = null;
    this.hovered = null;
    this.look_for();
    this.start();
    this.canvas.setAttribute("aria-label", `Graph of ${count_text(graph.nodes.length, "node")}`);
  }
  // The top of the graph at a size that can be read.
  start() {
    const {width, height} = this.surface;
    const zoom = Math.min(1, Math.max(0.85, (width - 130) / this.graph.width), Math.max(0.85, (height - 48) / this.graph.height));
    const first = this.graph.boxes.find((box) => box.y === 0) || {x: 0, width: this.graph.width};
    const fits = this.graph.width * zoom <= width - 130 && this.graph.height * zoom <= height - 24;
    const center = fits ? this.graph.width / 2 : first.x + first.width / 2;
    this.view = {zoom, x: center - width / 2 / zoom, y: -24 / zoom};
    this.request();
  }
  fit() {
    const {width, height} = this.surface;
    const zoom = Math.min(1.5, (width - 40) / this.graph.width, (height - 40) / this.graph.height);
    this.view = {zoom, x: (this.graph.width - width / zoom) / 2, y: (this.graph.height - height / zoom) / 2};
    this.request();
  }
  request() {
    this.surface.request();
    this.map.request();
  }
  // By a factor, about a point of the canvas.
  zoom(factor, x = this.surface.width / 2, y = this.surface.height / 2) {
    const before = this.view.zoom;
    const zoom = Math.min(3, Math.max(0.004, before * factor));
    this.view.x += x / before - x / zoom;
    this.view.y += y / before - y / zoom;
    this.view.zoom = zoom;
    this.request();
  }
  pan(dx, dy) { this.look_at(this.view.x + dx / this.view.zoom, this.view.y + dy / this.view.zoom); }
  look_at(x, y) {
    Object.assign(this.view, {x, y});
    this.request();
  }
  center_on(box) {
    const {width, height} = this.surface;
    this.view.zoom = Math.max(this.view.zoom, 0.8);
    const tall = box.height * this.view.zoom > height - 60;
    this.look_at(box.x + box.width / 2 - width / 2 / this.view.zoom, tall ? box.y - 30 / this.view.zoom : box.y + box.height / 2 - height / 2 / this.view.zoom);
  }
  pick(box) {
    this.picked = box;
    this.request();
    inspect(this.graph, box);
    selection.set(box ? box.group : -1, this);
    announce(box ? `${box.title} ${box.name} ${box.detail}` : "Nothing is selected");
  }
  // Another part of the page selected a group.
  pick_group(group) {
    if (!this.graph || (this.picked && this.picked.group === group)) return;
    this.picked = group < 0 ? null : this.graph.boxes.find((box) => box.group === group) || null;
    inspect(this.graph, this.picked);
    this.request();
  }
  look_for() {
    const graph = this.graph;
    this.found = new Set();
    if (search.query === "") return;
    const group = searched_group();
    for (const box of graph.boxes) {
      if (group >= 0 && box.group === group) this.found.add(box);
      if (group >= 0) continue;
      const location = box.kind === box_kinds.node ? graph.nodes[box.item].location : "";
      if (found_in(box.title, box.name, box.detail, location)) this.found.add(box);
    }
  }

  // The smallest box at a point of the canvas.
  hit(x, y) {
    const at = [this.view.x + x / this.view.zoom, this.view.y + y / this.view.zoom];
    let best = null;
    for (const box of this.graph.boxes) {
      if (at[0] < box.x || at[0] > box.x + box.width || at[1] < box.y || at[1] > box.y + box.height) continue;
      if (box.parent >= 0 && !this.shows_members()) continue;
      if (best === null || box.width * box.height < best.width * best.height) best = box;
    }
    return best;
  }
  shows_members() { return this.view.zoom >= 0.3; }

  draw(context, width, height) {
    if (!this.graph) return;
    const {x, y, zoom} = this.view;
    const seen = {left: x, top: y, right: x + width / zoom, bottom: y + height / zoom};
    context.translate(-x * zoom, -y * zoom);
    context.scale(zoom, zoom);
    this.draw_edges(context, seen, zoom, (edge) => edge.from.parent < 0);
    const boxes = this.graph.boxes.filter((box) => box.x <= seen.right && box.y <= seen.bottom && box.x + box.width >= seen.left && box.y + box.height >= seen.top);
    const members = this.shows_members();
    for (const box of boxes) if (box.kind === box_kinds.group) this.draw_group(context, box, zoom);
    if (members) this.draw_edges(context, seen, zoom, (edge) => edge.from.parent >= 0);
    for (const box of boxes) if (box.kind !== box_kinds.group && (members || box.parent < 0)) this.draw_box(context, box, zoom);
  }
  draw_edges(context, seen, zoom, wanted) {
    const lit = [];
    context.lineWidth = Math.max(1, 0.8 / zoom);
    context.strokeStyle = zoom < 0.1 ? tint(colors.faint, 0.35) : tint(colors.faint, 0.75);
    context.beginPath();
    for (const edge of this.graph.edges) {
      if (!wanted(edge)) continue;
      if (edge.left > seen.right || edge.top > seen.bottom || edge.right < seen.left || edge.bottom < seen.top) continue;
      if (this.picked && (edge.from === this.picked || edge.to === this.picked)) lit.push(edge);
      else if (!edge.direct) trace_edge(context, edge, zoom);
    }
    context.stroke();
    context.strokeStyle = tint(colors.faint, 0.4);
    context.setLineDash([4 / zoom, 4 / zoom]);
    context.beginPath();
    for (const edge of this.graph.edges) {
      if (edge.direct && wanted(edge) && !(edge.top > seen.bottom || edge.bottom < seen.top)) trace_edge(context, edge, zoom);
    }
    context.stroke();
    context.setLineDash([]);
    context.strokeStyle = colors.accent;
    context.lineWidth = 2 / Math.min(1, zoom);
    context.beginPath();
    for (const edge of lit) trace_edge(context, edge, zoom);
    context.stroke();
  }
  faded(box) { return search.query !== "" && !this.found.has(box); }
  is_picked(box) {
    return box === this.picked || (selection.group >= 0 && box.group === selection.group && (box.kind === box_kinds.group || this.graph.boxes !== after_graph()?.boxes));
  }
  outline(context, box, color, zoom) {
    const picked = this.is_picked(box);
    const lit = picked || box === this.hovered || (search.query !== "" && this.found.has(box));
    context.strokeStyle = picked ? colors.accent : search.query !== "" && this.found.has(box) ? colors.warm : lit ? colors.muted : color;
    context.lineWidth = (lit ? 2 : 1) / Math.min(1, Math.max(zoom, 0.05));
    context.stroke();
  }
  draw_group(context, box, zoom) {
    const color = color_of_kind(groups[box.item].kind);
    context.globalAlpha = this.faded(box) && !this.has_found_member(box) ? 0.35 : 1;
    rounded(context, box.x, box.y, box.width, box.height, 9);
    context.fillStyle = colors.panel;
    context.fill();
    context.fillStyle = tint(color, this.shows_members() ? 0.09 : 0.26);
    context.fill();
    this.outline(context, box, tint(color, 0.5), zoom);
    this.label_group(context, box, zoom, color);
    context.globalAlpha = 1;
  }
  has_found_member(box) {
    return search.query !== "" && box.members.some((member) => this.found.has(member));
  }
  label_group(context, box, zoom, color) {
    context.textBaseline = "middle";
    if (this.shows_members()) {
      context.font = sans(11, 650);
      context.fillStyle = color;
      context.fillText(box.title, box.x + 12, box.y + 13.5);
      const after = context.measureText(box.title).width + 20;
      context.font = sans(11);
      context.fillStyle = colors.muted;
      context.fillText(fitted(context, box.detail, box.width - after - 10), box.x + after, box.y + 13.5);
      return;
    }
    const size = Math.min(13 / zoom, box.height * 0.42, box.width / 4);
    if (size * zoom < 7) return;
    context.font = sans(size, 600);
    context.fillStyle = color;
    context.textAlign = "center";
    context.fillText(fitted(context, box.title, box.width - 4), box.x + box.width / 2, box.y + box.height / 2);
    context.textAlign = "left";
  }
  draw_box(context, box, zoom) {
    const is_node = box.kind === box_kinds.node;
    const kind = box.group >= 0 ? groups[box.group].kind : "";
    const color = is_node ? color_of_kind(kind) : colors.warm;
    context.globalAlpha = this.faded(box) ? 0.3 : 1;
    rounded(context, box.x, box.y, box.width, box.height, is_node ? 6 : box.height / 2);
    context.fillStyle = zoom < 0.25 ? tint(color, 0.55) : colors.panel;
    context.fill();
    if (zoom >= 0.25 && !is_node) {
      context.fillStyle = tint(color, 0.1);
      context.fill();
    }
    this.outline(context, box, is_node ? tint(color, 0.55) : tint(color, 0.7), zoom);
    if (zoom >= 0.3) this.label_box(context, box, is_node);
    context.globalAlpha = 1;
  }
  label_box(context, box, is_node) {
    context.textAlign = "center";
    context.textBaseline = "middle";
    const middle = box.x + box.width / 2;
    context.fillStyle = colors.ink;
    context.font = sans(12, is_node ? 600 : 500);
    context.fillText(fitted(context, box.title, box.width - 12), middle, is_node ? box.y + 13 : box.y + box.height / 2 + 0.5);
    if (is_node) {
      context.fillStyle = colors.muted;
      context.font = mono(10);
      context.fillText(fitted(context, box.detail, box.width - 10), middle, box.y + 27.5);
    }
    context.textAlign = "left";
  }

  map_scale(width, height) { return Math.min((width - 8) / this.graph.width, (height - 8) / this.graph.height); }
  draw_map(context, width, height) {
    if (!this.graph) return;
    const {x, y, zoom} = this.view;
    const all = x <= 0 && y <= 0 && x + this.surface.width / zoom >= this.graph.width && y + this.surface.height / zoom >= this.graph.height;
    this.map.canvas.style.visibility = all ? "hidden" : "visible";
    const scale = this.map_scale(width, height);
    const [left, top] = [(width - this.graph.width * scale) / 2, (height - this.graph.height * scale) / 2];
    for (const box of this.graph.boxes) {
      if (box.parent >= 0) continue;
      const color = box.kind === box_kinds.group || box.group >= 0 ? color_of_kind(groups[box.group].kind) : colors.other;
      context.fillStyle = this.found.has(box) || this.has_found_member(box) ? colors.warm : tint(color, 0.6);
      context.fillRect(left + box.x * scale, top + box.y * scale, Math.max(1, box.width * scale), Math.max(0.7, box.height * scale));
    }
    context.strokeStyle = colors.accent;
    context.lineWidth = 1.5;
    const clamp = (value, hi) => Math.min(hi - 1, Math.max(1, value));
    const [x1, y1] = [clamp(left + x * scale, width), clamp(top + y * scale, height)];
    const [x2, y2] = [clamp(left + (x + this.surface.width / zoom) * scale, width), clamp(top + (y + this.surface.height / zoom) * scale, height)];
    context.strokeRect(x1, y1, Math.max(3, x2 - x1), Math.max(3, y2 - y1));
  }
  // Moves the view to a point of the map.
  go_to(event) {
    const {width, height} = this.map;
    const scale = this.map_scale(width, height);
    const [left, top] = [(width - this.graph.width * scale) / 2, (height - this.graph.height * scale) / 2];
    this.look_at((event.offsetX - left) / scale - this.surface.width / 2 / this.view.zoom, (event.offsetY - top) / scale - this.surface.height / 2 / this.view.zoom);
  }

  listen() {
    const canvas = this.canvas;
    listen_pointer(canvas, {
      drag: (dx, dy) => this.pan(-dx, -dy),
      click: (event) => this.pick(this.hit(event.offsetX, event.offsetY)),
      look: (event) => this.hover(event),
      leave: () => leave(this),
      zoom: (factor, event) => this.zoom(factor, event.offsetX, event.offsetY),
    });
    canvas.addEventListener("dblclick", (event) => this.zoom(1.8, event.offsetX, event.offsetY));
    canvas.addEventListener("keydown", (event) => this.press(event));
    const map = this.map.canvas;
    map.addEventListener("pointerdown", (event) => {
      map.setPointerCapture(event.pointerId);
      this.go_to(event);
    });
    map.addEventListener("pointermove", (event) => { if (event.buttons) this.go_to(event); });
  }
  hover(event) {
    const box = this.hit(event.offsetX, event.offsetY);
    this.canvas.classList.toggle("over", box !== null);
    if (box) tip.show(event.clientX, event.clientY, box.title, box.name === box.title ? "" : box.name, box.detail);
    else tip.hide();
    if (box !== this.hovered) {
      this.hovered = box;
      this.request();
    }
  }
  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = 70;
    const moves = {ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far]};
    if (event.shiftKey && this.picked && moves[event.key]) this.follow(event.key);
    else if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-" || event.key === "_") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter" || event.key === " ") this.pick_middle();
    else if (event.key === "Escape") this.pick(null);
    else return;
    event.preventDefault();
  }
  pick_middle() {
    const {width, height} = this.surface;
    const far = (box) => Math.hypot(box.x + box.width / 2 - this.view.x - width / 2 / this.view.zoom, box.y + box.height / 2 - this.view.y - height / 2 / this.view.zoom);
    let best = null;
    for (const box of this.graph.boxes) {
      if (box.kind === box_kinds.group && this.shows_members()) continue;
      if (box.parent >= 0 && !this.shows_members()) continue;
      if (best === null || far(box) < far(best)) best = box;
    }
    if (best) this.pick(best);
  }
  // From the box that is picked to one it is joined to, or to one beside it.
  follow(key) {
    const from = this.picked;
    const outside = (box) => (box.parent >= 0 ? this.graph.boxes[box.parent] : box);
    const down = key === "ArrowDown";
    let to = null;
    if (down || key === "ArrowUp") {
      const of = (box) => (down ? box.below : box.above);
      to = of(from)[0] || of(outside(from))[0];
    } else {
      const row = this.graph.boxes.filter((box) => box.parent === from.parent && Math.abs(box.y + box.height / 2 - from.y - from.height / 2) < 2).sort((a, b) => a.x - b.x);
      to = row[row.indexOf(from) + (key === "ArrowRight" ? 1 : -1)];
    }
    if (!to) return;
    this.pick(to);
    this.center_on(to);
  }
}

function trace_edge(context, edge, zoom) {
  const points = edge.points;
  context.moveTo(points[0][0], points[0][1]);
  for (let i = 1; i < points.length; ++i) {
    const [[x1, y1], [x2, y2]] = [points[i - 1], points[i]];
    if (zoom < 0.12 || x1 === x2) {
      context.lineTo(x2, y2);
    } else {
      const middle = (y1 + y2) / 2;
      context.bezierCurveTo(x1, middle, x2, middle, x2, y2);
    }
  }
}

// What is known of a box, beside the graph.
function inspect(graph, box) {
  const panel = $("inspector");
  panel.scrollTop = 0;
  if (!box) {
    panel.replaceChildren(make("h3", {}, "Nothing selected"), make("p", {class: "muted"}, "Choose a node or a group in the graph, a step in the timeline, or a point of the roofline."), graph_legend());
    return;
  }
  const parts = box.kind === box_kinds.group ? group_details(groups[box.item]) : box.kind === box_kinds.node ? node_details(graph, graph.nodes[box.item]) : value_details(graph, box);
  panel.replaceChildren(...parts);
}
function graph_legend() {
  const row = (color, label) => make("li", {}, make("i", {style: `background: var(--${color})`}), label);
  const list = make("ul", {}, row("product", "matrix product"), row("attention", "attention"), row("loop", "loop over elements"), row("other", "no kernel of its own"), row("warm", "input or output"));
  return make("div", {class: "legend"}, make("div", {}, make("h4", {}, "Colours"), list));
}
const list_of = (items) => make("ul", {}, ...items.map((item) => make("li", {}, ...[].concat(item))));
const value_item = (value) => [`${value.name} `, make("span", {class: "mono"}, value.type + (value.kind === 1 ? " constant" : ""))];
const group_link = (index) => make("button", {type: "button", class: "link", onclick: () => show_group(index)}, `${groups[index].name} · ${groups[index].kernel}`);

function node_details(graph, node) {
  const first = graph.values[node.outputs[0]];
  const parts = [make("h3", {}, node.op), make("p", {class: "mono"}, first ? first.name : "")];
  const add = (title, list) => { if (list.length) parts.push(make("h4", {}, title), list_of(list)); };
  add("Reads", node.inputs.map((i) => value_item(graph.values[i])));
  add("Makes", node.outputs.map((i) => value_item(graph.values[i])));
  add("Read by", [...new Set(node.outputs.flatMap((i) => graph.values[i].readers))].slice(0, 12).map((i) => `${graph.nodes[i].op} → ${graph.values[graph.nodes[i].outputs[0]].name}`));
  if (node.attributes) add("Attributes", node.attributes.split(", "));
  if (node.location) add("From", [node.location]);
  const title = graph === after_graph() ? "Computed by" : "Became part of";
  add(title, node.groups.length ? node.groups.map((g) => [group_link(g)]) : [graph === after_graph() ? "no kernel: it is only another view of its input" : "nothing that has its name: it was folded, or joined to an equal node"]);
  if (graph === after_graph() && node.groups.length) {
    const group = groups[node.groups[0]];
    add("Why it is in this group", [group.reasons[group.members.indexOf(node.index)].replace(/_/g, " ")]);
  }
  return parts;
}
function group_details(group) {
  const after = after_graph();
  const parts = [make("h3", {}, group.name), make("p", {}, kind_names[group.kind]), make("p", {class: "mono"}, group.kernel)];
  for (const step of group.steps) parts.push(make("h4", {}, "Step " + step.index), list_of(step_lines(step).slice(1)));
  if (group.order !== "canonical") parts.push(make("h4", {}, "Order of its products"), list_of([group.order]));
  parts.push(make("h4", {}, count_text(group.members.length, "node")));
  parts.push(list_of(group.members.map((member, i) => {
    const node = after.nodes[member];
    return [`${node.op} `, make("span", {class: "mono"}, after.values[node.outputs[0]].name), make("br"), make("span", {class: "muted"}, group.reasons[i].replace(/_/g, " "))];
  })));
  return parts;
}
function value_details(graph, box) {
  const value = graph.values[box.item];
  const readers = value.readers.map((i) => `${graph.nodes[i].op} → ${graph.values[graph.nodes[i].outputs[0]].name}`);
  const parts = [make("h3", {}, value.name), make("p", {}, box.kind === box_kinds.input ? "input" : "output"), make("p", {class: "mono"}, value.type)];
  if (readers.length) parts.push(make("h4", {}, "Read by"), list_of(readers));
  return parts;
}
