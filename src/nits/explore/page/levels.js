// A column of levels: a checkbox and a bar for each.

import { make } from "./dom.js";
import { percent } from "./format.js";

const FEW = 10;

export class LevelsPanel {
  constructor(panel, tell) {
    Object.assign(this, { panel, tell, chosen: new Set(), all: false });
    const order = panel.levels.map((_, k) => k);
    this.common = [...order].sort((a, b) => panel.shape.bars[b] - panel.shape.bars[a] || a - b);
    this.shown = order.length <= FEW + 2 ? order : this.common.slice(0, FEW).sort((a, b) => a - b);
    this.top = Math.max(...panel.shape.bars, 1e-12);
    this.list = make("div", { class: "levels", role: "group", "aria-label": `levels of ${panel.name}` });
    this.more = make("button", { type: "button", class: "quiet small", onclick: () => this.expand() });
    this.summary = make("p", { class: "summary" });
    this.body = [this.list, this.more, this.summary];
    this.rows = new Map();
    this.fill(this.shown);
  }

  fill(levels) {
    const rest = this.panel.levels.length - levels.length;
    this.more.hidden = rest === 0;
    this.more.textContent = `Show ${rest} more levels`;
    for (const k of levels) if (!this.rows.has(k)) this.rows.set(k, this.row(k));
    this.list.replaceChildren(...levels.map((k) => this.rows.get(k).label));
    this.show(this.shape ?? this.panel.shape, false);
  }

  row(k) {
    const name = this.panel.levels[k];
    const input = make("input", { type: "checkbox", onchange: () => this.toggle(k) });
    const was = make("i", { class: "was" });
    const is = make("i", { class: "is" });
    const p = make("span", { class: "p" });
    const text = make("span", { class: "name", title: name }, name === "" ? "(empty)" : name);
    const label = make("label", { class: "level" }, was, is, input, text, p);
    return { label, input, was, is, p };
  }

  expand() {
    const first = this.panel.levels.findIndex((_, k) => !this.rows.has(k));
    this.fill(this.panel.levels.map((_, k) => k));
    this.rows.get(first)?.input.focus();
  }

  toggle(k) {
    if (this.chosen.has(k)) this.chosen.delete(k);
    else this.chosen.add(k);
    const levels = [...this.chosen].sort((a, b) => a - b);
    this.tell(levels.length ? { levels } : null);
  }

  mark(levels) {
    this.chosen = new Set(levels ?? []);
    for (const [k, row] of this.rows) row.input.checked = this.chosen.has(k);
  }

  show(shape) {
    this.shape = shape;
    const top = Math.max(this.top, ...shape.bars);
    for (const [k, row] of this.rows) {
      row.was.style.width = `${(100 * this.panel.shape.bars[k]) / top}%`;
      row.is.style.width = `${(100 * shape.bars[k]) / top}%`;
      row.is.classList.toggle("none", shape.bars[k] === 0);
      row.p.textContent = percent(shape.bars[k]);
      row.p.title = `± ${percent(shape.errors[k])}`;
    }
    const most = shape.bars.indexOf(Math.max(...shape.bars));
    const error = Math.max(...shape.errors);
    const exact = error < 0.0005 ? "" : `, errors up to ${percent(error)}`;
    this.summary.replaceChildren(
      make("b", {}, this.panel.levels[most] || "(empty)"), ` is the most probable${exact}`);
  }
}
