// Sampled rows: a table, and a download.

import { ask } from "./api.js";
import { byId, make } from "./dom.js";

export function show(panels, sample) {
  const numeric = panels.map((panel) => (panel.levels ? null : "number"));
  const head = panels.map((panel, i) => make("th", { scope: "col", class: numeric[i] }, panel.name));
  const rows = sample.map((row) => make("tr", {}, ...row.map((value, i) => (
    value === null ? make("td", { class: `hole ${numeric[i] ?? ""}` }, "missing") : make("td", { class: numeric[i] }, value)
  ))));
  byId("rows").replaceChildren(
    make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

let seed = 0;

export async function download(given, count, title) {
  seed += 1;
  const response = await ask("rows", { given, count, seed });
  const url = URL.createObjectURL(await response.blob());
  const link = make("a", { href: url, download: `${title}-rows.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
