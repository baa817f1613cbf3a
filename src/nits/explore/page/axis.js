// A column along an axis: density or bars, a range that is dragged, and inputs for its ends.

import { drawn, make } from "./dom.js";
import { place, percent, read, shown, stepAt, ticks, valueAt, written } from "./format.js";

const HEIGHT = 100;

export class AxisPanel {
  // tell(condition or null) is called when the user sets or clears a condition.
  constructor(panel, tell) {
    Object.assign(this, { panel, tell, ends: null, told: false });
    this.svg = drawn("svg", { viewBox: `0 0 128 ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.band = make("div", { class: "band", hidden: true });
    this.handles = ["low", "high"].map((end, k) => make("div", {
      class: `handle ${end}`, hidden: true, onpointerdown: (event) => this.grab(event, k),
    }));
    this.plot = make("div", { class: "plot", onpointerdown: (event) => this.press(event) },
      this.svg, this.band, ...this.handles);
    this.inputs = ["from", "to"].map((word, k) => make("input", {
      type: "text", autocomplete: "off", spellcheck: "false", inputmode: panel.what === "number" ? "decimal" : null,
      placeholder: k ? "highest" : "lowest", "aria-label": `${panel.name}: ${word}`,
      onchange: () => this.typed(), onkeydown: (event) => this.key(event, k),
    }));
    this.summary = make("p", { class: "summary" });
    this.body = [
      this.plot, this.labels(), this.summary,
      make("div", { class: "ends" }, this.inputs[0], make("span", {}, "to"), this.inputs[1]),
    ];
    this.show(panel.shape, false);
  }

  labels() {
    const spans = ticks(this.panel).map((x) => {
      const span = make("span", {}, shown(this.panel, x));
      span.style.left = `${100 * place(this.panel, x)}%`;
      return span;
    });
    return make("div", { class: "ticks", "aria-hidden": "true" }, ...spans);
  }

  // Draws a distribution over that without conditions.
  show(shape, told) {
    const was = this.panel.shape;
    const peak = (of) => Math.max(1e-12, ...of);
    const top = told ? [peak(was.density), peak(shape.density)]
      : Array(2).fill(Math.max(peak(was.density), peak(shape.density)));
    const parts = [];
    if (was.density.length) {
      parts.push(drawn("path", { class: "ghost", d: outline(was.density, top[0]) }));
      parts.push(drawn("path", { class: "now", d: outline(shape.density, top[1]) }));
    }
    parts.push(...this.bars(was.bars, shape.bars));
    this.svg.replaceChildren(...parts);
    this.summarize(shape);
  }

  bars(was, now) {
    const { panel } = this;
    const top = panel.whole ? Math.max(...was, ...now, 1e-12) : 1;
    const wide = panel.whole ? Math.min(10, 90 / Math.max(was.length, 1)) : 1.6;
    return panel.marks.flatMap((x, k) => {
      const at = 128 * place(panel, x);
      const bar = (name, p, width) => drawn("rect", {
        class: name, x: at - width / 2, width,
        y: HEIGHT * (1 - p / top), height: HEIGHT * (p / top),
      });
      return [bar("bar-ghost", was[k], wide), bar("bar-now", now[k], wide * 0.6)];
    });
  }

  summarize(shape) {
    if (!shape.mean) {
      this.summary.replaceChildren("missing in all rows");
      return;
    }
    const { panel } = this;
    const [low, middle, high] = shape.quantiles.map((x) => shown(panel, x));
    const error = panel.what === "time" ? "" : ` ± ${shown({ ...panel, what: "number" }, Number(shape.mean[1].toPrecision(2)))}`;
    const said = [make("b", {}, `median ${middle}`), `, 90 % in ${low} – ${high}, mean ${shown(panel, shape.mean[0])}${error}`];
    const beyond = shape.outside[0] + shape.outside[1];
    if (beyond > 0.02) said.push(`, ${percent(beyond)} beyond the plot`);
    this.summary.replaceChildren(...said);
  }

  // Shows what is given: null, or two texts.
  mark(ends) {
    this.ends = ends;
    const places = (ends ?? ["", ""]).map((text, k) => {
      const x = read(this.panel, text ?? "");
      return Number.isFinite(x) ? place(this.panel, x) : k;
    });
    this.band.hidden = !ends;
    this.band.style.left = `${100 * places[0]}%`;
    this.band.style.width = `${100 * (places[1] - places[0])}%`;
    this.handles.forEach((handle, k) => {
      handle.hidden = !ends;
      handle.style.left = `${100 * places[k]}%`;
      if (document.activeElement !== this.inputs[k] || ends?.[k] !== this.inputs[k].value) {
        this.inputs[k].value = ends?.[k] ?? "";
      }
    });
  }

  set(ends) {
    this.mark(ends);
    if (!ends) this.tell(null);
    else if (ends[0] === ends[1]) this.tell({ value: ends[0] });
    else this.tell({ range: ends.map((text) => text || null) });
  }

  typed() {
    const texts = this.inputs.map((input) => input.value.trim());
    this.set(texts.some(Boolean) ? texts : null);
  }

  // Arrow keys move an end by a step, with Shift by ten; Escape clears.
  key(event, k) {
    if (event.key === "Escape") this.set(null);
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    const { panel } = this;
    const typed = read(panel, this.inputs[k].value);
    const now = Number.isFinite(typed) ? typed : valueAt(panel, k);
    const by = (event.key === "ArrowUp" ? 1 : -1) * (event.shiftKey ? 10 : 1);
    const texts = this.inputs.map((input) => input.value.trim());
    texts[k] = written(panel, this.moved(now, by));
    this.set(texts);
  }

  moved(x, by) {
    const { panel } = this;
    if (panel.whole) {
      const at = panel.marks.indexOf(valueAt(panel, place(panel, x)));
      return panel.marks[Math.min(panel.marks.length - 1, Math.max(0, at + by))];
    }
    const step = stepAt(panel, x);
    return Math.round((x + by * step) / step) * step;
  }

  share(event) {
    const box = this.plot.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  }

  press(event) {
    if (event.button !== 0 || this.handles.includes(event.target)) return;
    const start = this.share(event);
    let moved = false;
    this.follow(event, (at) => {
      moved ||= Math.abs(at - start) > 0.02;
      if (moved) this.drag(Math.min(start, at), Math.max(start, at));
    }, () => { if (!moved) this.click(start); });
  }

  click(share) {
    const { panel } = this;
    const x = valueAt(panel, share);
    const step = stepAt(panel, x);
    const listed = panel.kind === "ordered" && !panel.whole;
    this.set(listed ? [written(panel, x - step), written(panel, x + step)] : [written(panel, x), written(panel, x)]);
  }

  grab(event, k) {
    event.stopPropagation();
    const other = this.ends?.[1 - k];
    this.follow(event, (at) => {
      const texts = [null, null];
      texts[k] = written(this.panel, valueAt(this.panel, at));
      texts[1 - k] = other;
      const [low, high] = texts.map((text) => read(this.panel, text ?? ""));
      if (low > high) texts[k] = other;
      this.set(texts);
    });
  }

  drag(low, high) {
    const ends = [low, high].map((share) => written(this.panel, valueAt(this.panel, share)));
    // At an end of the plot there is no end to the range.
    if (low <= 0) ends[0] = "";
    if (high >= 1) ends[1] = "";
    this.set(ends.some(Boolean) ? ends : null);
  }

  follow(event, move, done = () => {}) {
    event.preventDefault();
    const target = this.plot;
    target.setPointerCapture(event.pointerId);
    const moved = (e) => move(this.share(e));
    const stop = (e) => {
      target.removeEventListener("pointermove", moved);
      if (e.type === "pointerup") done();
    };
    target.addEventListener("pointermove", moved);
    target.addEventListener("pointerup", stop, { once: true });
    target.addEventListener("pointercancel", stop, { once: true });
  }
}

function outline(density, top) {
  const points = density.map((p, i) => `${i + 0.5},${(HEIGHT * (1 - (0.97 * p) / top)).toFixed(2)}`);
  return `M0,${HEIGHT}L${points.join("L")}L128,${HEIGHT}Z`;
}
