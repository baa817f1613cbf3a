// A row of one's own: inputs for its entries, their surprise, and what would be likely instead.

import { json } from "./api.js";
import { byId, make, visible } from "./dom.js";
import { number, percent } from "./format.js";

const ODD = 5;

export class OwnRow {
  constructor(panels) {
    this.panels = panels;
    this.cells = panels.map((panel) => this.entry(panel));
    byId("entries").replaceChildren(...this.cells.map((cell) => cell.row));
  }

  entry(panel) {
    const input = panel.levels ? this.choice(panel) : make("input", {
      type: "text", autocomplete: "off", spellcheck: "false", "aria-label": `your ${panel.name}`,
      placeholder: panel.optional ? "missing" : "",
    });
    const surprise = make("td");
    const likely = make("td", { class: "likely" });
    const row = make("tr", {}, make("th", { scope: "row" }, panel.name), make("td", {}, input), surprise, likely);
    return { row, input, surprise, likely };
  }

  choice(panel) {
    const options = panel.levels.map((level, k) => make("option", { value: k }, level));
    const none = make("option", { value: "" }, panel.optional ? "missing" : "–");
    return make("select", { "aria-label": `your ${panel.name}` }, none, ...options);
  }

  // Takes texts by column.
  fill(texts) {
    this.panels.forEach((panel, i) => {
      const text = texts[panel.name] ?? "";
      const value = panel.levels && text !== "" ? panel.levels.indexOf(text) : text;
      this.cells[i].input.value = value === -1 ? "" : value;
    });
  }

  said() {
    return Object.fromEntries(this.panels.map((panel, i) => {
      const text = this.cells[i].input.value.trim();
      if (text === "") return [panel.name, null];
      return [panel.name, panel.levels ? Number(text) : text];
    }));
  }

  async score() {
    const found = await json("row", { row: this.said() });
    const most = Math.max(ODD, ...found.entries.map((entry) => entry.surprise ?? 0));
    found.entries.forEach((entry, i) => this.show(this.cells[i], entry, most, this.panels[i]));
    const total = found.log_density === null ? "ruled out by the support" : `${number(found.log_density)} nats`;
    const said = ["Log-density ", make("b", {}, total)];
    if (found.surprise !== null) said.push(", surprise in all ", make("b", {}, `${number(found.surprise, 3)} nats`));
    if (found.note) said.push(`. ${found.note}`);
    byId("verdict").replaceChildren(...said.map(visible));
  }

  show(cell, entry, most, panel) {
    const bar = make("i");
    bar.style.width = `${(4.5 * (entry.surprise ?? 0)) / most}rem`;
    const text = entry.surprise === null ? "–" : entry.surprise.toFixed(1);
    const unseen = entry.unseen ? ", never seen" : "";
    cell.row.classList.toggle("odd", entry.unseen || (entry.surprise ?? 0) >= ODD);
    cell.surprise.replaceChildren(make("div", { class: "meter" }, bar, `${text}${unseen}`));
    cell.likely.replaceChildren(...likely(entry.likely, panel).map(visible));
  }
}

function likely(found, panel) {
  if (!found.length) return ["–"];
  if (!panel.levels) {
    const [low, middle, high] = found.map(([text]) => text);
    return [make("b", {}, middle), low === high ? "" : `, 90 % in ${low} – ${high}`];
  }
  const [first, ...rest] = found.map(([level, p]) => `${level} ${percent(p)}`);
  return [make("b", {}, first), ...rest.map((text) => `, ${text}`)];
}
