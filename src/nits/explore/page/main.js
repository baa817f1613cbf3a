// The page: what is given, and everything that follows from it.

import { json } from "./api.js";
import { AxisPanel } from "./axis.js";
import { byId, make, visible } from "./dom.js";
import { number, percent } from "./format.js";
import * as joint from "./joint.js";
import { LevelsPanel } from "./levels.js";
import { OwnRow } from "./own.js";
import * as rows from "./rows.js";

const REST = 300; // milliseconds without a change after which a finer answer is asked for
const ENOUGH = 2000; // effective rows that need no finer answer

const state = { given: {}, pair: [0, 1], panels: [], cards: [], last: null, sample: [] };
let wanted = null; // the moment of the newest change that has no answer yet
let asking = false;
let finer = null;
let rest = 0;

start();

async function start() {
  try {
    const model = await json("describe");
    state.panels = model.panels;
    byId("title").textContent = visible(model.title);
    document.title = `${model.title} · nits explore`;
    state.cards = model.panels.map(card);
    byId("panels").replaceChildren(...state.cards.map((one) => one.element));
    state.sample = model.sample;
    rows.show(model.panels, model.sample);
    pairs(model.panels);
    controls(model);
    changed();
  } catch (error) {
    problem(error.message);
  }
}

function card(panel, i) {
  const tell = (condition) => told(i, condition);
  const view = panel.levels ? new LevelsPanel(panel, tell) : new AxisPanel(panel, tell);
  const clear = make("button", {
    type: "button", class: "quiet small", hidden: true, "aria-label": `clear ${panel.name}`,
    onclick: () => told(i, null, true),
  }, "Clear");
  const issue = make("p", { class: "problem", role: "alert", hidden: true });
  const title = make("h3", { title: panel.name, id: `column-${i}` }, panel.name);
  const element = make("article", { class: "card panel", "aria-labelledby": `column-${i}` },
    make("header", {}, title, make("span", { class: "kind" }, panel.kind), clear), ...view.body, issue);
  const holes = panel.optional ? missing(panel, i) : null;
  if (holes) element.append(holes);
  return { element, view, clear, issue, holes };
}

function missing(panel, i) {
  const options = [["", "missing or not"], ["known", "only known values"], ["missing", "only missing"]];
  return make("select", {
    "aria-label": `missing values of ${panel.name}`,
    onchange: (event) => {
      const { value } = event.target;
      told(i, value ? { missing: value === "missing" } : null, true);
    },
  }, ...options.map(([value, text]) => make("option", { value }, text)));
}

// Sets or clears the condition on a column; marked: whether the column must show it anew.
function told(i, condition, marked = false) {
  const { name } = state.panels[i];
  if (condition) state.given[name] = condition;
  else delete state.given[name];
  const one = state.cards[i];
  if (one.holes && !(condition && "missing" in condition)) one.holes.value = "";
  if (marked) one.view.mark(null);
  chips();
  changed();
}

function chips() {
  const said = state.panels.flatMap((panel, i) => {
    const condition = state.given[panel.name];
    state.cards[i].element.classList.toggle("told", Boolean(condition));
    state.cards[i].clear.hidden = !condition;
    if (!condition) return [];
    const text = `${panel.name} ${words(panel, condition)}`;
    const chip = make("button", {
      type: "button", class: "chip", title: text, "aria-label": `clear ${text}`, onclick: () => told(i, null, true),
    }, `${text} ×`);
    return [make("span", { role: "listitem" }, chip)];
  });
  byId("chips").replaceChildren(...said);
  byId("clear").hidden = said.length < 2;
}

function words(panel, condition) {
  if ("missing" in condition) return condition.missing ? "is missing" : "is known";
  if ("value" in condition) return `= ${condition.value}`;
  if ("levels" in condition) return `= ${condition.levels.map((k) => panel.levels[k]).join(" or ")}`;
  const [low, high] = condition.range;
  if (low === null) return `≤ ${high}`;
  return high === null ? `≥ ${low}` : `${low} – ${high}`;
}

// Asks for an answer; of changes while one is on its way only the newest is asked.
function changed() {
  wanted = performance.now();
  clearTimeout(rest);
  finer?.abort();
  if (!asking) turn();
}

async function turn() {
  asking = true;
  while (wanted !== null) {
    const since = wanted;
    wanted = null;
    await answer(since);
  }
  asking = false;
}

async function answer(since) {
  try {
    const found = await json("panels", { given: state.given, pair: state.pair });
    show(found);
    requestAnimationFrame(() => measured(since));
    const fine = found.exact && found.ess >= ENOUGH;
    rest = setTimeout(() => settle(!fine), REST);
  } catch (error) {
    problem(error.message);
  }
}

// Keeps how long the last answer took, from the change until the page is painted.
function measured(since) {
  performance.clearMeasures("answer");
  performance.measure("answer", { start: since, end: performance.now() });
  document.dispatchEvent(new CustomEvent("answered"));
}

// When the conditions rest: a finer answer where the quick one was coarse, and the event's chance.
async function settle(coarse) {
  finer = new AbortController();
  try {
    if (coarse) show(await json("panels", { given: state.given, pair: state.pair, fine: true }, finer.signal));
    if (byId("event").value.trim()) await chance(finer.signal);
  } catch (error) {
    if (error.name !== "AbortError") problem(error.message);
  }
}

function show(found) {
  state.last = found;
  problem(null);
  found.shapes.forEach((shape, i) => state.cards[i].view.show(shape, state.panels[i].name in state.given));
  state.cards.forEach((one, i) => holes(one, found.shapes[i]));
  if (found.joint) joint.draw(state.panels, state.pair, found.joint);
  rows.show(state.panels, found.sample);
  state.sample = found.sample;
  byId("status").textContent = status(found);
}

function holes(one, shape) {
  if (one.holes) one.holes.options[0].textContent = `missing in ${percent(shape.missing[0])} of rows`;
}

function status(found) {
  const count = number(Math.floor(found.ess), 6);
  const drawn = found.exact ? `${count} exact rows` : `effective sample size ${count} of ${number(found.drawn, 6)}`;
  if (!Object.keys(state.given).length) return `Nothing given, ${drawn}`;
  const [p, error] = found.evidence;
  if (found.is_density) return `Density of what is given ${number(p, 3)}, ${drawn}`;
  const spread = error > 0 ? ` ± ${number(100 * error, 2)}` : " (exact)";
  return `Probability ${number(100 * p, 3)} %${spread}, ${drawn}`;
}

// Shows an error beside the columns that it names, if it does, and at the top.
function problem(sentence) {
  const top = byId("error");
  top.hidden = !sentence;
  top.textContent = visible(sentence ?? "");
  state.cards.forEach((one, i) => {
    const { name } = state.panels[i];
    const mine = Boolean(sentence) && name in state.given && sentence.includes(`'${name}'`);
    one.issue.hidden = !mine;
    one.issue.textContent = mine ? visible(sentence) : "";
    if (mine) top.hidden = true;
  });
}

function pairs(panels) {
  state.pair = [0, panels.length > 1 ? panels.length - 1 : 0];
  ["across", "up"].forEach((id, k) => {
    const select = byId(id);
    select.replaceChildren(...panels.map((panel, i) => make("option", { value: i }, panel.name)));
    select.value = state.pair[k];
    select.addEventListener("change", () => {
      state.pair = state.pair.map((i, turn) => (turn === k ? Number(select.value) : i));
      changed();
    });
  });
  const redraw = () => state.last?.joint && joint.draw(panels, state.pair, state.last.joint);
  new ResizeObserver(redraw).observe(byId("joint"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

async function chance(signal) {
  const said = byId("chance");
  try {
    const found = await json("chance", { given: state.given, event: byId("event").value }, signal);
    const how = found.ess === null ? "exact" : `± ${number(100 * found.error, 2)}, effective sample size ${number(found.ess, 5)}`;
    said.classList.remove("bad");
    said.replaceChildren(`${number(100 * found.probability, 4)} %`, make("small", {}, how));
  } catch (error) {
    if (error.name === "AbortError") return;
    said.classList.add("bad");
    said.textContent = visible(error.message);
  }
}

function controls(model) {
  const own = new OwnRow(model.panels);
  const attempt = (work) => async (event) => {
    event.preventDefault();
    try { await work(); problem(null); } catch (error) { problem(error.message); }
  };
  const sampled = (k) => Object.fromEntries(model.panels.map((panel, i) => [panel.name, state.sample[k][i]]));
  let turn = 0;
  own.fill(sampled(0));
  byId("event").placeholder = example(model.panels);
  byId("event-form").addEventListener("submit", attempt(() => chance()));
  byId("clear").addEventListener("click", () => {
    state.given = {};
    state.cards.forEach((one) => { one.view.mark(null); if (one.holes) one.holes.value = ""; });
    chips();
    changed();
  });
  byId("download").addEventListener("click", attempt(
    () => rows.download(state.given, Number(byId("count").value), model.title)));
  byId("own").addEventListener("submit", attempt(() => own.score()));
  byId("drawn").addEventListener("click", attempt(() => {
    turn = (turn + 1) % state.sample.length;
    own.fill(sampled(turn));
    return own.score();
  }));
  byId("pick").hidden = model.rows === 0;
  byId("number").max = model.rows;
  byId("picked").addEventListener("click", attempt(async () => {
    own.fill(await json("picked", { number: Number(byId("number").value) }));
    await own.score();
  }));
}

function example(panels) {
  const panel = panels.find((one) => !one.levels && one.what === "number" && /^[A-Za-z_]\w*$/.test(one.name));
  return panel ? `${panel.name} > ${number(panel.shape.quantiles?.[1] ?? 0, 3).replaceAll(",", "")}` : "";
}
