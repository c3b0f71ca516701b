// Zoom and read-out of motion figures. The data are in the page; without this script they show all the same.
(() => {
  "use strict";
  const UNITS = 10000, CLOSEST = 40, SVG = "http://www.w3.org/2000/svg";
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const make = (tag, attributes, parent) => {
    const made = document.createElementNS(SVG, tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    if (parent) parent.append(made);
    return made;
  };
  const plain = value => String(Number((Math.round(value * 1e10) / 1e10 + 0).toPrecision(6))).replace("-", "\u2212");
  const fixed = value => value.toFixed(3).replace("-", "\u2212");
  const ticks = (low, high, most) => {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const size = power * [1, 2, 5, 10].find(factor => factor * power >= rough * 0.999);
    const found = [];
    for (let k = Math.ceil(low / size - 1e-9); k <= Math.floor(high / size + 1e-9); k++) found.push(k * size);
    return found;
  };

  // Points of a path of ours: "M x y", then "l dx dy dx dy …", once for each stretch.
  const pointsOf = path => {
    const xs = [], ys = [];
    for (const stroke of path.getAttribute("d").split("M").slice(1)) {
      const [start, steps = ""] = stroke.split("l");
      let [x, y] = start.split(" ").map(parseFloat);
      xs.push(x); ys.push(y);
      const numbers = steps ? steps.split(" ").map(Number) : [];
      for (let k = 0; k + 1 < numbers.length; k += 2) { xs.push(x += numbers[k]); ys.push(y += numbers[k + 1]); }
    }
    return { xs, ys };
  };
  const firstFrom = (xs, x) => {
    let low = 0, high = xs.length;
    while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
    return low;
  };

  class Panel {
    constructor(group) {
      const data = group.dataset;
      [this.left, this.top, this.width, this.height] = [data.left, data.top, data.width, data.height].map(Number);
      [this.x, this.y] = [data.x, data.y].map(text => text.split(" ").map(Number));
      this.labelled = data.labels === "x";
      this.window = group.querySelector(".window");
      this.marks = ["x", "y"].map(axis => group.querySelector(".ticks." + axis));
      this.paths = [...this.window.querySelectorAll("path[data-name]")];
    }
    get lines() {
      this.read ??= this.paths.map(path => ({ path, name: path.dataset.name, ...pointsOf(path) }));
      return this.read.filter(line => line.path.checkVisibility ? line.path.checkVisibility() : true);
    }
    atX(unit) { return this.x[0] + (this.x[1] - this.x[0]) * unit / UNITS; }
    atY(unit) { return this.y[1] - (this.y[1] - this.y[0]) * unit / UNITS; }
    fitted(first, last) {
      let low = Infinity, high = -Infinity;
      for (const { xs, ys, path } of this.lines) {
        if (path.classList.contains("goal")) continue; // far away as a rule
        for (let k = Math.max(firstFrom(xs, first) - 1, 0); k < xs.length && xs[k] <= last; k++) {
          low = Math.min(low, ys[k]); high = Math.max(high, ys[k]);
        }
      }
      if (!(high >= low)) return [0, UNITS];
      const room = 0.06 * (high - low) + 5;
      return [Math.max(low - room, 0), Math.min(high + room, UNITS)];
    }
    show(first, last) {
      const whole = first === 0 && last === UNITS;
      const [low, high] = whole ? [0, UNITS] : this.fitted(first, last);
      this.window.setAttribute("viewBox", `${first} ${low} ${last - first} ${high - low}`);
      const right = this.left + this.width, bottom = this.top + this.height;
      this.marks.forEach(mark => mark.replaceChildren());
      const [x0, x1, y0, y1] = [this.atX(first), this.atX(last), this.atY(high), this.atY(low)];
      for (const value of ticks(x0, x1, 6)) {
        const x = this.left + this.width * (value - x0) / (x1 - x0), tick = make("g", {}, this.marks[0]);
        make("line", { x1: x, x2: x, y1: this.top, y2: bottom }, tick);
        if (this.labelled) make("text", { x, y: bottom + 16, class: "middle" }, tick).textContent = plain(value);
      }
      for (const value of ticks(y0, y1, 6)) {
        const y = bottom - this.height * (value - y0) / (y1 - y0), tick = make("g", {}, this.marks[1]);
        make("line", { x1: this.left, x2: right, y1: y, y2: y }, tick);
        make("text", { x: this.left - 5, y: y + 4.5, class: "end" }, tick).textContent = plain(value);
      }
    }
  }

  class Plot {
    constructor(figure) {
      this.svg = figure.querySelector(".plot");
      this.panels = [...this.svg.querySelectorAll(".panel")].map(group => new Panel(group));
      this.view = [0, UNITS];
      this.pointers = new Map();
      const tools = document.createElement("div");
      tools.className = "tools";
      for (const [text, hint, act] of [["+", "zoom in", () => this.zoom(0.5)], ["\u2212", "zoom out", () => this.zoom(2)],
        ["reset", "show the whole run", () => this.show(0, UNITS)]]) {
        const button = document.createElement("button");
        button.type = "button"; button.textContent = text; button.title = hint;
        button.setAttribute("aria-label", `${hint}: ${this.svg.getAttribute("aria-label")}`);
        button.addEventListener("click", act);
        tools.append(button);
      }
      this.readout = document.createElement("span");
      this.readout.className = "readout";
      tools.append(this.readout);
      this.svg.after(tools);
      this.svg.tabIndex = 0;
      for (const kind of ["wheel", "pointerdown", "pointermove", "pointerup", "pointercancel", "pointerleave", "dblclick", "keydown"])
        this.svg.addEventListener(kind, event => this[kind](event), { passive: false });
    }
    // Position of an event along the time axis, 0 to 1.
    along(event) {
      const box = this.svg.getBoundingClientRect(), panel = this.panels[0];
      const x = (event.clientX - box.left) * this.svg.viewBox.baseVal.width / box.width;
      return clamp((x - panel.left) / panel.width, 0, 1);
    }
    unit(share) { return this.view[0] + share * (this.view[1] - this.view[0]); }
    show(first, last) {
      const width = clamp(last - first, CLOSEST, UNITS);
      const start = clamp(first, 0, UNITS - width);
      this.view = [start, start + width];
      this.panels.forEach(panel => panel.show(...this.view));
    }
    zoom(factor, share = 0.5) {
      const centre = this.unit(share), width = clamp((this.view[1] - this.view[0]) * factor, CLOSEST, UNITS);
      this.show(centre - share * width, centre + (1 - share) * width);
    }
    pan(share) {
      const step = share * (this.view[1] - this.view[0]);
      this.show(this.view[0] + step, this.view[1] + step);
    }
    // Without focus or Ctrl the wheel scrolls the page, as readers expect.
    wheel(event) {
      if (document.activeElement !== this.svg && !event.ctrlKey) return;
      event.preventDefault();
      this.zoom(Math.exp(clamp(event.deltaY, -300, 300) / 300), this.along(event));
    }
    pointerdown(event) {
      if (event.pointerType === "mouse" && event.button !== 0) return;
      this.svg.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, this.along(event));
      this.start = { share: this.along(event), view: [...this.view] };
      this.selecting = event.pointerType === "mouse" && !event.shiftKey;
    }
    pointermove(event) {
      const share = this.along(event);
      if (!this.pointers.has(event.pointerId)) return this.tell(share);
      const before = [...this.pointers.values()];
      this.pointers.set(event.pointerId, share);
      if (this.pointers.size === 2) return this.pinch(before, [...this.pointers.values()]);
      if (this.selecting) return this.select(this.start.share, share);
      const shift = (this.start.share - share) * (this.start.view[1] - this.start.view[0]);
      this.show(this.start.view[0] + shift, this.start.view[1] + shift);
    }
    pinch(before, now) {
      const spread = pair => Math.max(Math.abs(pair[0] - pair[1]), 0.02);
      this.zoom(spread(before) / spread(now), (now[0] + now[1]) / 2);
      this.pan((before[0] + before[1] - now[0] - now[1]) / 2);
    }
    pointerup(event) {
      if (!this.pointers.delete(event.pointerId)) return;
      if (this.pointers.size === 1) this.start = { share: [...this.pointers.values()][0], view: [...this.view] };
      if (!this.selecting) return;
      const ends = [this.start.share, this.along(event)].sort((a, b) => a - b);
      this.select();
      if (ends[1] - ends[0] > 0.01) this.show(this.unit(ends[0]), this.unit(ends[1]));
    }
    pointercancel(event) { this.pointers.delete(event.pointerId); this.select(); }
    pointerleave() { this.cursor?.remove(); this.cursor = null; this.readout.textContent = ""; }
    dblclick() { this.show(0, UNITS); }
    keydown(event) {
      const acts = {
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.show(0, UNITS),
        Escape: () => this.show(0, UNITS), ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !acts[event.key]) return;
      event.preventDefault();
      acts[event.key]();
    }
    across(share) { return this.panels[0].left + this.panels[0].width * share; }
    select(from, to) {
      this.selection?.remove();
      this.selection = null;
      if (from === undefined) return;
      const [x, end] = [from, to].sort((a, b) => a - b).map(share => this.across(share)), last = this.panels.at(-1);
      const top = this.panels[0].top;
      this.selection = make("rect", { x, y: top, width: end - x, height: last.top + last.height - top, class: "selection" }, this.svg);
    }
    tell(share) {
      const x = this.across(share), last = this.panels.at(-1), at = this.unit(share), told = [];
      this.cursor ??= make("line", { class: "cursor", y1: this.panels[0].top, y2: last.top + last.height }, this.svg);
      this.cursor.setAttribute("x1", x); this.cursor.setAttribute("x2", x);
      const panel = this.panels[0];
      for (const { name, xs, ys } of panel.lines) {
        const k = clamp(firstFrom(xs, at), 0, xs.length - 1);
        if (xs.length) told.push(`${name} ${fixed(panel.atY(ys[k]))}`);
      }
      this.readout.textContent = `${fixed(panel.atX(at))} s: ${told.join(", ")} rad`;
    }
  }

  for (const figure of document.querySelectorAll("figure.zoom")) new Plot(figure);
  document.body.classList.add("live");

  // What is folded prints as well.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach(part => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach(part => { part.open = false; }));
})();
